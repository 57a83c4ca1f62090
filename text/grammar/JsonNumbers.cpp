//===- JsonNumbers.cpp - Rules for numbers between bounds -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers of one sign between two bounds, for each count of digits before the
// point: a rule for each position, for whether the digits so far are those of
// the lower or upper bound, and for what they leave when divided.
//
//===----------------------------------------------------------------------===//

#include "text/grammar/JsonNumbers.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

namespace llamac {

/// Digits of a number that is no integer: fewer than a double tells apart.
static constexpr int maxDigits = 15;
static constexpr int maxIntegerDigits = 21;
static constexpr int64_t maxRules = 6000;

Decimal Decimal::of(const nlohmann::ordered_json &number) {
  std::string text;
  if (number.is_number_unsigned()) {
    text = absl::StrCat(number.get<uint64_t>());
  } else if (number.is_number_integer()) {
    text = absl::StrCat(number.get<int64_t>());
  } else {
    // Long enough for the smallest double.
    char buffer[800];
    const double value = number.get<double>();
    const auto end = std::to_chars(std::begin(buffer), std::end(buffer), value,
                                   std::chars_format::fixed);
    text.assign(buffer, end.ptr);
    // Python and others compare integers with the double's own value.
    if (std::abs(value) >= 9007199254740992.0)
      text = absl::StrFormat("%.0f", value);
  }
  Decimal decimal;
  decimal.isNegative = text[0] == '-';
  text.erase(0, decimal.isNegative);
  const size_t point = text.find('.');
  decimal.whole = text.substr(0, point);
  if (point != text.npos)
    decimal.fraction = text.substr(point + 1);
  while (!decimal.fraction.empty() && decimal.fraction.back() == '0')
    decimal.fraction.pop_back();
  if (decimal.isZero())
    decimal.isNegative = false;
  return decimal;
}

int compare(const Decimal &a, const Decimal &b) {
  if (a.isNegative != b.isNegative)
    return a.isNegative ? -1 : 1;
  const int sign = a.isNegative ? -1 : 1;
  if (a.whole.size() != b.whole.size())
    return a.whole.size() < b.whole.size() ? -sign : sign;
  if (const int order = a.whole.compare(b.whole))
    return order < 0 ? -sign : sign;
  const int order = a.fraction.compare(b.fraction);
  return order == 0 ? 0 : order < 0 ? -sign : sign;
}

void NumberBounds::addLow(Bound bound) {
  const int order = low ? compare(bound.value, low->value) : 1;
  if (order > 0 || (order == 0 && bound.isOpen))
    low = std::move(bound);
}

void NumberBounds::addHigh(Bound bound) {
  const int order = high ? compare(bound.value, high->value) : -1;
  if (order < 0 || (order == 0 && bound.isOpen))
    high = std::move(bound);
}

namespace {

/// Numbers from 0 on.
class DecimalRules {
public:
  DecimalRules(GrammarRules &rules, const NumberBounds::Bound &low,
               const NumberBounds::Bound &high, bool hasFraction,
               int64_t divisor)
      : rules(rules), low(low), high(high), hasFraction(hasFraction),
        divisor(divisor) {}

  absl::StatusOr<int> add();

private:
  using Key = std::tuple<size_t, size_t, bool, bool, int64_t, bool>;

  /// After `at` of `count` digits before the point, -1 where nothing goes on.
  int whole(size_t count, size_t at, bool isLow, bool isHigh, int64_t left);
  /// After `at` digits behind the point, with the last of `most`. Equal to the
  /// lower bound so far and past its digits, `isLow` says that more than zeros
  /// must come.
  int fraction(size_t at, size_t most, bool isLow, bool isHigh);
  /// The rule of `key` where it is known or, with -1, there are too many.
  std::optional<int> find(const Key &key);
  int keep(const Key &key, std::vector<GrammarRules::Sequence> alternatives);

  GrammarRules &rules;
  const NumberBounds::Bound &low, &high;
  bool hasFraction;
  int64_t divisor;
  std::map<Key, int> known;
  bool isTooMuch = false;
};

} // namespace

static std::string digitClass(char first, char last) {
  return first == last ? absl::StrCat("[", std::string(1, first), "]")
                       : absl::StrCat("[", std::string(1, first), "-",
                                      std::string(1, last), "]");
}

std::optional<int> DecimalRules::find(const Key &key) {
  if (const auto found = known.find(key); found != known.end())
    return found->second;
  isTooMuch |= static_cast<int64_t>(known.size()) > maxRules;
  return isTooMuch ? std::optional(-1) : std::nullopt;
}

int DecimalRules::keep(const Key &key,
                       std::vector<GrammarRules::Sequence> alternatives) {
  const int rule =
      alternatives.empty() ? -1 : rules.add(std::move(alternatives));
  return known[key] = rule;
}

int DecimalRules::fraction(size_t at, size_t most, bool isLow, bool isHigh) {
  const Key key{at, most, isLow, isHigh, 0, true};
  if (const auto found = find(key))
    return *found;
  std::vector<GrammarRules::Sequence> alternatives;
  const std::string &lows = low.value.fraction, &highs = high.value.fraction;
  // May the number end here? At least one digit stands behind a point.
  const bool isAboveLow = !isLow || (at >= lows.size() && !low.isOpen);
  const bool isBelowHigh = !isHigh || at < highs.size() || !high.isOpen;
  if (at > 0 && isAboveLow && isBelowHigh)
    alternatives.push_back({"\"\""});
  if (at < most) {
    if (!isLow && !isHigh) {
      const std::string digits =
          absl::StrCat("[0-9]{", at ? 0 : 1, ",", most - at, "}");
      return keep(key, {{digits}});
    }
    const char from = isLow && at < lows.size() ? lows[at] : '0';
    const char to = !isHigh ? '9' : at < highs.size() ? highs[at] : '0';
    for (char digit = from; digit <= to;) {
      const bool nextLow = isLow && digit == from;
      const bool nextHigh = isHigh && digit == to;
      char last = digit;
      while (last < to && !nextLow && !nextHigh && !(isHigh && last + 1 == to))
        ++last;
      const int next = fraction(at + 1, most, nextLow, nextHigh);
      if (next >= 0)
        alternatives.push_back({digitClass(digit, last), next});
      digit = static_cast<char>(last + 1);
    }
  }
  return keep(key, std::move(alternatives));
}

int DecimalRules::whole(size_t count, size_t at, bool isLow, bool isHigh,
                        int64_t left) {
  // A free number without a fraction depends on the digits to come alone.
  if (!isLow && !isHigh && at > 1 && !hasFraction)
    return whole(count - at + 1, 1, false, false, left);
  const Key key{count, at, isLow, isHigh, left, false};
  if (const auto found = find(key))
    return *found;
  std::vector<GrammarRules::Sequence> alternatives;
  if (at == count) {
    const bool isAboveLow =
        !isLow || (low.value.fraction.empty() && !low.isOpen);
    const bool isBelowHigh =
        !isHigh || !high.value.fraction.empty() || !high.isOpen;
    if (isAboveLow && isBelowHigh && left == 0)
      alternatives.push_back({"\"\""});
    if (hasFraction && count < maxDigits)
      if (const int rest = fraction(0, maxDigits - count, isLow, isHigh);
          rest >= 0)
        alternatives.push_back({"\".\"", rest});
    return keep(key, std::move(alternatives));
  }
  if (!isLow && !isHigh && divisor == 1 && at > 0) {
    GrammarRules::Sequence digits = {absl::StrCat("[0-9]{", count - at, "}")};
    if (const int rest = whole(count, count, false, false, 0); rest >= 0)
      digits.push_back(rest);
    return keep(key, {digits});
  }
  const char least = at == 0 && count > 1 ? '1' : '0';
  const char from = isLow ? std::max(low.value.whole[at], least) : least;
  const char to = isHigh ? high.value.whole[at] : '9';
  for (char digit = from; digit <= to;) {
    const bool nextLow = isLow && digit == low.value.whole[at];
    const bool nextHigh = isHigh && digit == to;
    char last = digit;
    while (last < to && !nextLow && !nextHigh && divisor == 1 &&
           !(isHigh && last + 1 == to))
      ++last;
    const int next = whole(count, at + 1, nextLow, nextHigh,
                           (left * 10 + (digit - '0')) % divisor);
    if (next >= 0)
      alternatives.push_back({digitClass(digit, last), next});
    digit = static_cast<char>(last + 1);
  }
  return keep(key, std::move(alternatives));
}

absl::StatusOr<int> DecimalRules::add() {
  std::vector<GrammarRules::Sequence> alternatives;
  const size_t shortest = low.value.whole.size();
  const size_t longest = high.value.whole.size();
  // Digits of 9 alone bound nothing but their number.
  const bool isBound =
      high.isOpen || (hasFraction && longest < maxDigits) ||
      high.value.whole.find_first_not_of('9') != std::string::npos;
  const size_t free = isBound ? longest : longest + 1;
  for (size_t count = shortest; count <= longest; ++count) {
    if (!hasFraction && divisor == 1 && count > shortest && count < free) {
      alternatives.push_back(
          {absl::StrCat("[1-9] [0-9]{", count - 1, ",", free - 2, "}")});
      count = free - 1;
      continue;
    }
    const int rule = whole(count, 0, count == shortest, count >= free, 0);
    if (rule >= 0)
      alternatives.push_back({rule});
  }
  if (isTooMuch)
    return usageError("its bounds and multiples need too many rules");
  return alternatives.empty() ? -1 : rules.add(std::move(alternatives));
}

/// The integer at or, as `isUp` says, above or below `value`.
static NumberBounds::Bound rounded(NumberBounds::Bound bound, bool isUp) {
  Decimal &value = bound.value;
  const bool isWhole = value.fraction.empty();
  value.fraction.clear();
  // A number without its fraction is nearer to 0: one further in one case. The
  // bound itself is out where it is open, or where it has been passed.
  bound.isOpen = isWhole ? bound.isOpen : value.isNegative != isUp;
  if (value.isZero())
    value.isNegative = false;
  return bound;
}

absl::StatusOr<int> addNumbers(GrammarRules &rules, NumberBounds bounds) {
  const bool isInteger = bounds.isInteger || bounds.multipleOf > 1;
  if (!bounds.low && !bounds.high && bounds.multipleOf == 1)
    return rules.add(
        {{isInteger ? "\"-\"? (\"0\" | [1-9] [0-9]{0,20})"
                    : "\"-\"? (\"0\" | [1-9] [0-9]{0,20}) (\".\" [0-9]{1,20})? "
                      "([eE] [+\\-]? [0-9]{1,2})?"}});
  // A multiple is a rule for each digit and each remainder.
  const int digits = bounds.multipleOf > 1 ? 12
                     : isInteger           ? maxIntegerDigits
                                           : maxDigits;
  Decimal most;
  most.whole.assign(digits, '9');
  Decimal least = most;
  least.isNegative = true;
  const bool isCutLow = bounds.low && compare(bounds.low->value, most) > 0;
  const bool isCutHigh = bounds.high && compare(bounds.high->value, least) < 0;
  if (isCutLow || isCutHigh)
    return usageError(absl::StrCat("expected bounds that leave numbers of at "
                                   "most ",
                                   digits, " digits"));
  const bool isEmptyRange =
      bounds.low && bounds.high &&
      (compare(bounds.low->value, bounds.high->value) > 0 ||
       (compare(bounds.low->value, bounds.high->value) == 0 &&
        (bounds.low->isOpen || bounds.high->isOpen)));
  if (isEmptyRange)
    return -1;
  bounds.addLow({least});
  bounds.addHigh({most});
  NumberBounds::Bound low = *bounds.low, high = *bounds.high;
  if (isInteger) {
    low = rounded(low, /*isUp=*/true);
    high = rounded(high, /*isUp=*/false);
  }
  std::vector<GrammarRules::Sequence> alternatives;
  const auto add = [&](const NumberBounds::Bound &from,
                       const NumberBounds::Bound &to,
                       const char *sign) -> absl::Status {
    const int order = compare(from.value, to.value);
    if (order > 0 || (order == 0 && (from.isOpen || to.isOpen)))
      return absl::OkStatus();
    LLAMAC_ASSIGN_OR_RETURN(
        const int rule,
        DecimalRules(rules, from, to, !isInteger, bounds.multipleOf).add());
    if (rule >= 0)
      alternatives.push_back(*sign ? GrammarRules::Sequence{sign, rule}
                                   : GrammarRules::Sequence{rule});
    return absl::OkStatus();
  };
  const NumberBounds::Bound zero;
  if (!high.value.isNegative)
    LLAMAC_RETURN_IF_ERROR(add(low.value.isNegative ? zero : low, high, ""));
  if (low.value.isNegative) {
    // Their sizes; 0 has no sign.
    NumberBounds::Bound from =
        high.value.isNegative ? high : NumberBounds::Bound{Decimal{}, true};
    NumberBounds::Bound to = low;
    from.value.isNegative = to.value.isNegative = false;
    LLAMAC_RETURN_IF_ERROR(add(from, to, "\"-\""));
  }
  if (alternatives.empty()) {
    if (isInteger)
      return -1;
    return usageError(absl::StrCat("no number of at most ", maxDigits,
                                   " digits is between the bounds"));
  }
  return rules.add(std::move(alternatives));
}

} // namespace llamac
