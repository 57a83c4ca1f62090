//===- PrefixCacheTest.cpp - Keys and values of known beginnings ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/PrefixCache.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
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

/// What kernels do with the pages: each holds the tokens it was written with, a
/// key stands for all tokens up to its own.
class Sequences {
public:
  Sequences(const schema::KvLayoutT &layout, int64_t pages)
      : windows(windowsOf(layout)), cache(layout, pages), prefixes(cache) {}

  /// Runs `tokens`, in steps of at most 4; false when there are no pages.
  /// Checks each key that a row sees.
  bool run(int32_t slot, const Tokens &tokens) {
    int64_t done = prefixes.attach(slot, tokens);
    while (done < std::ssize(tokens)) {
      const int64_t end = std::min<int64_t>(done + 4, std::ssize(tokens));
      if (!cache.reserve({slot, end}).ok())
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

struct Pool {
  const char *name;
  schema::KvLayoutT layout;
  int64_t pages; ///< 0: as many as all sequences can use.
};

void PrintTo(const Pool &pool, std::ostream *out) { *out << pool.name; }

class RandomPrefixes : public testing::TestWithParam<Pool> {};

TEST_P(RandomPrefixes, EachRowSeesTheKeysOfItsOwnTokens) {
  Sequences of(GetParam().layout, GetParam().pages);
  std::mt19937 random(11);
  std::vector<int32_t> open;
  int64_t ran = 0;
  for (int round = 0; round < 3000; ++round) {
    if (open.size() == 4 || (!open.empty() && random() % 3 == 0)) {
      const size_t which = random() % open.size();
      of.cache.close(open[which]);
      open.erase(open.begin() + static_cast<ptrdiff_t>(which));
      continue;
    }
    // Of two tokens, so that many begin alike.
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
  EXPECT_GT(ran, 300);
  EXPECT_GT(of.prefixes.counts().found, 300);
  for (int32_t slot : open)
    of.cache.close(slot);
  of.prefixes.clear();
  EXPECT_EQ(of.prefixes.size(), 0u);
  for (size_t group = 0; group < of.cache.groupCount(); ++group)
    EXPECT_EQ(of.cache.freePages(group), of.cache.pages(group));
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
