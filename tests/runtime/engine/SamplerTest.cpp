//===- SamplerTest.cpp - Chooses the next token ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Sampler.h"

#include "runtime/base/Status.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace llamac {
namespace {

static Sampler make(SamplingOptions options) {
  auto sampler = Sampler::create(options);
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  return *std::move(sampler);
}

/// How often each id came in `draws` draws, as a share.
static std::map<int32_t, double>
shares(Sampler &sampler, const std::vector<float> &logits, int draws) {
  std::map<int32_t, double> counts;
  for (int i = 0; i < draws; ++i)
    counts[sampler.sample(logits)] += 1.0 / draws;
  return counts;
}

TEST(MostLikelyTest, FindsTheFirstOfTheLargestAtAnyPlace) {
  for (size_t size : {1, 2, 15, 16, 17, 31, 32, 33, 100}) {
    for (size_t place = 0; place < size; ++place) {
      std::vector<float> logits(size, -3.5f);
      logits[place] = 2;
      EXPECT_EQ(argmax(logits), static_cast<int32_t>(place));
      logits.back() = 2;
      EXPECT_EQ(argmax(logits), static_cast<int32_t>(place));
    }
  }
}

TEST(SamplerTest, GreedyIgnoresTheSeed) {
  for (uint64_t seed : {0, 1, 2}) {
    Sampler sampler = make({.seed = seed});
    EXPECT_EQ(sampler.sample({1, 5, 3}), 1);
  }
}

TEST(SamplerTest, DrawsFollowTheProbabilities) {
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
  Sampler sampler = make({.temperature = 1, .seed = 3});
  const auto counts = shares(sampler, logits, 40000);
  EXPECT_NEAR(counts.at(0), 1.0 / 8, 0.01);
  EXPECT_NEAR(counts.at(1), 2.0 / 8, 0.01);
  EXPECT_NEAR(counts.at(2), 5.0 / 8, 0.01);
}

TEST(SamplerTest, TemperatureDividesLogits) {
  const std::vector<float> logits = {0, std::log(4.0f)};
  Sampler sampler = make({.temperature = 2, .seed = 3});
  EXPECT_NEAR(shares(sampler, logits, 40000).at(1), 2.0 / 3, 0.01);
}

TEST(SamplerTest, TopKKeepsTheLargestLogits) {
  const std::vector<float> logits = {1, 4, 2, 4, 3};
  Sampler two = make({.temperature = 5, .topK = 2, .seed = 9});
  const auto counts = shares(two, logits, 4000);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts.at(1), 0.5, 0.05);
  EXPECT_NEAR(counts.at(3), 0.5, 0.05);
  Sampler one = make({.temperature = 5, .topK = 1, .seed = 9});
  EXPECT_EQ(shares(one, logits, 1000).count(1), 1u);
  EXPECT_EQ(shares(one, logits, 1000).size(), 1u);
  Sampler more = make({.temperature = 5, .topK = 99, .seed = 9});
  EXPECT_EQ(shares(more, logits, 4000).size(), 5u);
}

TEST(SamplerTest, TopPKeepsTheFewestThatReachIt) {
  // Probabilities 0.5, 0.3, 0.2.
  const std::vector<float> logits = {std::log(0.2f), std::log(0.5f),
                                     std::log(0.3f)};
  Sampler half = make({.temperature = 1, .topP = 0.49, .seed = 1});
  EXPECT_NEAR(shares(half, logits, 1000).at(1), 1, 1e-9);
  Sampler most = make({.temperature = 1, .topP = 0.75, .seed = 1});
  const auto counts = shares(most, logits, 40000);
  ASSERT_EQ(counts.size(), 2u);
  EXPECT_NEAR(counts.at(1), 0.625, 0.01);
  Sampler all = make({.temperature = 1, .topP = 1, .seed = 1});
  EXPECT_EQ(shares(all, logits, 4000).size(), 3u);
}

TEST(SamplerTest, TheSeedDecidesEveryDraw) {
  std::vector<float> logits;
  for (int i = 0; i < 500; ++i)
    logits.push_back(std::sin(static_cast<float>(i)));
  auto draws = [&](uint64_t seed) {
    Sampler sampler = make({.temperature = 1, .topP = 0.9, .seed = seed});
    std::vector<int32_t> ids;
    for (int i = 0; i < 50; ++i)
      ids.push_back(sampler.sample(logits));
    return ids;
  };
  EXPECT_EQ(draws(7), draws(7));
  EXPECT_NE(draws(7), draws(8));
}

TEST(SamplerTest, ASeedIsMadeAndReportedAndRepeatsTheDraws) {
  const std::vector<float> logits(100, 0.0f);
  Sampler made = make({.temperature = 1});
  Sampler again = make({.temperature = 1, .seed = made.seed()});
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(made.sample(logits), again.sample(logits));
}

TEST(SamplerTest, VeryColdAndVeryHotAreNoNumbersNowhere) {
  const std::vector<float> logits = {-1e30f, 3, 2, 1e30f, -1e30f};
  Sampler cold = make({.temperature = 1e-300, .seed = 1});
  EXPECT_EQ(cold.sample(logits), 3);
  Sampler hot = make({.temperature = 1e300, .seed = 1});
  EXPECT_EQ(shares(hot, logits, 2000).size(), 5u);
}

TEST(SamplerTest, ADrawForThePlanIsTheOneThatTheSamplerMakes) {
  const SamplingOptions options{
      .temperature = 0.7, .topK = 9, .topP = 0.8, .seed = 11};
  auto host = Sampler::create(options), plan = Sampler::create(options);
  ASSERT_TRUE(host.ok() && plan.ok());
  std::vector<float> logits(50);
  for (size_t id = 0; id < logits.size(); ++id)
    logits[id] = static_cast<float>(id * 7 % 50) / 10;
  for (int i = 0; i < 100; ++i) {
    const SamplingParams draw = plan->nextParams();
    EXPECT_EQ(draw.temperature, 0.7f);
    EXPECT_EQ(draw.topK, 9);
    EXPECT_EQ(draw.topP, 0.8f);
    EXPECT_EQ(plan->choose(logits, draw.uniform * 0x1p-32),
              host->sample(logits));
  }
}

TEST(SamplerTest, ADrawForThePlanHoldsWhatFloatsHold) {
  auto draw = [](const SamplingOptions &options) {
    return Sampler::create(options)->nextParams();
  };
  EXPECT_EQ(draw({}).temperature, 0);
  // Neither turns into one that means something else.
  EXPECT_GT(draw({.temperature = 1e-300, .seed = 1}).temperature, 0);
  EXPECT_TRUE(std::isfinite(draw({.temperature = 1e300}).temperature));
  EXPECT_GT(draw({.temperature = 1, .topP = 1e-300}).topP, 0);
  EXPECT_EQ(draw({.temperature = 1, .topK = int64_t{1} << 40}).topK,
            std::numeric_limits<int32_t>::max());
}

TEST(SamplerTest, RefusesWhatIsNoParameter) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const SamplingOptions bad[] = {
      {.temperature = -0.1}, {.temperature = nan}, {.temperature = infinity},
      {.topK = -1},          {.topP = 0},          {.topP = -1},
      {.topP = 1.01},        {.topP = nan},
  };
  for (const SamplingOptions &options : bad)
    EXPECT_EQ(exitCode(Sampler::create(options).status()), ExitCode::Usage);
}

// From the authors' programs (xoshiro256** seeded by splitmix64), state of
// splitmix64(0): e220a8397b1dcdaf 6e789e6aa1b965f4 06c45d188009454f
// f88bb8a8724c81ec.
TEST(RandomStreamTest, IsXoshiro) {
  RandomStream random(0);
  const uint64_t s1 = 0x6e789e6aa1b965f4;
  const uint64_t product = s1 * 5;
  EXPECT_EQ(random.next(), ((product << 7) | (product >> 57)) * 9);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double unit = random.nextUniform();
    ASSERT_GE(unit, 0);
    ASSERT_LT(unit, 1);
    sum += unit;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

} // namespace
} // namespace llamac
