//===- resident_config.h - Shapes of a step in one launch -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compile-time parameters of resident.cuh and its launch: config.h has
// those of the other kernels.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_RESIDENT_CONFIG_H
#define LLAMAC_CODEGEN_DEVICE_RESIDENT_CONFIG_H

#include "llamac/config.h"

namespace llamac::cuda {

/// The most products of a layer and those ahead of and behind the layers.
constexpr int residentProducts = 8;
constexpr int residentThreads = streamWarps * 32;

/// A product of a resident step. Its matrices are where the launch's table of
/// addresses says at `matrices`; of a layer's product that is for layer 0.
struct ResidentProduct {
  StreamConfig stream;
  int matrices[3] = {};
};

/// A step of one row in one launch of at most `blocks` blocks.
struct ResidentConfig {
  ResidentProduct products[residentProducts] = {};
  int count = 0; ///< The number of products.
  /// Products 0 to layerEnd - 1 are those of a layer, of which there are
  /// `layers`; a layer has `layerPointers` addresses in the table.
  int layerEnd = 0;
  int layers = 1;
  int layerPointers = 0;
  int headSize = 0;
  int tables = 1;        ///< Cos/sin caches, of which each layer uses one.
  long wordsBefore = 0;  ///< Words of values ahead of the layers,
  long layerWords = 0;   ///< of a layer,
  long partialWords = 0; ///< and of the partial results of its attention.
  /// Shared memory that the input of a product, attention and sampling take in
  /// turns.
  int areaBytes = 0;
  int blocks = 132;
  int stageBytes = 8192; ///< Bytes of a stage of a ring.
  int stages = 3;
};

/// Whether weights go to tensor cores, in tiles that the warps of a block share
/// (stream_mma.cuh): the block has one ring, which they fill in turns. Else
/// each warp has a ring of its own (stream.cuh).
LLAMAC_CONSTEXPR bool residentByMma(const ResidentConfig &config) {
  return streamsByMma(config.products[0].stream);
}
/// Rows of weights, or of tiles, of a unit.
LLAMAC_CONSTEXPR int residentUnitRows(const ResidentConfig &config) {
  return residentByMma(config) ? 1 : 2;
}
LLAMAC_CONSTEXPR int residentRings(const ResidentConfig &config) {
  return residentByMma(config) ? 1 : streamWarps;
}

/// Words of the values of one step, and of these with all partial results.
LLAMAC_CONSTEXPR long residentValueWords(const ResidentConfig &config) {
  return roundUp(config.wordsBefore + config.layers * config.layerWords, 4);
}
LLAMAC_CONSTEXPR long residentSetWords(const ResidentConfig &config) {
  return residentValueWords(config) + config.layers * config.partialWords;
}

/// Behind two sets of words: a flag and two candidates of two words of each
/// block, two tokens, their flag, and a counter.
LLAMAC_CONSTEXPR long residentCounters(const ResidentConfig &config) {
  return 2 * residentSetWords(config) + 5 * config.blocks + 4;
}

/// The copies of a product's weights follow it. It is kept in shared memory, so
/// that one piece of code copies those of all products.
struct ResidentSource {
  unsigned units;    ///< Units of all parts,
  unsigned second;   ///< of the parts ahead of the second,
  unsigned third;    ///< and of those ahead of the third.
  unsigned rowBytes; ///< Bytes of a row of weights, or of tiles,
  unsigned segment;  ///< and of its share of a stage.
  unsigned segments; ///< Segments of a row.
  unsigned weights;  ///< 1 or 2.
  int matrices[3];   ///< Copied from ResidentProduct.
  int layerPointers; ///< 0 of a product that is not of a layer.
  unsigned unused;
};

/// A block keeps this in shared memory.
template <ResidentConfig config> struct alignas(128) ResidentShared {
  static constexpr int rings = residentRings(config);
  unsigned char stages[rings][config.stages][config.stageBytes];
  unsigned char area[config.areaBytes];
  unsigned long full[rings][config.stages];
  unsigned long empty[config.stages]; ///< Barriers of the block's ring.
  ResidentSource sources[residentProducts];
  float cosSin[config.tables][config.headSize];
  float squares[streamWarps];
  unsigned firsts[streamWarps][2];
};

LLAMAC_CONSTEXPR int residentSharedBytes(const ResidentConfig &config) {
  return static_cast<int>(roundUp(
      config.stages * (residentRings(config) * (config.stageBytes + 8) + 8) +
          config.areaBytes + residentProducts * 48 +
          config.tables * config.headSize * 4 + streamWarps * 12,
      128));
}

/// `config` with as many stages as fit into `bytes`.
LLAMAC_CONSTEXPR ResidentConfig withStages(ResidentConfig config, int bytes) {
  config.stages = 0;
  const int rest = bytes - residentSharedBytes(config) - 128;
  config.stages = rest / (residentRings(config) * (config.stageBytes + 8) + 8);
  return config;
}

/// Bytes of each row of the weights of `stream`, or of each row of tiles, in a
/// stage.
LLAMAC_CONSTEXPR int residentSegment(const ResidentConfig &config,
                                     const StreamConfig &stream) {
  if (streamsByMma(stream))
    return halvesStageGroups(stream.product, config.stageBytes) *
           groupBytes(stream.product.format);
  const long row = streamRowBytes(stream);
  const int segment = config.stageBytes / streamRows(stream);
  return static_cast<int>(row < segment ? row : segment);
}

/// Bytes of a stage with weights of `stream`.
LLAMAC_CONSTEXPR int residentStageBytes(const ResidentConfig &config,
                                        const StreamConfig &stream) {
  return residentUnitRows(config) * stream.product.weights *
         residentSegment(config, stream);
}

LLAMAC_CONSTEXPR LaunchShape launchShape(const ResidentConfig &config) {
  LaunchShape shape{config.blocks, 0, residentThreads,
                    residentSharedBytes(config)};
  shape.counters = residentCounters(config);
  return shape;
}

/// Bytes of the area that the input of `stream` takes.
LLAMAC_CONSTEXPR long residentInputBytes(const StreamConfig &stream) {
  return streamsByMma(stream) ? halvesSharedBytes(stream.product)
                              : roundUp(stream.product.depth, 32 * 8) * 4;
}

/// Bytes of the area that attention takes: tiles, queries of a tile with the
/// row's own key and value, and the partial results of a head.
LLAMAC_CONSTEXPR long residentTileBytes(const AttentionConfig &config) {
  return attentionRingBytes(config) +
         attentionWarps * splitQueryWords(config) * 4;
}
LLAMAC_CONSTEXPR long residentQueryFloats(const AttentionConfig &config) {
  const long group = attentionGroup(config);
  return ((group < warpVectors ? group : warpVectors) + 2) * config.kv.headSize;
}
LLAMAC_CONSTEXPR long residentAttentionBytes(const AttentionConfig &config) {
  return residentTileBytes(config) + residentQueryFloats(config) * 4 +
         config.splits * attentionPartialFloats(config) * 4;
}

/// Words of the partial results of a split, [heads][partial], and of all.
LLAMAC_CONSTEXPR long residentSplitWords(const AttentionConfig &config) {
  return config.heads * attentionPartialFloats(config);
}
LLAMAC_CONSTEXPR long residentPartialWords(const AttentionConfig &config) {
  return config.splits * residentSplitWords(config);
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_RESIDENT_CONFIG_H
