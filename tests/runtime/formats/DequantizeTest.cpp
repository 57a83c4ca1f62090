//===- DequantizeTest.cpp - Stored elements to fp32 and back --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Values derived by hand from the formats' definitions; test_quantization.py
// compares whole random matrices with the gguf package.
//
//===----------------------------------------------------------------------===//

#include "runtime/formats/Dequantize.h"

#include "runtime/formats/FloatBits.h"
#include "runtime/formats/Fp8.h"
#include "tests/runtime/io/TestFiles.h"

#include <cmath>
#include <limits>

namespace llamac {

static constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(FloatBits, HalvesHaveTheirIeeeValues) {
  EXPECT_EQ(f16ToF32(0x0000), 0.0f);
  EXPECT_EQ(f16ToF32(0x3c00), 1.0f);
  EXPECT_EQ(f16ToF32(0xc000), -2.0f);
  EXPECT_EQ(f16ToF32(0x7bff), 65504.0f);
  EXPECT_EQ(f16ToF32(0x0400), 0x1p-14f);
  EXPECT_EQ(f16ToF32(0x0001), 0x1p-24f);
  EXPECT_EQ(f16ToF32(0x83ff), -0x1.ff8p-15f);
  EXPECT_EQ(f16ToF32(0x7c00), infinity);
  EXPECT_EQ(f16ToF32(0xfc00), -infinity);
  EXPECT_TRUE(std::isnan(f16ToF32(0x7e00)));
  EXPECT_TRUE(std::signbit(f16ToF32(0x8000)));
}

TEST(FloatBits, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16ToF32(static_cast<uint16_t>(bits));
    if (!std::isnan(value)) {
      ASSERT_EQ(f32ToF16(value), bits);
    }
    const float wide = bf16ToF32(static_cast<uint16_t>(bits));
    if (!std::isnan(wide)) {
      ASSERT_EQ(f32ToBf16(wide), bits);
    }
  }
}

TEST(FloatBits, NarrowingRoundsToNearestEven) {
  EXPECT_EQ(f32ToF16(1.0f + 0x1p-11f), 0x3c00); // A tie, to even.
  EXPECT_EQ(f32ToF16(1.0f + 0x3p-11f), 0x3c02);
  EXPECT_EQ(f32ToF16(1.0f + 0x1.02p-11f), 0x3c01);
  EXPECT_EQ(f32ToF16(65519.0f), 0x7bff);
  EXPECT_EQ(f32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(f32ToF16(1e30f), 0x7c00);
  EXPECT_EQ(f32ToF16(-infinity), 0xfc00);
  EXPECT_EQ(f32ToF16(0x1p-25f), 0x0000); // A tie, to even.
  EXPECT_EQ(f32ToF16(0x1.8p-24f), 0x0002);
  EXPECT_EQ(f32ToF16(-0x1p-24f), 0x8001);
  EXPECT_EQ(f32ToF16(0x1.ffep-15f), 0x0400); // Up to the least normal number.
  EXPECT_TRUE(std::isnan(f16ToF32(f32ToF16(std::nanf("")))));
  EXPECT_EQ(f32ToBf16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(f32ToBf16(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(f32ToBf16(3.4028235e38f), 0x7f80);
  EXPECT_TRUE(
      std::isnan(bf16ToF32(f32ToBf16(std::bit_cast<float>(0x7f800001)))));
}

static std::vector<float> dequantize(DataType type, const std::string &bytes,
                                     int64_t n) {
  EXPECT_EQ(bytes.size(), dataTypeBytes(type, static_cast<uint64_t>(n)));
  std::vector<float> out(static_cast<size_t>(n));
  dequantizeRow(type, reinterpret_cast<const uint8_t *>(bytes.data()), n,
                out.data());
  return out;
}

// d = 0.5 in all of these, and m or dmin = 0.25.
static constexpr uint16_t half = 0x3800;
static constexpr uint16_t quarter = 0x3400;

TEST(Dequantize, Q8_0) {
  const auto out = dequantize(
      DataType::Q8_0,
      Bytes().u16(half).u8(0x80).add(std::string(31, '\x05')).text, 32);
  EXPECT_EQ(out[0], -64.0f);
  EXPECT_EQ(out[31], 2.5f);
}

TEST(Dequantize, Q4_0) {
  const auto out = dequantize(
      DataType::Q4_0,
      Bytes().u16(half).u8(0xf0).add(std::string(15, '\x93')).text, 32);
  EXPECT_EQ(out[0], -4.0f);
  EXPECT_EQ(out[16], 3.5f);
  EXPECT_EQ(out[1], -2.5f);
  EXPECT_EQ(out[17], 0.5f);
}

TEST(Dequantize, Q4_1) {
  const auto out = dequantize(
      DataType::Q4_1,
      Bytes().u16(half).u16(quarter).u8(0xf0).add(std::string(15, '\x93')).text,
      32);
  EXPECT_EQ(out[0], 0.25f);
  EXPECT_EQ(out[16], 7.75f);
  EXPECT_EQ(out[1], 1.75f);
  EXPECT_EQ(out[17], 4.75f);
}

TEST(Dequantize, Q5_0) {
  const auto out =
      dequantize(DataType::Q5_0,
                 Bytes()
                     .u16(half)
                     .u32(0x80000001) // Fifth bits of elements 0 and 31.
                     .u8(0xf0)
                     .add(std::string(15, '\x93'))
                     .text,
                 32);
  EXPECT_EQ(out[0], 0.0f);
  EXPECT_EQ(out[16], -0.5f);
  EXPECT_EQ(out[1], -6.5f);
  EXPECT_EQ(out[31], 4.5f);
}

TEST(Dequantize, Q5_1) {
  const auto out = dequantize(DataType::Q5_1,
                              Bytes()
                                  .u16(half)
                                  .u16(quarter)
                                  .u32(0x80000001)
                                  .u8(0xf0)
                                  .add(std::string(15, '\x93'))
                                  .text,
                              32);
  EXPECT_EQ(out[0], 8.25f);
  EXPECT_EQ(out[16], 7.75f);
  EXPECT_EQ(out[31], 12.75f);
}

// Scales of the groups are 1, 2, ... 8 times 7 (6 bits: 7, 14, ... 56), minima
// 1 ... 8, packed as the K formats do.
static std::string packedScales() {
  uint8_t bytes[12] = {};
  for (int j = 0; j < 4; ++j) {
    const int low = 7 * (j + 1);
    const int high = 7 * (j + 5);
    bytes[j] = static_cast<uint8_t>(low | ((high >> 4) << 6));
    bytes[j + 4] = static_cast<uint8_t>((j + 1) | (((j + 5) >> 4) << 6));
    bytes[j + 8] = static_cast<uint8_t>((high & 15) | (((j + 5) & 15) << 4));
  }
  return {reinterpret_cast<const char *>(bytes), sizeof(bytes)};
}

TEST(Dequantize, Q4_K) {
  const auto out = dequantize(DataType::Q4_K,
                              Bytes()
                                  .u16(half)
                                  .u16(quarter)
                                  .add(packedScales())
                                  .add(std::string(128, '\x93'))
                                  .text,
                              256);
  for (int group = 0; group < 8; ++group) {
    const int q = group % 2 == 0 ? 3 : 9;
    const float expected = 0.5f * 7 * (group + 1) * q - 0.25f * (group + 1);
    EXPECT_EQ(out[32 * group], expected) << group;
    EXPECT_EQ(out[32 * group + 31], expected) << group;
  }
}

TEST(Dequantize, Q5_K) {
  // Bit j of every high byte is set for the odd groups.
  const auto out = dequantize(DataType::Q5_K,
                              Bytes()
                                  .u16(half)
                                  .u16(quarter)
                                  .add(packedScales())
                                  .add(std::string(32, '\xaa'))
                                  .add(std::string(128, '\x93'))
                                  .text,
                              256);
  for (int group = 0; group < 8; ++group) {
    const int q = group % 2 == 0 ? 3 : 9 + 16;
    const float expected = 0.5f * 7 * (group + 1) * q - 0.25f * (group + 1);
    EXPECT_EQ(out[32 * group + 5], expected) << group;
  }
}

TEST(Dequantize, Q6_K) {
  // Low nibbles 3 and 9, high pairs 0, 1, 2, 3 by quarter (0xe4), scales -8..7.
  Bytes bytes;
  bytes.add(std::string(128, '\x93')).add(std::string(64, '\xe4'));
  for (int i = 0; i < 16; ++i)
    bytes.put(static_cast<int8_t>(i - 8));
  const auto out = dequantize(DataType::Q6_K, bytes.u16(half).text, 256);
  for (int i = 0; i < 256; ++i) {
    const int quarterOfHalf = i / 32 % 4;
    const int q = (quarterOfHalf < 2 ? 3 : 9) + 16 * quarterOfHalf - 32;
    ASSERT_EQ(out[i], 0.5f * (i / 16 - 8) * q) << i;
  }
}

TEST(Dequantize, MXFP8) {
  // 2^-2 times 1.5, -448, the least number, the least normal one, NaN.
  std::string block("\x7d\x3c\xfe\x01\x08\x7f", 6);
  auto out = dequantize(DataType::MXFP8, block + std::string(27, '\0'), 32);
  EXPECT_EQ(out[0], 0.375f);
  EXPECT_EQ(out[1], -112.0f);
  EXPECT_EQ(out[2], 0x1p-11f);
  EXPECT_EQ(out[3], 0x1p-8f);
  EXPECT_TRUE(std::isnan(out[4]));
  EXPECT_EQ(out[31], 0.0f);
  block[0] = '\0'; // 2^-127.
  out = dequantize(DataType::MXFP8, block + std::string(27, '\0'), 32);
  EXPECT_EQ(out[2], 0x1p-136f);
  block[0] = '\xff';
  out = dequantize(DataType::MXFP8, block + std::string(27, '\0'), 32);
  for (float value : out)
    EXPECT_TRUE(std::isnan(value));
}

static std::string quantize(DataType type, const std::vector<float> &values) {
  std::string out(dataTypeBytes(type, values.size()), '\xcc');
  quantizeRow(type, values.data(), static_cast<int64_t>(values.size()),
              reinterpret_cast<uint8_t *>(out.data()));
  return out;
}

TEST(Quantize, Q8_0RoundsHalfAwayFromZero) {
  std::vector<float> values(32, 0.0f);
  values[0] = -127.0f; // d = 1.
  values[1] = 2.5f;
  values[2] = -2.5f;
  const std::string out = quantize(DataType::Q8_0, values);
  EXPECT_EQ(out.substr(0, 2), Bytes().u16(0x3c00).text);
  EXPECT_EQ(static_cast<int8_t>(out[2]), -127);
  EXPECT_EQ(static_cast<int8_t>(out[3]), 3);
  EXPECT_EQ(static_cast<int8_t>(out[4]), -3);
}

TEST(Quantize, Q4_0ScalesByTheLargestWithItsSign) {
  std::vector<float> values(32, 0.0f);
  values[0] = 4.0f; // d = 4 / -8.
  values[16] = -3.5f;
  values[1] = -4.0f;
  const std::string out = quantize(DataType::Q4_0, values);
  EXPECT_EQ(out.substr(0, 2), Bytes().u16(0xb800).text);
  EXPECT_EQ(static_cast<uint8_t>(out[2]), 0xf0);
  EXPECT_EQ(static_cast<uint8_t>(out[3]), 0x8f); // Clipped to 15.
}

TEST(FloatBits, E4m3RoundsToNearestEvenAndSaturates) {
  EXPECT_EQ(f32ToE4m3(1.0f), 0x38);
  EXPECT_EQ(f32ToE4m3(1.0625f), 0x38); // A tie, to even.
  EXPECT_EQ(f32ToE4m3(1.1875f), 0x3a);
  EXPECT_EQ(f32ToE4m3(-1.07f), 0xb9);
  EXPECT_EQ(f32ToE4m3(0x1p-10f), 0x00); // A tie of subnormals.
  EXPECT_EQ(f32ToE4m3(0x3p-10f), 0x02);
  EXPECT_EQ(f32ToE4m3(0x1.fp-7f), 0x08); // Up to the least normal one.
  EXPECT_EQ(f32ToE4m3(-0.0f), 0x80);
  EXPECT_EQ(f32ToE4m3(447.0f), 0x7e);
  EXPECT_EQ(f32ToE4m3(1e30f), 0x7e);
  EXPECT_EQ(f32ToE4m3(-infinity), 0xfe);
}

TEST(Dequantize, MXFP4) {
  auto out = dequantize(
      DataType::MXFP4,
      Bytes().u8(128).u8(0x9f).add(std::string(15, '\x71')).text, 32);
  EXPECT_EQ(out[0], -12.0f);
  EXPECT_EQ(out[16], -1.0f);
  EXPECT_EQ(out[1], 1.0f);
  EXPECT_EQ(out[31], 12.0f);
  // The least scale makes 0.5 subnormal; the greatest is NaN.
  out = dequantize(DataType::MXFP4,
                   Bytes().u8(0).add(std::string(16, '\x11')).text, 32);
  EXPECT_EQ(out[0], 0x1p-128f);
  out = dequantize(DataType::MXFP4,
                   Bytes().u8(255).add(std::string(16, '\x11')).text, 32);
  EXPECT_TRUE(std::isnan(out[7]));
}

TEST(FloatBits, EveryE4m3SurvivesTheRoundTrip) {
  for (int bits = 0; bits < 256; ++bits) {
    const auto element = static_cast<uint8_t>(bits);
    if (!isE4m3Nan(element)) {
      ASSERT_EQ(f32ToE4m3(e4m3ToF32(element)), element);
    }
  }
}

TEST(Quantize, MXFP8TakesTheLeastScaleThatClipsNothing) {
  std::vector<float> values(32, 0.0f);
  auto scaleOf = [&](float largest) {
    values[5] = -largest;
    return static_cast<uint8_t>(quantize(DataType::MXFP8, values)[0]);
  };
  EXPECT_EQ(scaleOf(256.0f), 127);
  EXPECT_EQ(scaleOf(464.0f), 127); // Still rounds to 448.
  EXPECT_EQ(scaleOf(464.1f), 128);
  EXPECT_EQ(scaleOf(511.0f), 128);
  EXPECT_EQ(scaleOf(512.0f), 128);
  EXPECT_EQ(scaleOf(0x1p-119f), 0);
  EXPECT_EQ(scaleOf(0x1p-140f), 0);
  EXPECT_EQ(scaleOf(0x1.fffffep127f), 247);
}

TEST(Dequantize, FP8) {
  // 0.25, of which 2^-8 counts, times 1.5, -448, the least number, NaN.
  const std::string elements = std::string("\x3c\xfe\x01\x7f", 4);
  const auto out = dequantize(
      DataType::FP8,
      Bytes().u16(0x3400).add(elements).add(std::string(28, '\0')).text, 32);
  EXPECT_EQ(out[0], 1.5f * 0x1p-10f);
  EXPECT_EQ(out[1], -448.0f * 0x1p-10f);
  EXPECT_EQ(out[2], 0x1p-19f);
  EXPECT_TRUE(std::isnan(out[3]));
  EXPECT_EQ(out[31], 0.0f);
}

TEST(Quantize, FP8TakesTheLeastScaleThatClipsNothing) {
  std::vector<float> values(32, 0.0f);
  const auto scaleOf = [&](float largest) {
    values[5] = -largest;
    const std::string out = quantize(DataType::FP8, values);
    return static_cast<uint8_t>(out[0]) | static_cast<uint8_t>(out[1]) << 8;
  };
  EXPECT_EQ(scaleOf(448.0f), 0x5c00); // 256.
  EXPECT_EQ(scaleOf(448.1f), 0x5c01);
  EXPECT_EQ(scaleOf(0x1p-30f), 1);
  EXPECT_EQ(scaleOf(448.0f * 255), 0x7bf8);
  EXPECT_EQ(scaleOf(1e6f), 0x7bff);
}

TEST(Quantize, ABlockOfE4m3ThatIsNotFiniteIsNan) {
  for (const DataType type : {DataType::MXFP8, DataType::FP8})
    for (const float bad : {infinity, -infinity, std::nanf("")}) {
      std::vector<float> values(64, 1.0f);
      values[40] = bad;
      const auto out = dequantize(type, quantize(type, values), 64);
      for (int i = 0; i < 64; ++i)
        EXPECT_EQ(std::isnan(out[i]), i >= 32) << i;
    }
}

TEST(Quantize, BlocksOfZerosAndOfNoNumbersAreDefined) {
  for (DataType type :
       {DataType::Q8_0, DataType::Q4_0, DataType::MXFP8, DataType::FP8}) {
    const auto zeros =
        dequantize(type, quantize(type, std::vector<float>(32, 0.0f)), 32);
    for (float value : zeros)
      EXPECT_EQ(value, 0.0f);
    quantize(type, std::vector<float>(32, std::nanf("")));
    quantize(type, std::vector<float>(32, infinity));
  }
}

} // namespace llamac
