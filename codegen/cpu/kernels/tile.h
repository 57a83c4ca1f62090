//===- tile.h - The inner loop of every product in f32 ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block of weights stays in registers while rows of x stream past it: for
// each row, its sums are loaded, extended by the block's depth, and stored.
// The block is widened to f32 once for all rows, which makes any format as
// fast as f32; there are no tiles of rows, so no number of rows is a tail; and
// every sum is one chain of multiply-adds in the order of k, whatever the
// blocking. With a depth of 8 and two panels, 10 loads and 2 stores go with 16
// multiply-adds; the loop is unrolled over a few rows for ILP.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_TILE_H
#define LLAMAC_CPU_TILE_H

#include "llamac/cpu/simd.h"

namespace llamac::cpu {

/// The sums of some rows and panels in registers, from and to memory as
/// accumulate() has them there.
template <int rows, int panels> struct TileSums {
  F32x16 sum[rows][panels];

  LLAMAC_INLINE TileSums(const float *from, long sumStride, long panelStride) {
    for (int t = 0; t < rows; ++t)
      for (int p = 0; p < panels; ++p)
        sum[t][p] = load<F32x16>(from + t * sumStride + p * panelStride);
  }

  /// The products with x, one value of each row.
  template <class Weight>
  LLAMAC_INLINE void add(const Weight &weight, const float *x, long xStride) {
    for (int t = 0; t < rows; ++t) {
      F32x16 value = splat(x[t * xStride]);
      for (int p = 0; p < panels; ++p)
        sum[t][p] = fma(weight(p), value, sum[t][p]);
    }
  }

  LLAMAC_INLINE void storeTo(float *to, long sumStride,
                             long panelStride) const {
    for (int t = 0; t < rows; ++t)
      for (int p = 0; p < panels; ++p)
        store(to + t * sumStride + p * panelStride, sum[t][p]);
  }
};

/// accumulate() unrolled over `rows` rows.
template <int rows, int panels>
LLAMAC_INLINE void accumulateRows(const F32x16 (&w)[panels][tileDepth],
                                  const float *x, long xStride, float *sums,
                                  long sumStride, long panelStride) {
  TileSums<rows, panels> tile(sums, sumStride, panelStride);
  for (int j = 0; j < tileDepth; ++j)
    tile.add([&](int p) { return w[p][j]; }, x + j, xStride);
  tile.storeTo(sums, sumStride, panelStride);
}

/// sums[t][p] += w[p] x[t] for `rows` rows. Row t of x is at x + t * xStride;
/// the 16 sums of panel p at sums + t * sumStride + p * panelStride.
template <int panels>
LLAMAC_INLINE void accumulate(const F32x16 (&w)[panels][tileDepth],
                              const float *x, long xStride, float *sums,
                              long sumStride, long panelStride, long rows) {
  long t = 0;
#pragma clang loop unroll(disable)
  for (; t + tileRows <= rows; t += tileRows)
    accumulateRows<tileRows>(w, x + t * xStride, xStride, sums + t * sumStride,
                             sumStride, panelStride);
#pragma clang loop unroll(disable)
  for (; t < rows; ++t)
    accumulateRows<1>(w, x + t * xStride, xStride, sums + t * sumStride,
                      sumStride, panelStride);
}

/// accumulate() for a number of rows known beforehand, and any depth, with the
/// sums in registers throughout: weight(p, s) gives the 16 weights of panel p
/// at s.
template <int rows, int panels, class Weight>
LLAMAC_INLINE void accumulateFew(const Weight &weight, long depth,
                                 const float *x, long xStride, float *sums,
                                 long sumStride, long panelStride) {
  TileSums<rows, panels> tile(sums, sumStride, panelStride);
#pragma clang loop unroll_count(2)
  for (long s = 0; s < depth; ++s) {
    F32x16 w[panels];
    for (int p = 0; p < panels; ++p)
      w[p] = weight(p, s);
    tile.add([&](int p) { return w[p]; }, x + s, xStride);
  }
  tile.storeTo(sums, sumStride, panelStride);
}

LLAMAC_INLINE void clear(float *sums, long count) {
  for (long i = 0; i < count; i += 16)
    store(sums + i, F32x16(0));
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_TILE_H
