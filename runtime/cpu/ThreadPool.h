//===- ThreadPool.h - Threads that run steps together -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A decode step is hundreds of launches of some ten microseconds each, so what
// a thread waits between them decides. The threads are woken once for a whole
// step and meet at barriers in it. Waiting goes through three stages:
//
//   spin   on the word with the processor's pause instruction: a launch's end
//          is nearly always less than this away
//   yield  the processor to whoever else wants it: with more threads than
//          cores the one waited for may be queued behind the one that waits
//   sleep  in the kernel (futex): nothing will happen soon
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CPU_THREADPOOL_H
#define LLAMAC_RUNTIME_CPU_THREADPOOL_H

#include "absl/functional/function_ref.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

namespace llamac {

/// A number that threads wait on to change.
class WaitWord {
public:
  uint32_t load() const { return word.load(std::memory_order_acquire); }

  /// Adds one and wakes all who wait.
  void advance();

  /// Returns once the number is no longer `old`.
  void waitWhile(uint32_t old);

private:
  bool spin(uint32_t old) const;
  bool yield(uint32_t old) const;

  alignas(64) std::atomic<uint32_t> word{0};
  alignas(64) std::atomic<uint32_t> sleepers{0};
};

/// A barrier for a fixed number of threads, used any number of times.
class Barrier {
public:
  explicit Barrier(int threads) : threads(static_cast<uint32_t>(threads)) {}

  /// Returns once all threads have come; what each wrote before is seen by all.
  void arriveAndWait();

private:
  const uint32_t threads;
  alignas(64) std::atomic<uint32_t> arrived{0};
  WaitWord generation;
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

  /// Calls `job(thread)` on every thread and returns when all have returned.
  /// One caller at a time.
  void run(absl::FunctionRef<void(int)> job);

  /// Within a job that all threads run: waits for all of them.
  void barrier() {
    if (!workers.empty())
      meeting->arriveAndWait();
  }

private:
  void work(int thread);

  std::vector<std::thread> workers;
  std::optional<Barrier> meeting;
  WaitWord jobs; ///< One more for each job, and one to stop.
  const absl::FunctionRef<void(int)> *current = nullptr; ///< Null to stop.
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_CPU_THREADPOOL_H
