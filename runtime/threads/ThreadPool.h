//===- ThreadPool.h - Threads that run steps together -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A decode step is hundreds of launches of some ten microseconds each, so waits
// between them must be short. The threads are woken once for a whole step and
// synchronise at barriers in it.
//
// A waiting thread spins first: on an idle machine the wait is nearly always
// under a few microseconds, and sleeping would cost more. On a busy machine the
// awaited thread may have lost its core, and spinning takes the time that the
// scheduler would give it: the waiting thread should sleep at once. So the spin
// time is learnt from how the last waits ended. (Yielding instead of sleeping
// was tried: with six other processes on two cores a step took 80 times as
// long, as each yield lets all of them run.)
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_THREADS_THREADPOOL_H
#define LLAMAC_RUNTIME_THREADS_THREADPOOL_H

#include "runtime/base/Forks.h"

#include "absl/functional/function_ref.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace llamac {

/// An event count: threads wait for its number to change.
class EventCount {
public:
  /// `isShared`: it lies in memory of several processes, whose threads wait.
  explicit EventCount(bool isShared = false);

  uint32_t load() const { return word.load(std::memory_order_acquire); }

  /// Adds one and wakes all waiting threads.
  void advance();

  /// Returns once the number is no longer `old`; false where that has taken
  /// `limit` seconds.
  bool waitWhile(uint32_t old,
                 double limit = std::numeric_limits<double>::infinity());

private:
  bool spin(uint32_t old);

  const int scope; ///< A flag of futex().
  alignas(64) std::atomic<uint32_t> word{0};
  alignas(64) std::atomic<uint32_t> sleepers{0};
  /// Learnt by the waiters; races between them do no harm.
  alignas(64) std::atomic<uint32_t> spinNanoseconds;
  std::atomic<uint32_t> failures{0};
};

/// A barrier for a fixed number of threads, used any number of times.
class Barrier {
public:
  explicit Barrier(int threads) : threads(static_cast<uint32_t>(threads)) {}

  /// Returns once all threads have arrived; each sees what all wrote before.
  void arriveAndWait();

private:
  const uint32_t threads;
  alignas(64) std::atomic<uint32_t> arrived{0};
  EventCount generation;
};

class ThreadPool {
public:
  /// Starts threads - 1 workers: the caller of run() is thread 0. When the
  /// system gives fewer, size() says how many there are.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;
  ~ThreadPool();

  int size() const { return static_cast<int>(workers.size()) + 1; }

  /// Device error about `what` in a forked child: it has none of the workers,
  /// and run() would wait for them for ever.
  absl::Status checkProcess(absl::string_view what) const {
    return workers.empty() ? absl::OkStatus() : generation.check(what);
  }

  /// Calls `job(thread)` on every thread and returns when all have returned.
  /// One caller at a time.
  void run(absl::FunctionRef<void(int)> job);

  /// Within a job that all threads run: waits for all of them.
  void barrier() {
    if (!workers.empty())
      stepBarrier->arriveAndWait();
  }

private:
  void work(int thread);

  const ForkGeneration generation;
  std::vector<std::thread> workers;
  std::unique_ptr<Barrier> stepBarrier;
  EventCount jobs; ///< One more for each job, and one to stop.
  const absl::FunctionRef<void(int)> *current = nullptr; ///< Null to stop.
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_THREADS_THREADPOOL_H
