//===- WeightPackingTest.cpp - Packing moves bytes, and only moves them ---===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Oracle.h"

#include "runtime/cpu/WeightPacking.h"

#include "gtest/gtest.h"

#include <cstring>

using namespace llamac;

namespace {
class WeightPacking : public ::testing::TestWithParam<int> {
protected:
  DataType type() const { return static_cast<DataType>(GetParam()); }

  // Columns that leave an odd number of blocks.
  int64_t cols() const {
    return isBlockFormat(type()) ? 3 * dataTypeInfo(type()).blockElements : 40;
  }
};
} // namespace

TEST_P(WeightPacking, UnpackingGivesTheStoredRows) {
  std::mt19937 random(1);
  int64_t rows = 35;
  int64_t rowBytes = dataTypeBytes(type(), cols());
  std::vector<uint8_t> stored =
      oracle::randomWeights(type(), rows, cols(), random);
  std::vector<uint8_t> packed(packedBytes(type(), rows, cols()), 0xcc);
  packRows(type(), rows, cols(), 0, 3, stored.data(), packed.data());
  std::vector<uint8_t> row(rowBytes);
  for (int64_t r = 0; r < rows; ++r) {
    unpackRow(type(), cols(), packed.data(), r, row.data());
    EXPECT_EQ(std::memcmp(row.data(), stored.data() + r * rowBytes, rowBytes),
              0)
        << "row " << r;
  }
  for (int64_t r = rows; r < 48; ++r) {
    unpackRow(type(), cols(), packed.data(), r, row.data());
    EXPECT_EQ(row, std::vector<uint8_t>(rowBytes, 0)) << "padding row " << r;
  }
}

TEST_P(WeightPacking, PanelsCanBePackedInAnyRanges) {
  std::mt19937 random(2);
  int64_t rows = 70;
  int64_t rowBytes = dataTypeBytes(type(), cols());
  int64_t panel = panelBytes(panelFormat(type()), cols());
  std::vector<uint8_t> stored =
      oracle::randomWeights(type(), rows, cols(), random);
  std::vector<uint8_t> whole(packedBytes(type(), rows, cols()), 0xcc);
  std::vector<uint8_t> parts(whole.size(), 0x33);
  packRows(type(), rows, cols(), 0, 5, stored.data(), whole.data());
  for (auto [first, count] : {std::pair{3, 2}, {0, 1}, {1, 2}})
    packRows(type(), rows, cols(), first, count,
             stored.data() + first * 16 * rowBytes,
             parts.data() + first * panel);
  EXPECT_EQ(whole, parts);
}

TEST_P(WeightPacking, SizeIsTheFilesPlusPadding) {
  int64_t rows = 48;
  int64_t bytes = packedBytes(type(), rows, cols());
  int64_t stored = static_cast<int64_t>(rows * dataTypeBytes(type(), cols()));
  EXPECT_GE(bytes, stored);
  EXPECT_LT(bytes, stored + 3 * 64);
  EXPECT_EQ(bytes % 64, 0);
}

INSTANTIATE_TEST_SUITE_P(Formats, WeightPacking,
                         ::testing::Range(0, numDataTypes),
                         [](const auto &info) {
                           return std::string(
                               dataTypeName(static_cast<DataType>(info.param)));
                         });

TEST(WeightPackingShapes, ColumnsMustFillBlocks) {
  EXPECT_TRUE(isPackable(DataType::F32, 8));
  EXPECT_FALSE(isPackable(DataType::F32, 12));
  EXPECT_FALSE(isPackable(DataType::BF16, 0));
  EXPECT_TRUE(isPackable(DataType::Q4_1, 96));
  EXPECT_FALSE(isPackable(DataType::Q4_1, 40));
  EXPECT_FALSE(isPackable(DataType::Q6_K, 128));
}
