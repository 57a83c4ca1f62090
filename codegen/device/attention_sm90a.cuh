//===- attention_sm90a.cuh - Attention for many rows on sm_90a --*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attention() of attention.cuh, for heads of 64 and 128, on the warpgroups of
// sm_90a. One thread of the first of a block's three warpgroups brings tiles of
// 64 keys and their values by tensor copies into a ring of stages: [64 tokens]
// [64 elements] with 128-byte rows, swizzled, one such box or two. The two
// other warpgroups have 64 query vectors each:
//
//   scores   q k^T: q is the operand A, in registers; keys as they lie, K-major
//   sums     weights v: the scores, as weights, are the operand A just as they
//            are in registers; values as they lie, MN-major
//
// The softmax in between is that of FlashWarp, whose fragments wgmma's are.
// Tokens behind the last visible one are uninitialised, and 0 times a NaN is
// NaN: the last tile of a run has them zeroed in shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_ATTENTION_SM90A_CUH
#define LLAMAC_CODEGEN_DEVICE_ATTENTION_SM90A_CUH

#include "llamac/attention.cuh"
#include "llamac/ptx_sm90a.cuh"

#if LLAMAC_HAS_SM90A

namespace llamac::cuda {

/// d (+)= a b in the cache's format.
template <KvFormat format, bool transposeB, int sums>
LLAMAC_DEVICE void wgmmaKv(float (&d)[sums], const uint32_t (&a)[4], uint64_t b,
                           bool accumulate) {
  if constexpr (format == KvFormat::BF16)
    wgmmaBf16<transposeB>(d, a, b, accumulate);
  else
    wgmmaHalf<transposeB>(d, a, b, accumulate);
}

template <AttentionConfig config> struct WgmmaKeyLoader {
  static constexpr KvConfig kv = config.kv;
  static constexpr int boxes = kv.headSize / 64;
  static constexpr int boxBytes = keyTile * 128;

  const TensorMap &pool;
  const int *pageTable;
  unsigned char *stages;
  uint64_t *full;
  uint64_t *empty;
  RingPlace<wgmmaAttentionStages> place = {};

  LLAMAC_DEVICE void load(int kvHead, const SequenceRun &run) {
    for (int first = run.firstTile(); first < run.keys; first += keyTile) {
      const int page =
          pageTable[run.sequence * kv.pagesPerSequence + first / kv.pageTokens];
      // Rows of the pool as a matrix: tokens of K, then of V, by kv head.
      const int row = (page * int(kv.kvHeads) + kvHead) * 2 * kv.pageTokens +
                      first % kv.pageTokens;
      unsigned char *to =
          stages + place.stage * wgmmaAttentionStageBytes(config);
      mbarrierWait(&empty[place.stage], place.phase ^ 1);
      mbarrierArriveExpect(&full[place.stage],
                           wgmmaAttentionStageBytes(config));
#pragma unroll
      for (int part = 0; part < 2; ++part)
#pragma unroll
        for (int box = 0; box < boxes; ++box)
          tensorLoad(to + (part * boxes + box) * boxBytes, pool, box * 64,
                     row + part * kv.pageTokens, &full[place.stage]);
      place.advance();
    }
  }
};

/// The 64 query vectors of a warpgroup; of those, each warp has 16.
template <AttentionConfig config> struct WgmmaAttention {
  static constexpr KvConfig kv = config.kv;
  static constexpr int head = kv.headSize;
  static constexpr int group = attentionGroup(config);
  static constexpr int boxes = WgmmaKeyLoader<config>::boxes;
  static constexpr int boxBytes = WgmmaKeyLoader<config>::boxBytes;

  const AttentionArgs &args;
  unsigned char *stages;
  uint64_t *full;
  uint64_t *empty;
  int kvHead;
  int firstRow;
  RingPlace<wgmmaAttentionStages> place = {};

  /// Vector i of the warp: that of a row and a query head.
  LLAMAC_DEVICE int indexOf(int i) const {
    return (warpIndex() - 4) * warpVectors + i;
  }
  LLAMAC_DEVICE int rowOf(int i) const { return firstRow + indexOf(i) / group; }
  LLAMAC_DEVICE long vectorOf(int i) const {
    return long(rowOf(i)) * config.heads + kvHead * group + indexOf(i) % group;
  }

  /// Zeroes the tokens of a stage from `begin` to `end` - 1, keys and values.
  LLAMAC_DEVICE void clear(unsigned char *stage, int begin, int end) const {
    const int words = (end - begin) * 8;
#pragma unroll
    for (int box = 0; box < 2 * boxes; ++box)
      for (int i = threadIdx.x - 128; i < words; i += 256)
        vectorAt<Words4>(stage + box * boxBytes + begin * 128 + 16 * i) =
            Words4{};
    fenceProxyAsync();
    barrierSync(1, 256);
  }

  /// A stage's keys at 16 elements of the depth: groups of eight tokens are
  /// 1,024 bytes apart.
  static LLAMAC_DEVICE uint64_t keysAt(const unsigned char *stage, int k) {
    return matrixDescriptor(stage, 0, 1024, Swizzle::Bytes128) +
           (k / 4 * boxBytes + k % 4 * 32) / 16;
  }

  /// Its values at 16 tokens, the depth: 64 columns are a box; groups of eight
  /// tokens are 1,024 bytes apart.
  static LLAMAC_DEVICE uint64_t valuesAt(const unsigned char *stage, int k) {
    return matrixDescriptor(stage + boxes * boxBytes, boxBytes, 1024,
                            Swizzle::Bytes128) +
           k * 2048 / 16;
  }

  LLAMAC_DEVICE void attend(const SequenceRun &run) {
    FlashWarp<config> warp;
    auto inRun = [&](int i) {
      return indexOf(i) < wgmmaAttentionTileRows(config) * group &&
             rowOf(i) >= run.begin && rowOf(i) < run.end;
    };
    warp.loadQueries([&](int i) {
      return inRun(i) ? args.q + vectorOf(i) * head : nullptr;
    });
    int from[2], seen[2];
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int i = warp.g + 8 * upper;
      const int position = inRun(i) ? args.positions[rowOf(i)] : -1;
      from[upper] = firstKey(config, position);
      seen[upper] = position + 1;
    }
    auto &sums = reinterpret_cast<float(&)[head / 2]>(warp.sums);
    for (int first = run.firstTile(); first < run.keys; first += keyTile) {
      unsigned char *stage =
          stages + place.stage * wgmmaAttentionStageBytes(config);
      mbarrierWait(&full[place.stage], place.phase);
      if (run.keys - first < keyTile)
        clear(stage, run.keys - first, keyTile);
      if (config.window != 0 && first < run.from)
        clear(stage, 0, run.from - first);
      float scores[keyTile / 8][4] = {};
      wgmmaFence();
#pragma unroll
      for (int k = 0; k < head / 16; ++k)
        wgmmaKv<kv.format, false>(
            reinterpret_cast<float(&)[keyTile / 2]>(scores), warp.q[k],
            keysAt(stage, k), true);
      wgmmaCommit();
      wgmmaWait<0>();
      warp.updateMaximum(scores, {from[0] - first, from[1] - first},
                         {seen[0] - first, seen[1] - first});
      uint32_t weights[keyTile / 16][4];
#pragma unroll
      for (int k = 0; k < keyTile / 16; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float *pair = &scores[2 * k + i / 2][i % 2 * 2];
          weights[k][i] = packKv<kv.format>(pair[0], pair[1]);
        }
      wgmmaFence();
#pragma unroll
      for (int k = 0; k < keyTile / 16; ++k)
        wgmmaKv<kv.format, true>(sums, weights[k], valuesAt(stage, k), true);
      wgmmaCommit();
      wgmmaWait<0>();
      syncWarp();
      if (laneIndex() == 0)
        mbarrierArrive(&empty[place.stage]);
      place.advance();
    }
    warp.finish();
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int i = warp.g + 8 * upper;
      if (inRun(i))
        warp.store(upper, 1.0f / warp.total[upper],
                   resultOf<config>(args, vectorOf(i)));
    }
  }
};

/// As attention(), by a map of wgmmaPoolMap. A launch of
/// wgmmaAttentionShape(config).
template <AttentionConfig config>
LLAMAC_DEVICE void attentionWgmma(int rows, const TensorMap &pool,
                                  const AttentionArgs &args) {
  static_assert(takesWgmmaAttention(config));
  LLAMAC_SHARED_DYNAMIC(stages);
  LLAMAC_SHARED(full, uint64_t[wgmmaAttentionStages]);
  LLAMAC_SHARED(empty, uint64_t[wgmmaAttentionStages]);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < wgmmaAttentionStages; ++stage) {
      mbarrierInit(&full[stage], 1);
      mbarrierInit(&empty[stage], wgmmaMathWarps);
    }
    mbarrierInitFence();
  }
  syncThreads();
  // Later rows see more keys, so they go first.
  constexpr int tileRows = wgmmaAttentionTileRows(config);
  const int firstRow = (gridDim.y - 1 - blockIdx.y) * tileRows;
  const int endRow = minOf(firstRow + tileRows, rows);
  const int kvHead = blockIdx.x;
  if (warpIndex() < 4) {
    registersGive<40>();
    if (threadIdx.x == 0) {
      WgmmaKeyLoader<config> loader{pool, args.pageTable, stages, full, empty};
      forEachRun<config>(args, firstRow, endRow, [&](const SequenceRun &run) {
        loader.load(kvHead, run);
      });
    }
  } else {
    registersTake<232>();
    WgmmaAttention<config> math{args, stages, full, empty, kvHead, firstRow};
    forEachRun<config>(args, firstRow, endRow,
                       [&](const SequenceRun &run) { math.attend(run); });
  }
}

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90A

#endif // LLAMAC_CODEGEN_DEVICE_ATTENTION_SM90A_CUH
