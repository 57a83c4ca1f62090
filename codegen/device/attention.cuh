//===- attention.cuh - Attention over the paged cache -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A query vector is one head of one row; the vectors of the query heads that
// share a kv head go through its keys together, 16 in a warp (flash.cuh).
//
//   attention       a block has the vectors of some rows of one kv head, 16 a
//                   warp, and all its warps read the same keys: for prefill.
//   attentionSplit  split-KV: a block has the vectors of one row and a split of
//                   its keys, a quarter of each tile for a warp, so that few
//                   rows fill a GPU. Blocks store partial results; the last one
//                   to finish merges them, in ascending order.
//
// Splits depend on the row's position alone, so a result depends neither on the
// other rows nor on which block was faster.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_ATTENTION_CUH
#define LLAMAC_CODEGEN_DEVICE_ATTENTION_CUH

#include "llamac/arrivals.cuh"
#include "llamac/flash.cuh"

namespace llamac::cuda {

/// Row r is the token at positions[r] of sequence sequences[r]; it sees the
/// keys 0 .. positions[r], its own included.
struct AttentionArgs {
  const float *q;       ///< [rows][heads][headSize], rotated.
  const void *pool;     ///< The layer's pages.
  const int *pageTable; ///< [sequences][pagesPerSequence].
  const int *positions; ///< [rows].
  const int *sequences; ///< [rows].
  float *out;
};

/// The rows of a block that are of one sequence, and the keys that they see:
/// `from` to `keys` - 1.
struct SequenceRun {
  int begin;
  int end;
  int sequence;
  int keys;
  int from;

  /// The first key of the first tile.
  LLAMAC_DEVICE int firstTile() const { return from / keyTile * keyTile; }
};

template <AttentionConfig config, class Body>
LLAMAC_DEVICE void forEachRun(const AttentionArgs &args, int firstRow,
                              int endRow, const Body &body) {
  for (int row = firstRow; row < endRow;) {
    SequenceRun run{row, row, args.sequences[row], 0,
                    firstKey(config, args.positions[row])};
    for (; run.end < endRow && args.sequences[run.end] == run.sequence;
         ++run.end) {
      run.keys = maxOf(run.keys, args.positions[run.end] + 1);
      run.from = minOf(run.from, firstKey(config, args.positions[run.end]));
    }
    body(run);
    row = run.end;
  }
}

/// Writes f32 [rows][heads][headSize] to args.out. A launch of
/// attentionShape(config).
template <AttentionConfig config>
LLAMAC_DEVICE void attention(int rows, const AttentionArgs &args) {
  constexpr int group = attentionGroup(config);
  constexpr int tileRows = attentionTileRows(config);
  constexpr int tileKeys = attentionKeys(config);
  constexpr int head = config.kv.headSize;
  static_assert(tileRows > 0, "a block has the vectors of one row at least");
  LLAMAC_SHARED_DYNAMIC(stages);
  const int kvHead = blockIdx.x;
  // Later rows see more keys, so they go first.
  const int block = gridDim.y - 1 - blockIdx.y;
  const int firstRow = block * tileRows;
  const int endRow = minOf(firstRow + tileRows, rows);

  auto rowOf = [&](int vector) {
    return firstRow + (warpIndex() * warpVectors + vector) / group;
  };
  auto offsetOf = [&](int vector) {
    const int index = warpIndex() * warpVectors + vector;
    return (long(firstRow + index / group) * config.heads + kvHead * group +
            index % group) *
           head;
  };
  forEachRun<config>(args, firstRow, endRow, [&](const SequenceRun &run) {
    auto inRun = [&](int vector) {
      return rowOf(vector) >= run.begin && rowOf(vector) < run.end;
    };

    FlashWarp<config, hasSharedQueries(config)> warp;
    warp.queries =
        reinterpret_cast<uint32_t *>(
            stages + config.stages * attentionStageBytes(config, tileKeys)) +
        warpIndex() * sharedQueryWords(config);
    warp.loadQueries([&](int vector) {
      return inRun(vector) ? args.q + offsetOf(vector) : nullptr;
    });
    int from[2], seen[2];
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int vector = warp.g + 8 * upper;
      const int position = inRun(vector) ? args.positions[rowOf(vector)] : -1;
      from[upper] = firstKey(config, position) - run.firstTile();
      seen[upper] = position + 1 - run.firstTile();
    }
    KeyLoader<config, tileKeys> loader{
        {static_cast<uint16_t *>(const_cast<void *>(args.pool)),
         args.pageTable},
        stages,
        kvHead,
        run.sequence,
        run.firstTile(),
        run.keys,
        run.from};
    loader.forEachTile([&](int tile) {
      const int first = tile * tileKeys;
      warp.template take<tileKeys>(loader.keys(tile), loader.values(tile),
                                   {from[0] - first, from[1] - first},
                                   {seen[0] - first, seen[1] - first});
    });
    warp.finish();
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int vector = warp.g + 8 * upper;
      if (inRun(vector))
        warp.store(upper, 1.0f / warp.total[upper],
                   args.out + offsetOf(vector));
    }
  });
}

/// What the blocks of attentionSplit share; see attentionSplitShape().
struct SplitArgs {
  float *partials;    ///< f32 [rows][heads][splits][attentionPartialFloats].
  uint32_t *counters; ///< [rows][kvHeads][attentionHeadTiles], zero.
};

/// Merges the partial results of query heads `first` to `first + heads - 1` of
/// `row` in ascending order into args.out. A warp has a head.
template <AttentionConfig config>
LLAMAC_DEVICE void mergeSplits(const AttentionArgs &args, const float *partials,
                               int row, int first, int heads, int splits) {
  constexpr int head = config.kv.headSize;
  constexpr int partial = attentionPartialFloats(config);
  for (int vector = warpIndex(); vector < heads; vector += attentionWarps) {
    const long index = long(row) * config.heads + first + vector;
    const float *from = partials + index * config.splits * partial;
    float maximum = minusInfinity, total = 0;
    for (int split = 0; split < splits; ++split)
      maximum = maxOf(maximum, from[split * partial + head]);
    for (int split = 0; split < splits; ++split) {
      const F32x2 state = load2(from + split * partial + head);
      total = fma(state.y, weightOf(state.x, maximum), total);
    }
    for (int d = 2 * laneIndex(); d < head; d += 64) {
      F32x2 sum = {0, 0};
      for (int split = 0; split < splits; ++split) {
        const float *part = from + split * partial;
        sum = fma(load2(part + d), splat(weightOf(part[head], maximum)), sum);
      }
      store2(args.out + index * head + d, sum * splat(1.0f / total));
    }
  }
}

/// Writes f32 [rows][heads][headSize] to args.out. A launch of
/// attentionSplitShape(config).
template <AttentionConfig config>
LLAMAC_DEVICE void attentionSplit(const AttentionArgs &args,
                                  const SplitArgs &shared) {
  constexpr int group = attentionGroup(config);
  constexpr int head = config.kv.headSize;
  constexpr int headTiles = attentionHeadTiles(config);
  constexpr int partial = attentionPartialFloats(config);
  constexpr int warpKeys = keyTile / attentionWarps;
  LLAMAC_SHARED_DYNAMIC(stages);
  const int row = blockIdx.y;
  const int split = blockIdx.x % config.splits;
  const int headTile = blockIdx.x / config.splits % headTiles;
  const int kvHead = blockIdx.x / config.splits / headTiles;
  const int firstHead = kvHead * group + headTile * warpVectors;
  const int heads = minOf(group - headTile * warpVectors, warpVectors);

  const int tokens = args.positions[row] + 1;
  const int from = firstKey(config, args.positions[row]);
  const int firstTile = from / keyTile * keyTile;
  const int share = splitTokens(config, tokens - firstTile);
  // Blocks without a split leave before they divide.
  if (split * share >= tokens - firstTile)
    return;
  const int splits = ceilDiv(tokens - firstTile, share);
  const int begin = firstTile + split * share;
  const int end = minOf(begin + share, tokens);

  FlashWarp<config> warp;
  warp.loadQueries([&](int vector) {
    return vector < heads
               ? args.q + (long(row) * config.heads + firstHead + vector) * head
               : nullptr;
  });
  KeyLoader<config> loader{
      {static_cast<uint16_t *>(const_cast<void *>(args.pool)), args.pageTable},
      stages,
      kvHead,
      args.sequences[row],
      begin,
      end,
      from};
  const int own = warpIndex() * warpKeys;
  loader.forEachTile([&](int tile) {
    const int first = begin + tile * keyTile + own;
    warp.template take<warpKeys>(loader.keys(tile) + own * loader.stride,
                                 loader.values(tile) + own * loader.stride,
                                 {from - first, from - first},
                                 {end - first, end - first});
  });
  warp.finish();

  // Shared memory has the warps' results, which are merged in their order.
  auto *exchange = reinterpret_cast<float *>(stages);
  constexpr int slot = head + 4;
  static_assert(attentionWarps * warpVectors * slot * 4 <=
                config.stages * attentionStageBytes(config));
#pragma unroll
  for (int upper = 0; upper < 2; ++upper) {
    float *to =
        exchange + (warpIndex() * warpVectors + warp.g + 8 * upper) * slot;
    warp.store(upper, 1.0f, to);
    if (warp.t == 0)
      store2(to + head, {warp.maximum[upper], warp.total[upper]});
  }
  syncThreads();
  // A row of one split has its result, others a part of it.
  const bool isUnsplit = splits == 1;
  for (int vector = warpIndex(); vector < heads; vector += attentionWarps) {
    float maximum = minusInfinity, total = 0;
    for (int w = 0; w < attentionWarps; ++w)
      maximum =
          maxOf(maximum, exchange[(w * warpVectors + vector) * slot + head]);
    for (int w = 0; w < attentionWarps; ++w) {
      const float *from = exchange + (w * warpVectors + vector) * slot;
      total = fma(from[head + 1], weightOf(from[head], maximum), total);
    }
    const long index = long(row) * config.heads + firstHead + vector;
    float *part = shared.partials + (index * config.splits + split) * partial;
    float *to = isUnsplit ? args.out + index * head : part;
    const F32x2 factor = splat(isUnsplit ? 1.0f / total : 1.0f);
    for (int d = 2 * laneIndex(); d < head; d += 64) {
      F32x2 sum = {0, 0};
      for (int w = 0; w < attentionWarps; ++w) {
        const float *from = exchange + (w * warpVectors + vector) * slot;
        sum = fma(load2(from + d), splat(weightOf(from[head], maximum)), sum);
      }
      store2(to + d, sum * factor);
    }
    if (!isUnsplit && laneIndex() == 0)
      store2(part + head, {maximum, total});
  }
  if (isUnsplit)
    return;
  uint32_t *counter = shared.counters +
                      (long(row) * config.kv.kvHeads + kvHead) * headTiles +
                      headTile;
  if (arrivesLast(counter, splits))
    mergeSplits<config>(args, shared.partials, row, firstHead, heads, splits);
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_ATTENTION_CUH
