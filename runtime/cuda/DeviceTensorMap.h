//===- DeviceTensorMap.h - Tensor maps by the driver ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_DEVICETENSORMAP_H
#define LLAMAC_RUNTIME_CUDA_DEVICETENSORMAP_H

#include "runtime/cuda/Driver.h"
#include "runtime/plan/TensorMap.h"

namespace llamac::cuda {

/// A CUtensorMap: what a kernel is given by value.
struct alignas(64) DeviceTensorMap {
  uint64_t words[16];
};

/// The map of the matrix at `base`, on the device. Device error when the driver
/// does not make it.
absl::StatusOr<DeviceTensorMap>
encodeTensorMap(const Driver &driver, void *base, const TensorMapShape &shape);

} // namespace llamac::cuda

#endif // LLAMAC_RUNTIME_CUDA_DEVICETENSORMAP_H
