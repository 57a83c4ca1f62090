//===- WorkStealingTest.cpp - Work items shared by threads ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/threads/WorkStealing.h"

#include "runtime/threads/ThreadPool.h"

#include <gtest/gtest.h>

#include <vector>

namespace llamac {
namespace {

/// Counts every item that `thread` gets of `launch`.
void takeAll(WorkStealing &shares, size_t launch, int thread,
             std::vector<int> &counts) {
  const auto items = static_cast<int64_t>(counts.size());
  for (WorkRange range = shares.take(launch, thread, items); !range.empty();
       range = shares.take(launch, thread, items)) {
    ASSERT_LT(range.begin, range.end);
    for (int64_t item = range.begin; item < range.end; ++item)
      ++counts[item];
  }
}

TEST(WorkStealing, AThreadTakesItsShareFromTheFront) {
  WorkStealing shares(1, 2);
  shares.nextStep();
  int64_t next = 50;
  while (next < 100) {
    const WorkRange range = shares.take(0, 1, 100);
    ASSERT_EQ(range.begin, next);
    ASSERT_GT(range.end, next);
    next = range.end;
  }
}

TEST(WorkStealing, WhoIsDoneTakesFromTheBackOfAnAbsentThreadsShare) {
  WorkStealing shares(1, 2);
  shares.nextStep();
  std::vector<int> counts(100);
  int64_t end = 100;
  for (WorkRange range = shares.take(0, 0, 100); !range.empty();
       range = shares.take(0, 0, 100)) {
    if (range.begin >= 50) {
      EXPECT_EQ(range.end, end);
      end = range.begin;
    }
    for (int64_t item = range.begin; item < range.end; ++item)
      ++counts[item];
  }
  EXPECT_EQ(end, 50);
  EXPECT_EQ(counts, std::vector<int>(100, 1));
  EXPECT_TRUE(shares.take(0, 1, 100).empty());
}

TEST(WorkStealing, ThreadsOfAnyNumberHandOutEachItemOnce) {
  for (int threads : {1, 2, 3, 5, 8}) {
    constexpr size_t launches = 4;
    ThreadPool pool(threads);
    WorkStealing shares(launches, threads);
    for (int step = 0; step < 50; ++step) {
      // Counts are by thread, so that counting needs no synchronisation.
      const int64_t items = step * 7 % 130;
      std::vector<std::vector<std::vector<int>>> counts(
          threads,
          std::vector<std::vector<int>>(launches, std::vector<int>(items)));
      shares.nextStep();
      pool.run([&](int thread) {
        for (size_t launch = 0; launch < launches; ++launch)
          takeAll(shares, launch, thread, counts[thread][launch]);
      });
      for (size_t launch = 0; launch < launches; ++launch)
        for (int64_t item = 0; item < items; ++item) {
          int total = 0;
          for (int thread = 0; thread < threads; ++thread)
            total += counts[thread][launch][item];
          ASSERT_EQ(total, 1) << threads << " threads, launch " << launch
                              << ", item " << item << " of " << items;
        }
    }
  }
}

TEST(WorkStealing, MoreItemsThanAWordCountsAreHandedOutInUnits) {
  WorkStealing shares(1, 2);
  shares.nextStep();
  constexpr int64_t items = (int64_t(1) << 40) + 12345;
  int64_t front = 0;
  int64_t back = items;
  for (WorkRange range = shares.take(0, 0, items); !range.empty();
       range = shares.take(0, 0, items))
    if (range.begin == front) {
      front = range.end;
    } else {
      ASSERT_EQ(range.end, back);
      back = range.begin;
    }
  EXPECT_EQ(front, back);
}

TEST(WorkStealing, AStepOfAnyNumberHandsOutEachItemOnce) {
  WorkStealing shares(1, 2);
  // All numbers that a step can have, and the first ones again.
  for (int step = 0; step < (1 << 20) + 10; ++step) {
    std::vector<int> counts(20);
    shares.nextStep();
    // Some of its own share, then thread 0 steals the rest.
    const WorkRange own = shares.take(0, 1, std::ssize(counts));
    for (int64_t item = own.begin; item < own.end; ++item)
      ++counts[item];
    takeAll(shares, 0, 0, counts);
    takeAll(shares, 0, 1, counts);
    ASSERT_EQ(counts, std::vector<int>(20, 1)) << "step " << step;
  }
}

TEST(WorkStealing, AStepStartsAnewAlsoWhenTheNumberOfStepsWraps) {
  WorkStealing shares(2, 1);
  std::vector<int> counts(3);
  // Launch 1 runs in the first step only, so its word stays as it was until the
  // step has the same number again.
  shares.nextStep();
  takeAll(shares, 1, 0, counts);
  for (int step = 1; step < (1 << 20) - 1; ++step)
    shares.nextStep();
  shares.nextStep();
  takeAll(shares, 1, 0, counts);
  EXPECT_EQ(counts, std::vector<int>(3, 2));
}

} // namespace
} // namespace llamac
