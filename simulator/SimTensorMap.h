//===- SimTensorMap.h - Tensor maps of the simulator ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_SIMTENSORMAP_H
#define LLAMAC_SIMULATOR_SIMTENSORMAP_H

#include "runtime/base/Status.h"
#include "runtime/plan/TensorMap.h"

#include "absl/strings/str_cat.h"

#include <cstddef>
#include <cstdint>

namespace llamac {

/// The contents of the 128 bytes of a TensorMap
/// (codegen/cuda/kernels/ptx_sm90a.cuh) whose address a simulated kernel is
/// given.
struct alignas(64) SimTensorMap {
  /// The mark of maps that encodeSimTensorMap made.
  static constexpr uint64_t made = 0x70616d726f736e74;

  uint64_t mark = 0;
  const std::byte *base = nullptr;
  TensorMapShape shape;
  std::byte unused[64] = {};
};
static_assert(sizeof(SimTensorMap) == 128);

/// The map of the matrix at `base`, which is 16-byte aligned. Usage error for
/// what the driver would refuse.
inline absl::Status encodeSimTensorMap(const void *base,
                                       const TensorMapShape &shape,
                                       SimTensorMap &map) {
  std::string problem = problemOf(shape);
  if (problem.empty() && reinterpret_cast<uintptr_t>(base) % 16 != 0)
    problem = "a matrix that is not 16-byte aligned";
  if (!problem.empty())
    return usageError(absl::StrCat("a tensor map: ", problem));
  map = {};
  map.mark = SimTensorMap::made;
  map.base = static_cast<const std::byte *>(base);
  map.shape = shape;
  return absl::OkStatus();
}

/// Where byte `offset` of shared memory lies under a swizzle: the 16-byte piece
/// that it is in changes places with others of the same `swizzleBytes`.
constexpr uint32_t swizzled(uint32_t offset, uint32_t swizzleBytes) {
  const uint32_t pieces = swizzleBytes ? swizzleBytes / 16 - 1 : 0;
  return offset ^ ((offset >> 7 & pieces) << 4);
}

} // namespace llamac

#endif // LLAMAC_SIMULATOR_SIMTENSORMAP_H
