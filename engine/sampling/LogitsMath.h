//===- LogitsMath.h - Selections and sums over logits -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These functions compute what sampling asks of a row of logits, each in a few
// passes that the compiler turns into vector code. The most likely token comes
// first; equal logits are in order of their ids. A logit of minus infinity is a
// token that is not allowed; others are finite. A token weighs
// e^((logit - largest) / temperature).
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SAMPLING_LOGITSMATH_H
#define LLAMAC_ENGINE_SAMPLING_LOGITSMATH_H

#include "engine/sampling/TokenNoise.h"

#include "absl/types/span.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace llamac {

inline constexpr float notAllowed = -std::numeric_limits<float>::infinity();

/// The id of the largest of at least one logit, the first of equals.
int32_t argmax(absl::Span<const float> logits);

struct LogitRange {
  float smallest, largest;
};
LogitRange rangeOf(absl::Span<const float> logits);

struct TokenLogit {
  float logit;
  int32_t id;
};

/// Makes `result` the `count` most likely of the tokens whose logits are at
/// least `least`, or all of those, in order.
void selectLargest(absl::Span<const float> logits, size_t count, float least,
                   std::vector<TokenLogit> &result);

/// The sum of e^(logit - largest); to 1e-13 of it.
double sumOfExps(absl::Span<const float> logits, float largest);

/// How many tokens are before `id` in order.
int64_t countMoreLikely(absl::Span<const float> logits, int32_t id);

/// The tokens of a row, by weight, in buckets of about equal ranges of logits.
/// All tokens of a bucket are before those of the next one in order, so that
/// the token at some share of all weight is found by sorting one bucket instead
/// of all tokens.
class WeightBuckets {
public:
  /// Tokens below `least` are left out. `temperature` is above 0; the row
  /// outlives its use here.
  void fill(absl::Span<const float> logits, LogitRange range, float least,
            double temperature);

  size_t size() const { return sums.size(); }
  double weight(size_t bucket) const { return sums[bucket]; }
  double totalWeight() const;

  /// Makes `result` the tokens of a bucket, in order.
  void list(size_t bucket, std::vector<TokenLogit> &result) const;

private:
  absl::Span<const float> row;
  float largest = 0, least = 0;
  float scale = 0; ///< Buckets of a unit.
  std::vector<double> sums;
};

/// The exponential race of one key; see TokenNoise.h.
class TokenRace {
public:
  explicit TokenRace(uint32_t key) : key(key) {}

  void enter(int32_t id, double weight) {
    const uint32_t noise = tokenNoise(key, static_cast<uint32_t>(id));
    // Most tokens need no logarithm to lose.
    if (uniformOf(noise) >= best * weight)
      return;
    const double time = exponentialOf(noise) / weight;
    if (time < best) {
      best = time;
      leader = id;
    }
  }

  /// Enters the tokens of a row that are in order up to `last`, `largest` among
  /// them. `temperature` is above 0.
  void enter(absl::Span<const float> logits, const TokenLogit &last,
             float largest, double temperature);

  /// The token that wins.
  int32_t winner() const { return leader; }

private:
  uint32_t key;
  double best = std::numeric_limits<double>::infinity();
  int32_t leader = 0;
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SAMPLING_LOGITSMATH_H
