//===- Trials.cpp - Which of several is the fastest -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Trials.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace llamac {

/// What nobody would notice.
static constexpr double leastGain = 0.01;
/// Before there are rounds enough to know the noise.
static constexpr double unknownNoise = 0.3;

double steadySeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double medianOf(std::vector<double> values) {
  if (values.empty())
    return 0;
  const auto middle =
      values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0)
    return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

void Trials::setCandidates(size_t count) {
  seconds.resize(count, std::vector<std::optional<double>>(rounds()));
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
    if (time && otherTime)
      ratios.push_back(*time / *otherTime);
  }
  if (ratios.empty())
    return {std::numeric_limits<double>::infinity(), unknownNoise, 0};
  const double median = medianOf(ratios);
  std::vector<double> deviations;
  deviations.reserve(ratios.size());
  for (const double ratio : ratios)
    deviations.push_back(std::abs(ratio - median));
  // Of a normal distribution: the standard deviation is 1.4826 times the
  // median deviation, and the standard error of a median 1.2533 times that of
  // a mean.
  double error = 1.2533 * 1.4826 * medianOf(std::move(deviations)) /
                 std::sqrt(static_cast<double>(ratios.size()));
  // Of few rounds a median deviation says little; all of them count. The range
  // of n normal values is about sqrt(n) standard deviations, up to n = 10.
  constexpr size_t few = 7;
  if (ratios.size() < few) {
    const auto [least, most] =
        std::minmax_element(ratios.begin(), ratios.end());
    error = std::max(error, 1.2533 * (*most - *least) /
                                static_cast<double>(ratios.size()));
  }
  const double least = ratios.size() < leastRounds ? unknownNoise : leastGain;
  return {median, std::max(least, 3 * error), ratios.size()};
}

std::vector<size_t> Trials::contenders() const {
  double best = 1;
  for (size_t i = 1; i < seconds.size(); ++i)
    best = std::min(best, ratioOf(i).median);
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 1; i < seconds.size(); ++i) {
    const Ratio ratio = ratioOf(i);
    if (ratio.median <= best + std::max(0.03, ratio.noise))
      order.emplace_back(ratio.median, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<size_t> numbers;
  numbers.reserve(order.size());
  for (const auto &[ratio, number] : order)
    numbers.push_back(number);
  return numbers;
}

bool Trials::isDecided(size_t pick) const {
  constexpr size_t fewest = 7;
  if (rounds() < fewest)
    return false;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const Ratio ratio = ratioOf(i, pick);
    if (i != pick && std::abs(ratio.median - 1) <= ratio.noise &&
        ratio.noise > leastGain)
      return false;
  }
  return true;
}

size_t Trials::pick(size_t kept) const {
  size_t best = kept;
  double least = 1;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const Ratio ratio = ratioOf(i, kept);
    if (ratio.rounds >= leastRounds && ratio.median < least &&
        ratio.median < 1 - ratio.noise) {
      best = i;
      least = ratio.median;
    }
  }
  return best;
}

std::optional<size_t> Trials::runnerUp(size_t pick) const {
  std::optional<size_t> best;
  for (size_t i = 0; i < seconds.size(); ++i)
    if (i != pick && secondsOf(i) > 0 &&
        (!best || ratioOf(i).median < ratioOf(*best).median))
      best = i;
  return best;
}

} // namespace llamac
