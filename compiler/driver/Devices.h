//===- Devices.h - Devices, the simulator included --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_DEVICES_H
#define LLAMAC_COMPILER_DRIVER_DEVICES_H

#include "runtime/load/Devices.h"

namespace llamac {

/// runtimeDevices() and the simulator, for ModelOptions.
absl::Span<const DeviceKind> allDevices();

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_DEVICES_H
