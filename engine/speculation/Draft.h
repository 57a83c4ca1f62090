//===- Draft.h - Tokens that are likely to come next ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SPECULATION_DRAFT_H
#define LLAMAC_ENGINE_SPECULATION_DRAFT_H

#include <cstdint>
#include <vector>

namespace llamac {

/// How often drafted tokens were right; some fifty tokens decide, as old ones
/// count less and less.
class Acceptance {
public:
  void record(bool isRight) {
    right = kept * right + isRight;
    seen = kept * seen + 1;
  }

  /// Lets what is known count less.
  void forget() {
    right *= kept;
    seen *= kept;
  }

  /// The probability that the next one is right, where `prior` is expected
  /// before anything is seen and counts as `weight` tokens.
  double rate(double prior, double weight) const {
    return (right + prior * weight) / (seen + weight);
  }

private:
  static constexpr double kept = 0.98;
  double right = 0, seen = 0; ///< Tokens.
};

/// Tokens that are likely to come next in a sequence.
struct Draft {
  std::vector<int32_t> tokens;
  /// The probability, for each, that it and all before it are right.
  std::vector<double> survival;

  /// Appends a token that is right with probability `acceptance` where those
  /// before it are.
  void add(int32_t token, double acceptance) {
    const double before = survival.empty() ? 1 : survival.back();
    tokens.push_back(token);
    survival.push_back(before * acceptance);
  }

  /// Keeps the first `count` tokens.
  void cut(int64_t count) {
    tokens.resize(static_cast<size_t>(count));
    survival.resize(static_cast<size_t>(count));
  }
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SPECULATION_DRAFT_H
