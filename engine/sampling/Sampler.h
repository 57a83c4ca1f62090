//===- Sampler.h - Chooses the next token -----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SAMPLING_SAMPLER_H
#define LLAMAC_ENGINE_SAMPLING_SAMPLER_H

#include "engine/sampling/LogitsMath.h"
#include "text/request/SamplingOptions.h"

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace llamac {

/// Accuracy error: the logits of `position` are not finite.
absl::Status notFiniteError(int64_t position);

/// notFiniteError() if `logits` are not finite.
absl::Status checkLogits(absl::Span<const float> logits, int64_t position);

/// xoshiro256**, of Blackman and Vigna, seeded by splitmix64: the same numbers
/// on every machine.
class RandomStream {
public:
  explicit RandomStream(uint64_t seed);
  uint64_t next();
  double nextUniform(); ///< In [0, 1), of 53 bits.

private:
  std::array<uint64_t, 4> state;
};

/// How one token is sampled by a plan that does so itself: its input
/// sampling_params.
struct SamplingParams {
  float temperature = 0; ///< 0: the first of the largest.
  int32_t topK = 0;      ///< 0: all.
  float topP = 1;
  uint32_t noiseKey = 0; ///< See tokenNoise().
};
static_assert(sizeof(SamplingParams) == 16, "four words of the plan's input");

/// The params of an answer's tokens, one after the other.
class ParamStream {
public:
  /// Each call takes the next noise key. Numbers are rounded.
  SamplingParams next();

private:
  friend class Sampler;
  ParamStream(const SamplingOptions &options, uint64_t seed)
      : temperature(options.temperature), topK(options.topK),
        topP(options.topP), random(seed) {}

  double temperature;
  int64_t topK;
  double topP;
  RandomStream random;
};

/// Chooses the tokens of one answer. Samplers share nothing that changes: each
/// may be used on a thread of its own.
class Sampler {
public:
  /// `stopIds` are those that end the answer. `vocabSize`, where it is known,
  /// bounds the ids of logitBias. Errors: those of check(), and of a grammar
  /// those of Grammar::newMatcher().
  static absl::StatusOr<Sampler> create(const SamplingOptions &options,
                                        absl::Span<const int32_t> stopIds = {},
                                        std::optional<int64_t> vocabSize = {});

  /// Usage error for an option out of its range, NaN included.
  static absl::Status check(const SamplingOptions &options,
                            absl::Span<const int32_t> stopIds,
                            std::optional<int64_t> vocabSize);

  /// Takes the prompt, or its next tokens, for the repetition penalty.
  void see(absl::Span<const int32_t> prompt);

  /// Chooses the next token given finite logits, which are at least one, and
  /// remembers it: penalties count it. Usage error where the options allow
  /// none.
  absl::StatusOr<int32_t> sample(absl::Span<const float> logits);

  /// Does what the next sample() needs no logits for, which is to find the
  /// tokens that the grammar allows; that takes long enough to be done beside
  /// the step that computes the logits. Not at the same time as another call.
  void prepare();

  /// The logprobs of the tokens that were chosen since the last call; empty
  /// where none are asked for.
  std::vector<TokenLogprobs> takeLogprobs() {
    return std::exchange(logprobs, {});
  }

  /// Whether nextParams() says all that there is to say, so that a plan may
  /// sample; else logits are to be given to sample().
  bool samplesOnDevice() const { return onDevice; }

  /// The params with which a plan samples as sample() would now, and goes on.
  SamplingParams nextParams() { return stream.next(); }
  /// The params that come next.
  const ParamStream &params() const { return stream; }

  /// The token that the noise of a key draws from those that minP, topK and
  /// topP keep.
  int32_t choose(absl::Span<const float> logits, uint32_t noiseKey);

  /// A sampler for drafts: it draws as this one would now, with the same noise,
  /// but knows of no grammar, penalty or bias.
  Sampler forDrafts() const;

  /// The seed in use, for a report.
  uint64_t seed() const { return usedSeed; }
  bool greedy() const { return options.temperature == 0; }

private:
  Sampler(const SamplingOptions &options, uint64_t seed,
          absl::Span<const int32_t> stopIds);

  bool penalizes() const;
  absl::Status adjust(absl::Span<const float> logits);
  void ruleOut();
  void penalize();
  absl::Status noneAllowedError() const;
  double weighCandidates(float largest);
  void keepUntil(double goal);
  TokenLogit lastOfTopP(float largest);
  void report(absl::Span<const float> logits, int32_t id);

  SamplingOptions options;
  uint64_t usedSeed;
  ParamStream stream;
  std::vector<int32_t> stopIds;
  bool onDevice, adjusts;
  int64_t chosenTokens = 0;
  std::unique_ptr<GrammarMatcher> matcher; ///< Null without a grammar.
  TokenMask allowed;                       ///< Tokens that the grammar allows
                                           ///< next.
  std::optional<absl::Status> prepared; ///< How that ended, once it is known.
  /// How often each token seen is in the answer.
  absl::flat_hash_map<int32_t, int32_t> timesInAnswer;
  std::vector<TokenLogprobs> logprobs; ///< See takeLogprobs().
  // Scratch memory: logits as the options change them, and what is selected of
  // them.
  std::vector<float> adjusted;
  std::vector<TokenLogit> candidates;
  std::vector<double> weights;
  WeightBuckets buckets;
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SAMPLING_SAMPLER_H
