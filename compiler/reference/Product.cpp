//===- Product.cpp - Products of rows with rows ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One tile computes a few rows of x against a few rows of w: every vector that
// is loaded is used several times, and the sums stay in registers. Each sum is
// a vector of partial sums; after `blockVectors` steps they are added up in
// fp64, which bounds the error whatever the length of the rows. The tile is
// instantiated once for each width of the host's vectors.
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Product.h"

#include <algorithm>

namespace llamac::reference {

/// Vectors of each row between two additions to the fp64 sums.
static constexpr int64_t blockVectors = 64;

namespace {

/// Vectors of `lanes` floats; InMemory may lie at any float.
template <int lanes> struct VectorOf {
  using Type [[gnu::vector_size(lanes * sizeof(float))]] = float;
  using InMemory [[gnu::vector_size(lanes * sizeof(float)),
                   gnu::aligned(alignof(float)), gnu::may_alias]] = float;
};

/// A tile of xRows x wRows sums over vectors of `lanes` floats.
template <int lanes, int xRows, int wRows> struct Tile {
  using Vector = typename VectorOf<lanes>::Type;
  using InMemory = const typename VectorOf<lanes>::InMemory;

  /// Sums of x[i][0..size) * w[j][0..size) for rows `xStride`, `wStride` apart.
  [[gnu::always_inline]] static void run(const float *x, int64_t xStride,
                                         const float *w, int64_t wStride,
                                         int64_t size, float *out,
                                         int64_t outStride) {
    double total[xRows][wRows] = {};
    const int64_t whole = size - size % lanes;
    for (int64_t begin = 0; begin < whole; begin += blockVectors * lanes) {
      const int64_t end = std::min(whole, begin + blockVectors * lanes);
      Vector sums[xRows][wRows] = {};
      for (int64_t k = begin; k < end; k += lanes) {
        Vector right[wRows];
#pragma unroll
        for (int j = 0; j < wRows; ++j)
          right[j] = *reinterpret_cast<InMemory *>(w + j * wStride + k);
#pragma unroll
        for (int i = 0; i < xRows; ++i) {
          const Vector left =
              *reinterpret_cast<InMemory *>(x + i * xStride + k);
#pragma unroll
          for (int j = 0; j < wRows; ++j)
            sums[i][j] += left * right[j];
        }
      }
#pragma unroll
      for (int i = 0; i < xRows; ++i)
#pragma unroll
        for (int j = 0; j < wRows; ++j)
          for (int lane = 0; lane < lanes; ++lane)
            total[i][j] += sums[i][j][lane];
    }
    for (int i = 0; i < xRows; ++i)
      for (int j = 0; j < wRows; ++j) {
        for (int64_t k = whole; k < size; ++k)
          total[i][j] += double{x[i * xStride + k]} * w[j * wStride + k];
        out[i * outStride + j] = static_cast<float>(total[i][j]);
      }
  }
};

/// All tiles of a product; the edges take tiles of one row.
template <int lanes, int xRows, int wRows> struct Tiles {
  [[gnu::always_inline]] static void run(RowsView x, RowsView w, int64_t size,
                                         float *out, int64_t outStride) {
    const int64_t wholeX = x.count - x.count % xRows;
    const int64_t wholeW = w.count - w.count % wRows;
    for (int64_t m = 0; m < wholeW; m += wRows) {
      const float *right = w.data + m * w.stride;
      for (int64_t n = 0; n < wholeX; n += xRows)
        Tile<lanes, xRows, wRows>::run(x.data + n * x.stride, x.stride, right,
                                       w.stride, size, out + n * outStride + m,
                                       outStride);
      for (int64_t n = wholeX; n < x.count; ++n)
        Tile<lanes, 1, wRows>::run(x.data + n * x.stride, x.stride, right,
                                   w.stride, size, out + n * outStride + m,
                                   outStride);
    }
    for (int64_t m = wholeW; m < w.count; ++m)
      for (int64_t n = 0; n < x.count; ++n)
        Tile<lanes, 1, 1>::run(x.data + n * x.stride, x.stride,
                               w.data + m * w.stride, w.stride, size,
                               out + n * outStride + m, outStride);
  }
};

} // namespace

#if defined(__x86_64__)

// 16 sums and 5 operands in the 32 vector registers of AVX-512; 8 and 5 in the
// 16 of AVX2.
[[gnu::target("avx512f")]] static void productAvx512(RowsView x, RowsView w,
                                                     int64_t size, float *out,
                                                     int64_t outStride) {
  Tiles<16, 4, 4>::run(x, w, size, out, outStride);
}

[[gnu::target("avx2,fma")]] static void productAvx2(RowsView x, RowsView w,
                                                    int64_t size, float *out,
                                                    int64_t outStride) {
  Tiles<8, 2, 4>::run(x, w, size, out, outStride);
}

#endif

static void productPortable(RowsView x, RowsView w, int64_t size, float *out,
                            int64_t outStride) {
  Tiles<4, 2, 4>::run(x, w, size, out, outStride);
}

std::vector<ProductVariant> productVariants() {
  std::vector<ProductVariant> variants;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    variants.push_back({"avx512", productAvx512});
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    variants.push_back({"avx2", productAvx2});
#endif
  variants.push_back({"portable", productPortable});
  return variants;
}

void productOfRows(RowsView x, RowsView w, int64_t size, float *out,
                   int64_t outStride) {
  static const ProductVariant fastest = productVariants().front();
  fastest.compute(x, w, size, out, outStride);
}

} // namespace llamac::reference
