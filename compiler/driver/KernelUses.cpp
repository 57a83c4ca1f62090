//===- KernelUses.cpp - What the launches of a program cost ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/KernelUses.h"

#include "compiler/driver/TextTable.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace llamac {

absl::StatusOr<int64_t> countedContext(int64_t asked, int64_t context) {
  if (asked < 0 || asked > context)
    return usageError(absl::StrCat("--cost-context: expected 1 to ", context,
                                   ", the context that is compiled for, got ",
                                   asked));
  return asked ? asked : std::min(kernel::CostStep::usualContext, context);
}

int64_t countedRows(int64_t maxRows, int64_t maxLogitsRows, int64_t context,
                    bool ofLogits) {
  const int64_t rows = std::min(maxRows, context);
  return ofLogits ? std::min({maxLogitsRows, rows, countedLogitsRows}) : rows;
}

/// A use without launches, of `step` rows.
static KernelUse useOf(plan::KernelOp kernel, const kernel::Target &target,
                       const kernel::CostStep &step,
                       const PassReports &reports) {
  Operation *op = &kernel.getPrototype();
  std::optional<kernel::Peaks> peaks = target.peaks(op);
  if (const auto &host = reports.hostLimits(); host && !peaks)
    peaks = {host->bandwidth, target.hasInt8Products(op) ? host->int8Operations
                                                         : host->f32Operations};
  std::vector<std::string> tiles;
  for (const auto &[name, size] : target.tiles(op))
    tiles.push_back(absl::StrCat(name.str(), "=", size));
  return {.kernel = kernel,
          .rows = step.rows,
          .cost = kernel::costOf(op, step, target),
          .seconds = target.predictedSeconds(op, step),
          .peaks = peaks,
          .tiles = absl::StrJoin(tiles, " "),
          .slowPaths = target.slowPaths(op)};
}

std::vector<KernelUse> kernelUses(plan::ProgramOp program,
                                  const kernel::Target &target,
                                  kernel::CostStep step,
                                  const PassReports &reports, int64_t maxRows) {
  std::vector<KernelUse> uses;
  std::map<std::pair<StringRef, int64_t>, size_t> numbers;
  for (auto launch : program.getBody().front().getOps<plan::LaunchOp>()) {
    step.rows = countedRows(
        std::min(maxRows, static_cast<int64_t>(program.getMaxRows())),
        static_cast<int64_t>(program.getMaxLogitsRows()), step.context,
        launch.getRows() == plan::RowSymbol::LogitsRows);
    const auto [it, isNew] =
        numbers.try_emplace({launch.getKernel(), step.rows}, uses.size());
    if (isNew)
      uses.push_back(useOf(SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(
                               launch, launch.getKernelAttr()),
                           target, step, reports));
    KernelUse &use = uses[it->second];
    use.launches.push_back(launch);
    for (const std::string &remark : reports.remarksAt(launch.getLoc()))
      if (!llvm::is_contained(use.slowPaths, remark))
        use.slowPaths.push_back(remark);
  }
  return uses;
}

/// "12.6 MB".
static std::string bytesText(double bytes) {
  constexpr const char *units[] = {"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < std::size(units)) {
    bytes /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.*f %s", unit == 0 || bytes >= 100 ? 0 : 1, bytes,
                         units[unit]);
}

static std::string milliseconds(double seconds) {
  return absl::StrFormat("%.4f", 1e3 * seconds);
}

static std::string percent(double part, double whole) {
  return absl::StrFormat("%.1f", 100 * part / std::max(whole, 1e-30));
}

namespace {

/// The table of a program: a row for each use, the largest share of the step
/// first, with what keeps it from a faster kernel below it, and the sum.
class UsesTable {
public:
  UsesTable(std::vector<KernelUse> uses, double gap)
      : uses(std::move(uses)), gap(gap) {
    for (const KernelUse &use : this->uses) {
      launches += use.launches.size();
      bytes += use.bytes();
      limit += limitOf(use);
      expected += expectedOf(use);
      isPredicted |= use.seconds > 0;
    }
    isTimed = limit > 0;
    llvm::sort(this->uses, [&](const KernelUse &a, const KernelUse &b) {
      return weightOf(a) > weightOf(b);
    });
  }

  std::string text() const {
    std::vector<TextTable::Column> columns = {
        {"share %", true}, {"launches", true}, {"rows", true}, {"each", true}};
    if (isTimed)
      columns.push_back({isPredicted ? "limit ms" : "ms", true});
    if (isPredicted)
      columns.insert(columns.end(), {{"expected ms", true}, {"limit %", true}});
    columns.push_back({isTimed ? "bound by" : "FLOP/byte", !isTimed});
    columns.push_back({"kernel: family and tiles"});
    TextTable table(std::move(columns));
    for (const KernelUse &use : uses) {
      table.addRow(cellsOf(use));
      for (const std::string &why : use.slowPaths)
        table.addNote(absl::StrCat("slow path: ", why));
    }
    table.addRow(sumCells());
    return table.text();
  }

private:
  static double countOf(const KernelUse &use) {
    return static_cast<double>(use.launches.size());
  }
  static double limitOf(const KernelUse &use) {
    return countOf(use) * use.leastSeconds();
  }
  static double expectedOf(const KernelUse &use) {
    return countOf(use) * std::max(use.seconds, use.leastSeconds());
  }
  /// The part of `use` in the step, of what is known best: time or bytes.
  double weightOf(const KernelUse &use) const {
    return isTimed ? expectedOf(use) : use.bytes();
  }

  std::vector<std::string> cellsOf(const KernelUse &use) const {
    plan::KernelOp kernel = use.kernel;
    std::vector<std::string> cells = {
        percent(weightOf(use), isTimed ? expected : bytes),
        absl::StrCat(use.launches.size()), absl::StrCat(use.rows),
        bytesText(static_cast<double>(use.cost.bytes()))};
    if (isTimed)
      cells.push_back(milliseconds(limitOf(use)));
    if (isPredicted) {
      const bool isKnown = use.seconds > 0;
      cells.push_back(isKnown ? milliseconds(countOf(use) * use.seconds) : "");
      cells.push_back(isKnown ? percent(use.leastSeconds(), use.seconds) : "");
    }
    if (!isTimed)
      cells.push_back(absl::StrFormat("%.3g", use.cost.intensity()));
    else
      cells.push_back(!use.peaks              ? ""
                      : use.isBoundByMemory() ? "memory"
                                              : "arithmetic");
    cells.push_back(absl::StrCat(kernel.getSymName().str(), ": ",
                                 kernel.getFamily().str(),
                                 use.tiles.empty() ? "" : " ", use.tiles));
    return cells;
  }

  std::vector<std::string> sumCells() const {
    std::vector<std::string> cells = {"100.0", absl::StrCat(launches), "",
                                      bytesText(bytes)};
    if (isTimed)
      cells.push_back(milliseconds(limit));
    const double gaps = static_cast<double>(launches) * gap;
    if (isPredicted) {
      cells.push_back(milliseconds(expected + gaps));
      cells.push_back(percent(limit, expected + gaps));
    }
    cells.push_back("");
    cells.push_back(isPredicted && gaps > 0
                        ? absl::StrFormat("the step; %s ms between launches",
                                          milliseconds(gaps))
                        : "the step");
    return cells;
  }

  std::vector<KernelUse> uses;
  double gap; ///< Seconds between two launches.
  size_t launches = 0;
  double bytes = 0, limit = 0, expected = 0;
  bool isTimed = false;     ///< Whether there are peaks.
  bool isPredicted = false; ///< Whether the target predicts times.
};

} // namespace

/// Where the limits of the tables come from; `hasLimits`: whether there are
/// any.
static std::string limitsText(bool hasLimits,
                              const std::optional<DeviceLimits> &host) {
  if (!hasLimits)
    return "No peaks are known: memory bounds what has fewer FLOP/byte than "
           "the machine.\n";
  if (!host)
    return "Limits are those of the GPU's data sheet.\n";
  return absl::StrFormat(
      "Times are those at %.3g GB/s, %.3g GFLOP/s in f32 and %.3g in products "
      "of int8, measured just now beside what else runs here.\n"
      "What caches hold can be faster.\n",
      1e-9 * host->bandwidth, 1e-9 * host->f32Operations,
      1e-9 * host->int8Operations);
}

std::string explainKernels(ModuleOp module, const kernel::Target &target,
                           const kernel::CostStep &step,
                           const PassReports &reports, int64_t rows) {
  std::string text;
  bool hasLimits = false, hasSlowPaths = false;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    const auto most = static_cast<int64_t>(program.getMaxRows());
    if (rows > most)
      continue;
    const int64_t taken = rows > 0 ? rows : most;
    std::vector<KernelUse> uses =
        kernelUses(program, target, step, reports, taken);
    hasLimits |= llvm::any_of(
        uses, [](const KernelUse &use) { return use.leastSeconds() > 0; });
    hasSlowPaths |= llvm::any_of(
        uses, [](const KernelUse &use) { return !use.slowPaths.empty(); });
    const int64_t counted = std::min(taken, step.context);
    absl::StrAppendFormat(
        &text, "%s: a step of %d %s, the last at %d tokens\n%s\n",
        program.getSymName().str(), counted, counted == 1 ? "row" : "rows",
        step.context, UsesTable(std::move(uses), target.launchGap()).text());
  }
  return absl::StrCat(text, hasSlowPaths ? "" : "No kernel has a slow path.\n",
                      limitsText(hasLimits, reports.hostLimits()));
}

} // namespace llamac
