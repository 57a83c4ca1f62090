//===- StepCostsTest.cpp - Tests of the costs of steps --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/speculation/StepCosts.h"

#include "gtest/gtest.h"

using namespace llamac;

static Draft draftOf(double acceptance, int64_t size) {
  Draft draft;
  double survival = 1;
  for (int64_t i = 0; i < size; ++i) {
    draft.tokens.push_back(0);
    draft.survival.push_back(survival *= acceptance);
  }
  return draft;
}

static int64_t paying(const StepCosts &costs, int64_t rows, double acceptance,
                      int64_t mostRows = 64) {
  const Draft draft = draftOf(acceptance, 16);
  return draftsThatPay(costs, rows, {&draft, 1}, mostRows)[0];
}

/// Steps of 1 to 32 rows of which each costs `slope` of the first.
static StepCosts costsOf(double slope) {
  StepCosts costs;
  for (int64_t rows = 1; rows <= 32; ++rows)
    costs.record(rows, 1 + slope * static_cast<double>(rows - 1));
  return costs;
}

TEST(StepCostsTest, CostsAreInterpolatedBetweenMeasuredOnes) {
  StepCosts costs;
  EXPECT_EQ(costs.seconds(1), 0);
  costs.record(2, 1);
  EXPECT_EQ(costs.seconds(1), 0);
  EXPECT_EQ(costs.seconds(2), 1);
  EXPECT_GE(costs.seconds(8), 1);
  costs.record(6, 3);
  EXPECT_EQ(costs.seconds(4), 2);
  EXPECT_EQ(costs.seconds(6), 3);
}

TEST(StepCostsTest, OneSlowStepIsNoMeasure) {
  StepCosts costs;
  costs.record(1, 1);
  costs.record(1, 100);
  EXPECT_LT(costs.seconds(1), 1.2);
}

TEST(StepCostsTest, TimesOfLongAgoAreForgotten) {
  StepCosts costs;
  costs.record(8, 100);
  for (int step = 0; step < 1000; ++step)
    costs.record(1, 1);
  EXPECT_LT(costs.seconds(8), 2);
}

TEST(StepCostsTest, DraftsPayWhileTheirRowsCostLessThanTheyBring) {
  EXPECT_EQ(paying(costsOf(0.03), 1, 0.95), 16);
  EXPECT_EQ(paying(costsOf(1), 1, 0.95), 0);
  // 0.6^n is worth what rows cost for the first few alone.
  const int64_t few = paying(costsOf(0.1), 1, 0.6);
  EXPECT_GT(few, 1);
  EXPECT_LT(few, 6);
  EXPECT_EQ(paying(costsOf(0.1), 1, 0.05), 0);
}

TEST(StepCostsTest, NothingIsDraftedBeforeAPlainStepWasMeasured) {
  EXPECT_EQ(paying(StepCosts(), 1, 0.99), 0);
  StepCosts costs;
  costs.record(9, 1);
  EXPECT_EQ(paying(costs, 1, 0.99), 0);
}

TEST(StepCostsTest, TheMostProbableTokensOfSeveralDraftsGoFirst) {
  const Draft drafts[] = {draftOf(0.5, 16), draftOf(0.99, 16), {}};
  const std::vector<int64_t> counts =
      draftsThatPay(costsOf(0.02), 3, drafts, /*mostRows=*/12);
  EXPECT_EQ(counts[0] + counts[1], 9);
  EXPECT_GT(counts[1], counts[0]);
  EXPECT_EQ(counts[2], 0);
  EXPECT_EQ(draftsThatPay(costsOf(0.02), 12, drafts, 12),
            (std::vector<int64_t>{0, 0, 0}));
}
