//===- GateTest.cpp - Does a variant compute the same? --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Gate.h"

#include "runtime/io/FloatBits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

namespace llamac {
namespace {

using schema::DataType;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double tolerance = 1e-6;

std::vector<uint8_t> floats(size_t count,
                            const std::function<float(size_t)> &at) {
  std::vector<uint8_t> bytes(4 * count);
  for (size_t i = 0; i < count; ++i) {
    const float value = at(i);
    std::memcpy(&bytes[4 * i], &value, 4);
  }
  return bytes;
}

std::vector<uint8_t> halves(size_t count,
                            const std::function<float(size_t)> &at) {
  std::vector<uint8_t> bytes(2 * count);
  for (size_t i = 0; i < count; ++i) {
    const uint16_t value = f32ToF16(at(i));
    std::memcpy(&bytes[2 * i], &value, 2);
  }
  return bytes;
}

float wave(size_t i) { return static_cast<float>(i % 17) - 8; }

/// The launch writes elements 1000 .. 8999 of 10000.
LaunchMemory memory(const std::function<float(size_t)> &written) {
  return {floats(10000,
                 [&](size_t i) {
                   return i >= 1000 && i < 9000 ? written(i) : 1e9F;
                 }),
          {}};
}

std::string compare(const std::function<float(size_t)> &got,
                    double allowed = tolerance) {
  return compareLaunches(memory([](size_t) { return 0.5F; }), memory(wave),
                         memory(got), DataType::F16, allowed);
}

TEST(GateTest, TheSameBitsPass) {
  EXPECT_THAT(compare(wave), IsEmpty());
  EXPECT_THAT(compare(wave, 0), IsEmpty());
}

TEST(GateTest, RoundingPassesOnlyWhereItIsAllowed) {
  const auto rounded = [](size_t i) { return wave(i) * (1 + 1e-4F); };
  EXPECT_THAT(compare(rounded), IsEmpty());
  EXPECT_THAT(compare(rounded, 0), HasSubstr("the arena differs from byte"));
}

TEST(GateTest, WhatIsNotWrittenIsWrong) {
  EXPECT_THAT(compare([](size_t) { return 0.5F; }),
              HasSubstr("mean squared error"));
}

TEST(GateTest, APartThatIsWrongIsFoundAmongMuchThatIsRight) {
  // One row of sixteen of a matrix: 2e-3 of all squares.
  EXPECT_THAT(compare([](size_t i) { return i / 16 == 300 ? 0 : wave(i); }),
              Not(IsEmpty()));
}

TEST(GateTest, OneElementOfManyIsFound) {
  EXPECT_THAT(compare([](size_t i) { return i == 8999 ? 4 : wave(i); }),
              Not(IsEmpty()));
}

TEST(GateTest, WhatIsWrittenPastTheResultIsWrong) {
  LaunchMemory past = memory(wave);
  const float value = 1;
  std::memcpy(&past.arena[4 * 9000], &value, 4);
  EXPECT_THAT(compareLaunches(memory([](size_t) { return 0.5F; }), memory(wave),
                              past, DataType::F16, tolerance),
              Not(IsEmpty()));
}

TEST(GateTest, AnInfinityOrNanIsWrong) {
  for (const float bad : {std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()})
    EXPECT_THAT(compare([&](size_t i) { return i == 2000 ? bad : wave(i); }),
                HasSubstr("at byte 8000: expected 3, got"));
}

TEST(GateTest, TheCacheIsComparedAsWhatItHolds) {
  const std::vector<uint8_t> before = halves(64, [](size_t) { return 0; });
  const auto compareCaches = [&](const std::vector<uint8_t> &got,
                                 DataType type) {
    return compareLaunches({{}, before}, {{}, halves(64, wave)}, {{}, got},
                           type, tolerance);
  };
  EXPECT_THAT(compareCaches(halves(64, wave), DataType::F16), IsEmpty());
  const auto last = [](size_t i) {
    return i == 1 ? wave(i) * (1 + 0x1p-10F) : wave(i);
  };
  EXPECT_THAT(compareCaches(halves(64, last), DataType::F16), IsEmpty());
  EXPECT_THAT(compareCaches(halves(64, last), DataType::Q8_0),
              HasSubstr("the cache differs from byte 2 "));
  EXPECT_THAT(compareCaches(before, DataType::F16),
              HasSubstr("the cache: a normalised"));
}

} // namespace
} // namespace llamac
