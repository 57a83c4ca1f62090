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
  kernel::Cost cost; ///< Of one launch.
  /// That a launch should take; 0: nothing predicts it.
  double seconds = 0;
  std::optional<kernel::Peaks> peaks;

  /// Of all launches.
  double bytes() const {
    return static_cast<double>(launches.size()) *
           static_cast<double>(cost.bytes());
  }
};

/// Rows that reach lm_head in the step whose costs are counted.
constexpr int64_t countedLogitsRows = 1;

/// The uses of `program`, in the order of their first launches, in a step of as
/// many rows as it takes; of `step` the rows are left out.
std::vector<KernelUse> kernelUses(plan::ProgramOp program,
                                  const kernel::Target &target,
                                  kernel::CostStep step);

/// For people, a line for each use in each program: its family, tiles, bytes,
/// what bounds it, the share of that which it should reach where the target
/// predicts times, and why it does not take a faster way.
std::string explainKernels(mlir::ModuleOp module, const kernel::Target &target,
                           const kernel::CostStep &step,
                           const PassReports &reports);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_KERNELUSES_H
