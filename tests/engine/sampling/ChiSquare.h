//===- ChiSquare.h - Pearson's test of counts -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_ENGINE_SAMPLING_CHISQUARE_H
#define LLAMAC_TESTS_ENGINE_SAMPLING_CHISQUARE_H

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace llamac {

/// The statistic exceeds this once in a million, by Wilson and Hilferty's
/// approximation.
inline double rareChiSquare(double degrees) {
  const double ninth = 2 / (9 * degrees);
  return degrees * std::pow(1 - ninth + 4.75 * std::sqrt(ninth), 3);
}

/// Expects that `counts` are draws by `probabilities`, where what has none is
/// never drawn.
inline void expectDrawnBy(const std::vector<double> &probabilities,
                          const std::vector<double> &counts) {
  const double draws = std::accumulate(counts.begin(), counts.end(), 0.0);
  double statistic = 0, degrees = -1;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (probabilities[i] == 0) {
      EXPECT_EQ(counts[i], 0) << "number " << i;
      continue;
    }
    const double expected = draws * probabilities[i];
    statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++degrees;
  }
  if (degrees > 0)
    EXPECT_LT(statistic, rareChiSquare(degrees)) << degrees << " degrees";
}

/// Expects that rows and columns of a table of `size` squared counts are
/// independent.
inline void expectIndependent(const std::vector<double> &table, size_t size) {
  std::vector<double> rows(size), columns(size);
  for (size_t i = 0; i < table.size(); ++i) {
    rows[i / size] += table[i];
    columns[i % size] += table[i];
  }
  const double draws = std::accumulate(rows.begin(), rows.end(), 0.0);
  std::vector<double> probabilities(table.size());
  for (size_t i = 0; i < table.size(); ++i)
    probabilities[i] = rows[i / size] * columns[i % size] / (draws * draws);
  expectDrawnBy(probabilities, table);
}

} // namespace llamac

#endif // LLAMAC_TESTS_ENGINE_SAMPLING_CHISQUARE_H
