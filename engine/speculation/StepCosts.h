//===- StepCosts.h - What rows of a step cost, and which pay ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step reads all weights, however few rows it has, so that a few drafts more
// cost little as long as reading them is what takes the time. What they cost
// here and now is measured.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SPECULATION_STEPCOSTS_H
#define LLAMAC_ENGINE_SPECULATION_STEPCOSTS_H

#include "engine/speculation/Draft.h"

#include "absl/types/span.h"

#include <cstdint>
#include <map>
#include <vector>

namespace llamac {

/// The seconds of steps that only decode, by their rows.
class StepCosts {
public:
  void record(int64_t rows, double seconds);

  /// The time of a step of `rows` rows, between those that were measured
  /// lately, and beyond them by a row's cost that favours trying; 0 where none
  /// of as few rows was.
  double seconds(int64_t rows) const;

private:
  struct Measured {
    double seconds;
    int64_t at; ///< The step that measured it last.
  };
  std::map<int64_t, Measured> measured; ///< Steps by their rows.
  int64_t steps = 0;
};

/// Tokens a second over those without drafts that drafts must bring: less is
/// noise, and rows that answers to come could have.
inline constexpr double leastDraftGain = 1.03;

/// How many of each of `drafts` to run in a step that has `rows` rows besides
/// and at most `mostRows` in all, so that it brings the most tokens a second.
std::vector<int64_t> draftsThatPay(const StepCosts &costs, int64_t rows,
                                   absl::Span<const Draft> drafts,
                                   int64_t mostRows);

} // namespace llamac

#endif // LLAMAC_ENGINE_SPECULATION_STEPCOSTS_H
