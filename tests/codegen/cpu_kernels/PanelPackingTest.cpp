//===- PanelPackingTest.cpp - Packing moves bytes, and only moves them ----===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Oracle.h"

#include "runtime/packing/PanelPacking.h"

#include "gtest/gtest.h"

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

// Bit i of the stored rows is set where bit k of i is: packed for every k, the
// bits at one place spell the number of the stored bit that came there.
TEST_P(WeightPacking, EveryStoredBitHasAPlaceOfItsOwn) {
  const int64_t rows = 35;
  const size_t bytes = rows * dataTypeBytes(type(), cols());
  const auto bitAt = [](const std::vector<uint8_t> &from, size_t i) {
    return size_t{from[i / 8]} >> i % 8 & 1;
  };
  // A NaN changes the scale of its block in MXFP8 and FP8; without one of these
  // bits no element is NaN.
  std::vector<uint8_t> masks = {0xff};
  if (type() == DataType::MXFP8 || type() == DataType::FP8)
    masks = {0xbf, 0xfe};
  for (const uint8_t mask : masks) {
    const auto pack = [&](auto isSet) {
      std::vector<uint8_t> stored(bytes);
      for (size_t i = 0; i < 8 * bytes; ++i)
        stored[i / 8] |= (isSet(i) << i % 8) & mask;
      std::vector<uint8_t> packed(packedBytes(type(), rows, cols()), 0xcc);
      packRows(type(), rows, cols(), 0, 3, stored.data(), packed.data());
      return packed;
    };
    const std::vector<uint8_t> used = pack([](size_t) { return 1; });
    std::vector<size_t> numbers(8 * used.size());
    for (size_t k = 0; 8 * bytes >> k != 0; ++k) {
      const std::vector<uint8_t> packed =
          pack([k](size_t i) { return i >> k & 1; });
      for (size_t place = 0; place < numbers.size(); ++place)
        numbers[place] |= bitAt(packed, place) << k;
    }
    std::vector<int> places(8 * bytes);
    for (size_t place = 0; place < numbers.size(); ++place)
      if (bitAt(used, place))
        ++places[numbers[place]];
    for (size_t i = 0; i < places.size(); ++i)
      ASSERT_EQ(places[i], mask >> i % 8 & 1) << "stored bit " << i;
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
                         ::testing::Range<int>(0, dataTypes().size()),
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
