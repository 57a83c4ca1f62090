//===- TrialsTest.cpp - Which of several is the fastest -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Rounds of candidates that take `ratios` of a time that the machine changes
/// from round to round, each with `noise` of its own.
Trials makeTrials(const std::vector<double> &ratios, double noise,
                  size_t rounds, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Trials trials(ratios.size());
  for (size_t round = 0; round < rounds; ++round) {
    const double machine = 1e-3 * std::exp(0.3 * normal(random));
    std::vector<std::optional<double>> values;
    for (const double ratio : ratios)
      values.emplace_back(machine * ratio * (1 + noise * normal(random)));
    trials.addRound(values);
  }
  return trials;
}

TEST(TrialsTest, MedianIsTheMiddleOrTheMeanOfTheTwoThere) {
  EXPECT_EQ(medianOf({}), 0);
  EXPECT_EQ(medianOf({3, 1, 2}), 2);
  EXPECT_EQ(medianOf({4, 1, 3, 2}), 2.5);
}

TEST(TrialsTest, PicksTheFastest) {
  EXPECT_EQ(makeTrials({1, 0.9, 0.8, 1.2}, 0, 5, 1).pick(), 2U);
}

TEST(TrialsTest, AMachineThatSlowsDownForAWhileChangesNothing) {
  // The machine's own changes are 30 %, thirty times the difference.
  for (unsigned seed = 0; seed < 20; ++seed)
    EXPECT_EQ(makeTrials({1, 0.97}, 0.002, 21, seed).pick(), 1U) << seed;
}

TEST(TrialsTest, AWinWithinOnePercentKeepsTheFirst) {
  EXPECT_EQ(makeTrials({1, 0.992}, 0, 9, 1).pick(), 0U);
}

TEST(TrialsTest, AWinWithinNoiseKeepsWhatWasChosenBefore) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const Trials trials = makeTrials({1, 0.9, 0.897}, 0.05, 41, seed);
    EXPECT_EQ(trials.pick(/*kept=*/1), 1U) << seed;
    EXPECT_EQ(trials.pick(/*kept=*/2), 2U) << seed;
  }
}

TEST(TrialsTest, WhatWasChosenBeforeGivesWayToWhatIsFaster) {
  EXPECT_EQ(makeTrials({1, 0.9, 0.7}, 0.01, 15, 1).pick(/*kept=*/1), 2U);
  EXPECT_EQ(makeTrials({1, 1.3}, 0.01, 15, 1).pick(/*kept=*/1), 0U);
}

TEST(TrialsTest, NoiseGrowsWithTheSpreadAndShrinksWithRounds) {
  const double few = makeTrials({1, 1}, 0.1, 10, 1).ratioOf(1).noise;
  const double many = makeTrials({1, 1}, 0.1, 1000, 1).ratioOf(1).noise;
  EXPECT_GT(few, 0.03);
  EXPECT_LT(many, few / 3);
  EXPECT_EQ(makeTrials({1, 1}, 0, 10, 1).ratioOf(1).noise, 0.01);
}

TEST(TrialsTest, ItIsDecidedWhenNoiseIsSmallOrDifferencesAreLarge) {
  EXPECT_TRUE(makeTrials({1, 0.998}, 0.001, 7, 1).isDecided(0));
  EXPECT_TRUE(makeTrials({1, 0.5}, 0.05, 7, 1).isDecided(1));
  EXPECT_FALSE(makeTrials({1, 0.998}, 0.1, 7, 1).isDecided(0));
  EXPECT_FALSE(makeTrials({1, 0.5}, 0, 3, 1).isDecided(1));
}

TEST(TrialsTest, ContendersAreThoseNearTheBestWithoutTheFirst) {
  EXPECT_THAT(makeTrials({1, 0.91, 0.9, 1.5}, 0, 3, 1).contenders(),
              ElementsAre(2, 1));
  EXPECT_THAT(makeTrials({1, 1.2, 1.3}, 0, 3, 1).contenders(), IsEmpty());
}

TEST(TrialsTest, AnUnluckyFirstRoundPutsNothingOutThatIsNotFarOff) {
  Trials trials(3);
  trials.addRound({1.0, 1.2, 1.4});
  EXPECT_THAT(trials.contenders(), ElementsAre(1));
  trials.addRound({1.0, 0.9, std::nullopt});
  EXPECT_THAT(trials.contenders(), ElementsAre(1));
}

TEST(TrialsTest, TheFastestIsRarelyOutWhileNoiseHidesIt) {
  // The noise is twice the difference.
  size_t out = 0;
  for (unsigned seed = 0; seed < 100; ++seed)
    for (size_t rounds = 1; rounds < 10; ++rounds) {
      const auto in =
          makeTrials({1, 0.95, 1.05}, 0.1, rounds, seed).contenders();
      out += std::find(in.begin(), in.end(), 1U) == in.end() ? 1 : 0;
    }
  EXPECT_LT(out, 9U);
}

TEST(TrialsTest, ACandidateThatIsOutKeepsItsEarlierRounds) {
  Trials trials(3);
  trials.addRound({1.0, 0.9, 2.0});
  trials.addRound({2.0, 1.8, std::nullopt});
  trials.addRound({1.0, 0.9, std::nullopt});
  EXPECT_EQ(trials.pick(), 1U);
  EXPECT_EQ(trials.secondsOf(2), 2);
  EXPECT_EQ(trials.runnerUp(1), 0U);
}

TEST(TrialsTest, ACandidateThatJoinsLaterNeedsThreeRounds) {
  Trials trials(1);
  trials.addRound({1.0});
  trials.setCandidates(2);
  for (size_t round = 0; round < 3; ++round) {
    EXPECT_EQ(trials.pick(), 0U) << round;
    trials.addRound({1.0, 0.5});
  }
  EXPECT_EQ(trials.pick(), 1U);
  EXPECT_EQ(trials.ratioOf(1).rounds, 3U);
}

TEST(TrialsTest, OneThatWasNeverMeasuredIsNotPicked) {
  Trials trials(2);
  trials.addRound({1.0, std::nullopt});
  EXPECT_EQ(trials.pick(), 0U);
  EXPECT_EQ(trials.secondsOf(1), 0);
  EXPECT_FALSE(trials.runnerUp(0).has_value());
}

} // namespace
} // namespace llamac
