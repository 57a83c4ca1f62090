//===- topk.h - The largest scores of a split -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_TOPK_H
#define LLAMAC_CPU_TOPK_H

#include "llamac/cpu/vmath.h"

namespace llamac::cpu {

/// Whether the lanes are of keys `from` to `tokens` - 1, the first being of key
/// `t`.
LLAMAC_INLINE I32x16 areSeen(long t, long from, long tokens) {
  constexpr I32x16 lane = {0, 1, 2,  3,  4,  5,  6,  7,
                           8, 9, 10, 11, 12, 13, 14, 15};
  return (lane < int(tokens - t)) & (lane >= int(from - t));
}

/// A threshold that at least `topK` of the scores at `row` of keys that are
/// seen reach, and few others. Scores that weigh less than e^-88 of the largest
/// do not count.
template <long topK>
LLAMAC_INLINE float thresholdOf(const float *row, long from, long tokens) {
  constexpr float lowest = -__builtin_inff();
  F32x16 lanes = lowest;
  for (long t = 0; t < tokens; t += 16)
    lanes =
        max(areSeen(t, from, tokens) ? load<F32x16>(row + t) : lowest, lanes);
  const float largest = maxLanes(lanes);
  // It is mostly within 16 of the largest, and then at most 1/16 too low.
  float reached = largest - 88, missed = largest, middle = largest - 16;
  for (int step = 0; step < 9; ++step) {
    I32x16 count = 0;
    for (long t = 0; t < tokens; t += 16)
      count -= areSeen(t, from, tokens) & (load<F32x16>(row + t) >= middle);
    (__builtin_reduce_add(count) < topK ? missed : reached) = middle;
    middle = 0.5f * (reached + missed);
  }
  return reached;
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_TOPK_H
