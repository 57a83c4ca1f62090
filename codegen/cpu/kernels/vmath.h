//===- vmath.h - Elementary functions on 16 lanes ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reductions and elementary functions in f32. A NaN gives a NaN, and results
// overflow to infinity and underflow to zero as the functions do.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CPU_VMATH_H
#define LLAMAC_CPU_VMATH_H

#include "llamac/ExpKind.h"
#include "llamac/cpu/simd.h"

namespace llamac::cpu {

/// The sum of the lanes, halving the vector each time: one order everywhere.
LLAMAC_INLINE float sumLanes(F32x16 v) {
  auto a = v.lo + v.hi;
  auto b = a.lo + a.hi;
  auto c = b.lo + b.hi;
  return c.x + c.y;
}

/// The larger of each lane; for numbers that are known not to be NaN.
template <class V> LLAMAC_INLINE V max(V a, V b) { return a > b ? a : b; }

/// The largest lane; for numbers that are known not to be NaN.
LLAMAC_INLINE float maxLanes(F32x16 v) {
  auto eight = max(v.lo, v.hi);
  auto four = max(eight.lo, eight.hi);
  auto two = max(four.lo, four.hi);
  return two.x > two.y ? two.x : two.y;
}

/// e^x within about 1 ulp: x = n ln 2 + r with |r| <= ln 2 / 2, a polynomial
/// for e^r (the Taylor series, whose next term is below 2^-27), and a scaling
/// by 2^n.
LLAMAC_INLINE F32x16 exp(F32x16 x) {
  // Beyond these the result is 0 or infinity; a NaN passes both comparisons.
  x = x < -104.0f ? F32x16(-104.0f) : x;
  x = x > 89.0f ? F32x16(89.0f) : x;
  constexpr float magic = 0x1.8p23f; // Adding it rounds to an integer.
  F32x16 n = fma(x, splat(0x1.715476p+0f), splat(magic)) - magic;
  F32x16 r = fma(n, splat(-0x1.62e400p-1f), x); // ln 2 in two parts
  r = fma(n, splat(-0x1.7f7d1cp-20f), r);
  F32x16 p = splat(1.0f / 5040);
  p = fma(p, r, splat(1.0f / 720));
  p = fma(p, r, splat(1.0f / 120));
  p = fma(p, r, splat(1.0f / 24));
  p = fma(p, r, splat(1.0f / 6));
  p = fma(p, r, splat(0.5f));
  p = fma(p, r, splat(1.0f));
  p = fma(p, r, splat(1.0f));
  return scaleByPowerOfTwo(p, n);
}

/// 2^(i / 256) of i in 0 .. 255.
struct Exp2Table {
  float values[256];

  constexpr Exp2Table() : values() {
    for (int i = 0; i < 256; ++i) {
      double sum = 1, term = 1; // The Taylor series of e^(i ln 2 / 256).
      for (int n = 1; n < 20; ++n)
        sum += term *= i * (0.69314718055994531 / 256) / n;
      values[i] = static_cast<float>(sum);
    }
  }
};
alignas(64) constexpr Exp2Table exp2Table;

/// e^x for x of at most 0 as `kind` says.
template <ExpKind kind> LLAMAC_INLINE F32x16 expOfScore(F32x16 x) {
  if constexpr (kind == ExpKind::Exact) {
    return exp(x);
  } else {
    x = x < -104.0f ? F32x16(-104.0f) : x; // A NaN passes.
    constexpr float log2e = 0x1.715476p+0f;
    constexpr float magic = 0x1.8p23f; // Adding it rounds to an integer.
    if constexpr (kind == ExpKind::Poly3) {
      F32x16 n = (fma(x, splat(log2e), splat(-0.5f)) + magic) - magic;
      F32x16 f = fma(x, splat(log2e), -n); // In [0, 1].
      F32x16 p = fma(splat(exp2PolyC), f, splat(exp2PolyB));
      p = fma(p, f, splat(exp2PolyA));
      return scaleByPowerOfTwo(fma(p, f, splat(1.0f)), n);
    } else {
      F32x16 rounded = fma(x, splat(256 * log2e), splat(magic));
      F32x16 r = fma(x, splat(256 * log2e), -(rounded - magic));
      I32x16 index = bits<I32x16>(rounded) & 255;
      F32x16 p;
      for (int lane = 0; lane < 16; ++lane)
        p[lane] = exp2Table.values[index[lane]];
      F32x16 n = (rounded - magic) - __builtin_convertvector(index, F32x16);
      return scaleByPowerOfTwo(fma(p * r, splat(0x1.62e430p-1f / 256), p),
                               n * (1.0f / 256));
    }
  }
}

/// x / (1 + e^-x).
LLAMAC_INLINE F32x16 silu(F32x16 x) { return x / (1.0f + exp(-x)); }

/// x / 2 * (1 + tanh(u)) = x / (1 + e^-2u), u = sqrt(2 / pi) * (x + 0.044715
/// x^3).
LLAMAC_INLINE F32x16 geluTanh(F32x16 x) {
  constexpr float twice = 2 * 0.797884561f;
  return x / (1.0f + exp(-twice * fma(splat(0.044715f), x * x * x, x)));
}

} // namespace llamac::cpu

#endif // LLAMAC_CPU_VMATH_H
