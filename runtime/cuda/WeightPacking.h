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

/// The format that a weight stored as `type` has on the device.
WeightFormat weightFormat(DataType type);

/// Whether rows of `depth` elements of `type` can be packed: a multiple of 8
/// and of the blocks of both sides.
bool isPackable(DataType type, int64_t depth);

/// Packs rows [firstRow, firstRow + numRows) of a matrix [outputs][depth] whose
/// shape isPackable. `source` holds the stored bytes of these rows; `packed` is
/// the whole weight, packedWeightBytes(weightFormat(type), outputs, depth)
/// bytes, of which the rows' own are written.
void packWeightRows(DataType type, int64_t outputs, int64_t depth,
                    int64_t firstRow, int64_t numRows, const uint8_t *source,
                    uint8_t *packed);

} // namespace llamac::cuda

#endif // LLAMAC_RUNTIME_CUDA_WEIGHTPACKING_H
