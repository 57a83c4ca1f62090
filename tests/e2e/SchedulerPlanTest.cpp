//===- SchedulerPlanTest.cpp - A random load of a plan --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Run by test_scheduler.py, which makes the plan LLAMAC_TEST_PLAN and says by
// LLAMAC_TEST_REQUESTS how many requests it gets.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/Devices.h"
#include "tests/runtime/engine/RandomLoad.h"

#include <cstdlib>

namespace llamac::load {
namespace {

TEST(SchedulerPlanTest, EachAnswerIsTheOneThatItsRequestHasAlone) {
  const char *plan = std::getenv("LLAMAC_TEST_PLAN");
  const char *requests = std::getenv("LLAMAC_TEST_REQUESTS");
  ASSERT_TRUE(plan && requests);
  const Load load{"Plan", std::atoi(requests), 2, 64, 0.2};
  auto model = Model::load(plan, {.threads = load.threads,
                                  .devices = allDevices(),
                                  .sequences = load.sequences});
  ASSERT_TRUE(model.ok()) << model.status();
  RandomLoad(*model, load).run();
}

} // namespace
} // namespace llamac::load
