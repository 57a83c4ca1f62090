//===- rope.h - Rotary embedding and appending to the KV cache --*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ropeTable computes cos and sin of position x frequency for the rows of a
// step, once for all layers; ropeAppend turns the pairs (2i, 2i + 1) of q and k
// by them and writes k and v to their page.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_ROPE_H
#define LLAMAC_CPU_ROPE_H

#include "llamac/cpu/config.h"
#include "llamac/cpu/kvcache.h"
#include "llamac/cpu/rowwise.h"
#include "llamac/cpu/simd.h"

namespace llamac::cpu {

struct SineCosine {
  double sine;
  double cosine;
};

/// sin x and cos x for |x| up to 2^20, within 1e-15: x = n pi/2 + r with
/// |r| <= pi/4, where pi/2 is split so that n times its first two parts is
/// exact, then the Taylor series up to r^17 and r^16, whose next terms are
/// below 1e-17.
LLAMAC_INLINE SineCosine sineCosine(double x) {
  double quarters = x * 0x1.45f306dc9c883p-1;
  auto n = long(quarters + (quarters < 0 ? -0.5 : 0.5));
  double r = x - double(n) * 0x1.921fb54p+0;
  r -= double(n) * 0x1.10b46118p-30;
  r -= double(n) * 0x1.313198a2e037p-61;

  double square = r * r;
  double sine = 0, cosine = 0; // Of (sin r) / r and cos r, by Horner's rule.
  for (int k = 16; k > 0; k -= 2) {
    sine = (sine + 1) * -square / double(k * (k + 1));
    cosine = (cosine + 1) * -square / double(k * (k - 1));
  }
  sine = r * (1 + sine);
  cosine = 1 + cosine;

  switch (n & 3) {
  case 0:
    return {sine, cosine};
  case 1:
    return {cosine, -sine};
  case 2:
    return {-sine, -cosine};
  default:
    return {-cosine, sine};
  }
}

/// out: f32 [rows][headSize / 2][cos, sin]; frequencies: f64 [headSize / 2].
template <long headSize>
LLAMAC_INLINE void ropeTable(const CpuLaunch &launch, const int *positions,
                             const double *frequencies, float *out) {
  forEachRow(launch, ropeTableShape().rowBlock, [&](long row) {
    for (long i = 0; i < headSize / 2; ++i) {
      SineCosine turn = sineCosine(double(positions[row]) * frequencies[i]);
      out[row * headSize + 2 * i] = float(turn.cosine);
      out[row * headSize + 2 * i + 1] = float(turn.sine);
    }
  });
}

/// Row r is the token at positions[r] of sequence sequences[r].
struct RopeArgs {
  const float *q;       ///< [rows][heads][headSize].
  const float *k;       ///< [rows][kvHeads][headSize].
  const float *v;       ///< [rows][kvHeads][headSize].
  const float *table;   ///< Of ropeTable.
  void *pool;           ///< The layer's pages.
  const int *pageTable; ///< [sequences][pagesPerSequence].
  const int *positions; ///< [rows].
  const int *sequences; ///< [rows].
  float *out;           ///< The rotated q; may be q.
};

/// out = x with its pairs turned by `table`; a head of `size` elements.
template <long size>
LLAMAC_INLINE void rotate(const float *x, const float *table, float *out) {
  using F32x8 = float __attribute__((ext_vector_type(8)));
  for (long d = 0; d < size; d += 8) {
    auto v = load<F32x8>(x + d), turn = load<F32x8>(table + d);
    auto swapped = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
    auto cosine = __builtin_shufflevector(turn, turn, 0, 0, 2, 2, 4, 4, 6, 6);
    auto sine = __builtin_shufflevector(turn, -turn, 9, 1, 11, 3, 13, 5, 15, 7);
    store(out + d, v * cosine + swapped * sine);
  }
}

template <RopeConfig config>
LLAMAC_INLINE void ropeAppend(const CpuLaunch &launch, const RopeArgs &args) {
  constexpr KvConfig kv = config.kv;
  constexpr long head = kv.headSize, padded = paddedHead(head);
  constexpr long element = kvElementBytes(kv.format);
  auto strideOr = [](long stride, long heads) {
    return stride ? stride : heads * kv.headSize;
  };
  forEachRow(launch, ropeAppendShape(config).rowBlock, [&](long row) {
    const float *table = args.table + row * head;
    const float *q = args.q + row * strideOr(config.queryStride, config.heads);
    const float *k = args.k + row * strideOr(config.keyStride, kv.kvHeads);
    const float *v = args.v + row * strideOr(config.valueStride, kv.kvHeads);
    float *out = args.out + row * strideOr(config.outputStride, config.heads);
    for (long j = 0; j < config.heads; ++j)
      rotate<head>(q + j * head, table, out + j * head);

    long position = args.positions[row], token = position % kv.pageTokens;
    for (long j = 0; j < kv.kvHeads; ++j) {
      KvPage<kv> page(args.pool, args.pageTable, args.sequences[row],
                      position / kv.pageTokens, j);
      float turned[padded];
      rotate<head>(k + j * head, table, turned);
      forEachGroup<head>([&](long d, int lanes) {
        U8 stored[16 * element];
        storeKv<kv.format>(stored, load16(turned + d, lanes));
        U8 *keys = page.keys(token / 16 * 16, d) + token % 16 * element;
        for (int i = 0; i < lanes; ++i)
          __builtin_memcpy(keys + i * 16 * element, stored + i * element,
                           element);
        storeKv<kv.format>(page.value(token, d),
                           load16(v + j * head + d, lanes));
      });
    }
  });
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_ROPE_H
