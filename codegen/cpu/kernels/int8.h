//===- int8.h - Products in 8-bit integers ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All block formats are multiplied as integers, but by --exact: activations are
// rounded to 8 bits in blocks of 32 with an f32 scale, the sum of a block's
// products is exact, and only its two scales are applied in f32. With
// w = q d + m and x = p s:
//
//   sum over the block of w x = d s (sum of q p) + m (s sum of p)
//
// Where w is (q - bias) d, and where the machine multiplies unsigned by signed
// bytes and Q8_0 is q + 128 - 128, the bias is an integer too, so it goes into
// the value the sum starts from. The d and m of a part of 32 k of a K-quant are
// products of the block's two halves and the part's 6 bits; Q6_K has a d for
// each 16 k, so the sum over its parts is taken in two runs.
//
// The few blocks of a row with much larger values than its others decide the
// error of its products, since a block is rounded to a share of its largest
// value: trained models keep such values in the same places of every row. So a
// block whose range is over residualRange times the mean of its row (of its
// leaf, where the row is summed by leaves, which ranks may have) is given a
// second block, the residual that rounding left, and is multiplied twice. On
// SmolLM2 22 % of the blocks take one, and the divergence from exact
// activations falls to a seventh.
//
// One block of 16 rows is held in registers while the rows of x pass (tile.h
// has the reasons), and the order of every f32 operation is that of the blocks,
// a block's residual right behind it. Where the machine has tiles (amx.h) they
// take 16 rows at a time: the integer sums are the same, and so the bits.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_INT8_H
#define LLAMAC_CPU_INT8_H

#include "llamac/cpu/amx.h"
#include "llamac/cpu/config.h"
#include "llamac/cpu/panels.h"
#include "llamac/cpu/simd.h"

namespace llamac::cpu {

/// How a block format's weights are multiplied.
template <PanelFormat format> struct Int8Format {
  static constexpr BlockCode code = blockCode<format>();
  static constexpr PanelBlock block = panelBlock(format);
  static constexpr long parts = block.depth / 32;
  static constexpr long partBytes = block.bytes / parts;
  static constexpr long quants = quantsOffset<format>();

  /// Whether v - least fits DotUnsigned; if not, v goes to DotI8.
  static constexpr bool isUnsigned = code.most - code.least <= 127;
  static constexpr auto dotOf() {
    if constexpr (isUnsigned)
      return DotUnsigned<code.most - code.least>{};
    else
      return DotI8{};
  }
  using Dot = decltype(dotOf());
  /// The bias that read() adds to v.
  static constexpr int bias = isUnsigned ? -code.least : hasVnni ? 128 : 0;
  /// Rows unrolled over: a scale for each run leaves registers for fewer.
  static constexpr int rows = code.runs == 2 && dotRows > 2 ? 2 : dotRows;
};

/// 32 activations. `start` is what the integer sum of a format with a bias
/// starts from, and with an offset the f32 scale * sum(q); with two runs it is
/// the sum of q of each, in 16 bits.
struct Int8Block {
  I8 q[32];
  float scale;
  U32 start;

  template <PanelFormat format> LLAMAC_INLINE int startOf(int run) const {
    if constexpr (blockCode<format>().hasOffset)
      return 0;
    else if constexpr (blockCode<format>().runs == 2)
      return -Int8Format<format>::bias * sumOf(run);
    else
      return int(start);
  }

  /// scale * sum(q) of a run.
  template <PanelFormat format> LLAMAC_INLINE float scaledSum(int run) const {
    if constexpr (blockCode<format>().runs == 2)
      return scale * float(sumOf(run));
    else
      return bits<float>(start);
  }

private:
  LLAMAC_INLINE int sumOf(int run) const { return short(start >> 16 * run); }
};
static_assert(sizeof(Int8Block) == int8BlockBytes);

/// The largest magnitude of 32 values; NaN when one is.
LLAMAC_INLINE float rangeOf(const float *x) {
  // Magnitudes compared as integers order as numbers do, with NaN above
  // infinity.
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
  constexpr BlockCode code = blockCode<format>();
  I32x16 lower = bits<I32x16>(qlo) << 24 >> 24;
  I32x16 upper = bits<I32x16>(qhi) << 24 >> 24;
  if constexpr (code.runs == 2) {
    block.start = U32(__builtin_reduce_add(lower) & 0xffff) |
                  U32(__builtin_reduce_add(upper)) << 16;
  } else {
    int sum = __builtin_reduce_add(lower + upper);
    block.start = code.hasOffset ? bits<U32>(block.scale * float(sum))
                                 : U32(-Int8Format<format>::bias * sum);
  }
}

/// A block has a residual where its range is over so many times the mean range
/// of its leaf's blocks. A smaller factor brings the products closer to exact
/// ones, a larger one spares prefill blocks multiplied twice
/// (docs/decisions/0002).
constexpr float residualRange = 1.2f;

/// The remainder of the 32 values that `block` was rounded from.
LLAMAC_INLINE void residualOf(const float *x, const Int8Block &block,
                              float *residual) {
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
  U32 *residualRows;    ///< Row numbers, laid out like `residuals`.
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

  /// Rounds row `t`, which is summed by `leaves`; rows come in ascending order.
  template <PanelFormat format, long leaves>
  LLAMAC_INLINE void add(const float *x, long t) const {
    constexpr long size = depth / leaves / 32;
    for (long leaf = 0; leaf < leaves; ++leaf)
      addBlocks<format>(x, t, leaf * size, (leaf + 1) * size);
  }

private:
  /// Blocks begin .. end - 1 of row `t`.
  template <PanelFormat format>
  LLAMAC_INLINE void addBlocks(const float *x, long t, long begin,
                               long end) const {
    float ranges[depth / 32];
    float total = 0;
    for (long b = begin; b < end; ++b)
      total += ranges[b] = rangeOf(x + 32 * b);
    for (long b = begin; b < end; ++b) {
      Int8Block &block = blocks[b * rows + t];
      quantize<format>(x + 32 * b, ranges[b], block);
      if (!(ranges[b] * float(end - begin) > residualRange * total))
        continue;
      float residual[32];
      residualOf(x + 32 * b, block, residual);
      const long at = b * rows + counts[b]++;
      quantize<format>(residual, rangeOf(residual), residuals[at]);
      residualRows[at] = U32(t);
    }
  }
};

/// The bits of every byte of `v` from `first` on, moved to bit `to` on; `mask`
/// says which to keep there.
LLAMAC_INLINE U8xD movedBits(U8xD v, long first, int to, int mask) {
  // In words: what comes in from a neighbour is not kept.
  return bits<U8xD>(bits<U32xD>(v) >> U32(first) << U32(to) &
                    U32(mask) * 0x01010101u);
}

/// Four k of parts 2i and 2i + 1 of a block whose parts are paired, for
/// `dotLanes` rows.
template <PanelFormat format> struct PairedParts {
  static constexpr int storedBits = blockCode<format>().storedBits;
  static constexpr int extraBits = blockCode<format>().extraBits;
  static constexpr U8 firstMask = (1 << storedBits) - 1;
  static constexpr U8 secondMask = firstMask << storedBits;
  /// The shift to the left that the weights of second() have.
  static constexpr int secondShift = storedBits - extraBits;

  U8xD stored; ///< The first part's bits, and the second's above them.
  U8xD extra;  ///< Bits that first() and second() have beside the stored ones.

  /// Group `group` of parts 2 * pair and 2 * pair + 1.
  LLAMAC_INLINE PairedParts(const U8 *block, long pair, int group, int lane) {
    constexpr long pairsOfByte = 4 / storedBits;
    const U8 *words =
        block + Int8Format<format>::quants + group * 64 + 4 * lane;
    stored = load<U8xD>(words + (extraBits + pair / pairsOfByte) * 512);
    if constexpr (pairsOfByte > 1)
      // In words: what comes in from a neighbour is not kept.
      stored = bits<U8xD>(bits<U32xD>(stored) >>
                          U32(pair % pairsOfByte * 2 * storedBits));
    if constexpr (extraBits > 0) {
      constexpr long pairsOfWord = 4 / extraBits;
      constexpr U32 mask = (0x01010101u << (storedBits + extraBits)) -
                           (0x01010101u << (storedBits - extraBits));
      const auto word = load<U32xD>(words + pair / pairsOfWord * 512);
      extra = bits<U8xD>(
          rotatedRight(word, U32(pair % pairsOfWord) * 2 * extraBits) & mask);
    }
  }

  LLAMAC_INLINE U8xD first() const { return weights<firstMask>(); }
  /// The weights of the second part, times 2^secondShift.
  LLAMAC_INLINE U8xD second() const { return weights<secondMask>(); }

private:
  template <U8 mask> LLAMAC_INLINE U8xD weights() const {
    if constexpr (extraBits == 0)
      return stored & mask;
    else
      return mergedBits(stored, extra, mask);
  }
};

/// v >> by in every byte, all of which are multiples of 2^by.
LLAMAC_INLINE U8xD shiftedRight(U8xD v, int by) {
  return bits<U8xD>(bits<U32xD>(v) >> U32(by));
}

/// `dotLanes` rows of one part of a block of weights, in registers.
template <PanelFormat format> struct Int8Weights {
  using Format = Int8Format<format>;
  static constexpr BlockCode code = Format::code;

  U8xD q[8];
  GroupScales<dotLanes> scales[code.runs];

  /// Part `part` of `block`, lanes from `lane` on, a multiple of dotLanes.
  LLAMAC_INLINE void read(const U8 *block, long part, int lane) {
    readScales(block, part, lane);
    const U8 *words = block + Format::quants + 4 * lane;
    if constexpr (code.isPaired) {
      if (part % 2)
        readSecond(block, part / 2, lane);
      else
        readFirst(block, part / 2, lane);
    } else if constexpr (code.storedBits == 8) {
      readBytes(words);
    } else {
      readPairs(words + 256 * part);
    }
  }

  /// `sum` and what run `run` of `x` adds, of which `dots` are the integer
  /// sums.
  LLAMAC_INLINE F32xD extended(F32xD sum, I32xD dots, int run,
                               const Int8Block &x) const {
    if constexpr (code.hasOffset)
      sum = fma(scales[run].offset, F32xD(x.template scaledSum<format>(run)),
                sum);
    return fma(__builtin_convertvector(dots, F32xD),
               scales[run].scale * x.scale, sum);
  }

  LLAMAC_INLINE void readScales(const U8 *block, long part, int lane) {
    for (int run = 0; run < code.runs; ++run)
      scales[run] =
          groupScales<format, dotLanes>(block, part * code.runs + run, lane);
  }

private:
  LLAMAC_INLINE void readBytes(const U8 *words) {
    for (int g = 0; g < 8; ++g) {
      q[g] = load<U8xD>(words + 64 * g);
      if (hasVnni)
        q[g] ^= 0x80;
    }
  }

  /// 32 k: k = 16 + i is in the high half of the byte of k = i.
  LLAMAC_INLINE void readPairs(const U8 *words) {
    for (int g = 0; g < 4; ++g) {
      auto pair = load<U8xD>(words + 64 * (code.extraBits + g));
      q[g] = pair & 15;
      q[g + 4] = pair >> 4;
    }
    if constexpr (code.extraBits > 0) {
      auto fifth = load<U8xD>(words);
      for (int g = 0; g < 8; ++g)
        q[g] |= movedBits(fifth, g, 4, 16);
    }
    if constexpr (code.values)
      for (U8xD &v : q)
        v = lookedUp<code.values, Format::bias>(v);
  }

  LLAMAC_INLINE void readFirst(const U8 *block, long pair, int lane) {
    for (int g = 0; g < 8; ++g)
      q[g] = PairedParts<format>(block, pair, g, lane).first();
  }

  LLAMAC_INLINE void readSecond(const U8 *block, long pair, int lane) {
    using Pair = PairedParts<format>;
    for (int g = 0; g < 8; ++g)
      q[g] =
          shiftedRight(Pair(block, pair, g, lane).second(), Pair::secondShift);
  }
};

/// sums[t][p] += w[p] x[t] for one part of some panels and rows, which share
/// what is in registers.
template <PanelFormat format, int panels, int rows>
LLAMAC_INLINE void extend(const Int8Weights<format> (&w)[panels],
                          const Int8Block *x, F32xD (&sums)[rows][panels]) {
  using Format = Int8Format<format>;
  constexpr int groups = 8 / Format::code.runs;
  for (int run = 0; run < Format::code.runs; ++run) {
    typename Int8Format<format>::Dot dots[rows][panels];
    for (int t = 0; t < rows; ++t)
      for (int p = 0; p < panels; ++p)
        dots[t][p].start(x[t].template startOf<format>(run));
    for (int g = run * groups; g < (run + 1) * groups; ++g)
      for (int t = 0; t < rows; ++t) {
        I32xD value = repeat4(x[t].q + 4 * g);
        for (int p = 0; p < panels; ++p)
          dots[t][p].add(w[p].q[g], value);
      }
    for (int t = 0; t < rows; ++t)
      for (int p = 0; p < panels; ++p)
        sums[t][p] = w[p].extended(sums[t][p], dots[t][p].total(), run, x[t]);
  }
}

/// Prefetches share `share` of `shares` of some bytes.
template <long bytes, int shares>
LLAMAC_INLINE void prefetchShare(const U8 *from, int share) {
  constexpr long lines = (bytes + 63) / 64;
  // A count that does not depend on `share`, so that loops unroll at once.
#pragma clang loop unroll(full)
  for (long i = 0; i < (lines + shares - 1) / shares; ++i)
    if (const long line = lines * share / shares + i;
        line < lines * (share + 1) / shares)
      prefetch(from + 64 * line);
}

/// The address to prefetch while `at` of a panel of `size` bytes is read:
/// `distance` bytes on, and past the panel's end in the one that is read next,
/// `stride` bytes after its start.
template <long size, long distance>
LLAMAC_INLINE const U8 *aheadOf(const U8 *panel, const U8 *at, long stride) {
  const U8 *next = at + distance;
  return next < panel + size ? next : next + (stride - size);
}

/// extend() for one row and two parts of `blocks`, of their rows slices
/// slice .. slice + slices - 1: `part`, an even one, by the activations x[0]
/// and part + 1 by x[1], each with its residual where `terms` is 2. A byte is
/// unpacked once for both, right where it is multiplied.
template <int terms, int slices, PanelFormat format, int panels>
LLAMAC_INLINE void extendPair(const U8 *const (&blocks)[panels],
                              const U8 *const (&next)[panels], long part,
                              int slice, const Int8Block *const (&x)[2][terms],
                              F32xD (&sums)[dotSlices][1][panels]) {
  using Format = Int8Format<format>;
  using Pair = PairedParts<format>;
  constexpr int runs = Format::code.runs, groups = 8 / runs;
  // The second part's weights stay where they are if a product takes bytes
  // above 127.
  constexpr int secondShift = hasVnni ? Pair::secondShift : 0;
  constexpr int shifts[] = {0, secondShift};

  I32xD totals[2][runs][terms][slices][panels];
#pragma clang loop unroll(full)
  for (int run = 0; run < runs; ++run) {
    typename Int8Format<format>::Dot dots[2][terms][slices][panels];
    const auto each = [&](auto apply) {
      for (int i = 0; i < 2; ++i)
        for (int t = 0; t < terms; ++t)
          for (int s = 0; s < slices; ++s)
            for (int p = 0; p < panels; ++p)
              apply(i, t, s, p);
    };
    each([&](int i, int t, int s, int p) {
      dots[i][t][s][p].start(x[i][t]->template startOf<format>(run) *
                             (1 << shifts[i]));
    });
#pragma clang loop unroll(full)
    for (int g = run * groups; g < (run + 1) * groups; ++g) {
      for (int s = 0; s < slices; ++s)
        for (int p = 0; p < panels; ++p) {
          prefetchShare<2 * Format::partBytes, 8 * dotSlices>(
              next[p], (slice + s) * 8 + g);
          const Pair pair(blocks[p], part / 2, g, (slice + s) * dotLanes);
          const U8xD w[] = {
              pair.first(),
              shiftedRight(pair.second(), Pair::secondShift - secondShift)};
          for (int i = 0; i < 2; ++i)
            for (int t = 0; t < terms; ++t)
              dots[i][t][s][p].add(w[i], repeat4(x[i][t]->q + 4 * g));
        }
      each([&](int i, int t, int s, int p) { dots[i][t][s][p].materialize(); });
    }
    each([&](int i, int t, int s, int p) {
      totals[i][run][t][s][p] = dots[i][t][s][p].total() >> shifts[i];
    });
  }
  for (int i = 0; i < 2; ++i)
    for (int s = 0; s < slices; ++s)
      for (int p = 0; p < panels; ++p) {
        Int8Weights<format> weights;
        weights.readScales(blocks[p], part + i, (slice + s) * dotLanes);
        for (int t = 0; t < terms; ++t)
          for (int run = 0; run < runs; ++run)
            sums[slice + s][0][p] = weights.extended(
                sums[slice + s][0][p], totals[i][run][t][s][p], run, *x[i][t]);
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

/// extendRows() for blocks first .. count - 1, `rows` at a time while there are
/// so many.
template <int rows, PanelFormat format, int panels, class RowOf>
LLAMAC_INLINE void extendAll(const Int8Weights<format> (&w)[panels],
                             const Int8Block *x, long first, long count,
                             float *sums, long panelStride,
                             const RowOf &rowOf) {
#pragma clang loop unroll(disable)
  for (; first + rows <= count; first += rows)
    extendRows<rows>(w, x + first, sums, panelStride,
                     [&](long t) { return rowOf(first + t); });
  if constexpr (rows > 1)
    extendAll<rows / 2>(w, x, first, count, sums, panelStride, rowOf);
}

template <PanelFormat format>
using Int8Tiles = AmxTiles<32 / blockCode<format>().runs>;

/// Extends the sums by tiles of AMX, for as many whole tiles of blocks as
/// `count` blocks make; returns how many blocks those are. The integer sums are
/// exact either way, so the results are the same bits.
template <PanelFormat format, int panels, class RowOf>
LLAMAC_INLINE long extendTiles(Int8Tiles<format> &tiles,
                               const Int8Weights<format> (&w)[panels],
                               const Int8Block *x, long count, float *sums,
                               long panelStride, const RowOf &rowOf) {
  static_assert(panels <= 2 && dotLanes == amxRows);
  using Format = Int8Format<format>;
  constexpr int groups = 8 / Format::code.runs;
  const long whole = count / amxRows * amxRows;
  if (!whole)
    return 0;
  for (int run = 0; run < Format::code.runs; ++run) {
    alignas(64) U8 bytes[panels][groups * 64];
    for (int p = 0; p < panels; ++p)
      for (int g = 0; g < groups; ++g)
        store(bytes[p] + 64 * g, w[p].q[run * groups + g]);
    tiles.template loadWeights<0>(bytes[0]);
    if constexpr (panels == 2)
      tiles.template loadWeights<1>(bytes[1]);
#pragma clang loop unroll(disable)
    for (long first = 0; first < whole; first += amxRows) {
      alignas(64) int dots[panels][amxRows * 16];
      tiles.loadActivations(x[first].q + run * groups * 4, sizeof(Int8Block));
      tiles.template multiply<0>(dots[0]);
      if constexpr (panels == 2)
        tiles.template multiply<1>(dots[1]);
      for (int t = 0; t < amxRows; ++t) {
        const Int8Block &block = x[first + t];
        for (int p = 0; p < panels; ++p) {
          float *to = sums + p * panelStride + rowOf(first + t) * panelRows;
          const I32xD dot = load<I32xD>(dots[p] + 16 * t) +
                            block.template startOf<format>(run);
          store(to, w[p].extended(load<F32xD>(to), dot, run, block));
        }
      }
    }
  }
  return whole;
}

/// extendRows() for `count` blocks, by tiles where there are any.
template <PanelFormat format, int panels, class RowOf>
LLAMAC_INLINE void extendBlocks([[maybe_unused]] Int8Tiles<format> &tiles,
                                const Int8Weights<format> (&w)[panels],
                                const Int8Block *x, long count, float *sums,
                                long panelStride, const RowOf &rowOf) {
  long first = 0;
  if constexpr (hasAmx)
    first = extendTiles(tiles, w, x, count, sums, panelStride, rowOf);
  extendAll<Int8Format<format>::rows>(w, x, first, count, sums, panelStride,
                                      rowOf);
}

/// Part `part` of a panel, counted from its start.
template <PanelFormat format> struct PanelPart {
  using Format = Int8Format<format>;

  const U8 *block;
  long part; ///< Number of the part in the block.

  LLAMAC_INLINE PanelPart(const U8 *panel, long part)
      : block(panel + part / Format::parts * Format::block.bytes),
        part(part % Format::parts) {}

  /// An equal share of the block.
  LLAMAC_INLINE const U8 *bytes() const {
    return block + part * Format::partBytes;
  }
  LLAMAC_INLINE void read(Int8Weights<format> &weights, int lane) const {
    weights.read(block, part, lane);
  }
};

/// y[t] = W x[t] over blocks begin .. end - 1 of the depth for some panels;
/// sums are f32 [panels][rows][16]. Prefetches go `distance` bytes ahead; the
/// panels that are read next begin `stride` bytes on.
template <PanelFormat format, long distance, long depth, int count>
LLAMAC_INLINE void int8Panels(const U8 *const (&panels)[count], long stride,
                              const Int8Rows<depth> &x, long begin, long end,
                              float *sums) {
  const long rows = x.rows;
  Int8Tiles<format> tiles;
  for (long i = 0; i < count * rows; ++i)
    store(sums + 16 * i, F32x16(0));
  for (long b = begin; b < end; ++b) {
    for (int p = 0; p < count; ++p)
      prefetchShare<Int8Format<format>::partBytes, 1>(
          aheadOf<panelBytes(format, depth), distance>(
              panels[p], PanelPart<format>(panels[p], b).bytes(), stride),
          0);
    for (int lane = 0; lane < panelRows; lane += dotLanes) {
      Int8Weights<format> weights[count];
      for (int p = 0; p < count; ++p)
        PanelPart<format>(panels[p], b).read(weights[p], lane);
      float *to = sums + lane;
      const long stride = rows * panelRows, at = b * rows;
      extendBlocks(tiles, weights, x.blocks + at, rows, to, stride,
                   [](long t) { return t; });
      extendBlocks(tiles, weights, x.residuals + at, x.counts[b], to, stride,
                   [&](long t) { return long(x.residualRows[at + t]); });
    }
  }
}

/// The products of one row, with the sums in registers. Prefetches are issued a
/// little at a time between the instructions that unpack, so that the two
/// overlap.
template <PanelFormat format, long distance, long depth, int count>
LLAMAC_INLINE void int8PanelsRow(const U8 *const (&panels)[count], long stride,
                                 const Int8Rows<depth> &x, long begin, long end,
                                 float *sums) {
  using Format = Int8Format<format>;
  using Part = PanelPart<format>;
  constexpr long size = panelBytes(format, depth);
  constexpr long step = Format::code.isPaired ? 2 : 1;
  // So many that shifts in the bytes that parts share are constants.
  constexpr long unrolled =
      Format::code.isPaired ? 8 / Format::code.storedBits : 1;
  const Int8Block zeros = {};
  F32xD sum[dotSlices][1][count] = {};
  for (long start = begin; start < end; start += unrolled) {
#pragma clang loop unroll(full)
    for (long b = start; b < start + unrolled; b += step) {
      const U8 *next[count];
      for (int p = 0; p < count; ++p)
        next[p] = aheadOf<size, distance>(panels[p], Part(panels[p], b).bytes(),
                                          stride);
      if constexpr (Format::code.isPaired) {
        const U8 *blocks[count];
        for (int p = 0; p < count; ++p)
          blocks[p] = Part(panels[p], b).block;
        const long part = b % Format::parts;
        const Int8Block *at = x.blocks + b, *residuals = x.residuals + b;
        // Blocks that are multiplied by the same activations, as many as the
        // registers have room for.
        constexpr int together = count == 1 ? dotSlices : 1;
#pragma clang loop unroll(full)
        for (int i = 0; i < dotSlices; i += together) {
          if (x.counts[b] || x.counts[b + 1])
            extendPair<2, together, format>(
                blocks, next, part, i,
                {{at, x.counts[b] ? residuals : &zeros},
                 {at + 1, x.counts[b + 1] ? residuals + 1 : &zeros}},
                sum);
          else
            extendPair<1, together, format>(blocks, next, part, i,
                                            {{at}, {at + 1}}, sum);
        }
      } else {
        for (int i = 0; i < dotSlices; ++i) {
          Int8Weights<format> weights[count];
          for (int p = 0; p < count; ++p) {
            prefetchShare<Format::partBytes, dotSlices>(next[p], i);
            Part(panels[p], b).read(weights[p], i * dotLanes);
          }
          extend(weights, x.blocks + b, sum[i]);
          if (x.counts[b])
            extend(weights, x.residuals + b, sum[i]);
        }
      }
    }
  }
  for (int p = 0; p < count; ++p)
    for (int i = 0; i < dotSlices; ++i)
      store(sums + p * panelRows + i * dotLanes, sum[i][0][p]);
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_INT8_H
