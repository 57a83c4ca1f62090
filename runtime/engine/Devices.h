//===- Devices.h - The devices that run plans -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_DEVICES_H
#define LLAMAC_RUNTIME_ENGINE_DEVICES_H

#include "runtime/device/Device.h"
#include "runtime/plan/plan_generated.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <memory>

namespace llamac {

struct ModelOptions;

/// A target, and what makes the device that runs plans for it. Options are
/// checked: what `create` is given is meant for its target.
struct DeviceKind {
  absl::string_view target;
  absl::StatusOr<std::shared_ptr<Device>> (*create)(
      const schema::PlanT &plan, int threads, const ModelOptions &options);
};

/// Those that need no compiler: cpu and cuda.
absl::Span<const DeviceKind> runtimeDevices();

/// The device for `plan`, of `options.devices`. Errors: usage for options of
/// another target, device for a target that is not there.
absl::StatusOr<std::shared_ptr<Device>>
createDevice(const schema::PlanT &plan, int threads,
             const ModelOptions &options);

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_DEVICES_H
