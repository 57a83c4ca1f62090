//===- KernelUses.cpp - What the launches of a program cost ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/KernelUses.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace llamac {

std::vector<KernelUse> kernelUses(plan::ProgramOp program,
                                  const kernel::Target &target,
                                  kernel::CostStep step) {
  const auto maxRows = static_cast<int64_t>(program.getMaxRows());
  const auto maxLogitsRows = static_cast<int64_t>(program.getMaxLogitsRows());
  std::vector<KernelUse> uses;
  std::map<std::pair<StringRef, int64_t>, size_t> numbers;
  for (auto launch : program.getBody().front().getOps<plan::LaunchOp>()) {
    step.rows = std::min(maxRows, step.context);
    if (launch.getRows() == plan::RowSymbol::LogitsRows)
      step.rows = std::min({maxLogitsRows, step.rows, countedLogitsRows});
    const auto [it, isNew] =
        numbers.try_emplace({launch.getKernel(), step.rows}, uses.size());
    if (isNew) {
      auto kernel = SymbolTable::lookupNearestSymbolFrom<plan::KernelOp>(
          launch, launch.getKernelAttr());
      Operation *op = &kernel.getPrototype();
      uses.push_back({.kernel = kernel,
                      .rows = step.rows,
                      .cost = kernel::costOf(op, step, target),
                      .seconds = target.predictedSeconds(op, step),
                      .peaks = target.peaks(op)});
    }
    uses[it->second].launches.push_back(launch);
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

/// What bounds `use`, and how near it should come to that.
static std::string boundText(const KernelUse &use) {
  const double intensity = use.cost.intensity();
  if (!use.peaks)
    return absl::StrFormat("%.3g FLOP/byte", intensity);
  const double least = use.peaks->seconds(use.cost);
  const bool byMemory =
      intensity * use.peaks->bandwidth < use.peaks->operations;
  std::string text =
      absl::StrFormat("bound by %s, at least %.3g us",
                      byMemory ? "memory" : "arithmetic", 1e6 * least);
  if (use.seconds > 0)
    absl::StrAppendFormat(&text, ", expected %.3g us: %.0f %% of the limit",
                          1e6 * use.seconds, 100 * least / use.seconds);
  return text;
}

static std::string useText(const KernelUse &use, double allBytes,
                           const kernel::Target &target,
                           const PassReports &reports) {
  plan::KernelOp kernel = use.kernel;
  std::string text = absl::StrFormat("%s: family %s", kernel.getSymName().str(),
                                     kernel.getFamily().str());
  for (const auto &[name, size] : target.tiles(&kernel.getPrototype()))
    absl::StrAppend(&text, " ", name.str(), "=", size);
  absl::StrAppendFormat(&text, "; %d %s of %d %s; %s each, %.1f %% of the step",
                        use.launches.size(),
                        use.launches.size() == 1 ? "launch" : "launches",
                        use.rows, use.rows == 1 ? "row" : "rows",
                        bytesText(static_cast<double>(use.cost.bytes())),
                        100 * use.bytes() / std::max(allBytes, 1.0));
  absl::StrAppend(&text, "; ", boundText(use));
  std::vector<std::string> why = target.slowPaths(&kernel.getPrototype());
  for (plan::LaunchOp launch : use.launches)
    for (const std::string &remark : reports.remarksAt(launch.getLoc()))
      if (!llvm::is_contained(why, remark))
        why.push_back(remark);
  for (const std::string &clause : why)
    absl::StrAppend(&text, "; slow path: ", clause);
  return text;
}

std::string explainKernels(ModuleOp module, const kernel::Target &target,
                           const kernel::CostStep &step,
                           const PassReports &reports) {
  std::string text;
  for (auto program : module.getOps<plan::ProgramOp>()) {
    const std::vector<KernelUse> uses = kernelUses(program, target, step);
    const std::string name = program.getSymName().str();
    size_t launches = 0;
    double bytes = 0, least = 0;
    for (const KernelUse &use : uses) {
      launches += use.launches.size();
      bytes += use.bytes();
      if (use.peaks)
        least += static_cast<double>(use.launches.size()) *
                 use.peaks->seconds(use.cost);
    }
    absl::StrAppendFormat(&text,
                          "%s: %d launches, %s, the last row at %d tokens; ",
                          name, launches, bytesText(bytes), step.context);
    if (least > 0)
      absl::StrAppendFormat(&text, "at least %.3g us by the GPU's data sheet\n",
                            1e6 * least);
    else
      absl::StrAppend(&text, "no peaks are known: memory bounds what has fewer "
                             "FLOP/byte than the machine\n");
    for (const KernelUse &use : uses)
      absl::StrAppend(&text, name, ": ", useText(use, bytes, target, reports),
                      "\n");
  }
  return text;
}

} // namespace llamac
