//===- WorkStealing.h - Work items shared by threads ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work stealing over the items of launches. Each thread has an equal share of a
// launch, the same in every step, so that its caches hold the weights. It takes
// its share in pieces from the front; a thread that is done steals pieces from
// the back of others' shares. So a thread that has lost its core delays the
// others by one piece at most. A thread steals from those 1, 2, 4, ... after
// it: few for any number of threads, and each share has as many thieves.
//
// The state of a share is one word with the number of the step in it: a word of
// another step means that nothing has been taken, so no reset is needed.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_THREADS_WORKSTEALING_H
#define LLAMAC_RUNTIME_THREADS_WORKSTEALING_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace llamac {

/// Items begin .. end - 1; none when they are equal.
struct WorkRange {
  int64_t begin = 0;
  int64_t end = 0;

  bool empty() const { return begin == end; }
};

class WorkStealing {
public:
  WorkStealing(size_t launches, int threads);

  /// Starts a step, in which all items are free. No thread may be taking any.
  void nextStep();

  /// The next items of `launch`, which has `items` of them, for `thread`; none
  /// when all are taken. Each is given to one caller a step.
  WorkRange take(size_t launch, int thread, int64_t items);

private:
  /// A word of its own line.
  struct alignas(64) Share {
    std::atomic<uint64_t> left{0};
  };

  WorkRange takeFrom(Share &share, WorkRange whole, bool front);

  const int threads;
  uint64_t step = 0; ///< From 1 to stepLimit - 1.
  size_t count;
  std::unique_ptr<Share[]> shares; ///< [launches][threads]
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_THREADS_WORKSTEALING_H
