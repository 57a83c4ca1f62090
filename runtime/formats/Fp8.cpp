//===- Fp8.cpp - Blocks of 8-bit floats -----------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/formats/Fp8.h"

#include "runtime/formats/FloatBits.h"

#include <algorithm>
#include <cmath>

namespace llamac {

uint8_t f32ToE4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 24 & 0x80;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x43e00000u) // 448
    return static_cast<uint8_t>(sign | 0x7e);
  if (magnitude < 0x3c800000u) { // 2^-6
    // Adding 2^14 brings the unit 2^-9 to the last bit of the sum, which fp32's
    // own rounding then decides.
    const float sum = std::bit_cast<float>(magnitude) + 0x1p14f;
    return static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(sum) -
                                        std::bit_cast<uint32_t>(0x1p14f)));
  }
  const uint32_t rounded =
      magnitude - (120u << 23) + 0x7ffffu + (magnitude >> 20 & 1);
  return static_cast<uint8_t>(sign | rounded >> 20);
}

/// The largest magnitude of a block; NaN if a value is not finite.
static float largestOf(const float *in) {
  float largest = 0;
  bool isFinite = true;
  for (int i = 0; i < e4m3BlockElements; ++i) {
    largest = std::max(largest, std::fabs(in[i]));
    isFinite = isFinite && std::isfinite(in[i]);
  }
  return isFinite ? largest : std::numeric_limits<float>::quiet_NaN();
}

/// The scale for numbers up to `largest`, as E8M0.
static int scaleFor(float largest) {
  // Above 464 = 1.8125 * 2^8, which ties to 448, rounding would pass 448.
  constexpr uint32_t most = 0x43e80000u & 0x7fffff;
  const uint32_t bits = std::bit_cast<uint32_t>(largest);
  const int exponent = static_cast<int>(bits >> 23) - 8;
  return std::max(exponent + ((bits & 0x7fffff) > most ? 1 : 0), 0);
}

void quantizeMxfp8(const float *in, uint8_t *out) {
  const float largest = largestOf(in);
  const bool isFinite = std::isfinite(largest);
  // Zeros have the scale 1.
  const int scale = !isFinite ? e8m0Nan : largest > 0 ? scaleFor(largest) : 127;
  out[0] = static_cast<uint8_t>(scale);
  // 2^(127 - scale); what it makes subnormal rounds to 0 anyway.
  const float inverse =
      isFinite ? e8m0ToF32(static_cast<uint8_t>(254 - scale)) : 0;
  for (int i = 0; i < e4m3BlockElements; ++i)
    out[1 + i] = isFinite ? f32ToE4m3(in[i] * inverse) : 0;
}

void quantizeFp8(const float *in, uint8_t *out) {
  // The largest value of a block whose d is 1.
  constexpr float most = 448 * fp8Unit;
  constexpr uint16_t largestHalf = 0x7bff;
  const float largest = largestOf(in);
  const bool isFinite = std::isfinite(largest);
  uint16_t scale = 0xffff;
  if (isFinite) {
    // Zeros have the scale 1.
    scale = f32ToF16(largest > 0 ? largest / most : 1 / fp8Unit);
    if (f16ToF32(scale) * most < largest)
      ++scale;
    scale = std::min(scale, largestHalf);
  }
  std::memcpy(out, &scale, sizeof scale);
  const float unit = f16ToF32(scale) * fp8Unit;
  for (int i = 0; i < e4m3BlockElements; ++i)
    out[2 + i] = isFinite ? f32ToE4m3(in[i] / unit) : 0;
}

} // namespace llamac
