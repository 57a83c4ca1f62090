//===- config.h - Shapes of the cpu kernels ---------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compile-time parameters of every kernel family and the launch geometry
// that follows from them. Compiled twice, with one meaning: by the compiler,
// which writes geometry into the plan, and in the emitted unit, where the same
// functions lay out a thread's scratch memory. Nothing here depends on the
// instruction set, since one plan holds code for several.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_CONFIG_H
#define LLAMAC_CPU_CONFIG_H

#include "llamac/ExpKind.h"
#include "llamac/PanelLayout.h"

namespace llamac::cpu {

using llamac::ExpKind;

/// Geometry of a launch. Work item `i` of row block `b` has the number
/// b * items + i; with `rowBlock` 0 there is one block, whatever the rows.
struct LaunchShape {
  long items;
  long rowBlock;
  long scratchBytes; ///< For each thread.
};

constexpr long roundUp(long value, long unit) {
  return (value + unit - 1) / unit * unit;
}

// Matrix products

/// y[t] = W x[t] for one weight, or two that share x: W is [outputs, depth].
struct MatmulConfig {
  PanelFormat format;
  long outputs;
  long depth;
  int weights = 1; ///< 1 or 2.
  /// Whether activations stay in f32 for every format.
  bool exact = false;
  /// Equal runs of the depth that are summed apart, and their sums by a binary
  /// tree; a power of two.
  long leaves = 1;
  // Tiles, which do not change results; 0: the format's default.
  long panels =
      0;          ///< Unroll over N: panels of each weight for one row, 1 to 4.
  long ahead = 0; ///< Bytes from what one row reads to what is prefetched.
  long rowBlock = 0; ///< gemm only: rows that go through the weights together.
};

/// The most panels, of all weights together, that one row is unrolled over.
constexpr long mostPanels = 4;

/// Whether a format is multiplied in 8-bit integers, by activations that are
/// rounded to them.
constexpr bool usesInt8(PanelFormat format, bool exact) {
  return !exact && panelProduct(format) == PanelProduct::Int8;
}

constexpr bool usesInt8(const MatmulConfig &config) {
  return usesInt8(config.format, config.exact);
}

/// Bytes from what one row reads to what it prefetches; the default suits
/// mostPanels panels.
constexpr long prefetchDistance(const MatmulConfig &config) {
  if (config.ahead)
    return config.ahead;
  return usesInt8(config) ? 2048 : 1024;
}

/// The prefetch distance of gemm: it hides the latency of memory where two rows
/// take the bytes between.
constexpr long manyRowsAhead = 4096;

constexpr long int8BlockBytes = 40;

/// Bytes of one row of activations as the products read it, but for the
/// residuals of int8.h.
constexpr long preparedRowBytes(const MatmulConfig &config) {
  return usesInt8(config) ? config.depth / 32 * int8BlockBytes
                          : config.depth * 4;
}

/// The parts of rows in 8 bits (Int8Rows), as offsets in bytes.
struct Int8RowsLayout {
  long residuals;
  long residualRows;
  long counts;
  long bytes;
};

constexpr Int8RowsLayout int8RowsLayout(long depth, long rows) {
  long blocks = depth / 32 * rows;
  long residuals = roundUp(blocks * int8BlockBytes, 64);
  long residualRows = residuals + roundUp(blocks * int8BlockBytes, 64);
  long counts = residualRows + roundUp(blocks * 4, 64);
  return {residuals, residualRows, counts, counts + roundUp(depth / 8, 64)};
}

/// Bytes of `rows` rows of activations as the products read them: the most that
/// any instruction set needs.
constexpr long preparedBytes(const MatmulConfig &config, long rows) {
  return usesInt8(config) ? int8RowsLayout(config.depth, rows).bytes
                          : rows * config.depth * 4;
}

/// Sums that are kept while leaves are added by a tree: of the subtrees before
/// the leaf and its own.
constexpr long keptSums(long leaves) {
  return leaves == 1 ? 1 : 1 + keptSums(leaves / 2);
}

/// A thread's scratch: one row of f32, prepared rows, and accumulators of two
/// panels for them, or of mostPanels for a single row, as many as are kept.
struct MatmulScratch {
  long prepared;
  long accumulators;
  long bytes;
};

constexpr MatmulScratch matmulScratch(const MatmulConfig &config, long rows) {
  long prepared = roundUp(config.depth * 4, 64);
  long accumulators = prepared + roundUp(preparedBytes(config, rows), 64);
  long panels = rows == 1 ? mostPanels : 2;
  long sums = rows * panels * panelRows * 4;
  return {prepared, accumulators,
          accumulators + keptSums(config.leaves) * sums};
}

/// Rows that gemm takes through the weights together: enough to make reading
/// and widening them free, few enough that the rows stay in the L2 cache.
constexpr long gemmRowBlock(const MatmulConfig &config) {
  if (config.rowBlock)
    return config.rowBlock;
  long bytes = preparedRowBytes(config);
  return bytes <= 8192 ? 128 : bytes <= 16384 ? 64 : 48;
}

/// A work item is one panel of 16 outputs (of each weight).
constexpr LaunchShape gemvShape(const MatmulConfig &config) {
  return {panelCount(config.outputs), 0, matmulScratch(config, 1).bytes};
}

constexpr LaunchShape gemmShape(const MatmulConfig &config, long rowBlock) {
  return {panelCount(config.outputs), rowBlock,
          matmulScratch(config, rowBlock).bytes};
}

constexpr LaunchShape gemmShape(const MatmulConfig &config) {
  return gemmShape(config, gemmRowBlock(config));
}

// Attention

enum class KvFormat : unsigned char { F32, F16, BF16, Q8_0 };

/// Elements of a key or a value in Q8_0 that share a scale: as many as the
/// product that makes them gives at a time.
constexpr long kvBlock = 16;

/// The KV cache of one layer: pages of `pageTokens` tokens, numbered by the
/// page table, i32 [sequences][pagesPerSequence]. A page holds for each kv head
/// K as [pageTokens / 16][headSize][16 tokens], then V as
/// [pageTokens][headSize rounded up to 16].
///
/// In Q8_0 an element is a scale, bf16, times i8 in -127 .. 127. K is
/// [pageTokens / 16][headSize / 2][16 tokens][2]; behind K and behind V lie
/// their scales, [headSize / kvBlock][pageTokens].
struct KvConfig {
  long kvHeads;
  long headSize;         ///< A multiple of 8; in Q8_0 of kvBlock.
  long pagesPerSequence; ///< Context / pageTokens, rounded up.
  long pageTokens = 64;  ///< A multiple of 32 that divides splitTokens.
  KvFormat format = KvFormat::F16;
};

constexpr long kvElementBytes(KvFormat format) {
  return format == KvFormat::F32 ? 4 : format == KvFormat::Q8_0 ? 1 : 2;
}

/// Bytes of the scales of K, or of V, of one head in a page.
constexpr long kvScaleBytes(const KvConfig &kv) {
  return kv.format == KvFormat::Q8_0 ? kv.headSize / kvBlock * kv.pageTokens * 2
                                     : 0;
}

/// Elements of a row of V and of an attention accumulator.
constexpr long paddedHead(long headSize) { return roundUp(headSize, 16); }

/// Bytes of K, of one head in a page, with its scales: where V begins.
constexpr long kvKeyBytes(const KvConfig &kv) {
  return kv.pageTokens * kv.headSize * kvElementBytes(kv.format) +
         kvScaleBytes(kv);
}

constexpr long kvHeadBytes(const KvConfig &kv) {
  return kvKeyBytes(kv) +
         kv.pageTokens * paddedHead(kv.headSize) * kvElementBytes(kv.format) +
         kvScaleBytes(kv);
}

constexpr long kvPageBytes(const KvConfig &kv) {
  return roundUp(kv.kvHeads * kvHeadBytes(kv), 64);
}

/// Query head j reads kv head j / (heads / kvHeads).
struct AttentionConfig {
  KvConfig kv;
  long heads;
  float scale;
  long window = 0;        ///< Keys that a row sees, its own included; 0: all.
  long splitTokens = 256; ///< Keys that are reduced together; see attention.h.
  long vectors = 32; ///< About as many queries go through the keys together.
  ExpKind exp = ExpKind::Exact; ///< Exponentials of the scores.
  long topK = 0; ///< attentionSplit: scores of a split that are kept; 0: all.
};

/// The first key that the row at `position` sees.
constexpr long firstKey(const AttentionConfig &config, long position) {
  return config.window && position >= config.window
             ? position + 1 - config.window
             : 0;
}

/// Rows whose query vectors go through the keys together: a multiple of 4, as
/// the inner loop takes them (tile.h).
constexpr long attentionTileRows(const AttentionConfig &config) {
  long group = config.heads / config.kv.kvHeads;
  return group >= config.vectors ? 4 : roundUp(config.vectors / group, 4);
}

constexpr long attentionSplits(const AttentionConfig &config) {
  long tokens = config.kv.pagesPerSequence * config.kv.pageTokens;
  return (tokens + config.splitTokens - 1) / config.splitTokens;
}

/// Scratch: queries, scores, the output of a split, the running output, the
/// maximum and sum of both, in Q8_0 a page's scales of V in fp32, and the
/// tokens that topK keeps.
constexpr long attentionScratchBytes(const AttentionConfig &config) {
  long group = config.heads / config.kv.kvHeads;
  long vectors = attentionTileRows(config) * group;
  long head = paddedHead(config.kv.headSize);
  return vectors * (3 * head + config.splitTokens + 2 * 16) * 4 +
         2 * kvScaleBytes(config.kv) +
         (config.topK ? config.splitTokens * 4 : 0);
}

/// For any rows. A work item is one kv head.
constexpr LaunchShape attentionShape(const AttentionConfig &config) {
  return {config.kv.kvHeads, attentionTileRows(config),
          attentionScratchBytes(config)};
}

/// For few rows with long contexts: work items are equal shares of all splits.
constexpr LaunchShape attentionSplitShape(const AttentionConfig &config) {
  return {240, 0, attentionScratchBytes(config)};
}

/// f32 of one partial result: the output, the maximum, the sum.
constexpr long attentionPartialFloats(const AttentionConfig &config) {
  return paddedHead(config.kv.headSize) + 16;
}

/// Bytes of one row of attentionSplit's output, f32 [heads][splits][partial].
constexpr long attentionPartialRowBytes(const AttentionConfig &config) {
  return config.heads * attentionSplits(config) *
         attentionPartialFloats(config) * 4;
}

constexpr LaunchShape attentionMergeShape(const AttentionConfig &config) {
  return {config.heads, 1, 0};
}

// Query, key and value

/// The products of a layer's query, key and value, which share their input.
struct QkvConfig {
  MatmulConfig query;
  MatmulConfig key;
  MatmulConfig value;
  KvConfig kv = {}; ///< Where key and value go to the cache.
  bool biased = false;
};

constexpr long largest(long a, long b, long c) {
  long most = a > b ? a : b;
  return most > c ? most : c;
}

/// A work item is one panel: first those of the query, then the key's, then the
/// value's. Each product lays out the scratch for itself.
constexpr LaunchShape qkvShape(const LaunchShape &query, const LaunchShape &key,
                               const LaunchShape &value) {
  return {query.items + key.items + value.items, query.rowBlock,
          largest(query.scratchBytes, key.scratchBytes, value.scratchBytes)};
}

constexpr LaunchShape gemvShape(const QkvConfig &config) {
  return qkvShape(gemvShape(config.query), gemvShape(config.key),
                  gemvShape(config.value));
}

/// The row block is the smallest of the three, which suits every format.
constexpr long gemmRowBlock(const QkvConfig &config) {
  return -largest(-gemmRowBlock(config.query), -gemmRowBlock(config.key),
                  -gemmRowBlock(config.value));
}

constexpr LaunchShape gemmShape(const QkvConfig &config, long rowBlock) {
  return qkvShape(gemmShape(config.query, rowBlock),
                  gemmShape(config.key, rowBlock),
                  gemmShape(config.value, rowBlock));
}

constexpr LaunchShape gemmShape(const QkvConfig &config) {
  return gemmShape(config, gemmRowBlock(config));
}

// Rotary embedding and row-wise kernels

/// Rotates q and k, and appends k and v to the cache.
struct RopeConfig {
  KvConfig kv;
  long heads;
  /// Sizes of the parts, whole heads, by which q and k are normalised first; 0:
  /// not at all.
  long queryNorm = 0;
  long keyNorm = 0;
};

constexpr LaunchShape ropeTableShape() { return {1, 16, 0}; }

struct EmbedConfig {
  PanelFormat format;
  long width;
  long rows = 0; ///< Rows of a rank's part of the table; 0: it is whole.
};

/// Every row-wise kernel but ropeTable and allGather: a work item is a block of
/// rows.
constexpr LaunchShape rowwiseShape() { return {1, 4, 0}; }

/// A work item is what one rank has of a block of rows.
constexpr LaunchShape allGatherShape(long ranks) {
  return {ranks, rowwiseShape().rowBlock, 0};
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_CONFIG_H
