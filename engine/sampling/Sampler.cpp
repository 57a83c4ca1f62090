//===- Sampler.cpp - Chooses the next token -------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/sampling/Sampler.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/formats/FloatBits.h"
#include "text/request/RequestOptions.h"

#include "absl/container/flat_hash_set.h"
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

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static absl::Status checkBias(const SamplingOptions &options,
                              std::optional<int64_t> vocabSize) {
  static constexpr absl::string_view field = "logit_bias";
  absl::flat_hash_set<int32_t> ids;
  for (const auto &[id, bias] : options.logitBias) {
    if (id < 0 || id >= vocabSize.value_or(INT64_MAX))
      return fieldError(
          field,
          absl::StrCat("expected a token id",
                       vocabSize ? absl::StrCat(" below ", *vocabSize) : "",
                       ", got ", id));
    if (!ids.insert(id).second)
      return fieldError(
          field, absl::StrCat("expected token id ", id, " once, got it twice"));
  }
  return absl::OkStatus();
}

absl::Status Sampler::check(const SamplingOptions &options,
                            absl::Span<const int32_t> stopIds,
                            std::optional<int64_t> vocabSize) {
  Request request{.prompt = {}, .options = {.sampling = options}};
  LLAMAC_RETURN_IF_ERROR(checkNumbers(request));
  if (options.grammar)
    for (const int32_t id : options.grammar->stopIds())
      if (std::find(stopIds.begin(), stopIds.end(), id) == stopIds.end())
        return fieldError("ignore_eos",
                          "expected false beside a grammar, whose answers are "
                          "ended by the model's stop ids, got true");
  return checkBias(options, vocabSize);
}

absl::StatusOr<Sampler> Sampler::create(const SamplingOptions &options,
                                        absl::Span<const int32_t> stopIds,
                                        std::optional<int64_t> vocabSize) {
  LLAMAC_RETURN_IF_ERROR(check(options, stopIds, vocabSize));
  uint64_t seed = 0;
  if (options.seed) {
    seed = *options.seed;
  } else {
    // 32 bits are easier to type again.
    std::random_device device;
    seed = device();
  }
  Sampler sampler(options, seed, stopIds);
  if (options.grammar) {
    LLAMAC_ASSIGN_OR_RETURN(sampler.matcher, options.grammar->newMatcher());
  }
  return sampler;
}

Sampler::Sampler(const SamplingOptions &options, uint64_t seed,
                 absl::Span<const int32_t> stopIds)
    : options(options), usedSeed(seed), stream(options, seed),
      stopIds(stopIds.begin(), stopIds.end()),
      adjusts(penalizes() || !options.logitBias.empty() ||
              options.minTokens > 0 || options.grammar) {
  this->options.topK = stream.topK = std::max<int64_t>(options.topK, 0);
  onDevice = !adjusts && options.minP == 0 && options.logprobs < 0;
}

Sampler Sampler::forDrafts() const {
  Sampler drafts({.temperature = options.temperature,
                  .topK = options.topK,
                  .topP = options.topP,
                  .minP = options.minP},
                 usedSeed, {});
  drafts.stream = stream;
  return drafts;
}

bool Sampler::penalizes() const {
  return options.repetitionPenalty != 1 || options.frequencyPenalty != 0 ||
         options.presencePenalty != 0;
}

SamplingParams ParamStream::next() {
  if (temperature == 0)
    return {};
  // Numbers that f32 does not hold make no difference.
  constexpr double least = std::numeric_limits<float>::min();
  constexpr double most = std::numeric_limits<float>::max();
  constexpr int64_t all = std::numeric_limits<int32_t>::max();
  return {static_cast<float>(std::clamp(temperature, least, most)),
          static_cast<int32_t>(std::min(topK, all)),
          static_cast<float>(std::max(topP, least)),
          static_cast<uint32_t>(random.next() >> 32)};
}

//===----------------------------------------------------------------------===//
// Changes of the logits
//===----------------------------------------------------------------------===//

void Sampler::see(absl::Span<const int32_t> prompt) {
  if (options.repetitionPenalty != 1)
    for (const int32_t id : prompt)
      timesInAnswer.try_emplace(id, 0);
}

void Sampler::penalize() {
  const auto repetition = static_cast<float>(options.repetitionPenalty);
  const auto frequency = static_cast<float>(options.frequencyPenalty);
  const auto presence = static_cast<float>(options.presencePenalty);
  constexpr float most = std::numeric_limits<float>::max();
  for (const auto &[id, times] : timesInAnswer) {
    // The engine refuses what is no token; sampling comes to no harm.
    if (static_cast<size_t>(id) >= adjusted.size() ||
        adjusted[id] == notAllowed)
      continue;
    float &logit = adjusted[id];
    logit = logit > 0 ? logit / repetition : logit * repetition;
    logit -= frequency * static_cast<float>(times);
    logit -= times > 0 ? presence : 0;
    logit = std::clamp(logit, -most, most);
  }
}

void Sampler::prepare() {
  if (matcher && !prepared)
    prepared = matcher->nextTokens(allowed);
}

/// Makes those of `adjusted` that are not in `allowed` notAllowed.
void Sampler::ruleOut() {
  for (size_t first = 0; first < adjusted.size(); first += 32) {
    const uint32_t bits = first / 32 < allowed.size() ? allowed[first / 32] : 0;
    const size_t count = std::min<size_t>(32, adjusted.size() - first);
    float *row = adjusted.data() + first;
    if (bits == 0)
      std::fill_n(row, count, notAllowed);
    else if (bits != UINT32_MAX)
      for (size_t i = 0; i < count; ++i)
        row[i] = bits >> i & 1 ? row[i] : notAllowed;
  }
}

/// Makes `adjusted` the logits that tokens are chosen by.
absl::Status Sampler::adjust(absl::Span<const float> logits) {
  adjusted.assign(logits.begin(), logits.end());
  const bool isEarly = chosenTokens < options.minTokens;
  if (matcher) {
    prepare();
    LLAMAC_RETURN_IF_ERROR(*prepared);
    if (isEarly) {
      TokenMask others = allowed;
      for (const int32_t id : stopIds)
        if (static_cast<size_t>(id) / 32 < others.size())
          others[id / 32] &= ~(1U << id % 32);
      if (std::any_of(others.begin(), others.end(),
                      [](uint32_t bits) { return bits != 0; }))
        allowed = std::move(others);
    }
    ruleOut();
  } else if (isEarly) {
    for (const int32_t id : stopIds)
      if (static_cast<size_t>(id) < adjusted.size())
        adjusted[id] = notAllowed;
  }
  for (const auto &[id, bias] : options.logitBias)
    if (static_cast<size_t>(id) < adjusted.size())
      adjusted[id] += bias;
  penalize();
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

absl::Status Sampler::noneAllowedError() const {
  return usageError(
      matcher
          ? "grammar: no token goes on with the answer, which is complete or "
            "needs characters that the vocabulary does not have"
          : "sampling: every token is a stop id, and fewer than min tokens "
            "were "
            "generated; ask for fewer");
}

absl::StatusOr<int32_t> Sampler::sample(absl::Span<const float> logits) {
  if (adjusts)
    LLAMAC_RETURN_IF_ERROR(adjust(logits));
  const absl::Span<const float> row = adjusts ? adjusted : logits;
  // One race, without those that the grammar then refuses.
  const uint32_t noiseKey = stream.next().noiseKey;
  int32_t id = 0;
  while (true) {
    id = greedy() ? argmax(row) : choose(row, noiseKey);
    if (row[id] == notAllowed)
      return noneAllowedError();
    if (!matcher)
      break;
    LLAMAC_ASSIGN_OR_RETURN(const bool isAccepted, matcher->accept(id));
    if (isAccepted)
      break;
    adjusted[id] = notAllowed;
  }
  prepared.reset();
  if (options.logprobs >= 0)
    report(logits, id);
  ++chosenTokens;
  if (penalizes())
    ++timesInAnswer[id];
  return id;
}

int32_t Sampler::choose(absl::Span<const float> logits, uint32_t noiseKey) {
  const LogitRange range = rangeOf(logits);
  if (range.largest == notAllowed)
    return 0;
  // Where minP is 0 its logarithm is no bound.
  const double cut =
      std::min(negligible, -std::log(options.minP)) * options.temperature;
  // The first float that is no less.
  const double exact = std::max<double>(range.largest - cut,
                                        std::numeric_limits<float>::lowest());
  auto least = static_cast<float>(exact);
  if (least < exact)
    least = std::nextafter(least, range.largest);
  TokenRace race(noiseKey);
  if (options.topK > 0 && static_cast<uint64_t>(options.topK) < logits.size()) {
    selectLargest(logits, static_cast<size_t>(options.topK), least, candidates);
    const double total = weighCandidates(range.largest);
    if (options.topP < 1)
      keepUntil(options.topP * total);
    for (size_t i = 0; i < weights.size(); ++i)
      race.enter(candidates[i].id, weights[i]);
    return race.winner();
  }
  TokenLogit last{least, std::numeric_limits<int32_t>::max()};
  if (options.topP < 1) {
    buckets.fill(logits, range, least, options.temperature);
    last = lastOfTopP(range.largest);
  }
  race.enter(logits, last, range.largest, options.temperature);
  return race.winner();
}

/// Makes `weights` those of `candidates`; returns their sum.
double Sampler::weighCandidates(float largest) {
  weights.clear();
  double total = 0;
  for (const TokenLogit &candidate : candidates) {
    weights.push_back(
        std::exp((candidate.logit - largest) / options.temperature));
    total += weights.back();
  }
  return total;
}

/// Keeps the first of `weights` whose sum reaches `goal`.
void Sampler::keepUntil(double goal) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (sum < goal)
      continue;
    weights.resize(i + 1);
    break;
  }
}

/// The last token of `buckets` that topP keeps; looks only at those of the
/// bucket where that is.
TokenLogit Sampler::lastOfTopP(float largest) {
  const double goal = options.topP * buckets.totalWeight();
  double before = 0;
  size_t bucket = 0;
  while (bucket + 1 < buckets.size() && before + buckets.weight(bucket) < goal)
    before += buckets.weight(bucket++);
  buckets.list(bucket, candidates);
  weighCandidates(largest);
  keepUntil(goal - before);
  return candidates[weights.size() - 1];
}

//===----------------------------------------------------------------------===//
// Report
//===----------------------------------------------------------------------===//

/// Adds those of `id` to `logprobs`, given the raw logits.
void Sampler::report(absl::Span<const float> logits, int32_t id) {
  const float largest = rangeOf(logits).largest;
  const double logSum = largest + std::log(sumOfExps(logits, largest));
  auto logprobOf = [&](int32_t token) {
    return TokenLogprob{token, static_cast<float>(logits[token] - logSum)};
  };
  const auto count =
      std::min(static_cast<size_t>(options.logprobs), logits.size());
  TokenLogprobs &of = logprobs.emplace_back();
  of.chosen = logprobOf(id);
  of.rank = 1 + countMoreLikely(logits, id);
  if (count == 0)
    return;
  selectLargest(logits, count, std::numeric_limits<float>::lowest(),
                candidates);
  for (const TokenLogit &candidate : candidates)
    of.alternatives.push_back(logprobOf(candidate.id));
}

} // namespace llamac
