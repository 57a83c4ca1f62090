//===- Quantize.cpp - fp32 to stored elements -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/formats/Dequantize.h"
#include "runtime/formats/FloatBits.h"
#include "runtime/formats/Fp8.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

namespace llamac {

static void storeHalf(uint8_t *out, float value) {
  const uint16_t bits = f32ToF16(value);
  std::memcpy(out, &bits, sizeof(bits));
}

// An integer in [low, high] near `value`; a NaN gives `low`, since converting
// it would be undefined.
static int toInteger(float value, int low, int high) {
  if (!(value > static_cast<float>(low)))
    return low;
  return value < static_cast<float>(high) ? static_cast<int>(value) : high;
}

static void quantizeQ8_0(const float *in, uint8_t *out) {
  float largest = 0;
  for (int i = 0; i < 32; ++i)
    largest = std::max(largest, std::fabs(in[i]));
  const float d = largest / 127.0f;
  const float inverse = d != 0 ? 1.0f / d : 0.0f;
  storeHalf(out, d);
  for (int i = 0; i < 32; ++i)
    out[2 + i] = static_cast<uint8_t>(
        static_cast<int8_t>(toInteger(std::round(in[i] * inverse), -128, 127)));
}

static void quantizeQ4_0(const float *in, uint8_t *out) {
  float largest = 0; // With its sign; the first of equals.
  for (int i = 0; i < 32; ++i)
    if (std::fabs(in[i]) > std::fabs(largest))
      largest = in[i];
  const float d = largest / -8.0f;
  const float inverse = d != 0 ? 1.0f / d : 0.0f;
  storeHalf(out, d);
  for (int i = 0; i < 16; ++i) {
    const int low = toInteger(in[i] * inverse + 8.5f, 0, 15);
    const int up = toInteger(in[i + 16] * inverse + 8.5f, 0, 15);
    out[2 + i] = static_cast<uint8_t>(low | (up << 4));
  }
}

template <void (*block)(const float *, uint8_t *)>
static void quantizeBlocks(DataType type, const float *in, int64_t n,
                           uint8_t *out) {
  const DataTypeInfo &info = dataTypeInfo(type);
  for (int64_t i = 0; i < n; i += info.blockElements) {
    block(in, out);
    in += info.blockElements;
    out += info.blockBytes;
  }
}

template <uint16_t (*convert)(float)>
static void narrow(const float *in, int64_t n, uint8_t *out) {
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t bits = convert(in[i]);
    std::memcpy(out + 2 * i, &bits, sizeof(bits));
  }
}

bool canQuantizeTo(DataType type) {
  return type == DataType::F32 || type == DataType::F16 ||
         type == DataType::BF16 || type == DataType::Q8_0 ||
         type == DataType::Q4_0 || type == DataType::MXFP8 ||
         type == DataType::FP8;
}

void quantizeRow(DataType type, const float *in, int64_t n, uint8_t *out) {
  assert(canQuantizeTo(type) && "no writer for this format");
  switch (type) {
  case DataType::F32:
    if (n > 0)
      std::memcpy(out, in, static_cast<size_t>(n) * sizeof(float));
    return;
  case DataType::F16:
    return narrow<f32ToF16>(in, n, out);
  case DataType::BF16:
    return narrow<f32ToBf16>(in, n, out);
  case DataType::Q8_0:
    return quantizeBlocks<quantizeQ8_0>(type, in, n, out);
  case DataType::Q4_0:
    return quantizeBlocks<quantizeQ4_0>(type, in, n, out);
  case DataType::MXFP8:
    return quantizeBlocks<quantizeMxfp8>(type, in, n, out);
  case DataType::FP8:
    return quantizeBlocks<quantizeFp8>(type, in, n, out);
  default:
    return;
  }
}

} // namespace llamac
