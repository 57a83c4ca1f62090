//===- WorkStealing.cpp - Work items shared by threads --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/threads/WorkStealing.h"

#include <algorithm>

namespace llamac {

// Pieces of a share: as many as keep a wait for one short, as few as make
// taking them free.
static constexpr int64_t pieces = 8;

// A word holds the step, and how many units of the share are taken from its
// front and from its back.
static constexpr int unitBits = 22;
static constexpr uint64_t unitLimit = uint64_t(1) << unitBits;
static constexpr uint64_t stepLimit = uint64_t(1) << (64 - 2 * unitBits);

static uint64_t wordOf(uint64_t step, int64_t front, int64_t back) {
  return step << 2 * unitBits | static_cast<uint64_t>(front) << unitBits |
         static_cast<uint64_t>(back);
}

WorkStealing::WorkStealing(size_t launches, int threads)
    : threads(threads), count(launches * static_cast<size_t>(threads)),
      shares(std::make_unique<Share[]>(count)) {}

void WorkStealing::nextStep() {
  if (++step < stepLimit)
    return;
  for (size_t i = 0; i < count; ++i)
    shares[i].left.store(0, std::memory_order_relaxed);
  step = 1;
}

WorkRange WorkStealing::takeFrom(Share &share, WorkRange whole, bool front) {
  // A unit is one item, unless there are more than a word can count.
  const int64_t size = whole.end - whole.begin;
  const int64_t unit = size / static_cast<int64_t>(unitLimit) + 1;
  const int64_t units = (size + unit - 1) / unit;
  const int64_t piece = (units + pieces - 1) / pieces;
  // Kernels' results are ordered by the barriers between launches; this word
  // orders nothing but itself.
  uint64_t word = share.left.load(std::memory_order_relaxed);
  while (true) {
    const bool fresh = word >> 2 * unitBits != step;
    const auto fromFront =
        fresh ? 0 : static_cast<int64_t>((word >> unitBits) % unitLimit);
    const auto fromBack = fresh ? 0 : static_cast<int64_t>(word % unitLimit);
    const int64_t taken = std::min(piece, units - fromFront - fromBack);
    if (taken == 0)
      return {};
    const uint64_t next = front ? wordOf(step, fromFront + taken, fromBack)
                                : wordOf(step, fromFront, fromBack + taken);
    if (!share.left.compare_exchange_weak(word, next,
                                          std::memory_order_relaxed))
      continue;
    const int64_t first = front ? fromFront : units - fromBack - taken;
    return {whole.begin + first * unit,
            std::min(whole.begin + (first + taken) * unit, whole.end)};
  }
}

WorkRange WorkStealing::take(size_t launch, int thread, int64_t items) {
  for (int distance = 0; distance < threads;
       distance = std::max(1, 2 * distance)) {
    const int owner = (thread + distance) % threads;
    const WorkRange whole = {items * owner / threads,
                             items * (owner + 1) / threads};
    const WorkRange range =
        takeFrom(shares[launch * static_cast<size_t>(threads) +
                        static_cast<size_t>(owner)],
                 whole, /*front=*/distance == 0);
    if (!range.empty())
      return range;
  }
  return {};
}

} // namespace llamac
