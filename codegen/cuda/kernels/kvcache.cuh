//===- kvcache.cuh - The paged KV cache -------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a token's keys and values lie (config.h), and the epilogue that applies
// RoPE to queries and keys and appends keys and values.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_KVCACHE_CUH
#define LLAMAC_CODEGEN_DEVICE_KVCACHE_CUH

#include "llamac/config.h"
#include "llamac/vmath.cuh"

namespace llamac::cuda {

/// Two neighbouring elements as the cache, or a tensor core, has them.
template <KvFormat format>
LLAMAC_DEVICE uint32_t packKv(float low, float high) {
  if constexpr (format == KvFormat::BF16)
    return packBf16(low, high);
  else
    return packHalf(low, high);
}

/// d += a * b in the cache's format.
template <KvFormat format>
LLAMAC_DEVICE void mmaKv(float (&d)[4], const uint32_t (&a)[4],
                         const uint32_t (&b)[2]) {
  if constexpr (format == KvFormat::BF16)
    mmaBf16(d, a, b);
  else
    mmaHalf(d, a, b);
}

template <KvConfig kv> struct KvCache {
  uint16_t *pool;
  const int *pageTable; ///< [sequences][pagesPerSequence].

  /// The key of `token` of `sequence`, [headSize]; its value lies
  /// kvPlaneElements(kv) further.
  LLAMAC_DEVICE uint16_t *key(long sequence, long token, long kvHead) const {
    const long page =
        pageTable[sequence * kv.pagesPerSequence + token / kv.pageTokens];
    return pool + page * kvPageElements(kv) + kvHead * 2 * kvPlaneElements(kv) +
           token % kv.pageTokens * kv.headSize;
  }
};

/// Where the rows of a step go: row r is the token at positions[r] of sequence
/// sequences[r].
struct AppendArgs {
  const float *cosSin;  ///< f32 [rows][headSize / 2][cos, sin].
  void *pool;           ///< The layer's pages.
  const int *pageTable; ///< [sequences][pagesPerSequence].
  const int *positions; ///< [rows].
  const int *sequences; ///< [rows].
};

/// The pair (a, b) rotated: (a cos - b sin, a sin + b cos).
LLAMAC_DEVICE F32x2 rotated(F32x2 pair, F32x2 cosSin) {
  return {fma(pair.x, cosSin.x, -(pair.y * cosSin.y)),
          fma(pair.y, cosSin.x, pair.x * cosSin.y)};
}

/// The part of qkv that a product makes: a whole block has one part. All three
/// have one epilogue, so that products of one format share their code.
enum class QkvPart { Query, Key, Value };

/// A pair of a query, key or value, of column `column`: with its bias, if it
/// has one, and rotated, but for a value. `cosSin` is the row's.
template <KvConfig kv, bool biased>
LLAMAC_DEVICE F32x2 withBiasRotated(QkvPart part, long column, F32x2 acc,
                                    const float *const (&biases)[3],
                                    const float *cosSin) {
  if constexpr (biased) {
    // Constant indices keep the pointers in registers.
    const float *bias = part == QkvPart::Query ? biases[0]
                        : part == QkvPart::Key ? biases[1]
                                               : biases[2];
    acc = acc + load2(bias + column);
  }
  return part == QkvPart::Value
             ? acc
             : rotated(acc, load2(cosSin + column % kv.headSize));
}

/// Takes the query, key and value of a layer, adds their biases if they have
/// some: the rotated query goes to `out`, rows of `width`; the rotated key and
/// the value go to their page.
template <KvConfig kv, long width, bool biased = false> struct QkvEpilogue {
  QkvPart part;
  AppendArgs to;
  float *out;
  const float *biases[3] = {};

  LLAMAC_DEVICE void operator()(long row, long column, F32x2 acc) const {
    acc = withBiasRotated<kv, biased>(part, column, acc, biases,
                                      to.cosSin + row * kv.headSize);
    if (part == QkvPart::Query) {
      store2(out + row * width + column, acc);
      return;
    }
    const KvCache<kv> cache{static_cast<uint16_t *>(to.pool), to.pageTable};
    uint16_t *at =
        cache.key(to.sequences[row], to.positions[row], column / kv.headSize) +
        (part == QkvPart::Value ? kvPlaneElements(kv) : 0) +
        column % kv.headSize;
    *reinterpret_cast<uint32_t *>(at) = packKv<kv.format>(acc.x, acc.y);
  }
};

/// Rotates query and key, and appends key and value, from query [rows][width],
/// key and value [rows][kvHeads * headSize] in memory. A launch of
/// pointwiseShape() of all three.
template <KvConfig kv, long width>
LLAMAC_DEVICE void ropeAppend(const float *query, const float *key,
                              const float *value, const AppendArgs &to,
                              float *out) {
  constexpr long kvWidth = kv.kvHeads * kv.headSize;
  const long row = blockIdx.y;
  long column = 2 * (blockIdx.x * long(rowThreads) + threadIdx.x);
  QkvEpilogue<kv, width> epilogue{QkvPart::Query, to, out};
  const float *from = query + row * width;
  if (column >= width) {
    column -= width;
    const bool isValue = column >= kvWidth;
    if (isValue)
      column -= kvWidth;
    if (column >= kvWidth)
      return;
    epilogue.part = isValue ? QkvPart::Value : QkvPart::Key;
    from = (isValue ? value : key) + row * kvWidth;
  }
  epilogue(row, column, load2(from + column));
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_KVCACHE_CUH
