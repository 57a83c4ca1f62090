//===- Oracle.cpp - Weights in double precision ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The block formats are described in GGUF's terms: a block of 32 elements or a
// super-block of 256, and the position of every field in it.
//
//===----------------------------------------------------------------------===//

#include "Oracle.h"

#include <cmath>
#include <cstring>

namespace llamac::oracle {

double halfToDouble(uint16_t half) {
  int exponent = half >> 10 & 31;
  double fraction = half & 1023;
  double value = exponent == 0    ? std::ldexp(fraction, -24)
                 : exponent == 31 ? (fraction != 0 ? NAN : INFINITY)
                                  : std::ldexp(1024 + fraction, exponent - 25);
  return half & 0x8000 ? -value : value;
}

static double halfAt(const uint8_t *bytes) {
  return halfToDouble(static_cast<uint16_t>(bytes[0] | bytes[1] << 8));
}

std::vector<float> randomFloats(size_t count, float scale,
                                std::mt19937 &random) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(random);
  return values;
}

// A half float of magnitude 2^-8 .. 2^-4 and either sign.
static uint16_t randomScale(std::mt19937 &random) {
  uint32_t exponent = 15 - 8 + random() % 4;
  return static_cast<uint16_t>(random() % 2 << 15 | exponent << 10 |
                               random() % 1024);
}

std::vector<uint8_t> randomWeights(DataType type, int64_t rows, int64_t cols,
                                   std::mt19937 &random) {
  const DataTypeInfo &info = dataTypeInfo(type);
  std::vector<uint8_t> bytes(rows * dataTypeBytes(type, cols));
  if (type == DataType::F32 || type == DataType::BF16) {
    for (size_t i = 0; i < bytes.size() / info.blockBytes; ++i) {
      float value = randomFloats(1, 0.1f, random)[0];
      uint32_t bits;
      std::memcpy(&bits, &value, 4);
      bits = type == DataType::BF16 ? bits >> 16 : bits;
      std::memcpy(bytes.data() + i * info.blockBytes, &bits, info.blockBytes);
    }
    return bytes;
  }
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>(random());
  // E4M3 elements that are numbers.
  if (type == DataType::MXFP8 || type == DataType::FP8)
    for (uint8_t &byte : bytes)
      byte -= byte % 128 == 127 ? 1 : 0;
  // Scales of 2^-12 .. 2^-9.
  if (type == DataType::MXFP8 || type == DataType::MXFP4) {
    for (size_t i = 0; i < bytes.size(); i += info.blockBytes)
      bytes[i] = 127 - 12 + bytes[i] % 4;
    return bytes;
  }
  // Where the half floats of a block lie; the rest may be any bytes.
  std::vector<int> halves;
  switch (type) {
  case DataType::F16:
  case DataType::Q8_0:
  case DataType::Q4_0:
  case DataType::Q5_0:
  case DataType::IQ4_NL:
  case DataType::IQ4_XS:
  case DataType::FP8:
    halves = {0};
    break;
  case DataType::Q2_K:
    halves = {80, 82};
    break;
  case DataType::Q3_K:
    halves = {108};
    break;
  case DataType::Q6_K:
    halves = {208};
    break;
  default:
    halves = {0, 2};
  }
  for (size_t block = 0; block < bytes.size(); block += info.blockBytes)
    for (int at : halves) {
      uint16_t scale = randomScale(random);
      std::memcpy(bytes.data() + block + at, &scale, 2);
    }
  return bytes;
}

// The 6-bit scale and minimum number `part` of a Q4_K or Q5_K super-block.
static void unpackSixBits(const uint8_t *packed, int part, int &scale,
                          int &minimum) {
  if (part < 4) {
    scale = packed[part] % 64;
    minimum = packed[part + 4] % 64;
    return;
  }
  scale = packed[part + 4] % 16 + packed[part - 4] / 64 * 16;
  minimum = packed[part + 4] / 16 + packed[part] / 64 * 16;
}

// The value of element i of 32 in the four bits of IQ4_NL.
static double iq4ValueOf(const uint8_t *nibbles, int i) {
  static const int values[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};
  return values[i < 16 ? nibbles[i] % 16 : nibbles[i - 16] / 16];
}

// The value of an element in E4M3.
static double e4m3ToDouble(uint8_t bits) {
  int magnitude = bits % 128, exponent = magnitude / 8;
  if (magnitude == 127)
    return NAN;
  double fraction = exponent == 0 ? magnitude % 8 : 8 + magnitude % 8;
  double value = std::ldexp(fraction, (exponent == 0 ? 1 : exponent) - 10);
  return bits >= 128 ? -value : value;
}

static double elementOf(DataType type, const uint8_t *block, int i) {
  switch (type) {
  case DataType::F32: {
    float value;
    std::memcpy(&value, block, 4);
    return value;
  }
  case DataType::BF16: {
    uint32_t bits = static_cast<uint32_t>(block[0] | block[1] << 8) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  case DataType::F16:
    return halfAt(block);
  case DataType::Q8_0:
    return halfAt(block) * static_cast<int8_t>(block[2 + i]);
  case DataType::Q4_0: {
    int q = i < 16 ? block[2 + i] % 16 : block[2 + i - 16] / 16;
    return halfAt(block) * (q - 8);
  }
  case DataType::Q4_1: {
    int q = i < 16 ? block[4 + i] % 16 : block[4 + i - 16] / 16;
    return halfAt(block) * q + halfAt(block + 2);
  }
  case DataType::Q5_0: {
    int q = i < 16 ? block[6 + i] % 16 : block[6 + i - 16] / 16;
    int high = block[2 + i / 8] >> i % 8 & 1;
    return halfAt(block) * (q + 16 * high - 16);
  }
  case DataType::Q5_1: {
    int q = i < 16 ? block[8 + i] % 16 : block[8 + i - 16] / 16;
    int high = block[4 + i / 8] >> i % 8 & 1;
    return halfAt(block) * (q + 16 * high) + halfAt(block + 2);
  }
  case DataType::Q4_K:
  case DataType::Q5_K: {
    int scale, minimum, high = 0;
    unpackSixBits(block + 4, i / 32, scale, minimum);
    const uint8_t *low = block + 16;
    if (type == DataType::Q5_K) {
      high = block[16 + i % 32] >> i / 32 & 1;
      low += 32;
    }
    uint8_t byte = low[i / 64 * 32 + i % 32];
    int q = (i % 64 < 32 ? byte % 16 : byte / 16) + 16 * high;
    return halfAt(block) * scale * q - halfAt(block + 2) * minimum;
  }
  case DataType::Q6_K: {
    int half = i / 128, within = i % 128;
    uint8_t lowByte = block[half * 64 + within % 64];
    int low = within < 64 ? lowByte % 16 : lowByte / 16;
    int high = block[128 + half * 32 + within % 32] >> within / 32 * 2 & 3;
    int scale = static_cast<int8_t>(block[192 + i / 16]);
    return halfAt(block + 208) * scale * (low + 16 * high - 32);
  }
  case DataType::Q2_K: {
    int q = block[16 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
    int scale = block[i / 16] % 16, minimum = block[i / 16] / 16;
    return halfAt(block + 80) * scale * q - halfAt(block + 82) * minimum;
  }
  case DataType::Q3_K: {
    int low = block[32 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3;
    int high = block[i % 32] >> i / 32 & 1;
    // Scales 0..3 | 8..11, 4..7 | 12..15 by halves; then the top pairs of
    // 0..3, 4..7, 8..11 and 12..15.
    int group = i / 16;
    int byte = block[96 + group % 8];
    int scale = (group < 8 ? byte % 16 : byte / 16) +
                (block[104 + group % 4] >> group / 4 * 2 & 3) * 16;
    return halfAt(block + 108) * (scale - 32) * (low + 4 * high - 4);
  }
  case DataType::IQ4_NL:
    return halfAt(block) * iq4ValueOf(block + 2, i);
  case DataType::IQ4_XS: {
    int part = i / 32;
    int low =
        part % 2 == 0 ? block[4 + part / 2] % 16 : block[4 + part / 2] / 16;
    int high = block[2 + part / 4] >> part % 4 * 2 & 3;
    return halfAt(block) * (low + 16 * high - 32) *
           iq4ValueOf(block + 8 + 16 * part, i % 32);
  }
  case DataType::MXFP4: {
    if (block[0] == 255)
      return NAN;
    int nibble = i < 16 ? block[1 + i] % 16 : block[1 + i - 16] / 16;
    int exponent = nibble / 2 % 4, fraction = nibble % 2;
    double value =
        exponent == 0 ? 0.5 * fraction : std::ldexp(2 + fraction, exponent - 2);
    value = std::ldexp(value, block[0] - 127);
    return nibble >= 8 ? -value : value;
  }
  case DataType::MXFP8:
    return block[0] == 255
               ? NAN
               : std::ldexp(e4m3ToDouble(block[1 + i]), block[0] - 127);
  case DataType::FP8:
    return halfAt(block) / 256 * e4m3ToDouble(block[2 + i]);
  }
  return NAN;
}

std::vector<double> dequantizeRow(DataType type, int64_t cols,
                                  const uint8_t *stored) {
  const DataTypeInfo &info = dataTypeInfo(type);
  std::vector<double> values(cols);
  for (int64_t i = 0; i < cols; ++i)
    values[i] =
        elementOf(type, stored + i / info.blockElements * info.blockBytes,
                  static_cast<int>(i % info.blockElements));
  return values;
}

} // namespace llamac::oracle
