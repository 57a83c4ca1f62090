//===- halves.cuh - Exact products of integers by halves --------*- C++ -*-===//
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
// element becomes two halves,
//
//   x * s = high + low / 2048       s a power of two, one for each block
//
// both halves, which together have 22 bits of it and more than f32's exponents
// above 2^-39 of the block's largest. Products of halves are exact in the f32
// in which tensor cores add them up, block by block; then comes the block's
// scale. So what is rounded is what f32 arithmetic would round, not more.
//
// An MMA has 8 columns, and a block of the input wants two for each row of the
// input, high and low. With fewer than 4 rows a set of 4 / rows blocks shares
// the columns, each with columns of its own and zeros in those of the others:
//
//   pair p of columns   block p / rows of the set, input row p % rows; column
//                       2p has high, 2p + 1 has low
//
// The depth may be summed in any order, so long as both operands agree. Lane
// (g, t) has share t of rows g and g + 8 of the weights: of each block 8
// elements, four for each of two MMAs. So with a block of 32 go two MMAs, with
// a block of 16 one. After the MMAs of a set lane (g, t) has the dot products
// of pair t with rows g and g + 8 of the weights.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_KERNELS_HALVES_CUH
#define LLAMAC_CODEGEN_CUDA_KERNELS_HALVES_CUH

#include "llamac/vmath.cuh"
#include "llamac/weights.cuh"

namespace llamac::cuda {

/// Elements at(i) to at(i) + 3 and at(i) + 16 to at(i) + 19 of a row, of each
/// i.
template <int count, class At>
LLAMAC_DEVICE void loadEights(float (&to)[count][8], const float *row,
                              const At &at) {
#pragma unroll
  for (int i = 0; i < count; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const auto four = vectorAt<const Vec<float, 4>>(row + at(i) + 16 * half);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        to[i][4 * half + j] = four[j];
    }
}

/// The input of a product in shared memory, in halves, times the gain of a
/// norm.
template <GemvConfig config> struct HalvedInput {
  using Shared = HalvesShared<config>;
  static constexpr int rows = config.maxRows;
  static constexpr int setBlocks = halvesSetBlocks(config);
  static constexpr bool shifted = PackedWeight<config.format>::shifted;
  static_assert(rows == 1 || rows == 2 || rows == 4);
  static_assert(sizeof(Shared) == halvesSharedBytes(config));

  /// Elements of a row, with zeros behind its end, in eights.
  static constexpr int eights = Shared::sets * setBlocks * 4;

  /// Brings eights `begin` to `end` - 1 of `count` rows, by the first
  /// streamWarps warps of the block: a thread has a batch of loads in flight at
  /// a time. A barrier follows. The squares of a norm are those of whole rows.
  template <int begin = 0, int end = eights, class Rows>
  static LLAMAC_DEVICE void fill(Shared &shared, const Rows &input, int count) {
    constexpr int threads = streamWarps * 32;
    constexpr int depthEights = config.depth / 8;
    constexpr int batch =
        batchOfTurns(divideUp(end - begin, threads), Rows::normalises ? 4 : 8);
    static_assert(!Rows::normalises || end - begin == eights);
    if (begin == 0 && threadIdx.x == 0)
      vectorAt<Words4>(shared.zeros) = {};
#pragma unroll 1
    for (int row = 0; row < rows; ++row) {
      const auto from = input.row(minOf(row, count - 1));
      float squares = 0;
      // A block of 32 is four lanes', which stay together: lane t has what a
      // share of it has.
#pragma unroll 1
      for (int first = begin + 32 * warpIndex(); first < end;
           first += batch * threads) {
        float x[batch][8], gain[batch][8];
        auto eightOf = [&](int i) {
          return first + i * threads + static_cast<int>(laneIndex());
        };
        auto at = [&](int i) {
          // Behind the last block there is that again.
          const int eight = eightOf(i);
          const int block = minOf(eight / 4, depthEights / 4 - 1);
          return long{block} * scaleBlock + eight % 4 * 4;
        };
        if constexpr (Rows::normalises)
          loadEights(gain, input.gain, at);
        loadEights(x, from, at);
#pragma unroll
        for (int i = 0; i < batch; ++i) {
          const int eight = eightOf(i);
          if (first + i * threads >= end)
            continue;
          const bool isInside = row < count && eight < depthEights;
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            x[i][j] = isInside ? x[i][j] : 0.0f;
            if constexpr (Rows::normalises) {
              squares = fma(x[i][j], x[i][j], squares);
              x[i][j] *= gain[i][j];
            }
          }
          store(shared, row, eight, x[i], eight < end);
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
  /// Stores what share `eight % 4` of block `eight / 4` of a row has. The lanes
  /// of the same four come together.
  static LLAMAC_DEVICE void store(Shared &shared, int row, int eight,
                                  const float (&x)[8], bool inside) {
    // Bits of magnitudes are in their order; a NaN is the largest.
    uint32_t largest = 0;
    float sums[2] = {};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      largest = maxOf(largest, bitCast<uint32_t>(x[i]) & 0x7fffffffu);
      sums[i / 4] += x[i];
    }
#pragma unroll
    for (int by = 1; by < 4; by *= 2) {
      largest = maxOf(largest, shuffleXor(largest, by));
      if constexpr (shifted)
#pragma unroll
        for (float &sum : sums)
          sum += shuffleXor(sum, by);
    }
    // The largest comes to 2^14 and a bit; both powers of two are normal.
    const uint32_t exponent = maxOf(largest >> 23, 15u);
    const float up = bitCast<float>((268u - exponent) << 23);
    Words4 high, low;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float a = x[2 * i] * up, b = x[2 * i + 1] * up;
      high[i] = packHalf(normalHalf(a), normalHalf(b));
      low[i] = packHalf((a - toFloat(Half{uint16_t(high[i])})) * 2048.0f,
                        (b - toFloat(Half{uint16_t(high[i] >> 16)})) * 2048.0f);
    }
    if (!inside)
      return;
    const int block = eight / 4, set = block / setBlocks;
    const int pair = block % setBlocks * rows + row;
    unsigned char *to = shared.input[set] + (8 * pair + eight % 4) * 16;
    vectorAt<Words4>(to) = high;
    vectorAt<Words4>(to + 4 * 16) = low;
    if (eight % 4 == 0) {
      float *numbers = shared.blocks[set][pair];
      numbers[0] = bitCast<float>((exponent - 14u) << 23);
      if constexpr (Shared::numbers == 2)
        numbers[1] = sums[0] + sums[1];
      if constexpr (Shared::numbers == 4) {
        numbers[1] = sums[0];
        numbers[2] = sums[1];
        numbers[3] = 0;
      }
    }
  }

  /// Halves below 2^-14 are left to the low part: MMAs need not take them.
  static LLAMAC_DEVICE float normalHalf(float value) {
    return (bitCast<uint32_t>(value) & 0x7fffffffu) < 0x38800000u ? 0.0f
                                                                  : value;
  }
};

/// A warp computes parts of the sums of 16 rows of each weight with every row
/// of the input. Lane (g, t) has those of rows g and g + 8 with input row t %
/// rows.
template <GemvConfig config> struct HalvesWarp {
  static constexpr WeightFormat format = config.format;
  static constexpr int weights = config.weights;
  static constexpr int rows = config.maxRows;
  static constexpr int setBlocks = halvesSetBlocks(config);
  static constexpr int stepTiles = halvesStepTiles(config);
  static constexpr int stepSets = 2 * stepTiles / setBlocks;
  using Shared = HalvesShared<config>;
  using Scale = BlockScale<format>;

  int g = laneIndex() / 4;
  int t = laneIndex() % 4;
  float sums[weights][2] = {};

private:
  const Shared &shared;

public:
  LLAMAC_DEVICE HalvesWarp(const Shared &shared) : shared(shared) {}

  /// Adds the products of step `step` of the depth. Its first tile is at
  /// `tile`, the second, if a step has two, `next` bytes further, and what its
  /// group has in common at `group`; those of the next weight are `stride`
  /// bytes further.
  template <int stride>
  LLAMAC_DEVICE void multiply(const unsigned char *tile,
                              const unsigned char *group, int next, int step) {
    // The input of the lane's own block: its pair has those of its row.
    const unsigned char *own = shared.input[step * stepSets] + laneIndex() * 16;
    const float *numbers = shared.blocks[step * stepSets][t];
#pragma unroll
    for (int w = 0; w < weights; ++w) {
      ShareValues<format> held[stepTiles][2];
#pragma unroll
      for (int i = 0; i < stepTiles; ++i)
#pragma unroll
        for (int upper = 0; upper < 2; ++upper)
          held[i][upper] = ShareValues<format>::inShared(
              tile + w * stride + i * next, laneIndex() + 32 * upper);
#pragma unroll
      for (int set = 0; set < stepSets; ++set) {
        // The sums of one scale, or of the two of halves of a block.
        float dots[1 + Scale::halves][4] = {};
#pragma unroll
        for (int block = 0; block < setBlocks; ++block) {
          const int at = set * setBlocks + block;
          const bool isOwn = rows == 4 || g / 2 / rows == block;
          const auto x = vectorAt<const Words4>(
              isOwn ? own + set * halvesSetBytes : shared.zeros);
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int four = at % 2 * 2 + half;
            const Words2 low = fourAsHalf(held[at / 2][0], four);
            const Words2 high = fourAsHalf(held[at / 2][1], four);
            mmaHalf(dots[Scale::halves ? half : 0],
                    {low[0], high[0], low[1], high[1]},
                    {x[2 * half], x[2 * half + 1]});
          }
        }
        const int block = set * setBlocks + t / rows;
        addScaled(sums[w], dots, numbers + set * 4 * Shared::numbers,
                  tile + w * stride + block / 2 * next, group + w * stride,
                  block % 2);
      }
    }
  }

  /// Adds up over the lanes and stores the warp's sums in `partials`.
  LLAMAC_DEVICE void
  storePartials(float (&partials)[weights][rows][tileRows]) const {
#pragma unroll
    for (int w = 0; w < weights; ++w)
#pragma unroll
      for (int upper = 0; upper < 2; ++upper) {
        float sum = sums[w][upper];
#pragma unroll
        for (int by = rows; by < 4; by *= 2)
          sum += shuffleXor(sum, by);
        if (t < rows)
          partials[w][t][g + 8 * upper] = sum;
      }
  }

private:
  /// Adds the dot products with the block of the lane's pair, block `block` of
  /// `tile`.
  template <int halves>
  LLAMAC_DEVICE void addScaled(float (&to)[2], const float (&dots)[halves][4],
                               const float *numbers, const unsigned char *tile,
                               const unsigned char *group, int block) {
    const auto of = vectorAt<const Vec<float, Shared::numbers>>(numbers);
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int row = g + 8 * upper;
      const Scale scale =
          scaleOf<format>(tile, groupScaleOf<format>(group, row), row, block);
#pragma unroll
      for (int half = 0; half < halves; ++half) {
        const float dot =
            fma(dots[half][2 * upper + 1], 1.0f / 2048, dots[half][2 * upper]);
        to[upper] = fma(scale.scale(half), dot * of[0], to[upper]);
        if constexpr (Scale::shifts)
          to[upper] = fma(scale.offset(half), of[1 + half], to[upper]);
      }
    }
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_CUDA_KERNELS_HALVES_CUH
