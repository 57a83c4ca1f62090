//===- rope.h - Rotary embedding and appending to the KV cache --*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ropeTable computes the cos/sin cache of a step's rows, once for all layers.
// The epilogues rotate the pairs (2i, 2i + 1) of queries and keys by it and
// write keys and values to their page: ropeAppend feeds them from memory, the
// products of qkv.h from their accumulators.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_ROPE_H
#define LLAMAC_CPU_ROPE_H

#include "llamac/cpu/config.h"
#include "llamac/cpu/kvcache.h"
#include "llamac/cpu/rowwise.h"
#include "llamac/cpu/simd.h"

namespace llamac::cpu {

using F64x8 = double __attribute__((ext_vector_type(8)));
using I64x8 = long __attribute__((ext_vector_type(8)));

struct SineCosine {
  F64x8 sine;
  F64x8 cosine;
};

/// sin x and cos x for |x| up to 2^20, within 1e-15: x = n pi/2 + r with
/// |r| <= pi/4, where pi/2 has parts such that n times the first two is exact,
/// then the Taylor series up to r^17 and r^16, whose next terms are below
/// 1e-17.
LLAMAC_INLINE SineCosine sineCosine(F64x8 x) {
  constexpr double magic = 0x1.8p52; // Adding it rounds to an integer.
  F64x8 shifted = fma(x, F64x8(0x1.45f306dc9c883p-1), F64x8(magic));
  auto quarters = bits<I64x8>(shifted); // Its lowest bits are those of n.
  F64x8 n = shifted - magic;
  F64x8 r = fma(n, F64x8(-0x1.921fb54p+0), x);
  r = fma(n, F64x8(-0x1.10b46118p-30), r);
  r = fma(n, F64x8(-0x1.313198a2e037p-61), r);

  F64x8 square = r * r;
  F64x8 sine = 1, cosine = 1; // (sin r) / r and cos r, by Horner's rule.
#pragma clang loop unroll(full)
  for (int k = 16; k > 0; k -= 2) {
    sine = fma(sine, square * (-1.0 / double(k * (k + 1))), F64x8(1));
    cosine = fma(cosine, square * (-1.0 / double(k * (k - 1))), F64x8(1));
  }
  sine *= r;

  // An odd number of quarters swaps the two; signs follow the quadrant.
  I64x8 isOdd = (quarters & 1) != 0;
  F64x8 ofSine = isOdd ? cosine : sine, ofCosine = isOdd ? sine : cosine;
  return {bits<F64x8>(bits<I64x8>(ofSine) ^ (quarters & 2) << 62),
          bits<F64x8>(bits<I64x8>(ofCosine) ^ ((quarters + 1) & 2) << 62)};
}

/// out: f32 [rows][headSize / 2][cos, sin]; frequencies: f64 [headSize / 2].
template <long headSize>
LLAMAC_INLINE void ropeTable(const CpuLaunch &launch, const int *positions,
                             const double *frequencies, float *out) {
  constexpr long pairs = headSize / 2, lanes = 8;
  forEachRow(launch, ropeTableShape().rowBlock, [&](long row) {
    for (long i = 0; i < pairs; i += lanes) {
      F64x8 frequency = 0;
      const int count = int(pairs - i < lanes ? pairs - i : lanes);
      __builtin_memcpy(&frequency, frequencies + i, count * sizeof(double));
      SineCosine of = sineCosine(double(positions[row]) * frequency);
      store16(out + row * headSize + 2 * i,
              __builtin_shufflevector(__builtin_convertvector(of.cosine, F32x8),
                                      __builtin_convertvector(of.sine, F32x8),
                                      0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6,
                                      14, 7, 15),
              2 * count);
    }
  });
}

/// Where the rows of a step go: row r is the token at positions[r] of sequence
/// sequences[r].
struct AppendArgs {
  const float *cosSin;  ///< The cos/sin cache that ropeTable wrote.
  void *pool;           ///< The layer's pages.
  const int *pageTable; ///< [sequences][pagesPerSequence].
  const int *positions; ///< [rows].
  const int *sequences; ///< [rows].
};

/// Elements column .. column + 15 of a row of heads, their pairs rotated by the
/// row's part of the cos/sin cache. Its halves are loaded apart, since 16
/// elements may reach into the next head.
template <long headSize>
LLAMAC_INLINE F32x16 rotated(F32x16 v, const float *cosSin, long column) {
  auto pairs = __builtin_shufflevector(
      load<F32x8>(cosSin + column % headSize),
      load<F32x8>(cosSin + (column + 8) % headSize), 0, 1, 2, 3, 4, 5, 6, 7, 8,
      9, 10, 11, 12, 13, 14, 15);
  F32x16 swapped = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8,
                                           11, 10, 13, 12, 15, 14);
  F32x16 cosine = __builtin_shufflevector(pairs, pairs, 0, 0, 2, 2, 4, 4, 6, 6,
                                          8, 8, 10, 10, 12, 12, 14, 14);
  F32x16 sine = __builtin_shufflevector(pairs, -pairs, 17, 1, 19, 3, 21, 5, 23,
                                        7, 25, 9, 27, 11, 29, 13, 31, 15);
  return fma(v, cosine, swapped * sine);
}

/// Takes queries: out = the rotated query, rows of `width`.
template <long headSize, long width> struct RotatedRows {
  const float *cosSin;
  float *out;

  LLAMAC_INLINE void operator()(long row, long column, F32x16 y,
                                int lanes) const {
    store16(out + row * width + column,
            rotated<headSize>(y, cosSin + row * headSize, column), lanes);
  }
};

/// Calls body(page, d, i) for the halves of 16 elements of a row of kv heads:
/// elements i .. i + 7 of the vector are d .. d + 7 of the head that lies in
/// `page`, which holds the row's token.
template <KvConfig kv, class Body>
LLAMAC_INLINE void forEachHalf(const AppendArgs &to, long row, long column,
                               int lanes, const Body &body) {
  for (int i = 0; i < lanes; i += 8) {
    long head = (column + i) / kv.headSize;
    KvPage<kv> page(to.pool, to.pageTable, to.sequences[row],
                    to.positions[row] / kv.pageTokens, head);
    body(page, column + i - head * kv.headSize, i);
  }
}

/// Calls body(page, d) for a whole block of Q8_0: it is d .. d + 15 of the head
/// that lies in `page`, which holds the row's token.
template <KvConfig kv, class Body>
LLAMAC_INLINE void withBlock(const AppendArgs &to, long row, long column,
                             const Body &body) {
  static_assert(kv.headSize % kvBlock == 0);
  const long head = column / kv.headSize;
  body(KvPage<kv>(to.pool, to.pageTable, to.sequences[row],
                  to.positions[row] / kv.pageTokens, head),
       column - head * kv.headSize);
}

/// Takes keys: rotated, they go to their page.
template <KvConfig kv> struct AppendKeys {
  AppendArgs to;

  LLAMAC_INLINE void operator()(long row, long column, F32x16 y,
                                int lanes) const {
    const F32x16 key =
        rotated<kv.headSize>(y, to.cosSin + row * kv.headSize, column);
    long token = to.positions[row] % kv.pageTokens;
    if constexpr (kv.format == KvFormat::Q8_0) {
      const KvBlock block = toKvBlock(key);
      withBlock<kv>(to, row, column, [&](const KvPage<kv> &page, long d) {
        U8 *keys = page.keys(token / 16 * 16, d) + token % 16 * 2;
        for (int i = 0; i < kvBlock; i += 2) {
          const I8 pair[] = {block.codes[i], block.codes[i + 1]};
          __builtin_memcpy(keys + i * 16, pair, 2);
        }
        store(page.keyScale(token, d), block.scale);
      });
    } else {
      constexpr long element = kvElementBytes(kv.format);
      U8 stored[16 * element];
      storeKv<kv.format>(stored, key);
      forEachHalf<kv>(
          to, row, column, lanes,
          [&](const KvPage<kv> &page, long d, int first) {
            U8 *keys = page.keys(token / 16 * 16, d) + token % 16 * element;
            for (int i = 0; i < 8; ++i)
              __builtin_memcpy(keys + i * 16 * element,
                               stored + (first + i) * element, element);
          });
    }
  }
};

/// Takes values: they go to their page. The end of a padded row stays zero.
template <KvConfig kv> struct AppendValues {
  AppendArgs to;

  LLAMAC_INLINE void operator()(long row, long column, F32x16 y,
                                int lanes) const {
    long token = to.positions[row] % kv.pageTokens;
    if constexpr (kv.format == KvFormat::Q8_0) {
      const KvBlock block = toKvBlock(y);
      withBlock<kv>(to, row, column, [&](const KvPage<kv> &page, long d) {
        store(page.value(token, d), block.codes);
        store(page.valueScale(token, d), block.scale);
      });
    } else {
      constexpr long element = kvElementBytes(kv.format);
      U8 stored[16 * element];
      storeKv<kv.format>(stored, y);
      forEachHalf<kv>(to, row, column, lanes,
                      [&](const KvPage<kv> &page, long d, int first) {
                        __builtin_memcpy(page.value(token, d),
                                         stored + first * element, 8 * element);
                      });
    }
  }
};

struct RopeArgs {
  const float *q; ///< [rows][heads][headSize].
  const float *k; ///< [rows][kvHeads][headSize].
  const float *v; ///< [rows][kvHeads][headSize].
  AppendArgs to;
  float *out;                       ///< The rotated q; may be q.
  const float *queryGain = nullptr; ///< [config.queryNorm].
  const float *keyGain = nullptr;   ///< [config.keyNorm].
  float eps = 0;
};

/// Gives `epilogue` row `row`, `x`, normalised by parts of `norm` if it is not
/// 0.
template <long width, long norm, class Epilogue>
LLAMAC_INLINE void takeRow(const float *x, long row, const float *gain,
                           float eps, const Epilogue &epilogue) {
  if constexpr (norm != 0)
    for (long at = 0; at < width; at += norm)
      normalize<norm>(x + at, gain, eps, row, at, epilogue);
  else
    forEachGroup<width>([&](long column, int lanes) {
      epilogue(row, column, load16(x + column, lanes), lanes);
    });
}

template <RopeConfig config>
LLAMAC_INLINE void ropeAppend(const CpuLaunch &launch, const RopeArgs &args) {
  constexpr KvConfig kv = config.kv;
  constexpr long width = config.heads * kv.headSize;
  constexpr long kvWidth = kv.kvHeads * kv.headSize;
  const RotatedRows<kv.headSize, width> queries{args.to.cosSin, args.out};
  const AppendKeys<kv> keys{args.to};
  const AppendValues<kv> values{args.to};
  forEachRow(launch, rowwiseShape().rowBlock, [&](long row) {
    takeRow<width, config.queryNorm>(args.q + row * width, row, args.queryGain,
                                     args.eps, queries);
    takeRow<kvWidth, config.keyNorm>(args.k + row * kvWidth, row, args.keyGain,
                                     args.eps, keys);
    takeRow<kvWidth, 0>(args.v + row * kvWidth, row, nullptr, 0, values);
  });
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_ROPE_H
