//===- Trials.h - Which of several is the fastest ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times are taken in rounds: each round measures every candidate once, so that
// what slows the machine down for a while slows all of them down. Only the
// ratio of two times of the same round counts.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNED_TRIALS_H
#define LLAMAC_RUNTIME_TUNED_TRIALS_H

#include "absl/types/span.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace llamac {

/// 0 of no values.
double medianOf(std::vector<double> values);

/// Seconds of candidates in rounds. Candidate 0 is in every round.
class Trials {
public:
  /// Rounds that a candidate must have been timed in to be selected.
  static constexpr size_t leastRounds = 5;

  explicit Trials(size_t candidates) : seconds(candidates) {}

  /// `values` has a time for each candidate that is still in.
  void addRound(absl::Span<const std::optional<double>> values);

  size_t rounds() const { return seconds.empty() ? 0 : seconds[0].size(); }

  /// Median seconds; 0 for one that was never measured.
  double secondsOf(size_t candidate) const;

  /// The time of a candidate by that of another in the same rounds, and the
  /// noise: 1 %, or three standard errors; 30 % of fewer than leastRounds.
  struct Ratio {
    double median = 1;
    double noise = 0;
    size_t rounds = 0;
  };
  Ratio ratioOf(size_t candidate, size_t other = 0) const;

  /// The fastest; 0 where none is faster than it by more than noise.
  size_t fastest() const;

  /// Whether more rounds could show that `candidate` is faster than `selected`.
  bool isOpen(size_t candidate, size_t selected) const;

private:
  /// Seconds by candidate and round; absent where it was out.
  std::vector<std::vector<std::optional<double>>> seconds;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNED_TRIALS_H
