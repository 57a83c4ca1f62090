//===- sampling.cuh - From logits to tokens ---------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Greedy sampling: the first of the largest logits.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_SAMPLING_CUH
#define LLAMAC_CODEGEN_DEVICE_SAMPLING_CUH

#include "llamac/config.h"
#include "llamac/vmath.cuh"

namespace llamac::cuda {

/// A logit and its index.
struct Candidate {
  float value;
  int index;
};

/// Whether `a` comes before `b`: a NaN before any number, so that it cannot go
/// unseen, then the larger, then the earlier.
LLAMAC_DEVICE bool precedes(Candidate a, Candidate b) {
  const bool aIsNan = a.value != a.value, bIsNan = b.value != b.value;
  if (aIsNan != bIsNan)
    return aIsNan;
  if (!aIsNan && a.value != b.value)
    return a.value > b.value;
  return a.index < b.index;
}

/// out[r] = the index of the first of the largest of logits[r, 0 .. width), or
/// -1 when one is a NaN. A launch of argmaxShape().
template <long width> LLAMAC_DEVICE void argmax(const float *logits, int *out) {
  constexpr int warps = argmaxThreads / 32;
  LLAMAC_SHARED(best, Candidate[warps]);
  const float *row = logits + blockIdx.y * width;
  Candidate first{minusInfinity, static_cast<int>(width)};
#pragma unroll 4
  for (int i = threadIdx.x; i < width; i += argmaxThreads) {
    const Candidate next{row[i], i};
    if (precedes(next, first))
      first = next;
  }
  auto reduce = [&](int lanes) {
    for (int by = lanes / 2; by > 0; by /= 2) {
      const Candidate other{shuffleXor(first.value, by),
                            shuffleXor(first.index, by)};
      if (precedes(other, first))
        first = other;
    }
  };
  reduce(32);
  if (laneIndex() == 0)
    best[warpIndex()] = first;
  syncThreads();
  if (warpIndex() != 0)
    return;
  first = best[laneIndex()];
  static_assert(warps == 32);
  reduce(warps);
  if (laneIndex() == 0)
    out[blockIdx.y] = first.value != first.value ? -1 : first.index;
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_SAMPLING_CUH
