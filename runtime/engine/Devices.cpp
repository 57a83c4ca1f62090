//===- Devices.cpp - The devices that run plans ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Devices.h"

#include "runtime/base/Status.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/engine/Model.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace llamac {

static absl::StatusOr<std::shared_ptr<Device>>
createCpu(const schema::PlanT &plan, int threads, const ModelOptions &options) {
  return CpuDevice::create({threads, options.isa});
}

static absl::StatusOr<std::shared_ptr<Device>>
createCuda(const schema::PlanT &plan, int threads,
           const ModelOptions &options) {
  return CudaDevice::create({.threads = threads, .index = options.gpuIndex});
}

absl::Span<const DeviceKind> runtimeDevices() {
  static constexpr DeviceKind kinds[] = {{"cpu", createCpu},
                                         {"cuda", createCuda}};
  return kinds;
}

absl::StatusOr<std::shared_ptr<Device>>
createDevice(const schema::PlanT &plan, int threads,
             const ModelOptions &options) {
  if (!options.isa.empty() && plan.target != "cpu")
    return usageError(absl::StrCat(
        "--isa: expected a plan for cpu, got one for ", plan.target));
  if (options.gpuIndex != 0 && plan.target != "cuda")
    return usageError(absl::StrCat(
        "--gpu-index: expected a plan for cuda, got one for ", plan.target));
  if (!options.simSchedule.empty() && plan.target != "sim")
    return usageError(absl::StrCat(
        "--sim-schedule: expected a plan for sim, got one for ", plan.target));
  for (const DeviceKind &kind : options.devices)
    if (kind.target == plan.target)
      return kind.create(plan, threads, options);
  const auto name = [](std::string *out, const DeviceKind &kind) {
    absl::StrAppend(out, kind.target);
  };
  return deviceError(absl::StrCat(
      "target: expected ", absl::StrJoin(options.devices, " or ", name),
      ", got ", plan.target,
      plan.target == "sim" ? "; run the plan by llamac"
                           : "; compile the plan with --target cpu"));
}

} // namespace llamac
