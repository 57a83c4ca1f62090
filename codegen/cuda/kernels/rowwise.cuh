//===- rowwise.cuh - Row-wise kernels ---------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels whose work is a row, or an element: one block for each row, and no
// order between rows.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_ROWWISE_CUH
#define LLAMAC_CODEGEN_DEVICE_ROWWISE_CUH

#include "llamac/vmath.cuh"
#include "llamac/weights.cuh"

namespace llamac::cuda {

/// The total of `value` over the block's rowThreads threads, in a fixed order,
/// for every thread. To be called once in a kernel.
LLAMAC_DEVICE float totalOfBlock(float value) {
  LLAMAC_SHARED(parts, float[rowThreads / 32]);
#pragma unroll
  for (int by = 16; by > 0; by /= 2)
    value += shuffleXor(value, by);
  if (laneIndex() == 0)
    parts[warpIndex()] = value;
  syncThreads();
  float total = 0;
#pragma unroll
  for (int warp = 0; warp < rowThreads / 32; ++warp)
    total += parts[warp];
  return total;
}

/// store(column, four) for the fours of row `row` of the table, of which thread
/// `thread` of `threads` has some.
template <EmbedConfig config, class Store>
LLAMAC_DEVICE void forFoursOfRow(const void *table, long row, int thread,
                                 int threads, const Store &store) {
  using Weight = PackedWeight<config.format>;
  static_assert(isPackableDepth(config.format, config.width));
  const Weight weight{static_cast<const uint8_t *>(table), config.tokens,
                      config.width};
  for (int chunk = thread; chunk < chunksOfRow(config.format, config.width);
       chunk += threads) {
    const auto held = weight.load(row, chunk);
#pragma unroll
    for (int four = 0; four < Weight::fours; ++four) {
      const long column = columnOfFour(config.format, chunk, four);
      if (config.width % (4 * Weight::span) == 0 || column < config.width)
        store(column, weightsOf(held, four));
    }
  }
}

/// out[r, :] = table[tokens[r], :] as f32; row 0 of the table for a token below
/// 0, which a step that failed gives to the one after it. Of a rank's part of
/// the table, which begins at token *rank * config.tokens, other tokens give
/// zeros. A launch of rowwiseShape().
template <EmbedConfig config>
LLAMAC_DEVICE void embed(const int *tokens, const void *table, float *out,
                         [[maybe_unused]] const int *rank = nullptr) {
  const long row = blockIdx.y;
  long token = tokens[row] < 0 ? 0 : tokens[row];
  if constexpr (config.isPart) {
    token -= *rank * config.tokens;
    if (token < 0 || token >= config.tokens) {
      for (int column = 2 * threadIdx.x; column < config.width;
           column += 2 * rowThreads)
        store2(out + row * config.width + column, {0, 0});
      return;
    }
  }
  forFoursOfRow<config>(table, token, threadIdx.x, rowThreads,
                        [&](long column, const Vec<float, 4> &four) {
                          vectorAt<Vec<float, 4>>(out + row * config.width +
                                                  column) = four;
                        });
}

/// epilogue(row, column, value) by the lanes of a warp, which have neighbouring
/// columns: those of which a norm gets the squares together.
template <class Epilogue>
LLAMAC_DEVICE void applyInRows(const Epilogue &epilogue, long row, long column,
                               F32x2 value) {
  const F32x2 acc[] = {value};
  if constexpr (TakesSquares<Epilogue>) {
    static_assert(squareColumns == 2 * 32);
    const F32x2 result = applyEpilogue(epilogue, row, column, acc);
    float sum = dot(result, result, 0);
#pragma unroll
    for (int by = 16; by > 0; by /= 2)
      sum += shuffleXor(sum, by);
    if (laneIndex() == 0)
      epilogue.storeSquares(row, column, sum);
  } else {
    applyEpilogue(epilogue, row, column, acc);
  }
}

/// Calls epilogue(row, column, y) for y = x / sqrt(mean(x^2) + eps) * gain of
/// part `part` of `size` of row `row`, by all threads of a block. To be called
/// once in a kernel.
template <long size, class Epilogue>
LLAMAC_DEVICE void normalizePart(const NormRows<size> &input, long row,
                                 long parts, long part,
                                 const Epilogue &epilogue) {
  static_assert(size % (TakesSquares<Epilogue> ? squareColumns : 2) == 0);
  const float *from = input.row(row * parts + part);
  float squares = 0;
  for (int column = 2 * threadIdx.x; column < size; column += 2 * rowThreads) {
    const F32x2 value = load2(from + column);
    squares = dot(value, value, squares);
  }
  const F32x2 scale = splat(input.scale(totalOfBlock(squares)));
  for (int column = 2 * threadIdx.x; column < size; column += 2 * rowThreads)
    applyInRows(epilogue, row, part * size + column,
                load2(from + column) * scale * load2(input.gain + column));
}

/// The norm of every part of `size` of each row. A launch of rmsNormShape().
template <long size, class Epilogue>
LLAMAC_DEVICE void rmsNorm(const float *x, const float *gain, float eps,
                           const Epilogue &epilogue) {
  normalizePart(NormRows<size>{x, gain, eps}, blockIdx.y, gridDim.x, blockIdx.x,
                epilogue);
}

/// out[r, :] = x[index[r], :] for elements of 4 bytes. A launch of
/// rowwiseShape().
template <long width, class T>
LLAMAC_DEVICE void gatherRows(const T *x, const int *index, T *out) {
  const T *from = x + index[blockIdx.y] * width;
  T *to = out + blockIdx.y * width;
  for (int column = threadIdx.x; column < width; column += rowThreads)
    to[column] = from[column];
}

/// function(row, column), which does its own loads and stores, for every pair
/// of columns. A launch of pointwiseShape(width).
template <long width, class Function>
LLAMAC_DEVICE void pointwise(const Function &function) {
  static_assert(width % 2 == 0);
  const long column = 2 * (blockIdx.x * long(rowThreads) + threadIdx.x);
  if (column < width)
    function(long(blockIdx.y), column);
}

/// Calls epilogue(row, column, y) for every pair of columns of y = inputs[0] +
/// inputs[1] + ..., in this order: what `ranks` ranks have, [rows, width] each.
/// A launch of pointwiseShape(width).
template <int ranks, long width, class Epilogue>
LLAMAC_DEVICE void allReduce(const float *const *inputs,
                             const Epilogue &epilogue) {
  pointwise<width>([&](long row, long column) {
    const long at = row * width + column;
    F32x2 sum = load2(inputs[0] + at);
#pragma unroll
    for (int rank = 1; rank < ranks; ++rank)
      sum = sum + load2(inputs[rank] + at);
    applyInRows(epilogue, row, column, sum);
  });
}

/// out[r, rank * width + column] = inputs[rank][r, column]. A launch of
/// allGatherShape(ranks).
template <long width>
LLAMAC_DEVICE void allGather(const float *const *inputs, float *out) {
  const long row = blockIdx.y, rank = blockIdx.x;
  const float *from = inputs[rank] + row * width;
  float *to = out + (row * gridDim.x + rank) * width;
  for (int column = threadIdx.x; column < width; column += rowThreads)
    to[column] = from[column];
}

struct SineCosine {
  double sine, cosine;
};

/// sin x and cos x for |x| up to 2^20, within 1e-15: x = n pi/2 + r with
/// |r| <= pi/4, where pi/2 has parts such that n times the first two is exact,
/// then the Taylor series up to r^17 and r^16, whose next terms are below
/// 1e-17. CUDA's own functions keep a table in memory for larger arguments.
LLAMAC_DEVICE SineCosine sineCosine(double x) {
  const double quarters = x * 0x1.45f306dc9c883p-1;
  const int n = static_cast<int>(quarters + (quarters < 0 ? -0.5 : 0.5));
  double r = x - double(n) * 0x1.921fb54p+0;
  r -= double(n) * 0x1.10b46118p-30;
  r -= double(n) * 0x1.313198a2e037p-61;

  const double square = r * r;
  double sine = 0, cosine = 0; // (sin r) / r and cos r, by Horner's rule.
#pragma unroll
  for (int k = 16; k > 0; k -= 2) {
    sine = (sine + 1) * -square * (1.0 / double(k * (k + 1)));
    cosine = (cosine + 1) * -square * (1.0 / double(k * (k - 1)));
  }
  sine = r * (1 + sine);
  cosine = 1 + cosine;
  const bool swap = n & 1, negate = n & 2;
  const double first = swap ? cosine : sine;
  const double second = swap ? -sine : cosine;
  return {negate ? -first : first, negate ? -second : second};
}

/// [headSize / 2][cos, sin] of a row at `position`, by `threads` threads.
template <long headSize>
LLAMAC_DEVICE void cosSinOf(int position, const double *frequencies, int thread,
                            int threads, float *out) {
  for (int i = thread; i < headSize / 2; i += threads) {
    const SineCosine of = sineCosine(double(position) * frequencies[i]);
    store2(out + 2 * i,
           {static_cast<float>(of.cosine), static_cast<float>(of.sine)});
  }
}

/// out: f32 [rows][headSize / 2][cos, sin] of positions[r] * frequencies[i].
/// In a launch of ropeTableShape(), or after embed() in one of rowwiseShape().
template <long headSize>
LLAMAC_DEVICE void ropeTable(const int *positions, const double *frequencies,
                             float *out) {
  cosSinOf<headSize>(positions[blockIdx.y], frequencies, threadIdx.x,
                     blockDim.x, out + blockIdx.y * headSize);
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_ROWWISE_CUH
