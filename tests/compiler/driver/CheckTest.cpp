//===- CheckTest.cpp - Comparing values -----------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Check.h"

#include <gtest/gtest.h>

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

} // namespace
} // namespace llamac
