//===- config.h - Shapes of the cuda kernels --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compile-time parameters of every kernel family, the launch geometry that
// follows from them, and how the KV cache lies in memory. Compiled twice, with
// one meaning: by the compiler, which writes geometry into the plan, and in the
// emitted source. Nothing here depends on the GPU.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_CONFIG_H
#define LLAMAC_CODEGEN_DEVICE_CONFIG_H

#include "llamac/ExpKind.h"
#include "llamac/wgmma_config.h"

namespace llamac::cuda {

using llamac::ExpKind;

// Matrix products

/// y[t] = W x[t] for one weight, or two that share x; W is [outputs, depth].
/// For up to maxRows rows: a warp streams `outputsPerWarp` rows of each weight,
/// `unroll` chunks of a lane for each row of a weight in flight.
struct GemvConfig {
  WeightFormat format;
  long outputs;
  long depth;
  int weights = 1;        ///< 1 or 2.
  int maxRows = 1;        ///< 1, 2, 4 or 8.
  int warps = 4;          ///< Warps of a block.
  int outputsPerWarp = 2; ///< A power of two, at least 2.
  int unroll = 4;
};

LLAMAC_CONSTEXPR int gemvBlockOutputs(const GemvConfig &config) {
  return config.warps * config.outputsPerWarp;
}

LLAMAC_CONSTEXPR LaunchShape launchShape(const GemvConfig &config) {
  return {divideUp(config.outputs, gemvBlockOutputs(config)), 0,
          config.warps * 32};
}

/// The product of GemvConfig with weights that stream through shared memory
/// (sm_90). `blocks` blocks, one for each multiprocessor, partition the rows of
/// one matrix, or of several that share the input and lie apart: `parts`
/// outputs of each, 0 for none. Of floats a warp has `outputsPerWarp` rows of
/// each weight at a time, whose segments come by bulk copies into a ring of its
/// own; of block formats the block has a row of tiles.
struct StreamConfig {
  GemvConfig product; ///< `outputs` of all parts together.
  long parts[3];
  int blocks = 132;      ///< H100 and H200.
  int stageBytes = 4096; ///< Most bytes of a stage of a warp's ring; a stage of
                         ///< a block's ring has five times as many.
};

constexpr int streamWarps = 8;

/// The most rows: sums of more do not fit into half of the registers.
constexpr int streamMaxRows = 4;

/// An input of at most so many bytes is kept in shared memory.
constexpr int streamInputLimit = 128 * 1024;

/// Bytes of the ring, or the rings, of a block. What memory delivers within its
/// latency must be in flight, 36 KB for each multiprocessor of an H200 at 1 us.
/// With an input of up to 10 KB three blocks fit on a multiprocessor, so that
/// those of the next two launches begin beside this one's; of up to 48 KB two.
constexpr int streamRingBytes = 64 * 1024 + 512;

/// Bytes of weights that each block asks L2 for ahead of its ring: of 132
/// blocks a sixth of the L2 cache of an H100 or H200. By docs/gpu-model.md
/// twice as many are there too early, and memory idles later.
constexpr int streamAheadBytes = 64 * 1024;

/// Whether a stream multiplies by tensor cores (stream_mma.cuh): weights whose
/// elements are exact in a half, with scales.
LLAMAC_CONSTEXPR bool streamsByMma(const StreamConfig &config) {
  return hasScales(config.product.format);
}

// Streams of floats, by lanes (stream.cuh)

/// Rows of weights in a stage.
LLAMAC_CONSTEXPR int streamRows(const StreamConfig &config) {
  return config.product.outputsPerWarp * config.product.weights;
}

/// Bytes of a row of a weight of floats.
LLAMAC_CONSTEXPR long streamRowBytes(const StreamConfig &config) {
  return unitBytes(config.product.format, config.product.depth);
}

/// Bytes of the input in shared memory: each row as f32, in whole turns of a
/// warp; 0 when it is not kept there.
LLAMAC_CONSTEXPR int streamInputBytes(const StreamConfig &config) {
  const int span = chunkElements(config.product.format);
  const long bytes =
      config.product.maxRows * roundUp(config.product.depth, 32 * span) * 4;
  return bytes > streamInputLimit ? 0 : static_cast<int>(bytes);
}

/// Bytes of a stage whose rows have `segment` bytes.
LLAMAC_CONSTEXPR int streamStageBytes(const StreamConfig &config, int segment) {
  return streamRows(config) * segment;
}

/// Stages of a warp's ring: as many as fit, but not more than are of use.
LLAMAC_CONSTEXPR int streamStages(const StreamConfig &config, int segment) {
  constexpr int most = 8;
  // Each has a barrier.
  const int stages =
      streamRingBytes / (streamWarps * (streamStageBytes(config, segment) + 8));
  return stages < most ? stages : most;
}

/// Bytes of a row in a stage: 16 for each lane of a warp, some times, halved
/// until two stages fit, or the whole row.
LLAMAC_CONSTEXPR int streamSegment(const StreamConfig &config) {
  constexpr int turn = 32 * 16;
  int segment = config.stageBytes / streamRows(config) / turn * turn;
  while (segment >= 2 * turn && streamStages(config, segment) < 2)
    segment = segment / 2 / turn * turn;
  if (segment < turn)
    segment = turn;
  const long row = streamRowBytes(config);
  return static_cast<int>(row < segment ? row : segment);
}

LLAMAC_CONSTEXPR int streamStageBytes(const StreamConfig &config) {
  return streamStageBytes(config, streamSegment(config));
}
LLAMAC_CONSTEXPR int streamStages(const StreamConfig &config) {
  return streamStages(config, streamSegment(config));
}

/// Sums of squares: one of each warp for each row.
LLAMAC_CONSTEXPR int streamSquaresBytes(const StreamConfig &config) {
  return config.product.maxRows * streamWarps * 4;
}

// Streams of block formats, by tensor cores (stream_mma.cuh)

/// Warps that multiply, and one that copies.
constexpr int halvesThreads = (streamWarps + 1) * 32;

/// An input of at most so many bytes, as f32, finds room in shared memory
/// beside a ring.
constexpr int halvesInputLimit = 128 * 1024;

/// Bytes of input that an MMA's columns take: two halves for each element
/// of 4 / maxRows blocks of each row.
constexpr int halvesSetBytes = 512;

/// Blocks of 32 columns in a set, one for each input row that there are fewer
/// than 4.
LLAMAC_CONSTEXPR int halvesSetBlocks(const GemvConfig &config) {
  return 4 / config.maxRows;
}

/// Tiles whose blocks a warp takes in a step: a set of them, or two sets of
/// one.
LLAMAC_CONSTEXPR int halvesStepTiles(const GemvConfig &config) {
  return config.maxRows == 1 ? 2 : 1;
}

/// Steps of a row of tiles; blocks past its end count as zeros.
LLAMAC_CONSTEXPR int halvesSteps(const GemvConfig &config) {
  return static_cast<int>(
      divideUp(config.depth, halvesStepTiles(config) * tileColumns));
}
LLAMAC_CONSTEXPR int halvesSets(const GemvConfig &config) {
  return halvesSteps(config) * halvesStepTiles(config) * 2 /
         halvesSetBlocks(config);
}

/// Numbers of a block of the input: what brings it back to scale, and where
/// weights have an offset its sum, or those of its two halves.
LLAMAC_CONSTEXPR int halvesNumbers(const GemvConfig &config) {
  return !hasOffsets(config.format) ? 1 : hasHalfScales(config.format) ? 4 : 2;
}

/// The shared memory that a block has beside its ring.
template <GemvConfig config> struct alignas(16) HalvesShared {
  static constexpr int rows = config.maxRows;
  static constexpr int sets = halvesSets(config);
  static constexpr int numbers = halvesNumbers(config);

  /// For lanes whose part of an input fragment is zero.
  unsigned char zeros[16];
  unsigned char input[sets][halvesSetBytes];
  /// The numbers of the block that each pair of a set's columns has.
  float blocks[sets][4][numbers];
  /// Partial sums of the warps, for two units.
  float partials[2][streamWarps][config.weights][rows][tileRows];
  float squares[rows][streamWarps];
};

LLAMAC_CONSTEXPR int halvesSharedBytes(const GemvConfig &config) {
  const int sums = 2 * streamWarps * config.weights * tileRows + streamWarps;
  return 16 +
         halvesSets(config) * (halvesSetBytes + 4 * halvesNumbers(config) * 4) +
         static_cast<int>(roundUp(config.maxRows * sums * 4, 16));
}

/// Whether the input finds room beside a ring.
LLAMAC_CONSTEXPR bool halvesInputFits(const GemvConfig &config) {
  return long{halvesSets(config)} * halvesSetBytes <= halvesInputLimit;
}

/// Groups of tiles of each weight in a stage of `stageBytes`, which come as
/// one: what fits, if that can be a step or more for every warp, and if it can
/// be an equal part of a row; or all of a row.
LLAMAC_CONSTEXPR int halvesStageGroups(const GemvConfig &product,
                                       int stageBytes) {
  const int most = stageBytes / (groupBytes(product.format) * product.weights);
  const long row = groupsOf(product.format, product.depth);
  if (row <= most)
    return static_cast<int>(row);
  const int step = static_cast<int>(
      divideUp(halvesStepTiles(product), groupTiles(product.format)));
  const int turn = static_cast<int>(divideUp(
      streamWarps * halvesStepTiles(product), groupTiles(product.format)));
  const int unit = turn <= most ? turn : step;
  int groups = most < unit ? unit : most / unit * unit;
  for (int fewer = groups; fewer >= groups / 2 && fewer > 0; fewer -= unit)
    if (row % fewer == 0)
      return fewer;
  return groups;
}

/// halvesStageGroups() of a launch of one product: a stage has five times
/// stageBytes.
LLAMAC_CONSTEXPR int halvesStageGroups(const StreamConfig &config) {
  const int third = streamRingBytes / 3 - 2 * 8;
  return halvesStageGroups(config.product, 5 * config.stageBytes < third
                                               ? 5 * config.stageBytes
                                               : third);
}

LLAMAC_CONSTEXPR int halvesStageBytes(const StreamConfig &config) {
  return halvesStageGroups(config) * groupBytes(config.product.format) *
         config.product.weights;
}

/// Stages of a ring, each with two barriers.
LLAMAC_CONSTEXPR int halvesStages(const StreamConfig &config) {
  constexpr int most = 8;
  const int stages = streamRingBytes / (halvesStageBytes(config) + 2 * 8);
  return stages < most ? stages : most;
}

/// Outputs of each weight that a warp, or a block by MMA, has at a time.
LLAMAC_CONSTEXPR int streamUnitOutputs(const StreamConfig &config) {
  return streamsByMma(config) ? tileRows : config.product.outputsPerWarp;
}

LLAMAC_CONSTEXPR long streamUnits(const StreamConfig &config, int part) {
  return divideUp(config.parts[part], streamUnitOutputs(config));
}

/// Units of all parts.
LLAMAC_CONSTEXPR long streamUnits(const StreamConfig &config) {
  return streamUnits(config, 0) + streamUnits(config, 1) +
         streamUnits(config, 2);
}

LLAMAC_CONSTEXPR LaunchShape launchShape(const StreamConfig &config) {
  const bool byMma = streamsByMma(config);
  const long units = streamUnits(config);
  LaunchShape shape{units < config.blocks ? units : config.blocks, 0,
                    byMma ? halvesThreads : streamWarps * 32};
  shape.sharedBytes =
      byMma ? halvesStages(config) * (halvesStageBytes(config) + 2 * 8) +
                  halvesSharedBytes(config.product)
            : streamWarps * streamStages(config) *
                      (streamStageBytes(config) + 8) +
                  streamInputBytes(config) + streamSquaresBytes(config);
  // Registers for as many blocks as shared memory lets in, of 228 KB with one
  // more for each block; sums of more rows want those of one.
  const int most =
      config.product.maxRows > 2 || (byMma && config.product.weights > 1) ? 2
                                                                          : 3;
  const int fit = 228 * 1024 / (shape.sharedBytes + 1024);
  shape.minBlocks = fit < most ? fit : most;
  return shape;
}

/// How rows of results are kept: LaneBF16 is BF16 in the order of lanes
/// (LaneBFloat16).
enum class RowFormat : unsigned char { F32, BF16, LaneBF16 };

/// The product of x in bf16 for any number of rows, by mma: a tile has
/// `tileRows` rows of x and gemmWarpOutputs outputs for each of
/// `warpsAlongOutputs` warps; two weights have half of these each.
/// `warpsAlongRows` times as many warps share its rows. `stages` slices of the
/// depth are in shared memory, of each of the `minBlocks` blocks that a
/// multiprocessor has, and `splits` blocks share the depth of a tile.
struct GemmConfig {
  WeightFormat format;
  long outputs;
  long depth;
  int weights = 1;                   ///< 1 or 2.
  RowFormat input = RowFormat::BF16; ///< BF16; or LaneBF16, packed or not.
  int tileRows = 64;                 ///< 16, 32, 64 or 128.
  int warpsAlongRows = 1;
  int warpsAlongOutputs = 4;
  int stages = 4;
  int minBlocks = 1;
  int splits = 1;
};

/// Outputs of a warp, two operands A of an MMA: what a warp reads of x then
/// takes half as long as its products.
constexpr int gemmWarpOutputs = 32;

LLAMAC_CONSTEXPR int gemmThreads(const GemmConfig &config) {
  return config.warpsAlongRows * config.warpsAlongOutputs * 32;
}

/// Rows of a warp: its columns of an MMA, and its sums in registers.
LLAMAC_CONSTEXPR int gemmWarpRows(const GemmConfig &config) {
  return config.tileRows / config.warpsAlongRows;
}

/// Outputs of a tile, of each weight.
LLAMAC_CONSTEXPR int gemmTileOutputs(const GemmConfig &config) {
  return config.warpsAlongOutputs * gemmWarpOutputs / config.weights;
}
LLAMAC_CONSTEXPR long gemmTiles(const GemmConfig &config) {
  return divideUp(config.outputs, gemmTileOutputs(config));
}

/// Bytes of a slice: rows of 128 bytes, swizzled, of x and of floats, and of
/// block formats tiles as they are packed.
LLAMAC_CONSTEXPR int gemmInputBytes(const GemmConfig &config) {
  return config.tileRows * productSlice * 2;
}
LLAMAC_CONSTEXPR int gemmWeightBytes(const GemmConfig &config) {
  const int outputs = config.weights * gemmTileOutputs(config);
  return hasScales(config.format)
             ? outputs / tileRows * tileBytes(config.format)
             : outputs * productSlice * 2;
}
LLAMAC_CONSTEXPR int gemmStageBytes(const GemmConfig &config) {
  return static_cast<int>(
      roundUp(gemmInputBytes(config) + gemmWeightBytes(config), 1024));
}

/// Outputs in the workspace, a whole number of pairs.
LLAMAC_CONSTEXPR long gemmOutputs(const GemmConfig &config) {
  return roundUp(config.outputs, 2);
}

LLAMAC_CONSTEXPR LaunchShape launchShape(const GemmConfig &config) {
  return withSplits(
      {gemmTiles(config) * config.splits, config.tileRows, gemmThreads(config),
       config.stages * gemmStageBytes(config), config.minBlocks},
      config.splits, config.weights, gemmOutputs(config), gemmTiles(config));
}

// KV cache and attention

/// How the cache holds keys and values: as floats of 16 bits, or as blocks of
/// codes of 8 bits that share a scale.
enum class KvFormat : unsigned char {
  F16,
  BF16,
  Q8_0, ///< Blocks of kvBlock elements; integers plus 128, scales in bf16.
  FP8,  ///< A head of a token is a block; E4M3, the scale in f32.
};

LLAMAC_CONSTEXPR bool hasBlocks(KvFormat format) {
  return format == KvFormat::Q8_0 || format == KvFormat::FP8;
}

/// The elements of a block of Q8_0, and those that a thread widens at a time.
constexpr int kvBlock = 16;

/// The KV cache of one layer: pages of `pageTokens` tokens, numbered by the
/// page table, i32 [sequences][pagesPerSequence]. A page holds for each kv head
/// K as [pageTokens][headSize], with blocks followed by their scales, 32-bit
/// words [pageTokens][kvScaleWords(kv)]; then V likewise. A lane reads 16 bytes
/// of one token.
struct KvConfig {
  long kvHeads;
  long headSize;         ///< A multiple of 8, and of kvBlock with blocks.
  long pagesPerSequence; ///< Context / pageTokens, rounded up.
  long pageTokens = 64;  ///< A multiple of keyTile.
  KvFormat format = KvFormat::F16;
};

/// The words that scales of a key, or of a value, of one head take: one for two
/// blocks of Q8_0, the last with a 0 where there is one block, or one of FP8.
LLAMAC_CONSTEXPR long kvScaleWords(const KvConfig &kv) {
  return kv.format == KvFormat::Q8_0  ? divideUp(kv.headSize, 2 * kvBlock)
         : kv.format == KvFormat::FP8 ? 1
                                      : 0;
}

/// Bytes of a key, or of a value, of one head, its scales left out.
LLAMAC_CONSTEXPR long kvRowBytes(const KvConfig &kv) {
  return kv.headSize * (hasBlocks(kv.format) ? 1 : 2);
}

/// Bytes of K, or of V, of one head in a page: where V and the scales begin.
LLAMAC_CONSTEXPR long kvScalesOffset(const KvConfig &kv) {
  return kv.pageTokens * kvRowBytes(kv);
}
LLAMAC_CONSTEXPR long kvPlaneBytes(const KvConfig &kv) {
  return kvScalesOffset(kv) + kv.pageTokens * kvScaleWords(kv) * 4;
}

LLAMAC_CONSTEXPR long kvPageBytes(const KvConfig &kv) {
  return kv.kvHeads * 2 * kvPlaneBytes(kv);
}

/// Query head j reads kv head j / (heads / kvHeads).
struct AttentionConfig {
  KvConfig kv;
  long heads;
  float scale;
  int window = 0;  ///< Keys that a row sees, its own included; 0: all.
  int splits = 16; ///< Split attention: the most parts of a row's keys.
  int minSplitTokens = 128;     ///< The fewest keys that are worth a part.
  int stages = 2;               ///< Tiles of keys and values in shared memory.
  bool sharedQueries = false;   ///< Split attention has queries there too.
  ExpKind exp = ExpKind::Exact; ///< Exponentials of the scores: Exact or Poly3.
  RowFormat result = RowFormat::F32;
  int maxRows = 0; ///< A launch has at most so many, unsplit.
};

/// Keys that go through the registers together.
constexpr int keyTile = 64;

/// Query vectors of one warp: the rows of an MMA.
constexpr int warpVectors = 16;

constexpr int attentionWarps = 4;

LLAMAC_CONSTEXPR long attentionGroup(const AttentionConfig &config) {
  return config.heads / config.kv.kvHeads;
}

/// Bytes of a key or value in shared memory: an odd number of 16 bytes, so that
/// the eight rows of an ldmatrix lie in different banks.
LLAMAC_CONSTEXPR int attentionStride(const AttentionConfig &config) {
  return static_cast<int>(config.kv.headSize / 8 | 1) * 16;
}

/// Bytes of a tile of keys and the same of values, as 16-bit floats.
LLAMAC_CONSTEXPR int attentionTileBytes(const AttentionConfig &config,
                                        int keys = keyTile) {
  return 2 * keys * attentionStride(config);
}

/// Bytes that a tile takes as it comes. Of blocks that is 16 bytes of codes and
/// the word that has their scale for each kvBlock elements.
LLAMAC_CONSTEXPR int attentionStageBytes(const AttentionConfig &config,
                                         int keys = keyTile) {
  return hasBlocks(config.kv.format)
             ? static_cast<int>(2 * keys * (config.kv.headSize / kvBlock) * 20)
             : attentionTileBytes(config, keys);
}

/// Bytes of all tiles: the stages, and ahead of them the one that blocks are
/// widened into.
LLAMAC_CONSTEXPR int attentionRingBytes(const AttentionConfig &config,
                                        int keys = keyTile) {
  return config.stages * attentionStageBytes(config, keys) +
         (hasBlocks(config.kv.format) ? attentionTileBytes(config, keys) : 0);
}

/// Whether attention for many rows has its queries in shared memory: those of
/// large heads would not fit into the registers beside their sums. Tiles have
/// half the keys then.
LLAMAC_CONSTEXPR bool hasSharedQueries(const AttentionConfig &config) {
  return config.kv.headSize > 128;
}
LLAMAC_CONSTEXPR int attentionKeys(const AttentionConfig &config) {
  return hasSharedQueries(config) ? keyTile / 2 : keyTile;
}

/// 32-bit words of a warp's queries: fragments of 16 elements, 4 for each lane.
LLAMAC_CONSTEXPR long queryWords(const AttentionConfig &config) {
  return divideUp(config.kv.headSize, 16) * 4 * 32;
}
LLAMAC_CONSTEXPR long sharedQueryWords(const AttentionConfig &config) {
  return hasSharedQueries(config) ? queryWords(config) : 0;
}

/// Rows whose query vectors fill the four warps of a block.
LLAMAC_CONSTEXPR long attentionTileRows(const AttentionConfig &config) {
  return attentionWarps * warpVectors / attentionGroup(config);
}

/// Shared memory for the runs of a launch, up to the alignment of the tiles: 16
/// bits for each of its most rows, and a count of each warp.
LLAMAC_CONSTEXPR int attentionRunBytes(const AttentionConfig &config) {
  return static_cast<int>(
      roundUp(2 * (config.maxRows + 1) + 4 * attentionWarps, 1024));
}

/// Blocks share the runs of all rows.
LLAMAC_CONSTEXPR LaunchShape attentionShape(const AttentionConfig &config,
                                            long blocks) {
  return {blocks, 0, attentionWarps * 32,
          static_cast<int>(attentionRingBytes(config, attentionKeys(config)) +
                           attentionWarps * sharedQueryWords(config) * 4)};
}

/// Whether attention for many rows can go by wgmma: boxes of 64 elements make a
/// head, which the cache holds as they are multiplied, and the vectors of a row
/// find room in a block.
LLAMAC_CONSTEXPR bool takesWgmmaAttention(const AttentionConfig &config) {
  return (config.kv.headSize == 64 || config.kv.headSize == 128) &&
         !hasBlocks(config.kv.format) && attentionGroup(config) <= wgmmaRows;
}

constexpr int wgmmaAttentionStages = 4;

/// Bytes of a tile of keys and the same of values.
LLAMAC_CONSTEXPR int wgmmaAttentionStageBytes(const AttentionConfig &config) {
  return static_cast<int>(2 * keyTile * config.kv.headSize * 2);
}

/// Rows whose query vectors fill two warpgroups.
LLAMAC_CONSTEXPR long wgmmaAttentionTileRows(const AttentionConfig &config) {
  return wgmmaRows / attentionGroup(config);
}

/// Blocks share the runs of all rows.
LLAMAC_CONSTEXPR LaunchShape wgmmaAttentionShape(const AttentionConfig &config,
                                                 long blocks) {
  return {blocks, 0, wgmmaThreads,
          wgmmaAttentionStages * wgmmaAttentionStageBytes(config)};
}

/// The map of the pool, operand `operand`: tokens of K and V, 64 elements wide.
/// Its rows are as many as the operand has.
LLAMAC_CONSTEXPR MapShape wgmmaPoolMap(const AttentionConfig &config,
                                       int operand) {
  return {operand, 2, config.kv.headSize, 0, 64, keyTile, 128};
}

/// Tiles of 16 query heads that share a kv head.
LLAMAC_CONSTEXPR long attentionHeadTiles(const AttentionConfig &config) {
  return divideUp(attentionGroup(config), warpVectors);
}

/// f32 of one partial result: the output, the maximum (of the scores times
/// log2 e), the sum, and two that are not used.
LLAMAC_CONSTEXPR long attentionPartialFloats(const AttentionConfig &config) {
  return config.kv.headSize + 4;
}

/// Tiles of query heads of one row.
LLAMAC_CONSTEXPR long attentionTiles(const AttentionConfig &config) {
  return config.kv.kvHeads * attentionHeadTiles(config);
}

/// 32-bit words of a warp's queries in shared memory in split attention.
LLAMAC_CONSTEXPR long splitQueryWords(const AttentionConfig &config) {
  return config.sharedQueries ? queryWords(config) : 0;
}

/// For few rows with long contexts: `blocks` blocks share the splits of all
/// rows; one has a split of a tile of query heads at a time. The workspace has
/// the partial results, f32 [rows][heads][splits][partial]; there is a counter
/// for each tile.
LLAMAC_CONSTEXPR LaunchShape attentionSplitShape(const AttentionConfig &config,
                                                 long blocks) {
  const long tiles = attentionTiles(config);
  LaunchShape shape{
      blocks, 0, attentionWarps * 32,
      attentionRingBytes(config) +
          static_cast<int>(splitQueryWords(config) * attentionWarps * 4)};
  shape.workspaceBytes =
      config.heads * config.splits * attentionPartialFloats(config) * 4;
  shape.counters = tiles;
  return shape;
}

/// The first key that the row at `position` sees.
LLAMAC_CONSTEXPR int firstKey(const AttentionConfig &config, int position) {
  return config.window && position >= config.window
             ? position + 1 - config.window
             : 0;
}

/// The first key of the first tile of the row at `position`.
LLAMAC_CONSTEXPR int firstTileKey(const AttentionConfig &config, int position) {
  return firstKey(config, position) / keyTile * keyTile;
}

/// Tiles of keys of the row at `position`.
LLAMAC_CONSTEXPR int tilesOfKeys(const AttentionConfig &config, int position) {
  return (position - firstTileKey(config, position)) / keyTile + 1;
}

/// Splits of a row with `tiles` tiles of keys. Split s has the tiles from
/// tiles * s / splits on, so that they differ by one tile at most.
LLAMAC_CONSTEXPR int splitsOf(const AttentionConfig &config, int tiles) {
  const int worth =
      (tiles * keyTile + config.minSplitTokens - 1) / config.minSplitTokens;
  return worth < config.splits ? worth : config.splits;
}

// Query, key and value

/// The products of a layer's query, key and value, which share their input and
/// their tile.
template <class Product> struct QkvConfig {
  Product query;
  Product key;
  Product value;
};

/// The blocks of the query, then the key's, then the value's.
template <class Product>
LLAMAC_CONSTEXPR LaunchShape launchShape(const QkvConfig<Product> &config) {
  LaunchShape shape = launchShape(config.query);
  const LaunchShape others[] = {launchShape(config.key),
                                launchShape(config.value)};
  for (const LaunchShape &other : others) {
    shape.gridSize += other.gridSize;
    if (other.sharedBytes > shape.sharedBytes)
      shape.sharedBytes = other.sharedBytes;
    if (other.minBlocks < shape.minBlocks)
      shape.minBlocks = other.minBlocks;
    shape.workspaceBytes += other.workspaceBytes;
    shape.counters += other.counters;
  }
  return shape;
}

// Row-wise kernels

constexpr int rowThreads = 256;
LLAMAC_CONSTEXPR LaunchShape rowwiseShape() { return {1, 1, rowThreads}; }

/// Each part of `size` of a row of `width` has a block.
LLAMAC_CONSTEXPR LaunchShape rmsNormShape(long width, long size) {
  return {width / size, 1, rowThreads};
}

/// Each head of a query, a key and a value has a warp.
LLAMAC_CONSTEXPR LaunchShape ropeAppendShape(const KvConfig &kv, long heads) {
  return {divideUp(heads + 2 * kv.kvHeads, rowThreads / 32), 1, rowThreads};
}

/// Each part of a query, of `querySize`, and of a key and a value, of
/// `keySize`, has a block.
LLAMAC_CONSTEXPR LaunchShape normRopeShape(long query, long querySize, long key,
                                           long keySize) {
  return {query / querySize + 2 * (key / keySize), 1, rowThreads};
}

struct EmbedConfig {
  WeightFormat format;
  long tokens; ///< Rows of the table.
  long width;
  bool isPart = false; ///< Whether the table is a rank's part.
};

/// Every thread has one pair of columns.
LLAMAC_CONSTEXPR LaunchShape pointwiseShape(long width) {
  return {divideUp(width, 2 * rowThreads), 1, rowThreads};
}

/// A block has a row of one rank.
LLAMAC_CONSTEXPR LaunchShape allGatherShape(int ranks) {
  return {ranks, 1, rowThreads};
}

LLAMAC_CONSTEXPR LaunchShape ropeTableShape() { return {1, 1, 64}; }

constexpr int sampleThreads = 1024;

/// At most one for each lane of the warp that merges what they found.
LLAMAC_CONSTEXPR long sampleBlocks(long width) {
  const long blocks = divideUp(width, sampleThreads);
  return blocks < 32 ? blocks : 32;
}

/// Each block has a share of a row's logits. The workspace has the first token
/// of each share, [rows][sampleBlocks][2 words]; a row has one counter.
LLAMAC_CONSTEXPR LaunchShape sampleShape(long width) {
  LaunchShape shape{sampleBlocks(width), 1, sampleThreads};
  shape.workspaceBytes = sampleBlocks(width) * 8;
  shape.counters = 1;
  return shape;
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_CONFIG_H
