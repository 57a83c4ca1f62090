//===- WorkShares.h - The items of a step's launches ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hands the items of launches out to threads. Each thread has an equal share of
// a launch, the same in every step, so that it reads the weights that it read
// before. It takes its share in pieces from the front; whoever is done takes
// pieces from the back of others' shares. So a thread that has lost its core,
// or has not come to the launch yet, keeps the others waiting for one piece at
// most. The others whose shares a thread looks at are those 1, 2, 4, ... after
// it: few for any number of threads, and each share has as many helpers.
//
// What is left of a share is one word with the number of the step in it: a word
// of another step means that nothing has been taken, and no one has to reset
// the words of a launch before threads arrive at it.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CPU_WORKSHARES_H
#define LLAMAC_RUNTIME_CPU_WORKSHARES_H

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

class WorkShares {
public:
  WorkShares(size_t launches, int threads);

  /// Starts a step, whose items are all to be handed out anew. No thread may be
  /// taking any.
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

#endif // LLAMAC_RUNTIME_CPU_WORKSHARES_H
