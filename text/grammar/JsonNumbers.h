//===- JsonNumbers.h - Rules for numbers between bounds ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_GRAMMAR_JSONNUMBERS_H
#define LLAMAC_TEXT_GRAMMAR_JSONNUMBERS_H

#include "text/grammar/GrammarRules.h"

#include "absl/status/statusor.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace llamac {

/// A number as its digits: (-)whole.fraction, without needless zeros.
struct Decimal {
  bool isNegative = false;
  std::string whole = "0", fraction = {};

  /// The decimal of a JSON number: an integer's digits, else the shortest ones
  /// that name the double.
  static Decimal of(const nlohmann::ordered_json &number);
  bool isZero() const { return whole == "0" && fraction.empty(); }
};

/// -1, 0 or 1 as `a` is below, the same as or above `b`.
int compare(const Decimal &a, const Decimal &b);

struct NumberBounds {
  struct Bound {
    Decimal value;
    bool isOpen = false; ///< The number itself is out.
  };
  std::optional<Bound> low, high;
  bool isInteger = false;
  int64_t multipleOf = 1; ///< Above 1 numbers are written as integers.

  void addLow(Bound bound);
  void addHigh(Bound bound);
};

/// A rule for numbers within `bounds`; -1 where there are none. Integers have
/// at most 21 digits. Others have at most 15, so that no two are the same as
/// doubles, and an exponent only where there are no bounds. Usage error where
/// the numbers within `bounds` need more digits, or too many rules.
absl::StatusOr<int> addNumbers(GrammarRules &rules, NumberBounds bounds);

} // namespace llamac

#endif // LLAMAC_TEXT_GRAMMAR_JSONNUMBERS_H
