//===- WeightPackingTest.cpp - Weights as the cuda kernels read them ------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The oracle is the dequantisation of the stored rows: every element of a
// packed weight, read as WeightLayout.h describes it, has the same value.
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/WeightPacking.h"

#include "runtime/io/Dequantize.h"
#include "runtime/io/FloatBits.h"
#include "runtime/io/Mxfp8.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace llamac::cuda {
namespace {

uint16_t half(const uint8_t *at) {
  uint16_t bits;
  std::memcpy(&bits, at, 2);
  return bits;
}

/// Element k of row `row` as the layout has it.
float element(WeightFormat format, const std::vector<uint8_t> &packed,
              int64_t outputs, int64_t depth, int64_t row, int64_t k) {
  const int span = chunkElements(format);
  const uint8_t *chunk =
      packed.data() + row * (depth / span * 16) + k / span * 16;
  const uint8_t *scale = packed.data() + scalesOffset(format, outputs, depth) +
                         (row * (depth / 32) + k / 32) * scaleBytes(format);
  const int64_t i = k % span;
  switch (format) {
  case WeightFormat::F16:
    return f16ToF32(half(chunk + 2 * i));
  case WeightFormat::BF16:
    return bf16ToF32(half(chunk + 2 * i));
  case WeightFormat::Q8_0:
    return f16ToF32(half(scale)) * static_cast<float>(chunk[i] - 128);
  case WeightFormat::MXFP8:
    return e8m0ToF32(*scale) * e4m3ToF32(chunk[i]);
  case WeightFormat::Q4_0:
  case WeightFormat::Q4_1:
    break;
  }
  uint32_t word;
  std::memcpy(&word, chunk + i / 8 * 4, 4);
  const int q = static_cast<int>(word >> (4 * (i % 8)) & 0xf);
  return format == WeightFormat::Q4_0
             ? f16ToF32(half(scale)) * static_cast<float>(q - 8)
             : f16ToF32(half(scale)) * static_cast<float>(q) +
                   f16ToF32(half(scale + 2));
}

class WeightPackingTest : public testing::TestWithParam<DataType> {};

/// Random bytes; block scales are made finite.
std::vector<uint8_t> storedRows(DataType type, int64_t rows, int64_t depth) {
  std::mt19937 random(7);
  std::vector<uint8_t> bytes(rows * dataTypeBytes(type, depth));
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>(random());
  // The exponents of floats, and of every block's scales wherever they are.
  for (size_t i = 0; i + 1 < bytes.size(); i += 2)
    bytes[i + 1] &= 0xbb;
  // Elements of this format would make their blocks NaN.
  if (type == DataType::MXFP8)
    for (uint8_t &byte : bytes)
      byte &= 0xbb;
  return bytes;
}

TEST_P(WeightPackingTest, EveryElementKeepsItsValue) {
  const DataType type = GetParam();
  const int64_t outputs = 5, depth = 512;
  const WeightFormat format = weightFormat(type);
  const std::vector<uint8_t> stored = storedRows(type, outputs, depth);
  const int64_t rowBytes = static_cast<int64_t>(stored.size()) / outputs;
  std::vector<uint8_t> packed(packedWeightBytes(format, outputs, depth));
  // In two ranges, the later first.
  auto pack = [&](int64_t first, int64_t count) {
    packWeightRows(type, depth, count, stored.data() + first * rowBytes,
                   packed.data() + first * valueRowBytes(format, depth),
                   packed.data() + scalesOffset(format, outputs, depth) +
                       first * scaleRowBytes(format, depth));
  };
  pack(3, 2);
  pack(0, 3);
  for (int64_t row = 0; row < outputs; ++row) {
    std::vector<float> expected(depth);
    dequantizeRow(type, stored.data() + row * rowBytes, depth, expected.data());
    for (int64_t k = 0; k < depth; ++k) {
      const float want = format == WeightFormat::BF16
                             ? bf16ToF32(f32ToBf16(expected[k]))
                             : expected[k];
      ASSERT_EQ(element(format, packed, outputs, depth, row, k), want)
          << "row " << row << " k " << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, WeightPackingTest,
    testing::Values(DataType::F32, DataType::F16, DataType::BF16,
                    DataType::Q8_0, DataType::Q4_0, DataType::Q4_1,
                    DataType::Q5_0, DataType::Q5_1, DataType::Q4_K,
                    DataType::Q5_K, DataType::Q6_K, DataType::MXFP8,
                    DataType::Q2_K, DataType::Q3_K, DataType::IQ4_NL,
                    DataType::IQ4_XS, DataType::MXFP4),
    [](const auto &info) {
      return std::string(dataTypeName(info.param).data(),
                         dataTypeName(info.param).size());
    });

TEST(WeightPackingTest, ANanElementMakesTheScaleOfItsBlockNan) {
  std::vector<uint8_t> stored(2 * 33, 0x38), values(64), scales(2);
  stored[33 + 32] = 0xff; // The last element of the second block.
  packWeightRows(DataType::MXFP8, 64, 1, stored.data(), values.data(),
                 scales.data());
  EXPECT_EQ(scales[0], 0x38);
  EXPECT_EQ(scales[1], e8m0Nan);
}

TEST(WeightLayoutTest, PlanesAreAlignedAndAsSmallAsTheFormat) {
  // 2048 x 2048: 16 bytes of values and one scale for every 32 of Q4_0.
  EXPECT_EQ(packedWeightBytes(WeightFormat::Q4_0, 2048, 2048),
            2048 * 2048 / 32 * 18);
  EXPECT_EQ(packedWeightBytes(WeightFormat::Q4_1, 2048, 2048),
            2048 * 2048 / 32 * 20);
  EXPECT_EQ(packedWeightBytes(WeightFormat::Q8_0, 2048, 2048),
            2048 * 2048 / 32 * 34);
  EXPECT_EQ(packedWeightBytes(WeightFormat::MXFP8, 2048, 2048),
            2048 * 2048 / 32 * 33);
  EXPECT_EQ(packedWeightBytes(WeightFormat::BF16, 2048, 2048), 2048 * 2048 * 2);
  EXPECT_EQ(scalesOffset(WeightFormat::Q4_0, 3, 32) % 256, 0);
}

TEST(WeightLayoutTest, DepthsThatCannotBePackedAreKnown) {
  EXPECT_TRUE(isPackable(DataType::BF16, 72));
  EXPECT_FALSE(isPackable(DataType::BF16, 70));
  EXPECT_TRUE(isPackable(DataType::Q8_0, 96));
  EXPECT_FALSE(isPackable(DataType::Q8_0, 72));
  EXPECT_TRUE(isPackable(DataType::Q6_K, 256));
  EXPECT_FALSE(isPackable(DataType::Q6_K, 128));
  EXPECT_FALSE(isPackable(DataType::F32, 0));
}

} // namespace
} // namespace llamac::cuda
