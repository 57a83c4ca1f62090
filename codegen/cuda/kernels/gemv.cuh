//===- gemv.cuh - Matrix products for few rows ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of decode reads every weight once, and reading is all that it costs. A
// warp has a few rows of the weight. Its lanes stride over the depth, a chunk
// each (weights.cuh), with `unroll` of them in flight before the first is used,
// and keep f32 sums for every (row of input, row of weight). Input rows come
// from the L1 cache. Each sum is added up over the lanes in a fixed order, so
// that a result depends on its own row alone.
//
// RMSNorm is fused: every warp reads the whole row, so it sums the squares on
// the way and scales the results.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_GEMV_CUH
#define LLAMAC_CODEGEN_DEVICE_GEMV_CUH

#include "llamac/results.cuh"
#include "llamac/weights.cuh"

namespace llamac::cuda {

/// The totals of `count` values over the lanes of a warp: lane l gets that of
/// value l / (32 / count). `count` is a power of two, at most 32. Halving the
/// values while the lanes are halved takes count - 1 exchanges, not 5 * count.
template <int count, int by = 16>
LLAMAC_DEVICE float totalAcrossLanes(const float (&values)[count]) {
  if constexpr (by == 0) {
    static_assert(count == 1);
    return values[0];
  } else if constexpr (count == 1) {
    return totalAcrossLanes<1, by / 2>({values[0] + shuffleXor(values[0], by)});
  } else {
    const bool upper = laneIndex() & by;
    float kept[count / 2];
#pragma unroll
    for (int i = 0; i < count / 2; ++i) {
      const float low = values[i], high = values[i + count / 2];
      kept[i] = (upper ? high : low) + shuffleXor(upper ? low : high, by);
    }
    return totalAcrossLanes<count / 2, by / 2>(kept);
  }
}

/// The input through the L1 cache, a chunk for each lane in a turn. Under
/// RMSNorm it comes times the gain, and the squares are summed on the way.
template <GemvConfig config, class Rows> struct CachedInput {
  static constexpr bool normalises = Rows::normalises;
  static constexpr int maxRows = config.maxRows;

  Rows input;
  const float *x[maxRows];
  float squares[maxRows] = {};

  /// Rows of a call that has fewer than maxRows: the last one, again.
  LLAMAC_DEVICE CachedInput(const Rows &input, int count) : input(input) {
#pragma unroll
    for (int row = 0; row < maxRows; ++row)
      x[row] = input.row(row < count ? row : count - 1);
  }

  /// The input that belongs to four `four` of the lane's chunk, 32 * turn +
  /// lane, of a row; zeros past its end.
  LLAMAC_DEVICE Vec<float, 4> load(int row, uint32_t turn, int four) {
    // In 64 bits, so that fours lie at constants from one another.
    const long k = columnOfFour(config.format, 32 * turn + laneIndex(), four);
    if constexpr (hasScales(config.format) && config.depth % tileColumns != 0)
      if (k >= config.depth)
        return {};
    auto value = vectorAt<const Vec<float, 4>>(x[row] + k);
    if constexpr (normalises) {
      const auto gain = vectorAt<const Vec<float, 4>>(input.gain + k);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        squares[row] = fma(value[i], value[i], squares[row]);
        value[i] *= gain[i];
      }
    }
    return value;
  }

  /// The factor that a lane multiplies its `pairs` totals of each row by, where
  /// the lane has that of row `row`; all lanes call it.
  template <int pairs> LLAMAC_DEVICE float scale(int) const {
    float list[maxRows * pairs];
#pragma unroll
    for (int i = 0; i < maxRows * pairs; ++i)
      list[i] = squares[i / pairs];
    return input.scale(totalAcrossLanes(list));
  }
};

/// Computes the sums of `outputsPerWarp` outputs in a warp.
template <GemvConfig config, class Input> struct GemvWarp {
  static constexpr WeightFormat format = config.format;
  using Weight = PackedWeight<format>;
  static constexpr int rows = config.maxRows;
  static constexpr int outputs = config.outputsPerWarp;
  static constexpr int weights = config.weights;
  static constexpr uint32_t chunks = chunksOfRow(format, config.depth);
  static_assert(isPackableDepth(format, config.depth));
  static_assert(outputs % 2 == 0);
  static_assert(rows * outputs / 2 <= 32 && weights <= 2);

  Input input;
  float sums[weights][outputs][rows] = {};

  /// Whether the lane has a chunk in turn `turn`, number 32 * turn + lane.
  static LLAMAC_DEVICE bool hasChunk(uint32_t turn) {
    return 32 * turn + laneIndex() < chunks;
  }

  /// Adds the products of turns turn, turn + 1, ..., `unroll` of them.
  template <int unroll>
  LLAMAC_DEVICE void accumulate(const Weight (&matrix)[weights], long first,
                                uint32_t turn) {
    WeightChunk<format> held[unroll][weights][outputs];
#pragma unroll
    for (int u = 0; u < unroll; ++u)
#pragma unroll
      for (int w = 0; w < weights; ++w)
#pragma unroll
        for (int output = 0; output < outputs; ++output)
          held[u][w][output] =
              matrix[w].load(minOf(first + output, matrix[w].outputs - 1),
                             32 * (turn + u) + laneIndex());
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      multiply(held[u], turn + u);
  }

  /// Adds the products of the lane's chunk of every weight row.
  LLAMAC_DEVICE void
  multiply(const WeightChunk<format> (&held)[weights][outputs], uint32_t turn) {
    // Block formats: sums of q * x, which are scaled once for each scale.
    constexpr int foursOfScale = BlockScale<format>::halves ? 1 : 2;
#pragma unroll
    for (int first = 0; first < Weight::fours; first += foursOfScale) {
      float dots[weights][outputs][rows] = {};
      float inputs[rows] = {};
      auto &into = choose<Weight::scaled>(dots, sums);
#pragma unroll
      for (int four = first; four < first + foursOfScale; ++four) {
        Vec<float, 4> decoded[weights][outputs];
#pragma unroll
        for (int w = 0; w < weights; ++w)
#pragma unroll
          for (int output = 0; output < outputs; ++output)
            decoded[w][output] = decode(held[w][output], four);
#pragma unroll
        for (int row = 0; row < rows; ++row) {
          const Vec<float, 4> value = input.load(row, turn, four);
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            if constexpr (Weight::shifted)
              inputs[row] += value[i];
#pragma unroll
            for (int w = 0; w < weights; ++w)
#pragma unroll
              for (int output = 0; output < outputs; ++output)
                into[w][output][row] =
                    fma(decoded[w][output][i], value[i], into[w][output][row]);
          }
        }
      }
      if constexpr (Weight::scaled) {
#pragma unroll
        for (int w = 0; w < weights; ++w)
#pragma unroll
          for (int output = 0; output < outputs; ++output) {
            const BlockScale<format> &of = held[w][output].scales[first / 2];
            const float scale = of.scale(first % 2);
#pragma unroll
            for (int row = 0; row < rows; ++row) {
              float &sum = sums[w][output][row];
              sum = fma(scale, dots[w][output][row], sum);
              if constexpr (Weight::shifted)
                sum = fma(of.offset(first % 2), inputs[row], sum);
            }
          }
      }
    }
  }

  template <bool first, class A, class B>
  static LLAMAC_DEVICE auto &choose(A &a, B &b) {
    if constexpr (first)
      return a;
    else
      return b;
  }

  /// Begins with other outputs.
  LLAMAC_DEVICE void clear() {
#pragma unroll
    for (int w = 0; w < weights; ++w)
#pragma unroll
      for (int output = 0; output < outputs; ++output)
#pragma unroll
        for (int row = 0; row < rows; ++row)
          sums[w][output][row] = 0;
  }

  /// Adds up over the lanes and hands each pair of outputs of each row to the
  /// epilogue, in one lane.
  template <class Epilogue>
  LLAMAC_DEVICE void finish(long first, long end, int count,
                            const Epilogue &epilogue) {
    finish(first, end, count, epilogue, [&](long row, long column) {
      return extrasOf(epilogue, row, column);
    });
  }

  /// Finishes with what extras(row, column) gives, which may have loaded it
  /// before.
  template <class Epilogue, class Extras>
  LLAMAC_DEVICE void finish(long first, long end, int count,
                            const Epilogue &epilogue, const Extras &extras) {
    constexpr int pairs = outputs / 2;
    constexpr int values = rows * pairs;
    F32x2 totals[weights];
#pragma unroll
    for (int w = 0; w < weights; ++w)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float list[values];
#pragma unroll
        for (int i = 0; i < values; ++i)
          list[i] = sums[w][i % pairs * 2 + half][i / pairs];
        (half ? totals[w].y : totals[w].x) = totalAcrossLanes(list);
      }
    const int value = laneIndex() / (32 / values);
    const int row = value / pairs;
    if constexpr (Input::normalises) {
      const float scale = input.template scale<pairs>(row);
#pragma unroll
      for (int w = 0; w < weights; ++w)
        totals[w] = totals[w] * splat(scale);
    }
    const long column = first + value % pairs * 2;
    if (laneIndex() % (32 / values) != 0 || row >= count || column >= end)
      return;
    applyEpilogue(epilogue, row, column, totals, extras(row, column));
  }
};

template <GemvConfig> LLAMAC_DEVICE ProductPlace placeOfBlock() {
  return {blockIdx.x};
}

/// Block `place` of part `part`, a product with packed matrices `weights`: what
/// gemv() does in one block, also part of a launch that has several products
/// (qkv.cuh). Its blocks share nothing.
template <GemvConfig config, class Rows, class Epilogue>
LLAMAC_DEVICE void
productBlock(const ProductPart &part, const ProductPlace &place, int rows,
             const Rows &input, const void *const (&weights)[config.weights],
             const Epilogue &epilogue, const ProductSplits & = {},
             const NoNorm & = {}) {
  const long outputs = part.outputs;
  using Warp = GemvWarp<config, CachedInput<config, Rows>>;
  const long first =
      (place.block * config.warps + warpIndex()) * config.outputsPerWarp;
  if (first >= outputs)
    return;
  typename Warp::Weight matrix[config.weights];
#pragma unroll
  for (int w = 0; w < config.weights; ++w)
    matrix[w] = {static_cast<const uint8_t *>(weights[w]), outputs,
                 config.depth};

  Warp warp{{input, rows}};
  uint32_t turn = 0;
  for (; Warp::hasChunk(turn + config.unroll - 1); turn += config.unroll)
    warp.template accumulate<config.unroll>(matrix, first, turn);
  for (; Warp::hasChunk(turn); ++turn)
    warp.template accumulate<1>(matrix, first, turn);
  syncWarp();
  warp.finish(first, outputs, rows, epilogue);
}

/// The products of `rows` rows, at most maxRows, with packed weights:
/// epilogue(row, column, acc...) gets every pair of outputs once; that of the
/// last of an odd number is of no meaning. A launch of launchShape(config).
template <GemvConfig config, class Rows, class Epilogue>
LLAMAC_DEVICE void gemv(int rows, const Rows &input,
                        const void *const (&weights)[config.weights],
                        const Epilogue &epilogue) {
  productBlock<config>({config.outputs, config.outputs}, placeOfBlock<config>(),
                       rows, input, weights, epilogue);
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_GEMV_CUH
