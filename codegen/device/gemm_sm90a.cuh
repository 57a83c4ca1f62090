//===- gemm_sm90a.cuh - Matrix products for many rows on sm_90a -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// y = x W^T as gemm.cuh does it, on the warpgroups of sm_90a. A block goes from
// tile to tile. One thread of the first warpgroup keeps a ring of stages full
// by tensor copies; the last two warpgroups multiply 64 rows each:
//
//   x   f32, two halves of [128 rows][32] with 128-byte rows, swizzled. Lanes
//       multiply what they read by the gain, sum its squares and round it to
//       bf16 in registers: the operand A. So no launch writes x in bf16, and
//       RMSNorm is fused.
//   W   bf16, panels of [panelOutputs][64] with 128-byte rows, swizzled: the
//       operand B. Other formats are copied as they are packed, and a fourth
//       warpgroup unpacks them into a ring of operands (WgmmaUnpacker).
//
// A slice is two groups of products. While one is in flight the lanes round the
// operand of the next. An operand B is free when the groups of its slice are
// done, a stage when nothing reads it any more.
//
// The first stages' weights are copied in the prologue, before earlier launches
// are done: weights do not depend on them.
//
// The two blocks of a cluster have tiles of the same rows: each copies half of
// the rows of x to both, so a stage is free when the warps of both are done
// with it.
//
// What lies outside of x and W is zero in shared memory; it does not reach the
// epilogue.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_GEMM_SM90A_CUH
#define LLAMAC_CODEGEN_DEVICE_GEMM_SM90A_CUH

#include "llamac/kvcache.cuh"
#include "llamac/ptx_sm90a.cuh"
#include "llamac/qkv.cuh"

#if LLAMAC_HAS_SM90A

namespace llamac::cuda {

/// A packed matrix, and its map (wgmmaWeightMap).
struct WgmmaWeight {
  const void *packed;
  const TensorMap *map;
};

/// One tile of one product: outputs firstOutput .. of `outputs` of a part.
struct WgmmaTile {
  int part;
  long outputs;
  long firstOutput;
};

template <WgmmaConfig config> struct WgmmaRing {
  static constexpr bool unpacks = wgmmaUnpacks(config);
  static constexpr int slices = divideUp(config.depth, wgmmaSlice);
  static constexpr int halfBytes = wgmmaInputBytes() / 2;

  unsigned char *stages; ///< And the operands behind them.
  uint64_t *full;        ///< A stage has come.
  uint64_t *empty;       ///< A stage is free.
  uint64_t *unpacked;    ///< An operand is filled.
  uint64_t *used;        ///< An operand is free.

  LLAMAC_DEVICE unsigned char *at(int stage) const {
    return stages + stage * wgmmaStageBytes(config);
  }
  LLAMAC_DEVICE unsigned char *weightsAt(int stage) const {
    return at(stage) + wgmmaInputBytes();
  }
  LLAMAC_DEVICE unsigned char *operandAt(int operand) const {
    return at(config.stages) + operand * wgmmaOperandBytes(config);
  }

  /// By one thread, before it copies and before a barrier of the cluster.
  LLAMAC_DEVICE void setUp() const {
    for (int stage = 0; stage < config.stages; ++stage) {
      mbarrierInit(&full[stage], 1);
      mbarrierInit(&empty[stage], wgmmaMathWarps * config.cluster +
                                      (unpacks ? wgmmaUnpackWarps : 0));
    }
    for (int operand = 0; operand < wgmmaOperands(config); ++operand) {
      mbarrierInit(&unpacked[operand], wgmmaUnpackWarps);
      mbarrierInit(&used[operand], wgmmaMathWarps);
    }
    mbarrierInitFence();
  }

  /// By a warp that has read x: tells those who fill the stage.
  LLAMAC_DEVICE void release(int stage) const {
    syncWarp();
    if (laneIndex() != 0)
      return;
    mbarrierArrive(&empty[stage]);
    if constexpr (config.cluster > 1)
      mbarrierArriveCluster(&empty[stage], clusterRank() ^ 1);
  }
};

/// Copies the slices of one tile after another; one thread.
template <WgmmaConfig config, class Weights> struct WgmmaLoader {
  using Ring = WgmmaRing<config>;
  static constexpr int boxRows = wgmmaRows / config.cluster;
  /// Slices of the first tile whose weights the prologue copies.
  static constexpr int prologueSlices = minOf(config.stages, Ring::slices);

  Ring ring;
  Weights weights;
  uint32_t rank;
  RingPlace<config.stages> place = {};
  int prologueLeft = prologueSlices;

  /// Starts a round of the free stage `stage`.
  LLAMAC_DEVICE void copyWeights(int stage, const WgmmaTile &tile, int slice) {
    constexpr bool isPacked = hasScales(config.format);
    uint64_t *full = &ring.full[stage];
    mbarrierArriveExpect(full, wgmmaSliceBytes(config));
    const int column =
        isPacked ? tileOffset(config.format, slice) / 8 : slice * wgmmaSlice;
#pragma unroll
    for (int panel = 0; panel < config.panels; ++panel) {
      const bool ofTwo = config.weights == 2;
      const int row =
          tile.firstOutput + (ofTwo ? 0 : panel) * config.panelOutputs;
      tensorLoad(ring.weightsAt(stage) + panel * wgmmaPackedBytes(config),
                 *weights.of(tile.part, ofTwo ? panel : 0).map, column,
                 isPacked ? row / tileRows : row, full);
    }
  }

  LLAMAC_DEVICE void copyInput(int stage, const TensorMap &input, int firstRow,
                               int slice) {
    uint64_t *full = &ring.full[stage];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      unsigned char *part =
          ring.at(stage) + half * Ring::halfBytes + rank * boxRows * 128;
      const int column = slice * wgmmaSlice + half * wgmmaSlice / 2;
      const int row = firstRow + rank * boxRows;
      if constexpr (config.cluster > 1)
        tensorLoadMulticast(part, input, column, row, full,
                            (1 << config.cluster) - 1);
      else
        tensorLoad(part, input, column, row, full);
    }
  }

  LLAMAC_DEVICE void load(const TensorMap &input, int firstRow,
                          const WgmmaTile &tile) {
    for (int slice = 0; slice < Ring::slices; ++slice) {
      if (prologueLeft > 0) {
        --prologueLeft;
      } else {
        mbarrierWait(&ring.empty[place.stage], place.phase ^ 1);
        copyWeights(place.stage, tile, slice);
      }
      copyInput(place.stage, input, firstRow, slice);
      place.advance();
    }
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
    for (int slice = 0; slice < Ring::slices; ++slice) {
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
        mbarrierArrive(&ring.empty[place.stage]);
      }
      place.advance();
      operand.advance();
    }
  }
};

/// The 64 rows of a tile that one warpgroup multiplies.
template <WgmmaConfig config, class Rows> struct WgmmaMath {
  using Ring = WgmmaRing<config>;
  static constexpr int panels = config.panels;
  static constexpr int panelSums = config.panelOutputs / 2;

  Ring ring;
  Rows input;
  int row;   ///< The lane's first one in the tile; the other is 8 further.
  int pair;  ///< The columns that a lane has of eight: 2 * pair and the next.
  bool swap; ///< Whether the lane reads pieces 2 and 3 before 0 and 1.
  int first; ///< Where in a row of 128 bytes the lane reads first.
  uint64_t weights; ///< Descriptor of the first operand B.
  RingPlace<config.stages> place = {};
  RingPlace<maxOf(wgmmaOperands(config), 1)> operand = {};

  LLAMAC_DEVICE WgmmaMath(const Ring &ring, const Rows &input)
      : ring(ring), input(input) {
    const int lane = laneIndex();
    row =
        (warpIndex() + wgmmaMathWarps - wgmmaProductThreads(config) / 32) * 16 +
        lane / 4;
    pair = lane % 4;
    // A row's 16-byte pieces lie where the swizzle puts them: piece p of row r
    // at p ^ (r % 8). Lanes of odd rows begin two pairs of pieces later, so
    // that those of four rows, which read at one time, read all banks once.
    swap = row & 1;
    first = ((pair / 2) ^ (row % 8) ^ (swap ? 4 : 0)) * 16 + pair % 2 * 8;
    weights =
        matrixDescriptor(Ring::unpacks ? ring.operandAt(0) : ring.weightsAt(0),
                         0, 1024, Swizzle::Bytes128);
  }

  /// Whether gains are loaded while the half before theirs is multiplied: what
  /// unpacks groups of 256 columns leaves no registers for it.
  static constexpr bool gainsAhead = groupScaleBytes(config.format) == 0;

  /// The gains of the lane's share of the 32 columns that begin at `depth`, by
  /// loads that stay where they stand.
  LLAMAC_DEVICE void loadGains(int depth, F32x2 (&gains)[4]) const {
    if constexpr (Rows::normalises)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int k = depth + (i ^ (swap ? 2 : 0)) * 8 + 2 * pair;
        gains[i] = {1, 1};
        if (config.depth % wgmmaSlice == 0 || k < config.depth)
          gains[i] =
              loadReadOnly(reinterpret_cast<const F32x2 *>(input.gain + k));
      }
  }

  /// The lane's share of 32 columns of x, which lie at `half`, as operands of
  /// two products. The squares of pieces 0 and 1 have a sum, and those of 2 and
  /// 3: which of the two comes first depends on where a row lies in its tile,
  /// and their sum does not.
  LLAMAC_DEVICE void round(const unsigned char *half, const bool (&isRow)[2],
                           const F32x2 (&gains)[4], float (&squares)[2][2],
                           uint32_t (&a)[2][4]) const {
    // Four pieces of eight columns, of two rows.
    uint32_t rounded[4][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        F32x2 x = {0, 0};
        if (isRow[upper])
          x = load2(reinterpret_cast<const float *>(
              half + (row + 8 * upper) * 128 + (first ^ i * 32)));
        if constexpr (Rows::normalises) {
          squares[upper][i / 2] = dot(x, x, squares[upper][i / 2]);
          x = x * gains[i];
        }
        rounded[i][upper] = packBf16(x.x, x.y);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int upper = 0; upper < 2; ++upper)
        a[i / 2][i % 2 * 2 + upper] =
            swap ? rounded[i ^ 2][upper] : rounded[i][upper];
  }

  /// Waits for a slice; its operand B.
  LLAMAC_DEVICE uint64_t waitForSlice() const {
    mbarrierWait(&ring.full[place.stage], place.phase);
    if constexpr (!Ring::unpacks)
      return weights + place.stage * (wgmmaStageBytes(config) / 16);
    mbarrierWait(&ring.unpacked[operand.stage], operand.phase);
    return weights + operand.stage * (wgmmaOperandBytes(config) / 16);
  }

  /// How much further, in a descriptor, 16 of a slice's depth of a panel begin.
  static LLAMAC_DEVICE int stepOf(int panel, int k) {
    return (panel * wgmmaPanelBytes(config) + k * 32) / 16;
  }

  /// The products with the operand B of the slice in `which`, a stage or an
  /// operand, are done.
  LLAMAC_DEVICE void releaseWeights(int which) const {
    if constexpr (!Ring::unpacks) {
      ring.release(which);
    } else {
      syncWarp();
      if (laneIndex() == 0)
        mbarrierArrive(&ring.used[which]);
    }
  }

  template <class Epilogue>
  LLAMAC_DEVICE void multiply(long firstRow, long rows, const WgmmaTile &tile,
                              const Epilogue &epilogue) {
    const bool isRow[2] = {firstRow + row < rows, firstRow + row + 8 < rows};
    float squares[2][2] = {};
    float sums[panels][panelSums] = {};
    uint32_t a[2][2][4];
    int before = 0;
    F32x2 gains[4];
    if constexpr (gainsAhead)
      loadGains(0, gains);
    for (int slice = 0; slice < Ring::slices; ++slice) {
      const uint64_t b = waitForSlice();
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int depth = slice * wgmmaSlice + half * wgmmaSlice / 2;
        if constexpr (!gainsAhead)
          loadGains(depth, gains);
        round(ring.at(place.stage) + half * Ring::halfBytes, isRow, gains,
              squares, a[half]);
        if constexpr (gainsAhead)
          if (half == 0 || slice + 1 < Ring::slices)
            loadGains(depth + wgmmaSlice / 2, gains);
        wgmmaFence();
#pragma unroll
        for (int k = 0; k < 2; ++k)
#pragma unroll
          for (int panel = 0; panel < panels; ++panel)
            wgmmaBf16(sums[panel], a[half][k], b + stepOf(panel, 2 * half + k));
        wgmmaCommit();
        // Where only x is in the stage, it has done its part.
        if (Ring::unpacks && half == 1)
          ring.release(place.stage);
        // The group before is done: its registers are free, and if it was of
        // another slice, so is that one's operand B.
        wgmmaWait<1>();
        if (half == 0 && slice > 0)
          releaseWeights(before);
      }
      before = Ring::unpacks ? operand.stage : place.stage;
      place.advance();
      operand.advance();
    }
    wgmmaWait<0>();
    releaseWeights(before);
    finish(firstRow, isRow, squares, sums, tile, epilogue);
  }

  template <class Epilogue>
  LLAMAC_DEVICE void
  finish(long firstRow, const bool (&isRow)[2], const float (&squares)[2][2],
         const float (&sums)[panels][panelSums], const WgmmaTile &tile,
         const Epilogue &epilogue) const {
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      float scale = 1;
      if constexpr (Rows::normalises) {
        float sum = squares[upper][0] + squares[upper][1];
        sum += shuffleXor(sum, 1);
        sum += shuffleXor(sum, 2);
        scale = input.scale(sum);
      }
      if (!isRow[upper])
        continue;
      const long at = firstRow + row + 8 * upper;
      // The extras of a batch of pairs are on their way before its first result
      // is stored. What unpacks weights leaves registers for few.
      constexpr int outputPanels = config.weights == 2 ? 1 : panels;
      constexpr int pairs = config.panelOutputs / 8;
      constexpr int batch = Ring::unpacks ? 4 : 16 / config.weights;
      static_assert(pairs % batch == 0 || pairs < batch);
#pragma unroll
      for (int panel = 0; panel < outputPanels; ++panel)
#pragma unroll
        for (int first = 0; first < pairs; first += batch) {
          auto columnOf = [&](int i) {
            return tile.firstOutput + panel * config.panelOutputs +
                   8 * (first + i) + 2 * pair;
          };
          ExtrasOf<Epilogue> extras[batch];
#pragma unroll
          for (int i = 0; i < minOf(batch, pairs); ++i)
            if (columnOf(i) < tile.outputs)
              extras[i] = extrasOf(epilogue, at, columnOf(i));
#pragma unroll
          for (int i = 0; i < minOf(batch, pairs); ++i) {
            F32x2 acc[config.weights];
#pragma unroll
            for (int w = 0; w < config.weights; ++w)
              acc[w] = F32x2{sums[panel + w][4 * (first + i) + 2 * upper],
                             sums[panel + w][4 * (first + i) + 2 * upper + 1]} *
                       splat(scale);
            if (columnOf(i) < tile.outputs)
              applyEpilogue(epilogue, at, columnOf(i), acc, extras[i]);
          }
        }
    }
  }
};

/// The products of a launch of launchShape(config) for `rows` rows.
template <WgmmaConfig config> class WgmmaProduct {
  using Ring = WgmmaRing<config>;
  static constexpr int parts = config.parts[2] ? 3 : config.parts[1] ? 2 : 1;
  static_assert(config.weights == 1 || config.panels == 2);
  static_assert(isPackableDepth(config.format, config.depth));

  struct Weights {
    WgmmaWeight all[parts * config.weights];

    /// By selections: an index would take the array to local memory.
    LLAMAC_DEVICE WgmmaWeight of(int part, int w) const {
      WgmmaWeight found = all[0];
#pragma unroll
      for (int i = 1; i < parts * config.weights; ++i)
        if (part * config.weights + w == i)
          found = all[i];
      return found;
    }
  };
  using Loader = WgmmaLoader<config, Weights>;

public:
  /// Starts to copy weights: matrix `w` of part `p` is given[p * weights + w].
  LLAMAC_DEVICE
  WgmmaProduct(int rows, const WgmmaWeight (&given)[parts * config.weights])
      : rows(rows) {
#pragma unroll
    for (int i = 0; i < parts * config.weights; ++i)
      weights.all[i] = given[i];
    LLAMAC_SHARED_DYNAMIC(shared);
    LLAMAC_SHARED(full, uint64_t[config.stages]);
    LLAMAC_SHARED(empty, uint64_t[config.stages]);
    LLAMAC_SHARED(unpacked, uint64_t[maxOf(wgmmaOperands(config), 1)]);
    LLAMAC_SHARED(used, uint64_t[maxOf(wgmmaOperands(config), 1)]);
    ring = {shared, full, empty, unpacked, used};
    if constexpr (config.cluster > 1)
      rank = clusterRank();
    if (threadIdx.x == 0) {
      ring.setUp();
      Loader loader{ring, weights, rank};
      if (firstWork() < work())
        for (int slice = 0; slice < Loader::prologueSlices; ++slice)
          loader.copyWeights(slice, tileOf(firstWork()), slice);
    }
    syncThreads();
    if constexpr (config.cluster > 1) {
      clusterArrive();
      clusterWait();
    }
  }

  /// epilogue(row, column, acc...) gets every pair of outputs once; of several
  /// parts epilogueOfPart(epilogue, part) does. `inputMap` is that of
  /// wgmmaInputMap.
  template <class Rows, class Epilogue>
  LLAMAC_DEVICE void run(const Rows &input, const TensorMap &inputMap,
                         const Epilogue &epilogue) const {
    // What ptxas gives a thread at first, for all together to share.
    constexpr bool unpacks = Ring::unpacks;
    if (warpIndex() < 4) {
      registersGive<40>();
      if (threadIdx.x == 0) {
        Loader loader{ring, weights, rank};
        eachTile([&](int firstRow, const WgmmaTile &tile) {
          loader.load(inputMap, firstRow, tile);
        });
      }
    } else if (unpacks && warpIndex() < 4 + wgmmaUnpackWarps) {
      if constexpr (unpacks) {
        registersGive<72>();
        WgmmaUnpacker<config, Weights> unpacker(ring, weights,
                                                threadIdx.x - 128);
        eachTile([&](int, const WgmmaTile &tile) { unpacker.unpack(tile); });
      }
    } else {
      registersTake<unpacks ? 200 : 232>();
      WgmmaMath<config, Rows> math(ring, input);
      eachTile([&](int firstRow, const WgmmaTile &tile) {
        math.multiply(firstRow, rows, tile,
                      epilogueOfPart(epilogue, tile.part));
      });
    }
    // The other block may still be told that a stage is free.
    if constexpr (config.cluster > 1) {
      clusterArrive();
      clusterWait();
    }
  }

private:
  /// Tiles are partitioned among clusters. Blocks of rows go first, so that a
  /// panel of W is read by all at a time.
  LLAMAC_DEVICE int rowBlocks() const { return ceilDiv(rows, wgmmaRows); }
  LLAMAC_DEVICE int work() const {
    return rowBlocks() *
           static_cast<int>(divideUp(wgmmaTiles(config), config.cluster));
  }
  LLAMAC_DEVICE int firstWork() const { return blockIdx.x / config.cluster; }

  /// The block's tile of the cluster's work number `i`; behind the last tile,
  /// one past the outputs.
  LLAMAC_DEVICE WgmmaTile tileOf(int i) const {
    constexpr long outputs = wgmmaTileOutputs(config);
    const int tile = i / rowBlocks() * config.cluster + rank;
    if constexpr (parts > 1) {
      constexpr int second = wgmmaTiles(config, 0);
      constexpr int third = second + wgmmaTiles(config, 1);
      if (parts > 2 && tile >= third)
        return {2, config.parts[2], (tile - third) * outputs};
      if (tile >= second)
        return {1, config.parts[1], (tile - second) * outputs};
    }
    return {0, config.parts[0], tile * outputs};
  }

  template <class Visit> LLAMAC_DEVICE void eachTile(const Visit &visit) const {
    const int step = gridDim.x / config.cluster;
    for (int i = firstWork(); i < work(); i += step)
      visit(i % rowBlocks() * wgmmaRows, tileOf(i));
  }

  int rows;
  Weights weights;
  Ring ring;
  uint32_t rank = 0;
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90A

#endif // LLAMAC_CODEGEN_DEVICE_GEMM_SM90A_CUH
