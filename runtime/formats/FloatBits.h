//===- FloatBits.h - Conversions between float formats -------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// IEEE half and bfloat16 to fp32 and back by integer arithmetic, so that the
// result is the same on every machine and loops over them vectorise. Narrowing
// rounds to nearest, ties to even; a NaN stays a (quiet) NaN.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_FORMATS_FLOATBITS_H
#define LLAMAC_RUNTIME_FORMATS_FLOATBITS_H

#include "absl/types/span.h"

#include <bit>
#include <cstdint>

namespace llamac {

inline float bf16ToF32(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

inline uint16_t f32ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float f16ToF32(uint16_t bits) {
  // The exponent is moved to fp32's place and scaled by 2^112, the difference
  // of the biases; the product also normalises subnormal halves. An exponent
  // of all ones (Inf, NaN) takes fp32's all ones instead.
  const uint32_t magnitude = uint32_t{bits & 0x7fffu} << 13;
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t finite =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  const uint32_t special = magnitude | 0x7f800000u;
  return std::bit_cast<float>(sign |
                              (magnitude >= 0x0f800000u ? special : finite));
}

inline uint16_t f32ToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) // Rounds to 65520 or more, or is infinite.
    return sign | 0x7c00u;
  if (magnitude < 0x38800000u) {
    // A subnormal half counts units of 2^-24: adding 0.5 brings the unit to
    // the last bit of the sum, which fp32's own rounding then decides.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5f)));
  }
  const uint32_t rounded =
      magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | (rounded >> 13));
}

inline bool isFinite(float value) {
  // The exponent of an infinity or NaN is all ones.
  return (std::bit_cast<uint32_t>(value) & 0x7f800000u) != 0x7f800000u;
}

inline bool allFinite(absl::Span<const float> values) {
  bool result = true; // Without a branch in the loop.
  for (const float value : values)
    result &= isFinite(value);
  return result;
}

} // namespace llamac

#endif // LLAMAC_RUNTIME_FORMATS_FLOATBITS_H
