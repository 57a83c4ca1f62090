//===- WordsTest.cpp - Launches whose blocks run together -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of Words.cu, which pass words between blocks: right ones, ones that
// are right when blocks are about as fast as each other, and ones that never
// end. SeededBugsWords.cu has what the checker finds.
//
//===----------------------------------------------------------------------===//

#include "tests/simulator/Support.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

using namespace llamac;
using testing::Each;
using testing::HasSubstr;

namespace {

/// WordMemory of a launch of three blocks.
struct WordMemory {
  DeviceVector<uint32_t> out{1024, 0u}, words{16384, 0u}, flags{4, 0u};

  absl::Status run(const SimOptions &options, const char *kernel, int rows = 0,
                   uint32_t threads = 64) {
    Simulator simulator(options);
    SimLaunch launch{kernel, {3}, {threads}};
    launch.args = {output(simulator, out), words.data(), flags.data()};
    simulator.memory().add("words", words.data(), words.bytes());
    simulator.memory().add("flags", flags.data(), flags.bytes());
    launch.rows = rows;
    launch.cooperative = true;
    return simulator.run(testModule("Words.cu", options.checked), launch);
  }
  /// The first `count` of `out`.
  std::vector<uint32_t> results(size_t count = 192) const {
    std::vector<uint32_t> values = out.values();
    values.resize(count);
    return values;
  }
};

} // namespace

static std::vector<SimOptions> everySchedule() {
  std::vector<SimOptions> all = testSchedules(false, /*together=*/true);
  for (const SimOptions &options : testSchedules(true, /*together=*/true))
    all.push_back(options);
  return all;
}

/// The place in Words.cu with the comment `mark`.
static std::string placeOf(const std::string &mark) {
  std::istringstream text(readTestSource("Words.cu"));
  std::string line;
  for (int number = 1; std::getline(text, line); ++number)
    if (line.find("// " + mark) != std::string::npos)
      return "Words.cu:" + std::to_string(number);
  return "no such place";
}

TEST(SimWords, VectorsOfEverySizeReachEveryThread) {
  constexpr int steps = 5;
  uint32_t expected = 0;
  for (uint32_t step = 1; step <= steps; ++step)
    for (uint32_t i = 0; i < 36; ++i)
      expected += 1000 * step + i;
  for (const SimOptions &options : everySchedule()) {
    SCOPED_TRACE(describe(options));
    WordMemory memory;
    ASSERT_EQ(memory.run(options, "allToAll", steps), absl::OkStatus());
    EXPECT_THAT(memory.results(), Each(expected));
    EXPECT_THAT(memory.words.values(), Each(0u));
  }
}

TEST(SimWords, AVectorComesWordByWord) {
  bool isTorn = false;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const SimOptions options{.schedule = SimSchedule::Random, .seed = seed};
    WordMemory memory;
    ASSERT_EQ(memory.run(options, "firstOfFour"), absl::OkStatus());
    const std::vector<uint32_t> seen = memory.results();
    isTorn |= std::find(seen.begin(), seen.end(), 0u) != seen.end();
    WordMemory right;
    ASSERT_EQ(right.run(options, "allOfFour"), absl::OkStatus());
    EXPECT_THAT(right.results(), Each(4u));
  }
  EXPECT_TRUE(isTorn);
}

// A kernel that is right only where blocks are about as fast as each other.
TEST(SimWords, ABlockThatStandsStillIsOvertakenByThoseThatDoNotWait) {
  constexpr int steps = 64;
  auto isRight = [](SimSchedule schedule, uint64_t seed) {
    WordMemory memory;
    const absl::Status status =
        memory.run({.schedule = schedule, .seed = seed}, "notWaitedFor", steps);
    const std::vector<uint32_t> sums = memory.results();
    return status.ok() &&
           std::count(sums.begin(), sums.end(), steps * (steps - 1) / 2) == 192;
  };
  EXPECT_TRUE(isRight(SimSchedule::Forward, 0));
  EXPECT_TRUE(isRight(SimSchedule::Reverse, 0));
  for (uint64_t seed = 0; seed < 6; ++seed)
    EXPECT_TRUE(isRight(SimSchedule::Random, seed)) << seed;
  int wrong = 0;
  for (uint64_t seed = 0; seed < 6; ++seed)
    wrong += !isRight(SimSchedule::Stalled, seed);
  EXPECT_GT(wrong, 0) << "block 2 is one that stands still";
  EXPECT_LT(wrong, 6) << "blocks 0 and 1 are, too";
}

TEST(SimWords, ADeadlockSaysWhoPollsWhere) {
  const std::string there = placeOf("polled by blocks 0 and 2");
  const std::string here = placeOf("polled by block 1");
  const std::string barrier = placeOf("reached by block 1");
  for (const SimOptions &options : testSchedules(false, /*together=*/true)) {
    SCOPED_TRACE(describe(options));
    WordMemory memory;
    const std::string message(
        memory.run(options, "inVain", 0, /*threads=*/256).message());
    EXPECT_THAT(message, HasSubstr("deadlock: it polls at "));
    EXPECT_THAT(message, HasSubstr("polls at " + there +
                                   " for 'flags' at byte 8 of 16 (and 511 "
                                   "more)"));
    EXPECT_THAT(message, HasSubstr("polls at " + here +
                                   " for 'words' at byte 20 of 65536"));
    EXPECT_THAT(message, HasSubstr("waits in barrier 0 with 255 of 256 threads "
                                   "at " +
                                   barrier + " (and 254 more)"));
    EXPECT_THAT(message, HasSubstr("thread 7 of block 1"));
  }
}

TEST(SimWords, AWordThatIsThereDoesNotHideADeadlock) {
  for (const SimOptions &options : testSchedules(false, /*together=*/true)) {
    SCOPED_TRACE(describe(options));
    WordMemory memory;
    EXPECT_THAT(std::string(memory.run(options, "halfInVain").message()),
                HasSubstr("deadlock: it polls at Words.cu:"));
  }
}

TEST(SimWords, ManyWordsThatAreThereAreNoDeadlock) {
  for (const SimOptions &options : everySchedule()) {
    SCOPED_TRACE(describe(options));
    // A block that stands still comes late enough to find them all.
    const bool isLong =
        options.schedule == SimSchedule::Stalled && !options.checked;
    const uint32_t count = isLong ? 12000 : 2048;
    WordMemory memory;
    ASSERT_EQ(memory.run(options, "manyWords", static_cast<int>(count)),
              absl::OkStatus());
    EXPECT_THAT(memory.results(), Each(count * (count + 1) / 2));
  }
}

TEST(SimWords, DoNotRaceWithOtherAtomics) {
  for (const SimOptions &options : everySchedule()) {
    SCOPED_TRACE(describe(options));
    WordMemory memory;
    ASSERT_EQ(memory.run(options, "atomicsOfEveryKind"), absl::OkStatus());
    EXPECT_THAT(memory.results(), Each(1u));
  }
}

// The checker would say that nothing orders the reads behind the clear.
TEST(SimWords, APollEndsWhenAWordIsCleared) {
  for (const SimOptions &options : testSchedules(false)) {
    SCOPED_TRACE(describe(options));
    WordMemory memory;
    ASSERT_EQ(memory.run(options, "untilCleared", true), absl::OkStatus());
    EXPECT_THAT(memory.results(), Each(1u));
  }
}

TEST(SimWords, APollForAClearThatNeverComesIsADeadlock) {
  WordMemory memory;
  EXPECT_THAT(std::string(memory.run({}, "untilCleared", false).message()),
              HasSubstr("deadlock: it polls at Words.cu:"));
}

TEST(SimWords, ALongExchangeIsNoDeadlock) {
  constexpr uint32_t steps = 6000;
  WordMemory memory;
  ASSERT_EQ(memory.run({}, "notWaitedFor", steps, /*threads=*/32),
            absl::OkStatus());
  EXPECT_EQ(memory.results()[0], steps * (steps - 1) / 2);
}
