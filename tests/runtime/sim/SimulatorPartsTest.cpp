//===- SimulatorPartsTest.cpp - Fibers, clocks, memory, modules -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of the simulator that need no compiled kernel; tests/codegen/sim
// has the rest.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/SimCode.h"
#include "runtime/sim/Clocks.h"
#include "runtime/sim/Fiber.h"
#include "runtime/sim/Simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace llamac;
using testing::HasSubstr;

//===----------------------------------------------------------------------===//
// Fibers
//===----------------------------------------------------------------------===//

namespace {

/// What the two sides of a switch share.
struct Exchange {
  sim::Fiber outside;
  sim::Fiber inside;
  double sum = 0;
};

} // namespace

static Exchange &exchange() {
  static Exchange shared;
  return shared;
}

static void addForEver() {
  for (double next = 1;; next += 0.5) {
    exchange().sum += next;
    exchange().inside.switchTo(exchange().outside);
  }
}

TEST(SimFiber, KeepsItsVariablesAcrossSwitches) {
  sim::StackPool stacks;
  std::byte *stack = stacks.take();
  ASSERT_NE(stack, nullptr);
  exchange().inside.start(stack, sim::StackPool::stackBytes, addForEver);
  for (int i = 0; i < 4; ++i)
    exchange().outside.switchTo(exchange().inside);
  EXPECT_EQ(exchange().sum, 1 + 1.5 + 2 + 2.5);
  stacks.giveBack(stack);
  EXPECT_EQ(stacks.take(), stack) << "stacks are used again";
  stacks.giveBack(stack);
}

//===----------------------------------------------------------------------===//
// Clocks
//===----------------------------------------------------------------------===//

static sim::KnowledgeRef knowing(sim::ClockVector own) {
  auto knowledge = std::make_shared<sim::Knowledge>();
  knowledge->own = std::move(own);
  return knowledge;
}

TEST(SimClocks, ThreadsThatMeetKnowAllThatEachKnew) {
  sim::Meeting meeting;
  meeting.add(knowing({0, 0, 5}), 0, 3);
  meeting.add(knowing({1, 0, 2}), 1, 7);
  EXPECT_EQ(meeting.end()->own, (sim::ClockVector{3, 7, 5}));
}

TEST(SimClocks, KnowledgeReachesOtherBlocksByBlock) {
  const auto news = sim::asGridClocks(sim::withClock(knowing({0, 2}), 0, 9), 4);
  const sim::KnowledgeRef there = sim::received(knowing({1, 1}), 6, news);
  EXPECT_EQ(there->own, (sim::ClockVector{1, 1}));
  ASSERT_NE(there->others, nullptr);
  EXPECT_EQ(*there->others->at(4), (sim::ClockVector{9, 2}));
  // Back in its own block it is what the threads know of each other.
  const auto back = sim::asGridClocks(there, 6);
  EXPECT_EQ(sim::received(knowing({0, 0}), 4, back)->own,
            (sim::ClockVector{9, 2}));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(SimMemory, FindsBuffersAndSaysWhereAddressesAre) {
  std::vector<std::byte> bytes(96);
  SimMemory memory;
  memory.add("x", bytes.data(), 16);
  memory.add("y", bytes.data() + 64, 16, SimContents::Undefined);
  uintptr_t start = 0;
  EXPECT_EQ(memory.find(bytes.data() + 15, start)->name, "x");
  EXPECT_EQ(start, reinterpret_cast<uintptr_t>(bytes.data()));
  EXPECT_EQ(memory.find(bytes.data() + 16, start), nullptr);
  EXPECT_EQ(memory.describe(bytes.data() + 20), "'x' at byte 20 of 16");
  EXPECT_EQ(memory.describe(bytes.data() + 60), "'y' at byte -4 of 16");
  EXPECT_EQ(memory.describe(nullptr), "an address that is near no buffer");
}

TEST(SimMemory, RemembersWhatTheHostWrote) {
  std::vector<std::byte> bytes(4);
  SimMemory memory;
  memory.add("x", bytes.data(), 4, SimContents::Undefined);
  memory.markDefined(bytes.data() + 1, 2);
  uintptr_t start = 0;
  EXPECT_EQ(memory.find(bytes.data(), start)->defined,
            (std::vector<uint8_t>{0, 1, 1, 0}));
  memory.remove(bytes.data());
  EXPECT_EQ(memory.find(bytes.data(), start), nullptr);
}

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

static std::string errorOf(const std::string &object) {
  return std::string(
      SimModule::open(
          absl::MakeConstSpan(reinterpret_cast<const uint8_t *>(object.data()),
                              object.size()),
          "k.cu")
          .status()
          .message());
}

TEST(SimModule, RefusesWhatIsNoModule) {
  const std::string trailer(simTrailer);
  EXPECT_THAT(errorOf(""), HasSubstr("expected kernels compiled for the sim"));
  EXPECT_THAT(errorOf("no trailer at its end"),
              HasSubstr("expected kernels compiled for the simulator"));
  EXPECT_THAT(errorOf(std::string("\xff\0\0\0\0\0\0\0", 8) + trailer),
              HasSubstr("expected kernels compiled for the simulator"));
  EXPECT_THAT(errorOf("what?\n" + std::string("\6\0\0\0\0\0\0\0", 8) + trailer),
              HasSubstr("expected an address and its place, got 'what?'"));
  EXPECT_THAT(errorOf("not ELF" + std::string(8, '\0') + trailer),
              HasSubstr("expected a shared object that can be opened"));
}
