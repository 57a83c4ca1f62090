//===- split.cuh - Exact products of integers by halves ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Weights of 4 and 8 bits come faster from memory than lanes could multiply
// them one by one: int4 at the bandwidth of an H200 leaves about three lane
// operations for each. So they go to tensor cores, m16n8k16 with halves, as the
// 16 rows. Their integers are exact in a half. The input is not, so each
// element is split in two,
//
//   x * s = high + low / 2048       s a power of two, one for each block
//
// both halves, which together have 22 bits of it and more than f32's exponents
// above 2^-39 of the block's largest. Products of halves are exact in the f32
// in which tensor cores add them up, block by block; then comes the block's
// scale. So what is rounded is what f32 arithmetic would round, not more.
//
// An MMA has 8 columns, and a block of the input wants two for each row of the
// input, high and low. With fewer than 4 rows a step takes 4 / rows blocks at a
// time, each in columns of its own: lane (g, t) has 32 / rows consecutive
// weights of its row of weights, and the input has zeros where the lane's block
// is not the column's:
//
//   pair p = g / 2 of columns   block p / rows of the step, input row p % rows;
//                               column 2p has high, 2p + 1 has low
//   lane t                      block t / rows, its part t % rows
//
// The depth may be summed in any order, so long as both operands agree. Of 8
// elements that a lane has in the order of eightAsHalf(), pairs 0 and 1 are
// words 0 and 1 of its fragment in one MMA, 2 and 3 in the next. After the MMAs
// of a step lane (g, t) has the dot products of pair t with rows g and g + 8 of
// the weights, of the block that it has read itself.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_SPLIT_CUH
#define LLAMAC_CODEGEN_DEVICE_SPLIT_CUH

#include "llamac/vmath.cuh"
#include "llamac/weights.cuh"

namespace llamac::cuda {

/// The input of a product in shared memory, split, times the gain of a norm.
template <GemvConfig config> struct SplitInput {
  using Shared = SplitShared<config>;
  static constexpr int rows = config.maxRows;
  static constexpr int stepBlocks = splitStepBlocks(config);
  static constexpr bool shifted = PackedWeight<config.format>::shifted;
  static_assert(rows == 1 || rows == 2 || rows == 4);
  static_assert(sizeof(Shared) == splitSharedBytes(config));

  /// Bytes from one group of 8 elements of a lane to the next: 16 of every lane
  /// whose fragment is not zero.
  static constexpr int groupBytes = 8 * rows * 16;

  /// Brings `count` rows; all `threads` threads of the block come, each with a
  /// batch of loads in flight at a time. A barrier follows.
  template <int threads, class Rows>
  static LLAMAC_DEVICE void fill(Shared &shared, const Rows &input, int count) {
    constexpr int eights = Shared::steps * stepBlocks * 4;
    constexpr int batch =
        batchOfTurns(divideUp(eights, threads), Rows::normalises ? 4 : 8);
    for (int i = threadIdx.x; i < splitStepBytes / 4; i += threads)
      reinterpret_cast<uint32_t *>(shared.zeros)[i] = 0;
#pragma unroll 1
    for (int row = 0; row < rows; ++row) {
      const float *from = input.row(minOf(row, count - 1));
      float squares = 0;
      // A block of 32 is four lanes', which stay together.
#pragma unroll 1
      for (int first = 32 * warpIndex(); first < eights;
           first += batch * threads) {
        float x[batch][8], gain[batch][8];
        auto eightOf = [&](int i) {
          return first + i * threads + static_cast<int>(laneIndex());
        };
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          // Behind the last there is that again.
          const long at = 8 * minOf<long>(eightOf(i), config.depth / 8 - 1);
          load(x[i], from + at);
          if constexpr (Rows::normalises)
            load(gain[i], input.gain + at);
        }
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          const int eight = eightOf(i);
          if (first + i * threads >= eights)
            continue;
          const bool isInside = row < count && eight < config.depth / 8;
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            x[i][j] = isInside ? x[i][j] : 0.0f;
            if constexpr (Rows::normalises) {
              squares = fma(x[i][j], x[i][j], squares);
              x[i][j] *= gain[i][j];
            }
          }
          store(shared, row, eight, x[i], eight < eights);
        }
      }
      if constexpr (Rows::normalises) {
#pragma unroll
        for (int by = 16; by > 0; by /= 2)
          squares += shuffleXor(squares, by);
        if (laneIndex() == 0)
          shared.squares[row][warpIndex()] = squares;
      }
    }
  }

  static LLAMAC_DEVICE float squaresOf(const Shared &shared, int row) {
    float sum = 0;
#pragma unroll
    for (float part : shared.squares[row])
      sum += part;
    return sum;
  }

private:
  static LLAMAC_DEVICE void load(float (&to)[8], const float *from) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto four = vectorAt<const Vec<float, 4>>(from + 4 * half);
#pragma unroll
      for (int i = 0; i < 4; ++i)
        to[4 * half + i] = four[i];
    }
  }

  /// Stores elements 8 * eight .. 8 * eight + 7 of a row. The lanes of the same
  /// four come together.
  static LLAMAC_DEVICE void store(Shared &shared, int row, int eight,
                                  const float (&x)[8], bool inside) {
    // Bits of magnitudes are in their order; a NaN is the largest.
    uint32_t largest = 0;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      largest = maxOf(largest, bitCast<uint32_t>(x[i]) & 0x7fffffffu);
      sum += x[i];
    }
#pragma unroll
    for (int by = 1; by < 4; by *= 2) {
      largest = maxOf(largest, shuffleXor(largest, by));
      if constexpr (shifted)
        sum += shuffleXor(sum, by);
    }
    // The largest comes to 2^14 and a bit; both powers of two are normal.
    const uint32_t exponent = maxOf(largest >> 23, 15u);
    const float up = bitCast<float>(268u - exponent << 23);
    Words4 high, low;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float a = x[halfOrder<config.format>(i, false)] * up;
      const float b = x[halfOrder<config.format>(i, true)] * up;
      high[i] = packHalf(normalHalf(a), normalHalf(b));
      low[i] = packHalf((a - toFloat(Half{uint16_t(high[i])})) * 2048.0f,
                        (b - toFloat(Half{uint16_t(high[i] >> 16)})) * 2048.0f);
    }
    if (!inside)
      return;
    constexpr int groups = stepBlocks; // Of 8 elements of a lane.
    const int block = eight / 4, step = block / stepBlocks;
    const int part = eight % 4 / groups, group = eight % 4 % groups;
    const int pair = block % stepBlocks * rows + row;
    unsigned char *to =
        shared.input[step] + group * groupBytes + (2 * pair * rows + part) * 16;
    vectorAt<Words4>(to) = high;
    vectorAt<Words4>(to + rows * 16) = low;
    if (eight % 4 == 0) {
      shared.blocks[step][pair][0] = bitCast<float>(exponent - 14u << 23);
      if constexpr (shifted)
        shared.blocks[step][pair][1] = sum;
    }
  }

  /// Halves below 2^-14 are left to the low part: MMAs need not take them.
  static LLAMAC_DEVICE float normalHalf(float value) {
    return (bitCast<uint32_t>(value) & 0x7fffffffu) < 0x38800000u ? 0.0f
                                                                  : value;
  }
};

/// What a warp computes: parts of the sums of 16 rows of weights with every row
/// of the input. Lane (g, t) has those of rows g and g + 8 with input row t %
/// rows.
template <GemvConfig config> struct SplitWarp {
  static constexpr WeightFormat format = config.format;
  static constexpr int rows = config.maxRows;
  static constexpr int stepBlocks = splitStepBlocks(config);
  static constexpr int groups = stepBlocks; ///< Of 8 elements of a lane.
  static constexpr int words = groups * eightWords<format>;
  static constexpr bool shifted = PackedWeight<format>::shifted;
  using Shared = SplitShared<config>;

  /// A lane's values of a step, of one row of weights, and their scale.
  struct Held {
    uint32_t values[words];
    uint32_t scales;
  };

  int g = laneIndex() / 4;
  int t = laneIndex() % 4;
  /// The block of a step that the lane reads, and its part of that block.
  int block = t / rows;
  int part = t % rows;
  float sums[2] = {};

private:
  const unsigned char *input; ///< The lane's, of step 0.
  int inputStep;              ///< Bytes to that of the next step.
  const float *numbers;       ///< Of pair t in step 0.

public:
  LLAMAC_DEVICE SplitWarp(const Shared &shared) : numbers(shared.blocks[0][t]) {
    // Where the fragment is zero, from banks that the other lanes do not use.
    const bool own = g / 2 / rows == block;
    input = own ? shared.input[0] + (g * rows + part) * 16
                : shared.zeros + (g * rows * 16 + 64) % 128;
    inputStep = own ? splitStepBytes : 0;
  }

  /// Reads from 16-byte aligned memory.
  static LLAMAC_DEVICE void load(uint32_t (&values)[words], const void *from) {
    constexpr int most = words < 4 ? words : 4;
#pragma unroll
    for (int i = 0; i < words; i += most) {
      const auto read = vectorAt<const Vec<uint32_t, most>>(
          static_cast<const uint32_t *>(from) + i);
#pragma unroll
      for (int j = 0; j < most; ++j)
        values[i + j] = read[j];
    }
  }

  LLAMAC_DEVICE void multiply(const Held (&held)[2], int step) {
    const unsigned char *from = input + step * inputStep;
    float dots[4] = {};
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      const Words4 low =
          eightAsHalf<format>(held[0].values + group * eightWords<format>);
      const Words4 high =
          eightAsHalf<format>(held[1].values + group * eightWords<format>);
      const auto x =
          vectorAt<const Words4>(from + group * SplitInput<config>::groupBytes);
      mmaHalf(dots, {low[0], high[0], low[1], high[1]}, {x[0], x[1]});
      mmaHalf(dots, {low[2], high[2], low[3], high[3]}, {x[2], x[3]});
    }
    const auto of = vectorAt<const Vec<float, Shared::numbers>>(
        numbers + step * 4 * Shared::numbers);
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const float dot = fma(dots[2 * upper + 1], 1.0f / 2048, dots[2 * upper]);
      const WeightChunk<format> scales{{}, held[upper].scales};
      sums[upper] = fma(scales.scale(), dot * of[0], sums[upper]);
      if constexpr (shifted)
        sums[upper] = fma(scales.offset(), of[1], sums[upper]);
    }
  }

  /// Adds up over the lanes and stores the warp's sums in `partials`.
  LLAMAC_DEVICE void storePartials(float (&partials)[rows][splitRows]) {
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      float sum = sums[upper];
#pragma unroll
      for (int by = rows; by < 4; by *= 2)
        sum += shuffleXor(sum, by);
      if (t < rows)
        partials[t][g + 8 * upper] = sum;
    }
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_SPLIT_CUH
