//===- RowBudget.cpp - Rows of prompts beside running answers -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/scheduler/RowBudget.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace llamac {

/// How much of a mean the next step is. Those without prompts are rare while
/// prompts come in.
static constexpr double newShare = 0.1, newPlainShare = 0.3;

int64_t RowBudget::rows() const {
  if (sincePlain == plainInterval)
    return 0;
  if (steps == 0)
    return firstRows;
  const double meanRows = sumRows / steps, meanSeconds = sumSeconds / steps;
  // Least squares, within what the line can be: a row costs something, and a
  // step with prompts at least what one without them does.
  const double variance = sumSquares / steps - meanRows * meanRows;
  const double covariance = sumProducts / steps - meanRows * meanSeconds;
  const double least = 0.05 * meanSeconds / meanRows;
  const double most = std::max((meanSeconds - plainSeconds) / meanRows, least);
  const double slope =
      variance > 0 ? std::clamp(covariance / variance, least, most) : most;
  const double base = meanSeconds - slope * meanRows;
  const double rows =
      std::max(slowdown * plainSeconds - base, leastShare * base) / slope;
  // A line through noise must not make a step that is much longer.
  const double next = std::min(rows, 1.5 * meanRows + 1);
  return std::max<int64_t>(
      1, std::llround(std::min(next, 1e6) * (isHigh ? 1.25 : 0.75)));
}

void RowBudget::record(int64_t decodeRows, int64_t promptRows, double seconds) {
  if (decodeRows == 0)
    return;
  if (promptRows == 0) {
    sincePlain = 0;
    // Some steps are slow by chance.
    const double most =
        plainSeconds == 0 ? seconds : std::min(seconds, 1.5 * plainSeconds);
    plainSeconds +=
        (plainSeconds == 0 ? 1 : newPlainShare) * (most - plainSeconds);
    return;
  }
  ++sincePlain;
  const auto rows = static_cast<double>(promptRows);
  for (const auto &[sum, value] :
       {std::pair(&steps, 1.0), std::pair(&sumRows, rows),
        std::pair(&sumSeconds, seconds), std::pair(&sumSquares, rows * rows),
        std::pair(&sumProducts, rows * seconds)})
    *sum = (1 - newShare) * *sum + value;
  isHigh = !isHigh;
}

} // namespace llamac
