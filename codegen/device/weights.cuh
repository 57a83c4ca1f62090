//===- weights.cuh - Packed weights in registers ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A lane reads 16 bytes of packed values (config.h) and unpacks them to floats
// four at a time. The integers of the block formats become floats without a
// conversion: the bits of q, put where a float of the right exponent has its
// unit, make the float 2^n + q, and one subtraction leaves q. E4M3 becomes half
// precision first, two elements at a time.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_WEIGHTS_CUH
#define LLAMAC_CODEGEN_DEVICE_WEIGHTS_CUH

#include "llamac/config.h"
#include "llamac/ptx.cuh"

namespace llamac::cuda {

/// The power of two 2^(e - 127); 255 is NaN.
LLAMAC_DEVICE float e8m0ToFloat(uint32_t e) {
  // 2^-127 is subnormal; all ones are NaN.
  return bitCast<float>(e << 23 | ((e + 1 & 255) < 2 ? 0x00400000u : 0));
}

/// Two E4M3 elements, bytes 0 and 2 of `word`, as halves. Bits of an element
/// where those of a half are make it 2^-8 of itself, a subnormal one included;
/// a NaN becomes 480.
LLAMAC_DEVICE uint32_t e4m3ToHalf2ByBits(uint32_t word) {
  const uint32_t scaled = (word << 7 & 0x3f803f80u) | (word << 8 & 0x80008000u);
  return fmaHalf2(scaled, 0x5c005c00u, 0x80008000u); // * 256 + -0
}

/// The four E4M3 elements of `word` by their bits, for GPUs that do not convert
/// them.
LLAMAC_DEVICE Vec<float, 4> e4m3ToFloatByBits(uint32_t word) {
  const uint32_t even = e4m3ToHalf2ByBits(word);
  const uint32_t odd = e4m3ToHalf2ByBits(word >> 8);
  return {lowHalfToFloat(even), lowHalfToFloat(odd), highHalfToFloat(even),
          highHalfToFloat(odd)};
}

/// 16 bytes of values and what they are scaled by: w = scale * q + offset.
template <WeightFormat format> struct WeightChunk {
  Words4 values;
  uint32_t scales; ///< f16 d, f16 {d, m} for Q4_1, or E8M0 for MXFP8.

  LLAMAC_DEVICE float scale() const {
    if constexpr (format == WeightFormat::MXFP8)
      return e8m0ToFloat(scales);
    return toFloat(Half{static_cast<uint16_t>(scales)});
  }
  LLAMAC_DEVICE float offset() const {
    return toFloat(Half{static_cast<uint16_t>(scales >> 16)});
  }
};

/// A matrix [outputs][depth] as it lies in memory.
template <WeightFormat format> struct PackedWeight {
  static constexpr int span = chunkElements(format);
  static constexpr bool scaled = hasScales(format);
  static constexpr bool shifted = format == WeightFormat::Q4_1;

  const uint8_t *base;
  long outputs;
  long depth;

  /// Elements span * chunk .. span * (chunk + 1) - 1 of row `output`.
  LLAMAC_DEVICE WeightChunk<format> load(long output, int chunk) const {
    const long rowBytes = valueRowBytes(format, depth);
    WeightChunk<format> result{loadReadOnly(reinterpret_cast<const Words4 *>(
                                   base + output * rowBytes + 16l * chunk)),
                               0};
    if constexpr (scaled)
      result.scales =
          scalesAt(base + scalesOffset(format, outputs, depth),
                   output * (depth / scaleBlock) + chunk * span / scaleBlock);
    return result;
  }

  /// Those of block `block` of a run of scales.
  static LLAMAC_DEVICE uint32_t scalesAt(const uint8_t *scales, long block) {
    if constexpr (shifted)
      return reinterpret_cast<const uint32_t *>(scales)[block];
    else if constexpr (format == WeightFormat::MXFP8)
      return scales[block];
    else
      return reinterpret_cast<const uint16_t *>(scales)[block];
  }
};

/// Byte `i` of `word` as a float, less 128.
LLAMAC_DEVICE float signedByte(uint32_t word, int i) {
  // 0x4b000000 is 2^23, whose last bit is worth 1.
  const uint32_t bits = prmt(word, 0x4b000000u, 0x7440u + i);
  return bitCast<float>(bits) - (8388608.0f + 128.0f);
}

/// The 4 bits of `word` at `4 * i` as a float, less `bias`.
template <int i> LLAMAC_DEVICE float nibble(uint32_t word, float bias) {
  // 2^(23 - p) has a unit at bit p; three of the eight must move to reach one.
  constexpr int shift = i < 5 ? 0 : 20;
  constexpr int place = 4 * i - shift;
  constexpr uint32_t unit = (127u + 23u - place) << 23;
  const uint32_t bits = (word >> shift & 0xfu << place) | unit;
  return bitCast<float>(bits) - (bitCast<float>(unit) + bias);
}

/// Elements 4 * part .. 4 * part + 3 of a chunk: the values of F16 and BF16, q
/// of the block formats (q - 8 for Q4_0). `part` is a constant in unrolled
/// loops.
template <WeightFormat format>
LLAMAC_DEVICE Vec<float, 4> decode(const WeightChunk<format> &chunk, int part) {
  if constexpr (format == WeightFormat::BF16) {
    const uint32_t low = chunk.values[2 * part];
    const uint32_t high = chunk.values[2 * part + 1];
    return {lowBf16ToFloat(low), highBf16ToFloat(low), lowBf16ToFloat(high),
            highBf16ToFloat(high)};
  } else if constexpr (format == WeightFormat::F16) {
    Vec<float, 4> result;
    for (int i = 0; i < 4; ++i)
      result[i] = toFloat(Half{static_cast<uint16_t>(
          chunk.values[2 * part + i / 2] >> 16 * (i % 2))});
    return result;
  } else if constexpr (format == WeightFormat::Q8_0) {
    const uint32_t word = chunk.values[part];
    return {signedByte(word, 0), signedByte(word, 1), signedByte(word, 2),
            signedByte(word, 3)};
  } else if constexpr (format == WeightFormat::MXFP8) {
    const uint32_t word = chunk.values[part];
#if LLAMAC_HAS_SM89
    const uint32_t low = e4m3x2ToHalf2(word);
    const uint32_t high = e4m3x2ToHalf2(word >> 16);
    return {lowHalfToFloat(low), highHalfToFloat(low), lowHalfToFloat(high),
            highHalfToFloat(high)};
#else
    return e4m3ToFloatByBits(word);
#endif
  } else {
    constexpr float bias = format == WeightFormat::Q4_0 ? 8.0f : 0.0f;
    const uint32_t word = chunk.values[part / 2];
    if (part % 2 == 0)
      return {nibble<0>(word, bias), nibble<1>(word, bias),
              nibble<2>(word, bias), nibble<3>(word, bias)};
    return {nibble<4>(word, bias), nibble<5>(word, bias), nibble<6>(word, bias),
            nibble<7>(word, bias)};
  }
}

/// Words of packed values that are 8 elements of an integer format.
template <WeightFormat format>
constexpr int eightWords = 8 * 4 / chunkElements(format);

/// Element 2 * i, or 2 * i + 1 with `second`, of what eightAsHalf() gives:
/// 4-bit elements come in pairs that lie 16 bits apart.
template <WeightFormat format>
LLAMAC_DEVICE constexpr int halfOrder(int i, bool second) {
  return format == WeightFormat::Q8_0 ? 2 * i + second : i + 4 * second;
}

/// 8 elements of an integer format as pairs of halves, without their scale: q,
/// less 8 for Q4_0. The bits of q, put where a half of the right exponent has
/// its unit, make the half 2^n + q; a multiply-add makes two of them exact.
template <WeightFormat format>
LLAMAC_DEVICE Words4 eightAsHalf(const uint32_t *words) {
  static_assert(hasScales(format) && format != WeightFormat::MXFP8);
  constexpr uint32_t one = 0x3c003c00u;
  if constexpr (format == WeightFormat::Q8_0) {
    // 1024 + byte; less 1024 + 128.
    constexpr uint32_t unit = 0x64646464u, less = 0xe480e480u;
    return {fmaHalf2(prmt(words[0], unit, 0x4140u), one, less),
            fmaHalf2(prmt(words[0], unit, 0x4342u), one, less),
            fmaHalf2(prmt(words[1], unit, 0x4140u), one, less),
            fmaHalf2(prmt(words[1], unit, 0x4342u), one, less)};
  } else {
    constexpr bool centred = format == WeightFormat::Q4_0;
    // 1024 + q; less 1024 and the bias.
    constexpr uint32_t unit = 0x64006400u;
    constexpr uint32_t less = centred ? 0xe408e408u : 0xe400e400u;
    // 1024 + 16 q; times 1/16, less 64 and the bias.
    constexpr uint32_t sixteenth = 0x2c002c00u;
    constexpr uint32_t lessHigh = centred ? 0xd480d480u : 0xd400d400u;
    constexpr uint32_t low = 0x000f000fu, high = 0x00f000f0u;
    constexpr uint32_t andOr = (0xf0 & 0xcc) | 0xaa;
    const uint32_t word = words[0], rest = words[0] >> 8;
    return {fmaHalf2(lop3<andOr>(word, low, unit), one, less),
            fmaHalf2(lop3<andOr>(word, high, unit), sixteenth, lessHigh),
            fmaHalf2(lop3<andOr>(rest, low, unit), one, less),
            fmaHalf2(lop3<andOr>(rest, high, unit), sixteenth, lessHigh)};
  }
}

/// As decode(), scaled: the weights themselves.
template <WeightFormat format>
LLAMAC_DEVICE Vec<float, 4> weightsOf(const WeightChunk<format> &chunk,
                                      int part) {
  Vec<float, 4> result = decode(chunk, part);
  if constexpr (PackedWeight<format>::scaled) {
    const float scale = chunk.scale();
    const float offset = PackedWeight<format>::shifted ? chunk.offset() : 0.0f;
    for (int i = 0; i < 4; ++i)
      result[i] = fma(result[i], scale, offset);
  }
  return result;
}

/// d * q, where `bits` are those of the float 2^n + bias + q: one fma takes off
/// d * (2^n + bias). That is exact, and so is d * q, as long as 2^n + bias has
/// 13 bits from its first to its last one: an f16 d has 11 more of 24.
LLAMAC_DEVICE float lessBias(uint32_t bits, float unitAndBias, float scale) {
  return fma(bitCast<float>(bits), scale, -unitAndBias * scale);
}

/// Byte `i` of `word`, less 128, times `scale`.
LLAMAC_DEVICE float scaledByte(uint32_t word, int i, float scale) {
  // 0x47000000 is 2^15, whose second byte is worth 1.
  return lessBias(prmt(word, 0x47000000u, 0x7404u + 16 * i), 32768.0f + 128.0f,
                  scale);
}

/// The 4 bits of `word` at `4 * i`, less 8, times `scale`: moved, where that is
/// needed, to bit 8, 12 or 16 of a float, of whose 2^n + 8 the bits are few.
template <int i> LLAMAC_DEVICE float scaledNibble(uint32_t word, float scale) {
  constexpr int place = i < 2 ? 4 * i + 8 : i < 5 ? 4 * i : 4 * i - 12;
  constexpr uint32_t unit = (127u + 23u - place) << 23;
  const uint32_t moved = i < 2 ? word << 8 : i < 5 ? word : word >> 12;
  return lessBias(lop3<0xea>(moved, 0xfu << place, unit),
                  bitCast<float>(unit) + 8.0f, scale);
}

/// Elements 8 * part .. 8 * part + 7 of a chunk as bf16.
template <WeightFormat format>
LLAMAC_DEVICE Words4 eightAsBf16(const WeightChunk<format> &chunk, int part) {
  if constexpr (format == WeightFormat::BF16)
    return chunk.values;
  const float d = chunk.scale();
  if constexpr (format == WeightFormat::Q8_0) {
    Words4 result;
    for (int i = 0; i < 4; ++i) {
      const uint32_t word = chunk.values[2 * part + i / 2];
      result[i] = packBf16(scaledByte(word, i % 2 * 2, d),
                           scaledByte(word, i % 2 * 2 + 1, d));
    }
    return result;
  }
  if constexpr (format == WeightFormat::Q4_0) {
    const uint32_t word = chunk.values[part];
    return {packBf16(scaledNibble<0>(word, d), scaledNibble<1>(word, d)),
            packBf16(scaledNibble<2>(word, d), scaledNibble<3>(word, d)),
            packBf16(scaledNibble<4>(word, d), scaledNibble<5>(word, d)),
            packBf16(scaledNibble<6>(word, d), scaledNibble<7>(word, d))};
  }
  const Vec<float, 4> a = weightsOf(chunk, 2 * part);
  const Vec<float, 4> b = weightsOf(chunk, 2 * part + 1);
  return {packBf16(a[0], a[1]), packBf16(a[2], a[3]), packBf16(b[0], b[1]),
          packBf16(b[2], b[3])};
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_WEIGHTS_CUH
