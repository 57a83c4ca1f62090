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
//   attention       a block has the vectors of a run, some rows of a sequence,
//                   and of one kv head, 16 a warp, and all its warps read the
//                   same keys; then another run: for prefill.
//   attentionSplit  split-KV: a block has the vectors of one row and a split of
//                   its keys, a quarter of each tile for a warp, so that few
//                   rows fill a GPU, and then another split. Blocks store
//                   partial results; the last one to finish merges those of a
//                   row, in ascending order.
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
  void *out;            ///< AttentionResult [rows][heads][headSize].
};

/// The type that results are stored as.
template <AttentionConfig config>
using AttentionResult = ChooseType<
    config.result == RowFormat::F32, float,
    ChooseType<config.result == RowFormat::BF16, BFloat16, LaneBFloat16>>;

/// Where results of vector `index` of [rows][heads] go.
template <AttentionConfig config>
LLAMAC_DEVICE AttentionResult<config> *resultOf(const AttentionArgs &args,
                                                long index) {
  return static_cast<AttentionResult<config> *>(args.out) +
         index * config.kv.headSize;
}

/// Rows of one sequence, and the keys that they see: `from` to `keys` - 1.
struct SequenceRun {
  int begin;
  int end;
  int sequence;
  int keys;
  int from;

  LLAMAC_DEVICE int rows() const { return end - begin; }
  /// The first key of the first tile.
  LLAMAC_DEVICE int firstTile() const { return from / keyTile * keyTile; }
};

/// The runs of a launch, which its blocks share. A run has rows of one sequence
/// in one tile of `tileRows` rows; so a step has one for each sequence that
/// decodes and several for a prompt. Each block finds all of them. Items are a
/// run and a kv head; a block has one item after another.
template <AttentionConfig config, int threads, int tileRows> class RunItems {
  static constexpr int warps = threads / 32;

public:
  /// Finds the runs of `rows` rows; all threads of the block come.
  LLAMAC_DEVICE RunItems(const AttentionArgs &args, int rows) : args(args) {
    LLAMAC_SHARED(begins, uint16_t[config.maxRows + 1]);
    LLAMAC_SHARED(counts, int[warps]);
    runBegins = begins;
    // A warp looks at neighbouring chunks of 32 rows.
    const int chunks = ceilDiv(ceilDiv(rows, 32), warps);
    const int first = warpIndex() * chunks;
    auto runsOfChunk = [&](int chunk) {
      const int row = 32 * chunk + laneIndex();
      return warpBallot(row < rows &&
                        (row % tileRows == 0 ||
                         args.sequences[row] != args.sequences[row - 1]));
    };
    int count = 0;
#pragma unroll 4
    for (int chunk = first; chunk < first + chunks; ++chunk)
      count += __popc(runsOfChunk(chunk));
    if (laneIndex() == 0)
      counts[warpIndex()] = count;
    syncThreads();
    int number = 0;
    for (int w = 0; w < warps; ++w) {
      number += w < warpIndex() ? counts[w] : 0;
      runCount += counts[w];
    }
    for (int chunk = first; chunk < first + chunks; ++chunk) {
      const uint32_t runs = runsOfChunk(chunk);
      const uint32_t before = runs & ((1u << laneIndex()) - 1);
      if (runs >> laneIndex() & 1)
        begins[number + __popc(before)] =
            static_cast<uint16_t>(32 * chunk + laneIndex());
      number += __popc(runs);
    }
    if (threadIdx.x == 0)
      begins[runCount] = static_cast<uint16_t>(rows);
    syncThreads();
  }

  /// Calls body(kvHead, run) for the items of the block; whole warps come.
  /// Later rows see more keys, so they go first, and every second round of
  /// blocks goes the other way: so all have about as many keys.
  template <class Body> LLAMAC_DEVICE void forEach(const Body &body) const {
    const int blocks = gridDim.x;
    const int items = runCount * static_cast<int>(config.kv.kvHeads);
    for (int first = 0, isOdd = 0; first < items; first += blocks, isOdd ^= 1) {
      const int item =
          first + (isOdd ? blocks - 1 - static_cast<int>(blockIdx.x)
                         : static_cast<int>(blockIdx.x));
      if (item < items)
        body(item % static_cast<int>(config.kv.kvHeads),
             run(runCount - 1 - item / static_cast<int>(config.kv.kvHeads)));
    }
  }

private:
  LLAMAC_DEVICE SequenceRun run(int number) const {
    const int begin = runBegins[number], end = runBegins[number + 1];
    int last = 0, from = 0x7fffffff;
    for (int row = begin + laneIndex(); row < end; row += 32) {
      const int position = args.positions[row];
      last = maxOf(last, position);
      from = minOf(from, firstKey(config, position));
    }
    return {begin, end, args.sequences[begin], reduceMax(last) + 1,
            config.window ? reduceMin(from) : 0};
  }

  const AttentionArgs &args;
  const uint16_t *runBegins;
  int runCount = 0;
};

/// The query vectors of a run and a kv head that a warp has: 16 from number
/// `first` of them on. Vectors behind the run's last row are not there.
template <AttentionConfig config> struct RunVectors {
  static constexpr int group = attentionGroup(config);
  static constexpr int head = config.kv.headSize;

  const AttentionArgs &args;
  const SequenceRun &run;
  int kvHead;
  int first;

  /// The thread's warp is number `warp` of those that share the run.
  LLAMAC_DEVICE RunVectors(const AttentionArgs &args, const SequenceRun &run,
                           int kvHead, int warp)
      : args(args), run(run), kvHead(kvHead), first(warp * warpVectors) {}

  LLAMAC_DEVICE int rowOf(int i) const {
    return run.begin + (first + i) / group;
  }
  LLAMAC_DEVICE bool isThere(int i) const { return rowOf(i) < run.end; }
  /// The number of the vector among [rows][heads].
  LLAMAC_DEVICE long numberOf(int i) const {
    return long(rowOf(i)) * config.heads + kvHead * group + (first + i) % group;
  }
  /// Null for a vector that is not there.
  LLAMAC_DEVICE const float *queryOf(int i) const {
    return isThere(i) ? args.q + numberOf(i) * head : nullptr;
  }

  /// The first key that vectors g and g + 8 see, and the one behind the last;
  /// of those that are not there what the run's last row sees, so that they do
  /// not have a tile masked.
  LLAMAC_DEVICE void visibleKeys(int g, int (&from)[2], int (&limit)[2]) const {
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int i = g + 8 * upper;
      const int position = isThere(i) ? args.positions[rowOf(i)] : run.keys - 1;
      from[upper] = firstKey(config, position);
      limit[upper] = position + 1;
    }
  }

  /// Stores the weighted values of a warp that has seen all keys.
  template <class Warp> LLAMAC_DEVICE void store(Warp &warp) const {
    warp.finish();
#pragma unroll
    for (int upper = 0; upper < 2; ++upper)
      if (const int i = warp.g + 8 * upper; isThere(i))
        warp.store(upper, 1.0f / warp.total[upper],
                   resultOf<config>(args, numberOf(i)));
  }
};

/// Writes the results of `rows` rows. A launch of attentionShape(config).
template <AttentionConfig config>
LLAMAC_DEVICE void attention(int rows, const AttentionArgs &args) {
  constexpr int tileRows = attentionTileRows(config);
  constexpr int tileKeys = attentionKeys(config);
  static_assert(tileRows > 0, "a block has the vectors of one row at least");
  LLAMAC_SHARED_DYNAMIC(stages);
  const RunItems<config, attentionWarps * 32, tileRows> items(args, rows);
  items.forEach([&](int kvHead, const SequenceRun &run) {
    KeyLoader<config, tileKeys> loader{
        {static_cast<unsigned char *>(const_cast<void *>(args.pool)),
         args.pageTable},
        stages,
        kvHead,
        run.sequence,
        run.firstTile(),
        run.keys,
        run.from};
    loader.startFirst();
    const RunVectors<config> vectors(args, run, kvHead, warpIndex());
    FlashWarp<config, hasSharedQueries(config)> warp;
    warp.queries = reinterpret_cast<uint32_t *>(
                       stages + attentionRingBytes(config, tileKeys)) +
                   warpIndex() * sharedQueryWords(config);
    warp.loadQueries([&](int i) { return vectors.queryOf(i); });
    int from[2], limit[2];
    vectors.visibleKeys(warp.g, from, limit);
    loader.forEachTile([&](int tile) {
      const int first = run.firstTile() + tile * tileKeys;
      warp.template take<tileKeys>(loader.keys(tile), loader.values(tile),
                                   {from[0] - first, from[1] - first},
                                   {limit[0] - first, limit[1] - first});
    });
    vectors.store(warp);
  });
}

/// The memory that the blocks of attentionSplit share; see
/// attentionSplitShape().
struct SplitArgs {
  float *partials;    ///< f32 [rows][heads][splits][attentionPartialFloats].
  uint32_t *counters; ///< [rows][kvHeads][attentionHeadTiles], zero.
};

/// Merges the partial results of `splits` splits of a query vector, which lie
/// attentionPartialFloats() apart from `from` on, in ascending order: a warp
/// gets store(d, pair) for every pair of columns. What it reads is far away, so
/// a lane reads the state of a split, and columns of as many as registers hold
/// before it uses the first.
template <AttentionConfig config, class Store>
LLAMAC_DEVICE void mergeVector(const float *from, int splits,
                               const Store &store) {
  constexpr int head = config.kv.headSize;
  constexpr int partial = attentionPartialFloats(config);
  constexpr int held = ceilDiv(config.splits, 32);
  constexpr int columns = ceilDiv(head, 64);
  constexpr int atOnce = columns == 1 ? 32 : columns == 2 ? 16 : 8;
  F32x2 states[held]; // Maximum and sum of splits lane, lane + 32, ...
  float maximum = minusInfinity;
#pragma unroll
  for (int h = 0; h < held; ++h) {
    const int split = laneIndex() + 32 * h;
    states[h] = split < splits ? load2(from + split * partial + head)
                               : F32x2{minusInfinity, 0};
    maximum = maxOf(maximum, states[h].x);
  }
#pragma unroll
  for (int by = 16; by > 0; by /= 2)
    maximum = maxOf(maximum, shuffleXor(maximum, by));
  float weights[held], total = 0;
#pragma unroll
  for (int h = 0; h < held; ++h) {
    weights[h] = weightOf(states[h].x, maximum);
    total = fma(states[h].y, weights[h], total);
  }
#pragma unroll
  for (int by = 16; by > 0; by /= 2)
    total += shuffleXor(total, by);

  F32x2 sums[columns] = {};
#pragma unroll
  for (int h = 0; h < held; ++h)
    for (int base = 32 * h; base < minOf(splits, 32 * h + 32); base += atOnce) {
      F32x2 parts[atOnce][columns];
#pragma unroll
      for (int i = 0; i < atOnce; ++i)
#pragma unroll
        for (int c = 0; c < columns; ++c) {
          const int d = 64 * c + 2 * laneIndex();
          parts[i][c] = base + i < splits && d < head
                            ? load2(from + (base + i) * partial + d)
                            : F32x2{0, 0};
        }
#pragma unroll
      for (int i = 0; i < atOnce; ++i) {
        const F32x2 weight = splat(shuffle(weights[h], (base + i) % 32));
#pragma unroll
        for (int c = 0; c < columns; ++c)
          sums[c] = fma(parts[i][c], weight, sums[c]);
      }
    }
#pragma unroll
  for (int c = 0; c < columns; ++c)
    if (const int d = 64 * c + 2 * laneIndex(); d < head)
      store(d, sums[c] * splat(1.0f / total));
}

/// A split of the keys of a row, for a tile of the query heads of a kv head.
struct RowSplit {
  int row;
  int position;
  int sequence;
  int split;
  int splits; ///< Splits of the row.
  int kvHead;
  int headTile;
};

/// A split of a launch of attention alone: queries and results are in memory,
/// and the last block to come merges the partial results of a row.
template <AttentionConfig config> struct SplitInMemory : WholeBlock {
  static constexpr int head = config.kv.headSize;
  static constexpr int partial = attentionPartialFloats(config);

  const AttentionArgs &args;
  const SplitArgs &shared;
  const RowSplit &of;
  int firstHead;
  int heads; ///< Heads of the tile.

  LLAMAC_DEVICE SplitInMemory(const AttentionArgs &args,
                              const SplitArgs &shared, const RowSplit &of)
      : args(args), shared(shared), of(of),
        firstHead(of.kvHead * attentionGroup(config) +
                  of.headTile * warpVectors),
        heads(minOf<int>(attentionGroup(config) - of.headTile * warpVectors,
                         warpVectors)) {}

  /// The cache has all keys.
  static constexpr bool bringsKey = false;
  LLAMAC_DEVICE void begin() const {}
  LLAMAC_DEVICE void bringKey(unsigned char *, unsigned char *) const {}

  LLAMAC_DEVICE long indexOf(int vector) const {
    return long(of.row) * config.heads + firstHead + vector;
  }
  LLAMAC_DEVICE const float *query(int vector) const {
    return args.q + indexOf(vector) * head;
  }
  LLAMAC_DEVICE float *partials(int vector) const {
    return shared.partials + indexOf(vector) * config.splits * partial;
  }
  LLAMAC_DEVICE void store(int vector, int d, F32x2 value) const {
    store2(resultOf<config>(args, indexOf(vector)) + d, value);
  }
  LLAMAC_DEVICE void storePartial(int vector, int d, F32x2 value) const {
    store2(partials(vector) + of.split * partial + d, value);
  }
  LLAMAC_DEVICE void merge() const {
    uint32_t *counter = shared.counters +
                        (long(of.row) * config.kv.kvHeads + of.kvHead) *
                            attentionHeadTiles(config) +
                        of.headTile;
    if (arrivesLast(counter, of.splits))
      for (int vector = warpIndex(); vector < heads; vector += attentionWarps)
        mergeVector<config>(
            partials(vector), of.splits,
            [&](int d, F32x2 value) { store(vector, d, value); });
  }
};

/// One split, by the first attentionWarps warps of a block: its result by
/// io.store() where it is the row's only one, else a partial result, and
/// io.merge() follows. `stages` is shared memory for tiles of keys.
template <AttentionConfig config, class Io>
LLAMAC_DEVICE void attendSplit(const KvCache<config.kv> &cache, const Io &io,
                               const RowSplit &of, unsigned char *stages) {
  constexpr int head = config.kv.headSize;
  constexpr int warpKeys = keyTile / attentionWarps;

  const int from = firstKey(config, of.position);
  const int firstTile = firstTileKey(config, of.position);
  const int tiles = tilesOfKeys(config, of.position);
  const int begin = firstTile + tiles * of.split / of.splits * keyTile;
  const int end =
      minOf(firstTile + tiles * (of.split + 1) / of.splits * keyTile,
            of.position + 1);

  KeyLoader<config, keyTile, Io> loader{cache, stages, of.kvHead, of.sequence,
                                        begin, end,    from};
  if constexpr (Io::bringsKey)
    loader.lastKept = of.position - 1;
  loader.startFirst();
  io.begin();
  FlashWarp<config, splitQueryWords(config) != 0> warp;
  warp.queries =
      reinterpret_cast<uint32_t *>(stages + attentionRingBytes(config)) +
      warpIndex() * splitQueryWords(config);
  warp.loadQueries([&](int vector) {
    return vector < io.heads ? io.query(vector) : nullptr;
  });
  const int own = warpIndex() * warpKeys;
  loader.forEachTile(
      [&](int tile) {
        const int first = begin + tile * keyTile + own;
        warp.template take<warpKeys>(loader.keys(tile) + own * loader.stride,
                                     loader.values(tile) + own * loader.stride,
                                     {from - first, from - first},
                                     {end - first, end - first});
      },
      [&](int tile) {
        if constexpr (Io::bringsKey)
          if (const int place = of.position - begin - tile * keyTile;
              place >= 0 && place < keyTile)
            io.bringKey(loader.keys(tile) + place * loader.stride,
                        loader.values(tile) + place * loader.stride);
      });
  warp.finish();

  // Shared memory has the warps' results, which are merged in their order.
  auto *exchange = reinterpret_cast<float *>(stages);
  constexpr int slot = head + 4;
  static_assert(attentionWarps * warpVectors * slot * 4 <=
                attentionRingBytes(config));
#pragma unroll
  for (int upper = 0; upper < 2; ++upper) {
    float *to =
        exchange + (warpIndex() * warpVectors + warp.g + 8 * upper) * slot;
    warp.store(upper, 1.0f, to);
    if (warp.t == 0)
      store2(to + head, {warp.maximum[upper], warp.total[upper]});
  }
  Io::sync();
  const bool isUnsplit = of.splits == 1;
  for (int vector = warpIndex(); vector < io.heads; vector += attentionWarps) {
    float maximum = minusInfinity, total = 0;
    for (int w = 0; w < attentionWarps; ++w)
      maximum =
          maxOf(maximum, exchange[(w * warpVectors + vector) * slot + head]);
    for (int w = 0; w < attentionWarps; ++w) {
      const float *from = exchange + (w * warpVectors + vector) * slot;
      total = fma(from[head + 1], weightOf(from[head], maximum), total);
    }
    for (int d = 2 * laneIndex(); d < head; d += 64) {
      F32x2 sum = {0, 0};
      for (int w = 0; w < attentionWarps; ++w) {
        const float *from = exchange + (w * warpVectors + vector) * slot;
        sum = fma(load2(from + d), splat(weightOf(from[head], maximum)), sum);
      }
      if (isUnsplit)
        io.store(vector, d, sum * splat(1.0f / total));
      else
        io.storePartial(vector, d, sum);
    }
    if (!isUnsplit && laneIndex() == 0)
      io.storePartial(vector, head, {maximum, total});
  }
  if (isUnsplit)
    Io::sync(); // The next split's keys come where the results are.
  else
    io.merge();
}

/// Writes the results of `rows` rows. A launch of attentionSplitShape(config)
/// with any number of blocks: they take the splits that there are in turn, so
/// that none is without work while another has two.
template <AttentionConfig config>
LLAMAC_DEVICE void attentionSplit(int rows, const AttentionArgs &args,
                                  const SplitArgs &shared) {
  constexpr int headTiles = attentionHeadTiles(config);
  constexpr int tiles = attentionTiles(config);
  LLAMAC_SHARED_DYNAMIC(stages);
  const KvCache<config.kv> cache{
      static_cast<unsigned char *>(const_cast<void *>(args.pool)),
      args.pageTable};
  int item = blockIdx.x;
  for (int first = 0; first < rows; first += 32) {
    // A lane counts the splits of a row, and those of the rows before it.
    const int own = first + laneIndex();
    const int position = own < rows ? args.positions[own] : 0;
    const int sequence = own < rows ? args.sequences[own] : 0;
    const int splits =
        own < rows ? splitsOf(config, tilesOfKeys(config, position)) : 0;
    int after = splits;
#pragma unroll
    for (int by = 1; by < 32; by *= 2) {
      const int before = shuffleUp(after, by);
      after += laneIndex() >= by ? before : 0;
    }
    const int items = shuffle(after, 31) * tiles;
    for (; item < items; item += gridDim.x) {
      const int at = item / tiles;
      const int lane = __popc(warpBallot(after <= at));
      const int ofRow = shuffle(splits, lane);
      const int tile = item % tiles;
      const RowSplit of{first + lane,
                        shuffle(position, lane),
                        shuffle(sequence, lane),
                        at - (shuffle(after, lane) - ofRow),
                        ofRow,
                        tile / headTiles,
                        tile % headTiles};
      attendSplit<config>(cache, SplitInMemory<config>(args, shared, of), of,
                          stages);
    }
    item -= items;
  }
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_ATTENTION_CUH
