//===- WeightPacking.h - Weights as the cuda kernels read them --*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns rows as a checkpoint stores them into the two planes of a packed weight
// (runtime/cuda/WeightLayout.h). Formats that the kernels read keep their
// values; any other is rounded to bfloat16. Rows are independent, so ranges of
// them can be packed on any thread.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_WEIGHTPACKING_H
#define LLAMAC_RUNTIME_CUDA_WEIGHTPACKING_H

#include "runtime/base/DataType.h"
#include "runtime/cuda/WeightLayout.h"

#include <cstdint>

namespace llamac::cuda {

/// The format that a weight has on the device, and the element type of that.
struct WeightPlanes {
  WeightFormat format;
  DataType type;
};

/// That of a weight stored as `type`.
constexpr WeightPlanes weightPlanes(DataType type) {
  constexpr WeightPlanes planes[] = {
#define LLAMAC_ELEMENT_TYPE(ID, NAME, BLOCK, BYTES, PRODUCT, PLANES)           \
  {WeightFormat::PLANES, DataType::PLANES},
#include "runtime/base/ElementTypes.def"
  };
  return planes[static_cast<size_t>(type)];
}

constexpr WeightFormat weightFormat(DataType type) {
  return weightPlanes(type).format;
}

/// Whether its values are rounded there: to bfloat16, for want of a kernel.
constexpr bool roundsToPlanes(DataType type) {
  return weightFormat(type) == WeightFormat::BF16 && type != DataType::BF16;
}

/// Whether rows of `depth` elements of `type` can be packed: a multiple of 8
/// and of the blocks of both sides.
bool isPackable(DataType type, int64_t depth);

/// Packs `numRows` rows of `depth` elements, which isPackable, of which
/// `source` holds the stored bytes: to `values` valueRowBytes() a row, to
/// `scales`, where the format has any, scaleRowBytes().
void packWeightRows(DataType type, int64_t depth, int64_t numRows,
                    const uint8_t *source, uint8_t *values, uint8_t *scales);

} // namespace llamac::cuda

#endif // LLAMAC_RUNTIME_CUDA_WEIGHTPACKING_H
