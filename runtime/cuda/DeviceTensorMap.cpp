//===- DeviceTensorMap.cpp - Tensor maps by the driver --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/DeviceTensorMap.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

namespace llamac::cuda {

static int swizzleOf(uint32_t bytes) {
  return bytes == 128  ? TensorMapSwizzle::Bytes128
         : bytes == 64 ? TensorMapSwizzle::Bytes64
         : bytes == 32 ? TensorMapSwizzle::Bytes32
                       : TensorMapSwizzle::None;
}

absl::StatusOr<DeviceTensorMap>
encodeTensorMap(const Driver &driver, void *base, const TensorMapShape &shape) {
  // The inner dimension comes first; it has no stride.
  const uint64_t extents[] = {shape.columns, shape.rows};
  const uint64_t strides[] = {shape.rowBytes};
  const uint32_t box[] = {shape.boxColumns, shape.boxRows};
  const uint32_t steps[] = {1, 1};
  constexpr int noInterleave = 0, fillWithZeros = 0, promoteTo128Bytes = 2;
  DeviceTensorMap map;
  LLAMAC_RETURN_IF_ERROR(driver.check(
      driver.cuTensorMapEncodeTiled(
          &map,
          shape.elementBytes == 4 ? TensorMapType::Float32
                                  : TensorMapType::Unsigned16,
          2, base, extents, strides, box, steps, noInterleave,
          swizzleOf(shape.swizzleBytes), promoteTo128Bytes, fillWithZeros),
      absl::StrCat("cuTensorMapEncodeTiled of ", shape.rows, " rows of ",
                   shape.columns, " elements of ", shape.elementBytes,
                   " bytes")));
  return map;
}

} // namespace llamac::cuda
