//===- SeededBugsTest.cpp - The simulator finds seeded bugs ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each kernel of the files SeededBugs*.cu with its bug: the checker names the
// kind and a line that the source marks. And without: it runs clean and gives
// the right values. This is what keeps the checker honest.
//
//===----------------------------------------------------------------------===//

#include "simulator/SimTensorMap.h"
#include "tests/simulator/Support.h"

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

using namespace llamac;

/// The value that a clean run leaves in out[i].
using Expected = float (*)(const std::vector<float> &in, int i);

static float copied(const std::vector<float> &in, int i) { return in[i]; }
static float mirrored(const std::vector<float> &in, int i) {
  return in[i / 64 * 64 + 63 - i % 64];
}
static float mirrored32(const std::vector<float> &in, int i) {
  return i < 32 ? in[31 - i] : 0;
}
static float neighbour(const std::vector<float> &in, int i) {
  return in[i ^ 1];
}
static float lane15(const std::vector<float> &in, int i) {
  return in[i % 32 < 16 ? i / 32 * 32 + 15 : i];
}
static float itsIndex(const std::vector<float> &, int i) {
  return static_cast<float>(i);
}
/// How many of the 64 values are that of `i`.
static float itsCount(const std::vector<float> &in, int i) {
  return static_cast<float>(std::count(in.begin(), in.end(), in[i]));
}
static float one(const std::vector<float> &, int) { return 1; }
static float first60(const std::vector<float> &in, int i) {
  return i < 60 ? in[i] : 0;
}
static float firstHalfThenSums(const std::vector<float> &in, int i) {
  return i < 128 ? in[i] : in[i - 128] + in[i - 64];
}
static float product(const std::vector<float> &in, int i) {
  float sum = 0;
  for (int k = 0; k < 16; ++k)
    sum += in[i / 8 * 16 + k] * in[256 + k * 8 + i % 8];
  return sum;
}
/// Bits of small integers, of which lane l gets word l.
static float laneBits(const std::vector<float> &, int i) {
  return static_cast<float>(i);
}

struct SeededBug {
  const char *name;
  /// The beginnings that the error may have, separated by '|'; empty: it shows
  /// as wrong values. A thread that is early may find uninitialised bytes or a
  /// copy under way before it finds a race.
  const char *kinds;
  Expected expected;
  uint32_t blocks = 1;
  uint32_t threads = 64;
  int rows = 64;    ///< Floats of `in`, and `rows` of the launch.
  int outputs = 64; ///< Floats of `out`.
  uint32_t sharedBytes = 0;
  const char *file = "SeededBugs.cu";
  uint32_t cluster = 1;
  bool cooperative = false;
  /// In some schedules it shows as wrong values only.
  bool mayHide = false;
};

static void PrintTo(const SeededBug &test, std::ostream *os) {
  *os << test.name;
}

/// The sums of rows of all tiles; see SeededBugsHopper.cu.
static float productsOfTiles(const std::vector<float> &in, int i) {
  const int m = i % 4096 / 64, n = i % 64;
  float sum = 0;
  for (size_t tile = 0; tile < in.size() / 2048; ++tile)
    for (int k = 0; k < 32; ++k)
      sum += in[tile * 2048 + n * 32 + k];
  return static_cast<float>(m % 5) * sum + static_cast<float>(in.size() / 2048);
}

static SeededBug hopper(const char *name, const char *kinds,
                        uint32_t cluster = 1) {
  const int tiles = 5;
  return {name,
          kinds,
          productsOfTiles,
          cluster,
          256,
          tiles * 2048,
          static_cast<int>(cluster) * 4096,
          32768,
          "SeededBugsHopper.cu",
          cluster};
}

static float ofNextBlock(const std::vector<float> &in, int i) {
  return in[(i + 64) % 192];
}
/// The result of four steps of SeededBugsWords.cu.
static float sumOfSteps(const std::vector<float> &in, int i) {
  return 4 * ofNextBlock(in, i) + 6;
}

/// The value of a thread's neighbour, then its own.
static float ofNextBlockThenOwn(const std::vector<float> &in, int i) {
  return i < 192 ? ofNextBlock(in, i) : in[i - 192];
}

static SeededBug resident(const char *name, const char *kinds,
                          Expected expected = ofNextBlock, int outputs = 192) {
  return {.name = name,
          .kinds = kinds,
          .expected = expected,
          .blocks = 3,
          .rows = 192,
          .outputs = outputs,
          .file = "SeededBugsWords.cu",
          .cooperative = true};
}

static SeededBug mayHide(SeededBug bug) {
  bug.mayHide = true;
  return bug;
}

static const SeededBug seededBugs[] = {
    {"missingBarrier", "race|uninitialised", mirrored},
    {"earlyReuse", "race", mirrored, 1, 64, 192, 192},
    {"divergentBarrier", "divergent barrier", copied},
    {"barrierInBothBranches", "divergent barrier", mirrored},
    {"wrongBarrierCount", "divergent barrier", mirrored},
    {"doubleArrival", "double arrival", mirrored32, 1, 64, 64, 32},
    {"wrongBarrier", "race|uninitialised", mirrored},
    {"divergentShuffle", "divergent warp collective", neighbour},
    {"shuffleFromOutside", "a shuffle reads lane 16", lane15},
    {"missingSyncWarp", "race|uninitialised", neighbour},
    {"shuffleAsFence", "race", neighbour},
    {"wrongFragment", "", product, 1, 32, 384, 128},
    {"fragmentOfUnwrittenRows", "uninitialised", laneBits, 1, 32, 32, 32},
    {"sharedReadBeyond", "out of bounds", mirrored},
    {"sharedWriteBeyond", "out of bounds", mirrored, 1, 64, 64, 64, 256},
    {"globalReadBeyond", "out of bounds", copied, 2, 64, 100, 100},
    {"globalWriteBeyond", "out of bounds", itsIndex, 2, 64, 100, 100},
    {"offByOneTile", "out of bounds", copied, 1, 64, 128, 128},
    {"sharedUninitialised", "uninitialised", copied},
    {"globalUninitialised", "uninitialised", copied},
    {"writeToInput", "read-only", itsIndex},
    {"crossBlockWrite", "race", copied, 2, 64, 128, 128},
    {"plainCounter", "race", one, 2, 64, 128, 128},
    {"plainHistogram", "race", itsCount},
    {"histogramNotCleared", "uninitialised", itsCount},
    {"histogramClearedLate", "race|uninitialised", itsCount},
    {"histogramReadEarly", "race", copied},
    {"sharedAtomicOnGlobal", "out of bounds", copied},
    {"lastArriverWithoutFence", "race", firstHalfThenSums, 2, 64, 128, 192},
    {"lastArriverWithFence", "race", firstHalfThenSums, 2, 64, 128, 192},
    {"lastArriverWithoutBarrier", "race", firstHalfThenSums, 2, 64, 128, 192},
    {"readOnlyLoadOfOutput", "race", mirrored},
    {"missingCopyWait", "copy under way", mirrored},
    {"missingCommit", "copy under way", mirrored},
    {"wrongWaitGroup", "copy under way", mirrored, 1, 64, 256, 256},
    {"earlyRelease", "race|copy under way", mirrored, 1, 64, 256, 256},
    {"missingBarrierAfterCopy", "race|copy under way|uninitialised", mirrored},
    {"misalignedCopy", "misaligned", first60},
    {"misalignedLoad", "misaligned", first60},
    {"misalignedSharedStore", "misaligned", first60},
    {"copyBeyondInput", "out of bounds", copied, 2, 64, 100, 100},
    {"prefetchBeyondInput", "out of bounds", copied},
    {"prefetchOfCopied", "wasted", copied},
    {"wrongPhase", "copy under way|uninitialised|race|deadlock", mirrored, 1,
     64, 256, 256},
    {"missingExpect", "copy under way|uninitialised", mirrored, 1, 64, 256,
     256},
    {"stageNotReleased", "race|copy under way", mirrored, 1, 64, 256, 256},
    {"barrierNotSetUp", "race|uninitialised", mirrored, 1, 64, 256, 256},
    {"arrivalsTooFew", "deadlock", copied},
    hopper("missingProductFence", "a missing wgmmaFence"),
    hopper("fenceBeforeChange", "a missing wgmmaFence"),
    hopper("sumsReadEarly", "a product under way"),
    hopper("sumsWrittenEarly", "a product under way"),
    hopper("operandsChangedEarly", "a product under way"),
    hopper("stageFreedEarly", "copy under way|race"),
    hopper("wrongParity", "copy under way|race|deadlock"),
    hopper("tooFewBytes", "copy under way|race|deadlock"),
    hopper("tooManyBytes", "deadlock"),
    hopper("noSwizzle", ""),
    hopper("wrongStride", ""),
    hopper("otherOperand", "divergent warpgroup product|copy under way"),
    hopper("startInsidePattern", "misaligned"),
    hopper("productNotAwaited", "a product under way|a missing wgmmaFence"),
    hopper("missingTensorWait", "uninitialised|copy under way|race"),
    hopper("misalignedStage", "misaligned"),
    hopper("noClusterSync", "uninitialised|race", 2),
    hopper("freedHereOnly", "race|copy under way|double arrival|deadlock", 2),
    hopper("endsEarly", "the block ", 2),
    hopper("oneBlockWaits", "double arrival", 2),
    hopper("unpackedWithoutFence", "a missing fenceProxyAsync"),
    hopper("fenceBeforeUnpacking", "a missing fenceProxyAsync"),
    hopper("oneLaneFences", "a missing fenceProxyAsync"),
    hopper("packedFreedEarly", "race|copy under way"),
    hopper("operandFreedEarly", "race"),
    resident("wordNotPolled", "", sumOfSteps),
    resident("wordWrittenTwice", "overwritten word", sumOfSteps),
    mayHide(resident("wordsInOneSet", "word not cleared yet|word cleared early",
                     sumOfSteps)),
    resident("noBarrierBeforeClear", "word not cleared yet|word cleared early",
             sumOfSteps),
    resident("noBlockBarrierBeforeClear",
             "word not cleared yet|word cleared early", sumOfSteps),
    resident("wordOfTheOtherSet", "deadlock", sumOfSteps),
    resident("wordReadLate", "word not cleared yet|word cleared early",
             sumOfSteps),
    resident("wordWrittenBeforeItsClear",
             "word not cleared yet|word cleared early"),
    resident("wordReadBehindNoBarrier", "word not cleared yet"),
    resident("wordClearedByItsReader", "word cleared early"),
    resident("wordClearedAfterAnAnswer", "word cleared early"),
    resident("wordClearedByTwo", "word cleared early"),
    resident("keyReadBeforeItsAppend", "race", ofNextBlockThenOwn, 384),
    resident("plainValueInWord", "race"),
    resident("plainReadOfWord", "race"),
    resident("plainReadBeforeTheWord", "race"),
    resident("plainClear", "race"),
    resident("readOnlyLoadOfWord", "race: loadReadOnly"),
    resident("misalignedWordLoad", "misaligned"),
    resident("misalignedWordStore", "misaligned"),
    resident("wordBeyondItsBuffer", "out of bounds"),
    resident("wordNeverCleared", "uninitialised"),
    resident("stopsItself", "trap: the kernel stops itself"),
};

static bool runTogether(const SeededBug &test) {
  return test.cooperative || test.cluster > 1;
}

/// Runs one kernel on small integers; they are exact in every format.
static absl::Status run(const SeededBug &test, const std::string &suffix,
                        const SimOptions &options, std::vector<float> &in,
                        std::vector<float> &out) {
  in.resize(static_cast<size_t>(test.rows));
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = static_cast<float>((i * 7 + i / 9) % 23) - 11;
  // A guard keeps what the fast flavour writes out of bounds in the vector.
  out.assign(static_cast<size_t>(test.outputs) + 256, -77);
  std::vector<uint32_t> flags(test.cooperative ? 64 + 512 : 16);
  // Boxes of 32 rows of 64 elements of two bytes, swizzled.
  SimTensorMap map;
  if (test.file == std::string("SeededBugsHopper.cu")) {
    const absl::Status encoded = encodeSimTensorMap(
        in.data(), {2, 64, in.size() / 32, 128, 64, 32, 128}, map);
    if (!encoded.ok())
      return encoded;
  }
  Simulator simulator(options);
  simulator.memory().add("in", in.data(), in.size() * 4, SimContents::ReadOnly);
  simulator.memory().add("out", out.data(), test.outputs * 4,
                         SimContents::Undefined);
  simulator.memory().add("flags", flags.data(), flags.size() * 4);
  SimLaunch launch;
  launch.kernel = test.name + suffix;
  launch.grid.x = test.blocks;
  launch.block.x = test.threads;
  launch.sharedBytes = test.sharedBytes;
  launch.cluster = test.cluster;
  launch.cooperative = test.cooperative;
  launch.args = {out.data(), in.data(), flags.data()};
  if (map.mark)
    launch.args.push_back(&map);
  launch.rows = test.rows;
  return simulator.run(testModule(test.file, options.checked), launch);
}

static bool hasRightValues(const SeededBug &test, const std::vector<float> &in,
                           const std::vector<float> &out) {
  for (int i = 0; i < test.outputs; ++i)
    if (out[i] != test.expected(in, i))
      return false;
  return true;
}

/// The lines of `file` that may be blamed for the bug of `name`: those with a
/// mark, and those below a comment that is one.
static std::set<std::string> markedPlaces(const std::string &name,
                                          const std::string &file) {
  std::set<std::string> places;
  std::istringstream text(readTestSource(file));
  std::string line, kernel, below;
  auto isNamed = [&](const std::string &names) {
    return (names + " ").find(" " + name + " ") != std::string::npos;
  };
  for (int number = 1; std::getline(text, line); ++number) {
    if (line.rfind("KERNEL(", 0) == 0)
      kernel = line.substr(7, line.find(')') - 7);
    const size_t comment = line.find("// ");
    const bool isComment =
        comment != std::string::npos && line.find_first_not_of(' ') == comment;
    const size_t mark = line.find("// caught");
    const size_t markBelow = line.find("// caught below by");
    if (markBelow != std::string::npos) {
      below = line.substr(markBelow + 18);
      continue;
    }
    if (isComment && !below.empty()) {
      below += line.substr(comment + 2);
      continue;
    }
    bool isMarked = isNamed(below);
    below.clear();
    if (mark != std::string::npos) {
      const std::string by = line.substr(mark + 9);
      isMarked |= by.empty() ? kernel == name : isNamed(by);
    }
    if (isMarked)
      places.insert(file + ":" + std::to_string(number));
  }
  return places;
}

class SeededBugs : public testing::TestWithParam<SeededBug> {};

TEST_P(SeededBugs, AreCaughtAndNamed) {
  const SeededBug &test = GetParam();
  std::vector<float> in, out;
  bool isCaught = false;
  for (const SimOptions &options : testSchedules(true, runTogether(test))) {
    SCOPED_TRACE(describe(options));
    const absl::Status status = run(test, "Bug", options, in, out);
    if (!*test.kinds || (test.mayHide && status.ok())) {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_FALSE(hasRightValues(test, in, out));
      continue;
    }
    isCaught = true;
    ASSERT_FALSE(status.ok()) << "it was not caught";
    const std::string message(status.message());
    const size_t colon = message.find(": ");
    ASSERT_NE(colon, std::string::npos) << message;
    // Race messages of an inlined helper end in where it was called from.
    const std::string place = message.substr(0, colon);
    EXPECT_THAT(markedPlaces(test.name, test.file), testing::Contains(place))
        << message;
    const std::string what = message.substr(colon + 2);
    bool named = false;
    std::istringstream kinds(test.kinds);
    for (std::string kind; std::getline(kinds, kind, '|');)
      named |= what.rfind(kind, 0) == 0;
    EXPECT_TRUE(named) << message;
    EXPECT_NE(message.find(std::string("(kernel ") + test.name + "Bug, block "),
              std::string::npos)
        << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_EQ(isCaught, *test.kinds != 0);
}

TEST_P(SeededBugs, RunCleanWhenRepaired) {
  const SeededBug &test = GetParam();
  std::vector<float> in, out;
  for (const bool checked : {false, true})
    for (const SimOptions &options :
         testSchedules(checked, runTogether(test))) {
      SCOPED_TRACE(describe(options));
      const absl::Status status = run(test, "Fixed", options, in, out);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_TRUE(hasRightValues(test, in, out));
    }
}

INSTANTIATE_TEST_SUITE_P(Sim, SeededBugs, testing::ValuesIn(seededBugs),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
