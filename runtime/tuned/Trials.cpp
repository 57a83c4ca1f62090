//===- Trials.cpp - Which of several is the fastest -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuned/Trials.h"

#include <algorithm>
#include <cmath>

namespace llamac {

static constexpr double leastGain = 0.01;   ///< Worth a change.
static constexpr double unknownNoise = 0.3; ///< Assumed with fewer than
                                            ///< leastRounds.

double medianOf(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  const size_t count = values.size();
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

void Trials::addRound(absl::Span<const std::optional<double>> values) {
  for (size_t i = 0; i < seconds.size(); ++i)
    seconds[i].push_back(values[i]);
}

double Trials::secondsOf(size_t candidate) const {
  std::vector<double> known;
  for (const std::optional<double> &value : seconds[candidate])
    if (value)
      known.push_back(*value);
  return medianOf(std::move(known));
}

Trials::Ratio Trials::ratioOf(size_t candidate, size_t other) const {
  std::vector<double> ratios;
  for (size_t round = 0; round < rounds(); ++round) {
    const std::optional<double> &time = seconds[candidate][round];
    const std::optional<double> &otherTime = seconds[other][round];
    if (time && otherTime && *otherTime > 0)
      ratios.push_back(*time / *otherTime);
  }
  const auto count = static_cast<double>(ratios.size());
  const double median = medianOf(ratios);
  if (ratios.size() < leastRounds)
    return {median, unknownNoise, ratios.size()};
  std::vector<double> deviations = ratios;
  for (double &ratio : deviations)
    ratio = std::abs(ratio - median);
  // The standard deviation of a normal distribution is 1.4826 median
  // deviations, and the standard error of a median 1.2533 that of a mean.
  double error =
      1.2533 * 1.4826 * medianOf(std::move(deviations)) / std::sqrt(count);
  // A median deviation of few rounds says little. The range of n normal values
  // is about sqrt(n) standard deviations, up to n = 10.
  if (ratios.size() < 7) {
    const auto [least, most] =
        std::minmax_element(ratios.begin(), ratios.end());
    error = std::max(error, 1.2533 * (*most - *least) / count);
  }
  return {median, std::max(leastGain, 3 * error), ratios.size()};
}

size_t Trials::fastest() const {
  size_t best = 0;
  double least = 1;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const Ratio ratio = ratioOf(i);
    if (ratio.rounds >= leastRounds &&
        ratio.median < std::min(least, 1 - ratio.noise)) {
      best = i;
      least = ratio.median;
    }
  }
  return best;
}

bool Trials::isOpen(size_t candidate, size_t selected) const {
  const Ratio ratio = ratioOf(candidate, selected);
  return ratio.rounds == 0 ||
         (ratio.median <= 1 + ratio.noise && ratio.noise > leastGain);
}

} // namespace llamac
