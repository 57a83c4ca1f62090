//===- Golden.h - Numbers from CUTLASS and cuda.h ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which thread has which element of an operand, where the elements of matrices
// lie in shared memory, how both are described to wgmma, and what the driver is
// given for tensor maps: by CUTLASS's host code, which MakeGolden.cpp asked.
// The simulator and the kernels are written from one reading of NVIDIA's
// manuals; these numbers are from another.
//
// The tables are linear over bits: what a number is mapped to is the XOR of the
// images of its set bits.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_GOLDEN_GOLDEN_H
#define LLAMAC_TESTS_GOLDEN_GOLDEN_H

#include "runtime/plan/TensorMap.h"

#include <cstdint>

namespace llamac::golden {

/// The value of a function that is linear over XOR for `bits`, from the images
/// of its bits.
constexpr uint32_t imageOf(uint32_t bits, const uint32_t (&images)[14]) {
  uint32_t result = 0;
  for (int bit = 0; bit < 14; ++bit)
    if (bits >> bit & 1)
      result ^= images[bit];
  return result;
}

/// Where swizzled shared memory has a byte.
struct ByteSwizzle {
  uint32_t images[14];

  constexpr uint32_t at(uint32_t byte) const { return imageOf(byte, images); }
};

/// A place in a matrix; of ldmatrix's, the lane that gives the row's address.
struct Place {
  uint32_t row;
  uint32_t column;
};

/// The elements that a thread has of a matrix, in their order in its registers:
/// the images of the bits of its number, then those of the element's.
struct Fragment {
  int threadBits;
  int valueBits;
  Place images[14];

  constexpr uint32_t threads() const { return 1u << threadBits; }
  constexpr uint32_t values() const { return 1u << valueBits; }
  constexpr Place at(uint32_t thread, uint32_t value) const {
    Place result = {0, 0};
    const uint32_t bits = thread | value << threadBits;
    for (int bit = 0; bit < threadBits + valueBits; ++bit)
      if (bits >> bit & 1)
        result = {result.row ^ images[bit].row,
                  result.column ^ images[bit].column};
    return result;
  }
};

/// A matrix in shared memory, powers of two in size: the bytes that the bits of
/// the row are mapped to, then those of the column. As an operand of wgmma its
/// columns are the depth; each step of 16 has a descriptor, for a matrix that
/// begins at byte 0.
struct SharedMatrix {
  uint32_t rows;
  uint32_t columns;
  uint32_t elementBytes;
  uint32_t images[14];
  int steps;
  uint64_t descriptors[8];

  constexpr uint32_t bytes() const { return rows * columns * elementBytes; }
  constexpr uint32_t at(uint32_t row, uint32_t column) const {
    return imageOf(row | column * rows, images);
  }
};

/// The arguments of cuTensorMapEncodeTiled, in its order, but for the map's and
/// the matrix's addresses.
struct TensorMapCall {
  int type;
  uint32_t rank;
  uint64_t extents[2];
  uint64_t strides[1];
  uint32_t box[2];
  uint32_t steps[2];
  int interleave;
  int swizzle;
  int promotion;
  int fill;

  bool operator==(const TensorMapCall &) const = default;
};

#include "tests/golden/Cutlass.inc"

/// The shape that `call` describes, for maps of 16-bit integers.
constexpr TensorMapShape shapeOf(const TensorMapCall &call) {
  return {.elementBytes = 2,
          .columns = call.extents[0],
          .rows = call.extents[1],
          .rowBytes = call.strides[0],
          .boxColumns = call.box[0],
          .boxRows = call.box[1],
          .swizzleBytes = call.swizzle ? 16U << call.swizzle : 0U};
}

} // namespace llamac::golden

#endif // LLAMAC_TESTS_GOLDEN_GOLDEN_H
