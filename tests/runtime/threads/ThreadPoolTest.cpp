//===- ThreadPoolTest.cpp - Threads that run steps together ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/threads/ThreadPool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <new>
#include <numeric>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace llamac {
namespace {

/// With more threads than this machine has cores, too.
class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, EveryThreadRunsAJobOnce) {
  ThreadPool pool(GetParam());
  ASSERT_EQ(pool.size(), GetParam());
  std::vector<int> calls(GetParam(), 0);
  for (int job = 1; job <= 200; ++job) {
    pool.run([&](int thread) { ++calls[thread]; });
    for (int count : calls)
      ASSERT_EQ(count, job);
  }
}

// Each round every thread reads what all wrote in the round before; the values
// are plain, so a barrier that lets one through shows here or in a sanitizer.
TEST_P(ThreadPoolTest, TheBarrierHoldsEveryoneBack) {
  const int threads = GetParam();
  ThreadPool pool(threads);
  std::vector<long> values(threads, 1);
  std::vector<long> sums(threads, 0);
  constexpr int rounds = 300;
  for (int job = 0; job < 3; ++job) {
    values.assign(threads, 1);
    pool.run([&](int thread) {
      for (int round = 0; round < rounds; ++round) {
        sums[thread] = std::accumulate(values.begin(), values.end(), 0L);
        pool.barrier();
        values[thread] = (sums[thread] + thread) % 1009;
        pool.barrier();
      }
    });
    std::vector<long> expected(threads, 1);
    for (int round = 0; round < rounds; ++round) {
      const long sum = std::accumulate(expected.begin(), expected.end(), 0L);
      for (int thread = 0; thread < threads; ++thread)
        expected[thread] = (sum + thread) % 1009;
    }
    EXPECT_EQ(values, expected);
  }
}

TEST_P(ThreadPoolTest, WakesFromSleep) {
  ThreadPool pool(GetParam());
  for (int job = 0; job < 3; ++job) {
    // Longer than a worker spins and yields.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::atomic<int> calls{0};
    pool.run([&](int thread) {
      // One comes so late that the others sleep at the barrier.
      if (thread == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      pool.barrier();
      ++calls;
    });
    EXPECT_EQ(calls, GetParam());
  }
}

TEST_P(ThreadPoolTest, ComesAndGoesWithoutAJob) {
  for (int i = 0; i < 20; ++i)
    ThreadPool pool(GetParam());
}

TEST(EventCountTest, AWaitHasALimit) {
  EventCount count;
  EXPECT_FALSE(count.waitWhile(0, 0.01));
  count.advance();
  EXPECT_TRUE(count.waitWhile(0, 0.01));
}

TEST(EventCountTest, WakesThreadsOfOtherProcesses) {
  void *memory = mmap(nullptr, sizeof(EventCount), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto *count = new (memory) EventCount(/*isShared=*/true);
  const pid_t child = fork();
  if (child == 0)
    _exit(count->waitWhile(0, 60) ? 0 : 1);
  // Longer than the child spins.
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  count->advance();
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  munmap(memory, sizeof(EventCount));
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest,
                         testing::Values(1, 2, 3, 4, 16));

} // namespace
} // namespace llamac
