//===- SamplingCases.cpp - The choice of tokens ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/Cases.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace llamac::conformance {

static std::shared_ptr<Program> sampleProgram(int64_t vocabulary) {
  auto program = std::make_shared<Program>();
  program->name = absl::StrCat("sample_v", vocabulary);
  // Either all programs of a plan sample or none does.
  program->model = {"sampling", 4, 2, 16, 64};
  program->inputs = {{"x", vocabulary}};
  program->outType = rowsText(vocabulary);
  program->outWidth = 1;
  program->samples = true;
  program->wanted = true;
  program->body = absl::StrCat(
      "  %out = kernel.gather_rows %x, %wanted : (", program->outType,
      ", tensor<?xi32>) -> ", program->outType, " loc(\"last\")\n",
      "  %chosen = kernel.sample %out by %draws : (", program->outType,
      ", tensor<?x4xi32>) -> tensor<?xi32> loc(\"", program->name, "\")");
  return program;
}

/// The token that `draw` chooses; open where rounding could choose another: a
/// sum of weights is next to top-p's target, or a time next to the least one.
static Expected tokenOf(const std::vector<double> &logits,
                        const SamplingParams &draw) {
  if (!std::all_of(logits.begin(), logits.end(),
                   [](double logit) { return std::isfinite(logit); }))
    return {-1};
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  if (draw.temperature == 0)
    return {static_cast<double>(order[0])};
  if (draw.topK != 0)
    order.resize(std::min<size_t>(order.size(), draw.topK));
  std::vector<double> sums; // Sums of the weights up to each token.
  sums.reserve(order.size());
  double total = 0;
  for (const int32_t id : order)
    sums.push_back(
        total += std::exp((logits[id] - logits[order[0]]) / draw.temperature));
  bool isClose = false;
  // The number of tokens whose sum does not reach `target`.
  auto countBelow = [&](double target) {
    for (const double sum : sums)
      isClose |= std::abs(sum - target) < 1e-5 * total;
    return std::lower_bound(sums.begin(), sums.end(), target) - sums.begin();
  };
  if (draw.topP < 1)
    order.resize(countBelow(draw.topP * total) + 1);
  std::vector<std::pair<double, int32_t>> times;
  for (const int32_t id : order) {
    const double weight =
        std::exp((logits[id] - logits[order[0]]) / draw.temperature);
    times.emplace_back(exponentialOf(tokenNoise(draw.noiseKey, id)) / weight,
                       id);
  }
  std::sort(times.begin(), times.end());
  isClose |= times.size() > 1 && times[1].first < times[0].first * (1 + 1e-5);
  Expected token{static_cast<double>(times[0].second)};
  token.isOpen = isClose;
  return token;
}

static OpCase sampleCase(const std::string &name,
                         const std::shared_ptr<const Program> &program,
                         const std::vector<float> &logits,
                         const std::vector<SamplingParams> &draws) {
  const int64_t width = program->inputs[0].width;
  Step step = stepOf(static_cast<int64_t>(draws.size()));
  step.inputs["x"] = logits;
  step.wanted = step.tokens;
  step.draws = draws;
  return oneStep(name, program, step, [=](const Numerics &) {
    std::vector<ExpectedRow> rows;
    rows.reserve(draws.size());
    for (size_t r = 0; r < draws.size(); ++r)
      rows.push_back(
          {tokenOf(rowOf(logits, static_cast<int64_t>(r), width), draws[r])});
    return rows;
  });
}

void addSamplingCases(std::vector<OpCase> &cases) {
  const SamplingParams greedy{};
  // A vocabulary of one token, of fewer than a block's threads, and of more.
  for (const int64_t vocabulary : {1, 131, 3001}) {
    const auto program = sampleProgram(vocabulary);
    const std::string &name = program->name;
    cases.push_back(sampleCase(name + "_greedy_r1", program,
                               normalFloats(vocabulary, 91), {greedy}));
    std::vector<SamplingParams> draws = {greedy};
    for (const float temperature : {0.5f, 4.0f})
      for (const int32_t k : {0, 5})
        for (const float p : {1.0f, 0.9f, 0.3f})
          draws.push_back({temperature, k, p,
                           static_cast<uint32_t>(draws.size()) * 330382099U});
    const auto rows = static_cast<int64_t>(draws.size());
    cases.push_back(sampleCase(absl::StrCat(name, "_draws"), program,
                               normalFloats(rows * vocabulary, 92, 2), draws));
    // The smaller id of equal logits is first.
    std::vector<float> equal(4 * vocabulary, -1.5f);
    cases.push_back(sampleCase(name + "_equal", program, equal,
                               {greedy, {1, 1, 1, 0}, {1, 0, 1, 0}, greedy}));
    // A row with a logit of NaN has no token; the others do.
    std::vector<float> bad = normalFloats(5 * vocabulary, 93);
    bad[vocabulary - 1] = NAN;
    bad[2 * vocabulary] = INFINITY;
    bad[3 * vocabulary + vocabulary / 2] = -INFINITY;
    cases.push_back(
        sampleCase(name + "_not_finite", program, bad,
                   {greedy, greedy, {1, 0, 1, 1U << 31}, greedy, greedy}));
  }
}

} // namespace llamac::conformance
