//===- Fp8.h - Blocks of 8-bit floats ---------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MXFP8 of the OCP Microscaling formats (MX) specification v1.0, with elements
// in E4M3: 32 elements share a scale, and a value is scale * element. Stored
// are 33 bytes, the scale and then the elements in their order.
//
//   E8M0   8 bits of exponent: 2^(e - 127); 0xff is NaN
//   E4M3   sign, 4 bits of exponent with a bias of 7, 3 of fraction: up to 448,
//          normal down to 2^-6, subnormal in units of 2^-9; no infinities,
//          s.1111.111 is NaN
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_FORMATS_FP8_H
#define LLAMAC_RUNTIME_FORMATS_FP8_H

#include <bit>
#include <cstdint>
#include <limits>

namespace llamac {

constexpr int mxfp8Elements = 32;
constexpr uint8_t e8m0Nan = 0xff;

inline bool isE4m3Nan(uint8_t bits) { return (bits & 0x7f) == 0x7f; }

inline float e4m3ToF32(uint8_t bits) {
  if (isE4m3Nan(bits))
    return std::numeric_limits<float>::quiet_NaN();
  // The exponent is moved to fp32's place and scaled by 2^120, the difference
  // of the biases; the product also normalises subnormal elements.
  const float magnitude =
      std::bit_cast<float>(uint32_t{bits & 0x7fu} << 20) * 0x1p120f;
  return bits & 0x80 ? -magnitude : magnitude;
}

inline float e8m0ToF32(uint8_t bits) {
  if (bits == e8m0Nan)
    return std::numeric_limits<float>::quiet_NaN();
  // 2^-127 is subnormal in fp32.
  return std::bit_cast<float>(bits ? uint32_t{bits} << 23 : 0x00400000u);
}

/// Rounds to nearest, ties to even; values beyond 448 become 448. `value` is no
/// NaN.
uint8_t f32ToE4m3(float value);

/// The scale of the block at `stored`, but NaN if one of the elements is: so
/// that kernels, whose sums are NaN either way, need not look at elements.
inline uint8_t mxfp8ScaleWithNan(const uint8_t *stored) {
  for (int i = 0; i < mxfp8Elements; ++i)
    if (isE4m3Nan(stored[1 + i]))
      return e8m0Nan;
  return stored[0];
}

/// The 32 values of the block at `in`.
void dequantizeMxfp8(const uint8_t *in, float *out);

/// The block of 32 values, each rounded to nearest. The scale is the least
/// power of two at which no value is beyond 448 after rounding: the
/// specification's own, floor(log2(amax)) - 8, or twice that. A block with a
/// value that is not finite has the scale NaN.
void quantizeMxfp8(const float *in, uint8_t *out);

} // namespace llamac

#endif // LLAMAC_RUNTIME_FORMATS_FP8_H
