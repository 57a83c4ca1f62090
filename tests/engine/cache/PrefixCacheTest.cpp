//===- PrefixCacheTest.cpp - Keys and values of known beginnings ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/cache/PrefixCache.h"

#include "tests/TemporaryFolder.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <random>
#include <sys/stat.h>
#include <tuple>
#include <utility>
#include <vector>

namespace llamac {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int64_t pageTokens = 4;

/// Pages of 4 tokens, a context of 24 tokens, and 4 sequences.
static schema::KvLayoutT layout(std::vector<schema::KvGroup> groups) {
  schema::KvLayoutT kv;
  kv.pageTokens = pageTokens;
  kv.pageBytes = 64;
  kv.pagesPerSequence = 6;
  kv.maxSequences = 4;
  kv.groups = std::move(groups);
  return kv;
}

static schema::KvLayoutT allKeys() { return layout({schema::KvGroup(0, 6)}); }

/// Beside all keys a window of 5 in rings of 2 pages, for steps of 4 rows.
static schema::KvLayoutT withWindow() {
  return layout({schema::KvGroup(0, 6), schema::KvGroup(5, 2)});
}

static Tokens counted(int32_t first, size_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

/// A model of what kernels do with the pages: each holds the tokens it was
/// written with, a key stands for all tokens up to its own.
class Sequences : public PageMemory {
public:
  Sequences(const schema::KvLayoutT &layout, int64_t pages,
            const std::string &file = "")
      : windows(windowsOf(layout)), cache(layout, pages), prefixes(cache) {
    if (!file.empty())
      EXPECT_TRUE(prefixes.open(file, "keys", *this).ok());
  }

  /// A key is as many tokens as it has, and these.
  uint64_t pageBytes(size_t /*group*/) const override {
    return pageTokens * sizeof(KeyBytes);
  }

  absl::Status read(size_t group, int32_t page,
                    std::vector<uint8_t> &bytes) override {
    for (int64_t i = 0; i < pageTokens; ++i) {
      const Tokens &key = keys[{group, page, i}];
      KeyBytes from = {static_cast<int32_t>(key.size())};
      std::ranges::copy(key, from.begin() + 1);
      const auto *first = reinterpret_cast<const uint8_t *>(from.data());
      bytes.insert(bytes.end(), first, first + sizeof(from));
    }
    return absl::OkStatus();
  }

  absl::Status write(size_t group, int32_t page,
                     absl::Span<const uint8_t> bytes) override {
    EXPECT_EQ(bytes.size(), pageBytes(group));
    for (int64_t i = 0; i < pageTokens; ++i) {
      KeyBytes to;
      std::memcpy(to.data(), bytes.data() + i * sizeof(to), sizeof(to));
      keys[{group, page, i}] = Tokens(to.begin() + 1, to.begin() + 1 + to[0]);
    }
    return absl::OkStatus();
  }

  /// Attaches like an engine.
  int64_t attach(int32_t slot, const Tokens &tokens) {
    const PrefixCacheCounts before = prefixes.counts();
    EXPECT_TRUE(prefixes.load(tokens).ok());
    const int64_t attached = prefixes.attach(slot, tokens);
    // Nothing is brought that is of no use.
    if (prefixes.counts().damaged == before.damaged)
      EXPECT_LE(prefixes.counts().loaded - before.loaded, attached);
    return attached;
  }

  /// Runs `tokens`, in steps of at most 4; false when there are no pages.
  /// Checks each key that a row sees.
  bool run(int32_t slot, const Tokens &tokens) {
    int64_t done = attach(slot, tokens);
    while (done < std::ssize(tokens)) {
      const int64_t end = std::min<int64_t>(done + 4, std::ssize(tokens));
      const bool hasRoom = cache.hasRoom({{slot, end}});
      EXPECT_EQ(cache.reserve({slot, end}).ok(), hasRoom);
      if (!hasRoom)
        return false;
      for (int64_t i = done; i < end; ++i)
        for (size_t group = 0; group < windows.size(); ++group)
          keyAt(group, slot, i) =
              Tokens(tokens.begin(), tokens.begin() + i + 1);
      for (int64_t i = done; i < end; ++i)
        checkSeen(slot, tokens, i);
      done = end;
    }
    prefixes.keep(slot, tokens, done);
    return true;
  }

  std::vector<int64_t> windows;
  KvCache cache;
  PrefixCache prefixes;

private:
  using KeyBytes = std::array<int32_t, 1 + 24>;

  static std::vector<int64_t> windowsOf(const schema::KvLayoutT &layout) {
    std::vector<int64_t> windows;
    for (const schema::KvGroup &group : layout.groups)
      windows.push_back(group.window());
    return windows;
  }

  Tokens &keyAt(size_t group, int32_t slot, int64_t position) {
    const int32_t page = cache.row(group, slot)[position / pageTokens];
    return keys[{group, page, position % pageTokens}];
  }

  void checkSeen(int32_t slot, const Tokens &tokens, int64_t row) {
    for (size_t group = 0; group < windows.size(); ++group) {
      const int64_t window = windows[group];
      for (int64_t i = window ? std::max<int64_t>(row + 1 - window, 0) : 0;
           i <= row; ++i)
        ASSERT_EQ(keyAt(group, slot, i),
                  Tokens(tokens.begin(), tokens.begin() + i + 1))
            << "group " << group << ", row " << row << ", key " << i;
    }
  }

  std::map<std::tuple<size_t, int32_t, int64_t>, Tokens> keys;
};

TEST(PrefixCacheTest, ASequenceBeginsWithTheFullPagesOfAnother) {
  Sequences of(allKeys(), 0);
  const int32_t one = *of.cache.open();
  ASSERT_TRUE(of.run(one, counted(10, 11)));
  EXPECT_EQ(of.prefixes.size(), 2u);
  const int32_t two = *of.cache.open();
  EXPECT_EQ(of.prefixes.attach(two, counted(10, 11)), 8);
  EXPECT_EQ(of.cache.row(0, two)[1], of.cache.row(0, one)[1]);
  EXPECT_EQ(of.cache.freePages(0), 24 - 3);
  of.cache.close(one);
  EXPECT_EQ(of.cache.freePages(0), 24 - 2);
  EXPECT_EQ(of.prefixes.counts().asked, 22);
  EXPECT_EQ(of.prefixes.counts().found, 8);
}

TEST(PrefixCacheTest, TheLastTokenIsAlwaysComputed) {
  Sequences of(allKeys(), 0);
  const int32_t one = *of.cache.open(), two = *of.cache.open();
  ASSERT_TRUE(of.run(one, counted(10, 8)));
  EXPECT_EQ(of.prefixes.attach(two, counted(10, 8)), 4);
  of.cache.close(two);
  const int32_t three = *of.cache.open();
  EXPECT_EQ(of.prefixes.attach(three, counted(10, 9)), 8);
  EXPECT_EQ(of.prefixes.attach(three, {}), 0);
}

TEST(PrefixCacheTest, TheSameTokensBehindOthersAreNotTheSame) {
  Sequences of(allKeys(), 0);
  Tokens first = counted(10, 8), second = counted(50, 4);
  second.insert(second.end(), first.begin() + 4, first.end());
  const int32_t one = *of.cache.open(), two = *of.cache.open();
  ASSERT_TRUE(of.run(one, first));
  second.push_back(1);
  EXPECT_EQ(of.prefixes.attach(two, second), 0);
}

TEST(PrefixCacheTest, WhatWasUsedLeastRecentlyGivesItsPagesBack) {
  Sequences of(allKeys(), 5);
  for (int32_t first : {100, 200}) {
    const int32_t slot = *of.cache.open();
    ASSERT_TRUE(of.run(slot, counted(first, 8)));
    of.cache.close(slot);
  }
  EXPECT_EQ(of.cache.freePages(0), 1);
  int32_t slot = *of.cache.open();
  EXPECT_EQ(of.prefixes.attach(slot, counted(100, 9)), 8);
  of.cache.close(slot);
  slot = *of.cache.open();
  // Two pages more: those of 200, its leaf first.
  ASSERT_TRUE(of.run(slot, counted(300, 7)));
  of.cache.close(slot);
  EXPECT_EQ(of.prefixes.counts().evicted, 1);
  slot = *of.cache.open();
  EXPECT_EQ(of.prefixes.attach(slot, counted(200, 9)), 4);
  of.cache.close(slot);
  slot = *of.cache.open();
  EXPECT_EQ(of.prefixes.attach(slot, counted(100, 9)), 8);
}

TEST(PrefixCacheTest, PagesThatASequenceHoldsAreNotGivenUp) {
  Sequences of(allKeys(), 3);
  const int32_t one = *of.cache.open(), two = *of.cache.open();
  ASSERT_TRUE(of.run(one, counted(10, 9)));
  EXPECT_FALSE(of.run(two, counted(50, 5)));
  of.cache.close(two);
  of.prefixes.clear();
  EXPECT_EQ(of.prefixes.size(), 2u);
  of.cache.close(one);
  of.prefixes.clear();
  EXPECT_EQ(of.prefixes.size(), 0u);
  EXPECT_EQ(of.cache.freePages(0), 3);
}

TEST(PrefixCacheTest, OfAWindowOnlyWhatTheNextTokenSeesMustBeThere) {
  Sequences of(withWindow(), 0);
  const int32_t one = *of.cache.open();
  ASSERT_TRUE(of.run(one, counted(10, 20)));
  // The ring has pages 3 and 4 of 20 tokens; those before were replaced.
  const int32_t two = *of.cache.open();
  EXPECT_EQ(of.prefixes.attach(two, counted(10, 21)), 20);
  ASSERT_TRUE(of.run(two, counted(10, 21)));
  const int32_t three = *of.cache.open();
  EXPECT_EQ(of.prefixes.attach(three, counted(10, 12)), 0);
  // A sequence that ends there leaves the pages that were missing.
  ASSERT_TRUE(of.run(three, counted(10, 11)));
  const int32_t four = *of.cache.open();
  EXPECT_EQ(of.prefixes.attach(four, counted(10, 11)), 8);
}

TEST(PrefixCacheTest, ASequenceThatHoldsAllPagesOfARingGoesOnInThem) {
  // Rings of 2 pages, and no page more.
  schema::KvLayoutT one = withWindow();
  one.maxSequences = 1;
  Sequences alone(one, 0);
  for (int32_t first : {100, 200}) {
    const int32_t slot = *alone.cache.open();
    ASSERT_TRUE(alone.run(slot, counted(first, 9)));
    // All pages of the ring are kept now, and the next one has to be had.
    ASSERT_TRUE(alone.cache.reserve({slot, 13}).ok());
    alone.cache.close(slot);
  }
}

TEST(PrefixCacheTest, OfTwoPagesWithTheSameKeysOneIsKept) {
  Sequences of(allKeys(), 6);
  const int32_t one = *of.cache.open(), two = *of.cache.open();
  // Both begin before either is known.
  ASSERT_TRUE(of.cache.reserve({two, 8}).ok());
  ASSERT_TRUE(of.run(one, counted(10, 8)));
  of.cache.close(one);
  of.prefixes.keep(two, counted(10, 8), 8);
  EXPECT_EQ(of.cache.freePages(0), 4);
  // hasRoom() says that there are the pages for a sequence that goes on.
  EXPECT_TRUE(of.cache.hasRoom({{two, 24}}));
  EXPECT_TRUE(of.cache.reserve({two, 24}).ok());
}

/// Runs `tokens` as the only sequence.
static int64_t runAlone(Sequences &of, const Tokens &tokens) {
  const int64_t before = of.prefixes.counts().found;
  const int32_t slot = *of.cache.open();
  EXPECT_TRUE(of.run(slot, tokens));
  of.cache.close(slot);
  return of.prefixes.counts().found - before;
}

static constexpr uint64_t anySize = 1 << 30;

class PrefixCacheFileTest : public testing::Test {
protected:
  /// Makes the file that of a cache which has seen `tokens` alone.
  void saveAfter(const Tokens &tokens) {
    Sequences of(allKeys(), 0, file);
    runAlone(of, tokens);
    ASSERT_TRUE(of.prefixes.save(anySize).ok());
  }

  TemporaryFolder folder;
  std::string file = folder.file("prefixes");
};

TEST_F(PrefixCacheFileTest, WhatWasSavedIsFoundAndTakesNoPageUntilThen) {
  {
    Sequences of(allKeys(), 0, file);
    runAlone(of, counted(10, 11));
    runAlone(of, counted(50, 23));
    ASSERT_TRUE(of.prefixes.save(anySize).ok());
  }
  Sequences of(allKeys(), 0, file);
  EXPECT_EQ(of.prefixes.size(), 7u);
  EXPECT_EQ(of.cache.freePages(0), of.cache.pages(0));
  EXPECT_EQ(runAlone(of, counted(10, 11)), 8);
  EXPECT_EQ(of.prefixes.counts().loaded, 8);
  EXPECT_EQ(of.cache.freePages(0), of.cache.pages(0) - 2);
  // Now it is in memory.
  EXPECT_EQ(runAlone(of, counted(10, 11)), 8);
  EXPECT_EQ(of.prefixes.counts().loaded, 8);
}

TEST_F(PrefixCacheFileTest, WhatIsGivenUpIsStillInTheFile) {
  ASSERT_NO_FATAL_FAILURE(saveAfter(counted(10, 23)));
  Sequences of(allKeys(), 6, file);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(runAlone(of, counted(10, 23)), 20);
    EXPECT_EQ(of.prefixes.counts().loaded, 20 * (round + 1));
    EXPECT_EQ(runAlone(of, counted(100 * round + 100, 24)), 0);
  }
}

TEST_F(PrefixCacheFileTest, AsMuchIsBroughtAsThereIsMemoryFor) {
  ASSERT_NO_FATAL_FAILURE(saveAfter(counted(10, 24)));
  Sequences of(allKeys(), 6, file);
  const int32_t one = *of.cache.open(), two = *of.cache.open();
  ASSERT_TRUE(of.run(one, counted(50, 16)));
  EXPECT_EQ(of.attach(two, counted(10, 24)), 8);
  EXPECT_EQ(of.cache.freePages(0) + of.cache.reclaimablePages(0), 0);
}

TEST_F(PrefixCacheFileTest, WhatDoesNotFitWithItsWindowIsNotBrought) {
  {
    Sequences of(withWindow(), 0, file);
    runAlone(of, counted(10, 24));
    ASSERT_TRUE(of.prefixes.save(anySize).ok());
  }
  Sequences of(withWindow(), 6, file);
  const int32_t one = *of.cache.open(), two = *of.cache.open();
  ASSERT_TRUE(of.run(one, counted(50, 12)));
  // Only the end of 24 tokens has its window in the file, and 3 pages are free.
  EXPECT_EQ(of.attach(two, counted(10, 24)), 0);
  EXPECT_EQ(of.prefixes.counts().loaded, 0);
  EXPECT_EQ(of.cache.freePages(0), 3);
}

TEST_F(PrefixCacheFileTest, TheMostRecentlyUsedAreSavedWhereNotAllFit) {
  uint64_t page = 0;
  {
    Sequences of(allKeys(), 0, file);
    page = of.pageBytes(0);
    for (int32_t first : {100, 200, 300})
      runAlone(of, counted(first, 8));
    runAlone(of, counted(100, 9));
    ASSERT_TRUE(of.prefixes.save(5 * page - 1).ok());
  }
  Sequences of(allKeys(), 0, file);
  EXPECT_EQ(of.prefixes.size(), 4u);
  EXPECT_EQ(runAlone(of, counted(200, 9)), 0);
  EXPECT_EQ(runAlone(of, counted(300, 9)), 8);
  EXPECT_EQ(runAlone(of, counted(100, 9)), 8);
}

TEST_F(PrefixCacheFileTest, AFileThatHasAllIsNotWrittenAgain) {
  {
    Sequences of(allKeys(), 0, file);
    ASSERT_TRUE(of.prefixes.save(anySize).ok());
    EXPECT_FALSE(std::filesystem::exists(file));
    runAlone(of, counted(10, 9));
    ASSERT_TRUE(of.prefixes.save(anySize).ok());
  }
  const auto number = [&] {
    struct stat info;
    EXPECT_EQ(stat(file.c_str(), &info), 0);
    return info.st_ino;
  };
  const auto written = number();
  Sequences of(allKeys(), 0, file);
  runAlone(of, counted(10, 9));
  ASSERT_TRUE(of.prefixes.save(anySize).ok());
  EXPECT_EQ(number(), written);
  runAlone(of, counted(10, 13));
  ASSERT_TRUE(of.prefixes.save(anySize).ok());
  EXPECT_NE(number(), written);
}

/// Changes a byte of a file.
static void damage(const std::string &file, uint64_t offset) {
  std::FILE *opened = std::fopen(file.c_str(), "r+b");
  ASSERT_TRUE(opened);
  std::fseek(opened, static_cast<long>(offset), SEEK_SET);
  const int byte = std::fgetc(opened);
  std::fseek(opened, static_cast<long>(offset), SEEK_SET);
  std::fputc(byte ^ 0x10, opened);
  std::fclose(opened);
}

TEST_F(PrefixCacheFileTest, DamagedPagesAreComputedAgainAndThatIsSaid) {
  ASSERT_NO_FATAL_FAILURE(saveAfter(counted(10, 13)));
  damage(file, 2 * 4096 + 5); // The second of three nodes is damaged.
  {
    Sequences of(allKeys(), 0, file);
    testing::internal::CaptureStderr();
    EXPECT_EQ(runAlone(of, counted(10, 13)), 4);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, testing::MatchesRegex(
                          "warning: .*prefixes:8192: checksum of the pages of "
                          "node 1: expected [0-9a-f]+, got [0-9a-f]+; what is "
                          "damaged is computed again\n"));
    EXPECT_EQ(of.prefixes.counts().damaged, 1);
    EXPECT_EQ(runAlone(of, counted(10, 13)), 12);
    ASSERT_TRUE(of.prefixes.save(anySize).ok());
  }
  Sequences of(allKeys(), 0, file);
  EXPECT_EQ(runAlone(of, counted(10, 13)), 12);
  EXPECT_EQ(of.prefixes.counts().damaged, 0);
}

TEST_F(PrefixCacheFileTest, AFileThatIsWrittenToMeanwhileIsDoneWithout) {
  ASSERT_NO_FATAL_FAILURE(saveAfter(counted(10, 13)));
  Sequences of(allKeys(), 0, file);
  std::filesystem::resize_file(file, 100);
  testing::internal::CaptureStderr();
  EXPECT_EQ(runAlone(of, counted(10, 13)), 0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("as when it was opened"));
}

struct Pool {
  const char *name;
  schema::KvLayoutT layout;
  int64_t pages; ///< 0: as many as all sequences can use.
};

void PrintTo(const Pool &pool, std::ostream *out) { *out << pool.name; }

class RandomPrefixes : public testing::TestWithParam<Pool> {};

/// Runs sequences of a few tokens that begin alike, `rounds` times begins or
/// ends one; returns how many ran.
static int64_t runRandomly(Sequences &of, std::mt19937 &random, int rounds) {
  std::vector<int32_t> open;
  int64_t ran = 0;
  for (int round = 0; round < rounds; ++round) {
    if (open.size() == 4 || (!open.empty() && random() % 3 == 0)) {
      const size_t which = random() % open.size();
      of.cache.close(open[which]);
      open.erase(open.begin() + static_cast<ptrdiff_t>(which));
      continue;
    }
    // There are two kinds of tokens, so that many sequences begin alike.
    Tokens tokens(1 + random() % 24);
    for (int32_t &token : tokens)
      token = random() % 8 == 0;
    const int32_t slot = *of.cache.open();
    if (of.run(slot, tokens)) {
      open.push_back(slot);
      ++ran;
    } else {
      of.cache.close(slot);
    }
  }
  for (int32_t slot : open)
    of.cache.close(slot);
  return ran;
}

/// When no sequence is open.
static void expectAllIsGivenUp(Sequences &of) {
  of.prefixes.clear();
  for (size_t group = 0; group < of.cache.groupCount(); ++group)
    EXPECT_EQ(of.cache.freePages(group), of.cache.pages(group));
}

TEST_P(RandomPrefixes, EachRowSeesTheKeysOfItsOwnTokens) {
  Sequences of(GetParam().layout, GetParam().pages);
  std::mt19937 random(11);
  EXPECT_GT(runRandomly(of, random, 3000), 300);
  EXPECT_GT(of.prefixes.counts().found, 300);
  expectAllIsGivenUp(of);
  EXPECT_EQ(of.prefixes.size(), 0u);
}

TEST_P(RandomPrefixes, ThatIsSoFromAFileThatMayBeDamagedToo) {
  const TemporaryFolder folder;
  const std::string file = folder.file("prefixes");
  std::mt19937 random(12);
  int64_t ran = 0, loaded = 0, damaged = 0;
  testing::internal::CaptureStderr();
  for (int life = 0; life < 8; ++life) {
    Sequences of(GetParam().layout, GetParam().pages, file);
    ran += runRandomly(of, random, 200);
    loaded += of.prefixes.counts().loaded;
    damaged += of.prefixes.counts().damaged;
    ASSERT_TRUE(of.prefixes.save(20 * of.pageBytes(0)).ok());
    expectAllIsGivenUp(of);
    // A node's pages fill no more than a block; the first blocks are the
    // table's.
    const uint64_t blocks = std::filesystem::file_size(file) / 4096;
    if (life % 2 == 0 && blocks >= 4)
      damage(file, (2 + random() % (blocks - 2)) * 4096 + random() % 8);
  }
  testing::internal::GetCapturedStderr();
  EXPECT_GT(ran, 300);
  EXPECT_GT(loaded, 100);
  EXPECT_GT(damaged, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Pools, RandomPrefixes,
    testing::Values(
        Pool{"AllKeys", allKeys(), 0}, Pool{"AllKeysShort", allKeys(), 8},
        Pool{"Windows", withWindow(), 0}, Pool{"WindowsShort", withWindow(), 9},
        Pool{"WindowsInLongRings",
             layout({schema::KvGroup(0, 6), schema::KvGroup(5, 3)}), 12},
        Pool{"WindowsAlone", layout({schema::KvGroup(5, 2)}), 4}),
    [](const auto &info) { return info.param.name; });

} // namespace
} // namespace llamac
