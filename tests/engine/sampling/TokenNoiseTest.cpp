//===- TokenNoiseTest.cpp - The random numbers of a draw ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/sampling/TokenNoise.h"

#include "engine/sampling/LogitsMath.h"
#include "engine/sampling/Sampler.h"
#include "tests/engine/sampling/ChiSquare.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace llamac {
namespace {

constexpr uint32_t keys = 1'000'000;

/// Keys that count up, that differ in high bits alone, and of a stream.
const std::pair<const char *, std::function<uint32_t(uint32_t)>> keySets[] = {
    {"counting", [](uint32_t i) { return i; }},
    {"high bits", [](uint32_t i) { return i << 12; }},
    {"random", [random = RandomStream(1)](uint32_t) mutable {
       return static_cast<uint32_t>(random.next() >> 32);
     }}};

TEST(TokenNoiseTest, IsWhatAnswersOfASeedWereMadeOf) {
  EXPECT_EQ(tokenNoise(0, 0), 0u);
  EXPECT_EQ(tokenNoise(0, 1), 0x06d3fa73u);
  EXPECT_EQ(tokenNoise(1, 0), 0x7a05fa67u);
  EXPECT_EQ(tokenNoise(0x12345678, 128255), 0x6e7416d2u);
}

TEST(TokenNoiseTest, IdsOfAKeyHaveDifferentNumbers) {
  for (const uint32_t key : {0u, 1u, 0x9e3779b9u}) {
    std::vector<uint32_t> noise(1 << 18);
    for (uint32_t id = 0; id < noise.size(); ++id)
      noise[id] = tokenNoise(key, id);
    std::sort(noise.begin(), noise.end());
    EXPECT_EQ(std::unique(noise.begin(), noise.end()), noise.end());
  }
}

TEST(TokenNoiseTest, IsUniformAndNeighboursAreIndependent) {
  // Numbers by their upper bits, and, as the least ones decide races, by the
  // number of bits that are 0 ahead of them.
  constexpr size_t size = 16;
  auto byHead = [](uint32_t noise) { return size_t{noise >> 28}; };
  auto bySize = [](uint32_t noise) {
    return std::min<size_t>(std::countl_zero(noise), 9);
  };
  for (const auto &[name, keyOf] : keySets) {
    SCOPED_TRACE(name);
    for (const auto &[id, other] :
         {std::pair(0u, 1u), {1u, 2u}, {6u, 70u}, {127'998u, 127'999u}}) {
      SCOPED_TRACE(id);
      std::vector<double> counts(size), ids(size * size), few(size * size),
          draws(size * size), both(size * size);
      uint32_t before = tokenNoise(keyOf(0), id);
      for (uint32_t i = 1; i <= keys; ++i) {
        const uint32_t key = keyOf(i);
        const uint32_t own = tokenNoise(key, id);
        const uint32_t ofOther = tokenNoise(key, other);
        ++counts[byHead(own)];
        ++ids[byHead(own) * size + byHead(ofOther)];
        ++few[bySize(own) * size + bySize(ofOther)];
        ++draws[byHead(before) * size + byHead(own)];
        ++both[byHead(before) * size + byHead(ofOther)];
        before = own;
      }
      expectDrawnBy(std::vector<double>(size, 1.0 / size), counts);
      for (const auto &table : {ids, few, draws, both})
        expectIndependent(table, size);
    }
  }
}

TEST(TokenNoiseTest, DrawsOfNeighbouringKeysAreIndependent) {
  const double weights[] = {1, 2, 0.5, 1, 4, 0.1, 1, 1};
  constexpr size_t size = std::size(weights);
  for (const auto &[name, keyOf] : keySets) {
    SCOPED_TRACE(name);
    std::vector<double> pairs(size * size);
    int32_t before = 0;
    for (uint32_t i = 0; i <= keys; ++i) {
      TokenRace race(keyOf(i));
      for (size_t id = 0; id < size; ++id)
        race.enter(static_cast<int32_t>(id), weights[id]);
      if (i > 0)
        ++pairs[before * size + race.winner()];
      before = race.winner();
    }
    expectIndependent(pairs, size);
  }
}

TEST(TokenNoiseTest, ExponentialsAreNoLessThanTheirUniformNumbers) {
  for (const uint32_t noise : {0u, 1u, 1u << 16, 1u << 31, 0xffffffffu}) {
    EXPECT_GT(uniformOf(noise), 0);
    EXPECT_LT(uniformOf(noise), 1);
    EXPECT_GE(exponentialOf(noise), uniformOf(noise));
    EXPECT_LT(exponentialOf(noise), 23);
  }
}

} // namespace
} // namespace llamac
