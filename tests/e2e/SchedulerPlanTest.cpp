//===- SchedulerPlanTest.cpp - A random load of a plan --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Run by test_scheduler.py and test_cuda.py, which make the plan
// LLAMAC_TEST_PLAN, and maybe LLAMAC_TEST_DRAFT, which drafts for it.
// LLAMAC_TEST_LOAD has the numbers of requests, of sequences at a time and of
// tokens of an answer; maybe then the share of pages that all sequences can
// use, and whether prefixes are cached.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Devices.h"
#include "tests/engine/scheduler/RandomLoad.h"
#include "tests/engine/step/RowBits.h"

#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>

namespace llamac::load {
namespace {

/// The load and the plan for it.
class SchedulerPlanTest : public testing::Test {
protected:
  void SetUp() override {
    const char *plan = std::getenv("LLAMAC_TEST_PLAN");
    const char *numbers = std::getenv("LLAMAC_TEST_LOAD");
    ASSERT_TRUE(plan && numbers);
    int caches = 1;
    ASSERT_GE(std::sscanf(numbers, "%d,%ld,%d,%lf,%d", &load.requests,
                          &load.sequences, &load.mostTokens, &load.pages,
                          &caches),
              3);
    load.cachesPrefixes = caches != 0;
    const char *draft = std::getenv("LLAMAC_TEST_DRAFT");
    auto loaded = Model::load(plan, {.threads = load.threads,
                                     .devices = allDevices(),
                                     .sequences = load.sequences,
                                     .draft = draft ? draft : ""});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model = *std::move(loaded);
  }

  Load load{"Plan", 0, 2, 0, 0.2};
  std::shared_ptr<const Model> model;
};

TEST_F(SchedulerPlanTest, EachAnswerIsTheOneThatItsRequestHasAlone) {
  RandomLoad(model, load).run();
}

// No two programs of this plan give a row the same bits.
TEST_F(SchedulerPlanTest, RowsDifferFromThoseAloneOnlyWhereThatIsAllowed) {
  const auto invariant =
      compareRowBits(model, load.requests, /*batchInvariant=*/true);
  ASSERT_TRUE(invariant.ok()) << invariant.status();
  EXPECT_GT(invariant->compared, 100 * load.requests);
  EXPECT_EQ(invariant->difference, "");
  const auto free =
      compareRowBits(model, load.requests, /*batchInvariant=*/false);
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_THAT(free->difference,
              testing::ContainsRegex("^layers\\.0\\..*: the (row|page) of "
                                     "position.* differs from byte"));
  std::printf("%s\n", free->difference.c_str());
}

} // namespace
} // namespace llamac::load
