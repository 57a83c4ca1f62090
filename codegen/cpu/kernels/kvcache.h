//===- kvcache.h - Pages of the KV cache ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a token's key and value lie (KvConfig in config.h has the layout). K
// has 16 tokens side by side, as weights have 16 rows, so scores need no sums
// across lanes; V has 16 elements of the head side by side.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_KVCACHE_H
#define LLAMAC_CPU_KVCACHE_H

#include "llamac/cpu/config.h"
#include "llamac/cpu/simd.h"

namespace llamac::cpu {

/// 16 stored elements, widened.
template <KvFormat format> LLAMAC_INLINE F32x16 loadKv(const U8 *from) {
  if constexpr (format == KvFormat::F32)
    return load<F32x16>(from);
  else if constexpr (format == KvFormat::F16)
    return fromF16(load<U16x16>(from));
  else
    return fromBF16(load<U16x16>(from));
}

/// Stores 16 elements, rounded to the cache's format.
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

  /// Element `d` of 16 keys; `token` is a multiple of 16.
  LLAMAC_INLINE U8 *keys(long token, long d) const {
    return base + (token * kv.headSize + d * 16) * element;
  }

  /// Value of `token`, from element `d` on.
  LLAMAC_INLINE U8 *value(long token, long d) const {
    return base +
           (kv.pageTokens * kv.headSize + token * paddedHead(kv.headSize) + d) *
               element;
  }

  /// Asks for what is read half of a head's page after `at`: values while the
  /// keys before them are used, and then the next head's keys.
  static LLAMAC_INLINE void prefetchAfter(const U8 *at) {
    prefetch(at + kvHeadBytes(kv) / 2);
  }
};

} // namespace llamac::cpu

#endif // LLAMAC_CPU_KVCACHE_H
