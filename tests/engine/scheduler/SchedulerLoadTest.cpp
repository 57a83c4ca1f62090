//===- SchedulerLoadTest.cpp - Random loads of the toy model --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/Tier.h"
#include "tests/engine/scheduler/RandomLoad.h"
#include "tests/engine/step/RowBits.h"
#include "tests/engine/toy/ToyModel.h"

#include <gmock/gmock.h>

namespace llamac::load {
namespace {

class ToyLoad : public testing::TestWithParam<Load> {};

TEST_P(ToyLoad, EachAnswerIsTheOneThatItsRequestHasAlone) {
  Load load = GetParam();
  if (load.drafts && isExhaustive())
    load.requests = 10000;
  const toy::ToyPlanFile file([&](toy::ToyPlan &toy) {
    if (load.kinds)
      toy::addKinds(toy);
    if (load.window)
      toy::addWindow(toy);
  });
  auto model =
      Model::load(file.path(), {.threads = load.threads,
                                .sequences = load.sequences,
                                .draft = load.drafts ? file.path() : ""});
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
                         /*cachesPrefixes=*/false},
                    Load{.name = "Kinds",
                         .requests = 1000,
                         .threads = 1,
                         .sequences = 7,
                         .pages = 0.3,
                         .kinds = true},
                    Load{.name = "KindsWithoutCache",
                         .requests = 500,
                         .threads = 1,
                         .sequences = 7,
                         .pages = 0.2,
                         .cachesPrefixes = false,
                         .kinds = true},
                    Load{.name = "Drafts",
                         .requests = 1000,
                         .threads = 2,
                         .sequences = 5,
                         .pages = 0.4,
                         .drafts = true},
                    Load{.name = "DraftsInWindows",
                         .requests = 500,
                         .threads = 1,
                         .sequences = 3,
                         .pages = 0.4,
                         .window = true,
                         .drafts = true},
                    Load{.name = "DraftsOfKinds",
                         .requests = 500,
                         .threads = 1,
                         .sequences = 2,
                         .pages = 1,
                         .kinds = true,
                         .drafts = true},
                    Load{.name = "KindsInWindows",
                         .requests = 1000,
                         .threads = 1,
                         .sequences = 7,
                         .pages = 0.3,
                         .window = true,
                         .kinds = true}),
    [](const auto &info) { return info.param.name; });

/// The result of compareRowBits() in a toy plan that `change` has made.
RowBitsReport rowBitsOf(const std::function<void(toy::ToyPlan &)> &change,
                        bool batchInvariant) {
  const toy::ToyPlanFile file(change);
  auto model = Model::load(file.path(), {.threads = 1, .sequences = 7});
  EXPECT_TRUE(model.ok()) << model.status();
  auto report = compareRowBits(*model, /*requests=*/60, batchInvariant);
  EXPECT_TRUE(report.ok()) << report.status();
  EXPECT_GT(report->compared, 1000);
  return *std::move(report);
}

TEST(RowBits, AreTheSameWhereEachKindOfRowHasOneProgram) {
  EXPECT_EQ(rowBitsOf(toy::addKinds, /*batchInvariant=*/true).difference, "");
  EXPECT_EQ(rowBitsOf(
                [](toy::ToyPlan &toy) {
                  toy::addKinds(toy);
                  toy::addWindow(toy);
                },
                /*batchInvariant=*/true)
                .difference,
            "");
}

TEST(RowBits, TheFirstLaunchWhoseBitsDifferIsNamed) {
  EXPECT_THAT(
      rowBitsOf(toy::addKinds, /*batchInvariant=*/false).difference,
      testing::MatchesRegex(
          "remember\\.0: the page of positions [0-9]+ to [0-9]+ in operand 4 "
          "differs from byte [0-9]+ on: [0-9a-f]{8} by toyRememberKind "
          "of program rows[178], [0-9a-f]{8} by toyRememberKind of "
          "program rows[178]"));
  // Keys are the same; the last logit says which program ran.
  EXPECT_THAT(
      rowBitsOf({}, /*batchInvariant=*/false).difference,
      testing::MatchesRegex(
          "logits: the row of position [0-9]+ in operand 3 differs from "
          "byte 38[0-3] on: c2c[0-9a-f]{5} by toyLogits of program "
          "rows[148], c2c[0-9a-f]{5} by toyLogits of program rows[148]"));
}

} // namespace
} // namespace llamac::load
