//===- TensorMap.h - A matrix that is copied by boxes -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The description of a matrix in global memory that a tensor map holds, and the
// demands of NVIDIA's driver on it (cuTensorMapEncodeTiled of the driver API,
// for two dimensions without interleaving).
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PLAN_TENSORMAP_H
#define LLAMAC_RUNTIME_PLAN_TENSORMAP_H

#include "runtime/plan/plan_generated.h"

#include <cstdint>
#include <string>

namespace llamac {

/// Rows of elements, `rowBytes` apart, copied by boxes of boxRows x boxColumns.
struct TensorMapShape {
  uint32_t elementBytes = 0;
  uint64_t columns = 0;
  uint64_t rows = 0;
  uint64_t rowBytes = 0;
  uint32_t boxColumns = 0;
  uint32_t boxRows = 0;
  /// How far apart the pieces that a swizzle exchanges may lie: 0, 32, 64, 128.
  uint32_t swizzleBytes = 0;

  uint64_t boxBytes() const {
    return uint64_t{boxRows} * boxColumns * elementBytes;
  }
  /// From the first byte to behind the last one. No overflow in a map without
  /// problems.
  uint64_t bytes() const {
    return (rows - 1) * rowBytes + columns * elementBytes;
  }
};

/// The matrix of `map`, a map of the kernel that `launch` of `program` runs,
/// without where it is.
TensorMapShape shapeOf(const schema::TensorMap &map, const schema::PlanT &plan,
                       const schema::ProgramT &program,
                       const schema::LaunchT &launch);

/// The error in `shape`: "a row of 20 bytes, expected a multiple of 16"; empty
/// when nothing is. A swizzled box must be as wide as its swizzle, which is
/// more than the driver demands and all that is used.
std::string problemOf(const TensorMapShape &shape);

} // namespace llamac

#endif // LLAMAC_RUNTIME_PLAN_TENSORMAP_H
