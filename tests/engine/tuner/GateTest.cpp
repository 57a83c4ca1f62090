//===- GateTest.cpp - Does a variant compute the same? --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/tuner/Gate.h"

#include "runtime/formats/FloatBits.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llamac {
namespace {

using schema::DataType;
using testing::HasSubstr;
using testing::IsEmpty;
using Values = std::function<float(size_t)>;

template <typename Bits>
std::vector<uint8_t> bytesOf(size_t count,
                             const std::function<Bits(size_t)> &at) {
  std::vector<uint8_t> bytes(sizeof(Bits) * count);
  for (size_t i = 0; i < count; ++i) {
    const Bits value = at(i);
    std::memcpy(&bytes[sizeof(Bits) * i], &value, sizeof(Bits));
  }
  return bytes;
}

float wave(size_t i) { return static_cast<float>(i % 17) - 8; }

/// The memory after a launch that should write elements 1000 to 8999 of 10000.
LaunchMemory memory(const Values &written) {
  const auto at = [&](size_t i) {
    return i >= 1000 && i < 9001 ? written(i) : 1e9F;
  };
  return {bytesOf<float>(10000, at), {}};
}

/// wave(), and `value` for elements from `begin` to before `end`.
Values waveBut(size_t begin, size_t end, float value) {
  return [=](size_t i) {
    return i >= begin && i < end ? value : i < 9000 ? wave(i) : 0.5F;
  };
}

std::string compare(const Values &got, double tolerance = 1e-6) {
  return compareLaunches(memory([](size_t) { return 0.5F; }),
                         memory(waveBut(0, 0, 0)), memory(got), DataType::F16,
                         tolerance);
}

TEST(GateTest, RoundingPassesOnlyWhereItIsAllowed) {
  EXPECT_THAT(compare(waveBut(0, 0, 0), 0), IsEmpty());
  const auto rounded = [](size_t i) {
    return i < 9000 ? wave(i) * (1 + 1e-4F) : 0.5F;
  };
  EXPECT_THAT(compare(rounded), IsEmpty());
  EXPECT_THAT(compare(rounded, 0), HasSubstr("the arena differs from byte"));
}

TEST(GateTest, WhatIsWrongIsFoundHoweverLittle) {
  // Nothing, one row of sixteen, one element, and one past the result.
  for (const Values &wrong : {waveBut(0, 9000, 0.5F), waveBut(4800, 4816, 0),
                              waveBut(8999, 9000, 4), waveBut(9000, 9001, 4)})
    EXPECT_THAT(compare(wrong), HasSubstr("normalised mean squared error"));
  for (const float bad : {HUGE_VALF, std::nanf("")})
    EXPECT_THAT(compare(waveBut(2000, 2001, bad)),
                HasSubstr("at byte 8000: expected 3, got"));
}

TEST(GateTest, TheCacheIsComparedAsWhatItHolds) {
  const auto halves = [](const Values &at) {
    return bytesOf<uint16_t>(64, [&](size_t i) { return f32ToF16(at(i)); });
  };
  const auto compareCaches = [&](const Values &got, DataType type) {
    return compareLaunches({{}, halves([](size_t) { return 0; })},
                           {{}, halves(wave)}, {{}, halves(got)}, type, 1e-6);
  };
  const Values last = waveBut(1, 2, wave(1) * (1 + 0x1p-10F));
  EXPECT_THAT(compareCaches(wave, DataType::Q8_0), IsEmpty());
  EXPECT_THAT(compareCaches(last, DataType::F16), IsEmpty());
  EXPECT_THAT(compareCaches(last, DataType::Q8_0),
              HasSubstr("the cache differs from byte 2 "));
  EXPECT_THAT(compareCaches([](size_t) { return 0; }, DataType::F16),
              HasSubstr("the cache: a normalised"));
}

} // namespace
} // namespace llamac
