//===- KernelUses.cpp - What the launches of a program cost ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/KernelUses.h"
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
  const std::optional<kernel::Peaks> peaks = target.peaks(op);
  std::vector<std::string> tiles;
  for (const auto &[name, size] : target.tiles(op))
    tiles.push_back(absl::StrCat(name.str(), "=", size));
  return {.kernel = kernel,
          .rows = step.rows,
          .cost = kernel::costOf(op, step, target),
          .seconds = target.predictedSeconds(op, step),
          .peaks = peaks ? peaks : reports.hostPeaks(),
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

/// The bound of `use`, and how near it should come to that.
static std::string boundText(const KernelUse &use) {
  if (!use.peaks)
    return absl::StrFormat("%.3g FLOP/byte", use.cost.intensity());
  const double least = use.leastSeconds();
  std::string text = absl::StrFormat(
      "bound by %s, at least %.3g us",
      use.isBoundByMemory() ? "memory" : "arithmetic", 1e6 * least);
  if (use.seconds > 0)
    absl::StrAppendFormat(&text, ", expected %.3g us: %.0f %% of the limit",
                          1e6 * use.seconds, 100 * least / use.seconds);
  return text;
}

static std::string useText(const KernelUse &use, double allBytes) {
  plan::KernelOp kernel = use.kernel;
  std::string text = absl::StrFormat("%s: family %s", kernel.getSymName().str(),
                                     kernel.getFamily().str());
  if (!use.tiles.empty())
    absl::StrAppend(&text, " ", use.tiles);
  absl::StrAppendFormat(&text, "; %d %s of %d %s; %s each, %.1f %% of the step",
                        use.launches.size(),
                        use.launches.size() == 1 ? "launch" : "launches",
                        use.rows, use.rows == 1 ? "row" : "rows",
                        bytesText(static_cast<double>(use.cost.bytes())),
                        100 * use.bytes() / std::max(allBytes, 1.0));
  absl::StrAppend(&text, "; ", boundText(use));
  for (const std::string &why : use.slowPaths)
    absl::StrAppend(&text, "; slow path: ", why);
  return text;
}

std::string explainKernels(ModuleOp module, const kernel::Target &target,
                           const kernel::CostStep &step,
                           const PassReports &reports, int64_t rows) {
  std::string text;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    const auto most = static_cast<int64_t>(program.getMaxRows());
    if (rows > most)
      continue;
    const std::vector<KernelUse> uses =
        kernelUses(program, target, step, reports, rows > 0 ? rows : most);
    const std::string name = program.getSymName().str();
    size_t launches = 0;
    double bytes = 0, least = 0, expected = 0;
    for (const KernelUse &use : uses) {
      const auto count = static_cast<double>(use.launches.size());
      launches += use.launches.size();
      bytes += use.bytes();
      least += count * use.leastSeconds();
      expected += count * (std::max(use.seconds, use.leastSeconds()) +
                           target.launchGap());
    }
    absl::StrAppendFormat(&text,
                          "%s: %d launches, %s, the last row at %d tokens; ",
                          name, launches, bytesText(bytes), step.context);
    const std::optional<kernel::Peaks> &host = reports.hostPeaks();
    if (least > 0 && host)
      absl::StrAppendFormat(
          &text,
          "at least %.3g us at the %.3g GB/s and %.3g GFLOP/s of f32 that were "
          "measured here; products of integers and bf16 can be faster\n",
          1e6 * least, 1e-9 * host->bandwidth, 1e-9 * host->operations);
    else if (least > 0)
      absl::StrAppendFormat(
          &text, "at least %.3g us by the GPU's data sheet, expected %.3g us\n",
          1e6 * least, 1e6 * expected);
    else
      absl::StrAppend(&text, "no peaks are known: memory bounds what has fewer "
                             "FLOP/byte than the machine\n");
    for (const KernelUse &use : uses)
      absl::StrAppend(&text, name, ": ", useText(use, bytes), "\n");
  }
  return text;
}

} // namespace llamac
