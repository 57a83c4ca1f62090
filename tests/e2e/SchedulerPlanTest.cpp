//===- SchedulerPlanTest.cpp - A random load of a plan --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Run by test_scheduler.py and test_cuda.py, which make the plan
// LLAMAC_TEST_PLAN. LLAMAC_TEST_LOAD has the numbers of requests, of sequences
// at a time and of tokens of an answer.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Devices.h"
#include "tests/runtime/engine/RandomLoad.h"

#include <cstdio>
#include <cstdlib>

namespace llamac::load {
namespace {

TEST(SchedulerPlanTest, EachAnswerIsTheOneThatItsRequestHasAlone) {
  const char *plan = std::getenv("LLAMAC_TEST_PLAN");
  const char *numbers = std::getenv("LLAMAC_TEST_LOAD");
  ASSERT_TRUE(plan && numbers);
  Load load{"Plan", 0, 2, 0, 0.2};
  ASSERT_EQ(std::sscanf(numbers, "%d,%ld,%d", &load.requests, &load.sequences,
                        &load.mostTokens),
            3);
  auto model = Model::load(plan, {.threads = load.threads,
                                  .devices = allDevices(),
                                  .sequences = load.sequences});
  ASSERT_TRUE(model.ok()) << model.status();
  RandomLoad(*model, load).run();
}

} // namespace
} // namespace llamac::load
