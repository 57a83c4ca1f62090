//===- stream.cuh - Products for few rows, as fast as memory ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What gemv.cuh computes, for sm_90, where bulk copies into shared memory keep
// more bytes in flight than registers could. Each warp streams the rows that it
// multiplies through a ring of its own: its first lane starts the copies, a
// barrier in shared memory counts their bytes, and once the warp has used a
// stage the first lane fills it again. Warps never wait for each other.
//
// The rings are filled in the prologue, before earlier launches are done:
// weights do not depend on them. Then the block waits for these and brings the
// input into shared memory, in the order in which lanes read it.
//
// A lane adds the same products in the same order as in gemv.cuh: both give the
// same bits, on any number of multiprocessors. Weights of 4 and 8 bits whose
// input fits into shared memory go to tensor cores and have another order
// (stream_mma.cuh). WeightStream is the one or the other.
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

/// The input in shared memory, times the gain of a norm. Four elements of chunk
/// 32 i + l, which lane l reads, lie beside those of the other lanes.
template <StreamConfig config, class Rows> struct StagedInput {
  static constexpr bool normalises = Rows::normalises;
  static constexpr int span = chunkElements(config.product.format);
  static constexpr long depth = config.product.depth;
  static constexpr long rowFloats = roundUp(depth, 32 * span);

  const float *staged;
  const float *scales; ///< Of each row.

  static LLAMAC_DEVICE long placeOf(long k) {
    constexpr int parts = span / 4;
    const long chunk = k / span, part = k % span / 4;
    return ((chunk / 32 * parts + part) * 32 + chunk % 32) * 4;
  }

  LLAMAC_DEVICE Vec<float, 4> load(int row, int k) const {
    return vectorAt<const Vec<float, 4>>(staged + row * rowFloats + placeOf(k));
  }
  template <int pairs> LLAMAC_DEVICE float scale(int row) const {
    return scales[row];
  }

  /// Fills the places of `count` rows; all threads of the block come.
  static LLAMAC_DEVICE void fill(const Rows &input, int count, float *staged,
                                 float *scales) {
    using Four = Vec<float, 4>;
    for (int row = 0; row < count; ++row) {
      const float *x = input.row(row);
      for (long k = 4 * threadIdx.x; k < depth; k += 4 * streamWarps * 32) {
        auto value = vectorAt<const Four>(x + k);
        if constexpr (normalises) {
          const auto gain = vectorAt<const Four>(input.gain + k);
#pragma unroll
          for (int i = 0; i < 4; ++i)
            value[i] *= gain[i];
        }
        vectorAt<Four>(staged + row * rowFloats + placeOf(k)) = value;
      }
      if constexpr (normalises)
        if (warpIndex() == row % streamWarps) {
          // In the order of CachedInput.
          CachedInput<Rows, 1> cached(input, count);
          cached.x[0] = x;
          for (int chunk = laneIndex(); chunk < depth / span; chunk += 32)
#pragma unroll
            for (int k = 0; k < span; k += 4)
              cached.load(0, chunk * span + k);
          const float scale = cached.template scale<1>(0);
          if (laneIndex() == 0)
            scales[row] = scale;
        }
    }
  }
};

/// The products of a launch of launchShape(config) with packed weights.
template <StreamConfig config> class LaneWeightStream {
  static constexpr GemvConfig product = config.product;
  static constexpr WeightFormat format = product.format;
  static constexpr int segment = streamSegment(config);
  using Weight = PackedWeight<format>;
  using Units = StreamUnits<config, segment>;
  using Unit = typename Units::Unit;
  using Place = typename Units::Place;
  static constexpr int weights = product.weights;
  static constexpr int outputs = product.outputsPerWarp;
  static constexpr int parts = Units::parts;
  static constexpr int scaleSegment = Units::scaleSegment;
  static constexpr int stages = streamStages(config);
  static constexpr int stageBytes = streamStageBytes(config);
  static constexpr int inputBytes = streamInputBytes(config);
  static_assert(product.warps == streamWarps && stages >= 2);
  static_assert(product.maxRows <= streamMaxRows);

public:
  /// Starts to fill the rings. Matrix `w` of part `p` is bases[p * weights +
  /// w].
  LLAMAC_DEVICE LaneWeightStream(const void *const (&bases)[parts * weights])
      : units(bases), next{blockIdx.x + gridDim.x * long(warpIndex())} {
    LLAMAC_SHARED_DYNAMIC(shared);
    rings = shared;
    if (laneIndex() == 0) {
      for (int stage = 0; stage < stages; ++stage)
        mbarrierInit(barrier(stage), 1);
      mbarrierInitFence();
      fenceProxyAsync();
    }
    syncWarp();
    for (int stage = 0; stage < stages; ++stage)
      fill(stage);
  }

  /// epilogue(row, column, acc...) gets every pair of outputs of `rows` rows
  /// once, as gemv() gives them; of several parts epilogueOfPart(epilogue,
  /// part) does.
  template <class Rows, class Epilogue>
  LLAMAC_DEVICE void run(int rows, const Rows &input,
                         const Epilogue &epilogue) {
    Place place{blockIdx.x + gridDim.x * long(warpIndex())};
    if constexpr (inputBytes != 0) {
      using Input = StagedInput<config, Rows>;
      Input::fill(input, rows, stagedInput(), rowScales());
      // Sums are made of rows, too, that a call does not have.
      for (int row = rows; row < product.maxRows; ++row) {
        for (long i = threadIdx.x; i < Input::rowFloats; i += streamWarps * 32)
          stagedInput()[row * Input::rowFloats + i] = 0;
        if (threadIdx.x == 0)
          rowScales()[row] = 0;
      }
      syncThreads();
      multiply(place, rows, Input{stagedInput(), rowScales()}, epilogue);
    } else {
      multiply(place, rows, CachedInput<Rows, product.maxRows>(input, rows),
               epilogue);
    }
  }

private:
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
  LLAMAC_DEVICE float *rowScales() const {
    return reinterpret_cast<float *>(
        rings + streamWarps * stages * (stageBytes + 8) + inputBytes);
  }

  /// Starts the copies of the next segment of the warp's rows, if there is one.
  LLAMAC_DEVICE void fill(int stage) {
    if (next.unit >= Units::count)
      return;
    if (laneIndex() == 0) {
      const Unit unit = Units::unitOf(next.unit);
      const int bytes = Units::valueBytes(next.segment);
      const int scaleBytes = Units::scaleBytes(next.segment);
      uint64_t *full = barrier(stage);
      mbarrierArriveExpect(full, streamRows(config) * (bytes + scaleBytes));
      unsigned char *to = stageOf(stage);
#pragma unroll
      for (int w = 0; w < weights; ++w) {
#pragma unroll
        for (int output = 0; output < outputs; ++output) {
          const long row = unit.row(output);
          const int slot = w * outputs + output;
          bulkCopy(to + slot * segment,
                   units.values(unit, w) + row * Units::rowBytes +
                       next.segment * long(segment),
                   bytes, full);
          if constexpr (scaleSegment != 0)
            bulkCopy(to + streamRows(config) * segment + slot * scaleSegment,
                     units.scales(unit, w) + row * Units::scaleRow +
                         next.segment * long(scaleSegment),
                     scaleBytes, full);
        }
      }
    }
    next.advance(stride());
  }

  /// Chunk `chunk` of a stage's segment, which begins at chunk `first` of its
  /// rows.
  LLAMAC_DEVICE WeightChunk<format> load(const unsigned char *stage,
                                         const Unit &unit, int w, int output,
                                         int first, int chunk) const {
    const int slot = w * outputs + output;
    WeightChunk<format> held{
        vectorAt<const Words4>(stage + slot * segment + 16 * chunk), 0};
    if constexpr (Weight::scaled && scaleSegment != 0)
      held.scales = Weight::scalesAt(stage + streamRows(config) * segment +
                                         slot * scaleSegment,
                                     chunk * Weight::span / scaleBlock);
    else if constexpr (Weight::scaled)
      held.scales =
          Weight::scalesAt(units.scales(unit, w),
                           unit.row(output) * (product.depth / scaleBlock) +
                               long(first + chunk) * Weight::span / scaleBlock);
    return held;
  }

  template <class Input, class Epilogue>
  LLAMAC_DEVICE void multiply(Place place, int rows, const Input &input,
                              const Epilogue &epilogue) {
    constexpr int chunks = Units::rowBytes / 16;
    constexpr int segmentChunks = segment / 16;
    // More sums leave no registers for a second chunk, nor does an input that
    // is loaded ahead from far away.
    constexpr int unroll =
        product.maxRows * weights * outputs <= 4 && inputBytes != 0 ? 2 : 1;
    RingPlace<stages> ring;
    while (place.unit < Units::count) {
      const Unit unit = Units::unitOf(place.unit);
      GemvWarp<product, Input> warp{input};
      do {
        mbarrierWait(barrier(ring.stage), ring.phase);
        const unsigned char *held = stageOf(ring.stage);
        const int first = place.segment * segmentChunks;
        const int count = minOf(segmentChunks, chunks - first);
#pragma unroll unroll
        for (int chunk = laneIndex(); chunk < count; chunk += 32) {
          WeightChunk<format> loaded[weights][outputs];
#pragma unroll
          for (int w = 0; w < weights; ++w)
#pragma unroll
            for (int output = 0; output < outputs; ++output)
              loaded[w][output] = load(held, unit, w, output, first, chunk);
          warp.multiply(loaded, (first + chunk) * Weight::span);
        }
        syncWarp();
        fill(ring.stage);
        ring.advance();
        place.advance(stride());
      } while (place.segment != 0);
      warp.finish(unit.first, unit.outputs, rows,
                  epilogueOfPart(epilogue, unit.part));
    }
  }

  static LLAMAC_DEVICE long stride() { return gridDim.x * long(streamWarps); }

  Units units;
  unsigned char *rings;
  Place next; ///< What is copied next.
};

template <StreamConfig config, bool byMma = streamsByMma(config)>
struct WeightStreamOf {
  using Type = LaneWeightStream<config>;
};
template <StreamConfig config> struct WeightStreamOf<config, true> {
  using Type = SplitWeightStream<config>;
};
template <StreamConfig config>
using WeightStream = typename WeightStreamOf<config>::Type;

} // namespace llamac::cuda

#else // LLAMAC_HAS_SM90

namespace llamac::cuda {

/// What a plan for sm_90a gives on an older GPU.
template <StreamConfig config> class WeightStream {
  static_assert(config.blocks == 0,
                "the plan's kernels are for sm_90a; compile it with --gpu for "
                "the GPU at hand");
};

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90

#endif // LLAMAC_CODEGEN_DEVICE_STREAM_CUH
