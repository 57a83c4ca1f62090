//===- stream_units.cuh - What a stream of weights goes through -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The outputs of a stream's parts, partitioned into units, and the segments in
// which the rows of a unit come, for stream.cuh and stream_mma.cuh.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_STREAM_UNITS_CUH
#define LLAMAC_CODEGEN_DEVICE_STREAM_UNITS_CUH

#include "llamac/weights.cuh"

namespace llamac::cuda {

template <class Epilogue>
LLAMAC_DEVICE Epilogue epilogueOfPart(const Epilogue &epilogue, int part) {
  return epilogue;
}

/// The matrices of a stream, whose rows come in segments of `segmentBytes`
/// bytes of values.
template <StreamConfig config, int segmentBytes> struct StreamUnits {
  static constexpr GemvConfig product = config.product;
  static constexpr int weights = product.weights;
  static constexpr int outputs = streamUnitOutputs(config);
  static constexpr int parts = config.parts[2] ? 3 : config.parts[1] ? 2 : 1;
  static constexpr long rowBytes = valueRowBytes(product.format, product.depth);
  static constexpr int segments = (rowBytes + segmentBytes - 1) / segmentBytes;
  static constexpr int scaleSegment = scaleSegmentOf(product, segmentBytes);
  static constexpr long scaleRow = scaleRowBytes(product.format, product.depth);
  static constexpr long count =
      streamUnits(config, 0) + streamUnits(config, 1) + streamUnits(config, 2);
  static_assert(segmentBytes % 16 == 0 && scaleSegment % 16 == 0);

  /// The rows of a unit: outputs first, first + 1, ... of a part.
  struct Unit {
    int part;
    long outputs;
    long first;

    /// Behind the last output there is the last output, again.
    LLAMAC_DEVICE long row(int output) const {
      return minOf(first + output, outputs - 1);
    }
  };

  /// A segment of a unit's rows; `stride` units on is the next unit.
  struct Place {
    long unit;
    int segment = 0;

    LLAMAC_DEVICE void advance(long stride) {
      if (++segment == segments) {
        segment = 0;
        unit += stride;
      }
    }
  };

  const uint8_t *matrix[parts * weights];

  /// Matrix `w` of part `p` is bases[p * weights + w].
  LLAMAC_DEVICE StreamUnits(const void *const (&bases)[parts * weights]) {
#pragma unroll
    for (int i = 0; i < parts * weights; ++i)
      matrix[i] = static_cast<const uint8_t *>(bases[i]);
  }

  static LLAMAC_DEVICE Unit unitOf(long unit) {
    if constexpr (parts > 1) {
      constexpr long second = streamUnits(config, 0);
      constexpr long third = second + streamUnits(config, 1);
      if (unit >= third)
        return {2, config.parts[2], (unit - third) * outputs};
      if (unit >= second)
        return {1, config.parts[1], (unit - second) * outputs};
    }
    return {0, config.parts[0], unit * outputs};
  }

  LLAMAC_DEVICE const uint8_t *values(const Unit &unit, int w) const {
    // By selections: an index would put the array in local memory.
    const int index = unit.part * weights + w;
    const uint8_t *chosen = matrix[0];
#pragma unroll
    for (int i = 1; i < parts * weights; ++i)
      chosen = i == index ? matrix[i] : chosen;
    return chosen;
  }
  LLAMAC_DEVICE const uint8_t *scales(const Unit &unit, int w) const {
    return values(unit, w) +
           scalesOffset(product.format, unit.outputs, product.depth);
  }

  static LLAMAC_DEVICE int valueBytes(int index) {
    return minOf(long(segmentBytes), rowBytes - index * long(segmentBytes));
  }
  static LLAMAC_DEVICE int scaleBytes(int index) {
    return scaleSegment == 0 ? 0
                             : minOf(long(scaleSegment),
                                     scaleRow - index * long(scaleSegment));
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_STREAM_UNITS_CUH
