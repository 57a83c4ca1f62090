//===- TunedStepsTest.cpp - Steps by which a program is tuned -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/TunedSteps.h"

#include "runtime/base/Status.h"
#include "tests/runtime/engine/ToyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Runs steps of the toy model and notes how many rows each launch number 0
/// has.
class StepRunnerTest : public testing::Test, public LaunchObserver {
protected:
  void SetUp() override {
    auto loaded = Model::load(file.path(), {.threads = 1});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model = *std::move(loaded);
    auto created = Engine::create(model, {.observer = this});
    ASSERT_TRUE(created.ok()) << created.status();
    engine = *std::move(created);
    runner.emplace(*engine, first);
  }

  absl::Status before(const LaunchSite &site, StepMemory &) override {
    if (site.launch == 0)
      (isLast ? last : past).push_back(site.shape.rows);
    return isLast ? atLast : absl::OkStatus();
  }
  absl::Status after(const LaunchSite &, StepMemory &) override {
    return absl::OkStatus();
  }

  absl::Status run(const StepPlan &step) {
    past.clear();
    last.clear();
    isLast = false;
    return runner->run(step, [&] { isLast = true; });
  }

  toy::ToyPlanFile file;
  std::shared_ptr<const Model> model;
  std::unique_ptr<Engine> engine;
  CachedTokens first;
  std::optional<StepRunner> runner;
  bool isLast = false;
  absl::Status atLast;
  std::vector<int64_t> past, last; ///< Rows, of what comes before and of it.
};

TEST_F(StepRunnerTest, WhatComesBeforeIsComputedOnce) {
  ASSERT_TRUE(run({.sequences = 1, .before = 3, .tokens = 2}).ok());
  EXPECT_THAT(past, ElementsAre(3));
  EXPECT_THAT(last, ElementsAre(2));
  ASSERT_TRUE(run({.sequences = 1, .before = 9, .tokens = 4}).ok());
  EXPECT_THAT(past, ElementsAre(4));
  EXPECT_THAT(last, ElementsAre(4));
  ASSERT_TRUE(run({.sequences = 1, .before = 9, .tokens = 4}).ok());
  EXPECT_THAT(past, IsEmpty());
  EXPECT_THAT(last, ElementsAre(4));
}

TEST_F(StepRunnerTest, OtherSequencesGetWhatTheyMiss) {
  ASSERT_TRUE(run({.sequences = 1, .before = 5, .tokens = 1}).ok());
  ASSERT_TRUE(run({.sequences = 3, .before = 6, .tokens = 1}).ok());
  EXPECT_THAT(past, ElementsAre(6, 6));
  EXPECT_THAT(last, ElementsAre(3));
}

TEST_F(StepRunnerTest, AnotherEngineTakesWhatTheFirstSequenceBeginsWith) {
  ASSERT_TRUE(run({.sequences = 2, .before = 7, .tokens = 1}).ok());
  EXPECT_THAT(past, ElementsAre(7, 7));
  runner.reset();
  auto other = Engine::create(model, {.observer = this});
  ASSERT_TRUE(other.ok()) << other.status();
  engine = *std::move(other);
  runner.emplace(*engine, first);
  ASSERT_TRUE(run({.sequences = 2, .before = 5, .tokens = 1}).ok());
  EXPECT_THAT(past, ElementsAre(5)); // The second's.
  ASSERT_TRUE(run({.sequences = 1, .before = 9, .tokens = 1}).ok());
  EXPECT_THAT(past, ElementsAre(2));
  EXPECT_EQ(first.tokens, 9);
}

TEST_F(StepRunnerTest, TheFirstSequenceGrowsAheadOfSteps) {
  ASSERT_TRUE(runner->begin(6).ok());
  EXPECT_EQ(first.tokens, 6);
  ASSERT_TRUE(runner->begin(11).ok());
  EXPECT_EQ(first.tokens, 11);
  EXPECT_THAT(past, ElementsAre(6, 5));
  ASSERT_TRUE(run({.sequences = 1, .before = 9, .tokens = 2}).ok());
  EXPECT_THAT(past, IsEmpty());
  EXPECT_THAT(last, ElementsAre(2));
}

TEST_F(StepRunnerTest, WhatIsComputedAheadServesAnotherEngine) {
  auto computed = computeFirst(model, 12, [] { return false; });
  ASSERT_TRUE(computed.ok()) << computed.status();
  EXPECT_EQ(computed->tokens, 12);
  first = *std::move(computed);
  ASSERT_TRUE(run({.sequences = 1, .before = 12, .tokens = 2}).ok());
  EXPECT_THAT(past, IsEmpty());
  EXPECT_THAT(last, ElementsAre(2));
}

TEST_F(StepRunnerTest, NothingIsComputedAheadWhenTimeIsUp) {
  const auto computed = computeFirst(model, 12, [] { return true; });
  ASSERT_TRUE(computed.ok()) << computed.status();
  EXPECT_EQ(computed->tokens, 0);
}

TEST_F(StepRunnerTest, AnObserverThatHasSeenEnoughEndsAStep) {
  atLast = seenEnough();
  ASSERT_TRUE(run({.sequences = 2, .before = 4, .tokens = 1}).ok());
  EXPECT_THAT(last, ElementsAre(2));
  atLast = absl::OkStatus();
  ASSERT_TRUE(run({.sequences = 2, .before = 4, .tokens = 1}).ok());
  EXPECT_THAT(past, IsEmpty());
  EXPECT_THAT(last, ElementsAre(2));
}

TEST_F(StepRunnerTest, OtherErrorsAreGivenBack) {
  atLast = memoryError("full");
  EXPECT_EQ(exitCode(run({.sequences = 1, .before = 4, .tokens = 1})),
            ExitCode::Memory);
}

TEST_F(StepRunnerTest, PagesAreEnoughForAllSteps) {
  const std::vector<StepPlan> steps = {{.sequences = 3, .before = 1},
                                       {.sequences = 1, .before = 20},
                                       {.sequences = 2, .before = 7}};
  auto small = Engine::create(
      model, {.kvPages = pagesFor(model->plan(), steps), .observer = this});
  ASSERT_TRUE(small.ok()) << small.status();
  CachedTokens none;
  StepRunner inIt(**small, none);
  for (const StepPlan &step : steps)
    EXPECT_TRUE(inIt.run(step, [] {}).ok());
  for (const StepPlan &step : steps)
    EXPECT_TRUE(inIt.run(step, [] {}).ok());
}

} // namespace
} // namespace llamac
