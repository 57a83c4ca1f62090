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

#include "runtime/io/Dequantize.h"

#include "runtime/io/FloatBits.h"
#include "runtime/io/Mxfp8.h"

#include <cstring>

namespace llamac {

static float loadHalf(const uint8_t *in) {
  uint16_t bits;
  std::memcpy(&bits, in, sizeof(bits));
  return f16ToF32(bits);
}

// y = d q.
static void dequantizeQ8_0(const uint8_t *in, float *out) {
  const float d = loadHalf(in);
  for (int i = 0; i < 32; ++i)
    out[i] = d * static_cast<float>(static_cast<int8_t>(in[2 + i]));
}

// y = d (q - 8).
static void dequantizeQ4_0(const uint8_t *in, float *out) {
  const float d = loadHalf(in);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((in[2 + i] & 15) - 8);
    out[i + 16] = d * static_cast<float>((in[2 + i] >> 4) - 8);
  }
}

// y = d q + m.
static void dequantizeQ4_1(const uint8_t *in, float *out) {
  const float d = loadHalf(in);
  const float m = loadHalf(in + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(in[4 + i] & 15) + m;
    out[i + 16] = d * static_cast<float>(in[4 + i] >> 4) + m;
  }
}

// The fifth bit of element i of a Q5_0 or Q5_1 block, at its place.
static int fifthBit(uint32_t high, int i) {
  return static_cast<int>((high >> i) & 1) << 4;
}

// y = d (q - 16); q has its fifth bit in a word of 32 bits.
static void dequantizeQ5_0(const uint8_t *in, float *out) {
  const float d = loadHalf(in);
  uint32_t high;
  std::memcpy(&high, in + 2, sizeof(high));
  for (int i = 0; i < 16; ++i) {
    const int low = (in[6 + i] & 15) | fifthBit(high, i);
    const int up = (in[6 + i] >> 4) | fifthBit(high, i + 16);
    out[i] = d * static_cast<float>(low - 16);
    out[i + 16] = d * static_cast<float>(up - 16);
  }
}

// y = d q + m.
static void dequantizeQ5_1(const uint8_t *in, float *out) {
  const float d = loadHalf(in);
  const float m = loadHalf(in + 2);
  uint32_t high;
  std::memcpy(&high, in + 4, sizeof(high));
  for (int i = 0; i < 16; ++i) {
    const int low = (in[8 + i] & 15) | fifthBit(high, i);
    const int up = (in[8 + i] >> 4) | fifthBit(high, i + 16);
    out[i] = d * static_cast<float>(low) + m;
    out[i + 16] = d * static_cast<float>(up) + m;
  }
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
// the low nibbles and the next in the high ones.
static void dequantizeQ4_K(const uint8_t *in, float *out) {
  const float d = loadHalf(in);
  const float dmin = loadHalf(in + 2);
  const uint8_t *nibbles = in + 16;
  for (int j = 0; j < 8; j += 2, nibbles += 32, out += 64) {
    const ScaleMin low = scaleMinK(in + 4, j);
    const ScaleMin up = scaleMinK(in + 4, j + 1);
    const float dLow = d * low.scale;
    const float mLow = dmin * low.min;
    const float dUp = d * up.scale;
    const float mUp = dmin * up.min;
    for (int i = 0; i < 32; ++i) {
      out[i] = dLow * static_cast<float>(nibbles[i] & 15) - mLow;
      out[i + 32] = dUp * static_cast<float>(nibbles[i] >> 4) - mUp;
    }
  }
}

// As Q4_K; bit j of high byte i is the fifth bit of element i of group j.
static void dequantizeQ5_K(const uint8_t *in, float *out) {
  const float d = loadHalf(in);
  const float dmin = loadHalf(in + 2);
  const uint8_t *high = in + 16;
  const uint8_t *nibbles = in + 48;
  for (int j = 0; j < 8; j += 2, nibbles += 32, out += 64) {
    const ScaleMin low = scaleMinK(in + 4, j);
    const ScaleMin up = scaleMinK(in + 4, j + 1);
    const float dLow = d * low.scale;
    const float mLow = dmin * low.min;
    const float dUp = d * up.scale;
    const float mUp = dmin * up.min;
    for (int i = 0; i < 32; ++i) {
      const int qLow = (nibbles[i] & 15) | (((high[i] >> j) & 1) << 4);
      const int qUp = (nibbles[i] >> 4) | (((high[i] >> (j + 1)) & 1) << 4);
      out[i] = dLow * static_cast<float>(qLow) - mLow;
      out[i + 32] = dUp * static_cast<float>(qUp) - mUp;
    }
  }
}

// y = d scale (q - 32), a signed 8-bit scale for each 16 elements. Each half of
// 128 elements has 64 bytes of low nibbles and 32 bytes of high bit pairs:
// quarter k (32 elements) takes nibble k / 2 of bytes 32 (k % 2) + i and bit
// pair k of byte i.
static void dequantizeQ6_K(const uint8_t *in, float *out) {
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

template <void (*block)(const uint8_t *, float *)>
static void dequantizeBlocks(DataType type, const uint8_t *in, int64_t n,
                             float *out) {
  const DataTypeInfo &info = dataTypeInfo(type);
  for (int64_t i = 0; i < n; i += info.blockElements) {
    block(in, out);
    in += info.blockBytes;
    out += info.blockElements;
  }
}

template <float (*convert)(uint16_t)>
static void widen(const uint8_t *in, int64_t n, float *out) {
  for (int64_t i = 0; i < n; ++i) {
    uint16_t bits;
    std::memcpy(&bits, in + 2 * i, sizeof(bits));
    out[i] = convert(bits);
  }
}

void dequantizeRow(DataType type, const uint8_t *in, int64_t n, float *out) {
  switch (type) {
  case DataType::F32:
    if (n > 0)
      std::memcpy(out, in, static_cast<size_t>(n) * sizeof(float));
    return;
  case DataType::F16:
    return widen<f16ToF32>(in, n, out);
  case DataType::BF16:
    return widen<bf16ToF32>(in, n, out);
  case DataType::Q8_0:
    return dequantizeBlocks<dequantizeQ8_0>(type, in, n, out);
  case DataType::Q4_0:
    return dequantizeBlocks<dequantizeQ4_0>(type, in, n, out);
  case DataType::Q4_1:
    return dequantizeBlocks<dequantizeQ4_1>(type, in, n, out);
  case DataType::Q5_0:
    return dequantizeBlocks<dequantizeQ5_0>(type, in, n, out);
  case DataType::Q5_1:
    return dequantizeBlocks<dequantizeQ5_1>(type, in, n, out);
  case DataType::Q4_K:
    return dequantizeBlocks<dequantizeQ4_K>(type, in, n, out);
  case DataType::Q5_K:
    return dequantizeBlocks<dequantizeQ5_K>(type, in, n, out);
  case DataType::Q6_K:
    return dequantizeBlocks<dequantizeQ6_K>(type, in, n, out);
  case DataType::MXFP8:
    return dequantizeBlocks<dequantizeMxfp8>(type, in, n, out);
  }
}

} // namespace llamac
