//===- RowBudget.h - Rows of prompts beside running answers -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SCHEDULER_ROWBUDGET_H
#define LLAMAC_ENGINE_SCHEDULER_ROWBUDGET_H

#include <cstdint>

namespace llamac {

/// How many rows of prompts a step may have beside answers that decode, so that
/// those wait for the step at most `slowdown` times as long as for one without
/// prompts. Learnt from the steps before, as a line through their seconds:
///
///   seconds = base + slope * rows
///
/// The base is more than a step without prompts takes: one row of a prompt
/// already reads all keys of its sequence. Where the base alone is too slow,
/// fewer rows do not help the answers; a step then has as many as make it
/// longer by `leastShare`.
class RowBudget {
public:
  /// Varies by a quarter from step to step, which shows the slope, and is 0 now
  /// and then: what a step without prompts takes grows with the answers.
  int64_t rows() const;

  /// Takes the seconds of a step of `decodeRows` rows that decode and
  /// `promptRows` others.
  void record(int64_t decodeRows, int64_t promptRows, double seconds);

private:
  /// Answers see some steps slower than the mean.
  static constexpr double slowdown = 1.6;
  static constexpr double leastShare = 0.25;
  static constexpr int64_t firstRows = 16; ///< While nothing is known.
  static constexpr int plainInterval = 32; ///< Steps to one without prompts.

  double plainSeconds = 0; ///< Seconds of a step without prompts; 0: not known.
  int sincePlain = 0;      ///< Steps.
  /// Sums over steps with prompts, each of which weighs less by the step.
  double steps = 0, sumRows = 0, sumSeconds = 0, sumSquares = 0,
         sumProducts = 0;
  bool isHigh = false; ///< Whether the next step has more rows or fewer.
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SCHEDULER_ROWBUDGET_H
