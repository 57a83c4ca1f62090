//===- RoundingTest.cpp - Rounding that depends on the line ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rounding.cu under hostile rounding: one operation on one operand gives two
// results by two lines, which are neighbours, and one where it is exact.
//
//===----------------------------------------------------------------------===//

#include "runtime/formats/FloatBits.h"
#include "tests/simulator/Support.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

using namespace llamac;

static std::vector<float> run(SimFlavour flavour, const char *kernel,
                              unsigned threads, std::vector<float> in,
                              size_t outputs, int rows) {
  Simulator simulator({});
  DeviceVector<float> given(in), out(outputs, 0.0f);
  SimLaunch launch{kernel,
                   {(static_cast<unsigned>(rows) + threads - 1) / threads},
                   {threads}};
  launch.args = {output(simulator, out), input(simulator, given)};
  launch.rows = rows;
  EXPECT_EQ(simulator.run(testModule("Rounding.cu", flavour), launch),
            absl::OkStatus());
  return out.values();
}

static int64_t steps(float a, float b) {
  return std::abs(int64_t{std::bit_cast<int32_t>(a)} -
                  std::bit_cast<int32_t>(b));
}

/// How many of results 2n and 2n + 1 differ.
static int differing(const std::vector<float> &out, int rows, int n) {
  int count = 0;
  for (int i = 0; i < rows; ++i) {
    const float first = out[2 * n * rows + i],
                second = out[(2 * n + 1) * rows + i];
    EXPECT_LE(steps(first, second), 1) << first << " and " << second;
    count += first != second;
  }
  return count;
}

TEST(HostileRounding, InexactResultsDifferByTheLine) {
  constexpr int rows = 256;
  std::vector<float> in(rows);
  std::mt19937 random(1);
  for (float &x : in)
    x = std::uniform_real_distribution<float>(0.1f, 4.0f)(random);
  const std::vector<float> out =
      run(SimFlavour::Hostile, "twice", 128, in, 6 * rows, rows);
  const std::vector<float> plain =
      run(SimFlavour::Fast, "twice", 128, in, 6 * rows, rows);
  for (int n = 0; n < 3; ++n) {
    EXPECT_GT(differing(out, rows, n), rows / 4) << "operation " << n;
    EXPECT_EQ(differing(plain, rows, n), 0) << "operation " << n;
  }
  for (int i = 0; i < 6 * rows; ++i)
    EXPECT_LE(steps(out[i], plain[i]), 1);
  EXPECT_EQ(out, run(SimFlavour::Hostile, "twice", 128, in, 6 * rows, rows));
}

TEST(HostileRounding, WhatIsExactStays) {
  const std::vector<float> in = {0, 1, 4, 16, 64};
  const int rows = static_cast<int>(in.size());
  const std::vector<float> out =
      run(SimFlavour::Hostile, "twice", 128, in, 6 * in.size(), rows);
  for (int n = 0; n < 3; ++n)
    EXPECT_EQ(differing(out, rows, n), 0) << "operation " << n;
  EXPECT_EQ(out[2 * rows], 1.0f); // 2^0.
}

TEST(HostileRounding, ProductsWithZeroChangeNoSum) {
  // Rows of a: the upper half of the depth is 0. Columns of b: there, other
  // numbers in the second run.
  std::mt19937 random(2);
  auto bf16 = [&] {
    return uint32_t{
        f32ToBf16(std::uniform_real_distribution<float>(-2.0f, 2.0f)(random))};
  };
  std::vector<uint32_t> words(32 * 6), other;
  for (uint32_t &word : words)
    word = bf16() | bf16() << 16;
  for (size_t lane = 0; lane < 32; ++lane)
    words[6 * lane + 2] = words[6 * lane + 3] = 0;
  other = words;
  for (size_t lane = 0; lane < 32; ++lane)
    other[6 * lane + 5] = bf16() | bf16() << 16;
  auto sums = [&](const std::vector<uint32_t> &of) {
    std::vector<float> in(of.size());
    std::memcpy(in.data(), of.data(), of.size() * sizeof(float));
    return run(SimFlavour::Hostile, "products", 32, in, 256, 1);
  };
  EXPECT_EQ(sums(words), sums(other));
  EXPECT_GT(differing(sums(words), 128, 0), 32);
}
