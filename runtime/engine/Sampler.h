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

/// The same where it is so.
absl::Status checkLogits(absl::Span<const float> logits, int64_t position);

struct SamplingOptions {
  /// Logits are divided by it; 0 takes the most likely token (greedy), and the
  /// other options then have no effect.
  double temperature = 0;
  /// Only the k most likely tokens are drawn from; 0 for all.
  int64_t topK = 0;
  /// Only the fewest most likely tokens whose probabilities reach this sum are
  /// drawn from, after topK; 1 for all.
  double topP = 1;
  /// Decides every draw; one is made when there is none.
  std::optional<uint64_t> seed = {};
};

/// xoshiro256**, of Blackman and Vigna, seeded by splitmix64: the same numbers
/// on every machine.
class RandomStream {
public:
  explicit RandomStream(uint64_t seed);
  uint64_t next();
  double nextUnit(); ///< In [0, 1), of 53 bits.

private:
  std::array<uint64_t, 4> state;
};

/// One draw as a plan that samples by itself takes it, its input `draws`.
struct Draw {
  float temperature = 0; ///< 0: the first of the largest.
  int32_t topK = 0;      ///< 0: all.
  float topP = 1;
  uint32_t unit = 0; ///< The number in [0, 1) that decides, times 2^32.
};
static_assert(sizeof(Draw) == 16, "four words of the plan's input");

class Sampler {
public:
  /// Usage error for a temperature, top-k or top-p that is no such thing; NaN
  /// is none.
  static absl::StatusOr<Sampler> create(const SamplingOptions &options);

  /// The next token's id given finite logits, which are at least one. Equal
  /// logits are taken in order of their ids.
  int32_t sample(absl::Span<const float> logits);

  /// The draw that sample() would make now, for the plan to make: the next one
  /// is another. Its numbers are rounded.
  Draw nextDraw();

  /// The token that `unit`, in [0, 1), draws.
  int32_t choose(absl::Span<const float> logits, double unit);

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
int32_t mostLikely(absl::Span<const float> logits);

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_SAMPLER_H
