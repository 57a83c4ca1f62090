//===- Trials.h - Which of several is the fastest ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Times are taken in rounds: each round measures every candidate once, so that
// what slows the machine down for a while slows all of them down. Of a
// candidate only its ratio to the first one in the same round counts.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_TRIALS_H
#define LLAMAC_RUNTIME_TUNE_TRIALS_H

#include "absl/types/span.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace llamac {

/// Seconds on a clock that never goes back.
double steadySeconds();

double medianOf(std::vector<double> values);

/// Seconds of candidates in rounds. Candidate 0 is what all others are compared
/// with and takes part in every round.
class Trials {
public:
  /// Rounds that a candidate must have been timed in to be picked.
  static constexpr size_t leastRounds = 3;

  explicit Trials(size_t candidates) : seconds(candidates) {}

  /// Makes room for candidates that join later.
  void setCandidates(size_t count);

  /// `values` has a time for each candidate that is still in.
  void addRound(absl::Span<const std::optional<double>> values);

  size_t rounds() const { return seconds.front().size(); }

  /// Median seconds; 0 for one that was never measured.
  double secondsOf(size_t candidate) const;

  /// The time of a candidate by that of another in the same rounds, and the
  /// least difference from 1 that is more than noise: 1 %, or three standard
  /// errors; 30 % as long as there are fewer than leastRounds.
  struct Ratio {
    double median = 1;
    double noise = 0;
    size_t rounds = 0;
  };
  Ratio ratioOf(size_t candidate, size_t other = 0) const;

  /// Candidates that more rounds may still show to be the fastest, best first;
  /// without the first.
  std::vector<size_t> contenders() const;

  /// Whether more rounds would hardly change anything: each other candidate is
  /// faster or slower than `pick` by more than noise, or noise is down to what
  /// does not matter.
  bool isDecided(size_t pick) const;

  /// The fastest. One that is faster than `kept` (what was chosen before, or
  /// the first) by no more than noise, or in too few rounds, does not take its
  /// place.
  size_t pick(size_t kept = 0) const;

  /// The fastest beside `pick`; none when it is the only one.
  std::optional<size_t> runnerUp(size_t pick) const;

private:
  /// By candidate and round; absent where it was out.
  std::vector<std::vector<std::optional<double>>> seconds;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_TRIALS_H
