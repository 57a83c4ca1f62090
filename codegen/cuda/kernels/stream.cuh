//===- stream.cuh - Products for few rows, as fast as memory ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products of gemv.cuh for sm_90, where bulk copies into shared memory keep
// more bytes in flight than registers could. Each warp streams the rows that it
// multiplies through a ring of its own: one lane starts the copies, a barrier
// in shared memory counts their bytes, and once the warp has used a stage one
// lane fills it again. Warps never wait for each other.
//
// The rings are filled in the prologue, before earlier launches are done:
// weights do not depend on them. L2 is asked for what is behind. Then the block
// waits for earlier launches and brings the input into shared memory, in the
// order in which lanes read it.
//
// A lane adds the same products in the same order as in gemv.cuh, on any number
// of multiprocessors: both give the same bits, but for the sum of squares of a
// norm, which here the warps of a block share. Weights of block formats go to
// tensor cores and have another order (stream_mma.cuh). WeightStream is the one
// or the other.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_STREAM_CUH
#define LLAMAC_CODEGEN_DEVICE_STREAM_CUH

#include "llamac/gemv.cuh"
#include "llamac/ptx_sm90.cuh"
#include "llamac/stream_mma.cuh"
#include "llamac/stream_units.cuh"

#if LLAMAC_HAS_SM90

namespace llamac::cuda {

/// The input in shared memory, times the gain of a norm. Of chunks 32 i to 32 i
/// + 31, which the lanes read together, the first four elements lie one after
/// the other, then the next four.
template <StreamConfig config, class Rows> struct StagedInput {
  using Four = Vec<float, 4>;
  static constexpr int span = chunkElements(config.product.format);
  static constexpr uint32_t depth = config.product.depth;
  static constexpr uint32_t rowFloats = roundUp(depth, 32 * span);
  static constexpr uint32_t parts = span / 4; ///< Vectors of four in a chunk.
  static constexpr bool normalises = Rows::normalises;

  const float *lanes;   ///< The lane's first.
  const float *squares; ///< [rows][streamWarps], their sums over each warp.
  const Rows &rows;

  LLAMAC_DEVICE StagedInput(const float *staged, const float *squares,
                            const Rows &rows)
      : lanes(staged + placeOf(0, laneIndex(), 0)), squares(squares),
        rows(rows) {}

  static LLAMAC_DEVICE uint32_t placeOf(uint32_t turn, uint32_t lane,
                                        uint32_t part) {
    return (turn * parts + part) * 128 + lane * 4;
  }

  LLAMAC_DEVICE Four load(int row, uint32_t turn, int part) const {
    return vectorAt<const Four>(lanes + row * rowFloats +
                                placeOf(turn, 0, part));
  }
  template <int pairs> LLAMAC_DEVICE float scale(int row) const {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < streamWarps; ++warp)
      sum += squares[row * streamWarps + warp];
    return rows.scale(sum);
  }

  /// Puts a four of a row in its place, times the gain of a norm, of which its
  /// squares go to `sum`.
  static LLAMAC_DEVICE void put(float *staged, uint32_t four, Four value,
                                const Four &gain, float &sum) {
    if constexpr (normalises)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        sum = fma(value[j], value[j], sum);
        value[j] *= gain[j];
      }
    const uint32_t chunk = four / parts;
    vectorAt<Four>(staged + placeOf(chunk / 32, chunk % 32, four % parts)) =
        value;
  }

  /// Fills the places of `count` rows and with zeros those of the rows that a
  /// call does not have: sums are made of them, too. All threads of the block
  /// come. A thread has a batch of loads in flight at a time.
  static LLAMAC_DEVICE void fill(const Rows &input, int count, float *staged,
                                 float *squares) {
    constexpr int threads = streamWarps * 32, fours = depth / 4;
    constexpr int turns = divideUp(fours, threads);
    constexpr int batch = batchOfTurns(turns, normalises ? 8 : 16);
    constexpr bool isEven = fours % (threads * batch) == 0;
#pragma unroll
    for (int row = 0; row < config.product.maxRows; ++row) {
      const float *x = input.row(minOf(row, count - 1));
      const bool isRow = row < count;
      float sum = 0;
#pragma unroll 1
      for (int turn = 0; turn < turns; turn += batch) {
        const int first = turn * threads + static_cast<int>(threadIdx.x);
        Four values[batch], gains[batch];
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          // Behind the last there is that again.
          const int four = first + i * threads;
          const int at = 4 * (isEven ? four : minOf(four, fours - 1));
          values[i] = vectorAt<const Four>(x + at);
          if constexpr (normalises)
            gains[i] = vectorAt<const Four>(input.gain + at);
        }
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          const uint32_t four = first + i * threads;
          if (isEven || four < fours)
            put(staged + row * rowFloats, four, isRow ? values[i] : Four{},
                gains[i], sum);
        }
      }
      if constexpr (normalises) {
        sum = totalAcrossLanes<1>({sum});
        if (laneIndex() == 0)
          squares[row * streamWarps + warpIndex()] = sum;
      }
    }
  }
};

/// Multiplies segment `number` of a unit's rows, of `rowBytes` in segments of
/// `segment`, which lie `segment` apart at `held`; `unroll` turns of a warp are
/// made one where every lane has a chunk in all of them.
template <GemvConfig product, uint32_t rowBytes, uint32_t segment, int unroll,
          class Warp>
LLAMAC_DEVICE void multiplySegment(Warp &warp, const unsigned char *held,
                                   uint32_t number) {
  // A segment is whole turns, or the whole row.
  constexpr uint32_t segmentTurns = divideUp(segment, 32 * 16);
  constexpr uint32_t turns = divideUp(rowBytes, 32 * 16);
  constexpr bool isEven = rowBytes % segment == 0 && segment % (32 * 16) == 0;
  const uint32_t first = number * segmentTurns;
  auto take = [&](uint32_t turn) {
    WeightChunk<product.format> loaded[product.weights][product.outputsPerWarp];
#pragma unroll
    for (int w = 0; w < product.weights; ++w)
#pragma unroll
      for (int output = 0; output < product.outputsPerWarp; ++output)
        loaded[w][output] = {vectorAt<const Words4>(
            held + (w * product.outputsPerWarp + output) * segment +
            16 * (32 * turn + laneIndex()))};
    warp.multiply(loaded, first + turn);
  };
  if constexpr (isEven) {
#pragma unroll unroll
    for (uint32_t turn = 0; turn < segmentTurns; ++turn)
      take(turn);
  } else {
    const uint32_t count = minOf(segmentTurns, turns - first);
    for (uint32_t turn = 0; turn < count; ++turn)
      if (Warp::hasChunk(first + turn))
        take(turn);
  }
}

/// The products of a launch of launchShape(config) with packed weights.
template <StreamConfig config> class LaneWeightStream {
  static constexpr GemvConfig product = config.product;
  static constexpr WeightFormat format = product.format;
  static constexpr uint32_t segment = streamSegment(config);
  static constexpr uint32_t rowBytes = streamRowBytes(config);
  using Units = StreamUnits<config, divideUp(rowBytes, segment)>;
  using Unit = typename Units::Unit;
  using Place = typename Units::Place;
  static constexpr int weights = product.weights;
  static constexpr int outputs = product.outputsPerWarp;
  static constexpr int parts = Units::parts;
  static constexpr int stages = streamStages(config);
  static constexpr int stageBytes = streamStageBytes(config);
  static constexpr int inputBytes = streamInputBytes(config);
  static_assert(product.warps == streamWarps && stages >= 2);
  static_assert(product.maxRows <= streamMaxRows && segment % 16 == 0);

public:
  /// Starts to fill the rings. Matrix `w` of part `p` is bases[p * weights +
  /// w].
  LLAMAC_DEVICE LaneWeightStream(const void *const (&bases)[parts * weights])
      : units(bases), next{firstUnit()} {
    LLAMAC_SHARED_DYNAMIC(shared);
    rings = shared;
    if (electLane()) {
      for (int stage = 0; stage < stages; ++stage)
        mbarrierInit(barrier(stage), 1);
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
    if constexpr (inputBytes != 0) {
      using Input = StagedInput<config, Rows>;
      Input::fill(input, rows, stagedInput(), squares());
      syncThreads();
      multiply(rows, Input(stagedInput(), squares(), input), epilogue);
    } else {
      multiply(rows, CachedInput<product, Rows>(input, rows), epilogue);
    }
  }

private:
  static LLAMAC_DEVICE uint32_t firstUnit() {
    return blockIdx.x + gridDim.x * warpIndex();
  }
  static LLAMAC_DEVICE uint32_t stride() { return gridDim.x * streamWarps; }

  LLAMAC_DEVICE unsigned char *stageOf(int stage) const {
    return rings + (warpIndex() * stages + stage) * stageBytes;
  }
  LLAMAC_DEVICE float *stagedInput() const {
    return reinterpret_cast<float *>(rings + streamWarps * stages * stageBytes);
  }
  LLAMAC_DEVICE uint64_t *barrier(int stage) const {
    return reinterpret_cast<uint64_t *>(
               rings + streamWarps * stages * stageBytes + inputBytes) +
           warpIndex() * stages + stage;
  }
  LLAMAC_DEVICE float *squares() const {
    return reinterpret_cast<float *>(
        rings + streamWarps * stages * (stageBytes + 8) + inputBytes);
  }

  /// Where segment `index` of output `output` of weight `w` of a unit begins.
  LLAMAC_DEVICE const uint8_t *rowOf(const Unit &unit, int w, uint32_t output,
                                     uint32_t index) const {
    return units.matrixOf(unit, w) + uint64_t{unit.row(output)} * rowBytes +
           index * segment;
  }

  /// Starts the copies of the next segment of the warp's rows, if there is one.
  LLAMAC_DEVICE void fill(int stage) {
    if (next.unit >= Units::count)
      return;
    if (electLane()) {
      const Unit unit = Units::unitOf(next.unit);
      const uint32_t bytes = segmentBytesOf<rowBytes, segment>(next.segment);
      uint64_t *full = barrier(stage);
      mbarrierArriveExpect(full, streamRows(config) * bytes);
      unsigned char *to = stageOf(stage);
#pragma unroll
      for (int w = 0; w < weights; ++w)
#pragma unroll
        for (int output = 0; output < outputs; ++output)
          bulkCopy(to + (w * outputs + output) * segment,
                   rowOf(unit, w, output, next.segment), bytes, full);
    }
    next.advance(stride());
  }

  /// Asks L2 for the warp's share of what follows the ring: as much of each row
  /// as of the others, at least some of the unit of which the ring may have the
  /// first segments. A lane asks for a row; all lanes of a warp come.
  LLAMAC_DEVICE void askAhead() const {
    constexpr uint32_t rows = weights * outputs;
    constexpr uint32_t bytes = streamAheadBytes / streamWarps;
    static_assert(rows <= 32);
    const uint32_t end = maxOf(bytes / (rows * rowBytes), 1u);
    Place place = next;
#pragma unroll 1
    for (uint32_t i = 0; i < end && place.unit < Units::count; ++i) {
      if (laneIndex() < rows)
        bulkPrefetch(
            rowOf(Units::unitOf(place.unit), laneIndex() / outputs,
                  laneIndex() % outputs, place.segment),
            minOf(bytes / rows / 16 * 16, rowBytes - place.segment * segment));
      place = {place.unit + stride()};
    }
  }

  template <class Input, class Epilogue>
  LLAMAC_DEVICE void multiply(int rows, const Input &input,
                              const Epilogue &epilogue) {
    // More sums leave no registers for a second chunk, nor does an input that
    // is loaded ahead from far away.
    constexpr int unroll =
        product.maxRows * weights * outputs <= 4 && inputBytes != 0 ? 4 : 1;
    Place place{firstUnit()};
    RingPlace<stages> at;
    while (place.unit < Units::count) {
      const Unit unit = Units::unitOf(place.unit);
      using Warp = GemvWarp<product, Input>;
      Warp warp{input};
      do {
        mbarrierWait(barrier(at.stage), at.phase);
        multiplySegment<product, rowBytes, segment, unroll>(
            warp, stageOf(at.stage), place.segment);
        syncWarp();
        fill(at.stage);
        at.advance();
        place.advance(stride());
      } while (place.segment != 0);
      warp.finish(unit.first, unit.outputs, rows,
                  epilogueOfPart(epilogue, unit.part));
    }
  }

  Units units;
  unsigned char *rings;
  Place next; ///< The next place to copy to.
};

template <StreamConfig config, bool byMma = streamsByMma(config)>
struct WeightStreamOf {
  using Type = LaneWeightStream<config>;
};
template <StreamConfig config> struct WeightStreamOf<config, true> {
  using Type = HalvesWeightStream<config>;
};
template <StreamConfig config>
using WeightStream = typename WeightStreamOf<config>::Type;

} // namespace llamac::cuda

#else // LLAMAC_HAS_SM90

namespace llamac::cuda {

/// Stops the build where a plan for sm_90a is compiled for an older GPU.
template <StreamConfig config> class WeightStream {
  static_assert(config.blocks == 0,
                "the plan's kernels are for sm_90a; compile it with --gpu for "
                "the GPU at hand");
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90

#endif // LLAMAC_CODEGEN_DEVICE_STREAM_CUH
