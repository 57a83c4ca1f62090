//===- KvCacheTest.cpp - Pages of keys and values -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/KvCache.h"

#include "runtime/base/Status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  return kv;
}

TEST(KvCacheTest, PagesAreTakenAsASequenceGrows) {
  KvCache cache(layout());
  EXPECT_EQ(cache.pages(), 15);
  const int32_t slot = *cache.open();
  EXPECT_TRUE(*cache.reserve(slot, 1));
  EXPECT_FALSE(*cache.reserve(slot, 4));
  EXPECT_TRUE(*cache.reserve(slot, 9));
  EXPECT_THAT(cache.row(slot), ElementsAre(0, 1, 2, -1, -1));
  EXPECT_EQ(cache.freePages(), 12);
  cache.close(slot);
  EXPECT_EQ(cache.freePages(), 15);
  EXPECT_THAT(cache.row(slot), ElementsAre(-1, -1, -1, -1, -1));
}

TEST(KvCacheTest, NothingIsTakenWhenTooFewAreFree) {
  KvCache cache(layout(), 4);
  const int32_t one = *cache.open();
  const int32_t two = *cache.open();
  ASSERT_TRUE(cache.reserve(one, 12).ok());
  const auto refused = cache.reserve(two, 5);
  EXPECT_EQ(exitCode(refused.status()), ExitCode::Memory);
  EXPECT_EQ(cache.freePages(), 1);
  EXPECT_TRUE(*cache.reserve(two, 4));
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
        ASSERT_TRUE(cache.reserve(open[which], lengths[which]).ok());
      }
    }
    std::set<int32_t> used;
    int64_t count = 0;
    for (size_t i = 0; i < open.size(); ++i) {
      const auto row = cache.row(open[i]);
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
    ASSERT_EQ(cache.freePages(), 15 - count);
  }
}

} // namespace
} // namespace llamac
