//===- wgmma_ring.cuh - What feeds products by wgmma ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A ring of stages in shared memory, each with a slice of x and of W, the
// thread that keeps it full by tensor copies, the warpgroup that unpacks
// weights, and the order in which those that multiply go through it.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_WGMMA_RING_CUH
#define LLAMAC_CODEGEN_DEVICE_WGMMA_RING_CUH

#include "llamac/ptx_sm90a.cuh"
#include "llamac/weights.cuh"

#if LLAMAC_HAS_SM90A

namespace llamac::cuda {

/// A packed matrix, and its map (wgmmaWeightMap).
struct WgmmaWeight {
  const void *packed;
  const TensorMap *map;
};

/// One tile of one product: outputs firstOutput .. of `outputs` of a part, and
/// of the depth split `split`.
struct WgmmaTile {
  int firstRow;
  int part;
  long outputs;
  long firstOutput;
  int number; ///< Of all tiles of a launch.
  int split;
};

template <WgmmaConfig config> struct WgmmaRing {
  static constexpr bool unpacks = wgmmaUnpacks(config);
  static constexpr int slices = divideUp(config.depth, wgmmaSlice);
  static constexpr int mathWarps = wgmmaMathWarpsOf(config);

  /// The first slice of a split: scales may be of several slices together.
  static LLAMAC_DEVICE int firstSlice(int split) {
    constexpr int unit = groupTiles(config.format);
    constexpr int units = divideUp(slices, unit);
    return minOf(units * split / config.splits * unit, slices);
  }

  /// The thread's warp among those that multiply, which are the last.
  static LLAMAC_DEVICE int mathWarp() {
    return warpIndex() + mathWarps - wgmmaProductThreads(config) / 32;
  }

  unsigned char *stages; ///< And the operands behind them.
  uint64_t *full;        ///< A stage has come.
  uint64_t *empty;       ///< A stage is free.
  uint64_t *unpacked;    ///< An operand is filled.
  uint64_t *used;        ///< An operand is free.

  LLAMAC_DEVICE unsigned char *at(int stage) const {
    return stages + stage * wgmmaStageBytes(config);
  }
  LLAMAC_DEVICE unsigned char *weightsAt(int stage) const {
    return at(stage) + wgmmaInputBytes(config);
  }
  LLAMAC_DEVICE unsigned char *operandAt(int operand) const {
    return at(config.stages) + operand * wgmmaOperandBytes(config);
  }

  /// By one thread, before it copies and before a barrier of the cluster.
  LLAMAC_DEVICE void setUp() const {
    for (int stage = 0; stage < config.stages; ++stage) {
      mbarrierInit(&full[stage], 1);
      mbarrierInit(&empty[stage],
                   (mathWarps + (unpacks ? wgmmaUnpackWarps : 0)) *
                       config.cluster);
    }
    for (int operand = 0; operand < wgmmaOperands(config); ++operand) {
      mbarrierInit(&unpacked[operand], wgmmaUnpackWarps);
      mbarrierInit(&used[operand], mathWarps);
    }
    mbarrierInitFence();
  }

  /// By one lane of a warp that has read a stage: tells those who fill it.
  LLAMAC_DEVICE void release(int stage) const {
    mbarrierArrive(&empty[stage]);
    if constexpr (config.cluster > 1)
      mbarrierArriveCluster(&empty[stage], clusterRank() ^ 1);
  }

  /// By a warp whose products of a slice are done, which were of stage `stage`
  /// and, of packed weights, of operand `operand`.
  LLAMAC_DEVICE void releaseSlice(int stage, int operand) const {
    syncWarp();
    if (laneIndex() != 0)
      return;
    if constexpr (unpacks)
      mbarrierArrive(&used[operand]);
    release(stage);
  }

  /// The descriptor of 16 columns of an operand, the k-th of its slice.
  static LLAMAC_DEVICE uint64_t atStep(uint64_t operand, int k) {
    return operand + k * 32 / 16;
  }
};

/// Copies the slices of one tile after another; one thread.
template <WgmmaConfig config, class Weights> struct WgmmaLoader {
  using Ring = WgmmaRing<config>;
  static constexpr int cluster = config.cluster;

  Ring ring;
  Weights weights;
  uint32_t rank;
  bool sharesWeights; ///< Else the cluster shares x.
  RingPlace<config.stages> place = {};
  bool isFirst = true; ///< Whether the prologue has begun with the tile.

  /// Slices of the first tile whose weights the prologue copies.
  static LLAMAC_DEVICE int prologueSlices(const WgmmaTile &tile) {
    return minOf(config.stages, Ring::firstSlice(tile.split + 1) -
                                    Ring::firstSlice(tile.split));
  }
  LLAMAC_DEVICE void begin(const WgmmaTile &tile) const {
    for (int stage = 0; stage < prologueSlices(tile); ++stage)
      copyWeights(stage, tile, Ring::firstSlice(tile.split) + stage);
  }

  /// Copies `boxes` boxes of `boxRows` rows of the map and `boxBytes` bytes to
  /// `to`; where the cluster shares them, the block's own one to all blocks.
  template <int boxes, int boxRows, int boxBytes>
  LLAMAC_DEVICE void copyBoxes(bool isShared, unsigned char *to,
                               const TensorMap &map, int column, int row,
                               uint64_t *full) const {
    if (boxes > 1 && isShared) {
      tensorLoadMulticast(to + rank * boxBytes, map, column,
                          row + rank * boxRows, full, (1 << boxes) - 1);
      return;
    }
#pragma unroll
    for (int i = 0; i < boxes; ++i)
      tensorLoad(to + i * boxBytes, map, column, row + i * boxRows, full);
  }

  /// Starts a round of the free stage `stage`.
  LLAMAC_DEVICE void copyWeights(int stage, const WgmmaTile &tile,
                                 int slice) const {
    constexpr bool isPacked = hasScales(config.format);
    constexpr int unit = isPacked ? tileRows : 1;
    constexpr int boxes = wgmmaPanelBoxes(config);
    mbarrierArriveExpect(&ring.full[stage], wgmmaSliceBytes(config));
    const int column =
        isPacked ? tileOffset(config.format, slice) / 8 : slice * wgmmaSlice;
#pragma unroll
    for (int panel = 0; panel < config.panels; ++panel) {
      const bool ofTwo = config.weights == 2;
      const int row =
          tile.firstOutput + (ofTwo ? 0 : panel) * config.panelOutputs;
      copyBoxes<boxes, config.panelOutputs / unit / boxes,
                wgmmaPackedBytes(config) / boxes>(
          sharesWeights,
          ring.weightsAt(stage) + panel * wgmmaPackedBytes(config),
          *weights.of(tile.part, ofTwo ? panel : 0).map, column, row / unit,
          &ring.full[stage]);
    }
  }

  LLAMAC_DEVICE void load(const TensorMap &input, const WgmmaTile &tile) {
    const int first = Ring::firstSlice(tile.split);
    const int begun = isFirst ? first + prologueSlices(tile) : first;
    isFirst = false;
    for (int slice = first; slice < Ring::firstSlice(tile.split + 1); ++slice) {
      if (slice >= begun) {
        mbarrierWait(&ring.empty[place.stage], place.phase ^ 1);
        copyWeights(place.stage, tile, slice);
      }
      copyBoxes<cluster, wgmmaTileRows(config) / cluster,
                wgmmaInputBytes(config) / cluster>(
          !sharesWeights, ring.at(place.stage), input, slice * wgmmaSlice,
          tile.firstRow, &ring.full[place.stage]);
      place.advance();
    }
  }
};

/// Goes through the slices of one tile after another; a warpgroup that
/// multiplies. A slice is a group of products, and what it read is free when
/// the group of the slice behind it has begun and its own is done.
template <WgmmaConfig config> struct WgmmaSlices {
  using Ring = WgmmaRing<config>;

  Ring ring;
  uint64_t input;   ///< Descriptor of the first stage's x,
  uint64_t weights; ///< and of the first W.
  RingPlace<config.stages> place = {};
  RingPlace<maxOf(wgmmaOperands(config), 1)> operand = {};

  /// The warpgroup begins so many bytes behind the first of x and of W.
  LLAMAC_DEVICE WgmmaSlices(const Ring &ring, int inputBegin, int weightsBegin)
      : ring(ring), input(matrixDescriptor(ring.at(0) + inputBegin, 0, 1024,
                                           Swizzle::Bytes128)),
        weights(matrixDescriptor(
            (Ring::unpacks ? ring.operandAt(0) : ring.weightsAt(0)) +
                weightsBegin,
            0, 1024, Swizzle::Bytes128)) {}

  /// Waits for a slice; the descriptor of its W.
  LLAMAC_DEVICE uint64_t waitForSlice() const {
    mbarrierWait(&ring.full[place.stage], place.phase);
    if constexpr (!Ring::unpacks)
      return weights + place.stage * (wgmmaStageBytes(config) / 16);
    mbarrierWait(&ring.unpacked[operand.stage], operand.phase);
    return weights + operand.stage * (wgmmaOperandBytes(config) / 16);
  }

  /// Calls multiply(x, w, adds) for 16 columns after another of the tile's
  /// depth, with their descriptors, and whether there are sums to add to.
  template <class Multiply>
  LLAMAC_DEVICE void multiply(const WgmmaTile &tile, const Multiply &multiply) {
    const int first = Ring::firstSlice(tile.split);
    const int end = Ring::firstSlice(tile.split + 1);
    int lastStage = 0, lastOperand = 0;
#pragma unroll 1
    for (int slice = first; slice < end; ++slice) {
      const uint64_t w = waitForSlice();
      const uint64_t x = input + place.stage * (wgmmaStageBytes(config) / 16);
      wgmmaFence();
#pragma unroll
      for (int k = 0; k < wgmmaSlice / 16; ++k)
        multiply(Ring::atStep(x, k), Ring::atStep(w, k),
                 slice > first || k > 0);
      wgmmaCommit();
      wgmmaWait<1>();
      if (slice > first)
        ring.releaseSlice(lastStage, lastOperand);
      lastStage = place.stage;
      lastOperand = operand.stage;
      place.advance();
      operand.advance();
    }
    wgmmaWait<0>();
    ring.releaseSlice(lastStage, lastOperand);
  }
};

/// Turns packed weights into operands of bf16, as tensor copies of bf16 would
/// lay them; four warps. A thread unpacks chunks of rows: F16 as it would lie
/// in bf16, or shares of tiles, of which eight lanes write pieces of 8 bytes of
/// eight rows, which the swizzle spreads over all banks. What 256 columns have
/// in common for their scales is not in their tiles; a thread loads its own.
template <WgmmaConfig config, class Weights> struct WgmmaUnpacker {
  using Ring = WgmmaRing<config>;
  static constexpr WeightFormat format = config.format;
  using Weight = PackedWeight<format>;
  static constexpr int threads = wgmmaUnpackWarps * 32;
  static constexpr int rows = config.panels * config.panelOutputs;
  static constexpr int rowChunks = wgmmaSlice / Weight::span;
  /// Rows that the threads take together, and how many times.
  static constexpr int rowsOfTurn = threads / rowChunks;
  static constexpr int turns = rows / rowsOfTurn;
  static constexpr bool hasGroups = groupScaleBytes(format) != 0;
  static_assert(rows % rowsOfTurn == 0 && rowsOfTurn % tileRows == 0);

  Ring ring;
  Weights weights;
  int row;   ///< The thread's first one in a slice,
  int chunk; ///< and its place in all of them.
  RingPlace<config.stages> place = {};
  RingPlace<maxOf(wgmmaOperands(config), 1)> operand = {};

  LLAMAC_DEVICE WgmmaUnpacker(const Ring &ring, const Weights &weights,
                              uint32_t thread)
      : ring(ring), weights(weights), row(thread / rowChunks),
        chunk(thread % rowChunks) {}

  /// Loads what the groups of a slice have in common; rows that the matrix does
  /// not have get zero.
  LLAMAC_DEVICE void fetch(const WgmmaTile &tile, int slice,
                           uint32_t (&groups)[turns]) const {
    if constexpr (hasGroups) {
      // Each of two weights has a panel.
      constexpr int turnsOfWeight = turns / config.weights;
      constexpr long turnBytes =
          rowsOfTurn / tileRows * unitBytes(format, config.depth);
#pragma unroll
      for (int w = 0; w < config.weights; ++w) {
        const uint8_t *from =
            static_cast<const uint8_t *>(weights.of(tile.part, w).packed) +
            (tile.firstOutput + row) / tileRows *
                unitBytes(format, config.depth) +
            groupScalesOffset(format, slice);
#pragma unroll
        for (int n = 0; n < turnsOfWeight; ++n) {
          uint32_t &group = groups[w * turnsOfWeight + n];
          group = 0;
          if (tile.firstOutput + n * rowsOfTurn + row < tile.outputs)
            group = groupScaleOf<format>(from + n * turnBytes, row % tileRows);
        }
      }
    }
  }

  /// The thread's chunk of a turn whose rows begin at `from`.
  LLAMAC_DEVICE WeightChunk<format> chunkAt(const unsigned char *from,
                                            uint32_t group) const {
    if constexpr (!Weight::scaled) {
      return {
          vectorAt<const Words4>(from + swizzled<128>(row * 128 + chunk * 16))};
    } else {
      const unsigned char *tile = from + row / tileRows * tileBytes(format);
      return WeightChunk<format>::of(
          ShareValues<format>::inShared(tile, row % tileRows * 4 + chunk), tile,
          group, row % tileRows);
    }
  }

  LLAMAC_DEVICE void unpackSlice(const uint32_t (&groups)[turns]) {
    // The swizzle is the same for the rows of all turns.
    constexpr int turnBytes = Weight::scaled
                                  ? rowsOfTurn / tileRows * tileBytes(format)
                                  : rowsOfTurn * 128;
    const unsigned char *from = ring.weightsAt(place.stage);
    unsigned char *to = ring.operandAt(operand.stage);
#pragma unroll
    for (int n = 0; n < turns; ++n) {
      const WeightChunk<format> held = chunkAt(from + n * turnBytes, groups[n]);
#pragma unroll
      for (int four = 0; four < Weight::fours; ++four)
        vectorAt<Words2>(
            to + n * rowsOfTurn * 128 +
            swizzled<128>(row * 128 + columnOfFour(format, chunk, four) * 2)) =
            fourAsBf16(held, four);
    }
  }

  LLAMAC_DEVICE void unpack(const WgmmaTile &tile) {
    uint32_t groups[turns] = {};
    for (int slice = Ring::firstSlice(tile.split);
         slice < Ring::firstSlice(tile.split + 1); ++slice) {
      // While their first slice is on its way.
      if (slice % groupTiles(format) == 0)
        fetch(tile, slice, groups);
      mbarrierWait(&ring.full[place.stage], place.phase);
      mbarrierWait(&ring.used[operand.stage], operand.phase ^ 1);
      unpackSlice(groups);
      // Products read shared memory as copies do, past ordinary writes.
      fenceProxyAsync();
      syncWarp();
      if (laneIndex() == 0) {
        mbarrierArrive(&ring.unpacked[operand.stage]);
        ring.release(place.stage);
      }
      place.advance();
      operand.advance();
    }
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90A

#endif // LLAMAC_CODEGEN_DEVICE_WGMMA_RING_CUH
