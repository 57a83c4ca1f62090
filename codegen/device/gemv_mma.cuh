//===- gemv_mma.cuh - Matrix products for a batch of rows ----- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step of decode for several sequences still costs what reading the weights
// does, if the arithmetic keeps up: it goes to tensor cores, m16n8k16, with the
// weights as the 16 rows and up to 8 rows of input as the columns.
//
// The depth may be summed in any order, so long as both operands agree. Lane
// (g, t) reads a chunk of weight rows g and g + 8, the t-th of four neighbours,
// and the same elements of input row g: what it has is a fragment as it stands.
// Of a four, which is one MMA's, those are
//
//   elements 0, 1   k = 2t, 2t + 1      a[0] of row g, a[1] of row g + 8, b[0]
//   elements 2, 3   k = 2t + 8, 2t + 9  a[2],          a[3],              b[1]
//
// Input rows come from the L1 cache, in f32, and are rounded to bf16 in
// registers, times the gain of a norm, whose squares are summed on the way.
//
// A block has 16 rows of each weight. Its warps interleave the depth and add up
// their sums in shared memory, in their order.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_GEMV_MMA_CUH
#define LLAMAC_CODEGEN_DEVICE_GEMV_MMA_CUH

#include "llamac/vmath.cuh"
#include "llamac/weights.cuh"

namespace llamac::cuda {

/// One warp's share of the depth.
template <GemvMmaConfig config, class Rows> struct GemvMmaWarp {
  static constexpr WeightFormat format = config.format;
  using Weight = PackedWeight<format>;
  static constexpr int weights = config.weights;
  static constexpr int tiles = config.maxRows / 8; ///< Of input rows.
  static constexpr int chunks = chunksOfRow(format, config.depth);
  /// Whether all of what four neighbours read is there.
  static constexpr bool isWhole =
      chunks % 4 == 0 && config.depth % (4 * Weight::span) == 0;
  static_assert(isPackableDepth(format, config.depth));
  static_assert(config.maxRows % 8 == 0 && weights <= 2);

  Rows input;
  int rows;
  int g = laneIndex() / 4;
  int t = laneIndex() % 4;
  const float *x[tiles];
  float sums[weights][tiles][4] = {};
  float squares[tiles] = {};

  /// Rows of a call that has fewer than maxRows: the last one, again.
  LLAMAC_DEVICE GemvMmaWarp(const Rows &input, int rows)
      : input(input), rows(rows) {
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile)
      x[tile] = input.row(minOf(8 * tile + g, rows - 1));
  }

  /// Adds the products of the lane's chunks chunk, chunk + 4 * warps, ...,
  /// `unroll` of them; those past the end count as zero.
  template <int unroll>
  LLAMAC_DEVICE void accumulate(const Weight (&matrix)[weights], long first,
                                int chunk) {
    WeightChunk<format> held[unroll][weights][2];
#pragma unroll
    for (int u = 0; u < unroll; ++u)
#pragma unroll
      for (int w = 0; w < weights; ++w)
#pragma unroll
        for (int upper = 0; upper < 2; ++upper) {
          const int at = chunk + 4 * config.warps * u;
          held[u][w][upper] = {};
          if (chunks % 4 == 0 || at < chunks)
            held[u][w][upper] = matrix[w].load(
                minOf(first + g + 8 * upper, matrix[w].outputs - 1), at);
        }
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      multiply(held[u], chunk + 4 * config.warps * u);
  }

  LLAMAC_DEVICE void multiply(const WeightChunk<format> (&held)[weights][2],
                              int chunk) {
#pragma unroll
    for (int four = 0; four < Weight::fours; ++four) {
      Words2 a[weights][2];
#pragma unroll
      for (int w = 0; w < weights; ++w)
#pragma unroll
        for (int upper = 0; upper < 2; ++upper)
          a[w][upper] = fourAsBf16(held[w][upper], four);
      // In 64 bits, so that fours lie at constants from one another.
      const long column = columnOfFour(format, chunk, four);
      const bool inside = isWhole || column < config.depth;
      const long k = inside ? column : 0;
      Vec<float, 4> gain = {1, 1, 1, 1};
      if constexpr (Rows::normalises)
        gain = load4(input.gain + k);
#pragma unroll
      for (int tile = 0; tile < tiles; ++tile) {
        const Words2 b = inputs(tile, k, inside, gain);
#pragma unroll
        for (int w = 0; w < weights; ++w)
          mmaBf16(sums[w][tile],
                  {a[w][0][0], a[w][1][0], a[w][0][1], a[w][1][1]},
                  {b[0], b[1]});
      }
    }
  }

  /// Four elements of input row g of a tile, from depth `k`, as bf16; zeros
  /// past the end.
  LLAMAC_DEVICE Words2 inputs(int tile, long k, bool inside,
                              const Vec<float, 4> &gain) {
    auto value = load4(x[tile] + k);
    if constexpr (Rows::normalises)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        squares[tile] =
            inside ? fma(value[i], value[i], squares[tile]) : squares[tile];
        value[i] *= gain[i];
      }
    return {inside ? packBf16(value[0], value[1]) : 0,
            inside ? packBf16(value[2], value[3]) : 0};
  }

  static LLAMAC_DEVICE Vec<float, 4> load4(const float *from) {
    return vectorAt<const Vec<float, 4>>(from);
  }

  /// Stores the warp's sums where the block adds them up.
  LLAMAC_DEVICE void storePartials(GemvMmaPartials<config> &partials) const {
    const int warp = warpIndex();
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
#pragma unroll
      for (int w = 0; w < weights; ++w)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          partials.sums[warp][w][8 * tile + 2 * t + i % 2][g + i / 2 * 8] =
              sums[w][tile][i];
      if constexpr (Rows::normalises) {
        float sum = squares[tile];
        sum += shuffleXor(sum, 1);
        sum += shuffleXor(sum, 2);
        if (t == 0)
          partials.squares[warp][8 * tile + g] = sum;
      }
    }
  }
};

/// Adds up the warps' sums and hands every pair to the epilogue.
template <GemvMmaConfig config, class Rows, class Epilogue>
LLAMAC_DEVICE void finishGemvMma(const GemvMmaPartials<config> &partials,
                                 const Rows &input, int rows, long first,
                                 long outputs, const Epilogue &epilogue) {
  constexpr int pairs = gemvMmaOutputs / 2;
  for (int i = threadIdx.x; i < config.maxRows * pairs;
       i += config.warps * 32) {
    const int row = i / pairs, pair = i % pairs;
    const long column = first + 2 * pair;
    if (row >= rows || column >= outputs)
      continue;
    float scale = 1;
    if constexpr (Rows::normalises) {
      float sum = 0;
      for (int warp = 0; warp < config.warps; ++warp)
        sum += partials.squares[warp][row];
      scale = input.scale(sum);
    }
    F32x2 totals[config.weights];
#pragma unroll
    for (int w = 0; w < config.weights; ++w) {
      F32x2 sum = {0, 0};
      for (int warp = 0; warp < config.warps; ++warp)
        sum = sum + load2(&partials.sums[warp][w][row][2 * pair]);
      totals[w] = sum * splat(scale);
    }
    applyEpilogue(epilogue, row, column, totals);
  }
}

/// Block `block` of the product with packed matrices `weights` of `outputs`
/// rows: what gemvMma() does in one block, also part of a launch that has
/// several products (qkv.cuh).
template <GemvMmaConfig config, class Rows, class Epilogue>
LLAMAC_DEVICE void productBlock(long block, int rows, const Rows &input,
                                const void *const (&weights)[config.weights],
                                long outputs, const Epilogue &epilogue) {
  using Warp = GemvMmaWarp<config, Rows>;
  LLAMAC_SHARED_DYNAMIC(bytes);
  auto &partials = *reinterpret_cast<GemvMmaPartials<config> *>(bytes);
  const long first = block * gemvMmaOutputs;
  typename Warp::Weight matrix[config.weights];
#pragma unroll
  for (int w = 0; w < config.weights; ++w)
    matrix[w] = {static_cast<const uint8_t *>(weights[w]), outputs,
                 config.depth};

  Warp warp(input, rows);
  // All lanes of a warp go on while one of its chunks is inside.
  constexpr int step = 4 * config.warps;
  int chunk = 4 * warpIndex();
  for (; chunk + step * (config.unroll - 1) < Warp::chunks;
       chunk += step * config.unroll)
    warp.template accumulate<config.unroll>(matrix, first, chunk + warp.t);
  for (; chunk < Warp::chunks; chunk += step)
    warp.template accumulate<1>(matrix, first, chunk + warp.t);
  syncWarp();
  warp.storePartials(partials);
  syncThreads();
  finishGemvMma<config>(partials, input, rows, first, outputs, epilogue);
}

/// The products of `rows` rows, at most maxRows, with packed weights:
/// epilogue(row, column, acc...) gets every pair of outputs once; that of the
/// last of an odd number is of no meaning. A launch of launchShape(config).
template <GemvMmaConfig config, class Rows, class Epilogue>
LLAMAC_DEVICE void gemvMma(int rows, const Rows &input,
                           const void *const (&weights)[config.weights],
                           const Epilogue &epilogue) {
  productBlock<config>(blockIdx.x, rows, input, weights, config.outputs,
                       epilogue);
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_GEMV_MMA_CUH
