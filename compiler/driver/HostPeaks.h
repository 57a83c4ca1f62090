//===- HostPeaks.h - The speed of this machine's cores ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_HOSTPEAKS_H
#define LLAMAC_COMPILER_DRIVER_HOSTPEAKS_H

#include "ir/kernel/Target.h"

#include "absl/status/statusor.h"

namespace llamac {

/// The bandwidth and the f32 operations a second of all cores together. They
/// are measured once, which takes some seconds, and kept in the cache folder,
/// where there is one. Memory error where there is no gibibyte to read.
absl::StatusOr<kernel::Peaks> hostPeaks();

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_HOSTPEAKS_H
