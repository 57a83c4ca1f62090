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
// by tensor copies; the last two warpgroups multiply 64 rows each. Both
// operands come from shared memory, rows of 128 bytes, swizzled:
//
//   x   bf16 [128 rows][64], the operand A. Who makes x rounds and normalises
//       it, once for all blocks.
//   W   bf16, panels of [panelOutputs][64] one behind the other: the operand B
//       of one product for all of them. Other formats are copied as they are
//       packed, and a fourth warpgroup unpacks them into a ring of operands
//       (WgmmaUnpacker).
//
// A slice is a group of products, and what it read is free when the group of
// the slice behind it has begun and its own is done.
//
// The first stages' weights are copied in the prologue, before earlier launches
// are done: weights do not depend on them.
//
// The two blocks of a cluster share what is larger, weights, if there is an
// even number of tiles along the rows, else x: each copies half of it to both,
// so a stage is free when both are done with it.
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
  int firstRow;
  int part;
  long outputs;
  long firstOutput;
};

template <WgmmaConfig config> struct WgmmaRing {
  static constexpr bool unpacks = wgmmaUnpacks(config);
  static constexpr int slices = divideUp(config.depth, wgmmaSlice);

  unsigned char *stages; ///< And the operands behind them.
  uint64_t *full;        ///< A stage has come.
  uint64_t *empty;       ///< A stage is free.
  uint64_t *unpacked;    ///< An operand is filled.
  uint64_t *used;        ///< An operand is free.

  LLAMAC_DEVICE unsigned char *at(int stage) const {
    return stages + stage * wgmmaStageBytes(config);
  }
  LLAMAC_DEVICE unsigned char *weightsAt(int stage) const {
    return at(stage) + wgmmaInputBytes;
  }
  LLAMAC_DEVICE unsigned char *operandAt(int operand) const {
    return at(config.stages) + operand * wgmmaOperandBytes(config);
  }

  /// By one thread, before it copies and before a barrier of the cluster.
  LLAMAC_DEVICE void setUp() const {
    for (int stage = 0; stage < config.stages; ++stage) {
      mbarrierInit(&full[stage], 1);
      mbarrierInit(&empty[stage],
                   (wgmmaMathWarps + (unpacks ? wgmmaUnpackWarps : 0)) *
                       config.cluster);
    }
    for (int operand = 0; operand < wgmmaOperands(config); ++operand) {
      mbarrierInit(&unpacked[operand], wgmmaUnpackWarps);
      mbarrierInit(&used[operand], wgmmaMathWarps);
    }
    mbarrierInitFence();
  }

  /// By one lane of a warp that has read a stage: tells those who fill it.
  LLAMAC_DEVICE void release(int stage) const {
    mbarrierArrive(&empty[stage]);
    if constexpr (config.cluster > 1)
      mbarrierArriveCluster(&empty[stage], clusterRank() ^ 1);
  }
};

/// Copies the slices of one tile after another; one thread.
template <WgmmaConfig config, class Weights> struct WgmmaLoader {
  using Ring = WgmmaRing<config>;
  static constexpr int cluster = config.cluster;
  /// Slices of the first tile whose weights the prologue copies.
  static constexpr int prologueSlices = minOf(config.stages, Ring::slices);

  Ring ring;
  Weights weights;
  uint32_t rank;
  bool sharesWeights; ///< Else the cluster shares x.
  RingPlace<config.stages> place = {};
  int prologueLeft = prologueSlices;

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
    for (int slice = 0; slice < Ring::slices; ++slice) {
      if (prologueLeft > 0) {
        --prologueLeft;
      } else {
        mbarrierWait(&ring.empty[place.stage], place.phase ^ 1);
        copyWeights(place.stage, tile, slice);
      }
      copyBoxes<cluster, wgmmaRows / cluster, wgmmaInputBytes / cluster>(
          !sharesWeights, ring.at(place.stage), input, slice * wgmmaSlice,
          tile.firstRow, &ring.full[place.stage]);
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
        ring.release(place.stage);
      }
      place.advance();
      operand.advance();
    }
  }
};

/// The 64 rows of a tile that one warpgroup multiplies.
template <WgmmaConfig config> struct WgmmaMath {
  using Ring = WgmmaRing<config>;
  static constexpr int panelSums = config.panelOutputs / 2;
  /// The panels go by one product, or where a fourth warpgroup leaves ptxas 128
  /// registers for each thread at first, which is too few for one of 256
  /// outputs, by one each.
  static constexpr int products = Ring::unpacks ? config.panels : 1;
  static constexpr int productSums = config.panels * panelSums / products;

  Ring ring;
  int row;        ///< The lane's first one in the tile; the other is 8 further.
  int pair;       ///< The columns that it has of eight: 2 * pair and the next.
  uint64_t input; ///< Descriptor of the first stage's operand A,
  uint64_t weights; ///< and of the first operand B.
  RingPlace<config.stages> place = {};
  RingPlace<maxOf(wgmmaOperands(config), 1)> operand = {};

  LLAMAC_DEVICE explicit WgmmaMath(const Ring &ring) : ring(ring) {
    const int warp =
        warpIndex() + wgmmaMathWarps - wgmmaProductThreads(config) / 32;
    row = warp * 16 + laneIndex() / 4;
    pair = laneIndex() % 4;
    input = matrixDescriptor(ring.at(0) + warp / 4 * 64 * 128, 0, 1024,
                             Swizzle::Bytes128);
    weights =
        matrixDescriptor(Ring::unpacks ? ring.operandAt(0) : ring.weightsAt(0),
                         0, 1024, Swizzle::Bytes128);
  }

  /// Waits for a slice; its operand B.
  LLAMAC_DEVICE uint64_t waitForSlice() const {
    mbarrierWait(&ring.full[place.stage], place.phase);
    if constexpr (!Ring::unpacks)
      return weights + place.stage * (wgmmaStageBytes(config) / 16);
    mbarrierWait(&ring.unpacked[operand.stage], operand.phase);
    return weights + operand.stage * (wgmmaOperandBytes(config) / 16);
  }

  /// The descriptor of 16 columns of an operand, the k-th of its slice.
  static LLAMAC_DEVICE uint64_t atStep(uint64_t operand, int k) {
    return operand + k * 32 / 16;
  }

  /// The products of a slice are done, which were of stage `stage` and, of
  /// packed weights, of operand `used`.
  LLAMAC_DEVICE void release(int stage, int used) const {
    syncWarp();
    if (laneIndex() != 0)
      return;
    if constexpr (Ring::unpacks)
      mbarrierArrive(&ring.used[used]);
    ring.release(stage);
  }

  template <class Epilogue>
  LLAMAC_DEVICE void multiply(int rows, const WgmmaTile &tile,
                              const Epilogue &epilogue) {
    float sums[products][productSums];
    int lastStage = 0, lastOperand = 0;
    for (int slice = 0; slice < Ring::slices; ++slice) {
      const uint64_t b = waitForSlice();
      const uint64_t a = input + place.stage * (wgmmaStageBytes(config) / 16);
      wgmmaFence();
#pragma unroll
      for (int k = 0; k < wgmmaSlice / 16; ++k)
#pragma unroll
        for (int i = 0; i < products; ++i)
          wgmmaBf16(sums[i], atStep(a, k),
                    atStep(b, k) + i * (wgmmaPanelBytes(config) / 16),
                    slice > 0 || k > 0);
      wgmmaCommit();
      wgmmaWait<1>();
      if (slice > 0)
        release(lastStage, lastOperand);
      lastStage = place.stage;
      lastOperand = operand.stage;
      place.advance();
      operand.advance();
    }
    wgmmaWait<0>();
    release(lastStage, lastOperand);
    finish(rows, sums, tile, epilogue);
  }

  template <class Epilogue>
  LLAMAC_DEVICE void
  finish(int rows, const float (&sums)[products][productSums],
         const WgmmaTile &tile, const Epilogue &epilogue) const {
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const long at = tile.firstRow + row + 8 * upper;
      if (at >= rows)
        continue;
      // The extras of a batch of pairs are on their way before its first result
      // is stored. What unpacks weights leaves registers for few.
      constexpr int outputPanels = config.panels / config.weights;
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
            for (int w = 0; w < config.weights; ++w) {
              const int number =
                  (panel + w) * panelSums + 4 * (first + i) + 2 * upper;
              const float *sum =
                  &sums[number / productSums][number % productSums];
              acc[w] = {sum[0], sum[1]};
            }
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
    if (threadIdx.x == 0)
      ring.setUp();
    syncThreads();
    if constexpr (config.cluster > 1) {
      clusterArrive();
      clusterWait();
    }
    if (threadIdx.x == 0 && firstWork() < work())
      for (int slice = 0; slice < Loader::prologueSlices; ++slice)
        loader().copyWeights(slice, tileOf(firstWork()), slice);
  }

  /// epilogue(row, column, acc...) gets every pair of outputs once; of several
  /// parts epilogueOfPart(epilogue, part) does. `input` is wgmmaInputMap's.
  template <class Epilogue>
  LLAMAC_DEVICE void run(const TensorMap &input,
                         const Epilogue &epilogue) const {
    // What ptxas gives a thread at first, for all together to share.
    constexpr bool unpacks = Ring::unpacks;
    if (warpIndex() < 4) {
      registersGive<40>();
      if (threadIdx.x == 0) {
        Loader loads = loader();
        eachTile([&](const WgmmaTile &tile) { loads.load(input, tile); });
      }
    } else if (unpacks && warpIndex() < 4 + wgmmaUnpackWarps) {
      if constexpr (unpacks) {
        registersGive<72>();
        WgmmaUnpacker<config, Weights> unpacker(ring, weights,
                                                threadIdx.x - 128);
        eachTile([&](const WgmmaTile &tile) { unpacker.unpack(tile); });
      }
    } else {
      registersTake<unpacks ? 200 : 232>();
      WgmmaMath<config> math(ring);
      eachTile([&](const WgmmaTile &tile) {
        math.multiply(rows, tile, epilogueOfPart(epilogue, tile.part));
      });
    }
    // The other block may still be told that a stage is free.
    if constexpr (config.cluster > 1) {
      clusterArrive();
      clusterWait();
    }
  }

private:
  /// Tiles along the rows, of a launch and of what one cluster after another
  /// has: those that share weights have neighbours.
  LLAMAC_DEVICE int rowTiles() const { return ceilDiv(rows, wgmmaRows); }
  LLAMAC_DEVICE bool sharesWeights() const {
    return wgmmaPanelBoxes(config) > 1 && rowTiles() % config.cluster == 0;
  }
  LLAMAC_DEVICE int rowSteps() const {
    return sharesWeights() ? rowTiles() / config.cluster : rowTiles();
  }

  LLAMAC_DEVICE Loader loader() const {
    return {ring, weights, rank, sharesWeights()};
  }

  /// Tiles are partitioned among clusters. Those along the rows go first, so
  /// that a panel of W is read by all at a time.
  LLAMAC_DEVICE int work() const {
    constexpr long tiles = wgmmaTiles(config);
    return rowSteps() * static_cast<int>(sharesWeights()
                                             ? tiles
                                             : divideUp(tiles, config.cluster));
  }
  LLAMAC_DEVICE int firstWork() const { return blockIdx.x / config.cluster; }

  /// The block's tile of the cluster's work number `i`; behind the last tile,
  /// one past the outputs.
  LLAMAC_DEVICE WgmmaTile tileOf(int i) const {
    constexpr long outputs = wgmmaTileOutputs(config);
    auto ofCluster = [&](bool isShared, int step) {
      return isShared ? step * config.cluster + static_cast<int>(rank) : step;
    };
    const int firstRow = ofCluster(sharesWeights(), i % rowSteps()) * wgmmaRows;
    const int tile = ofCluster(!sharesWeights(), i / rowSteps());
    if constexpr (parts > 1) {
      constexpr int second = wgmmaTiles(config, 0);
      constexpr int third = second + wgmmaTiles(config, 1);
      if (parts > 2 && tile >= third)
        return {firstRow, 2, config.parts[2], (tile - third) * outputs};
      if (tile >= second)
        return {firstRow, 1, config.parts[1], (tile - second) * outputs};
    }
    return {firstRow, 0, config.parts[0], tile * outputs};
  }

  template <class Visit> LLAMAC_DEVICE void eachTile(const Visit &visit) const {
    const int step = gridDim.x / config.cluster;
    for (int i = firstWork(); i < work(); i += step)
      visit(tileOf(i));
  }

  int rows;
  Weights weights;
  Ring ring;
  uint32_t rank = 0;
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90A

#endif // LLAMAC_CODEGEN_DEVICE_GEMM_SM90A_CUH
