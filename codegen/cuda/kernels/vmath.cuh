//===- vmath.cuh - Pairs of floats ------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Epilogues and pointwise functions take two neighbouring columns at a time:
// what a thread has of a tensor core's result, and what RoPE rotates.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_VMATH_CUH
#define LLAMAC_CODEGEN_DEVICE_VMATH_CUH

#include "llamac/launch_shape.h"
#include "llamac/ptx.cuh"

namespace llamac::cuda {

using llamac::BFloat16;
using llamac::LaneBFloat16;

/// Two columns of one row.
struct alignas(8) F32x2 {
  float x;
  float y;
};

LLAMAC_DEVICE F32x2 splat(float value) { return {value, value}; }

LLAMAC_DEVICE F32x2 operator+(F32x2 a, F32x2 b) {
  return {a.x + b.x, a.y + b.y};
}
LLAMAC_DEVICE F32x2 operator-(F32x2 a, F32x2 b) {
  return {a.x - b.x, a.y - b.y};
}
LLAMAC_DEVICE F32x2 operator*(F32x2 a, F32x2 b) {
  return {a.x * b.x, a.y * b.y};
}
LLAMAC_DEVICE F32x2 operator/(F32x2 a, F32x2 b) {
  return {a.x / b.x, a.y / b.y};
}

using llamac::fma;

/// a * b + c of each column.
LLAMAC_DEVICE F32x2 fma(F32x2 a, F32x2 b, F32x2 c) {
  return {fma(a.x, b.x, c.x), fma(a.y, b.y, c.y)};
}

/// a.x * b.x + a.y * b.y + c, of two multiply-adds.
LLAMAC_DEVICE float dot(F32x2 a, F32x2 b, float c) {
  return fma(a.y, b.y, fma(a.x, b.x, c));
}

/// The pair at `p`, which is aligned to 8 bytes.
LLAMAC_DEVICE F32x2 load2(const float *p) { return vectorAt<const F32x2>(p); }
LLAMAC_DEVICE void store2(float *p, F32x2 value) { vectorAt<F32x2>(p) = value; }

/// Stores the pair rounded to bf16 at `p`, which is aligned to 4 bytes.
LLAMAC_DEVICE void store2(BFloat16 *p, F32x2 value) {
  vectorAt<uint32_t>(p) = packBf16(value.x, value.y);
}

/// Rows begin at multiples of 32 bytes, so that the pair's number of eight,
/// bits 2 to 4 of its address, is rotated.
LLAMAC_DEVICE void store2(LaneBFloat16 *p, F32x2 value) {
  const auto at = reinterpret_cast<uint64_t>(p);
  const uint64_t lies = (at & ~uint64_t{31}) | (at >> 1 & 12) | (at & 4) << 2;
  vectorAt<uint32_t>(reinterpret_cast<LaneBFloat16 *>(lies)) =
      packBf16(value.x, value.y);
}

/// Columns `column`, which is even, and `column + 1` of a row of a matrix
/// [rows][width]. Rows of an odd width begin anywhere, and their last column
/// has a neighbour that is 0 and is not stored. What is stored is returned as
/// it was before it was rounded.
template <long width>
LLAMAC_DEVICE F32x2 loadPair(const float *matrix, long row, long column) {
  const float *at = matrix + row * width + column;
  if constexpr (width % 2 == 0)
    return load2(at);
  else
    return {at[0], column + 1 < width ? at[1] : 0.0f};
}
template <long width>
LLAMAC_DEVICE F32x2 storePair(BFloat16 *matrix, long row, long column,
                              F32x2 value) {
  static_assert(width % 2 == 0);
  store2(matrix + row * width + column, value);
  return value;
}
template <long width>
LLAMAC_DEVICE F32x2 storePair(LaneBFloat16 *matrix, long row, long column,
                              F32x2 value) {
  static_assert(width % 16 == 0);
  store2(matrix + row * width + column, value);
  return value;
}
template <long width>
LLAMAC_DEVICE F32x2 storePair(float *matrix, long row, long column,
                              F32x2 value) {
  float *at = matrix + row * width + column;
  if constexpr (width % 2 == 0) {
    store2(at, value);
  } else {
    at[0] = value.x;
    if (column + 1 < width)
      at[1] = value.y;
  }
  return value;
}

constexpr float log2e = 1.44269504f;
constexpr float minusInfinity = bitCast<float>(0xff800000u);

/// x / (1 + e^-x); -0 where e^-x is infinite.
LLAMAC_DEVICE float silu(float x) {
  return x * rcpApprox(1.0f + exp2Approx(-log2e * x));
}
LLAMAC_DEVICE F32x2 silu(F32x2 v) { return {silu(v.x), silu(v.y)}; }

/// x / 2 * (1 + tanh(u)) = x / (1 + e^-2u), u = sqrt(2 / pi) * (x + 0.044715
/// x^3).
LLAMAC_DEVICE float geluTanh(float x) {
  constexpr float factor = -log2e * 2 * 0.797884561f;
  return x *
         rcpApprox(1.0f + exp2Approx(factor * fma(0.044715f * x * x, x, x)));
}
LLAMAC_DEVICE F32x2 geluTanh(F32x2 v) { return {geluTanh(v.x), geluTanh(v.y)}; }

/// The extras of an epilogue that reads nothing beside the results of a
/// product. Results may go to where extras come from, so no compiler loads them
/// before an earlier store: an epilogue has load(row, column) for them, and
/// takes them behind its results.
struct NoExtras {};
template <class Epilogue>
concept LoadsExtras =
    requires(const Epilogue &epilogue) { epilogue.load(0l, 0l); };
template <class Epilogue>
LLAMAC_DEVICE auto extrasOf(const Epilogue &epilogue, long row, long column) {
  if constexpr (LoadsExtras<Epilogue>)
    return epilogue.load(row, column);
  else
    return NoExtras{};
}
template <class Epilogue>
using ExtrasOf =
    decltype(extrasOf(*static_cast<const Epilogue *>(nullptr), 0l, 0l));

/// epilogue(row, column, acc...) with the result of each weight, and with its
/// extras, if it has some.
template <int weights, class Epilogue>
LLAMAC_DEVICE auto applyEpilogue(const Epilogue &epilogue, long row,
                                 long column, const F32x2 (&acc)[weights],
                                 const ExtrasOf<Epilogue> &extras) {
  static_assert(weights <= 2);
  auto apply = [&](auto... results) {
    if constexpr (LoadsExtras<Epilogue>)
      return epilogue(row, column, results..., extras);
    else
      return epilogue(row, column, results...);
  };
  if constexpr (weights == 1)
    return apply(acc[0]);
  else
    return apply(acc[0], acc[1]);
}
template <int weights, class Epilogue>
LLAMAC_DEVICE auto applyEpilogue(const Epilogue &epilogue, long row,
                                 long column, const F32x2 (&acc)[weights]) {
  return applyEpilogue(epilogue, row, column, acc,
                       extrasOf(epilogue, row, column));
}

/// An epilogue that keeps results as they are, or rounds them to bf16: rows of
/// `width`.
template <long width, class Result = float> struct StoreRows {
  Result *out;

  LLAMAC_DEVICE F32x2 operator()(long row, long column, F32x2 acc) const {
    return storePair<width>(out, row, column, acc);
  }
};

/// An epilogue that adds a residual, which may be where the results go.
template <long width> struct AddRows {
  const float *residual;
  float *out;

  LLAMAC_DEVICE F32x2 load(long row, long column) const {
    return loadPair<width>(residual, row, column);
  }
  LLAMAC_DEVICE F32x2 operator()(long row, long column, F32x2 acc,
                                 F32x2 extra) const {
    return storePair<width>(out, row, column, extra + acc);
  }
};

/// An epilogue that gives what `epilogue` does, rows of `width`, to a norm too:
/// rounded to bf16 behind a product with the gain, and the sums of squares of
/// each squareColumns columns, which the caller adds up.
template <long width, class Epilogue, class Rounded> struct ForNextNorm {
  static_assert(width % squareColumns == 0);
  Epilogue epilogue;
  const float *gain; ///< [width].
  Rounded *rounded;
  float *squares; ///< [rows][width / squareColumns].

  struct Extras {
    ExtrasOf<Epilogue> own;
    F32x2 gain;
  };
  LLAMAC_DEVICE Extras load(long row, long column) const {
    return {extrasOf(epilogue, row, column), load2(gain + column)};
  }
  LLAMAC_DEVICE F32x2 operator()(long row, long column, F32x2 acc,
                                 const Extras &extras) const {
    const F32x2 results[] = {acc};
    const F32x2 value =
        applyEpilogue(epilogue, row, column, results, extras.own);
    storePair<width>(rounded, row, column, value * extras.gain);
    return value;
  }
  LLAMAC_DEVICE void storeSquares(long row, long column, float sum) const {
    squares[(row * width + column) / squareColumns] = sum;
  }
};

/// Takes the sums of squares of its results.
template <class Epilogue>
concept TakesSquares =
    requires(const Epilogue &epilogue) { epilogue.storeSquares(0l, 0l, 0.0f); };

/// The input of a product as it is: f32 [rows][depth], depth apart.
template <long depth> struct InputRows {
  static constexpr bool normalises = false;
  const float *x;

  LLAMAC_DEVICE const float *row(long index) const { return x + index * depth; }
};

/// 1 / sqrt(mean of squares + eps) of a row of `depth`.
template <long depth>
LLAMAC_DEVICE float normScale(float sumOfSquares, float eps) {
  return rsqrtApprox(sumOfSquares / static_cast<float>(depth) + eps);
}

/// The input of a product under RMSNorm: x / sqrt(mean(x^2) + eps) * gain. A
/// product multiplies by the gain before it sums, and by the rest, one number
/// for a row, after.
template <long depth> struct NormRows {
  static constexpr bool normalises = true;
  const float *x;
  const float *gain; ///< [depth].
  float eps;

  LLAMAC_DEVICE const float *row(long index) const { return x + index * depth; }
  LLAMAC_DEVICE float scale(float sumOfSquares) const {
    return normScale<depth>(sumOfSquares, eps);
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_VMATH_CUH
