//===- Sampler.cpp - Chooses the next token -------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Sampler.h"

#include "runtime/base/Status.h"
#include "runtime/io/FloatBits.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace llamac {

// Tokens below e^-40 of the largest probability are never sampled: a vocabulary
// of 2^18 of them weighs 1e-12.
static constexpr double negligible = 40;

absl::Status notFiniteError(int64_t position) {
  return accuracyError(absl::StrCat("logits of position ", position,
                                    ": expected finite numbers, got NaN or "
                                    "infinity; the weights may be damaged"));
}

absl::Status checkLogits(absl::Span<const float> logits, int64_t position) {
  return allFinite(logits) ? absl::OkStatus() : notFiniteError(position);
}

RandomStream::RandomStream(uint64_t seed) {
  for (uint64_t &word : state) {
    seed += 0x9e3779b97f4a7c15;
    uint64_t mixed = seed;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    word = mixed ^ (mixed >> 31);
  }
}

uint64_t RandomStream::next() {
  const uint64_t result = std::rotl(state[1] * 5, 7) * 9;
  const uint64_t shifted = state[1] << 17;
  state[2] ^= state[0];
  state[3] ^= state[1];
  state[1] ^= state[2];
  state[0] ^= state[3];
  state[2] ^= shifted;
  state[3] = std::rotl(state[3], 45);
  return result;
}

double RandomStream::nextUniform() {
  return static_cast<double>(next() >> 11) * 0x1p-53;
}

absl::StatusOr<Sampler> Sampler::create(const SamplingOptions &options) {
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature))
    return usageError(
        absl::StrCat("temperature: expected a number of at least 0, got ",
                     options.temperature));
  if (options.topK < 0)
    return usageError(
        absl::StrCat("top-k: expected 0 or more, got ", options.topK));
  if (!(options.topP > 0 && options.topP <= 1))
    return usageError(absl::StrCat(
        "top-p: expected a number above 0 and at most 1, got ", options.topP));
  uint64_t seed = 0;
  if (options.seed) {
    seed = *options.seed;
  } else {
    // 32 bits are easier to type again.
    std::random_device device;
    seed = device();
  }
  return Sampler(options, seed);
}

int32_t argmax(absl::Span<const float> logits) {
  // The largest value is found first, without a branch on each element.
  constexpr size_t lanes = 16;
  float best[lanes];
  std::fill(best, best + lanes, -std::numeric_limits<float>::infinity());
  const size_t whole = logits.size() / lanes * lanes;
  for (size_t i = 0; i < whole; i += lanes)
    for (size_t lane = 0; lane < lanes; ++lane)
      best[lane] =
          best[lane] < logits[i + lane] ? logits[i + lane] : best[lane];
  float largest = *std::max_element(best, best + lanes);
  for (size_t i = whole; i < logits.size(); ++i)
    largest = std::max(largest, logits[i]);
  return static_cast<int32_t>(std::find(logits.begin(), logits.end(), largest) -
                              logits.begin());
}

int32_t Sampler::sample(absl::Span<const float> logits) {
  return greedy() ? argmax(logits) : choose(logits, random.nextUniform());
}

SamplingParams Sampler::nextParams() {
  if (greedy())
    return {};
  // Numbers that f32 does not hold make no difference.
  constexpr double least = std::numeric_limits<float>::min();
  constexpr double most = std::numeric_limits<float>::max();
  constexpr int64_t all = std::numeric_limits<int32_t>::max();
  const double temperature = std::clamp(options.temperature, least, most);
  return {static_cast<float>(temperature),
          static_cast<int32_t>(std::min(options.topK, all)),
          static_cast<float>(std::max(options.topP, least)),
          static_cast<uint32_t>(random.nextUniform() * 0x1p32)};
}

void Sampler::selectCandidates(absl::Span<const float> logits) {
  const float largest = logits[argmax(logits)];
  const double least = largest - negligible * options.temperature;
  candidates.clear();
  for (size_t id = 0; id < logits.size(); ++id)
    if (logits[id] >= least)
      candidates.push_back({logits[id], static_cast<int32_t>(id)});

  auto isMoreLikely = [](const Candidate &a, const Candidate &b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  if (options.topK > 0 &&
      static_cast<uint64_t>(options.topK) < candidates.size()) {
    std::nth_element(candidates.begin(), candidates.begin() + options.topK,
                     candidates.end(), isMoreLikely);
    candidates.resize(static_cast<size_t>(options.topK));
  }
  // The order decides which token a uniform selects, so it is fixed.
  std::sort(candidates.begin(), candidates.end(), isMoreLikely);

  weights.clear();
  double total = 0;
  for (const Candidate &candidate : candidates) {
    weights.push_back(
        std::exp((candidate.logit - largest) / options.temperature));
    total += weights.back();
  }
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum < options.topP * total)
      continue;
    weights.resize(i + 1);
    break;
  }
}

int32_t Sampler::choose(absl::Span<const float> logits, double uniform) {
  selectCandidates(logits);
  double total = 0;
  for (double weight : weights)
    total += weight;
  double left = uniform * total;
  size_t chosen = 0;
  while (chosen + 1 < weights.size() && left >= weights[chosen])
    left -= weights[chosen++];
  return candidates[chosen].id;
}

} // namespace llamac
