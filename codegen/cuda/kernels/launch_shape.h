//===- launch_shape.h - What a launch on a GPU is ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_LAUNCH_SHAPE_H
#define LLAMAC_CODEGEN_DEVICE_LAUNCH_SHAPE_H

#include "llamac/TileLayout.h"

namespace llamac::cuda {

/// Geometry of a launch: gridDim.x is `gridSize`, gridDim.y is 1 or, with a row
/// block, ceil(rows / rowBlock); a block has `threads` threads and
/// `sharedBytes` of dynamic shared memory. `minBlocks` of them are to fit into
/// the registers of a multiprocessor: the bound that ptxas is given, lest it
/// spill to make room for more. `cluster` consecutive blocks along x are a
/// cluster.
///
/// Blocks that work together do so in `workspaceBytes` bytes of global memory
/// and by `counters` words, for each row of the launch: words that are 0 before
/// a launch and after it.
struct LaunchShape {
  long gridSize;
  long rowBlock;
  int threads;
  int sharedBytes = 0;
  int minBlocks = 1;
  int cluster = 1;
  long workspaceBytes = 0;
  long counters = 0;
};

/// `shape` with what it takes that `splits` blocks share the depth of each of
/// `tiles` tiles along the outputs: a workspace for their sums, f32
/// [rows][splits][weights][outputs] with a whole number of pairs of outputs,
/// and a counter for each tile. As it is without splits.
LLAMAC_CONSTEXPR LaunchShape withSplits(LaunchShape shape, int splits,
                                        int weights, long outputs, long tiles) {
  if (splits > 1) {
    shape.workspaceBytes = splits * weights * outputs * 4;
    shape.counters = tiles;
  }
  return shape;
}

LLAMAC_CONSTEXPR long divideUp(long value, long unit) {
  return (value + unit - 1) / unit;
}

/// Products on tensor cores walk the depth in slices of 64 columns, those of a
/// tile of packed weights: 128 bytes of bf16.
constexpr int productSlice = tileColumns;

/// The most splits of a depth that have a slice each: those of a group of
/// columns that have a scale in common stay together.
LLAMAC_CONSTEXPR int mostSplits(WeightFormat format, long depth) {
  return static_cast<int>(
      divideUp(divideUp(depth, productSlice), groupTiles(format)));
}

/// The first slice of split `split` of `splits` of a depth.
LLAMAC_CONSTEXPR int firstSliceOf(WeightFormat format, long depth, int splits,
                                  int split) {
  const int slices = static_cast<int>(divideUp(depth, productSlice));
  const int unit = groupTiles(format);
  const int first = mostSplits(format, depth) * split / splits * unit;
  return first < slices ? first : slices;
}

/// Columns of a row whose squares are summed for a norm together: those of four
/// operands of an MMA.
constexpr int squareColumns = 64;

/// How many of `turns` loads a lane starts before it uses the first: at most
/// `most`, in batches of one size as far as that goes.
LLAMAC_CONSTEXPR long batchOfTurns(long turns, long most) {
  return divideUp(turns, divideUp(turns, most));
}

/// A tensor map that a launch has: of operand `operand`, rows of `columns`
/// elements, copied by boxes; `rows` 0 stands for all that the operand has.
struct MapShape {
  int operand;
  int elementBytes;
  long columns;
  long rows;
  int boxColumns;
  int boxRows;
  int swizzleBytes;
};

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_LAUNCH_SHAPE_H
