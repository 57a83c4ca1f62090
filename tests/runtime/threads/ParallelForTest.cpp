//===- ParallelForTest.cpp - A loop shared by threads ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/threads/ParallelFor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace llamac {
namespace {

TEST(ParallelFor, CallsEachOnce) {
  for (const int threads : {-1, 0, 1, 2, 7})
    for (const size_t count : {0, 1, 2, 3, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      parallelFor(threads, count, [&](size_t i) { ++calls[i]; });
      EXPECT_TRUE(std::all_of(calls.begin(), calls.end(),
                              [](const auto &called) { return called == 1; }))
          << threads << " threads, " << count;
    }
}

TEST(ParallelFor, OneThreadKeepsTheOrder) {
  std::vector<size_t> order;
  parallelFor(1, 4, [&](size_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3}));
}

TEST(ParallelFor, ThreadsAreAsManyAsAskedForAndNoMoreThanThereIsWork) {
  for (const auto &[threads, count, expected] :
       {std::array<size_t, 3>{3, 3, 3}, {3, 2, 2}, {1, 2, 1}}) {
    // Each waits until as many have begun as can.
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::atomic<size_t> begun{0};
    parallelFor(static_cast<int>(threads), count,
                [&, wanted = expected](size_t) {
                  {
                    const std::lock_guard<std::mutex> lock(mutex);
                    seen.insert(std::this_thread::get_id());
                  }
                  for (++begun; begun < wanted;)
                    std::this_thread::yield();
                });
    EXPECT_EQ(seen.size(), expected);
    EXPECT_TRUE(seen.contains(std::this_thread::get_id()));
  }
}

TEST(ParallelFor, WithoutMoreThreadsThoseThatThereAreDoItAll) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "no memory is left for the test itself";
#endif
  auto underLimit = [] {
    // No address space is left for stacks, but for those of threads that were.
    const rlimit none = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_AS, &none);
    std::atomic<int> calls{0};
    parallelFor(64, 100, [&](size_t) { ++calls; });
    _exit(calls == 100 ? 0 : 1);
  };
  EXPECT_EXIT(underLimit(), testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace llamac
