//===- attention_sm90a.cuh - Attention for many rows on sm_90a --*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// attention() of attention.cuh, for heads of 64 and 128, on the warpgroups of
// sm_90a. One warp of the first of a block's three warpgroups brings tiles of
// 64 keys and their values by tensor copies into a ring of stages: [64 tokens]
// [64 elements] with 128-byte rows, swizzled, one such box or two. The two
// other warpgroups have 64 query vectors each:
//
//   scores   q k^T: q is the operand A, in registers; keys as they lie, K-major
//   sums     weights v: the scores, as weights, are the operand A just as they
//            are in registers; values as they lie, MN-major
//
// The softmax in between is that of FlashWarp, whose fragments wgmma's are. It
// takes about as long as the products, so tensor cores are kept busy meanwhile,
// as FlashAttention-3 does (Shah et al., 2024, sections 3.1 and 3.2):
//
//   - a warpgroup begins the scores of a tile, then the sums of the tile before
//     it, whose products run during the softmax;
//   - the warpgroups begin products in turn: those of one run while the other
//     is at its softmax.
//
// A run of few rows, such as one of a sequence that decodes, has one warpgroup.
//
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

/// Brings the keys and values of runs; one warp.
template <AttentionConfig config> struct WgmmaKeyLoader {
  static constexpr KvConfig kv = config.kv;
  static constexpr int boxes = kv.headSize / 64;
  static constexpr int boxBytes = keyTile * 128;
  static constexpr int pageTiles = kv.pageTokens / keyTile;

  const TensorMap &pool;
  const int *pageTable;
  unsigned char *stages;
  uint64_t *full;
  uint64_t *empty;
  RingPlace<wgmmaAttentionStages> place = {};

  LLAMAC_DEVICE void load(int kvHead, const SequenceRun &run) {
    const int *pages = pageTable + run.sequence * kv.pagesPerSequence;
    const int end = ceilDiv(run.keys, keyTile);
    // A lane looks up the page of a tile.
    for (int base = run.from / keyTile; base < end; base += 32) {
      const int own = base + laneIndex();
      const int pageOfLane = own < end ? pages[own / pageTiles] : 0;
      for (int tile = base; tile < minOf(base + 32, end); ++tile)
        loadTile(kvHead, shuffle(pageOfLane, tile - base), tile % pageTiles);
    }
  }

  /// Tile `tile` of a page.
  LLAMAC_DEVICE void loadTile(int kvHead, int page, int tile) {
    if (laneIndex() == 0) {
      // Rows of the pool as a matrix: tokens of K, then of V, by kv head.
      const int row = (page * int(kv.kvHeads) + kvHead) * 2 * kv.pageTokens +
                      tile * keyTile;
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
    }
    place.advance();
  }
};

/// The query vectors of a run that a warpgroup has, up to 64; of those, each
/// warp has 16.
template <AttentionConfig config> struct WgmmaAttention {
  static constexpr KvConfig kv = config.kv;
  static constexpr int head = kv.headSize;
  static constexpr int group = attentionGroup(config);
  static constexpr int boxes = WgmmaKeyLoader<config>::boxes;
  static constexpr int boxBytes = WgmmaKeyLoader<config>::boxBytes;
  using Place = RingPlace<wgmmaAttentionStages>;

  /// Barriers of the block: for both warpgroups, and for the turn of each.
  static constexpr uint32_t clearBarrier = 1, firstTurn = 2, secondTurn = 3;

  const AttentionArgs &args;
  unsigned char *stages;
  uint64_t *full;
  uint64_t *empty;
  Place place = {};

  static LLAMAC_DEVICE int warpgroup() { return warpIndex() / 4 - 1; }
  LLAMAC_DEVICE unsigned char *stageAt(const Place &at) const {
    return stages + at.stage * wgmmaAttentionStageBytes(config);
  }

  /// Waits for the next tile of `run`, of keys `first` on, and zeroes what the
  /// run does not see of it. Threads of `threads` come.
  LLAMAC_DEVICE void waitForTile(const SequenceRun &run, int first,
                                 int threads) const {
    mbarrierWait(&full[place.stage], place.phase);
    if (run.keys - first < keyTile)
      clear(run.keys - first, keyTile, threads);
    if (config.window != 0 && first < run.from)
      clear(0, run.from - first, threads);
  }

  /// Zeroes tokens `begin` to `end` - 1 of the stage, keys and values.
  LLAMAC_DEVICE void clear(int begin, int end, int threads) const {
    unsigned char *stage = stageAt(place);
    const int words = (end - begin) * 8;
#pragma unroll
    for (int box = 0; box < 2 * boxes; ++box)
      for (int i = threadIdx.x - 128; i < words; i += threads)
        vectorAt<Words4>(stage + box * boxBytes + begin * 128 + 16 * i) =
            Words4{};
    fenceProxyAsync();
    barrierSync(clearBarrier, threads);
  }

  /// A stage is free once all warps have released it.
  LLAMAC_DEVICE void release(const Place &at) const {
    syncWarp();
    if (laneIndex() == 0)
      mbarrierArrive(&empty[at.stage]);
  }

  /// A turn at the tensor cores, which each of two warpgroups leaves to the
  /// other.
  static LLAMAC_DEVICE void waitForTurn() {
    if (warpgroup() == 0)
      barrierSync(firstTurn, 256);
    else
      barrierSync(secondTurn, 256);
  }
  static LLAMAC_DEVICE void endTurn() {
    if (warpgroup() == 0)
      barrierArrive(secondTurn, 256);
    else
      barrierArrive(firstTurn, 256);
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

  /// Begins the scores of a tile, and its weighted values.
  LLAMAC_DEVICE void beginScores(float (&scores)[keyTile / 8][4],
                                 const FlashWarp<config> &warp,
                                 const unsigned char *stage) const {
#pragma unroll
    for (int k = 0; k < head / 16; ++k)
      wgmmaKv<kv.format, false>(reinterpret_cast<float(&)[keyTile / 2]>(scores),
                                warp.q[k], keysAt(stage, k), k > 0);
    wgmmaCommit();
  }
  LLAMAC_DEVICE void beginSums(FlashWarp<config> &warp,
                               const uint32_t (&weights)[keyTile / 16][4],
                               const unsigned char *stage) const {
#pragma unroll
    for (int k = 0; k < keyTile / 16; ++k)
      wgmmaKv<kv.format, true>(reinterpret_cast<float(&)[head / 2]>(warp.sums),
                               weights[k], valuesAt(stage, k), true);
    wgmmaCommit();
  }

  LLAMAC_DEVICE void attend(int kvHead, const SequenceRun &run) {
    const bool bothAttend = run.rows() * group > 64;
    if (!bothAttend && warpgroup() == 1) {
      for (int first = run.firstTile(); first < run.keys; first += keyTile) {
        mbarrierWait(&full[place.stage], place.phase);
        release(place);
        place.advance();
      }
      return;
    }
    const RunVectors<config> vectors(args, run, kvHead, warpIndex() - 4);
    FlashWarp<config> warp;
    warp.loadQueries([&](int i) { return vectors.queryOf(i); });
    int from[2], limit[2];
    vectors.visibleKeys(warp.g, from, limit);

    const int threads = bothAttend ? 256 : 128;
    float scores[keyTile / 8][4], factor[2];
    uint32_t weights[keyTile / 16][4];
    auto weigh = [&](int first) {
      warp.softmax(scores, {from[0] - first, from[1] - first},
                   {limit[0] - first, limit[1] - first}, factor);
    };
    auto packWeights = [&] {
#pragma unroll
      for (int k = 0; k < keyTile / 16; ++k)
        warp.weightFragment(scores, k, weights[k]);
    };
    int first = run.firstTile();
    Place before = place;
    // Goes on to the next tile, if there is one.
    auto advance = [&] {
      before = place;
      place.advance();
      first += keyTile;
      if (first >= run.keys)
        return false;
      waitForTile(run, first, threads);
      return true;
    };

    waitForTile(run, first, threads);
    wgmmaFence();
    beginScores(scores, warp, stageAt(place));
    wgmmaWait<0>();
    weigh(first);
    packWeights();
    // The first warpgroup has the first turn, and the second ends the last.
    if (bothAttend && warpgroup() == 1)
      endTurn();
    for (bool isThere = advance(); isThere;) {
      if (bothAttend)
        waitForTurn();
      wgmmaFence();
      beginScores(scores, warp, stageAt(place));
      beginSums(warp, weights, stageAt(before));
      if (bothAttend)
        endTurn();
      wgmmaWait<1>();
      weigh(first);
      // The wait in between keeps ptxas from doing this before the softmax.
      const Place summed = before;
      isThere = advance();
      wgmmaWait<0>();
      release(summed);
      warp.rescale(factor);
      packWeights();
    }
    if (bothAttend && warpgroup() == 0)
      waitForTurn();
    wgmmaFence();
    beginSums(warp, weights, stageAt(before));
    wgmmaWait<0>();
    release(before);

    vectors.store(warp);
  }
};

/// Computes attention() by wgmma, with a map of wgmmaPoolMap. A launch of
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
  const RunItems<config, wgmmaThreads, wgmmaAttentionTileRows(config)> items(
      args, rows);
  if (warpIndex() < 4) {
    registersGive<40>();
    if (warpIndex() == 0) {
      WgmmaKeyLoader<config> loader{pool, args.pageTable, stages, full, empty};
      items.forEach([&](int kvHead, const SequenceRun &run) {
        loader.load(kvHead, run);
      });
    }
  } else {
    registersTake<232>();
    WgmmaAttention<config> math{args, stages, full, empty};
    items.forEach(
        [&](int kvHead, const SequenceRun &run) { math.attend(kvHead, run); });
  }
}

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90A

#endif // LLAMAC_CODEGEN_DEVICE_ATTENTION_SM90A_CUH
