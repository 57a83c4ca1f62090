//===- CheckTest.cpp - Comparing values -----------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/check/Check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace llamac {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

TEST(CompareValues, GivesErrorMaximumAndPlace) {
  const Difference difference =
      compareValues(std::vector<float>{3, 4.5, 0}, std::vector<float>{3, 4, 0});
  EXPECT_DOUBLE_EQ(difference.nmse, 0.25 / 25);
  EXPECT_DOUBLE_EQ(difference.maximum, 0.5 / 4);
  EXPECT_EQ(difference.worst, 1U);
}

TEST(CompareValues, EqualValuesDoNotDiffer) {
  const std::vector<float> values = {0, -inf, 7};
  EXPECT_EQ(compareValues(values, values).nmse, 0);
  const std::vector<float> zeros = {0, 0};
  EXPECT_EQ(compareValues(zeros, zeros).nmse, 0);
}

TEST(CompareValues, NothingIsCloseToNoNumberOrToOtherSizes) {
  const std::vector<float> expected = {1, 2};
  for (const std::vector<float> &got :
       std::vector<std::vector<float>>{{1, NAN}, {1, inf}, {1}, {}, {1, 2, 3}})
    EXPECT_TRUE(std::isinf(compareValues(got, expected).nmse));
  const Difference place = compareValues(std::vector<float>{1, NAN}, expected);
  EXPECT_EQ(place.worst, 1U);
}

TEST(CompareTiles, AWrongTileAmongManyIsSeen) {
  constexpr size_t width = 64, rows = 100, first = width * 50 + 16;
  const std::vector<float> expected(width * rows, 2);
  std::vector<float> got = expected;
  std::fill_n(&got[first], 16, 0.0F);
  const TiledDifference difference = compareTiles(got, expected, width);
  EXPECT_NEAR(difference.nmse, 1.0 / 400, 1e-8);
  EXPECT_NEAR(difference.tile, 1, 1e-6);
  EXPECT_EQ(difference.worst, first);
}

TEST(CompareTiles, TilesEndWithTheirRow) {
  // Rows of 20: tiles of 16 and 4.
  const std::vector<float> expected(40, 1);
  std::vector<float> got = expected;
  std::fill_n(got.begin() + 16, 4, 3.0F);
  EXPECT_NEAR(compareTiles(got, expected, 20).tile, 4, 1e-5);
}

TEST(CompareTiles, ASmallTileCountsByAllValues) {
  std::vector<float> expected(32, 1);
  std::fill_n(expected.begin(), 16, 1e-6F);
  std::vector<float> got = expected;
  got[3] = 0;
  EXPECT_LT(compareTiles(got, expected, 32).tile, 1e-12);
}

TEST(CompareTiles, WhatALaunchAddsToDoesNotHideItsError) {
  const std::vector<float> residual(16, 1000), expected(16, 1001);
  const std::vector<float> got(16, 1000);
  EXPECT_LT(compareTiles(got, expected, 16).nmse, 1e-5);
  EXPECT_NEAR(compareTiles(got, expected, 16, residual).nmse, 1, 1e-3);
}

TEST(CompareTiles, TheLastBitIsNoDifference) {
  const std::vector<float> expected = {1, -3, 1e6F};
  std::vector<float> got = expected;
  for (float &value : got)
    value = std::nextafter(value, inf);
  EXPECT_EQ(compareTiles(got, expected, 3).nmse, 0);
  EXPECT_GT(
      compareTiles(std::vector<float>{1.00001F, -3, 1e6F}, expected, 3).nmse,
      0);
}

TEST(CompareTiles, OnlyWhatExceedsABoundIsADifference) {
  const std::vector<float> expected(16, 1), bounds(16, 0.25F);
  std::vector<float> got(16, 1.25F);
  EXPECT_EQ(compareTiles(got, expected, 16, {}, bounds).nmse, 0);
  got[3] = 0.25F;
  const TiledDifference difference =
      compareTiles(got, expected, 16, {}, bounds);
  EXPECT_NEAR(difference.nmse, 0.5 * 0.5 / 16, 1e-7);
  EXPECT_EQ(difference.worst, 3U);
  got[3] = NAN;
  EXPECT_TRUE(std::isinf(compareTiles(got, expected, 16, {}, bounds).nmse));
}

TEST(CompareTiles, NothingIsCloseToNoNumberOrToOtherSizes) {
  const std::vector<float> expected = {1, 2};
  for (const std::vector<float> &got :
       std::vector<std::vector<float>>{{1, NAN}, {1, inf}, {1}, {}})
    EXPECT_TRUE(std::isinf(compareTiles(got, expected, 2).tile));
}

TEST(CheckedKernel, PassesWithinItsTolerance) {
  CheckedKernel kernel;
  EXPECT_TRUE(kernel.passed()) << "no error passes without any tolerance";
  kernel.difference.nmse = 1e-3;
  EXPECT_FALSE(kernel.passed());
  kernel.tolerance = 1e-3;
  EXPECT_TRUE(kernel.passed());
  kernel.difference.tile = 1;
  EXPECT_FALSE(kernel.passed());
}

} // namespace
} // namespace llamac
