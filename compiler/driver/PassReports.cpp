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
#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <filesystem>
#include <optional>

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

/// The names in `location`, or the location itself where it has none.
static std::string describe(Location location) {
  if (const SmallVector<StringRef> names = namesOf(location); !names.empty())
    return llvm::join(names, " + ");
  std::string text;
  llvm::raw_string_ostream(text) << location;
  return text;
}

//===----------------------------------------------------------------------===//
// The steps of a pass manager
//===----------------------------------------------------------------------===//

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Reports steps, each the runs of one pass on all its functions. A step ends
/// when another pass begins or the pass manager is done.
class PassReports::Instrumentation : public PassInstrumentation {
public:
  Instrumentation(PassReports &reports, ModuleOp module)
      : reports(reports), module(module) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    // Nested pass managers are passes without a name.
    if (pass->getArgument().empty())
      return;
    if (pass != current)
      startStep(pass);
    runStart = Clock::now();
  }

  void runAfterPass(Pass *pass, Operation *op) override {
    if (pass == current)
      seconds += secondsSince(runStart);
  }

  void runAfterPassFailed(Pass *pass, Operation *op) override {
    if (pass->getArgument().empty())
      return;
    endStep();
  }

  void startStep(Pass *pass) {
    endStep();
    current = pass;
    seconds = 0;
    const PassReportOptions &options = reports.options;
    if (asksFor(options.printBefore, pass->getArgument()))
      print("before", printIr(module, /*locations=*/false));
    if (options.printChanged)
      before = printIr(module, /*locations=*/false);
  }

  /// Prints a remark of the pass that runs, on one line with its notes.
  /// Failure for a diagnostic that is none.
  LogicalResult printRemark(Diagnostic &diagnostic) const {
    if (!current || diagnostic.getSeverity() != DiagnosticSeverity::Remark)
      return failure();
    llvm::errs() << describe(diagnostic.getLocation()) << ": "
                 << current->getArgument() << ": " << diagnostic;
    for (Diagnostic &note : diagnostic.getNotes())
      llvm::errs() << "; " << describe(note.getLocation()) << ": " << note;
    llvm::errs() << "\n";
    return success();
  }

  void endStep() {
    if (!current)
      return;
    const PassReportOptions &options = reports.options;
    const StringRef name = current->getArgument();
    if (asksFor(options.printAfter, name))
      print("after", printIr(module, /*locations=*/false));
    if (options.printChanged) {
      const std::string after = printIr(module, /*locations=*/false);
      if (const std::string diff = diffIr(before, after); !diff.empty())
        llvm::errs() << "--- before " << name << "\n+++ after " << name << "\n"
                     << diff;
    }
    reports.stepDone(name, module, seconds);
    current = nullptr;
  }

private:
  void print(StringRef when, StringRef ir) const {
    llvm::errs() << "// -----// IR " << when << " " << current->getArgument()
                 << " //----- //\n"
                 << ir;
  }

  PassReports &reports;
  ModuleOp module;
  Pass *current = nullptr;
  std::string before;
  double seconds = 0; ///< That the current step has taken.
  Clock::time_point runStart;
};

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

PassReports::PassReports(PassReportOptions given) : options(std::move(given)) {
  timing.setEnabled(options.times);
  total = timing.getRootScope();
}

PassReports::~PassReports() {
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
            flag, ": expected all, ", llvm::join(known, ", "), ", got ", name));
    return absl::OkStatus();
  };
  LLAMAC_RETURN_IF_ERROR(check("--print-before", options.printBefore));
  return check("--print-after", options.printAfter);
}

LogicalResult PassReports::run(PassManager &pm, ModuleOp module) {
  pm.enableVerifier();
  if (!options.crashReproducer.empty())
    pm.enableCrashReproducerGeneration(options.crashReproducer);
  auto instrumentation = std::make_unique<Instrumentation>(*this, module);
  Instrumentation &steps = *instrumentation;
  pm.addInstrumentation(std::move(instrumentation));
  pm.enableTiming(phase);
  std::optional<ScopedDiagnosticHandler> remarks;
  if (options.explainFusion)
    remarks.emplace(module.getContext(), [&](Diagnostic &diagnostic) {
      return steps.printRemark(diagnostic);
    });
  const LogicalResult result = pm.run(module);
  steps.endStep();
  return result;
}

void PassReports::startPhase(StringRef name) {
  phase = total.nest(name);
  phaseName = name.str();
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
    dump(absl::StrFormat("%02d-%s.mlir", steps++, name.str()),
         printIr(module, /*locations=*/true));
}

void PassReports::stepDone(StringRef name, ModuleOp module) {
  stepDone(name, module, secondsSince(phaseStart));
}

} // namespace llamac
