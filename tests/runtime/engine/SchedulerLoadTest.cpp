//===- SchedulerLoadTest.cpp - Random loads of the toy model --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/runtime/engine/RandomLoad.h"
#include "tests/runtime/engine/ToyModel.h"

namespace llamac::load {
namespace {

class ToyLoad : public testing::TestWithParam<Load> {};

TEST_P(ToyLoad, EachAnswerIsTheOneThatItsRequestHasAlone) {
  const Load &load = GetParam();
  const toy::ToyPlanFile file([&](toy::ToyPlan &toy) {
    if (load.window)
      toy::addWindow(toy);
  });
  auto model = Model::load(
      file.path(), {.threads = load.threads, .sequences = load.sequences});
  ASSERT_TRUE(model.ok()) << model.status();
  RandomLoad(*model, load).run();
}

INSTANTIATE_TEST_SUITE_P(
    Loads, ToyLoad,
    testing::Values(Load{"OneAtATime", 200, 2, 1, 1},
                    Load{"Few", 1000, 2, 3, 1},
                    Load{"ManyWithPagesForHalf", 2000, 1, 64, 0.5},
                    Load{"ShortOfPages", 1000, 2, 16, 0.15},
                    Load{"Windows", 1000, 2, 16, 0.2, /*window=*/true},
                    Load{"WindowsOneAtATime", 200, 2, 1, 1, /*window=*/true},
                    Load{"WindowsTwo", 300, 1, 2, 1, /*window=*/true},
                    Load{"WindowsSeven", 500, 2, 7, 0.4, /*window=*/true},
                    Load{"WithoutCache", 500, 2, 8, 0.2, /*window=*/false,
                         /*cachesPrefixes=*/false}),
    [](const auto &info) { return info.param.name; });

} // namespace
} // namespace llamac::load
