//===- StepCosts.cpp - What rows of a step cost, and which pay ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/speculation/StepCosts.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace llamac {

/// Steps after which a time says nothing any more, so that drafts that did not
/// pay once are tried again.
static constexpr int64_t lifetime = 256;

void StepCosts::record(int64_t rows, double seconds) {
  static constexpr double newShare = 0.25, slowest = 1.5;
  ++steps;
  std::erase_if(measured, [&](const auto &of) {
    return of.second.at + lifetime < steps;
  });
  const auto [of, isNew] = measured.try_emplace(rows, seconds, steps);
  Measured &known = of->second;
  known.at = steps;
  // Some steps are slow by chance.
  if (!isNew)
    known.seconds +=
        newShare * (std::min(seconds, slowest * known.seconds) - known.seconds);
}

double StepCosts::seconds(int64_t rows) const {
  // Less than a row has been seen to cost on any device.
  static constexpr double leastSlope = 0.005;
  if (measured.empty() || rows < measured.begin()->first)
    return 0;
  const auto above = measured.lower_bound(rows);
  if (above == measured.end()) {
    const auto &[most, known] = *std::prev(above);
    return known.seconds * (1 + leastSlope * static_cast<double>(rows - most));
  }
  if (above->first == rows)
    return above->second.seconds;
  const auto &[less, below] = *std::prev(above);
  const double share = static_cast<double>(rows - less) /
                       static_cast<double>(above->first - less);
  return below.seconds + share * (above->second.seconds - below.seconds);
}

std::vector<int64_t> draftsThatPay(const StepCosts &costs, int64_t rows,
                                   absl::Span<const Draft> drafts,
                                   int64_t mostRows) {
  // Tokens of the largest survival go first, as in each draft.
  std::vector<std::pair<double, size_t>> tokens; // Survival, and whose it is.
  for (size_t i = 0; i < drafts.size(); ++i)
    for (const double survival : drafts[i].survival)
      tokens.emplace_back(survival, i);
  std::ranges::sort(tokens, std::ranges::greater());
  tokens.resize(std::min<size_t>(
      tokens.size(),
      static_cast<size_t>(std::max<int64_t>(mostRows - rows, 0))));
  size_t best = 0;
  const double plain = costs.seconds(rows);
  double expected = static_cast<double>(rows);
  double bestRate = leastDraftGain * expected / plain;
  for (size_t i = 0; plain > 0 && i < tokens.size(); ++i) {
    expected += tokens[i].first;
    const double rate =
        expected / costs.seconds(rows + static_cast<int64_t>(i) + 1);
    if (rate <= bestRate)
      continue;
    bestRate = rate;
    best = i + 1;
  }
  std::vector<int64_t> counts(drafts.size());
  for (size_t i = 0; i < best; ++i)
    ++counts[tokens[i].second];
  return counts;
}

} // namespace llamac
