//===- WeightPacking.cpp - Weights as the cuda kernels read them ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/WeightPacking.h"

#include "runtime/base/CodeBooks.h"
#include "runtime/io/Dequantize.h"
#include "runtime/io/Mxfp8.h"

#include <cassert>
#include <cstring>
#include <vector>

namespace llamac::cuda {

bool isPackable(DataType type, int64_t depth) {
  return isPackableDepth(weightFormat(type), depth) &&
         depth % dataTypeInfo(type).blockElements == 0;
}

/// Whether the kernels read the values as they are stored, one after another.
static bool isKept(DataType type) {
  return type == DataType::F16 || type == DataType::BF16;
}

/// GGUF's byte i of a block of 4-bit values has element i in its low half and
/// element 16 + i in its high half; the packed byte has elements 2i and 2i + 1.
static void packNibbles(const uint8_t *stored, uint8_t *values) {
  for (int64_t i = 0; i < 8; ++i) {
    const uint8_t even = stored[2 * i], odd = stored[2 * i + 1];
    values[i] = static_cast<uint8_t>((even & 0xf) | (odd & 0xf) << 4);
    values[8 + i] = static_cast<uint8_t>(even >> 4 | (odd & 0xf0));
  }
}

/// Packs one block of `type`: stored are the scales, then the values.
static void packBlock(DataType type, const uint8_t *stored, uint8_t *values,
                      uint8_t *scales) {
  const int64_t bytes = scaleBytes(weightFormat(type));
  if (type == DataType::MXFP8) {
    *scales = mxfp8ScaleWithNan(stored);
    std::memcpy(values, stored + bytes, scaleBlock);
    return;
  }
  std::memcpy(scales, stored, bytes);
  stored += bytes;
  const auto nibble = [&](int64_t i) {
    return stored[i % 16] >> i / 16 * 4 & 15;
  };
  switch (type) {
  case DataType::Q8_0:
    for (int64_t i = 0; i < scaleBlock; ++i)
      values[i] = stored[i] ^ 0x80; // q + 128
    return;
  case DataType::IQ4_NL:
    for (int64_t i = 0; i < scaleBlock; ++i)
      values[i] = static_cast<uint8_t>(iq4Values[nibble(i)] + 128);
    return;
  case DataType::MXFP4:
    for (int64_t i = 0; i < scaleBlock; ++i)
      values[i] = f32ToE4m3(0.5F * static_cast<float>(mxfp4Values[nibble(i)]));
    return;
  case DataType::Q5_0: {
    // A word of fifth bits comes first.
    uint32_t fifths;
    std::memcpy(&fifths, stored, sizeof fifths);
    stored += sizeof fifths;
    for (int64_t i = 0; i < scaleBlock; ++i)
      values[i] = static_cast<uint8_t>(
          (nibble(i) | static_cast<int>(fifths >> i & 1) << 4) - 16 + 128);
    return;
  }
  default:
    packNibbles(stored, values);
  }
}

void packWeightRows(DataType type, int64_t depth, int64_t numRows,
                    const uint8_t *source, uint8_t *values, uint8_t *scales) {
  assert(isPackable(type, depth) && "the caller has checked the shape");
  const WeightFormat format = weightFormat(type);
  const int64_t rowBytes = valueRowBytes(format, depth);
  const auto storedBytes = static_cast<int64_t>(dataTypeBytes(type, depth));
  std::vector<float> wide(hasScales(format) || isKept(type) ? 0 : depth);
  for (int64_t row = 0; row < numRows; ++row, source += storedBytes) {
    uint8_t *rowValues = values + row * rowBytes;
    if (isKept(type)) {
      std::memcpy(rowValues, source, rowBytes);
    } else if (!hasScales(format)) {
      dequantizeRow(type, source, depth, wide.data());
      quantizeRow(DataType::BF16, wide.data(), depth, rowValues);
    } else {
      const int64_t blocks = depth / scaleBlock;
      uint8_t *rowScales = scales + row * scaleRowBytes(format, depth);
      for (int64_t block = 0; block < blocks; ++block)
        packBlock(type, source + block * (storedBytes / blocks),
                  rowValues + block * (rowBytes / blocks),
                  rowScales + block * scaleBytes(format));
    }
  }
}

} // namespace llamac::cuda
