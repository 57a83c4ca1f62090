//===- RowBudgetTest.cpp - Rows of prompts beside running answers ---------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/RowBudget.h"

#include "runtime/engine/Sampler.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace llamac {
namespace {

/// Seconds of a step with so many rows of prompts.
using Machine = std::function<double(double rows)>;

/// The mean rows and seconds of `steps` steps with prompts, after `before`
/// others and 20 without.
struct Outcome {
  double rows = 0, seconds = 0;
};

Outcome runOn(const Machine &machine, int before, int steps) {
  RowBudget budget;
  for (int i = 0; i < 20; ++i)
    budget.record(4, 0, machine(0));
  Outcome mean;
  for (int i = 0; i < before + steps; ++i) {
    const int64_t rows = budget.rows();
    EXPECT_GE(rows, 1);
    const double seconds = machine(static_cast<double>(rows));
    budget.record(4, rows, seconds);
    if (i < before)
      continue;
    mean.rows += static_cast<double>(rows) / steps;
    mean.seconds += seconds / steps;
  }
  return mean;
}

TEST(RowBudget, AStepIsLongerByAShareOfOneWithoutPrompts) {
  // The rows that make 1.6 ms of 1 ms.
  for (const double slope : {1e-4, 1e-5, 1e-6}) {
    const Outcome mean =
        runOn([&](double rows) { return 1e-3 + slope * rows; }, 300, 100);
    EXPECT_NEAR(mean.rows * slope, 0.6e-3, 0.1e-3) << slope;
  }
}

TEST(RowBudget, TheFixedCostOfAPromptCounts) {
  const Outcome mean = runOn(
      [](double rows) { return 1e-3 + (rows > 0 ? 0.3e-3 : 0) + 1e-5 * rows; },
      300, 100);
  EXPECT_NEAR(mean.rows, 30, 5);
}

TEST(RowBudget, WhatIsTooSlowWithOneRowHasMore) {
  // One row makes 4 ms of 1 ms: with a quarter more, prompts are done soon.
  const Outcome mean = runOn(
      [](double rows) { return 1e-3 + (rows > 0 ? 3e-3 : 0) + 1e-5 * rows; },
      300, 100);
  EXPECT_NEAR(mean.rows, 100, 15);
}

TEST(RowBudget, RowsThatCostNextToNothingBecomeMany) {
  const Outcome mean =
      runOn([](double rows) { return 5e-3 + 1e-7 * rows; }, 150, 10);
  EXPECT_GT(mean.rows, 512);
}

TEST(RowBudget, StepsThatAreSlowByChanceDoNotStopPrompts) {
  RandomStream random(1);
  const auto noisy = [&](double rows) {
    const double factor = random.nextUniform() < 0.1 ? 3 : 1;
    return factor * (1e-3 + 5e-5 * rows) * (1 + 0.2 * random.nextUniform());
  };
  const Outcome mean = runOn(noisy, 100, 2000);
  EXPECT_GT(mean.rows, 4);
  EXPECT_LT(mean.rows, 40);
}

TEST(RowBudget, StepsWithoutAnswersAreNotLearntFrom) {
  RowBudget budget;
  const int64_t first = budget.rows();
  budget.record(0, 512, 10);
  EXPECT_EQ(budget.rows(), first);
}

} // namespace
} // namespace llamac
