//===- LogitsMathTest.cpp - Selections and sums over logits ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/sampling/LogitsMath.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace llamac {
namespace {

/// Tokens of `logits` in order.
static std::vector<TokenLogit> sorted(const std::vector<float> &logits) {
  std::vector<TokenLogit> tokens;
  for (size_t id = 0; id < logits.size(); ++id)
    tokens.push_back({logits[id], static_cast<int32_t>(id)});
  std::sort(tokens.begin(), tokens.end(),
            [](const TokenLogit &a, const TokenLogit &b) {
              return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
            });
  return tokens;
}

/// Logits of a normal distribution, every third rounded so that some are equal.
static std::vector<float> randomLogits(size_t size) {
  std::mt19937 random(static_cast<uint32_t>(size));
  std::normal_distribution<float> normal(0, 4);
  std::vector<float> logits(size);
  for (size_t i = 0; i < size; ++i)
    logits[i] = i % 3 ? normal(random) : std::round(normal(random));
  return logits;
}

TEST(LogitsMathTest, SelectsTheLargestInOrder) {
  for (const size_t size : {1, 63, 64, 65, 3000}) {
    const std::vector<float> logits = randomLogits(size);
    const std::vector<TokenLogit> all = sorted(logits);
    for (const float least : {-1e30f, 1.0f})
      for (const size_t count : {1, 2, 20, 47, 2999, 5000}) {
        std::vector<TokenLogit> result;
        selectLargest(logits, count, least, result);
        size_t expected = 0;
        while (expected < std::min(count, size) && all[expected].logit >= least)
          ++expected;
        ASSERT_EQ(result.size(), expected);
        for (size_t i = 0; i < expected; ++i)
          ASSERT_EQ(result[i].id, all[i].id);
      }
  }
}

TEST(LogitsMathTest, CountsTheTokensBefore) {
  const std::vector<float> logits = randomLogits(500);
  const std::vector<TokenLogit> all = sorted(logits);
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(countMoreLikely(logits, all[i].id), static_cast<int64_t>(i));
}

TEST(LogitsMathTest, SumsExponentials) {
  for (const size_t size : {1, 15, 255, 256, 257, 1000}) {
    std::vector<float> logits = randomLogits(size);
    const float largest = rangeOf(logits).largest;
    long double expected = 0;
    for (const float logit : logits)
      expected += std::exp(static_cast<long double>(logit - largest));
    EXPECT_NEAR(sumOfExps(logits, largest), expected, 1e-13 * expected);
  }
  // Down to where they are nothing.
  for (const float logit : {-1e-7f, -1.0f, -87.0f, -500.0f, -699.0f})
    EXPECT_NEAR(sumOfExps({&logit, 1}, 0), std::exp(double{logit}),
                1e-15 * std::exp(double{logit}));
  EXPECT_EQ(sumOfExps({notAllowed, -1e38f}, 0), 0);
}

TEST(LogitsMathTest, BucketsHoldAllTokensInOrder) {
  std::vector<float> logits = randomLogits(2000);
  logits[5] = notAllowed;
  logits[700] = -1e38f;
  const std::vector<TokenLogit> all = sorted(logits);
  for (const float least : {-3e38f, -3.0f})
    for (const double temperature : {1e-310, 0.5, 1e300}) {
      WeightBuckets buckets;
      buckets.fill(logits, rangeOf(logits), least, temperature);
      std::vector<TokenLogit> list;
      size_t next = 0;
      double total = 0;
      for (size_t i = 0; i < buckets.size(); ++i) {
        buckets.list(i, list);
        double weight = 0;
        for (const TokenLogit &token : list) {
          ASSERT_EQ(token.id, all[next++].id);
          weight += std::exp((token.logit - all[0].logit) / temperature);
        }
        EXPECT_NEAR(buckets.weight(i), weight, 1e-13 * weight);
        total += weight;
      }
      EXPECT_NEAR(buckets.totalWeight(), total, 1e-12 * total);
      // The remaining tokens are below the least, or have no weight.
      if (next < all.size())
        EXPECT_TRUE(all[next].logit < least ||
                    std::exp((all[next].logit - all[0].logit) / temperature) ==
                        0);
    }
}

} // namespace
} // namespace llamac
