//===- resident_attention.cuh - Attention between phases --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention of a resident step (resident.cuh): queries, the row's own key and
// value, and results are words (words.cuh). The splits and their arithmetic are
// those of attention.cuh.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_RESIDENT_ATTENTION_CUH
#define LLAMAC_CODEGEN_DEVICE_RESIDENT_ATTENTION_CUH

#include "llamac/attention.cuh"
#include "llamac/gemv.cuh"
#include "llamac/resident_config.h"
#include "llamac/words.cuh"

#if LLAMAC_HAS_SM90

namespace llamac::cuda {

/// Queries and keys are words as QkvWords rotates them.
struct AreRotated {
  static constexpr bool changes = false;
};

/// The threads that read a head normalise it, if it has a norm, then rotate it.
template <class Norms> struct RotatesHeads {
  static constexpr bool changes = true;
  Norms norms;
  const float *cosSin;

  /// Head `x`, by a warp.
  template <int size> LLAMAC_DEVICE void apply(float *x, bool isKey) const {
    HeadPairs<size> head;
    head.load(x);
    norms.apply(head, isKey);
    head.rotate(cosSin);
    head.store(x);
  }
};

/// A split of attention whose queries, key and value are words, and whose
/// results are. All warps of a team come.
template <AttentionConfig config, class Heads> struct SplitInWords {
  static constexpr int head = config.kv.headSize;
  static constexpr int partial = attentionPartialFloats(config);
  static constexpr int group = attentionGroup(config);
  static constexpr int team = attentionWarps * 32;
  static constexpr bool bringsKey = true;
  static LLAMAC_DEVICE void sync() { barrierSync(1, team); }

  const KvCache<config.kv> &cache;
  const RowSplit &of;
  const uint32_t *qkv; ///< Laid out as in QkvWords.
  const Heads &changes;
  WordRow out;
  uint32_t *partials; ///< [splits][heads][partial].
  float *shared;      ///< residentQueryFloats(config).
  int firstHead;
  int heads; ///< Heads of the tile.

  LLAMAC_DEVICE SplitInWords(const KvCache<config.kv> &cache,
                             const RowSplit &of, const uint32_t *qkv,
                             const Heads &changes, WordRow out,
                             uint32_t *partials, float *shared)
      : cache(cache), of(of), qkv(qkv), changes(changes), out(out),
        partials(partials), shared(shared),
        firstHead(of.kvHead * group + of.headTile * warpVectors),
        heads(minOf<int>(group - of.headTile * warpVectors, warpVectors)) {}

  LLAMAC_DEVICE bool hasKey() const { return of.split == of.splits - 1; }
  LLAMAC_DEVICE float *ownKey() const { return shared + heads * head; }

  /// Brings the queries, and the row's key and value where they are in the
  /// split.
  LLAMAC_DEVICE void begin() const {
    static_assert(head % 4 == 0);
    constexpr long width = config.heads * head;
    constexpr long kvWidth = config.kv.kvHeads * head;
    const int queries = heads * (head / 4);
    const int fours = queries + (hasKey() ? 2 * (head / 4) : 0);
    for (int i = threadIdx.x; i < fours; i += team) {
      const int inKey =
          i - queries; // Index into key and value, where it is not below 0.
      const long at =
          inKey < 0 ? firstHead * head + 4 * i
                    : width + of.kvHead * head +
                          (inKey < head / 4 ? 4 * inKey
                                            : kvWidth + 4 * (inKey - head / 4));
      Vec<float, 4> values[1];
      awaitFours(values, [&](int) { return qkv + at; });
      vectorAt<Vec<float, 4>>(shared + 4 * i) = values[0];
    }
    sync();
    if constexpr (Heads::changes) {
      // The key follows the queries.
      const int vectors = heads + (hasKey() ? 1 : 0);
      for (int i = warpIndex(); i < vectors; i += attentionWarps)
        changes.template apply<head>(shared + i * head, i == heads);
      sync();
    }
  }
  LLAMAC_DEVICE const float *query(int vector) const {
    return shared + vector * head;
  }

  /// Puts the row's key and value into the tile of keys, and appends them.
  LLAMAC_DEVICE void bringKey(unsigned char *keyRow,
                              unsigned char *valueRow) const {
    const CachedKey key = cache.key(of.sequence, of.position, of.kvHead);
    if constexpr (hasBlocks(config.kv.format)) {
      // A warp has the key, another the value.
      const int plane = warpIndex();
      if (plane >= 2)
        return;
      HeadPairs<head> pairs;
      pairs.load(ownKey() + plane * head);
      const HeadBlocks<config.kv> blocks(pairs);
      blocks.widen(plane == 0 ? keyRow : valueRow);
      if (of.headTile == 0)
        blocks.store(key.after(plane * kvPlaneBytes(config.kv)));
      return;
    }
    for (int i = threadIdx.x; i < head; i += team) {
      // Pairs of the key, then those of the value.
      const bool isValue = i >= head / 2;
      const int d = 2 * (isValue ? i - head / 2 : i);
      const F32x2 pair = load2(ownKey() + (isValue ? head : 0) + d);
      const uint32_t packed = packKv<config.kv.format>(pair.x, pair.y);
      vectorAt<uint32_t>((isValue ? valueRow : keyRow) + 2 * d) = packed;
      if (of.headTile == 0)
        vectorAt<uint32_t>(key.codes + (isValue ? kvPlaneBytes(config.kv) : 0) +
                           2 * d) = packed;
    }
  }

  LLAMAC_DEVICE void store(int vector, int d, F32x2 value) const {
    storePair(out.words + (firstHead + vector) * head + d, value);
  }
  LLAMAC_DEVICE void storePartial(int vector, int d, F32x2 value) const {
    storePair(partials + of.split * residentSplitWords(config) +
                  (firstHead + vector) * partial + d,
              value);
  }
  /// Another warp merges.
  LLAMAC_DEVICE void merge() const { sync(); }
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90

#endif // LLAMAC_CODEGEN_DEVICE_RESIDENT_ATTENTION_CUH
