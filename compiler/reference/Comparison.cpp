//===- Comparison.cpp - Values against the reference's --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/reference/Comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace llamac {

Difference compareValues(absl::Span<const float> got,
                         absl::Span<const float> expected) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (got.size() != expected.size())
    return {infinite, infinite, 0};
  Difference result;
  double error = 0, power = 0, largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    // Both sides hide masked scores by the same infinity.
    if (got[i] == expected[i] && std::isinf(got[i]))
      continue;
    if (!std::isfinite(got[i]) || !std::isfinite(expected[i]))
      return {infinite, infinite, i};
    const double difference = double{got[i]} - expected[i];
    error += difference * difference;
    power += double{expected[i]} * expected[i];
    largest = std::max(largest, std::abs(double{expected[i]}));
    if (std::abs(difference) > result.maximum) {
      result.maximum = std::abs(difference);
      result.worst = i;
    }
  }
  if (error > 0) {
    result.nmse = power > 0 ? error / power : infinite;
    result.maximum = largest > 0 ? result.maximum / largest : infinite;
  }
  return result;
}

TiledDifference compareTiles(absl::Span<const float> got,
                             absl::Span<const float> expected, int64_t width,
                             absl::Span<const float> residual,
                             absl::Span<const float> bounds) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  constexpr int64_t tileSize = 16;
  const auto count = static_cast<int64_t>(expected.size());
  if (got.size() != expected.size() ||
      (!residual.empty() && residual.size() != expected.size()))
    return {{infinite, infinite, 0}, infinite};

  TiledDifference result;
  std::vector<double> errors(count), powers(count);
  double error = 0, power = 0, largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(got[i]) || !std::isfinite(expected[i]))
      return {{infinite, infinite, static_cast<size_t>(i)}, infinite};
    const double own =
        double{expected[i]} - (residual.empty() ? 0.0 : double{residual[i]});
    const double lastBit = 0x1p-23 * std::abs(double{expected[i]});
    const double difference =
        std::max(0.0, std::abs(double{got[i]} - double{expected[i]}) - lastBit -
                          (bounds.empty() ? 0.0 : double{bounds[i]}));
    errors[i] = difference * difference;
    powers[i] = own * own;
    error += errors[i];
    power += powers[i];
    largest = std::max(largest, std::abs(own));
    if (difference > result.maximum) {
      result.maximum = difference;
      result.worst = static_cast<size_t>(i);
    }
  }
  if (error == 0)
    return result;
  result.nmse = power > 0 ? error / power : infinite;
  result.maximum = largest > 0 ? result.maximum / largest : infinite;

  const double mean = power / static_cast<double>(count);
  for (int64_t first = 0; first < count;) {
    const int64_t size = std::min(tileSize, width - first % width);
    auto meanOf = [&](const std::vector<double> &values) {
      return std::accumulate(values.begin() + first,
                             values.begin() + first + size, 0.0) /
             static_cast<double>(size);
    };
    const double scale = std::max(mean, meanOf(powers));
    if (const double wrong = meanOf(errors); wrong > 0)
      result.tile = std::max(result.tile, scale > 0 ? wrong / scale : infinite);
    first += size;
  }
  return result;
}

} // namespace llamac
