//===- TrialsTest.cpp - Which of several is the fastest -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuned/Trials.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace llamac {
namespace {

/// Rounds of candidates that take `ratios` of a time that the machine changes
/// from round to round by 30 %, each with `noise` of its own.
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

TEST(TrialsTest, TheFastestIsFoundThoughTheMachineChanges) {
  EXPECT_EQ(makeTrials({1, 0.992}, 0, 9, 1).fastest(), 0U); // Within noise.
  EXPECT_EQ(makeTrials({1, 0.9, 0.8, 1.2}, 0, 5, 1).fastest(), 2U);
  for (unsigned seed = 0; seed < 20; ++seed)
    EXPECT_EQ(makeTrials({1, 0.97}, 0.002, 21, seed).fastest(), 1U) << seed;
}

TEST(TrialsTest, NoiseGrowsWithTheSpreadAndShrinksWithRounds) {
  const double few = makeTrials({1, 1}, 0.1, 10, 1).ratioOf(1).noise;
  EXPECT_GT(few, 0.03);
  EXPECT_LT(makeTrials({1, 1}, 0.1, 1000, 1).ratioOf(1).noise, few / 3);
  EXPECT_EQ(makeTrials({1, 1}, 0, 10, 1).ratioOf(1).noise, 0.01);
  EXPECT_EQ(makeTrials({1, 1}, 0, 4, 1).ratioOf(1).noise, 0.3);
}

TEST(TrialsTest, OpenIsWhatMoreRoundsMayShowToBeFaster) {
  EXPECT_TRUE(makeTrials({1, 1.02}, 0.1, 9, 1).isOpen(1, 0));
  EXPECT_TRUE(makeTrials({1, 1.2}, 0, 2, 1).isOpen(1, 0));
  EXPECT_FALSE(makeTrials({1, 1.4}, 0, 2, 1).isOpen(1, 0));
  EXPECT_FALSE(makeTrials({1, 1.005}, 0, 9, 1).isOpen(1, 0));
  EXPECT_FALSE(makeTrials({1, 2}, 0.1, 9, 1).isOpen(1, 0));
}

TEST(TrialsTest, TheFastestIsRarelyOutWhileNoiseHidesIt) {
  // The noise is twice the difference.
  size_t out = 0;
  for (unsigned seed = 0; seed < 100; ++seed)
    for (size_t rounds = 1; rounds < 10; ++rounds) {
      const Trials trials = makeTrials({1, 0.95}, 0.1, rounds, seed);
      out += trials.fastest() == 0 && !trials.isOpen(1, 0);
    }
  EXPECT_LT(out, 9U);
}

TEST(TrialsTest, OneThatIsOutKeepsItsRoundsAndNeedsEnoughToBeSelected) {
  Trials trials(3);
  trials.addRound({1.0, 0.5, 0.5});
  EXPECT_EQ(trials.secondsOf(1), 0.5);
  for (size_t round = 1; round < Trials::leastRounds; ++round) {
    EXPECT_EQ(trials.fastest(), 0U);
    trials.addRound({1.0, 0.5, std::nullopt});
  }
  EXPECT_EQ(trials.fastest(), 1U);
  EXPECT_EQ(trials.ratioOf(2).rounds, 1U);
  Trials never(2);
  never.addRound({1.0, std::nullopt});
  EXPECT_EQ(never.secondsOf(1), 0);
  EXPECT_TRUE(never.isOpen(1, 0));
}

} // namespace
} // namespace llamac
