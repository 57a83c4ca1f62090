//===- Dequantize.cpp - Stored elements to fp32 ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One function a format, each turning one block into blockElements floats.
// Notation: d is a block's scale, m its minimum, both halves in the file; q a
// stored integer. In the 32-element formats, byte i of the nibbles holds
// element i in its low half and element i + 16 in its high half. In the K
// formats (256 elements) groups of 32 or 16 have 6-bit scales of their own.
//
//===----------------------------------------------------------------------===//

#include "runtime/formats/Dequantize.h"

#include "runtime/base/CodeBooks.h"
#include "runtime/formats/FloatBits.h"
#include "runtime/formats/Fp8.h"

#include <cstring>

namespace llamac {

/// Writes the elements of the block of `type` at `in`.
template <DataType type> void dequantizeBlock(const uint8_t *in, float *out);

static float loadHalf(const uint8_t *in) {
  uint16_t bits;
  std::memcpy(&bits, in, sizeof(bits));
  return f16ToF32(bits);
}

// y = d q.
template <>
void dequantizeBlock<DataType::Q8_0>(const uint8_t *in, float *out) {
  const float d = loadHalf(in);
  for (int i = 0; i < 32; ++i)
    out[i] = d * static_cast<float>(static_cast<int8_t>(in[2 + i]));
}

// y = d (q - 8) in Q4_0, d (q - 16) in Q5_0, d q + m in Q4_1 and Q5_1. In Q5
// bit i of a word is the fifth of element i.
template <bool hasMin, bool hasFifthBit>
static void dequantizeNibbles(const uint8_t *in, float *out) {
  constexpr int middle = hasMin ? 0 : hasFifthBit ? 16 : 8;
  const float d = loadHalf(in);
  const float m = hasMin ? loadHalf(in + 2) : 0;
  in += hasMin ? 4 : 2;
  uint32_t high = 0;
  if (hasFifthBit)
    std::memcpy(&high, in, sizeof(high));
  in += hasFifthBit ? sizeof(high) : 0;
  const auto value = [&](int nibble, int i) {
    const int fifth = static_cast<int>((high >> i) & 1) << 4;
    const auto q =
        static_cast<float>((hasFifthBit ? nibble | fifth : nibble) - middle);
    return hasMin ? d * q + m : d * q;
  };
  for (int i = 0; i < 16; ++i) {
    out[i] = value(in[i] & 15, i);
    out[i + 16] = value(in[i] >> 4, i + 16);
  }
}

template <>
void dequantizeBlock<DataType::Q4_0>(const uint8_t *in, float *out) {
  dequantizeNibbles</*hasMin=*/false, /*hasFifthBit=*/false>(in, out);
}
template <>
void dequantizeBlock<DataType::Q4_1>(const uint8_t *in, float *out) {
  dequantizeNibbles<true, false>(in, out);
}
template <>
void dequantizeBlock<DataType::Q5_0>(const uint8_t *in, float *out) {
  dequantizeNibbles<false, true>(in, out);
}
template <>
void dequantizeBlock<DataType::Q5_1>(const uint8_t *in, float *out) {
  dequantizeNibbles<true, true>(in, out);
}

namespace {

// The 6-bit scale and minimum of group j (of 8) of a Q4_K or Q5_K block: the
// 12 bytes hold the low groups' six bits in bytes 0-3 and 4-7, the high groups'
// low nibbles in bytes 8-11 and their top two bits above the low groups'.
struct ScaleMin {
  uint8_t scale;
  uint8_t min;
};

} // namespace

static ScaleMin scaleMinK(const uint8_t *packed, int j) {
  if (j < 4)
    return {static_cast<uint8_t>(packed[j] & 63),
            static_cast<uint8_t>(packed[j + 4] & 63)};
  const uint8_t nibbles = packed[j + 4];
  return {static_cast<uint8_t>((nibbles & 15) | ((packed[j - 4] >> 6) << 4)),
          static_cast<uint8_t>((nibbles >> 4) | ((packed[j] >> 6) << 4))};
}

// y = d scale q - dmin min. Groups come in pairs: 32 bytes hold one group in
// the low nibbles and the next in the high ones. In Q5_K bit j of high byte i
// is the fifth bit of element i of group j.
template <bool hasFifthBit>
static void dequantizeGroups(const uint8_t *in, float *out) {
  const float d = loadHalf(in);
  const float dmin = loadHalf(in + 2);
  const uint8_t *high = in + 16;
  const uint8_t *nibbles = in + (hasFifthBit ? 48 : 16);
  for (int j = 0; j < 8; j += 2, nibbles += 32, out += 64) {
    const ScaleMin low = scaleMinK(in + 4, j);
    const ScaleMin up = scaleMinK(in + 4, j + 1);
    const float dLow = d * static_cast<float>(low.scale);
    const float mLow = dmin * static_cast<float>(low.min);
    const float dUp = d * static_cast<float>(up.scale);
    const float mUp = dmin * static_cast<float>(up.min);
    for (int i = 0; i < 32; ++i) {
      const int fifths = hasFifthBit ? high[i] >> j : 0;
      const int qLow = (nibbles[i] & 15) | (fifths & 1) << 4;
      const int qUp = (nibbles[i] >> 4) | (fifths & 2) << 3;
      out[i] = dLow * static_cast<float>(qLow) - mLow;
      out[i + 32] = dUp * static_cast<float>(qUp) - mUp;
    }
  }
}

template <>
void dequantizeBlock<DataType::Q4_K>(const uint8_t *in, float *out) {
  dequantizeGroups</*hasFifthBit=*/false>(in, out);
}
template <>
void dequantizeBlock<DataType::Q5_K>(const uint8_t *in, float *out) {
  dequantizeGroups<true>(in, out);
}

// y = d scale (q - 32), a signed 8-bit scale for each 16 elements. Each half of
// 128 elements has 64 bytes of low nibbles and 32 bytes of high bit pairs:
// quarter k (32 elements) takes nibble k / 2 of bytes 32 (k % 2) + i and bit
// pair k of byte i.
template <>
void dequantizeBlock<DataType::Q6_K>(const uint8_t *in, float *out) {
  const uint8_t *low = in;
  const uint8_t *high = in + 128;
  const uint8_t *scales = in + 192;
  const float d = loadHalf(in + 208);
  for (int half = 0; half < 2; ++half) {
    for (int k = 0; k < 4; ++k) {
      for (int i = 0; i < 32; ++i) {
        const int nibble = (low[32 * (k % 2) + i] >> (4 * (k / 2))) & 15;
        const int pair = (high[i] >> (2 * k)) & 3;
        const auto scale = static_cast<int8_t>(scales[2 * k + i / 16]);
        out[32 * k + i] = d * static_cast<float>(scale) *
                          static_cast<float>((nibble | (pair << 4)) - 32);
      }
    }
    low += 64;
    high += 32;
    scales += 8;
    out += 128;
  }
}

// y = d scale q - dmin min, 4 bits of scale and 4 of min for each 16 elements.
// Each half of 128 elements has 32 bytes: quarter k takes bit pair k of byte i.
template <>
void dequantizeBlock<DataType::Q2_K>(const uint8_t *in, float *out) {
  const float d = loadHalf(in + 80);
  const float dmin = loadHalf(in + 82);
  for (int i = 0; i < 256; ++i) {
    const int q = in[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const uint8_t both = in[i / 16];
    out[i] = d * static_cast<float>(both & 15) * static_cast<float>(q) -
             dmin * static_cast<float>(both >> 4);
  }
}

// y = d (scale - 32) (q - 4), a 6-bit scale for each 16 elements. Bit j of byte
// i of the first 32 is the third bit of element i of part j; the low pairs
// follow as in Q2_K. Of scale j, the low four bits are half j / 8 of byte j %
// 8, the high two quarter j / 4 of byte 8 + j % 4.
template <>
void dequantizeBlock<DataType::Q3_K>(const uint8_t *in, float *out) {
  const uint8_t *scales = in + 96;
  const float d = loadHalf(in + 108);
  for (int i = 0; i < 256; ++i) {
    const int low = in[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    const int third = in[i % 32] >> (i / 32) & 1;
    const int j = i / 16;
    const int scale = (scales[j % 8] >> (j / 8 * 4) & 15) |
                      (scales[8 + j % 4] >> (j / 4 * 2) & 3) << 4;
    out[i] = d * static_cast<float>(scale - 32) *
             static_cast<float>((low | third << 2) - 4);
  }
}

// y = d values[nibble].
static void dequantizePlaces(const signed char (&values)[16], float d,
                             const uint8_t *nibbles, float *out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(values[nibbles[i] & 15]);
    out[i + 16] = d * static_cast<float>(values[nibbles[i] >> 4]);
  }
}

template <>
void dequantizeBlock<DataType::IQ4_NL>(const uint8_t *in, float *out) {
  dequantizePlaces(iq4Values, loadHalf(in), in + 2, out);
}

// Eight such with d (scale - 32): of the 6 bits of scale j, the low four are in
// byte 4 + j / 2, the high two from bit 2 j of the word before.
template <>
void dequantizeBlock<DataType::IQ4_XS>(const uint8_t *in, float *out) {
  const float d = loadHalf(in);
  const int highs = in[2] | in[3] << 8;
  const uint8_t *places = in + 8;
  for (int j = 0; j < 8; ++j, places += 16, out += 32) {
    const int scale =
        (in[4 + j / 2] >> (j % 2 * 4) & 15) | (highs >> (2 * j) & 3) << 4;
    dequantizePlaces(iq4Values, d * static_cast<float>(scale - 32), places,
                     out);
  }
}

// y = 2^(e - 127) value[nibble] / 2.
template <>
void dequantizeBlock<DataType::MXFP4>(const uint8_t *in, float *out) {
  dequantizePlaces(mxfp4Values, e8m0ToF32(in[0]) * 0.5F, in + 1, out);
}

// y = d element.
static void dequantizeE4m3(float d, const uint8_t *elements, float *out) {
  for (int i = 0; i < e4m3BlockElements; ++i)
    out[i] = d * e4m3ToF32(elements[i]);
}

template <>
void dequantizeBlock<DataType::MXFP8>(const uint8_t *in, float *out) {
  dequantizeE4m3(e8m0ToF32(in[0]), in + 1, out);
}
template <> void dequantizeBlock<DataType::FP8>(const uint8_t *in, float *out) {
  dequantizeE4m3(loadHalf(in) * fp8Unit, in + 2, out);
}

template <> void dequantizeBlock<DataType::F32>(const uint8_t *in, float *out) {
  std::memcpy(out, in, sizeof(float));
}
template <> void dequantizeBlock<DataType::F16>(const uint8_t *in, float *out) {
  *out = loadHalf(in);
}
template <>
void dequantizeBlock<DataType::BF16>(const uint8_t *in, float *out) {
  uint16_t bits;
  std::memcpy(&bits, in, sizeof(bits));
  *out = bf16ToF32(bits);
}

template <DataType type, int64_t elements, int64_t bytes>
static void dequantizeBlocks(const uint8_t *in, int64_t n, float *out) {
  for (int64_t i = 0; i < n; i += elements, in += bytes, out += elements)
    dequantizeBlock<type>(in, out);
}

void dequantizeRow(DataType type, const uint8_t *in, int64_t n, float *out) {
  static constexpr void (*rows[])(const uint8_t *, int64_t, float *) = {
#define LLAMAC_ELEMENT_TYPE(ID, NAME, BLOCK, BYTES, ...)                       \
  dequantizeBlocks<DataType::ID, BLOCK, BYTES>,
#include "runtime/base/ElementTypes.def"
  };
  rows[static_cast<size_t>(type)](in, n, out);
}

} // namespace llamac
