//===- attention.h - Causal attention over the paged KV cache ---*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys are taken in splits of `splitTokens`. Within a split, all scores of a
// few query vectors are computed, then their maximum m, the weights e^(score -
// m), the weights' sum s and the weighted sum o of the values. A split's (o, m,
// s) is merged with those before it:
//
//   m' = max(m1, m2), s' = s1 e^(m1 - m') + s2 e^(m2 - m'), o' likewise
//
// and o / s is the result. A split's triple depends on its own keys only, and
// triples are merged in order, so a row gets the same bits from both forms:
//   attention       takes a tile of rows through all its splits, for prefill;
//   attentionSplit  stores the triples of a tile's splits (split-KV), so that
//                   few rows keep many threads busy;
//   attentionMerge  merges them.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_ATTENTION_H
#define LLAMAC_CPU_ATTENTION_H

#include "llamac/cpu/attention_tile.h"

namespace llamac::cpu {

/// How many of the rows from `first` to `end` - 1 are of the first one's
/// sequence, without others between them.
LLAMAC_INLINE long rowsOfSequence(const AttentionArgs &args, long first,
                                  long end) {
  long next = first + 1;
  while (next < end && args.sequences[next] == args.sequences[first])
    ++next;
  return next - first;
}

/// Writes f32 [rows][heads][headSize] to args.out.
template <AttentionConfig config>
LLAMAC_INLINE void attention(const CpuLaunch &launch,
                             const AttentionArgs &args) {
  constexpr LaunchShape shape = attentionShape(config);
  long blocks = (launch.rows + shape.rowBlock - 1) / shape.rowBlock;
  AttentionTile<config> tile(launch.scratch);
  for (long item = launch.begin; item < launch.end; ++item) {
    // Later rows see more keys: blocks go from both ends, so that equal ranges
    // of work items are about equal work.
    long order = item / shape.items;
    long block = order % 2 ? blocks - 1 - order / 2 : order / 2;
    long end = (block + 1) * shape.rowBlock;
    end = end < launch.rows ? end : launch.rows;
    for (long first = block * shape.rowBlock; first < end;) {
      const long rows = rowsOfSequence(args, first, end);
      tile.attend(args, first, rows, item % shape.items);
      first += rows;
    }
  }
}

/// Writes f32 [rows][heads][splits][partial] to args.out.
template <AttentionConfig config>
LLAMAC_INLINE void attentionSplit(const CpuLaunch &launch,
                                  const AttentionArgs &args) {
  constexpr LaunchShape shape = attentionSplitShape(config);
  constexpr long kvHeads = config.kv.kvHeads;
  using Tile = AttentionTile<config>;
  /// A tile of rows, whose splits are taken for each kv head.
  struct Rows {
    long first;
    long count;
    long firstSplit;
    long units; ///< Splits times kv heads.
  };
  auto rowsAt = [&](long first) {
    const long most = first + attentionTileRows(config);
    const long count =
        rowsOfSequence(args, first, most < launch.rows ? most : launch.rows);
    const long firstSplit =
        firstKey(config, args.positions[first]) / config.splitTokens;
    const long lastSplit =
        args.positions[first + count - 1] / config.splitTokens;
    return Rows{first, count, firstSplit,
                (lastSplit + 1 - firstSplit) * kvHeads};
  };
  // The work of a unit is its rows. An item is an equal share of all work: the
  // units that begin in it.
  long work = 0;
  for (long row = 0; row < launch.rows;) {
    const Rows rows = rowsAt(row);
    work += rows.units * rows.count;
    row += rows.count;
  }
  const long begin = launch.begin * work / shape.items;
  const long end = launch.end * work / shape.items;

  Tile tile(launch.scratch);
  long before = 0; // Work of the tiles so far.
  for (long row = 0; row < launch.rows && before < end;) {
    const Rows rows = rowsAt(row);
    auto unitAt = [&](long at) {
      const long unit = (at - before + rows.count - 1) / rows.count;
      return unit < 0 ? 0 : unit < rows.units ? unit : rows.units;
    };
    auto splitOf = [&](long unit) {
      return typename Tile::Split{args.sequences[row], unit % kvHeads,
                                  rows.firstSplit + unit / kvHeads};
    };
    const long first = unitAt(begin), last = unitAt(end);
    if (rows.count > 1) {
      for (long unit = first; unit < last; ++unit)
        tile.attendSplit(args, splitOf(unit), row, rows.count);
    } else if (first < last) {
      const auto of = splitOf(first);
      typename Tile::Prefetcher prefetcher(Tile::placesOf(
          args, of, Tile::seenBy(args, row, of.number).limit, 0));
      for (long unit = first; unit < last; ++unit)
        tile.attendSplit(args, splitOf(unit), row, prefetcher);
    }
    before += rows.units * rows.count;
    row += rows.count;
  }
}

/// Merges the partial results of attentionSplit, in ascending order: `out` gets
/// f32 [rows][heads][headSize].
template <AttentionConfig config>
LLAMAC_INLINE void attentionMerge(const CpuLaunch &launch,
                                  const float *partials, const int *positions,
                                  float *out) {
  using Tile = AttentionTile<config>;
  constexpr long size = attentionPartialFloats(config);
  constexpr long splits = attentionSplits(config);
  for (long item = launch.begin; item < launch.end; ++item) {
    // Items are the heads of row 0, then those of row 1, and so on.
    const long position = positions[item / config.heads];
    const long firstSplit = firstKey(config, position) / config.splitTokens;
    long count = position / config.splitTokens + 1 - firstSplit;
    const float *from = partials + (item * splits + firstSplit) * size;
    float sums[Tile::padded];
    for (long d = 0; d < Tile::padded; d += 16)
      store(sums + d, load<F32x16>(from + d));
    SoftmaxState state = {from[Tile::padded], from[Tile::padded + 1]};
    for (long number = 1; number < count; ++number) {
      const float *next = from + number * size;
      mergeSplit<Tile::padded>(sums, state, next,
                               {next[Tile::padded], next[Tile::padded + 1]});
    }
    Tile::finish(sums, state, out + item * Tile::head);
  }
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_ATTENTION_H
