//===- stream_mma.cuh - Streams of 4- and 8-bit weights ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What stream.cuh computes, where the input split in halves (split.cuh) fits
// into shared memory. An MMA takes 16 rows of weights, and 16 rows for each
// warp would leave most warps of narrow products idle. So a block has 16 rows
// at a time, its eight warps share the depth, and the ring is the block's: a
// ninth warp copies segments of all 16 rows into a stage once the others have
// released it.
//
// The ring is filled in the prologue, before earlier launches are done. At the
// end of a unit the warps store their sums in shared memory, and one of them,
// another for each unit, adds them up in a fixed order: a result has the same
// bits on any number of multiprocessors.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_STREAM_MMA_CUH
#define LLAMAC_CODEGEN_DEVICE_STREAM_MMA_CUH

#include "llamac/ptx_sm90.cuh"
#include "llamac/split.cuh"
#include "llamac/stream_units.cuh"

#if LLAMAC_HAS_SM90

namespace llamac::cuda {

/// The products of a launch of launchShape(config) with packed weights.
template <StreamConfig config> class SplitWeightStream {
  static constexpr GemvConfig product = config.product;
  static constexpr WeightFormat format = product.format;
  static constexpr int segment = splitSegment(config);
  using Units = StreamUnits<config, segment>;
  using Unit = typename Units::Unit;
  using Warp = SplitWarp<product>;
  using Shared = SplitShared<product>;
  static constexpr int parts = Units::parts;
  static constexpr int weights = product.weights;
  static constexpr int stages = splitStages(config);
  static constexpr int stageBytes = splitStageBytes(product, segment);
  static constexpr int valueStride = splitValueStride(product, segment);
  static constexpr int scaleStride = splitScaleStride(product, segment);
  static constexpr int blockBytes = scaleBlock * 16 / chunkElements(format);
  static constexpr int blocks = product.depth / scaleBlock;
  static constexpr int segmentBlocks = segment / blockBytes;
  static constexpr int stepBlocks = splitStepBlocks(product);
  static constexpr int segmentSteps = divideUp(segmentBlocks, stepBlocks);
  /// Whether every warp has the same number of steps in every segment, and how
  /// many of them are in flight at a time.
  static constexpr bool isEven =
      Units::rowBytes % segment == 0 && segmentSteps % streamWarps == 0;
  static constexpr int unroll = 2 * product.maxRows;
  static_assert(isPackableDepth(format, product.depth));
  static_assert(streamsByMma(config) && stages >= 2);

public:
  /// Starts to fill the ring. Matrix `w` of part `p` is bases[p * weights + w].
  LLAMAC_DEVICE SplitWeightStream(const void *const (&bases)[parts * weights])
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
    units.askAhead(next.unit, gridDim.x, streamAheadBytes);
  }

  /// epilogue(row, column, acc...) gets every pair of outputs of `rows` rows
  /// once, as gemv() gives them; of several parts epilogueOfPart(epilogue,
  /// part) does.
  template <class Rows, class Epilogue>
  LLAMAC_DEVICE void run(int rows, const Rows &input,
                         const Epilogue &epilogue) {
    SplitInput<product>::template fill<splitThreads>(shared(), input, rows);
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

  /// Row `slot` of a stage: with one weight its output `slot` of the unit, with
  /// two the first 8 slots are of the first.
  static LLAMAC_DEVICE int weightOf(int slot) { return slot / Units::outputs; }

  /// Starts the copies of the block's next segment, if there is one. One lane
  /// starts all, to places that are constants: copies take uniform registers,
  /// for which lanes with places of their own would take turns.
  LLAMAC_DEVICE void fill(int stage) {
    if (next.unit >= Units::count)
      return;
    if (electLane()) {
      const Unit unit = Units::unitOf(next.unit);
      const uint32_t bytes = Units::valueBytes(next.segment);
      const uint32_t scaleBytes = Units::scaleBytes(next.segment);
      mbarrierArriveExpect(full(stage), splitRows * (bytes + scaleBytes));
#pragma unroll
      for (int slot = 0; slot < splitRows; ++slot) {
        const int w = weightOf(slot);
        const uint32_t row = unit.row(slot % Units::outputs);
        bulkCopy(stageOf(stage) + slot * valueStride,
                 units.values(unit, w, row, next.segment), bytes, full(stage));
        if constexpr (Units::scaleSegment != 0)
          bulkCopy(stageOf(stage) + splitRows * valueStride +
                       slot * scaleStride,
                   units.scales(unit, w, row, next.segment), scaleBytes,
                   full(stage));
      }
    }
    next.advance(gridDim.x);
  }

  /// What the warp's lanes multiply in step `step` of a segment that begins at
  /// block `first` of its rows. Behind the last block there is that again: the
  /// input is zero there.
  LLAMAC_DEVICE void load(typename Warp::Held (&held)[2], const Warp &warp,
                          const unsigned char *stage, const Unit &unit,
                          int first, int step) const {
    int block = step * stepBlocks;
    if constexpr (blocks % stepBlocks != 0)
      block = minOf(block, blocks - 1 - first - warp.block);
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int slot = warp.g + 8 * upper;
      Warp::load(held[upper].values,
                 stage +
                     (slot * valueStride + warp.block * blockBytes +
                      warp.part * (blockBytes / Warp::rows)) +
                     block * blockBytes);
      if constexpr (Units::scaleSegment != 0)
        held[upper].scales = PackedWeight<format>::scalesAt(
            stage + (splitRows * valueStride + slot * scaleStride +
                     warp.block * scaleBytes(format)),
            block);
      else
        held[upper].scales = PackedWeight<format>::scalesAt(
            units.scales(unit, weightOf(slot), unit.row(slot % Units::outputs),
                         0),
            first + warp.block + block);
    }
  }

  template <class Rows, class Epilogue>
  LLAMAC_DEVICE void multiply(int rows, const Rows &input,
                              const Epilogue &epilogue) {
    constexpr int pairs = Units::outputs / 2;
    const int row = laneIndex() / pairs, pair = laneIndex() % pairs;
    float scale = 1;
    if constexpr (Rows::normalises)
      if (row < product.maxRows)
        scale = input.scale(SplitInput<product>::squaresOf(shared(), row));

    RingPlace<stages> place;
    int finisher = 0;
    for (uint32_t index = blockIdx.x; index < Units::count;
         index += gridDim.x) {
      const Unit unit = Units::unitOf(index);
      Warp warp(shared());
      for (uint32_t i = 0; i < Units::segments; ++i) {
        mbarrierWait(full(place.stage), place.phase);
        const int first = i * segmentBlocks;
        auto step = [&](int at) {
          typename Warp::Held held[2];
          load(held, warp, stageOf(place.stage), unit, first, at);
          warp.multiply(held, i * segmentSteps + at);
        };
        if constexpr (isEven) {
#pragma unroll unroll
          for (int turn = 0; turn < segmentSteps / streamWarps; ++turn)
            step(turn * streamWarps + warpIndex());
        } else {
          const int steps =
              divideUp(minOf(segmentBlocks, blocks - first), stepBlocks);
          for (int at = warpIndex(); at < steps; at += streamWarps)
            step(at);
        }
        syncWarp();
        if (laneIndex() == 0)
          mbarrierArrive(empty(place.stage));
        place.advance();
      }
      // The next unit's sums go elsewhere; those of the one after come when
      // the finisher of this one has met the others again.
      auto &partials = shared().partials[finisher % 2];
      warp.storePartials(partials[warpIndex()]);
      barrierSync(1, streamWarps * 32);
      if (warpIndex() == finisher)
        finish(partials, unit, row, pair, rows, scale,
               epilogueOfPart(epilogue, unit.part));
      finisher = (finisher + 1) % streamWarps;
    }
  }

  /// Adds up what the warps have of a unit; a lane has a pair of a row.
  template <class Epilogue>
  static LLAMAC_DEVICE void
  finish(const float (&partials)[streamWarps][product.maxRows][splitRows],
         const Unit &unit, int row, int pair, int rows, float scale,
         const Epilogue &epilogue) {
    const uint32_t column = unit.first + 2 * pair;
    if (row >= rows || column >= unit.outputs)
      return;
    F32x2 totals[weights];
#pragma unroll
    for (int w = 0; w < weights; ++w) {
      F32x2 sum = {0, 0};
#pragma unroll
      for (int warp = 0; warp < streamWarps; ++warp)
        sum = sum + load2(&partials[warp][row][w * Units::outputs + 2 * pair]);
      totals[w] = sum * splat(scale);
    }
    applyEpilogue(epilogue, row, column, totals);
  }

  Units units;
  unsigned char *ring;
  typename Units::Place next{blockIdx.x}; ///< What is copied next.
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90

#endif // LLAMAC_CODEGEN_DEVICE_STREAM_MMA_CUH
