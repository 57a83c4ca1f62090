//===- kvcache.h - Pages of the KV cache ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a token's key and value lie (KvConfig in config.h has the layout). K
// interleaves 16 tokens, as weights do 16 rows, so scores need no sums across
// lanes; V has 16 consecutive elements of the head.
//
// In Q8_0 a scale is the largest magnitude of its block over 127, rounded to
// bf16, and an element the nearest integer of it over the rounded scale: bf16
// rounds by at most 2^-9, so that is at most 127 + 1/4. bf16 has the range of
// fp32, which half floats would limit. Where the largest is NaN or infinite, so
// is the scale and all elements with it.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_KVCACHE_H
#define LLAMAC_CPU_KVCACHE_H

#include "llamac/cpu/config.h"
#include "llamac/cpu/simd.h"

namespace llamac::cpu {

struct KvBlock {
  I8x16 codes;
  U16 scale;
};

LLAMAC_INLINE KvBlock toKvBlock(F32x16 v) {
  // The order of magnitudes is that of their bits, and NaNs are the largest.
  const U32x16 magnitudes = bits<U32x16>(v) & 0x7fffffff;
  const float largest = bits<float>(__builtin_reduce_max(magnitudes));
  const U16 scale = toBF16(splat(largest * (1.0f / 127))).x;
  const float widened = bits<float>(U32(scale) << 16);
  // Below the normal numbers a scale would not be so exact.
  if (widened < 0x1p-126f)
    return {I8x16(0), 0};
  // Adding 1.5 x 2^23 leaves the integer in the low bits, and a NaN does no
  // harm there.
  const F32x16 nearest = fma(v, splat(1 / widened), splat(0x1.8p23f));
  return {__builtin_convertvector(bits<U32x16>(nearest), I8x16), scale};
}

/// 16 stored elements, widened.
template <KvFormat format> LLAMAC_INLINE F32x16 loadKv(const U8 *from) {
  if constexpr (format == KvFormat::F32)
    return load<F32x16>(from);
  else if constexpr (format == KvFormat::F16)
    return fromF16(load<U16x16>(from));
  else
    return fromBF16(load<U16x16>(from));
}

template <KvFormat format> LLAMAC_INLINE void storeKv(U8 *to, F32x16 v) {
  if constexpr (format == KvFormat::F32)
    store(to, v);
  else if constexpr (format == KvFormat::F16)
    store(to, toF16(v));
  else
    store(to, toBF16(v));
}

/// One kv head of one page. Elements are counted, not bytes.
template <KvConfig kv> struct KvPage {
  static constexpr long element = kvElementBytes(kv.format);

  U8 *base;

  LLAMAC_INLINE KvPage(const void *pool, const int *pageTable, long sequence,
                       long page, long head) {
    long number = pageTable[sequence * kv.pagesPerSequence + page];
    base = static_cast<U8 *>(const_cast<void *>(pool)) +
           number * kvPageBytes(kv) + head * kvHeadBytes(kv);
  }

  /// Element `d` of 16 keys, in Q8_0 and for an even `d` elements d and d + 1;
  /// `token` is a multiple of 16.
  LLAMAC_INLINE U8 *keys(long token, long d) const {
    return base + (token * kv.headSize + d * 16) * element;
  }

  /// Value of `token`, from element `d` on.
  LLAMAC_INLINE U8 *value(long token, long d) const {
    return base + kvKeyBytes(kv) +
           (token * paddedHead(kv.headSize) + d) * element;
  }

  /// The scale of the block of a key with element `d`; those of later tokens
  /// follow.
  LLAMAC_INLINE U8 *keyScale(long token, long d) const {
    return base + kv.pageTokens * kv.headSize +
           (d / kvBlock * kv.pageTokens + token) * 2;
  }

  LLAMAC_INLINE U8 *valueScale(long token, long d) const {
    return keyScale(token, d) + kvKeyBytes(kv);
  }

  /// Prefetches what is read half of a head's page after the `bytes` bytes at
  /// `at`: values while the keys before them are used, and then the next head's
  /// keys.
  static LLAMAC_INLINE void prefetchAfter(const U8 *at, long bytes = 1) {
    for (long i = 0; i < bytes; i += 64)
      prefetch(at + kvHeadBytes(kv) / 2 + i);
  }
};

/// Prefetches the keys and values of splits: while the keys of one are used its
/// values come in, and then the keys of the next.
///
/// A processor finds streams by itself, each within 4 KiB, and prefetches all
/// of them. So the pages, or parts of them, are interleaved, a row of lines at
/// a time. The parts start one after another, since a stream is slow at first.
template <KvConfig kv, long pages> class KvPrefetcher {
  static constexpr long keyBytes = kvKeyBytes(kv);
  static constexpr long valueBytes = kvHeadBytes(kv) - keyBytes;
  static constexpr long parts = pages < 4 ? 4 / pages : 1; // Parts that a page
                                                           // is read in.
  static constexpr long streams = pages * parts;

public:
  /// Where a split's keys, or values, begin in each page.
  struct Places {
    const U8 *begins[pages];
  };

  /// The rows of a split's values, and those of the next one's keys.
  static constexpr long rows =
      (largest(keyBytes, valueBytes, 0) + 64 * parts - 1) / (64 * parts);

  /// Prefetches half of the first split's keys; by then the others come in.
  LLAMAC_INLINE explicit KvPrefetcher(const Places &keys) {
    for (long stream = 0; stream < streams; ++stream)
      from[stream] =
          partOf(keys, keyBytes, stream) - (rows + stream * stagger) * 64;
    for (long row = 0; row < rows / 2; ++row)
      for (long stream = 0; stream < streams; ++stream)
        prefetch(partOf(keys, keyBytes, stream) + row * 64);
  }

  /// Goes on to a split with `values`, and `keys` of the one after it.
  LLAMAC_INLINE void start(const Places &values, const Places &keys) {
    for (long stream = 0; stream < streams; ++stream) {
      starts[0][stream] = partOf(values, valueBytes, stream);
      starts[1][stream] = partOf(keys, keyBytes, stream);
      from[stream] += 2 * rows * 64;
    }
    done = 0;
  }

  /// Goes on to a split without its values; then there are `rows` rows.
  LLAMAC_INLINE void start(const Places &keys) {
    for (long stream = 0; stream < streams; ++stream) {
      starts[0][stream] = partOf(keys, keyBytes, stream);
      from[stream] += rows * 64;
    }
    done = 0;
  }

  /// Prefetches the rows before `row` that are not done, of 2 * rows.
  LLAMAC_INLINE void prefetchUntil(unsigned long row) {
#pragma clang loop unroll(disable)
    for (; done < row; ++done) {
      const unsigned long kind = done / rows, at = done % rows;
      if (at % stagger == 0 && at / stagger < streams)
        from[at / stagger] = starts[kind][at / stagger] - done * 64;
      for (long stream = 0; stream < streams; ++stream)
        prefetch(from[stream] + done * 64);
    }
  }

private:
  /// Rows between the starts of two streams.
  static constexpr long stagger = rows / streams;
  static_assert(stagger > 0);

  static LLAMAC_INLINE const U8 *partOf(const Places &places, long bytes,
                                        long stream) {
    return places.begins[stream / parts] + stream % parts * (bytes / parts);
  }

  const U8 *starts[2][streams]; ///< Starts of the values, and of the keys.
  const U8 *from[streams];      ///< Where row 0 of each stream would be.
  unsigned long done;           ///< Rows.
};

} // namespace llamac::cpu

#endif // LLAMAC_CPU_KVCACHE_H
