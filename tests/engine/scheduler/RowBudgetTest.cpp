//===- RowBudgetTest.cpp - Rows of prompts beside running answers ---------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/scheduler/RowBudget.h"

#include "engine/sampling/Sampler.h"

#include <gtest/gtest.h>

#include <functional>

namespace llamac {
namespace {

/// Seconds of a step with so many rows of prompts.
using Machine = std::function<double(double rows)>;

/// The mean rows of those of the last `steps` steps that have prompts, after
/// `before` others.
double meanRowsOn(const Machine &machine, int before, int steps) {
  RowBudget budget;
  for (int i = 0; i < 20; ++i)
    budget.record(4, 0, machine(0));
  double sum = 0, count = 0;
  for (int i = 0; i < before + steps; ++i) {
    const int64_t rows = budget.rows();
    EXPECT_GE(rows, 0);
    budget.record(4, rows, machine(static_cast<double>(rows)));
    if (i < before || rows == 0)
      continue;
    sum += static_cast<double>(rows);
    ++count;
  }
  EXPECT_GE(count, 0.9 * steps);
  return sum / count;
}

TEST(RowBudget, AStepIsLongerByAShareOfOneWithoutPrompts) {
  // The rows that make 1.6 ms of 1 ms.
  for (const double slope : {1e-4, 1e-5, 1e-6}) {
    const double mean =
        meanRowsOn([&](double rows) { return 1e-3 + slope * rows; }, 300, 100);
    EXPECT_NEAR(mean * slope, 0.6e-3, 0.1e-3) << slope;
  }
}

TEST(RowBudget, TheFixedCostOfAPromptCounts) {
  const double mean = meanRowsOn(
      [](double rows) { return 1e-3 + (rows > 0 ? 0.3e-3 : 0) + 1e-5 * rows; },
      300, 100);
  EXPECT_NEAR(mean, 30, 5);
}

TEST(RowBudget, WhatIsTooSlowWithOneRowHasMore) {
  // One row makes 4 ms of 1 ms: with a quarter more, prompts are done soon.
  const double mean = meanRowsOn(
      [](double rows) { return 1e-3 + (rows > 0 ? 3e-3 : 0) + 1e-5 * rows; },
      300, 100);
  EXPECT_NEAR(mean, 100, 15);
}

TEST(RowBudget, RowsThatCostNextToNothingBecomeMany) {
  const double mean =
      meanRowsOn([](double rows) { return 5e-3 + 1e-7 * rows; }, 150, 10);
  EXPECT_GT(mean, 512);
}

TEST(RowBudget, StepsThatAreSlowByChanceDoNotStopPrompts) {
  RandomStream random(1);
  const auto noisy = [&](double rows) {
    const double factor = random.nextUniform() < 0.1 ? 3 : 1;
    return factor * (1e-3 + 5e-5 * rows) * (1 + 0.2 * random.nextUniform());
  };
  const double mean = meanRowsOn(noisy, 100, 2000);
  EXPECT_GT(mean, 4);
  EXPECT_LT(mean, 40);
}

TEST(RowBudget, AnswersThatGrowMakeRoomForMore) {
  int step = 0;
  const Machine growing = [&](double rows) {
    return 1e-3 + 1e-6 * ++step + 1e-5 * rows;
  };
  // 3 ms without prompts, behind 2,000 steps.
  EXPECT_NEAR(meanRowsOn(growing, 1950, 100), 180, 30);
}

TEST(RowBudget, AStepWithoutPromptsComesNowAndThen) {
  RowBudget budget;
  int without = 0;
  for (int i = 0; i < 330; ++i) {
    const int64_t rows = budget.rows();
    without += rows == 0;
    budget.record(4, rows, 1e-3 + 1e-5 * static_cast<double>(rows));
  }
  EXPECT_EQ(without, 10);
}

TEST(RowBudget, StepsWithoutAnswersAreNotLearntFrom) {
  RowBudget budget;
  const int64_t first = budget.rows();
  budget.record(0, 512, 10);
  EXPECT_EQ(budget.rows(), first);
}

} // namespace
} // namespace llamac
