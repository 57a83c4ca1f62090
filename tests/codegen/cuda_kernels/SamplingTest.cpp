//===- SamplingTest.cpp - Drawing tokens on the simulator -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The kernel against a sort in double precision, and against the sampler of
// the host. A draw that rounding could decide otherwise is left out; hardly any
// is.
//
//===----------------------------------------------------------------------===//

#include "Source.h"

#include "codegen/sim/SimCompiler.h"
#include "engine/sampling/Sampler.h"
#include "simulator/Simulator.h"
#include "tests/Tier.h"

#include "absl/strings/str_cat.h"
#include "llamac/config.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>

namespace llamac::cuda {
namespace {

using Logits = std::vector<float>;

/// How far from top-p's border a sum of weights must be, as a share of all of
/// them, and from the least time the next one, as a share of it.
constexpr double rounding = 2e-6, timeRounding = 1e-5;

/// Sampling.cu, compiled once in a process.
const SimModule &module(bool checked) {
  static std::unique_ptr<SimModule> modules[2];
  std::unique_ptr<SimModule> &module = modules[checked];
  if (!module) {
    const auto object =
        compileForSim({SourceFile{"Sampling.cu", readFile("Sampling.cu")}},
                      checked ? SimFlavour::Checked : SimFlavour::Fast);
    EXPECT_TRUE(object.ok()) << object.status();
    auto opened = SimModule::open(
        {reinterpret_cast<const uint8_t *>(object->data()), object->size()},
        "Sampling.cu");
    EXPECT_TRUE(opened.ok()) << opened.status();
    module = *std::move(opened);
  }
  return *module;
}

class SamplingTest : public testing::TestWithParam<SimOptions> {
protected:
  /// The results of the kernel for draws.size() rows of logits.
  std::vector<int> tokens(const Logits &logits,
                          const std::vector<SamplingParams> &draws) const {
    const size_t width = logits.size() / draws.size();
    const LaunchShape shape = sampleShape(static_cast<long>(width));
    std::vector<uint8_t> firsts(draws.size() * shape.workspaceBytes);
    std::vector<uint32_t> counters(draws.size() * shape.counters);
    std::vector<int> out(draws.size(), -77);
    // The kernel reads a draw by one instruction.
    alignas(16) SamplingParams aligned[64];
    std::copy(draws.begin(), draws.end(), aligned);
    Simulator simulator(GetParam());
    simulator.memory().add("logits", const_cast<float *>(logits.data()),
                           logits.size() * sizeof(float),
                           SimContents::ReadOnly);
    simulator.memory().add("draws", aligned,
                           draws.size() * sizeof(SamplingParams),
                           SimContents::ReadOnly);
    simulator.memory().add("firsts", firsts.data(), firsts.size(),
                           SimContents::Undefined);
    simulator.memory().add("counters", counters.data(),
                           counters.size() * sizeof(uint32_t),
                           SimContents::Defined);
    simulator.memory().add("out", out.data(), out.size() * sizeof(int),
                           SimContents::Undefined);
    SimLaunch launch;
    launch.kernel = absl::StrCat("sample", width);
    launch.grid.x = static_cast<uint32_t>(shape.gridSize);
    launch.grid.y = static_cast<uint32_t>(draws.size());
    launch.block.x = static_cast<uint32_t>(shape.threads);
    launch.args = {const_cast<float *>(logits.data()), aligned, firsts.data(),
                   counters.data(), out.data()};
    launch.rows = static_cast<int32_t>(draws.size());
    const absl::Status status =
        simulator.run(module(GetParam().checked), launch);
    EXPECT_TRUE(status.ok()) << status;
    for (const uint32_t counter : counters)
      EXPECT_EQ(counter, 0u);
    return out;
  }

  int token(const Logits &logits, const SamplingParams &draw) const {
    return tokens(logits, {draw})[0];
  }

  std::vector<int> drawsOf(const Logits &logits, const SamplingParams &params,
                           int count);

  Logits normal(size_t count, float scale) {
    std::normal_distribution<float> distribution(0, scale);
    Logits logits(count);
    for (float &logit : logits)
      logit = distribution(random);
    return logits;
  }

  std::mt19937 random{99};
};

/// The token that `draw` chooses of `logits`; none where rounding decides.
std::optional<int> expectedToken(absl::Span<const float> logits,
                                 const SamplingParams &draw) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  if (draw.temperature == 0)
    return order[0];
  std::vector<double> sums(order.size()); // Sums of the first tokens' weights.
  std::transform(order.begin(), order.end(), sums.begin(), [&](int id) {
    return std::exp((double{logits[id]} - logits[order[0]]) / draw.temperature);
  });
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  if (draw.topK > 0 && static_cast<size_t>(draw.topK) < sums.size())
    sums.resize(static_cast<size_t>(draw.topK));
  const double all = sums.back();
  auto isClose = [&](double a, double b) {
    return std::abs(a - b) < rounding * all;
  };
  if (draw.topP < 1) {
    const double goal = draw.topP * all;
    const auto last = std::lower_bound(sums.begin(), sums.end(), goal);
    if (isClose(*last, goal) ||
        (last != sums.begin() && isClose(last[-1], goal)))
      return std::nullopt;
    sums.erase(last + 1, sums.end());
  }
  std::vector<std::pair<double, int>> times;
  for (size_t i = 0; i < sums.size(); ++i)
    times.emplace_back(
        exponentialOf(tokenNoise(draw.noiseKey, order[i])) *
            std::exp((double{logits[order[0]]} - logits[order[i]]) /
                     draw.temperature),
        order[i]);
  std::sort(times.begin(), times.end());
  if (times.size() > 1 && times[1].first < times[0].first * (1 + timeRounding))
    return std::nullopt;
  return times[0].second;
}

/// The token that the host's sampler chooses.
int hostToken(absl::Span<const float> logits, const SamplingParams &draw) {
  auto sampler =
      Sampler::create({draw.temperature, draw.topK, draw.topP, uint64_t{1}});
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  return draw.temperature == 0 ? argmax(logits)
                               : sampler->choose(logits, draw.noiseKey);
}

/// Draws by `count` random keys: each is the expected token.
std::vector<int> SamplingTest::drawsOf(const Logits &logits,
                                       const SamplingParams &params,
                                       int count) {
  std::vector<SamplingParams> draws(count, params);
  Logits rows;
  for (SamplingParams &draw : draws) {
    draw.noiseKey = static_cast<uint32_t>(random());
    rows.insert(rows.end(), logits.begin(), logits.end());
  }
  std::vector<int> got = tokens(rows, draws);
  for (int i = 0; i < count; ++i) {
    const std::optional<int> expected = expectedToken(logits, draws[i]);
    EXPECT_EQ(got[i], expected.value_or(got[i]))
        << "top-k " << params.topK << ", key " << draws[i].noiseKey;
  }
  return got;
}

TEST_P(SamplingTest, DrawsAsASortInDoublePrecision) {
  int undecided = 0, drawn = 0;
  const std::vector<size_t> widths =
      GetParam().checked ? std::vector<size_t>{7, 4099}
                         : std::vector<size_t>{1, 7, 1000, 4099};
  for (const size_t width : widths)
    for (const float scale : {0.5f, 4.0f}) {
      std::vector<SamplingParams> draws;
      for (const float temperature : {0.0f, 0.3f, 5.0f})
        for (const auto &[topK, topP] : {std::pair(0, 1.0f),
                                         {1, 1.0f},
                                         {3, 1.0f},
                                         {40, 0.9f},
                                         {0, 0.5f},
                                         {0, 1e-6f},
                                         {5000, 0.999f}})
          draws.push_back(
              {temperature, topK, topP, static_cast<uint32_t>(random())});
      const Logits logits = normal(width * draws.size(), scale);
      const std::vector<int> out = tokens(logits, draws);
      for (size_t r = 0; r < draws.size(); ++r) {
        SCOPED_TRACE(absl::StrCat("width ", width, ", scale ", scale,
                                  ", temperature ", draws[r].temperature,
                                  ", top-k ", draws[r].topK, ", top-p ",
                                  draws[r].topP, ", key ", draws[r].noiseKey));
        const absl::Span<const float> row(&logits[r * width], width);
        const std::optional<int> expected = expectedToken(row, draws[r]);
        ++drawn;
        undecided += !expected;
        if (!expected)
          continue;
        EXPECT_EQ(out[r], *expected);
        EXPECT_EQ(out[r], hostToken(row, draws[r]));
      }
    }
  EXPECT_LT(undecided * 20, drawn);
}

TEST_P(SamplingTest, EqualLogitsStandInOrderOfTheirIds) {
  // Nine tokens weigh the same; all others weigh nothing.
  const std::vector<int> ids = {3, 31, 32, 33, 64, 158, 159, 160, 4098};
  Logits logits(4099, -1000);
  for (int id : ids)
    logits[id] = 2;
  // The first four of them; the first two, which reach a share of 1 / 5; the
  // first, which does of four.
  for (const auto &[topK, topP, kept] :
       {std::tuple(0, 1.0f, 9), {4, 1.0f, 4}, {0, 0.2f, 2}, {4, 0.2f, 1}}) {
    const std::vector<int> got =
        drawsOf(logits, {0.7f, topK, topP, 0}, 6 * kept);
    EXPECT_EQ(std::set<int>(got.begin(), got.end()),
              std::set<int>(ids.begin(), ids.begin() + kept));
  }
  EXPECT_EQ(token(logits, {0, 0, 1, 0xffffffff}), 3);
}

TEST_P(SamplingTest, DrawsFromWhereLogitsOfBothSignsMeet) {
  // The two zeros are one; the order goes on through them.
  const Logits logits = {-0.0f, 1e-30f, 0.0f, -1e-30f, -0.0f, -1, 1};
  for (const int topK : {0, 3, 4, 6})
    drawsOf(logits, {100, topK, 1, 0}, 16);
}

TEST_P(SamplingTest, NeighbouringNumbersStandInOrder) {
  const Logits logits = {1,  std::nextafter(1.0f, 2.0f),  1,    -1,
                         -1, std::nextafter(-1.0f, 0.0f), -1000};
  for (const int topK : {0, 1, 2, 4, 5})
    drawsOf(logits, {2, topK, 1, 0}, 16);
}

TEST_P(SamplingTest, DrawsFromTheLargestFiniteLogits) {
  const float most = std::numeric_limits<float>::max();
  const Logits logits = {-most, most, 0, most, -most, 0, 0};
  EXPECT_EQ(token(logits, {0, 0, 1, 0}), 1);
  const std::vector<int> got = drawsOf(logits, {0.5f, 0, 1, 0}, 16);
  EXPECT_EQ(std::set<int>(got.begin(), got.end()), (std::set<int>{1, 3}));
  // At either end of the temperatures.
  const Logits small = {1, 2, 3, 4, 3, 2, 1};
  EXPECT_EQ(drawsOf(small, {1e-38f, 0, 1, 0}, 4), std::vector<int>(4, 3));
  const std::vector<int> hot = drawsOf(small, {most, 0, 1, 0}, 60);
  EXPECT_EQ(std::set<int>(hot.begin(), hot.end()).size(), small.size());
}

TEST_P(SamplingTest, ExponentialsAreThoseOfTheHost) {
  std::vector<uint32_t> noise = {0,        1,        2,          (1U << 29) - 1,
                                 1U << 29, 1U << 31, 0xfffffffe, 0xffffffff};
  while (noise.size() < 2048)
    noise.push_back(static_cast<uint32_t>(random()) >> noise.size() % 32);
  std::vector<float> out(noise.size());
  Simulator simulator(GetParam());
  simulator.memory().add("in", noise.data(), noise.size() * sizeof(uint32_t),
                         SimContents::ReadOnly);
  simulator.memory().add("out", out.data(), out.size() * sizeof(float),
                         SimContents::Undefined);
  SimLaunch launch;
  launch.kernel = "exponentials";
  launch.grid.x = static_cast<uint32_t>(noise.size() / 128);
  launch.block.x = 128;
  launch.args = {out.data(), noise.data()};
  launch.rows = static_cast<int32_t>(noise.size());
  ASSERT_TRUE(simulator.run(module(GetParam().checked), launch).ok());
  for (size_t i = 0; i < noise.size(); ++i) {
    const double expected = llamac::exponentialOf(noise[i]);
    EXPECT_NEAR(out[i], expected, 0x1p-20 * expected) << noise[i];
  }
}

TEST_P(SamplingTest, ABlockForEveryLaneFindsTheFirst) {
  constexpr size_t width = 49152;
  ASSERT_EQ(sampleBlocks(width), 32);
  Logits logits = normal(3 * width, 1);
  logits[100] = logits[width - 1] = 9;
  logits[width + 20000] = logits[width + 40000] = 9;
  logits[3 * width - 1] = NAN;
  const SamplingParams greedy{0, 0, 1, 0};
  const SamplingParams draw{0.1f, 2, 1, 0xffffffff};
  const int drawn =
      tokenNoise(draw.noiseKey, 20000) < tokenNoise(draw.noiseKey, 40000)
          ? 20000
          : 40000;
  EXPECT_EQ(tokens(logits, {greedy, draw, greedy}),
            (std::vector<int>{100, drawn, -1}));
}

TEST_P(SamplingTest, ARowThatIsNotFiniteHasNoToken) {
  for (const float temperature : {0.0f, 1.0f})
    for (const float wrong : {NAN, -NAN, INFINITY, -INFINITY}) {
      Logits logits = normal(size_t{3} * 4099, 1);
      logits[4099 + 4098] = wrong;
      const SamplingParams draw{temperature, 20, 0.9f, 12345};
      const std::vector<int> out = tokens(logits, {draw, draw, draw});
      EXPECT_GE(out[0], 0);
      EXPECT_EQ(out[1], -1) << wrong << " at temperature " << temperature;
      EXPECT_GE(out[2], 0);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Schedules, SamplingTest, testing::ValuesIn([] {
      std::vector<SimOptions> modes = {
          {.schedule = SimSchedule::Forward},
          {.schedule = SimSchedule::Random, .seed = 6, .checked = true}};
      if (isExhaustive()) {
        modes.push_back({.schedule = SimSchedule::Random, .seed = 5});
        modes.push_back({.schedule = SimSchedule::Forward, .checked = true});
      }
      return modes;
    }()),
    [](const auto &info) {
      return absl::StrCat(
          info.param.checked ? "checked_" : "",
          info.param.schedule == SimSchedule::Random ? "random" : "forward");
    });

} // namespace
} // namespace llamac::cuda
