//===- int8.h - Products in 8-bit integers ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Q8_0, Q4_0 and Q4_1 are multiplied as integers: activations are rounded to
// 8 bits in blocks of 32 with an f32 scale, the sum of a block's products is
// exact, and only its two scales are applied in f32. With w = q d + m and
// x = p s:
//
//   sum over the block of w x = d s (sum of q p) + m (s sum of p)
//
// Q4_0 is q - 8 and, where the machine multiplies unsigned by signed bytes,
// Q8_0 is q + 128 - 128: such offsets are integers too, so they go into the
// value the sum starts from.
//
// One block of 16 rows is held in registers while the rows of x pass (tile.h
// has the reasons), and the order of every f32 operation is that of the blocks.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_INT8_H
#define LLAMAC_CPU_INT8_H

#include "llamac/cpu/config.h"
#include "llamac/cpu/simd.h"

namespace llamac::cpu {

/// 32 activations. `start` is what the integer sum starts from; Q4_1 keeps
/// the f32 scale * sum(q) there instead.
struct Int8Block {
  I8 q[32];
  float scale;
  U32 start;
};
static_assert(sizeof(Int8Block) == int8BlockBytes);

/// Rounds 32 values to nearest. The scale of a block that holds an infinity or
/// a NaN is one too, so it shows in every sum of the block.
template <PanelFormat format>
LLAMAC_INLINE void quantize(const float *x, Int8Block &block) {
  auto lo = load<F32x16>(x), hi = load<F32x16>(x + 16);
  // As integers, magnitudes order as numbers do, with NaN above infinity.
  I32x16 largest = __builtin_elementwise_max(bits<I32x16>(lo) & 0x7fffffff,
                                             bits<I32x16>(hi) & 0x7fffffff);
  float range = bits<float>(__builtin_reduce_max(largest));
  float inverse = range > 0 ? 127.0f / range : 0.0f;
  // Adding 1.5 x 2^23 leaves the rounded value in the low bits.
  U32x16 qlo = bits<U32x16>(fma(lo, splat(inverse), splat(0x1.8p23f)));
  U32x16 qhi = bits<U32x16>(fma(hi, splat(inverse), splat(0x1.8p23f)));
  store(block.q, __builtin_convertvector(qlo, U8x16));
  store(block.q + 16, __builtin_convertvector(qhi, U8x16));
  block.scale = range / 127.0f;
  I32x16 both =
      (bits<I32x16>(qlo) << 24 >> 24) + (bits<I32x16>(qhi) << 24 >> 24);
  int sum = __builtin_reduce_add(both);
  if constexpr (format == PanelFormat::Q4_1)
    block.start = bits<U32>(block.scale * float(sum));
  else if constexpr (format == PanelFormat::Q4_0)
    block.start = U32(-8 * sum);
  else
    block.start = hasVnni ? U32(-128 * sum) : 0;
}

/// `dotLanes` rows of one block of weights, in registers.
template <PanelFormat format> struct Int8Weights {
  U8xD q[8];
  F32xD scale;
  F32xD offset;

  /// Lanes from `lane` on, a multiple of dotLanes.
  LLAMAC_INLINE void read(const U8 *block, int lane) {
    scale = loadF16xD(block + 2 * lane);
    const U8 *codes = block + 32 + 4 * lane;
    if constexpr (format == PanelFormat::Q8_0) {
      for (int g = 0; g < 8; ++g) {
        q[g] = load<U8xD>(codes + 64 * g);
        if (hasVnni)
          q[g] ^= 0x80;
      }
      return;
    }
    if constexpr (format == PanelFormat::Q4_1) {
      offset = loadF16xD(block + 32 + 2 * lane);
      codes += 32;
    }
    for (int g = 0; g < 4; ++g) {
      auto pair = load<U8xD>(codes + 64 * g);
      q[g] = pair & 15;
      q[g + 4] = pair >> 4;
    }
  }
};

template <PanelFormat format> struct DotOf {
  using Type = DotU4;
};
template <> struct DotOf<PanelFormat::Q8_0> {
  using Type = DotI8;
};

/// sums[t][p] += w[p] x[t] for one block of some panels and rows, which share
/// what is in registers.
template <PanelFormat format, int panels, int rows>
LLAMAC_INLINE void extend(const Int8Weights<format> (&w)[panels],
                          const Int8Block *x, F32xD (&sums)[rows][panels]) {
  constexpr bool hasOffset = format == PanelFormat::Q4_1;
  typename DotOf<format>::Type dots[rows][panels];
  for (int t = 0; t < rows; ++t)
    for (int p = 0; p < panels; ++p)
      dots[t][p].start(hasOffset ? 0 : int(x[t].start));
  for (int g = 0; g < 8; ++g)
    for (int t = 0; t < rows; ++t) {
      I32xD value = repeat4(x[t].q + 4 * g);
      for (int p = 0; p < panels; ++p)
        dots[t][p].add(w[p].q[g], value);
    }
  for (int t = 0; t < rows; ++t)
    for (int p = 0; p < panels; ++p) {
      F32xD &sum = sums[t][p];
      if constexpr (hasOffset)
        sum = fmaD(w[p].offset, F32xD(bits<float>(x[t].start)), sum);
      sum = fmaD(__builtin_convertvector(dots[t][p].total(), F32xD),
                 w[p].scale * x[t].scale, sum);
    }
}

/// extend() for sums in memory, f32 [panels][panelStride].
template <int rows, PanelFormat format, int panels>
LLAMAC_INLINE void extendRows(const Int8Weights<format> (&w)[panels],
                              const Int8Block *x, float *sums,
                              long panelStride) {
  F32xD sum[rows][panels];
  for (int t = 0; t < rows; ++t)
    for (int p = 0; p < panels; ++p)
      sum[t][p] = load<F32xD>(sums + p * panelStride + t * panelRows);
  extend(w, x, sum);
  for (int t = 0; t < rows; ++t)
    for (int p = 0; p < panels; ++p)
      store(sums + p * panelStride + t * panelRows, sum[t][p]);
}

/// Prefetches the 16 rows' block that lies `ahead` bytes after `block`.
template <PanelFormat format>
LLAMAC_INLINE void prefetchBlock(const U8 *block, long ahead) {
  for (long i = 0; i < panelBlock(format).bytes; i += 64)
    prefetch(block + ahead + i);
}

/// y[t] = W x[t] for some panels; x is [blocks][rows], sums f32 [panels][rows]
/// [16].
template <PanelFormat format, long depth, int count>
LLAMAC_INLINE void int8Panels(const U8 *const (&panels)[count],
                              const Int8Block *x, long rows, float *sums) {
  for (long i = 0; i < count * rows; ++i)
    store(sums + 16 * i, F32x16(0));
  for (long b = 0; b < depth / 32; ++b) {
    constexpr long bytes = panelBlock(format).bytes;
    for (int p = 0; p < count; ++p)
      prefetchBlock<format>(panels[p] + b * bytes, 1024);
    for (int lane = 0; lane < panelRows; lane += dotLanes) {
      Int8Weights<format> weights[count];
      for (int p = 0; p < count; ++p)
        weights[p].read(panels[p] + b * bytes, lane);
      const Int8Block *from = x + b * rows;
      float *to = sums + lane;
      long stride = rows * panelRows, t = 0;
#pragma clang loop unroll(disable)
      for (; t + dotRows <= rows; t += dotRows)
        extendRows<dotRows>(weights, from + t, to + t * panelRows, stride);
#pragma clang loop unroll(disable)
      for (; t < rows; ++t)
        extendRows<1>(weights, from + t, to + t * panelRows, stride);
    }
  }
}

/// The same for one panel and one row, with the sums in registers.
template <PanelFormat format, long depth>
LLAMAC_INLINE void int8PanelRow(const U8 *panel, const Int8Block *x,
                                float *sums) {
  constexpr int parts = panelRows / dotLanes;
  F32xD sum[parts][1][1] = {};
  for (long b = 0; b < depth / 32; ++b) {
    const U8 *block = panel + b * panelBlock(format).bytes;
    prefetchBlock<format>(block, 2048);
    for (int part = 0; part < parts; ++part) {
      Int8Weights<format> weights[1];
      weights[0].read(block, part * dotLanes);
      extend(weights, x + b, sum[part]);
    }
  }
  for (int part = 0; part < parts; ++part)
    store(sums + part * dotLanes, sum[part][0][0]);
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_INT8_H
