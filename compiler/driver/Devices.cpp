//===- Devices.cpp - Devices, the simulator included ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Devices.h"

#include "runtime/base/Status.h"
#include "runtime/load/ModelOptions.h"
#include "simulator/SimCode.h"
#include "simulator/SimDevice.h"

#include <algorithm>
#include <vector>

namespace llamac {

static absl::StatusOr<std::vector<std::shared_ptr<Device>>>
createSim(const schema::PlanT &plan, int threads, const ModelOptions &options) {
  SimDeviceOptions device{.threads = threads};
  if (!options.simSchedule.empty()) {
    LLAMAC_ASSIGN_OR_RETURN(device.order,
                            parseSimSchedule(options.simSchedule));
  }
  device.checked =
      std::any_of(plan.code.begin(), plan.code.end(),
                  [](const auto &code) { return code->isa == simCheckedCode; });
  const auto sim = std::make_shared<SimDevice>(device);
  // One simulator has the memory of all ranks, which read each other's.
  return std::vector<std::shared_ptr<Device>>(static_cast<size_t>(plan.ranks),
                                              sim);
}

absl::Span<const DeviceKind> allDevices() {
  static const std::vector<DeviceKind> kinds = [] {
    std::vector<DeviceKind> all(runtimeDevices().begin(),
                                runtimeDevices().end());
    for (DeviceKind &kind : all)
      if (kind.target == "sim")
        kind.create = createSim;
    return all;
  }();
  return kinds;
}

} // namespace llamac
