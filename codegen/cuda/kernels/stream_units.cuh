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

#include "llamac/ptx_sm90.cuh"
#include "llamac/weights.cuh"

#if LLAMAC_HAS_SM90

namespace llamac::cuda {

template <class Epilogue>
LLAMAC_DEVICE Epilogue epilogueOfPart(const Epilogue &epilogue, int part) {
  return epilogue;
}

/// The matrices of a stream, whose rows come in `segmentCount` segments.
/// Numbers of rows and units have 32 bits, without a sign: arithmetic on them
/// takes half as many instructions as on 64.
template <StreamConfig config, uint32_t segmentCount> struct StreamUnits {
  static constexpr int weights = config.product.weights;
  static constexpr int outputs = streamUnitOutputs(config);
  static constexpr int parts = config.parts[2] ? 3 : config.parts[1] ? 2 : 1;
  static constexpr uint32_t segments = segmentCount;
  static constexpr uint32_t count = streamUnits(config);
  /// Whether units divide the outputs of every part.
  static constexpr bool isWhole = config.parts[0] % outputs == 0 &&
                                  config.parts[1] % outputs == 0 &&
                                  config.parts[2] % outputs == 0;

  /// The rows of a unit: outputs first, first + 1, ... of a part.
  struct Unit {
    int part;
    uint32_t outputs;
    uint32_t first;

    /// Behind the last output there is the last output, again.
    LLAMAC_DEVICE uint32_t row(uint32_t output) const {
      return isWhole ? first + output : minOf(first + output, outputs - 1);
    }
  };

  /// A segment of a unit's rows; `stride` units on is the next unit.
  struct Place {
    uint32_t unit;
    uint32_t segment = 0;

    LLAMAC_DEVICE void advance(uint32_t stride) {
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

  static LLAMAC_DEVICE Unit unitOf(uint32_t unit) {
    if constexpr (parts > 1) {
      constexpr uint32_t second = streamUnits(config, 0);
      constexpr uint32_t third = second + streamUnits(config, 1);
      if (unit >= third)
        return {2, uint32_t(config.parts[2]), (unit - third) * outputs};
      if (unit >= second)
        return {1, uint32_t(config.parts[1]), (unit - second) * outputs};
    }
    return {0, uint32_t(config.parts[0]), unit * outputs};
  }

  LLAMAC_DEVICE const uint8_t *matrixOf(const Unit &unit, int w) const {
    // Selections are used since an index would put the array in local memory.
    const int index = unit.part * weights + w;
    const uint8_t *chosen = matrix[0];
#pragma unroll
    for (int i = 1; i < parts * weights; ++i)
      chosen = i == index ? matrix[i] : chosen;
    return chosen;
  }
};

/// Bytes of segment `index` of `whole` bytes, in segments of `segment`.
template <uint32_t whole, uint32_t segment>
LLAMAC_DEVICE uint32_t segmentBytesOf(uint32_t index) {
  return whole % segment == 0 ? segment
                              : minOf(segment, whole - index * segment);
}

} // namespace llamac::cuda

#endif // LLAMAC_HAS_SM90

#endif // LLAMAC_CODEGEN_DEVICE_STREAM_UNITS_CUH
