//===- TilePacking.h - Weights as the cuda kernels read them ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Turns rows as a checkpoint stores them into those of a packed weight
// (runtime/packing/TileLayout.h), which keeps their values; F32 alone is
// rounded, to bfloat16. Units of rows are independent, so ranges of them can be
// packed on any thread.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PACKING_TILEPACKING_H
#define LLAMAC_RUNTIME_PACKING_TILEPACKING_H

#include "runtime/base/DataType.h"
#include "runtime/packing/TileLayout.h"

#include <cstdint>

namespace llamac::cuda {

/// The format of a weight on the device, and the element type of that.
struct DeviceWeight {
  WeightFormat format;
  DataType type;
};

/// The formats of a weight stored as `type`.
constexpr DeviceWeight deviceWeight(DataType type) {
  constexpr DeviceWeight weights[] = {
#define LLAMAC_ELEMENT_TYPE(ID, NAME, BLOCK, BYTES, PRODUCT, WEIGHT)           \
  {WeightFormat::WEIGHT, DataType::WEIGHT},
#include "runtime/base/ElementTypes.def"
  };
  return weights[static_cast<size_t>(type)];
}

constexpr WeightFormat weightFormat(DataType type) {
  return deviceWeight(type).format;
}
constexpr DataType deviceType(DataType type) { return deviceWeight(type).type; }

/// Whether values are rounded there, for want of a kernel: those of F32.
constexpr bool isRounded(DataType type) { return deviceType(type) != type; }

/// Whether rows of `depth` elements of `type` can be packed: a multiple of 8
/// and of the blocks of both sides.
bool isPackable(DataType type, int64_t depth);

/// Packs `numRows` rows of `depth` elements, which isPackable, of which
/// `source` holds the stored bytes, to packedWeightBytes() at `packed`. The
/// first row begins a unit of unitRows(); what the last unit has no rows for is
/// zero.
void packWeight(DataType type, int64_t depth, int64_t numRows,
                const uint8_t *source, uint8_t *packed);

} // namespace llamac::cuda

#endif // LLAMAC_RUNTIME_PACKING_TILEPACKING_H
