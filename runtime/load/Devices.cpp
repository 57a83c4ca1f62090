//===- Devices.cpp - The devices that run plans ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/load/Devices.h"

#include "runtime/base/Status.h"
#include "runtime/cpu/CpuDevice.h"
#include "runtime/cuda/CudaDevice.h"
#include "runtime/load/ModelOptions.h"
#include "runtime/ranks/RankWorld.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <algorithm>

namespace llamac {

using Devices = std::vector<std::shared_ptr<Device>>;

static absl::StatusOr<Devices> createCpu(const schema::PlanT &plan, int threads,
                                         const ModelOptions &options) {
  const auto ranks = options.ranks ? 1 : static_cast<int>(plan.ranks);
  if (ranks > 1)
    threads = std::max(threads / ranks, 1);
  Devices devices;
  for (int rank = 0; rank < ranks; ++rank) {
    LLAMAC_ASSIGN_OR_RETURN(devices.emplace_back(),
                            CpuDevice::create({threads, options.isa}));
  }
  return devices;
}

static absl::StatusOr<Devices> createCuda(const schema::PlanT &plan,
                                          int threads,
                                          const ModelOptions &options) {
  const CudaDeviceOptions own{
      .threads = threads,
      .index = options.gpuIndex,
      .localRank = options.ranks ? options.ranks->localRank() : 0};
  if (plan.ranks > 1 && !options.ranks)
    return createCudaRanks(static_cast<int>(plan.ranks), own);
  Devices devices;
  LLAMAC_ASSIGN_OR_RETURN(devices.emplace_back(), CudaDevice::create(own));
  return devices;
}

absl::Span<const DeviceKind> runtimeDevices() {
  static constexpr DeviceKind kinds[] = {
      {"cpu", "--isa",
       [](const ModelOptions &options) { return !options.isa.empty(); },
       createCpu},
      {"cuda", "--gpu-index",
       [](const ModelOptions &options) { return options.gpuIndex != 0; },
       createCuda},
      {"sim", "--sim-schedule",
       [](const ModelOptions &options) { return !options.simSchedule.empty(); },
       /*create=*/nullptr, "run the plan by llamac"}};
  return kinds;
}

absl::StatusOr<Devices> createDevices(const schema::PlanT &plan, int threads,
                                      const ModelOptions &options) {
  std::vector<absl::string_view> targets;
  const DeviceKind *found = nullptr;
  for (const DeviceKind &kind : options.devices) {
    if (kind.create)
      targets.push_back(kind.target);
    if (kind.target == plan.target)
      found = &kind;
    else if (kind.isFlagGiven(options))
      return usageError(absl::StrCat(kind.flag, ": expected a plan for ",
                                     kind.target, ", got one for ",
                                     plan.target));
  }
  if (found && found->create)
    return found->create(plan, threads, options);
  return deviceError(
      absl::StrCat("target: expected ", absl::StrJoin(targets, " or "),
                   ", got ", plan.target, "; ",
                   found ? found->hint : "compile the plan with --target cpu"));
}

} // namespace llamac
