//===- RandomWeights.cpp - Random weights made at load --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/weights/RandomWeights.h"

#include "runtime/formats/BlockScales.h"
#include "runtime/formats/Dequantize.h"
#include "runtime/formats/FloatBits.h"
#include "runtime/plan/PlanConfig.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>
#include <xxhash.h>

namespace llamac {

namespace {

/// The numbers of one row: the one at any place without those before it, so
/// that a compiler computes many at a time.
class RowNumbers {
public:
  RowNumbers(uint64_t weightKey, int64_t row) {
    const uint64_t key = XXH3_64bits_withSeed(&row, sizeof row, weightKey);
    first = static_cast<uint32_t>(key);
    second = static_cast<uint32_t>(key >> 32);
  }

  /// Two rounds of a 32-bit mix, lowbias32 of Wellons' hash-prospector, with a
  /// key before each.
  uint32_t at(int64_t place) const {
    uint32_t x = static_cast<uint32_t>(place) + first;
    x = (x ^ (x >> 16)) * 0x7feb352dU + second;
    x = (x ^ (x >> 15)) * 0x846ca68bU;
    return x ^ (x >> 16);
  }

private:
  uint32_t first, second;
};

} // namespace

// Numbers from -1 to 1 of variance 1/3 that are `deviation` apart from `mean`.
static void fillFloats(const RowNumbers &numbers, float mean, float deviation,
                       int64_t count, float *out) {
  const float scale = deviation * std::sqrt(3.0F) * 0x1p-31F;
  for (int64_t i = 0; i < count; ++i)
    out[i] =
        mean + scale * static_cast<float>(static_cast<int32_t>(numbers.at(i)));
}

/// Blocks of random bits, but for their scales.
static void fillBits(const RowNumbers &numbers, DataType type, float deviation,
                     int64_t count, uint8_t *out) {
  const uint64_t bytes = dataTypeBytes(type, count);
  for (uint64_t at = 0; at < bytes; at += sizeof(uint32_t)) {
    const uint32_t bits = numbers.at(static_cast<int64_t>(at / sizeof bits));
    std::memcpy(out + at, &bits, std::min(sizeof bits, bytes - at));
  }
  for (uint64_t at = 0; at < bytes; at += dataTypeInfo(type).blockBytes)
    setBlockScales(type, deviation, out + at);
}

/// Blocks of q8_0 or q4_0: GGUF has the scale, then the values.
static void fillBlocks(const RowNumbers &numbers, DataType type,
                       float deviation, int64_t count, uint8_t *out) {
  // Values are -128 to 127, or -8 to 7, evenly spread.
  const double steps = type == DataType::Q8_0 ? 256 : 16;
  const double spread = std::sqrt((steps * steps - 1) / 12);
  const uint16_t scale = f32ToF16(static_cast<float>(deviation / spread));
  const DataTypeInfo &info = dataTypeInfo(type);
  const auto words =
      static_cast<int64_t>((info.blockBytes - sizeof scale) / sizeof(uint32_t));
  for (int64_t block = 0;
       block < count / static_cast<int64_t>(info.blockElements);
       ++block, out += info.blockBytes) {
    std::memcpy(out, &scale, sizeof scale);
    for (int64_t word = 0; word < words; ++word) {
      const uint32_t bits = numbers.at(block * words + word);
      std::memcpy(out + sizeof scale + word * sizeof bits, &bits, sizeof bits);
    }
  }
}

RowSource randomRows(const schema::WeightT &weight, int64_t part,
                     uint64_t seed) {
  const DataType type = fromPlan(weight.type);
  const MatrixShape whole = wholeShape(weight);
  const bool isNorm = whole.rows == 1;
  const bool hasBits = takesRandomBits(type);
  const bool isSimple = type == DataType::Q8_0 || type == DataType::Q4_0;
  const int64_t cols = whole.cols;
  const float mean = isNorm ? 1 : 0;
  const float deviation =
      isNorm ? 0.1F / std::sqrt(3.0F) : 1 / std::sqrt(static_cast<float>(cols));
  const uint64_t key =
      XXH3_64bits_withSeed(weight.name.data(), weight.name.size(), seed);
  const PartOrigin origin = originOf(weight, part);
  const uint64_t begin = dataTypeBytes(type, origin.col);
  const uint64_t rowBytes = dataTypeBytes(type, weight.cols);
  return [=](int64_t first, int64_t count, uint8_t *out) {
    std::vector<float> values(hasBits ? 0 : cols);
    std::vector<uint8_t> row(dataTypeBytes(type, cols));
    for (int64_t i = 0; i < count; ++i) {
      const RowNumbers numbers(key, origin.row + first + i);
      if (isSimple) {
        fillBlocks(numbers, type, deviation, cols, row.data());
      } else if (hasBits) {
        fillBits(numbers, type, deviation, cols, row.data());
      } else {
        fillFloats(numbers, mean, deviation, cols, values.data());
        quantizeRow(type, values.data(), cols, row.data());
      }
      std::memcpy(out + i * rowBytes, row.data() + begin, rowBytes);
    }
    return absl::OkStatus();
  };
}

} // namespace llamac
