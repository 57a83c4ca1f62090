//===- PlanDevice.h - Programs as plans, on a device ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_PLANDEVICE_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_PLANDEVICE_H

#include "codegen/Backend.h"
#include "runtime/device/Device.h"
#include "tests/conformance/ops/OpDevice.h"

namespace llamac::conformance {

/// A target of the compiler with the device that runs its plans.
struct PlanTarget {
  std::string name; ///< The plan's target.
  std::function<std::unique_ptr<Backend>(const Model &model)> backend;
  std::function<absl::StatusOr<std::shared_ptr<Device>>()> device;
  /// Whether the device itself sees reads of memory that nobody has written.
  /// Else the workspace holds NaNs before every step.
  bool seesUndefined = false;
};

/// Compiles and loads `programs` as users' plans are: by the target's passes,
/// its backend, a plan file and the runtime.
absl::StatusOr<std::unique_ptr<LoadedPrograms>>
loadOnPlan(const PlanTarget &target, const Model &model,
           const std::vector<ProgramUse> &programs);

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_PLANDEVICE_H
