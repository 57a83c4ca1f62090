//===- PlanDevice.h - Plans of programs on a device -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_PLANDEVICE_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_PLANDEVICE_H

#include "runtime/device/Device.h"
#include "tests/conformance/ops/PlanLibrary.h"

namespace llamac::conformance {

/// Runs the plans of a library.
struct PlanRunner {
  std::shared_ptr<PlanLibrary> library;
  std::function<absl::StatusOr<std::shared_ptr<Device>>()> device;
  /// Whether the device itself sees uninitialised reads of memory.
  /// Else the workspace holds NaNs before every step.
  bool seesUndefined = false;
};

/// Loads the plan of `programs`, all of `model`, by the runtime.
absl::StatusOr<std::unique_ptr<LoadedPrograms>>
loadOnPlan(const PlanRunner &runner, const Model &model,
           const std::vector<ProgramUse> &programs);

/// The `load` of a row whose plans `runner` runs.
std::function<absl::StatusOr<std::unique_ptr<LoadedPrograms>>(
    const Model &, const std::vector<ProgramUse> &)>
loadBy(PlanRunner runner);

/// Rounding to nearest to the cache's format: fp16, with 11 bits, or bf16, with
/// 8.
double cacheRounding(const Model &model);

/// The common part of every device that runs the cuda target's kernels.
OpDeviceRow cudaRow(const std::string &name, PlanRunner runner);

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_PLANDEVICE_H
