//===- TilePackingTest.cpp - Weights as the cuda kernels read them --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every element of a packed weight, read here as the words of TileLayout.h
// describe it, has the value that the stored row has by its dequantiser; and
// all that is no element is zero.
//
//===----------------------------------------------------------------------===//

#include "runtime/packing/TilePacking.h"

#include "runtime/base/CodeBooks.h"
#include "runtime/formats/Dequantize.h"
#include "runtime/formats/FloatBits.h"
#include "runtime/formats/Fp8.h"
#include "tests/codegen/cpu_kernels/Oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace llamac::cuda {
namespace {

float half(const uint8_t *at) {
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return f16ToF32(bits);
}

/// The header's description of a format that lies in tiles.
struct Tiled {
  DataType type;
  int lowBits;
  int highBits;
  int scaleBytes; ///< Bytes of the scales of 32 columns.
  int groupBytes; ///< Bytes of d, or d and dmin, of a row of 256 columns; or 0.
  double bits;    ///< Bits of a weight, where nothing is filled up.
  int highs[4];   ///< Where pair i of eight 0 has its first high bit.
  int nextHighs;  ///< How far behind eight 1 has it.
};

constexpr Tiled tiled[] = {
    {DataType::Q8_0, 8, 0, 2, 0, 8.5, {}, 0},
    {DataType::Q4_0, 4, 0, 2, 0, 4.5, {}, 0},
    {DataType::Q4_1, 4, 0, 4, 0, 5, {}, 0},
    {DataType::Q5_0, 4, 1, 2, 0, 5.5, {0, 4, 1, 5}, 2},
    {DataType::Q5_1, 4, 1, 4, 0, 6, {0, 4, 1, 5}, 2},
    {DataType::Q2_K, 2, 0, 2, 4, 2.625, {}, 0},
    {DataType::Q3_K, 2, 1, 2, 2, 3.5625, {0, 2, 4, 6}, 1},
    {DataType::Q4_K, 4, 0, 2, 4, 4.625, {}, 0},
    {DataType::Q5_K, 4, 1, 2, 4, 5.625, {0, 4, 1, 5}, 2},
    {DataType::Q6_K, 4, 2, 2, 2, 6.5625, {0, 4, 2, 6}, 8},
    {DataType::MXFP8, 8, 0, 1, 0, 8.25, {}, 0},
    {DataType::IQ4_NL, 4, 0, 2, 0, 4.5, {}, 0},
    {DataType::IQ4_XS, 4, 0, 1, 2, 4.3125, {}, 0},
    {DataType::MXFP4, 4, 0, 1, 0, 4.25, {}, 0},
    {DataType::FP8, 8, 0, 2, 0, 8.5, {}, 0},
};

/// A matrix of tiles, by columns and rows.
class Tiles {
public:
  Tiles(const Tiled &format, int64_t depth, const std::vector<uint8_t> &bytes)
      : format(format), groupTiles(format.groupBytes == 0 ? 1 : 4),
        groups((depth + groupTiles * 64 - 1) / (groupTiles * 64)),
        bytes(bytes) {}

  int64_t columns() const { return groups * groupTiles * 64; }
  int64_t unitBytes() const { return groups * bytesOfGroup(); }

  /// The bits of an element.
  int element(int64_t row, int64_t k) const {
    const auto column = static_cast<int>(k % 64);
    const int share = column % 16 / 4, eight = column / 32;
    const int i = column % 32 / 16 * 4 + column % 4; // Number in the eight.
    const int64_t index = row % 16 * 4 + share;
    const uint8_t *low = tile(row, k) + index * 2 * format.lowBits;
    const bool isInTable =
        format.type == DataType::IQ4_NL || format.type == DataType::IQ4_XS;
    if (format.lowBits == 8)
      return low[8 * eight + i];
    if (isInTable)
      return bitsAt(low, 32 * eight + 4 * i, 4);
    const int apart = i % 2 * 16;
    int value = format.lowBits == 4
                    ? bitsAt(low, 32 * eight + i / 2 * 4 + apart, 4)
                    : bitsAt(low, 8 * eight + i / 2 * 2 + apart, 2);
    if (format.highBits != 0) {
      const uint8_t *high = tile(row, k) + 16 * 4 * 2 * format.lowBits +
                            index * 2 * format.highBits;
      const int place = format.highs[i / 2] + eight * format.nextHighs +
                        i % 2 * (format.highBits == 1 ? 8 : 16);
      value |= bitsAt(high, place, format.highBits) << format.lowBits;
    }
    return value;
  }

  const uint8_t *scales(int64_t row, int64_t k) const {
    return tile(row, k) + 16 * 4 * 2 * (format.lowBits + format.highBits) +
           (row % 16 * 2 + k % 64 / 32) * format.scaleBytes;
  }
  const uint8_t *groupScales(int64_t row, int64_t k) const {
    return group(row, k) + groupTiles * bytesOfTile() +
           row % 16 * format.groupBytes;
  }

private:
  static int bitsAt(const uint8_t *at, int place, int count) {
    int value = 0;
    for (int i = 0; i < count; ++i)
      value |= (at[(place + i) / 8] >> (place + i) % 8 & 1) << i;
    return value;
  }

  int64_t bytesOfTile() const {
    return 16 * 64 * (format.lowBits + format.highBits) / 8 +
           16 * 2 * format.scaleBytes;
  }
  int64_t bytesOfGroup() const {
    return groupTiles * bytesOfTile() + 16 * format.groupBytes;
  }
  const uint8_t *group(int64_t row, int64_t k) const {
    return bytes.data() + row / 16 * unitBytes() +
           k / (groupTiles * 64) * bytesOfGroup();
  }
  const uint8_t *tile(int64_t row, int64_t k) const {
    return group(row, k) + k / 64 % groupTiles * bytesOfTile();
  }

  const Tiled &format;
  const int64_t groupTiles;
  const int64_t groups;
  const std::vector<uint8_t> &bytes;
};

float e2m1(int bits) {
  const int exponent = bits >> 1 & 3;
  const auto fraction = static_cast<float>(bits & 1);
  const float value = exponent == 0
                          ? 0.5F * fraction
                          : std::ldexp(1 + 0.5F * fraction, exponent - 1);
  return bits & 8 ? -value : value;
}

/// The weight in row `row` and column `k`.
float weightIn(const Tiles &tiles, DataType type, int64_t row, int64_t k) {
  const int bits = tiles.element(row, k);
  const auto q = static_cast<float>(bits);
  const uint8_t *own = tiles.scales(row, k);
  const uint8_t *group = tiles.groupScales(row, k);
  const int64_t sixteen = k % 32 / 16;
  const auto sign = [](uint8_t byte) { return static_cast<float>(byte - 128); };
  switch (type) {
  case DataType::Q8_0:
    return half(own) * (q - 128);
  case DataType::Q4_0:
    return half(own) * (q - 8);
  case DataType::Q5_0:
    return half(own) * (q - 16);
  case DataType::Q4_1:
  case DataType::Q5_1:
    return half(own) * q + half(own + 2);
  case DataType::MXFP8:
    return e8m0ToF32(*own) * e4m3ToF32(static_cast<uint8_t>(bits));
  case DataType::FP8:
    return half(own) * 0x1p-8F * e4m3ToF32(static_cast<uint8_t>(bits));
  case DataType::MXFP4:
    return e8m0ToF32(*own) * e2m1(bits);
  case DataType::IQ4_NL:
    return half(own) * static_cast<float>(iq4Values[bits]);
  case DataType::IQ4_XS:
    return half(group) * sign(*own) * static_cast<float>(iq4Values[bits]);
  case DataType::Q4_K:
  case DataType::Q5_K:
    return half(group) * static_cast<float>(own[0]) * q -
           half(group + 2) * static_cast<float>(own[1]);
  case DataType::Q2_K:
    return half(group) * static_cast<float>(own[sixteen] & 15) * q -
           half(group + 2) * static_cast<float>(own[sixteen] >> 4);
  case DataType::Q3_K:
    return half(group) * sign(own[sixteen]) * (q - 4);
  case DataType::Q6_K:
    return half(group) * sign(own[sixteen]) * (q - 32);
  default:
    return NAN;
  }
}

std::vector<float> valuesOf(DataType type, const std::vector<uint8_t> &stored,
                            int64_t rows, int64_t depth) {
  std::vector<float> values(rows * depth);
  for (int64_t row = 0; row < rows; ++row)
    dequantizeRow(type, stored.data() + row * dataTypeBytes(type, depth), depth,
                  values.data() + row * depth);
  return values;
}

std::vector<uint8_t> storedRows(DataType type, int64_t rows, int64_t depth) {
  std::mt19937 random(7);
  return oracle::randomWeights(type, rows, depth, random);
}

/// The output of packWeight() in memory that held something else.
std::vector<uint8_t> packedRows(DataType type, int64_t rows, int64_t depth,
                                const std::vector<uint8_t> &stored) {
  std::vector<uint8_t> packed(
      packedWeightBytes(weightFormat(type), rows, depth), 0xcc);
  packWeight(type, depth, rows, stored.data(), packed.data());
  return packed;
}

std::string nameOf(DataType type) {
  return std::string(dataTypeName(type).data(), dataTypeName(type).size());
}

class TiledWeightTest : public testing::TestWithParam<Tiled> {
protected:
  /// Rows that do not fill their tiles; columns that do not where they may.
  static constexpr int64_t rows = 21;
  const DataType type = GetParam().type;
  const int64_t depth = GetParam().groupBytes == 0 ? 224 : 768;
};

TEST_P(TiledWeightTest, EveryElementKeepsItsValue) {
  const std::vector<uint8_t> stored = storedRows(type, rows, depth);
  const std::vector<uint8_t> packed = packedRows(type, rows, depth, stored);
  const Tiles tiles(GetParam(), depth, packed);
  ASSERT_EQ(static_cast<int64_t>(packed.size()), 2 * tiles.unitBytes());
  const std::vector<float> values = valuesOf(type, stored, rows, depth);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < depth; ++k)
      ASSERT_EQ(weightIn(tiles, type, row, k), values[row * depth + k])
          << "row " << row << " k " << k;
}

TEST_P(TiledWeightTest, WhatHasNoElementsIsZero) {
  const std::vector<uint8_t> packed =
      packedRows(type, rows, depth, storedRows(type, rows, depth));
  const Tiles tiles(GetParam(), depth, packed);
  const auto areZero = [](const uint8_t *at, int count) {
    return std::all_of(at, at + count, [](uint8_t byte) { return byte == 0; });
  };
  for (int64_t row = 0; row < 32; ++row)
    for (int64_t k = row < rows ? depth : 0; k < tiles.columns(); ++k) {
      ASSERT_EQ(tiles.element(row, k), 0) << "row " << row << " k " << k;
      ASSERT_TRUE(areZero(tiles.scales(row, k), GetParam().scaleBytes));
      ASSERT_TRUE(areZero(tiles.groupScales(row, k), GetParam().groupBytes));
    }
}

TEST_P(TiledWeightTest, RangesOfUnitsMakeTheWhole) {
  const std::vector<uint8_t> stored = storedRows(type, rows, depth);
  const std::vector<uint8_t> whole = packedRows(type, rows, depth, stored);
  std::vector<uint8_t> packed(whole.size(), 0xcc);
  packWeight(type, depth, rows - 16,
             stored.data() + 16 * dataTypeBytes(type, depth),
             packed.data() + whole.size() / 2);
  packWeight(type, depth, 16, stored.data(), packed.data());
  EXPECT_EQ(packed, whole);
}

TEST_P(TiledWeightTest, TakesNoMoreBitsThanTheFormatHas) {
  EXPECT_EQ(packedWeightBytes(weightFormat(type), 2048, 2048) * 8,
            GetParam().bits * 2048 * 2048);
}

INSTANTIATE_TEST_SUITE_P(Types, TiledWeightTest, testing::ValuesIn(tiled),
                         [](const auto &info) {
                           return nameOf(info.param.type);
                         });

class FloatWeightTest : public testing::TestWithParam<DataType> {};

TEST_P(FloatWeightTest, RowsKeepTheirValuesButThoseOfF32AreRounded) {
  constexpr int64_t rows = 5, depth = 72;
  const DataType type = GetParam();
  const std::vector<uint8_t> stored = storedRows(type, rows, depth);
  const std::vector<uint8_t> packed = packedRows(type, rows, depth, stored);
  ASSERT_EQ(packed.size(), rows * depth * 2);
  const std::vector<float> values = valuesOf(type, stored, rows, depth);
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, &packed[2 * i], sizeof bits);
    ASSERT_EQ(bits, type == DataType::F16 ? f32ToF16(values[i])
                                          : f32ToBf16(values[i]))
        << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, FloatWeightTest,
                         testing::Values(DataType::F32, DataType::F16,
                                         DataType::BF16),
                         [](const auto &info) { return nameOf(info.param); });

TEST(WeightPackingTest, EveryTypeIsTested) {
  EXPECT_EQ(std::size(tiled) + 3, dataTypes().size());
}

TEST(WeightPackingTest, OnlyF32IsRounded) {
  for (const DataTypeInfo &info : dataTypes())
    EXPECT_EQ(isRounded(info.type), info.type == DataType::F32) << info.name;
}

TEST(WeightPackingTest, ANanElementMakesTheScaleOfItsBlockNan) {
  std::vector<uint8_t> stored(2 * 33, 0x38);
  stored[33 + 32] = 0xff; // The last element of the second block.
  const std::vector<uint8_t> packed =
      packedRows(DataType::MXFP8, 1, 64, stored);
  // Scales are behind 16 rows of 64 bytes.
  EXPECT_EQ(packed[1024], 0x38);
  EXPECT_EQ(packed[1025], e8m0Nan);
  stored.insert(stored.begin(), 0x38);
  stored.insert(stored.begin() + 34, 0x38);
  const std::vector<uint8_t> halves = packedRows(DataType::FP8, 1, 64, stored);
  EXPECT_EQ(half(&halves[1024]), f16ToF32(0x3838));
  EXPECT_TRUE(std::isnan(half(&halves[1026])));
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
