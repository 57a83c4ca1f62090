//===- PassReports.cpp - Seeing what each pass does -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/PassReports.h"

#include "compiler/driver/IrDiff.h"
#include "ir/llama/OpNames.h"
#include "ir/plan/Plan.h"
#include "runtime/base/Status.h"
#include "runtime/base/Suggestion.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <map>

using namespace mlir;

namespace llamac {

using Clock = std::chrono::steady_clock;

static bool asksFor(ArrayRef<std::string> names, StringRef pass) {
  return llvm::is_contained(names, "all") || llvm::is_contained(names, pass);
}

std::string printIr(ModuleOp module, bool locations) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os, OpPrintingFlags().enableDebugInfo(locations));
  os << "\n";
  return text;
}

/// Whether `op` is of layer `layer`, alone or fused with others.
static bool isOfLayer(Operation &op, int64_t layer) {
  return llvm::any_of(namesOf(op.getLoc()),
                      [&](StringRef name) { return layerOf(name) == layer; });
}

/// The ops of a layer in each function and program, under its name; numbered as
/// in the whole module. `hidesOthers`: other ops are there as hidden lines.
static std::string printLayer(ModuleOp module, bool locations, int64_t layer,
                              bool hidesOthers) {
  std::string text;
  llvm::raw_string_ostream os(text);
  AsmState state(module, OpPrintingFlags().enableDebugInfo(locations));
  for (Operation &function : *module.getBody()) {
    if (!isa<func::FuncOp, plan::ProgramOp>(function))
      continue;
    os << function.getName() << " @"
       << SymbolTable::getSymbolName(&function).getValue() << ", layer "
       << layer << ":\n";
    for (Block &block : function.getRegion(0))
      for (Operation &op : block) {
        const bool isShown = isOfLayer(op, layer);
        if (!isShown && !hidesOthers)
          continue;
        const std::string indent = isShown ? "  " : std::string(1, hiddenLine);
        std::string lines;
        llvm::raw_string_ostream lineStream(lines);
        op.print(lineStream, state);
        os << indent << absl::StrReplaceAll(lines, {{"\n", "\n" + indent}})
           << "\n";
      }
  }
  return text;
}

/// The names in `location`, or the location itself where it has none.
static std::string describe(Location location) {
  if (const SmallVector<StringRef> names = namesOf(location); !names.empty())
    return llvm::join(names, " + ");
  std::string text;
  llvm::raw_string_ostream(text) << location;
  return text;
}

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

static void printTitled(StringRef when, StringRef name, StringRef ir) {
  llvm::errs() << "// -----// IR " << when << " " << name << " //----- //\n"
               << ir;
}

PassReports::PassReports(PassReportOptions given) : options(std::move(given)) {
  timing.setEnabled(options.times);
  total = timing.getRootScope();
}

PassReports::~PassReports() {
  const bool isWhole = !phaseName.empty() && !hasFailed;
  if (isWhole)
    for (const auto &[flag, names] :
         {std::pair{"--print-before", &options.printBefore},
          std::pair{"--print-after", &options.printAfter}})
      for (const std::string &name : *names)
        if (name != "all" && !ran.contains(name))
          printWarning(absl::StrCat(flag, " ", name,
                                    ": the pass did not run: it was skipped, "
                                    "or comes after --stop-after"));
  if (isWhole && options.printChanged && changes == 0)
    llvm::errs() << "no pass changed the IR\n";
  // The times are printed when their manager goes; all scopes end before.
  phase.stop();
  total.stop();
}

absl::Status PassReports::checkNames(ArrayRef<StringRef> known) const {
  auto check = [&](absl::string_view flag,
                   ArrayRef<std::string> names) -> absl::Status {
    for (const std::string &name : names)
      if (name != "all" && !llvm::is_contained(known, name))
        return usageError(absl::StrCat(
            flag, ": expected all, ", llvm::join(known, ", "), ", got ", name,
            suggestion(name,
                       std::vector<std::string>(known.begin(), known.end()))));
    return absl::OkStatus();
  };
  LLAMAC_RETURN_IF_ERROR(check("--print-before", options.printBefore));
  return check("--print-after", options.printAfter);
}

absl::Status PassReports::checkLayer(int64_t numLayers) const {
  if (!options.layer)
    return absl::OkStatus();
  if (options.printBefore.empty() && options.printAfter.empty() &&
      !options.printChanged)
    return usageError("--layer: expected --print-before, --print-after or "
                      "--print-ir-changed beside it, got none");
  if (*options.layer >= 0 && *options.layer < numLayers)
    return absl::OkStatus();
  return usageError(absl::StrCat("--layer: expected 0 to ", numLayers - 1,
                                 ", got ", *options.layer));
}

std::string PassReports::shown(ModuleOp module, bool locations,
                               bool hidesOthers) const {
  return options.layer
             ? printLayer(module, locations, *options.layer, hidesOthers)
             : printIr(module, locations);
}

LogicalResult PassReports::take(StringRef name, Diagnostic &diagnostic) {
  const Location location = diagnostic.getLocation();
  if (diagnostic.getSeverity() == DiagnosticSeverity::Warning) {
    const std::string text = describe(location) + ": " + diagnostic.str();
    if (warnings.insert(text).second)
      printWarning(text);
    return success();
  }
  if (diagnostic.getSeverity() != DiagnosticSeverity::Remark)
    return failure();
  const std::string text = name.str() + ": " + diagnostic.str();
  if (!isa<UnknownLoc>(location))
    remarksOf[location].push_back(text);
  ++remarks;
  if (!options.explainFusion)
    return success();
  // On one line with its notes.
  llvm::raw_ostream &os = explanations();
  os << describe(location) << ": " << text;
  for (Diagnostic &note : diagnostic.getNotes())
    os << "; " << describe(note.getLocation()) << ": " << note;
  os << "\n";
  os.flush();
  return success();
}

static bool isFusion(StringRef pass) { return pass.starts_with("fuse-"); }

namespace {

/// How many ops of each name there are before and after a pass. Terminators,
/// which compute nothing, do not count.
class OpCounts {
public:
  void countBefore(ModuleOp module) { count(module, &Counts::before); }
  void countAfter(ModuleOp module) { count(module, &Counts::after); }

  /// Adds a row to `table` for each name that `pass` changed the number of.
  void addChanges(StringRef pass, TextTable &table) const {
    for (const auto &[name, ops] : counts)
      if (ops.before != ops.after)
        table.addRow({pass.str(), name.str(), absl::StrCat(ops.before),
                      absl::StrCat(ops.after)});
  }

private:
  struct Counts {
    int64_t before = 0, after = 0;
  };

  void count(ModuleOp module, int64_t Counts::*when) {
    module.walk([&](Operation *op) {
      if (!op->hasTrait<OpTrait::IsTerminator>())
        ++(counts[op->getName().getStringRef()].*when);
    });
  }

  std::map<StringRef, Counts> counts;
};

} // namespace

LogicalResult PassReports::run(StringRef name, PassManager &pm,
                               ModuleOp module) {
  pm.enableVerifier();
  if (!options.crashReproducer.empty())
    pm.enableCrashReproducerGeneration(options.crashReproducer);
  pm.enableTiming(phase);
  const ScopedDiagnosticHandler handler(
      module.getContext(),
      [&](Diagnostic &diagnostic) { return take(name, diagnostic); });
  if (asksFor(options.printBefore, name))
    printTitled("before", name, shown(module, options.printLocations));
  std::string before;
  if (options.printChanged)
    before = shown(module, /*locations=*/false, /*hidesOthers=*/true);
  ran.insert(name.str());
  const bool explains = options.explainFusion && isFusion(name);
  OpCounts ops;
  if (explains)
    ops.countBefore(module);
  const Clock::time_point start = Clock::now();
  const LogicalResult result = pm.run(module);
  const double seconds = secondsSince(start);
  if (explains) {
    ops.countAfter(module);
    ops.addChanges(name, fusions);
  }
  if (asksFor(options.printAfter, name))
    printTitled("after", name, shown(module, options.printLocations));
  if (options.printChanged)
    if (const std::string diff =
            diffIr(before, shown(module, /*locations=*/false,
                                 /*hidesOthers=*/true));
        !diff.empty()) {
      llvm::errs() << "--- before " << name << "\n+++ after " << name << "\n"
                   << diff;
      ++changes;
    }
  stepDone(name, module, seconds);
  return result;
}

void PassReports::endFusion(ArrayRef<std::string> skipped) const {
  if (!options.explainFusion)
    return;
  llvm::raw_ostream &os = explanations();
  os << fusions.text();
  bool isWhole = remarks == 0;
  for (StringRef pass : skipped)
    if (isFusion(pass)) {
      os << pass << ": not fused: the pass was skipped\n";
      isWhole = false;
    }
  if (isWhole)
    os << "fuse: no op was left out of a fusion\n";
  os.flush();
}

void PassReports::startPhase(StringRef name) {
  phase = total.nest(name);
  phaseName = name.str();
  remarks = 0;
  phaseStart = Clock::now();
}

void PassReports::dump(StringRef name, const std::string &text) {
  if (options.dumpFolder.empty() || !dumpStatus.ok())
    return;
  const std::filesystem::path folder = options.dumpFolder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  dumpStatus =
      error ? usageError(absl::StrCat(folder.string(),
                                      ": cannot be made: ", error.message()))
            : writeFileAtomically((folder / name.str()).string(), text);
}

void PassReports::stepDone(StringRef name, ModuleOp module, double seconds) {
  if (options.observer)
    options.observer->stepDone(phaseName, name, module, seconds);
  if (!options.dumpFolder.empty())
    dump(absl::StrFormat("%02d-%s.mlir", steps++, name.str()), print(module));
}

void PassReports::stepDone(StringRef name, ModuleOp module) {
  stepDone(name, module, secondsSince(phaseStart));
}

} // namespace llamac
