//===- Fp8.h - Blocks of 8-bit floats ---------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In both formats 32 elements in E4M3 share a scale, which is stored before
// them:
//
//   MXFP8  33 bytes, a scale in E8M0: scale * element
//   FP8    34 bytes, a scale d in f16: d * 2^-8 * element
//
//   E8M0   8 bits of exponent: 2^(e - 127); 0xff is NaN
//   E4M3   sign, 4 bits of exponent with a bias of 7, 3 of fraction: up to 448,
//          normal down to 2^-6, subnormal in units of 2^-9; no infinities,
//          s.1111.111 is NaN
//
// MXFP8, E8M0 and E4M3 are those of the OCP Microscaling formats (MX)
// specification v1.0. FP8 is llamac's own, for checkpoints whose scales are any
// numbers. Such a scale is the largest magnitude of its weights over 448, about
// 1e-4 to 1e-3, where f16 runs out of normal numbers at 6.1e-5; times 2^8 it is
// one from 2.4e-7 to 255.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_FORMATS_FP8_H
#define LLAMAC_RUNTIME_FORMATS_FP8_H

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

namespace llamac {

constexpr int e4m3BlockElements = 32;
constexpr uint8_t e8m0Nan = 0xff;

/// The unit of the scales of FP8.
constexpr float fp8Unit = 0x1p-8f;

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

/// Copies the scale of `bytes` bytes of the block at `stored`, but all ones,
/// which are NaN in E8M0 and f16, if one of the elements is NaN: so that
/// kernels, whose sums are NaN either way, need not look at elements.
inline void copyScaleWithNan(const uint8_t *stored, int bytes, uint8_t *to) {
  const uint8_t *elements = stored + bytes;
  if (std::any_of(elements, elements + e4m3BlockElements, isE4m3Nan))
    std::memset(to, 0xff, bytes);
  else
    std::memcpy(to, stored, bytes);
}

/// The block of 32 values, each rounded to nearest. The scale is the least
/// power of two at which no value is beyond 448 after rounding: the
/// specification's own, floor(log2(amax)) - 8, or twice that. A block with a
/// value that is not finite has the scale NaN.
void quantizeMxfp8(const float *in, uint8_t *out);

/// The block of 32 values in FP8, each rounded to nearest. The scale is the
/// least number of f16 at which no value is beyond 448. A block with a value
/// that is not finite has the scale NaN.
void quantizeFp8(const float *in, uint8_t *out);

} // namespace llamac

#endif // LLAMAC_RUNTIME_FORMATS_FP8_H
