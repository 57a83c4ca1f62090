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

/// Two neighbouring elements as tensor cores take what a cache of `format` has:
/// in bf16 or, of blocks too, in f16.
template <KvFormat format>
LLAMAC_DEVICE uint32_t packKv(float low, float high) {
  if constexpr (format == KvFormat::BF16)
    return packBf16(low, high);
  else
    return packHalf(low, high);
}

/// d += a * b of such elements.
template <KvFormat format>
LLAMAC_DEVICE void mmaKv(float (&d)[4], const uint32_t (&a)[4],
                         const uint32_t (&b)[2]) {
  if constexpr (format == KvFormat::BF16)
    mmaBf16(d, a, b);
  else
    mmaHalf(d, a, b);
}

/// A key in the cache, [headSize], and its scales, words
/// [kvScaleWords(kv)]; those of its value lie kvPlaneBytes(kv) further.
struct CachedKey {
  unsigned char *codes;
  unsigned char *scales;

  LLAMAC_DEVICE CachedKey after(long bytes) const {
    return {codes + bytes, scales + bytes};
  }
};

template <KvConfig kv> struct KvCache {
  unsigned char *pool;
  const int *pageTable; ///< [sequences][pagesPerSequence].

  /// The key of `token` of `sequence`.
  LLAMAC_DEVICE CachedKey key(long sequence, long token, long kvHead) const {
    const long page =
        pageTable[sequence * kv.pagesPerSequence + token / kv.pageTokens];
    unsigned char *const keys =
        pool + page * kvPageBytes(kv) + kvHead * 2 * kvPlaneBytes(kv);
    const long inPage = token % kv.pageTokens;
    return {keys + inPage * kvRowBytes(kv),
            keys + kvScalesOffset(kv) + inPage * kvScaleWords(kv) * 4};
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
/// the value go to their page, which has no blocks: a pair is less than one.
template <KvConfig kv, long width, bool biased = false> struct QkvEpilogue {
  static_assert(!hasBlocks(kv.format));

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
    const KvCache<kv> cache{static_cast<unsigned char *>(to.pool),
                            to.pageTable};
    unsigned char *const at =
        cache.key(to.sequences[row], to.positions[row], column / kv.headSize)
            .codes +
        (part == QkvPart::Value ? kvPlaneBytes(kv) : 0) +
        column % kv.headSize * 2;
    vectorAt<uint32_t>(at) = packKv<kv.format>(acc.x, acc.y);
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_KVCACHE_CUH
