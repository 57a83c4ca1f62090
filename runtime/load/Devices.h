//===- Devices.h - The devices that run plans -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_LOAD_DEVICES_H
#define LLAMAC_RUNTIME_LOAD_DEVICES_H

#include "runtime/device/Device.h"
#include "runtime/plan/plan_generated.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <memory>
#include <vector>

namespace llamac {

struct ModelOptions;

/// A target, its device and the flag that only its plans take.
struct DeviceKind {
  absl::string_view target;
  const char *flag; ///< "--isa"
  bool (*isFlagGiven)(const ModelOptions &options);
  /// Given options whose flags fit the plan. Null where this tool has no such
  /// device; `hint` then says what to do.
  absl::StatusOr<std::vector<std::shared_ptr<Device>>> (*create)(
      const schema::PlanT &plan, int threads, const ModelOptions &options);
  const char *hint = "";
};

/// The rows of all targets. Those that need no compiler have a device.
absl::Span<const DeviceKind> runtimeDevices();

/// The devices for the ranks of `plan` that this process has, by rank, of
/// `options.devices`. Errors: usage for options of
/// another target, device for a target that is not there.
absl::StatusOr<std::vector<std::shared_ptr<Device>>>
createDevices(const schema::PlanT &plan, int threads,
              const ModelOptions &options);

} // namespace llamac

#endif // LLAMAC_RUNTIME_LOAD_DEVICES_H
