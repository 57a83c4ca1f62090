//===- wgmma_config.h - Shapes of products by wgmma -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The configs of the families that use wgmma; config.h, which includes this
// file, has the others.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_WGMMA_CONFIG_H
#define LLAMAC_CODEGEN_DEVICE_WGMMA_CONFIG_H

#include "llamac/launch_shape.h"

namespace llamac::cuda {

/// A product on sm_90a, of x in bf16: wgmma, tensor copies, and blocks that
/// stay for one tile after another. The tiles are of one matrix, or of several
/// that share the input and lie apart: `parts` outputs of each, 0 for none. A
/// tile has `panels` panels of `panelOutputs` outputs: neighbours of one
/// weight, or one of each of two.
///
/// The rows of a prompt are the operand A where weights are in bf16, wgmmaRows
/// of a tile. `cluster` blocks share weights, as neighbours along the rows, or
/// where these are an odd number of tiles rows of x, along the outputs.
///
/// Else weights are the operand A, 64 outputs of a panel, and a tile has
/// `batchRows` rows. `cluster` neighbours along the outputs share rows of x.
/// Packed weights become the operand in registers.
///
/// `splits` blocks share the depth of a tile.
struct WgmmaConfig {
  WeightFormat format;
  long parts[3];
  long depth;
  int weights = 1;        ///< 1 or 2.
  int panels = 1;         ///< 1 or 2; 2 for two weights.
  int panelOutputs = 128; ///< 64 or 128.
  int stages = 4;
  int cluster = 1; ///< 1 or 2.
  int blocks = 132;
  int batchRows = 0; ///< 16 to 256, the columns of wgmma; 0: its rows.
  int splits = 1;
};

/// Two warpgroups multiply 64 rows each where rows are the operand A; else one
/// has 64 outputs. One warp of another one copies.
constexpr int wgmmaRows = 128;
constexpr int wgmmaThreads = 384;
constexpr int wgmmaMathWarps = 8;

LLAMAC_CONSTEXPR int wgmmaTileRows(const WgmmaConfig &config) {
  return config.batchRows ? config.batchRows : wgmmaRows;
}
LLAMAC_CONSTEXPR int wgmmaMathWarpsOf(const WgmmaConfig &config) {
  return config.batchRows ? config.panels / config.weights * 4 : wgmmaMathWarps;
}

/// Whether weights become the operand A in registers.
LLAMAC_CONSTEXPR bool wgmmaUnpacks(const WgmmaConfig &config) {
  return config.format != WeightFormat::BF16;
}

LLAMAC_CONSTEXPR int wgmmaProductThreads(const WgmmaConfig &config) {
  return (4 + wgmmaMathWarpsOf(config)) * 32;
}

/// Blocks that fit on a multiprocessor. Where registers suffice for two, one of
/// them copies while the other ends a tile.
LLAMAC_CONSTEXPR int wgmmaMinBlocks(const WgmmaConfig &config) {
  return wgmmaProductThreads(config) <= 256 ? 2 : 1;
}

/// Registers of the threads that copy and multiply: what ptxas gives all of
/// them at first, for a multiprocessor's 65,536, is shared anew.
constexpr int wgmmaCopyRegisters = 40;
LLAMAC_CONSTEXPR int wgmmaMathRegisters(const WgmmaConfig &config) {
  const int threads = wgmmaProductThreads(config);
  const int atFirst = 65536 / (wgmmaMinBlocks(config) * threads) / 8 * 8;
  const int own = (atFirst * threads - wgmmaCopyRegisters * 128) /
                  (wgmmaMathWarpsOf(config) * 32) / 8 * 8;
  return own < 240 ? own : 240;
}

LLAMAC_CONSTEXPR int wgmmaTileOutputs(const WgmmaConfig &config) {
  return config.panels / config.weights * config.panelOutputs;
}

/// Tiles of one block of rows, of part `part` and of all.
LLAMAC_CONSTEXPR long wgmmaTiles(const WgmmaConfig &config, int part) {
  return divideUp(config.parts[part], wgmmaTileOutputs(config));
}
LLAMAC_CONSTEXPR long wgmmaTiles(const WgmmaConfig &config) {
  return wgmmaTiles(config, 0) + wgmmaTiles(config, 1) + wgmmaTiles(config, 2);
}

LLAMAC_CONSTEXPR int wgmmaInputBytes(const WgmmaConfig &config) {
  return wgmmaTileRows(config) * productSlice * 2;
}

/// Bytes of a slice of a panel as it is copied, and as bf16: of block formats
/// the tiles of its rows, as they lie in memory.
LLAMAC_CONSTEXPR int wgmmaPanelBytes(const WgmmaConfig &config) {
  return config.panelOutputs * productSlice * 2;
}
LLAMAC_CONSTEXPR int wgmmaPackedBytes(const WgmmaConfig &config) {
  return hasScales(config.format)
             ? config.panelOutputs / tileRows * tileBytes(config.format)
             : wgmmaPanelBytes(config);
}

/// Bytes of a slice that are copied, and of a stage, whose input is swizzled in
/// units of 1,024.
LLAMAC_CONSTEXPR int wgmmaSliceBytes(const WgmmaConfig &config) {
  return wgmmaInputBytes(config) + config.panels * wgmmaPackedBytes(config);
}
LLAMAC_CONSTEXPR int wgmmaStageBytes(const WgmmaConfig &config) {
  return static_cast<int>(roundUp(wgmmaSliceBytes(config), 1024));
}

LLAMAC_CONSTEXPR int wgmmaSharedBytes(const WgmmaConfig &config) {
  return config.stages * wgmmaStageBytes(config);
}

/// Where rows are columns of wgmma: of a product that gives a norm squares, the
/// sums of 16 outputs of each row of a tile; of one that takes them, the scales
/// of the rows.
LLAMAC_CONSTEXPR int wgmmaExchangeBytes(const WgmmaConfig &config) {
  return wgmmaTileOutputs(config) / 16 * config.batchRows * 4;
}
LLAMAC_CONSTEXPR int wgmmaScalesBytes(const WgmmaConfig &config) {
  return config.batchRows * 4;
}

/// Outputs of all parts, a whole number of pairs.
LLAMAC_CONSTEXPR long wgmmaOutputs(const WgmmaConfig &config) {
  return roundUp(config.parts[0] + config.parts[1] + config.parts[2], 2);
}

LLAMAC_CONSTEXPR LaunchShape launchShape(const WgmmaConfig &config) {
  return withSplits(
      {config.blocks, 0, wgmmaProductThreads(config), wgmmaSharedBytes(config),
       wgmmaMinBlocks(config), config.cluster},
      config.splits, config.weights, wgmmaOutputs(config), wgmmaTiles(config));
}

/// Copies that bring a slice of a panel: where rows are the operand A one of
/// each block of a cluster.
LLAMAC_CONSTEXPR int wgmmaPanelBoxes(const WgmmaConfig &config) {
  return config.batchRows == 0 ? config.cluster : 1;
}

/// The map of x, bf16 [rows][depth], operand `operand`: a slice of the rows
/// that a block copies for its cluster.
LLAMAC_CONSTEXPR MapShape wgmmaInputMap(const WgmmaConfig &config,
                                        int operand) {
  return {operand,      2,
          config.depth, 0,
          productSlice, wgmmaTileRows(config) / config.cluster,
          128};
}

/// A copy of part `part` of a weight brings a slice of a panel, or of what a
/// block copies of it for its cluster. Floats are elements of two bytes; of
/// block formats a row is one of tiles, whose bytes are copied by eights.
LLAMAC_CONSTEXPR MapShape wgmmaWeightMap(const WgmmaConfig &config, int part,
                                         int operand) {
  if (hasScales(config.format))
    return {operand,
            8,
            unitBytes(config.format, config.depth) / 8,
            divideUp(config.parts[part], tileRows),
            tileBytes(config.format) / 8,
            config.panelOutputs / wgmmaPanelBoxes(config) / tileRows,
            0};
  return {operand,      2,
          config.depth, config.parts[part],
          productSlice, config.panelOutputs / wgmmaPanelBoxes(config),
          128};
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_WGMMA_CONFIG_H
