//===- SamplingBench.cpp - Speed of sampling ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times Sampler::sample() over the vocabulary of Llama 3 for the ways to sample
// that users ask for. Logits are normal: "flat" of deviation 1, where half of
// the probability is of 20,000 tokens, and "peaked" of deviation 4, where it is
// of a few.
//
// usage: llamac_sampling_bench [--benchmark_filter=REGEX ...]
//
//===----------------------------------------------------------------------===//

#include "engine/sampling/Sampler.h"

#include <benchmark/benchmark.h>
#include <random>
#include <string>
#include <vector>

using namespace llamac;

static constexpr size_t vocabSize = 128256;

/// Rows that are taken in turn, as a step makes new ones.
static std::vector<std::vector<float>> randomRows(float deviation) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<std::vector<float>> rows(8, std::vector<float>(vocabSize));
  for (std::vector<float> &row : rows)
    for (float &logit : row)
      logit = normal(random);
  return rows;
}

static void timeSampling(benchmark::State &state,
                         const SamplingOptions &options,
                         const std::vector<std::vector<float>> &rows) {
  absl::StatusOr<Sampler> sampler = Sampler::create(options);
  if (!sampler.ok())
    return state.SkipWithError(std::string(sampler.status().message()).c_str());
  std::vector<int32_t> prompt(2000);
  for (size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<int32_t>(i * 61 % vocabSize);
  sampler->see(prompt);
  size_t next = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(sampler->sample(rows[next++ % rows.size()]));
}

int main(int argc, char **argv) {
  const std::pair<const char *, SamplingOptions> cases[] = {
      {"greedy", {}},
      {"temperature", {.temperature = 1, .seed = 1}},
      {"top_k_40", {.temperature = 1, .topK = 40, .seed = 1}},
      {"top_k_40_top_p_0.95",
       {.temperature = 0.8, .topK = 40, .topP = 0.95, .seed = 1}},
      {"top_p_0.9", {.temperature = 1, .topP = 0.9, .seed = 1}},
      {"min_p_0.05", {.temperature = 1, .seed = 1, .minP = 0.05}},
      {"penalties",
       {.repetitionPenalty = 1.1,
        .frequencyPenalty = 0.1,
        .presencePenalty = 0.1}},
      {"logprobs_5", {.logprobs = 5}},
  };
  const auto flat = randomRows(1), peaked = randomRows(4);
  for (const auto &[name, options] : cases)
    for (const bool isFlat : {true, false}) {
      const std::string title =
          std::string("sample/") + name + (isFlat ? "/flat" : "/peaked");
      const auto *rows = isFlat ? &flat : &peaked;
      benchmark::RegisterBenchmark(title.c_str(), [rows, &options = options](
                                                      benchmark::State &state) {
        timeSampling(state, options, *rows);
      })->Unit(benchmark::kMicrosecond);
    }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
