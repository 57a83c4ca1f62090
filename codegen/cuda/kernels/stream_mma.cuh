//===- stream_mma.cuh - Streams of 4- and 8-bit weights ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products of stream.cuh with weights of block formats and an input whose
// values are the sums of two halves (halves.cuh). An MMA takes 16 rows of
// weights, and 16 rows for each warp would leave most warps of narrow products
// idle. So a block has a row of tiles at a time, of two weights one of each,
// its eight warps share the depth, and the ring is the block's: a ninth warp
// copies the tiles of a segment, which lie one after another, into a stage once
// the others have released it.
//
// The ring is filled in the prologue, before earlier launches are done. At the
// end of a unit the warps store their sums in shared memory, and one of them,
// another for each unit, adds them up in a fixed order: a result has the same
// bits on any number of multiprocessors.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_STREAM_MMA_CUH
#define LLAMAC_CODEGEN_DEVICE_STREAM_MMA_CUH

#include "llamac/halves.cuh"
#include "llamac/ptx_sm90.cuh"
#include "llamac/stream_units.cuh"

#if LLAMAC_HAS_SM90

namespace llamac::cuda {

/// The eight warps of a block multiply a row of tiles, or one of each of two
/// weights, which comes in segments of `stageGroups` groups.
template <GemvConfig product, int stageGroups> struct HalvesRow {
  static constexpr WeightFormat format = product.format;
  static constexpr int groups = groupsOf(format, product.depth);
  static constexpr int segments = divideUp(groups, stageGroups);
  using Warp = HalvesWarp<product>;
  using Shared = HalvesShared<product>;
  static constexpr int weights = product.weights;
  /// Bytes of a segment of a row of tiles, and of the row.
  static constexpr int segment = stageGroups * groupBytes(format);
  static constexpr int rowBytes = unitBytes(format, product.depth);
  static constexpr int stepTiles = Warp::stepTiles;
  static constexpr int tiles = divideUp(product.depth, tileColumns);
  static constexpr int segmentTiles = stageGroups * groupTiles(format);
  static constexpr int segmentSteps = divideUp(segmentTiles, stepTiles);
  /// Whether every warp has the same number of steps in every segment, and how
  /// many of them are in flight at a time.
  static constexpr bool isEven = groups % stageGroups == 0 &&
                                 segmentTiles % stepTiles == 0 &&
                                 segmentSteps % streamWarps == 0;
  static constexpr int unroll = 2 * product.maxRows / weights;
  static_assert(isPackableDepth(format, product.depth));
  static_assert(halvesInputFits(product));
  static_assert(segments == 1 || segmentTiles % stepTiles == 0);

  /// Multiplies the warp's share of segment `number`, which lies at `stage`.
  static LLAMAC_DEVICE void multiply(Warp &warp, const unsigned char *stage,
                                     int number) {
    const int first = number * segmentTiles;
    if constexpr (isEven) {
#pragma unroll unroll
      for (int turn = 0; turn < segmentSteps / streamWarps; ++turn)
        step(warp, stage, first, turn * streamWarps + warpIndex());
    } else {
      // The warps take turns, from one segment to the next.
      const int steps = divideUp(minOf(segmentTiles, tiles - first), stepTiles);
      const int before = number * segmentSteps;
      for (int at =
               (warpIndex() + streamWarps - before % streamWarps) % streamWarps;
           at < steps; at += streamWarps)
        step(warp, stage, first, at);
    }
  }

  /// A lane gets this pair of outputs of a row of finish().
  static LLAMAC_DEVICE int rowOfLane() { return laneIndex() / (tileRows / 2); }
  static LLAMAC_DEVICE uint32_t columnOfLane(uint32_t first) {
    return first + laneIndex() % (tileRows / 2) * 2;
  }

  /// Ends a unit: adds up the warps' sums of outputs `first` to `end` - 1 of
  /// `rows` rows, by warp `finisher`, which the next one follows. A lane gives
  /// its pair, times `scale`, to the epilogue, with what extras(row, column)
  /// gives, which may have loaded it before.
  template <class Epilogue, class Extras>
  static LLAMAC_DEVICE void
  finish(const Warp &warp, Shared &shared, int &finisher, uint32_t first,
         uint32_t end, int rows, float scale, const Epilogue &epilogue,
         const Extras &extras) {
    // The next unit's sums go elsewhere; those of the one after come when
    // the finisher of this one has met the others again.
    auto &partials = shared.partials[finisher % 2];
    warp.storePartials(partials[warpIndex()]);
    barrierSync(1, streamWarps * 32);
    const bool finishes = warpIndex() == finisher;
    finisher = (finisher + 1) % streamWarps;
    const int row = rowOfLane();
    const uint32_t column = columnOfLane(first);
    if (!finishes || row >= rows || column >= end)
      return;
    F32x2 totals[weights];
#pragma unroll
    for (int w = 0; w < weights; ++w) {
      F32x2 sum = {0, 0};
#pragma unroll
      for (int warp = 0; warp < streamWarps; ++warp)
        sum = sum + load2(&partials[warp][w][row][column - first]);
      totals[w] = sum * splat(scale);
    }
    applyEpilogue(epilogue, row, column, totals, extras(row, column));
  }

private:
  /// Multiplies step `at` of a stage, whose first tile is tile `first` of its
  /// rows. Behind the last tile there is that again: the input is zero there.
  static LLAMAC_DEVICE void step(Warp &warp, const unsigned char *stage,
                                 int first, int at) {
    constexpr int perGroup = groupTiles(format);
    static_assert(perGroup == 1 || perGroup % stepTiles == 0);
    const int tile = at * stepTiles;
    const bool isLast = tiles % stepTiles != 0 && first + tile + 1 == tiles;
    warp.template multiply<segment>(stage + tileOffset(format, tile),
                                    stage + groupScalesOffset(format, tile),
                                    isLast          ? 0
                                    : perGroup == 1 ? groupBytes(format)
                                                    : tileBytes(format),
                                    first / stepTiles + at);
  }
};

/// The products of a launch of launchShape(config) with packed weights.
template <StreamConfig config> class HalvesWeightStream {
  static constexpr GemvConfig product = config.product;
  using Row = HalvesRow<product, halvesStageGroups(config)>;
  using Units = StreamUnits<config, Row::segments>;
  using Unit = typename Units::Unit;
  using Shared = typename Row::Shared;
  static constexpr int parts = Units::parts;
  static constexpr int weights = product.weights;
  static constexpr int stages = halvesStages(config);
  static constexpr int stageBytes = halvesStageBytes(config);
  static constexpr int segment = Row::segment, rowBytes = Row::rowBytes;
  static_assert(stages >= 2);

public:
  /// Starts to fill the ring. Matrix `w` of part `p` is bases[p * weights + w].
  LLAMAC_DEVICE HalvesWeightStream(const void *const (&bases)[parts * weights])
      : units(bases) {
    LLAMAC_SHARED_DYNAMIC(bytes);
    ring = bytes;
    if (!copies())
      return;
    if (electLane()) {
      for (int stage = 0; stage < stages; ++stage) {
        mbarrierInit(full(stage), 1);
        mbarrierInit(empty(stage), streamWarps);
      }
      mbarrierInitFence();
    }
    syncWarp();
#pragma unroll 1
    for (int stage = 0; stage < stages; ++stage)
      fill(stage);
    askAhead();
  }

  /// epilogue(row, column, acc...) gets every pair of outputs of `rows` rows
  /// once, as gemv() gives them; of several parts epilogueOfPart(epilogue,
  /// part) does.
  template <class Rows, class Epilogue>
  LLAMAC_DEVICE void run(int rows, const Rows &input,
                         const Epilogue &epilogue) {
    if (!copies())
      HalvedInput<product>::fill(shared(), input, rows);
    syncThreads();
    if (!copies()) {
      multiply(rows, input, epilogue);
      return;
    }
    RingPlace<stages> place;
    while (next.unit < Units::count) {
      mbarrierWait(empty(place.stage), place.phase);
      fill(place.stage);
      place.advance();
    }
  }

private:
  static LLAMAC_DEVICE bool copies() { return warpIndex() == streamWarps; }

  LLAMAC_DEVICE unsigned char *stageOf(int stage) const {
    return ring + stage * stageBytes;
  }
  LLAMAC_DEVICE Shared &shared() const {
    return *reinterpret_cast<Shared *>(ring + stages * stageBytes);
  }
  LLAMAC_DEVICE uint64_t *full(int stage) const {
    return reinterpret_cast<uint64_t *>(ring + stages * stageBytes +
                                        sizeof(Shared)) +
           stage;
  }
  LLAMAC_DEVICE uint64_t *empty(int stage) const {
    return full(stages + stage);
  }

  /// Where the row of tiles of weight `w` of a unit begins.
  LLAMAC_DEVICE const uint8_t *rowOf(const Unit &unit, int w) const {
    return units.matrixOf(unit, w) + uint64_t{unit.first / tileRows} * rowBytes;
  }

  /// Starts the copies of the block's next segment, if there is one.
  LLAMAC_DEVICE void fill(int stage) {
    if (next.unit >= Units::count)
      return;
    if (electLane()) {
      const Unit unit = Units::unitOf(next.unit);
      const uint32_t bytes = segmentBytesOf<rowBytes, segment>(next.segment);
      mbarrierArriveExpect(full(stage), weights * bytes);
#pragma unroll
      for (int w = 0; w < weights; ++w)
        bulkCopy(stageOf(stage) + w * segment,
                 rowOf(unit, w) + next.segment * segment, bytes, full(stage));
    }
    next.advance(gridDim.x);
  }

  /// Asks L2 for what follows the ring: the rows of tiles of the next units, or
  /// the next part of one, of which the ring may have the first. A lane asks
  /// for a row.
  LLAMAC_DEVICE void askAhead() const {
    const uint32_t end = maxOf(streamAheadBytes / (weights * rowBytes), 1);
    const uint32_t index = next.unit + laneIndex() / weights * gridDim.x;
    const uint32_t begun =
        laneIndex() < weights ? next.segment * uint32_t{segment} : 0;
    if (laneIndex() < minOf(end, 32u / weights) * weights &&
        index < Units::count)
      bulkPrefetch(
          rowOf(Units::unitOf(index), laneIndex() % weights) + begun,
          minOf<uint32_t>(streamAheadBytes / weights, rowBytes - begun));
  }

  template <class Rows, class Epilogue>
  LLAMAC_DEVICE void multiply(int rows, const Rows &input,
                              const Epilogue &epilogue) {
    float scale = 1;
    if constexpr (Rows::normalises)
      if (const int row = Row::rowOfLane(); row < product.maxRows)
        scale = input.scale(HalvedInput<product>::squaresOf(shared(), row));

    RingPlace<stages> place;
    int finisher = 0;
    for (uint32_t index = blockIdx.x; index < Units::count;
         index += gridDim.x) {
      const Unit unit = Units::unitOf(index);
      typename Row::Warp warp(shared());
      for (uint32_t i = 0; i < Units::segments; ++i) {
        mbarrierWait(full(place.stage), place.phase);
        Row::multiply(warp, stageOf(place.stage), i);
        syncWarp();
        if (laneIndex() == 0)
          mbarrierArrive(empty(place.stage));
        place.advance();
      }
      const auto own = epilogueOfPart(epilogue, unit.part);
      Row::finish(
          warp, shared(), finisher, unit.first, unit.outputs, rows, scale, own,
          [&](long row, long column) { return extrasOf(own, row, column); });
    }
  }

  Units units;
  unsigned char *ring;
  typename Units::Place next{blockIdx.x}; ///< The next place to copy to.
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90

#endif // LLAMAC_CODEGEN_DEVICE_STREAM_MMA_CUH
