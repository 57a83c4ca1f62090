//===- RowwiseTest.cpp - Row-wise kernels against double precision --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cases.h"
#include "Oracle.h"
#include "Support.h"

#include "runtime/packing/PanelPacking.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace llamac;
using namespace llamac::testing;

namespace {
class Rowwise : public ::testing::TestWithParam<std::string> {
protected:
  KernelUnit unit{GetParam()};
  std::mt19937 random{3};
};

// The distance of `actual` from `exact`, in units in the last place.
double ulps(float actual, double exact) {
  float nearest = static_cast<float>(exact);
  double unit = std::nextafter(std::abs(nearest),
                               std::numeric_limits<float>::infinity()) -
                std::abs(double(nearest));
  return std::abs(actual - exact) / unit;
}
} // namespace

static const long widths[] = {
#define LLAMAC_WIDTH(w) w,
    LLAMAC_ROWWISE_CASES(LLAMAC_WIDTH)
#undef LLAMAC_WIDTH
};

TEST_P(Rowwise, RmsNormMatchesDoublePrecision) {
  for (long width : widths) {
    long rows = 9;
    std::vector<float> x = oracle::randomFloats(rows * width, 5, random);
    std::vector<float> weight = oracle::randomFloats(width, 1, random);
    std::vector<float> out(rows * width, NAN);
    std::fill_n(x.begin(), width, 0.0f);
    unit.run("rmsNorm_" + std::to_string(width), cpu::rowwiseShape(), rows,
             {x.data(), weight.data(), out.data()}, 1);
    for (long r = 0; r < rows; ++r) {
      double squares = 0;
      for (long i = 0; i < width; ++i)
        squares += double(x[r * width + i]) * x[r * width + i];
      double scale = 1 / std::sqrt(squares / width + cpu::cases::eps);
      for (long i = 0; i < width; ++i) {
        double value = x[r * width + i] * scale * weight[i];
        ASSERT_NEAR(out[r * width + i], value, 1e-6 * std::abs(value))
            << "width " << width;
      }
    }
  }
}

TEST_P(Rowwise, GatherCopiesRows) {
  for (long width : widths) {
    std::vector<float> x = oracle::randomFloats(20 * width, 1, random);
    std::vector<int> index = {19, 0, 0, 7, 12};
    std::vector<float> out(5 * width, NAN);
    unit.run("gatherRows_" + std::to_string(width), cpu::rowwiseShape(), 5,
             {x.data(), index.data(), out.data()}, 1);
    for (long r = 0; r < 5; ++r)
      for (long i = 0; i < width; ++i)
        ASSERT_EQ(out[r * width + i], x[index[r] * width + i]);
  }
}

TEST_P(Rowwise, GatherCopiesIndices) {
  // Numbers whose bits are no f32 that survives arithmetic.
  std::vector<int> x = {0x7fa00001, 1, -1, 7};
  std::vector<int> index = {3, 0, 0, 2};
  std::vector<int> out(index.size());
  unit.run("gatherIndices", cpu::rowwiseShape(), 4,
           {x.data(), index.data(), out.data()}, 1);
  EXPECT_EQ(out, (std::vector<int>{7, 0x7fa00001, 0x7fa00001, -1}));
}

// A rank that adds to the rows of others changes no bit of them, nor the sign
// of a zero.
TEST_P(Rowwise, EmbeddingOfOtherRanksChangesNoSum) {
  const std::vector<int> tokens = {3, 4, 8}, rank = {1};
  const AlignedBytes table(packedBytes(DataType::F32, 4, 8));
  std::fill_n(table.as<float>(), 16 * 8, 2.5f);
  std::vector<float> out(3 * 8, NAN);
  unit.run("embedPart", cpu::rowwiseShape(), 3,
           {tokens.data(), table.data(), out.data(), rank.data()});
  for (long i = 0; i < 8; ++i) {
    EXPECT_EQ(out[8 + i], 2.5f);
    for (long row : {0L, 2L}) {
      EXPECT_TRUE(std::signbit(out[8 * row + i] + -0.0f));
      EXPECT_FALSE(std::signbit(out[8 * row + i] + 0.0f));
      EXPECT_EQ(out[8 * row + i] + 1.5f, 1.5f);
    }
  }
}

TEST_P(Rowwise, ExpAndSiluAreNearTheLastPlace) {
  for (long width : widths) {
    long rows = 40;
    std::vector<float> x(rows * width);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = -87.0f + 175.0f * float(i) / float(x.size());
    std::vector<float> e(x.size(), NAN), s(x.size(), NAN);
    unit.run("exp_" + std::to_string(width), cpu::rowwiseShape(), rows,
             {x.data(), e.data()});
    unit.run("silu_" + std::to_string(width), cpu::rowwiseShape(), rows,
             {x.data(), s.data()});
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_LT(ulps(e[i], std::exp(double(x[i]))), 2) << "exp " << x[i];
      ASSERT_LT(ulps(s[i], x[i] / (1 + std::exp(-double(x[i])))), 4)
          << "silu " << x[i];
    }
  }
}

// The bounds are those of #llama.approximation; the polynomial's own error is
// 8.8e-5, and at least a good part of it shows.
TEST_P(Rowwise, ApproximateExpStaysWithinItsErrorAndReachesIt) {
  struct Kind {
    const char *name;
    double bound, reached;
  };
  const auto count = static_cast<size_t>(cpu::cases::expWidth);
  std::vector<float> x(count), e(count);
  for (size_t i = 0; i < count; ++i)
    x[i] = -87.0f * float(i) / float(count);
  for (const Kind &kind :
       {Kind{"Poly3", 9.5e-5, 8.6e-5}, Kind{"Table256", 8e-6, 5e-7}}) {
    unit.run(std::string("expAs_") + kind.name, cpu::rowwiseShape(), 1,
             {x.data(), e.data()});
    double largest = 0;
    for (size_t i = 0; i < count; ++i)
      largest = std::max(largest,
                         std::abs(double(e[i]) / std::exp(double(x[i])) - 1));
    EXPECT_LT(largest, kind.bound) << kind.name;
    EXPECT_GT(largest, kind.reached) << kind.name;

    constexpr float infinity = std::numeric_limits<float>::infinity();
    x[0] = -infinity;
    x[1] = NAN;
    x[2] = -200;
    x[3] = -0.0f;
    unit.run(std::string("expAs_") + kind.name, cpu::rowwiseShape(), 1,
             {x.data(), e.data()});
    EXPECT_LT(e[0], 1e-44) << kind.name;
    EXPECT_TRUE(std::isnan(e[1])) << kind.name;
    EXPECT_LT(e[2], 1e-44) << kind.name;
    EXPECT_NEAR(e[3], 1, kind.bound) << kind.name;
    std::fill_n(x.begin(), 4, 0.0f);
  }
}

TEST_P(Rowwise, ExpAndSiluKeepTheirLimits) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = {infinity, -infinity, NAN, 200, -200, 0, -0.0f, 88.9f};
  std::vector<float> e(8), s(8);
  unit.run("exp_8", cpu::rowwiseShape(), 1, {x.data(), e.data()});
  unit.run("silu_8", cpu::rowwiseShape(), 1, {x.data(), s.data()});
  EXPECT_EQ(e[0], infinity);
  EXPECT_EQ(e[1], 0);
  EXPECT_TRUE(std::isnan(e[2]));
  EXPECT_EQ(e[3], infinity);
  EXPECT_EQ(e[4], 0);
  EXPECT_EQ(e[5], 1);
  EXPECT_EQ(e[6], 1);
  EXPECT_EQ(e[7], infinity);
  EXPECT_EQ(s[0], infinity);
  EXPECT_TRUE(std::isnan(s[1]));
  EXPECT_TRUE(std::isnan(s[2]));
  EXPECT_EQ(s[3], 200);
  EXPECT_EQ(s[4], 0);
}

TEST_P(Rowwise, RopeTableIsExactToFloatUpToLongContexts) {
  for (long headSize : {8L, 64L, 128L}) {
    std::vector<double> frequencies(headSize / 2);
    for (long i = 0; i < headSize / 2; ++i)
      frequencies[i] = std::pow(500000.0, -2.0 * double(i) / double(headSize));
    std::vector<int> positions = {0, 1, 2, 3, 511, 8191, 131071, 1 << 20};
    for (int i = 0; i < 200; ++i)
      positions.push_back(static_cast<int>(random() % (1 << 20)));
    long rows = static_cast<long>(positions.size());
    std::vector<float> out(rows * headSize, NAN);
    unit.run("ropeTable_" + std::to_string(headSize), cpu::ropeTableShape(),
             rows, {positions.data(), frequencies.data(), out.data()}, 1);
    for (long r = 0; r < rows; ++r)
      for (long i = 0; i < headSize / 2; ++i) {
        double angle = positions[r] * frequencies[i];
        ASSERT_NEAR(out[r * headSize + 2 * i], std::cos(angle), 6e-8)
            << "position " << positions[r];
        ASSERT_NEAR(out[r * headSize + 2 * i + 1], std::sin(angle), 6e-8)
            << "position " << positions[r];
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Rowwise, ::testing::ValuesIn(hostLevels()),
                         [](const auto &info) { return info.param; });
