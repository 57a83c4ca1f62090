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
// The few blocks of a row with much larger values than its others decide the
// error of its products, since a block is rounded to a share of its largest
// value: trained models keep such values in the same places of every row. So a
// block whose range is above the mean of its row is given a second block, the
// residual that rounding left, and is multiplied twice. On SmolLM2 a quarter to
// a third of the blocks take one, and the divergence from exact activations
// falls to a ninth.
//
// One block of 16 rows is held in registers while the rows of x pass (tile.h
// has the reasons), and the order of every f32 operation is that of the blocks,
// a block's residual right behind it.
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

/// The largest magnitude of 32 values; NaN when there is one.
LLAMAC_INLINE float rangeOf(const float *x) {
  // As integers, magnitudes order as numbers do, with NaN above infinity.
  I32x16 largest = __builtin_elementwise_max(
      bits<I32x16>(load<F32x16>(x)) & 0x7fffffff,
      bits<I32x16>(load<F32x16>(x + 16)) & 0x7fffffff);
  return bits<float>(__builtin_reduce_max(largest));
}

/// Rounds 32 values of the given range to nearest. The scale of a block that
/// holds an infinity or a NaN is one too, so it shows in every sum of the
/// block.
template <PanelFormat format>
LLAMAC_INLINE void quantize(const float *x, float range, Int8Block &block) {
  auto lo = load<F32x16>(x), hi = load<F32x16>(x + 16);
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

/// What `block` leaves of the 32 values it was rounded from.
LLAMAC_INLINE void residualOf(const float *x, const Int8Block &block,
                              float *residual) {
  using I8x16 = I8 __attribute__((ext_vector_type(16)));
  for (int half = 0; half < 32; half += 16) {
    auto q = __builtin_convertvector(load<I8x16>(block.q + half), F32x16);
    store(residual + half, fma(q, splat(-block.scale), load<F32x16>(x + half)));
  }
}

/// Rows of activations in 8 bits: for each block of the depth the rows' blocks,
/// then the residuals of those that have one, with the rows they belong to.
template <long depth> struct Int8Rows {
  Int8Block *blocks;    ///< [depth / 32][rows]
  Int8Block *residuals; ///< [depth / 32][rows], the first `counts` of each
  U32 *residualRows;    ///< The same.
  U32 *counts;          ///< [depth / 32]
  long rows;

  LLAMAC_INLINE Int8Rows(U8 *memory, long rows) : rows(rows) {
    constexpr auto cast = [](U8 *at) {
      return reinterpret_cast<Int8Block *>(at);
    };
    const Int8RowsLayout layout = int8RowsLayout(depth, rows);
    blocks = cast(memory);
    residuals = cast(memory + layout.residuals);
    residualRows = reinterpret_cast<U32 *>(memory + layout.residualRows);
    counts = reinterpret_cast<U32 *>(memory + layout.counts);
  }

  LLAMAC_INLINE void clear() const {
    for (long b = 0; b < depth / 32; ++b)
      counts[b] = 0;
  }

  /// Rounds row `t`; rows come in ascending order.
  template <PanelFormat format>
  LLAMAC_INLINE void add(const float *x, long t) const {
    float ranges[depth / 32];
    float total = 0;
    for (long b = 0; b < depth / 32; ++b)
      total += ranges[b] = rangeOf(x + 32 * b);
    for (long b = 0; b < depth / 32; ++b) {
      Int8Block &block = blocks[b * rows + t];
      quantize<format>(x + 32 * b, ranges[b], block);
      if (!(ranges[b] * float(depth / 32) > total))
        continue;
      float residual[32];
      residualOf(x + 32 * b, block, residual);
      const long at = b * rows + counts[b]++;
      quantize<format>(residual, rangeOf(residual), residuals[at]);
      residualRows[at] = U32(t);
    }
  }
};

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

/// extend() for sums in memory, f32 [panels][panelStride]; the sums of x[t] are
/// those of row rowOf(t).
template <int rows, PanelFormat format, int panels, class RowOf>
LLAMAC_INLINE void extendRows(const Int8Weights<format> (&w)[panels],
                              const Int8Block *x, float *sums, long panelStride,
                              const RowOf &rowOf) {
  F32xD sum[rows][panels];
  for (int t = 0; t < rows; ++t)
    for (int p = 0; p < panels; ++p)
      sum[t][p] = load<F32xD>(sums + p * panelStride + rowOf(t) * panelRows);
  extend(w, x, sum);
  for (int t = 0; t < rows; ++t)
    for (int p = 0; p < panels; ++p)
      store(sums + p * panelStride + rowOf(t) * panelRows, sum[t][p]);
}

/// extendRows() for `count` blocks.
template <PanelFormat format, int panels, class RowOf>
LLAMAC_INLINE void extendAll(const Int8Weights<format> (&w)[panels],
                             const Int8Block *x, long count, float *sums,
                             long panelStride, const RowOf &rowOf) {
  long first = 0;
  auto row = [&](long t) { return rowOf(first + t); };
#pragma clang loop unroll(disable)
  for (; first + dotRows <= count; first += dotRows)
    extendRows<dotRows>(w, x + first, sums, panelStride, row);
#pragma clang loop unroll(disable)
  for (; first < count; ++first)
    extendRows<1>(w, x + first, sums, panelStride, row);
}

/// Prefetches the 16 rows' block that lies `ahead` bytes after `block`.
template <PanelFormat format>
LLAMAC_INLINE void prefetchBlock(const U8 *block, long ahead) {
  for (long i = 0; i < panelBlock(format).bytes; i += 64)
    prefetch(block + ahead + i);
}

/// y[t] = W x[t] for some panels; sums are f32 [panels][rows][16].
template <PanelFormat format, long depth, int count>
LLAMAC_INLINE void int8Panels(const U8 *const (&panels)[count],
                              const Int8Rows<depth> &x, float *sums) {
  const long rows = x.rows;
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
      float *to = sums + lane;
      const long stride = rows * panelRows, at = b * rows;
      extendAll(weights, x.blocks + at, rows, to, stride,
                [](long t) { return t; });
      extendAll(weights, x.residuals + at, x.counts[b], to, stride,
                [&](long t) { return long(x.residualRows[at + t]); });
    }
  }
}

/// The same for one panel and one row, with the sums in registers.
template <PanelFormat format, long depth>
LLAMAC_INLINE void int8PanelRow(const U8 *panel, const Int8Rows<depth> &x,
                                float *sums) {
  constexpr int parts = panelRows / dotLanes;
  F32xD sum[parts][1][1] = {};
  for (long b = 0; b < depth / 32; ++b) {
    const U8 *block = panel + b * panelBlock(format).bytes;
    prefetchBlock<format>(block, 2048);
    for (int part = 0; part < parts; ++part) {
      Int8Weights<format> weights[1];
      weights[0].read(block, part * dotLanes);
      extend(weights, x.blocks + b, sum[part]);
      if (x.counts[b])
        extend(weights, x.residuals + b, sum[part]);
    }
  }
  for (int part = 0; part < parts; ++part)
    store(sums + part * dotLanes, sum[part][0][0]);
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_INT8_H
