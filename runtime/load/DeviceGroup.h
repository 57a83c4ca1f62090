//===- DeviceGroup.h - The devices of all ranks as one ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan for several ranks runs on a device for each of them. The engine sees
// one: what it writes is written to all, a program runs on all, and what it
// reads is what rank 0 has. Only the parts of weights, the number of the rank
// and the cache differ between them.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_LOAD_DEVICEGROUP_H
#define LLAMAC_RUNTIME_LOAD_DEVICEGROUP_H

#include "runtime/device/Device.h"

#include <memory>
#include <vector>

namespace llamac {

/// One device of `devices`, at least two, by rank. Their programs run at the
/// same time where they wait for each other, else launch by launch, each on all
/// ranks before the next. Memory error where the system gives too few threads.
absl::StatusOr<std::shared_ptr<Device>>
groupDevices(std::vector<std::shared_ptr<Device>> devices);

} // namespace llamac

#endif // LLAMAC_RUNTIME_LOAD_DEVICEGROUP_H
