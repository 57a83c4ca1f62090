//===- ProductTest.cpp - Products of rows with rows -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace llamac::reference {
namespace {

std::vector<float> randomFloats(size_t count) {
  std::mt19937 generator(3);
  std::vector<float> data(count);
  for (float &x : data)
    x = std::normal_distribution<float>()(generator);
  return data;
}

TEST(ProductTest, EveryVariantIsRightForSizesThatItsTilesDoNotDivide) {
  const int64_t xStride = 2100, wStride = 2057;
  const std::vector<float> x = randomFloats(7 * xStride);
  const std::vector<float> w = randomFloats(11 * wStride);
  for (const ProductVariant &variant : productVariants())
    for (int64_t size : {1, 15, 16, 64, 130, 1024, 2057})
      for (int64_t rows : {1, 4, 7}) {
        SCOPED_TRACE(variant.name);
        std::vector<float> out(rows * 13, -1.0f);
        variant.compute({x.data(), rows, xStride}, {w.data(), 11, wStride},
                        size, out.data(), 13);
        for (int64_t n = 0; n < rows; ++n) {
          for (int64_t m = 0; m < 11; ++m) {
            double expected = 0;
            for (int64_t k = 0; k < size; ++k)
              expected += double{x[n * xStride + k]} * w[m * wStride + k];
            EXPECT_NEAR(out[n * 13 + m], expected, 2e-6 * std::sqrt(size))
                << size << " terms, row " << n << ", column " << m;
          }
          // Memory between the rows of the result is not touched.
          EXPECT_EQ(out[n * 13 + 11], -1.0f);
          EXPECT_EQ(out[n * 13 + 12], -1.0f);
        }
      }
}

TEST(ProductTest, SmallTermsCountBesideALargeSum) {
  // Every lane starts at 2^24, to which fp32 cannot add 1: a plain fp32 sum
  // would lose all the ones, sums of blocks lose those of the first block.
  const int64_t size = 1 << 16;
  const std::vector<float> ones(size, 1.0f);
  std::vector<float> x = ones;
  std::fill_n(x.begin(), 16, 0x1p24f);
  for (const ProductVariant &variant : productVariants()) {
    SCOPED_TRACE(variant.name);
    float out = 0;
    variant.compute({x.data(), 1, size}, {ones.data(), 1, size}, size, &out, 1);
    EXPECT_NEAR(out, 16 * 0x1p24 + (size - 16), 1100);
  }
}

} // namespace
} // namespace llamac::reference
