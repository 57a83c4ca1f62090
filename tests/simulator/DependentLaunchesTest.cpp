//===- DependentLaunchesTest.cpp - Launches that begin early --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each chain of Dependent.cu is run with its bug, which the checked simulator
// must name and the fast one must let show, and without, when its values are
// right in every schedule.
//
//===----------------------------------------------------------------------===//

#include "simulator/SimTensorMap.h"
#include "tests/simulator/Support.h"

#include <gtest/gtest.h>

#include <sstream>

using namespace llamac;

namespace {

struct Chain {
  const char *name;
  const char *error; ///< The error of the checked simulator.
  /// The result of the fast one, where a prologue runs before one launch only.
  enum { WrongValues, Error, Nothing } fast;
  const char *second = "secondLaunch";
};

constexpr const char *tooEarly = "dependent launch: reads ";

const Chain chains[] = {
    {"missingWait", "dependent launch: writes ", Chain::Error},
    {"readBeforeTheWait", tooEarly, Chain::WrongValues},
    {"wordReadBeforeTheWait", tooEarly, Chain::WrongValues, "secondByWords"},
    {"relaxedLoadBeforeTheWait", "dependent launch: reads as an atomic ",
     Chain::WrongValues},
    {"readOfTheFirst", tooEarly, Chain::Nothing},
    {"writeBeforeTheWait", "dependent launch: writes ", Chain::Nothing},
    {"copyOfTheFirst", tooEarly, Chain::Nothing},
    {"boxesBeforeTheWait", tooEarly, Chain::WrongValues},
    {"asyncCopyBeforeTheWait", tooEarly, Chain::WrongValues},
    {"oneThreadWaits", "dependent launch: ", Chain::Error},
};

void PrintTo(const Chain &chain, std::ostream *os) { *os << chain.name; }

constexpr int blocks = 40; // More than begin early.
constexpr int count = blocks * 64;

struct Memory {
  std::vector<float> out, a, b, weights;
};

/// A map of rows of 64 floats, a row a box.
SimTensorMap mapOf(const std::vector<float> &matrix) {
  SimTensorMap map;
  const absl::Status encoded = encodeSimTensorMap(
      matrix.data(), {4, 64, matrix.size() / 64, 256, 64, 1, 0}, map);
  EXPECT_TRUE(encoded.ok()) << encoded;
  return map;
}

absl::Status run(const Chain &chain, const std::string &suffix,
                 const SimOptions &options, Memory &memory,
                 bool cooperative = false) {
  // An earlier step left these values.
  memory.out.assign(count, -1);
  memory.a.assign(count, -2);
  memory.b.assign(count, -3);
  memory.weights.resize(count);
  for (int i = 0; i < count; ++i)
    memory.weights[i] = static_cast<float>(i % 31);
  Simulator simulator(options);
  simulator.memory().add("out", memory.out.data(), count * 4);
  simulator.memory().add("a", memory.a.data(), count * 4);
  simulator.memory().add("b", memory.b.data(), count * 4);
  simulator.memory().add("weights", memory.weights.data(), count * 4,
                         SimContents::ReadOnly);
  SimTensorMap bMap = mapOf(memory.b), weightMap = mapOf(memory.weights);
  std::vector<SimLaunch> launches(3);
  launches[0].kernel = "firstLaunch";
  launches[1].kernel = chain.second;
  launches[2].kernel = chain.name + suffix;
  launches[2].cooperative = cooperative;
  for (SimLaunch &launch : launches) {
    launch.grid.x = blocks;
    launch.block.x = 64;
    launch.sharedBytes = 512;
    launch.args = {memory.out.data(),     memory.a.data(), memory.b.data(),
                   memory.weights.data(), &bMap,           &weightMap};
    launch.dependent = true;
  }
  return simulator.run(testModule("Dependent.cu", options.checked), launches);
}

bool hasRightValues(const Memory &memory) {
  for (int i = 0; i < count; ++i)
    if (memory.out[i] != 5 * memory.weights[i] + 1)
      return false;
  return true;
}

std::vector<SimOptions> schedules(bool checked) {
  std::vector<SimOptions> all = testSchedules(checked);
  for (SimOptions &options : all)
    options.earlyDependents = true;
  return all;
}

/// Whether line `place`, "Dependent.cu:17", is marked for `name`.
bool isMarked(const std::string &place, const std::string &name) {
  std::istringstream text(readTestSource("Dependent.cu"));
  std::string line, chain;
  for (int number = 1; std::getline(text, line); ++number) {
    if (line.rfind("CHAIN(", 0) == 0)
      chain = line.substr(6, line.find(')') - 6);
    if (place == "Dependent.cu:" + std::to_string(number))
      return line.find("// caught") != std::string::npos && chain == name;
  }
  return false;
}

class DependentLaunches : public testing::TestWithParam<Chain> {};

TEST_P(DependentLaunches, BugsAreNamedByTheCheckedSimulator) {
  const Chain &chain = GetParam();
  for (const SimOptions &options : schedules(true)) {
    SCOPED_TRACE(describe(options));
    Memory memory;
    const absl::Status status = run(chain, "Bug", options, memory);
    ASSERT_FALSE(status.ok()) << "it was not caught";
    const std::string message(status.message());
    EXPECT_NE(message.find(chain.error), std::string::npos) << message;
    EXPECT_NE(message.find(std::string("(kernel ") + chain.name + "Bug, "),
              std::string::npos)
        << message;
    // An exit has no place in the source.
    if (const size_t colon = message.find(": dependent launch");
        colon != std::string::npos)
      EXPECT_TRUE(isMarked(message.substr(0, colon), chain.name)) << message;
  }
}

TEST_P(DependentLaunches, BugsShowInTheFastSimulatorAsFarAsItReorders) {
  const Chain &chain = GetParam();
  for (const SimOptions &options : schedules(false)) {
    SCOPED_TRACE(describe(options));
    Memory memory;
    const absl::Status status = run(chain, "Bug", options, memory);
    EXPECT_EQ(status.ok(), chain.fast != Chain::Error) << status;
    if (chain.fast != Chain::Error)
      EXPECT_EQ(hasRightValues(memory), chain.fast == Chain::Nothing);
  }
}

TEST_P(DependentLaunches, RunCleanWhenRepaired) {
  for (const bool checked : {false, true})
    for (const SimOptions &options : schedules(checked)) {
      SCOPED_TRACE(describe(options));
      Memory memory;
      const absl::Status status = run(GetParam(), "Fixed", options, memory);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(hasRightValues(memory));
    }
}

INSTANTIATE_TEST_SUITE_P(Sim, DependentLaunches, testing::ValuesIn(chains),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

TEST(DependentLaunchesTogether, DoNotBeginEarly) {
  const Chain chain{"readBeforeTheWait", tooEarly, Chain::WrongValues};
  for (const bool checked : {false, true})
    for (const SimOptions &options : schedules(checked)) {
      SCOPED_TRACE(describe(options));
      Memory memory;
      const absl::Status status =
          run(chain, "Bug", options, memory, /*cooperative=*/true);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(hasRightValues(memory));
    }
}

/// A launch that is not dependent ends the chain: prologues after it may read
/// what was written before it.
TEST(DependentLaunchesEnd, AtALaunchThatIsNotDependent) {
  for (const SimOptions &options : schedules(true)) {
    SCOPED_TRACE(describe(options));
    Memory memory;
    memory.out.assign(count, 0);
    memory.a = memory.b = memory.out;
    memory.weights.assign(count, 3);
    Simulator simulator(options);
    for (auto *part : {&memory.out, &memory.a, &memory.b, &memory.weights})
      simulator.memory().add("part", part->data(), count * 4);
    SimTensorMap bMap = mapOf(memory.b), weightMap = mapOf(memory.weights);
    std::vector<SimLaunch> launches(3);
    launches[0].kernel = "firstLaunch";
    launches[1].kernel = "secondLaunch";
    launches[2].kernel = "readOfTheFirstBug";
    for (SimLaunch &launch : launches) {
      launch.grid.x = blocks;
      launch.block.x = 64;
      launch.args = {memory.out.data(),     memory.a.data(), memory.b.data(),
                     memory.weights.data(), &bMap,           &weightMap};
    }
    launches[2].dependent = true;
    const absl::Status status =
        simulator.run(testModule("Dependent.cu", true), launches);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(memory.out[0], 6 + 7 + 3);
  }
}

} // namespace
