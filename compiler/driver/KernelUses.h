//===- KernelUses.h - What the launches of a program cost -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_KERNELUSES_H
#define LLAMAC_COMPILER_DRIVER_KERNELUSES_H

#include "compiler/driver/PassReports.h"
#include "ir/kernel/Target.h"
#include "ir/plan/Plan.h"

#include "absl/status/statusor.h"
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// The launches of a program that are of one kernel and have as many rows. They
/// cost the same.
struct KernelUse {
  plan::KernelOp kernel;
  int64_t rows = 0;
  std::vector<plan::LaunchOp> launches = {};
  kernel::Cost cost; ///< Cost of one launch.
  /// The predicted time of a launch; 0: nothing predicts it.
  double seconds = 0;
  std::optional<kernel::Peaks> peaks;
  std::string tiles; ///< The kernel's tile sizes: "maxRows=1 warps=4".
  /// Reasons that keep it from a faster kernel: a clause each.
  std::vector<std::string> slowPaths;

  /// The least time of a launch by `peaks`; 0: none are known.
  double leastSeconds() const { return peaks ? peaks->seconds(cost) : 0; }
  /// Whether memory bounds it, by `peaks`, which are known.
  bool isBoundByMemory() const {
    return cost.intensity() * peaks->bandwidth < peaks->operations;
  }
  /// Bytes of all launches.
  double bytes() const {
    return static_cast<double>(launches.size()) *
           static_cast<double>(cost.bytes());
  }
};

/// Rows that reach lm_head in the step whose costs are counted.
constexpr int64_t countedLogitsRows = 1;

/// Tokens that the last row of the step whose costs are counted attends to:
/// `asked`, or without (0) as many as is usual, in a plan for `context`. Usage
/// error when it holds less.
absl::StatusOr<int64_t> countedContext(int64_t asked, int64_t context);

/// The rows of a launch in the step whose costs are counted, of a program for
/// up to `maxRows` and `maxLogitsRows`; `ofLogits`: the launch has the latter.
int64_t countedRows(int64_t maxRows, int64_t maxLogitsRows, int64_t context,
                    bool ofLogits);

/// The uses of `program`, in the order of their first launches, in a step of
/// `maxRows` rows or as many as it takes; of `step` the rows are left out.
/// `reports` are those of the passes that made it.
std::vector<KernelUse>
kernelUses(plan::ProgramOp program, const kernel::Target &target,
           kernel::CostStep step, const PassReports &reports,
           int64_t maxRows = std::numeric_limits<int64_t>::max());

/// For people, a table for each program, with a row for each use, the largest
/// first: its share of the step, bytes, time at the limit that bounds it, the
/// time that is expected where the target predicts it, family and tiles, and
/// why it does not take a faster way. The step has `rows` rows, in the programs
/// that take so many; 0: as many as each takes.
std::string explainKernels(mlir::ModuleOp module, const kernel::Target &target,
                           const kernel::CostStep &step,
                           const PassReports &reports, int64_t rows);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_KERNELUSES_H
