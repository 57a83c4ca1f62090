//===- ThreadPool.cpp - Threads that run steps together -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/threads/ThreadPool.h"

#include "runtime/base/Clock.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

namespace llamac {

// The bounds of how long a waiting thread spins. The upper one covers the
// host's work between two steps; the lower one is about what a look at the
// clock costs.
static constexpr uint32_t longestSpin = 100'000;
static constexpr uint32_t shortestSpin = 2'000;

// Looks at the word between two looks at the clock.
static constexpr int looksPerRound = 32;

// Every so often a thread that has given up spinning tries it again: the
// machine may have become idle.
static constexpr uint32_t failuresPerTrial = 16;

static void pauseProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// `limit`: null for none.
static void futex(const std::atomic<uint32_t> &word, int operation,
                  uint32_t value, const timespec *limit = nullptr) {
  static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));
  syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

// Both sides write, then read the other's word, in one total order: either the
// waiter sees the new number or the waker sees the sleeper.
void EventCount::advance() {
  word.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers.load(std::memory_order_seq_cst) != 0)
    futex(word, FUTEX_WAKE | scope, INT_MAX);
}

EventCount::EventCount(bool isShared)
    : scope(isShared ? 0 : FUTEX_PRIVATE_FLAG), spinNanoseconds(longestSpin) {}

// A wait that ends while spinning lengthens the next one's spin by an eighth,
// one that does not halves it; a trial that succeeds makes it long at once.
bool EventCount::spin(uint32_t old) {
  const uint32_t learnt = spinNanoseconds.load(std::memory_order_relaxed);
  const bool trial =
      learnt < longestSpin &&
      failures.load(std::memory_order_relaxed) % failuresPerTrial ==
          failuresPerTrial - 1;
  const auto learn = [&](uint32_t next) {
    if (next != learnt)
      spinNanoseconds.store(next, std::memory_order_relaxed);
  };
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::nanoseconds(trial ? longestSpin : learnt);
  do {
    for (int look = 0; look < looksPerRound; ++look) {
      if (load() != old) {
        learn(trial ? longestSpin / 2
                    : std::min(learnt + learnt / 8, longestSpin));
        return true;
      }
      pauseProcessor();
    }
  } while (std::chrono::steady_clock::now() < end);
  failures.fetch_add(1, std::memory_order_relaxed);
  if (!trial)
    learn(std::max(learnt / 2, shortestSpin));
  return false;
}

bool EventCount::waitWhile(uint32_t old, double limit) {
  if (spin(old))
    return true;
  // The kernel takes no infinite limit.
  constexpr double longestSleep = 3600;
  const double end = steadySeconds() + limit;
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  // The kernel compares once more before it puts the thread to sleep.
  for (double left = limit;
       word.load(std::memory_order_seq_cst) == old && left > 0;
       left = end - steadySeconds()) {
    const double seconds = std::min(left, longestSleep);
    timespec time{.tv_sec = static_cast<time_t>(seconds), .tv_nsec = 0};
    time.tv_nsec =
        static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
    futex(word, FUTEX_WAIT | scope, old, &time);
  }
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
  return load() != old;
}

void Barrier::arriveAndWait() {
  const uint32_t now = generation.load();
  if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 < threads)
    return static_cast<void>(generation.waitWhile(now));
  // The count is back at 0 before any thread can arrive again.
  arrived.store(0, std::memory_order_relaxed);
  generation.advance();
}

ThreadPool::ThreadPool(int threads) {
  workers.reserve(static_cast<size_t>(threads) - 1);
  for (int i = 1; i < threads; ++i) {
    try {
      workers.emplace_back([this, i] { work(i); });
    } catch (const std::system_error &) {
      break; // The system's limit: the pool is smaller.
    }
  }
  // Workers touch the barrier only once a job has been given.
  stepBarrier = std::make_unique<Barrier>(size());
}

ThreadPool::~ThreadPool() {
  if (!generation.isHere()) {
    for (std::thread &worker : workers)
      worker.detach(); // The child has no such thread.
    return;
  }
  current = nullptr;
  jobs.advance();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::run(absl::FunctionRef<void(int)> job) {
  if (workers.empty())
    return job(0);
  current = &job;
  jobs.advance();
  job(0);
  barrier();
}

void ThreadPool::work(int thread) {
  for (uint32_t done = 0;; ++done) {
    jobs.waitWhile(done);
    if (!current)
      return;
    (*current)(thread);
    barrier();
  }
}

} // namespace llamac
