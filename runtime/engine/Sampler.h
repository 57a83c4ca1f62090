//===- Sampler.h - Chooses the next token -----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_SAMPLER_H
#define LLAMAC_RUNTIME_ENGINE_SAMPLER_H

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace llamac {

/// Accuracy error: the logits of `position` are not finite.
absl::Status notFiniteError(int64_t position);

/// That error if `logits` are not.
absl::Status checkLogits(absl::Span<const float> logits, int64_t position);

struct SamplingOptions {
  /// Logits are divided by it; 0 takes the argmax (greedy), and the other
  /// options have no effect.
  double temperature = 0;
  /// Samples from the k most probable tokens; 0: from all.
  int64_t topK = 0;
  /// Samples, after topK, from the fewest most probable tokens whose
  /// probabilities reach this sum; 1: from all.
  double topP = 1;
  /// Without one, a random seed is made.
  std::optional<uint64_t> seed = {};
};

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
  uint32_t uniform = 0; ///< A random number in [0, 1), times 2^32.
};
static_assert(sizeof(SamplingParams) == 16, "four words of the plan's input");

class Sampler {
public:
  /// Usage error for an invalid temperature, top-k or top-p, NaN included.
  static absl::StatusOr<Sampler> create(const SamplingOptions &options);

  /// The next token's id given finite logits, which are at least one. Equal
  /// logits are taken in order of their ids.
  int32_t sample(absl::Span<const float> logits);

  /// Whether nextParams() says all of how it samples.
  bool samplesOnDevice() const { return true; }

  /// The params with which a plan samples as sample() would now; each call
  /// takes the next random number. Numbers are rounded.
  SamplingParams nextParams();

  /// The token that `uniform`, in [0, 1), selects.
  int32_t choose(absl::Span<const float> logits, double uniform);

  /// The seed in use, for a report.
  uint64_t seed() const { return usedSeed; }
  bool greedy() const { return options.temperature == 0; }

private:
  struct Candidate {
    float logit;
    int32_t id;
  };

  Sampler(const SamplingOptions &options, uint64_t seed)
      : options(options), usedSeed(seed), random(seed) {}

  void selectCandidates(absl::Span<const float> logits);

  SamplingOptions options;
  uint64_t usedSeed;
  RandomStream random;
  std::vector<Candidate> candidates;
  std::vector<double> weights;
};

/// The id of the largest logit, the first of equals.
int32_t argmax(absl::Span<const float> logits);

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_SAMPLER_H
