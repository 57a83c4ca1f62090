//===- KvCacheTest.cpp - Pages of keys and values -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/cache/KvCache.h"

#include "runtime/base/Status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

namespace llamac {
namespace {

using testing::ElementsAre;

static schema::KvLayoutT layout() {
  schema::KvLayoutT kv;
  kv.pageTokens = 4;
  kv.pageBytes = 64;
  kv.pagesPerSequence = 5;
  kv.maxSequences = 3;
  kv.groups = {schema::KvGroup(0, 5)};
  return kv;
}

/// With a second group, whose rings hold 8 tokens: a window of 5 keys and steps
/// of 4 rows.
static schema::KvLayoutT layoutWithRing() {
  schema::KvLayoutT kv = layout();
  kv.groups.emplace_back(5, 2);
  return kv;
}

TEST(KvCacheTest, PagesAreTakenAsASequenceGrows) {
  KvCache cache(layout());
  EXPECT_EQ(cache.pages(0), 15);
  const int32_t slot = *cache.open();
  EXPECT_TRUE(*cache.reserve({slot, 1}));
  EXPECT_FALSE(*cache.reserve({slot, 4}));
  EXPECT_TRUE(*cache.reserve({slot, 9}));
  EXPECT_THAT(cache.row(0, slot), ElementsAre(0, 1, 2, -1, -1));
  EXPECT_EQ(cache.freePages(0), 12);
  cache.close(slot);
  EXPECT_EQ(cache.freePages(0), 15);
  EXPECT_THAT(cache.row(0, slot), ElementsAre(-1, -1, -1, -1, -1));
}

TEST(KvCacheTest, NothingIsTakenWhenTooFewAreFree) {
  KvCache cache(layout(), 4);
  const int32_t one = *cache.open();
  const int32_t two = *cache.open();
  ASSERT_TRUE(cache.reserve({one, 12}).ok());
  const auto refused = cache.reserve({two, 5});
  EXPECT_EQ(exitCode(refused.status()), ExitCode::Memory);
  EXPECT_EQ(cache.freePages(0), 1);
  EXPECT_TRUE(*cache.reserve({two, 4}));
}

TEST(KvCacheTest, TheTableOfARingRepeatsItsPages) {
  KvCache cache(layoutWithRing());
  EXPECT_EQ(cache.pages(1), 6);
  const int32_t slot = *cache.open();
  EXPECT_TRUE(*cache.reserve({slot, 3}));
  EXPECT_THAT(cache.row(1, slot), ElementsAre(0, -1, 0, -1, 0));
  EXPECT_TRUE(*cache.reserve({slot, 20}));
  EXPECT_THAT(cache.row(0, slot), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(cache.row(1, slot), ElementsAre(0, 1, 0, 1, 0));
  EXPECT_EQ(cache.freePages(1), 4);
  cache.trim(slot, 7);
  EXPECT_THAT(cache.row(1, slot), ElementsAre(0, 1, 0, 1, 0));
  cache.trim(slot, 4);
  EXPECT_THAT(cache.row(1, slot), ElementsAre(0, -1, 0, -1, 0));
  cache.close(slot);
  EXPECT_EQ(cache.freePages(1), 6);
}

TEST(KvCacheTest, ARowOfEachTableIsWrittenWhereTheInputHasIt) {
  KvCache cache(layoutWithRing());
  ASSERT_EQ(*cache.open(), 0);
  const int32_t slot = *cache.open();
  ASSERT_TRUE(cache.reserve({slot, 8}).ok());
  std::map<uint64_t, std::vector<uint8_t>> written;
  ASSERT_TRUE(cache
                  .writeRows(slot,
                             [&](uint64_t offset, auto bytes) {
                               written[offset] = {bytes.begin(), bytes.end()};
                               return absl::OkStatus();
                             })
                  .ok());
  ASSERT_EQ(written.size(), 2u);
  for (size_t group = 0; group < 2; ++group) {
    // Tables of 3 rows of 5 numbers.
    const auto row = cache.row(group, slot);
    const std::vector<uint8_t> &bytes = written[group * 60 + 20];
    ASSERT_EQ(bytes.size(), 20u);
    EXPECT_EQ(std::memcmp(bytes.data(), row.data(), 20), 0);
  }
}

TEST(KvCacheTest, NothingIsTakenWhenOneGroupHasTooFewFree) {
  KvCache cache(layoutWithRing(), 3);
  const int32_t one = *cache.open();
  const int32_t two = *cache.open();
  ASSERT_TRUE(cache.reserve({one, 8}).ok());
  EXPECT_EQ(exitCode(cache.reserve({one, 16}).status()), ExitCode::Memory);
  EXPECT_EQ(exitCode(cache.reserve({two, 8}).status()), ExitCode::Memory);
  EXPECT_EQ(cache.freePages(0), 1);
  EXPECT_EQ(cache.freePages(1), 1);
  ASSERT_TRUE(cache.reserve({one, 12}).ok());
  EXPECT_EQ(cache.freePages(1), 1);
}

TEST(KvCacheTest, ARingHoldsTheWindowOfATokenUntilNewOnesTakeItsPlace) {
  KvCache cache(layoutWithRing());
  const int32_t slot = *cache.open();
  // The token at 10 sees keys 6 to 9 and itself; the page of key 6 lies where
  // that of 12 does, which may be another page.
  EXPECT_TRUE(cache.holds(slot, 10, 12));
  EXPECT_FALSE(cache.holds(slot, 10, 13));
  // The first token sees none before it, the second one.
  EXPECT_TRUE(cache.holds(slot, 0, 20));
  EXPECT_TRUE(cache.holds(slot, 1, 8));
  EXPECT_FALSE(cache.holds(slot, 1, 9));
  EXPECT_TRUE(KvCache(layout()).holds(slot, 1, 20));
}

TEST(KvCacheTest, ASequenceThatBeganWithKeptPagesHoldsNoneBeforeThem) {
  schema::KvLayoutT of = layoutWithRing();
  of.groups[1] = schema::KvGroup(5, 3);
  KvCache cache(of);
  const int32_t one = *cache.open(), two = *cache.open();
  ASSERT_TRUE(cache.reserve({one, 12}).ok());
  const auto pages = cache.row(1, one).first(3);
  // The window behind 12 tokens begins in their third page.
  cache.attach(1, two, {-1, pages[1], pages[2]});
  EXPECT_TRUE(cache.holds(two, 9, 12));
  EXPECT_FALSE(cache.holds(two, 7, 12));
  EXPECT_EQ(cache.pageAt(1, two, 0, 12), -1);
  EXPECT_EQ(cache.pageAt(1, two, 1, 12), pages[1]);
}

TEST(KvCacheTest, NoPageIsEverInTwoHands) {
  KvCache cache(layout());
  std::mt19937 random(7);
  std::vector<int32_t> open;
  std::vector<int64_t> lengths;
  for (int round = 0; round < 2000; ++round) {
    if (open.size() < 3 && random() % 2) {
      open.push_back(*cache.open());
      lengths.push_back(0);
    } else if (!open.empty()) {
      const size_t which = random() % open.size();
      if (random() % 3 == 0) {
        cache.close(open[which]);
        open.erase(open.begin() + which);
        lengths.erase(lengths.begin() + which);
      } else {
        lengths[which] = std::min<int64_t>(20, lengths[which] + random() % 6);
        ASSERT_TRUE(cache.reserve({open[which], lengths[which]}).ok());
      }
    }
    std::set<int32_t> used;
    int64_t count = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      const auto row = cache.row(0, open[i]);
      const int64_t needed = (lengths[i] + 3) / 4;
      for (int64_t page = 0; page < 5; ++page) {
        ASSERT_EQ(row[page] >= 0, page < needed);
        if (row[page] >= 0) {
          used.insert(row[page]);
          ++count;
        }
      }
    }
    ASSERT_EQ(static_cast<int64_t>(used.size()), count);
    ASSERT_EQ(cache.freePages(0), 15 - count);
  }
}

TEST(KvCacheTest, ThereIsRoomForAllOfABatchOrNone) {
  KvCache cache(layout(), 4);
  const int32_t one = *cache.open();
  const int32_t two = *cache.open();
  EXPECT_TRUE(cache.checkRoom({{one, 8}, {two, 8}}).ok());
  const absl::Status refused = cache.checkRoom({{one, 8}, {two, 12}});
  EXPECT_EQ(exitCode(refused), ExitCode::Memory);
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("20 tokens need 5 more pages of 4 tokens, 4 "
                                 "of 4 are free"));
  EXPECT_EQ(cache.freePages(0), 4);
}

TEST(KvCacheTest, APageThatOthersHoldIsLeftToThem) {
  KvCache cache(layoutWithRing());
  const int32_t slot = *cache.open();
  ASSERT_TRUE(cache.reserve({slot, 8}).ok());
  const int32_t held = cache.pageAt(1, slot, 0, 8);
  cache.keep(1, held);
  EXPECT_TRUE(cache.isShared(slot, 3));
  EXPECT_FALSE(cache.isShared(slot, 4));
  // The ring's next page takes another in its place, the one behind its own.
  EXPECT_TRUE(*cache.reserve({slot, 12}));
  EXPECT_THAT(cache.row(1, slot), ElementsAre(2, 1, 2, 1, 2));
  ASSERT_TRUE(cache.reserve({slot, 16}).ok());
  EXPECT_THAT(cache.row(1, slot), ElementsAre(2, 1, 2, 1, 2));
  EXPECT_EQ(cache.pageAt(1, slot, 1, 16), -1);
  EXPECT_EQ(cache.pageAt(1, slot, 2, 16), 2);
  cache.close(slot);
  EXPECT_EQ(cache.freePages(1), 5);
  cache.drop(1, held);
  EXPECT_EQ(cache.freePages(1), 6);
}

} // namespace
} // namespace llamac
