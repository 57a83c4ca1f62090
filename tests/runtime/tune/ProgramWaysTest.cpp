//===- ProgramWaysTest.cpp - The ways to run a program --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/ProgramWays.h"
#include "runtime/tune/StepTimer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace llamac {
namespace {

using schema::Overlap;
using testing::ElementsAre;

std::unique_ptr<schema::LaunchT> launch(std::optional<uint32_t> layer) {
  auto made = std::make_unique<schema::LaunchT>();
  made->operands.emplace_back(schema::OperandKind::Arena, 0, 0);
  if (layer)
    made->operands.emplace_back(schema::OperandKind::Kv, *layer, 0);
  return made;
}

/// The program "decode" of a plan for `target`; a layer is a launch before the
/// cache is touched, two that touch it, and one more.
schema::PlanT makePlan(const std::string &target, bool isDependent) {
  schema::PlanT plan;
  plan.target = target;
  for (const char *name : {"decode", "prefill"}) {
    auto program = std::make_unique<schema::ProgramT>();
    program->name = name;
    for (uint32_t layer = 0; layer < 3; ++layer)
      for (const bool touches : {false, true, true, false})
        program->launches.push_back(
            launch(touches ? std::optional(layer) : std::nullopt));
    for (const auto &each : program->launches)
      each->dependent = isDependent;
    plan.programs.push_back(std::move(program));
  }
  auto schedule = std::make_unique<schema::ScheduleT>();
  schedule->name = "norm-apart";
  schedule->programs.push_back(
      std::make_unique<schema::ProgramT>(*plan.programs[0]));
  plan.schedules.push_back(std::move(schedule));
  return plan;
}

TEST(ProgramWaysTest, EveryWayIsFoundByItsName) {
  const schema::PlanT plan = makePlan("cuda", true);
  std::vector<std::string> names;
  for (const ProgramPick &schedule : schedulesOf(plan, 0, Overlap::FromStart))
    for (const ProgramPick &way : overlapsOf(plan, 0, schedule)) {
      names.push_back(wayName(plan, way));
      EXPECT_EQ(findWay(plan, 0, names.back()), way) << names.back();
    }
  EXPECT_THAT(names, ElementsAre("", "overlap=after-wait", "overlap=at-end",
                                 "overlap=none", "norm-apart",
                                 "norm-apart overlap=after-wait",
                                 "norm-apart overlap=at-end",
                                 "norm-apart overlap=none"));
}

TEST(ProgramWaysTest, AWayThatTheProgramDoesNotHaveIsNotFound) {
  const schema::PlanT plan = makePlan("cuda", true);
  EXPECT_EQ(findWay(plan, 1, "norm-apart"), std::nullopt);
  EXPECT_EQ(findWay(plan, 0, "overlap=never"), std::nullopt);
  EXPECT_EQ(findWay(makePlan("cuda", false), 0, "overlap=none"), std::nullopt);
  EXPECT_EQ(findWay(makePlan("cpu", false), 0, "overlap=at-end"), std::nullopt);
}

TEST(ProgramWaysTest, OnlyLaunchesThatCanOverlapHaveAChoice) {
  EXPECT_EQ(overlapsOf(makePlan("cuda", false), 0, {}).size(), 1U);
  EXPECT_EQ(overlapsOf(makePlan("sim", true), 0, {}).size(), 1U);
  const ProgramPick late{std::nullopt, Overlap::AtEnd};
  // What was chosen comes first, and once.
  const auto ways = overlapsOf(makePlan("cuda", true), 0, late);
  EXPECT_EQ(ways.size(), 4U);
  EXPECT_EQ(ways.front(), late);
}

TEST(WayTrialsTest, LayersGoFromCacheToCache) {
  const schema::PlanT plan = makePlan("cpu", false);
  const schema::ProgramT &program = *plan.programs[0];
  EXPECT_EQ(launchesOfLayers(program, 1), std::pair(size_t{1}, size_t{5}));
  EXPECT_EQ(launchesOfLayers(program, 2), std::pair(size_t{1}, size_t{9}));
  EXPECT_EQ(launchesOfLayers(program, 3), std::pair(size_t{0}, size_t{12}));
}

} // namespace
} // namespace llamac
