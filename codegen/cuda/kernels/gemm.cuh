//===- gemm.cuh - Matrix products for many rows -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// y^T = W x^T on tensor cores, m16n8k16 in bf16 with f32 sums: outputs are the
// rows of an MMA and the rows of x its columns, so that a batch multiplies no
// padding. A block makes one tile, or a split of its depth. It walks the depth
// in slices of 64 through a ring of stages in shared memory, which cp.async
// fills while earlier stages are multiplied:
//
//   x   bf16, from who made it; columns in the order of lanes
//       (#kernel.lane_order) where a weight of the launch is packed
//   W   as it is packed. A lane unpacks its share of a tile to bf16 in
//       registers, where it is the operand; floats are loaded as matrices
//
// A warp has two operands of W for each of x. Rows of x and W past the end, and
// depth past the end, are zero in shared memory, so ragged tiles need no other
// care than at the epilogue.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_GEMM_CUH
#define LLAMAC_CODEGEN_DEVICE_GEMM_CUH

#include "llamac/results.cuh"
#include "llamac/weights.cuh"

namespace llamac::cuda {

/// Fills a ring with slices of a tile of x and W. A thread copies the same
/// places of every slice, which lie at constants from its first ones.
template <GemmConfig config> class GemmLoader {
  static constexpr int weights = config.weights;
  static constexpr int threads = gemmThreads(config);
  static constexpr WeightFormat format = config.format;
  static constexpr int outputs = gemmTileOutputs(config);

  // Rows of floats: a thread has one of the eight pieces of 16 bytes of a row,
  // of every `rowStep`-th row.
  static constexpr int rowStep = threads / 8;
  static_assert(rowStep % 8 == 0 && config.tileRows % 16 == 0);

  // Tiles: `sharers` threads have one together.
  static constexpr int tiles = weights * outputs / tileRows;
  static constexpr int sharers = threads / tiles;
  static constexpr int pieces = tileBytes(format) / 16;
  static_assert(threads % tiles == 0);

public:
  LLAMAC_DEVICE
  GemmLoader(const void *input, const void *const (&matrices)[weights],
             const ProductTile &tile, int rows, unsigned char *stages)
      : stages(stages), column(threadIdx.x % 8 * 8),
        rowTo(swizzled<128>(threadIdx.x * 16)) {
    const int row = threadIdx.x / 8;
    inputRows = rows - tile.firstRow - row;
    from = static_cast<const uint8_t *>(input) +
           (long(tile.firstRow + row) * config.depth + column) * 2;
    if constexpr (hasScales(format)) {
      const int own = threadIdx.x / sharers * tileRows;
      const long output = tile.firstOutput + own % outputs;
      weightRows = static_cast<int>(tile.outputs - output);
      const void *matrix = matrices[0];
      if (own >= outputs)
        matrix = matrices[weights - 1];
      weightsFrom[0] = static_cast<const uint8_t *>(matrix) +
                       output / tileRows * unitBytes(format, config.depth) +
                       threadIdx.x % sharers * 16;
      tileTo = gemmInputBytes(config) +
               threadIdx.x / sharers * tileBytes(format) +
               threadIdx.x % sharers * 16;
    } else {
      weightRows = static_cast<int>(tile.outputs - tile.firstOutput) - row;
#pragma unroll
      for (int w = 0; w < weights; ++w)
        weightsFrom[w] = static_cast<const uint8_t *>(matrices[w]) +
                         ((tile.firstOutput + row) * config.depth + column) * 2;
    }
  }

  /// Starts the copies of slice `slice` to stage `stage`; they are one group,
  /// empty where the slice `isPast` the end.
  LLAMAC_DEVICE void start(int stage, int slice, bool isPast) const {
    if (!isPast) {
      unsigned char *to = stages + stage * gemmStageBytes(config);
      copyRows<config.tileRows>(to + rowTo, from, slice, inputRows);
      if constexpr (hasScales(format))
        copyTiles(to + tileTo, slice);
      else
#pragma unroll
        for (int w = 0; w < weights; ++w)
          copyRows<outputs>(to + gemmInputBytes(config) +
                                w * outputs * productSlice * 2 + rowTo,
                            weightsFrom[w], slice, weightRows);
    }
    cpAsyncCommit();
  }

private:
  /// Copies the slice of every rowStep-th of `count` rows of which `rows` are
  /// there; zeros are in the place of the others, and behind the depth.
  template <int count>
  LLAMAC_DEVICE void copyRows(unsigned char *to, const uint8_t *rowsFrom,
                              int slice, int rows) const {
    const uint8_t *sliceFrom = rowsFrom + slice * (productSlice * 2);
    const bool inside = config.depth % productSlice == 0 ||
                        slice * productSlice + column < config.depth;
#pragma unroll
    for (int row = 0; row < count; row += rowStep) {
      if (count % rowStep != 0 && row + int(threadIdx.x / 8) >= count)
        break;
      cpAsync<16>(to + row * 128, sliceFrom + row * config.depth * 2,
                  inside && row < rows ? 16 : 0);
    }
  }

  LLAMAC_DEVICE void copyTiles(unsigned char *to, int slice) const {
    const uint8_t *sliceFrom = weightsFrom[0] + tileOffset(format, slice);
#pragma unroll
    for (int piece = 0; piece < pieces; piece += sharers) {
      if (piece + sharers > pieces &&
          piece + int(threadIdx.x % sharers) >= pieces)
        break;
      cpAsync<16>(to + piece * 16, sliceFrom + piece * 16,
                  weightRows > 0 ? 16 : 0);
    }
  }

  unsigned char *stages;
  int column;          ///< The thread's column of a slice, in rows of floats.
  int rowTo;           ///< Its first place in them.
  int tileTo = 0;      ///< Its first place in the tiles of a stage.
  int inputRows;       ///< Rows of x that there are from its first one on.
  int weightRows;      ///< Outputs, likewise.
  const uint8_t *from; ///< Its first piece of x.
  const uint8_t *weightsFrom[weights]; ///< And of W.
};

/// A slice of 16 outputs in shared memory: words(k, a) gives columns 16 k .. as
/// an operand.
template <GemmConfig config, bool = hasScales(config.format)>
struct GemmOperand {
  static constexpr WeightFormat format = config.format;
  WeightChunk<format> chunks[2]; ///< Rows g and g + 8.

  LLAMAC_DEVICE void load(const unsigned char *weights, int output,
                          const GroupScales<format> &groups) {
#pragma unroll
    for (int upper = 0; upper < 2; ++upper)
      chunks[upper] = chunkOfLane(
          weights + output / tileRows * tileBytes(format), groups, upper);
  }
  LLAMAC_DEVICE void words(int k, uint32_t (&a)[4]) const {
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const Words2 four = fourAsBf16(chunks[upper], k);
      a[upper] = four[0];
      a[2 + upper] = four[1];
    }
  }
};
template <GemmConfig config> struct GemmOperand<config, false> {
  const unsigned char *rows;
  int first;

  LLAMAC_DEVICE void load(const unsigned char *weights, int output,
                          const GroupScales<config.format> &) {
    rows = weights;
    first = output;
  }
  LLAMAC_DEVICE void words(int k, uint32_t (&a)[4]) const {
    const int lane = laneIndex();
    if constexpr (config.input == RowFormat::LaneBF16) {
      // Columns as a share has them.
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        const Words2 four = vectorAt<const Words2>(
            rows + swizzled<128>((first + lane / 4 + 8 * upper) * 128 + k * 32 +
                                 lane % 4 * 8));
        a[upper] = four[0];
        a[2 + upper] = four[1];
      }
    } else {
      ldmatrix<4>(a, rows + swizzled<128>((first + lane % 16) * 128 + k * 32 +
                                          lane / 16 * 16));
    }
    if constexpr (config.format == WeightFormat::F16)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[i] = packBf16(lowHalfToFloat(a[i]), highHalfToFloat(a[i]));
  }
};

/// The part of a tile that one warp multiplies: two operands of 16 outputs, one
/// of each weight where there are two, by all of its rows.
template <GemmConfig config> struct GemmMath {
  static constexpr int weights = config.weights;
  static constexpr int splits = config.splits;
  static constexpr WeightFormat format = config.format;
  static constexpr int operands = gemmWarpOutputs / 16;
  static constexpr int columns = gemmWarpRows(config) / 8; ///< Times eight.
  static constexpr int threads = gemmThreads(config);
  static constexpr int tileRows = config.tileRows;
  static constexpr int tileOutputs = gemmTileOutputs(config);
  static constexpr bool rowsAreColumns = true;
  static_assert(gemmWarpRows(config) % 16 == 0 && operands == 2);

  /// Pairs of outputs that a lane has of each weight.
  static constexpr int pairs = columns * 2 * operands / weights;
  static constexpr int batch = 8 / weights;

  const ProductPart &part;
  unsigned char *stages;
  int output; ///< The lane's first pair in a tile.
  int row;    ///< Its row.
  float sums[operands][columns][4] = {};

  LLAMAC_DEVICE GemmMath(const ProductPart &part, unsigned char *stages)
      : part(part), stages(stages) {
    const int g = laneIndex() / 4, t = laneIndex() % 4;
    output = warpOutput() + (g & ~1);
    row = warpRow() + 2 * t + g % 2;
  }

  static LLAMAC_DEVICE int warpOutput() {
    return warpIndex() % config.warpsAlongOutputs * gemmWarpOutputs / weights;
  }
  static LLAMAC_DEVICE int warpRow() {
    return warpIndex() / config.warpsAlongOutputs * gemmWarpRows(config);
  }

  /// The first output of operand `i` in what a stage has of weights.
  static LLAMAC_DEVICE int outputOf(int i) {
    return warpOutput() + (weights == 1 ? 16 : gemmTileOutputs(config)) * i;
  }

  // ProductResults

  static LLAMAC_DEVICE constexpr int rowStep(int i) {
    return i / 2 % columns * 8;
  }
  static LLAMAC_DEVICE constexpr int outputStep(int i) {
    return i % 2 * 8 + i / 2 / columns * 16;
  }
  LLAMAC_DEVICE F32x2 sumOf(int w, int i) const {
    return pairOfColumns(
        &sums[weights == 1 ? i / 2 / columns : w][i / 2 % columns][i % 2 * 2]);
  }
  LLAMAC_DEVICE long allOutputs() const { return part.allOutputs; }
  LLAMAC_DEVICE long before(const ProductTile &) const { return part.before; }
  LLAMAC_DEVICE bool isLast(uint32_t *counter) const {
    return arrivesLast(counter, splits);
  }
  static LLAMAC_DEVICE void sync() { syncThreads(); }
  static LLAMAC_DEVICE int thread() { return threadIdx.x; }
  /// All slices are multiplied then.
  LLAMAC_DEVICE float *exchange() const {
    static_assert(tileOutputs / 16 * tileRows * 4 <=
                  config.stages * gemmStageBytes(config));
    return reinterpret_cast<float *>(stages);
  }

  /// Adds the products of the slice in a stage. `groups` are those of its two
  /// operands.
  LLAMAC_DEVICE void multiply(const unsigned char *inputs,
                              const unsigned char *stageWeights,
                              const GroupScales<format> (&groups)[operands]) {
    // Matrices of ldmatrix: rows 0-7 at k and k + 8, then 8-15; as swizzled()
    // has their rows of 128 bytes.
    const int lane = laneIndex();
    const int half = lane / 8 % 2, turn = lane % 8 * 16;
    const unsigned char *first =
        inputs + (warpRow() + lane / 16 * 8 + lane % 8) * 128;
    GemmOperand<config> operand[operands];
#pragma unroll
    for (int i = 0; i < operands; ++i)
      operand[i].load(stageWeights, outputOf(i), groups[i]);
#pragma unroll
    for (int k = 0; k < productSlice / 16; ++k) {
      uint32_t a[operands][4];
#pragma unroll
      for (int i = 0; i < operands; ++i)
        operand[i].words(k, a[i]);
#pragma unroll
      for (int n = 0; n < columns; n += 2) {
        uint32_t b[4];
        ldmatrix<4>(b, first + n * 8 * 128 + (k * 32 + half * 16 ^ turn));
#pragma unroll
        for (int i = 0; i < operands; ++i) {
          mmaBf16(sums[i][n], a[i], {b[0], b[1]});
          mmaBf16(sums[i][n + 1], a[i], {b[2], b[3]});
        }
      }
    }
  }
};

/// The block's place in a launch: blocks that have the same weights run
/// together, so that these are read from memory once.
template <GemmConfig> LLAMAC_DEVICE ProductPlace placeOfBlock() {
  const uint32_t place = blockIdx.y * gridDim.x + blockIdx.x;
  return {place / gridDim.y, static_cast<int>(place % gridDim.y)};
}

/// Block `place` of part `part`, a product with packed matrices `weights`: what
/// gemm() does in one block, also part of a launch that has several products
/// (qkv.cuh).
template <GemmConfig config, class Input, class Epilogue, class Norm>
LLAMAC_DEVICE void
productBlock(const ProductPart &part, const ProductPlace &place, int rows,
             const Input *input, const void *const (&weights)[config.weights],
             const Epilogue &epilogue, const ProductSplits &splits,
             const Norm &norm) {
  static_assert(isPackableDepth(config.format, config.depth));
  LLAMAC_SHARED_DYNAMIC(stages);
  const int number = static_cast<int>(place.block / config.splits);
  const ProductTile tile{
      .firstRow = place.rowTile * config.tileRows,
      .part = 0,
      .outputs = part.outputs,
      .firstOutput = long(number) * gemmTileOutputs(config),
      .number = place.rowTile * part.allTiles + part.tilesBefore + number,
      .split = static_cast<int>(place.block % config.splits)};
  const GemmLoader<config> loader(input, weights, tile, rows, stages);

  using Math = GemmMath<config>;
  Math math(part, stages);
  const int first =
      firstSliceOf(config.format, config.depth, config.splits, tile.split);
  const int end =
      firstSliceOf(config.format, config.depth, config.splits, tile.split + 1);
  GroupScales<config.format> groups[Math::operands];
  auto eachGroup = [&](const auto &visit) {
#pragma unroll
    for (int i = 0; i < Math::operands; ++i)
      visit(groups[i],
            static_cast<const uint8_t *>(weights[config.weights == 1 ? 0 : i]),
            tile.firstOutput + math.warpOutput() +
                (config.weights == 1 ? 16 * i : 0));
  };
  eachGroup([&](auto &group, const uint8_t *matrix, long output) {
    group.begin(matrix, tile.outputs, config.depth, output, first);
  });
#pragma unroll
  for (int i = 0; i < config.stages - 1; ++i)
    loader.start(i, first + i, first + i >= end);
  const float *const scales = scalesOf(norm, math, tile.firstRow, rows);
  int stage = 0, next = config.stages - 1;
#pragma unroll 1
  for (int slice = first; slice < end; ++slice) {
    // This slice has come, for all threads; and all are through with the one
    // before, whose stage the next copies take.
    cpAsyncWait<config.stages - 2>();
    syncThreads();
    const int ahead = slice + config.stages - 1;
    loader.start(next, ahead, ahead >= end);
    next = stage;
    eachGroup([&](auto &group, const uint8_t *matrix, long output) {
      group.advance(matrix, tile.outputs, config.depth, output, slice, end);
    });
    const unsigned char *inputs = stages + stage * gemmStageBytes(config);
    math.multiply(inputs, inputs + gemmInputBytes(config), groups);
    stage = stage + 1 == config.stages ? 0 : stage + 1;
  }
  ProductResults<Math, Norm::isThere>(math, rows, tile, scales)
      .give(epilogue, splits, [&](int w, int i) { return math.sumOf(w, i); });
}

/// The products of `rows` rows of `input`, [rows][depth] in config.input, with
/// packed weights: epilogue(row, column, acc...) gets every pair of outputs
/// once; that of the last of an odd number is of no meaning. A launch of
/// launchShape(config).
template <GemmConfig config, class Input, class Epilogue, class Norm = NoNorm>
LLAMAC_DEVICE void
gemm(int rows, const Input *input, const void *const (&weights)[config.weights],
     const Epilogue &epilogue, const ProductSplits &splits = {},
     const Norm &norm = {}) {
  productBlock<config>({config.outputs, gemmOutputs(config), 0,
                        static_cast<int>(gemmTiles(config)), 0},
                       placeOfBlock<config>(), rows, input, weights, epilogue,
                       splits, norm);
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_GEMM_CUH
