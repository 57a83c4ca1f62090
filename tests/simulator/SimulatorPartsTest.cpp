//===- SimulatorPartsTest.cpp - Fibers, clocks, shadow, memory, modules ---===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of the simulator that need no compiled kernel; tests/simulator
// has the rest.
//
//===----------------------------------------------------------------------===//

#include "simulator/Clocks.h"
#include "simulator/Fiber.h"
#include "simulator/Shadow.h"
#include "simulator/SimCode.h"
#include "simulator/Simulator.h"
#include "simulator/Words.h"

#include "absl/strings/str_cat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace llamac;
using testing::ElementsAre;
using testing::HasSubstr;

//===----------------------------------------------------------------------===//
// Fibers
//===----------------------------------------------------------------------===//

namespace {

/// The state that the two sides of a switch share.
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

TEST(SimClocks, ThreadsAtABarrierKnowAllThatEachKnew) {
  sim::BarrierClocks clocks;
  clocks.add(knowing({0, 0, 5}), 0, 3);
  clocks.add(knowing({1, 0, 2}), 1, 7);
  EXPECT_EQ(clocks.end()->own, (sim::ClockVector{3, 7, 5}));
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
// Shadow
//===----------------------------------------------------------------------===//

/// Writes `size` bytes from `address` on at `clock`; the addresses of the cells
/// that this came to.
static std::vector<uintptr_t> write(sim::Shadow &shadow, uintptr_t address,
                                    uint64_t size, uint32_t clock) {
  std::vector<uintptr_t> addresses;
  shadow.forCells(address, size, [&](sim::Cell &cell, uintptr_t first) {
    cell.write = {.clock = clock};
    addresses.push_back(first);
  });
  return addresses;
}

static std::vector<uint32_t> clocks(sim::Shadow &shadow, uintptr_t address,
                                    uint64_t size) {
  std::vector<uint32_t> result;
  for (uintptr_t i = 0; i < size; ++i)
    result.push_back(shadow.lastWrite(address + i).clock);
  return result;
}

TEST(SimShadow, OneCellStandsForAWordUntilAByteOfItIsTouchedAlone) {
  sim::Shadow shadow;
  constexpr uintptr_t at = 64;
  using Addresses = std::vector<uintptr_t>;
  using Clocks = std::vector<uint32_t>;
  EXPECT_EQ(write(shadow, at, 12, 1), (Addresses{at, at + 4, at + 8}));
  EXPECT_EQ(write(shadow, at + 2, 3, 2), (Addresses{at + 2, at + 3, at + 4}));
  EXPECT_EQ(clocks(shadow, at - 1, 11),
            (Clocks{0, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1}));
  // The first two words have cells by byte, the third has one.
  EXPECT_EQ(write(shadow, at + 4, 8, 3),
            (Addresses{at + 4, at + 5, at + 6, at + 7, at + 8}));
  EXPECT_EQ(clocks(shadow, at, 8), (Clocks{1, 1, 2, 2, 3, 3, 3, 3}));
  // All of the second is the same again.
  EXPECT_EQ(write(shadow, at + 4, 4, 4), (Addresses{at + 4}));
}

TEST(SimShadow, EachByteOfASplitWordKeepsTheReadsOfTheWord) {
  sim::Shadow shadow;
  auto countReads = [&](uintptr_t address, uint64_t size) {
    std::vector<size_t> counts;
    shadow.forCells(address, size, [&](sim::Cell &cell, uintptr_t) {
      counts.push_back(cell.moreReads ? cell.moreReads->count : 0);
    });
    return counts;
  };
  shadow.forCells(8, 4, [](sim::Cell &cell, uintptr_t) {
    cell.moreReads = std::make_unique<sim::Reads>();
    cell.moreReads->add(
        {.clock = 1}, [](const sim::Epoch &) { return false; }, false);
  });
  EXPECT_EQ(countReads(8, 4), (std::vector<size_t>{1}));
  EXPECT_EQ(countReads(9, 1), (std::vector<size_t>{1}));
  EXPECT_EQ(countReads(8, 4), (std::vector<size_t>{1, 1, 1, 1}))
      << "what has more reads stays apart";
}

TEST(SimShadow, VisitsEveryByte) {
  sim::Shadow shadow;
  write(shadow, 4, 4, 1);
  write(shadow, 9, 1, 2);
  std::vector<uintptr_t> ones, twos;
  shadow.forEachByte([&](const sim::Cell &cell, uintptr_t address) {
    if (cell.write.clock)
      (cell.write.clock == 1 ? ones : twos).push_back(address);
  });
  EXPECT_EQ(ones, (std::vector<uintptr_t>{4, 5, 6, 7}));
  EXPECT_EQ(twos, (std::vector<uintptr_t>{9}));
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// The reads of the words `words`, as "THREAD:WORDS@SITE".
static std::vector<std::string> reads(sim::WordReaders &readers,
                                      uint32_t words) {
  std::vector<std::string> result;
  readers.forReads(words, [&](uint32_t thread, sim::WordMark &mark) {
    result.push_back(absl::StrCat(thread, ":", mark.words(), "@", mark.site()));
  });
  return result;
}

TEST(SimWordMarks, OneStandsForTheLastReadOfAllWordsByAThread) {
  sim::WordReaders readers;
  readers.add(4, 1, 0xf, 7, 3);
  readers.add(4, 3, 0x3, 7, 3);
  readers.add(4, 3, 0x4, 7, 3);
  readers.add(4, 1, 0xf, 9, 2);
  EXPECT_FALSE(readers.isByWord);
  EXPECT_THAT(reads(readers, 0xf), ElementsAre("1:15@2", "3:7@3"));
  EXPECT_THAT(reads(readers, 0x8), ElementsAre("1:15@2"));
  readers.forReads(0x1, [](uint32_t, sim::WordMark &mark) { mark.remove(1); });
  EXPECT_THAT(reads(readers, 0x1), ElementsAre());
  EXPECT_THAT(reads(readers, 0xf), ElementsAre("1:14@2", "3:6@3"));
}

TEST(SimWordMarks, AreKeptByWordOnceReadsOfAThreadDiffer) {
  sim::WordReaders readers;
  readers.add(2, 0, 0x3, 5, 1);
  readers.add(2, 1, 0xf, 5, 1);
  readers.add(2, 0, 0x2, 6, 1);
  EXPECT_THAT(reads(readers, 0xf), ElementsAre("0:1@1", "0:2@1", "1:1@1",
                                               "1:2@1", "1:4@1", "1:8@1"));
  std::vector<uint32_t> unknown;
  auto findUnknown = [&](uint32_t word) {
    readers.forReads(word, [&](uint32_t thread, sim::WordMark &mark) {
      if (mark.isBehind(5))
        unknown.push_back(10 * thread + word);
    });
  };
  findUnknown(1);
  findUnknown(2);
  EXPECT_THAT(unknown, ElementsAre(2)) << "the second read of thread 0";
  // Reads at one clock in two places are two.
  sim::WordReaders places;
  places.add(1, 0, 0x1, 5, 1);
  places.add(1, 0, 0x2, 5, 2);
  EXPECT_THAT(reads(places, 0xf), ElementsAre("0:1@1", "0:2@2"));
}

TEST(SimWordMarks, CompareClocksBeyondTheirBits) {
  constexpr uint32_t round = 1u << 20;
  const sim::WordMark mark(round - 1, 1, 0);
  EXPECT_TRUE(mark.isBehind(round - 2));
  EXPECT_FALSE(mark.isBehind(round - 1));
  EXPECT_FALSE(mark.isBehind(round + 5));
  EXPECT_TRUE(sim::WordMark(round + 1, 1, 0).isBehind(round - 1));
}

TEST(SimWords, AreFoundWhereTheyWereAskedFor) {
  sim::Words words;
  EXPECT_EQ(words.find(4096), nullptr);
  sim::WordQuad &quad = words.at(4096 + 20);
  EXPECT_EQ(words.find(4096 + 16), &quad);
  EXPECT_EQ(words.find(4096 + 31), &quad);
  EXPECT_NE(words.find(4096 + 32), &quad);
  EXPECT_EQ(words.find(8192), nullptr);
  quad.written[1].clock = 3;
  std::vector<uintptr_t> stores;
  words.forEachStore([&](const sim::Epoch &, uintptr_t address) {
    stores.push_back(address);
  });
  EXPECT_THAT(stores, ElementsAre(4096 + 20));
}

TEST(SimWords, HaveSoManyPlacesOfTheirReads) {
  sim::Words words;
  const std::vector<char> code(300);
  EXPECT_EQ(words.numberOf(&code[0]), 1U);
  EXPECT_EQ(words.numberOf(&code[1]), 2U);
  EXPECT_EQ(words.numberOf(&code[0]), 1U);
  for (const char &site : code)
    words.numberOf(&site);
  EXPECT_EQ(words.siteOf(sim::WordMark(1, 1, words.numberOf(&code[254]))),
            &code[254]);
  EXPECT_EQ(words.siteOf(sim::WordMark(1, 1, words.numberOf(&code[255]))),
            nullptr)
      << "an unknown place";
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

TEST(SimModule, RefusesOtherFiles) {
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
