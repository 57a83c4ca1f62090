//===- Operators.cpp - Operators of templates -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Format.h"
#include "text/templates/Interpreter.h"
#include "text/templates/Text.h"

#include "absl/strings/str_cat.h"

#include <cmath>

namespace llamac::chat {

static absl::Status wrongOperands(absl::string_view op, const Value &a,
                                  const Value &b) {
  for (const Value &value : {a, b})
    if (value.isUndefined())
      return undefinedError(value);
  return templateError(
      absl::StrCat("'", op, "' joins no ", typeName(a), " with ", typeName(b)));
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

// Python rounds quotients down.
static absl::StatusOr<Value> divideIntegers(absl::string_view op, int64_t a,
                                            int64_t b) {
  if (b == 0)
    return templateError("division by zero");
  if (a == INT64_MIN && b == -1)
    return op == "%" ? absl::StatusOr<Value>(Value::integer(0))
                     : integerOverflow();
  const int64_t rest = a % b;
  const bool corrects = rest != 0 && (rest < 0) != (b < 0);
  return Value::integer(op == "%" ? rest + (corrects ? b : 0)
                                  : a / b - corrects);
}

// The formulas of Python's float_divmod.
static absl::StatusOr<Value> divideReals(absl::string_view op, double a,
                                         double b) {
  if (b == 0)
    return templateError("division by zero");
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) {
      rest += b;
      quotient -= 1;
    }
  } else {
    rest = std::copysign(0.0, b);
  }
  if (op == "%")
    return Value::real(rest);
  if (quotient == 0)
    return Value::real(std::copysign(0.0, a / b));
  const double floor = std::floor(quotient);
  return Value::real(quotient - floor > 0.5 ? floor + 1 : floor);
}

static absl::StatusOr<Value> power(const Value &a, const Value &b) {
  if (a.isInt() && b.isInt() && b.integer() >= 0) {
    int64_t result = 1, base = a.integer();
    bool isTooLarge = false;
    for (uint64_t rest = static_cast<uint64_t>(b.integer()); rest; rest >>= 1) {
      if (rest & 1) {
        if (isTooLarge || __builtin_mul_overflow(result, base, &result))
          return integerOverflow();
      }
      isTooLarge |= __builtin_mul_overflow(base, base, &base);
    }
    return Value::integer(result);
  }
  const double x = a.real(), y = b.real();
  if (x == 0 && y < 0)
    return templateError("division by zero");
  const double result = std::pow(x, y);
  if (x < 0 && std::isfinite(x) && std::isfinite(y) && y != std::floor(y))
    return templateError("a power that is a complex number");
  if (std::isinf(result) && std::isfinite(x) && std::isfinite(y))
    return templateError("a power that is too large");
  return Value::real(result);
}

static absl::StatusOr<Value> arithmetic(absl::string_view op, const Value &a,
                                        const Value &b) {
  if (op == "**")
    return power(a, b);
  if (op == "/") {
    if (b.real() == 0)
      return templateError("division by zero");
    if (!a.isInt() || !b.isInt())
      return Value::real(a.real() / b.real());
    return Value::real(static_cast<double>(
        static_cast<long double>(a.integer()) / b.integer()));
  }
  if (!a.isInt() || !b.isInt()) {
    const double x = a.real(), y = b.real();
    if (op == "+")
      return Value::real(x + y);
    if (op == "-")
      return Value::real(x - y);
    if (op == "*")
      return Value::real(x * y);
    return divideReals(op, x, y);
  }
  const int64_t x = a.integer(), y = b.integer();
  int64_t result;
  if (op == "+"   ? __builtin_add_overflow(x, y, &result)
      : op == "-" ? __builtin_sub_overflow(x, y, &result)
      : op == "*" ? __builtin_mul_overflow(x, y, &result)
                  : false)
    return integerOverflow();
  if (op == "+" || op == "-" || op == "*")
    return Value::integer(result);
  return divideIntegers(op, x, y);
}

//===----------------------------------------------------------------------===//
// Text and sequences
//===----------------------------------------------------------------------===//

// a + b of texts and of sequences.
Interpreter::ValueOr Interpreter::sum(const Value &a, const Value &b) {
  if (a.isString() && b.isString()) {
    const bool markup = a.string().markup || b.string().markup;
    const auto shown = [markup](const Value &value) {
      return markup && !value.string().markup ? escapeHtml(value.text())
                                              : std::string(value.text());
    };
    return heap.string(shown(a) + shown(b), markup);
  }
  if (a.isSequence() && a.kind() == b.kind()) {
    std::vector<Value> all = a.sequence().items;
    const std::vector<Value> &more = b.sequence().items;
    LLAMAC_RETURN_IF_ERROR(
        heap.wouldFit(all.size() + more.size(), sizeof(Value)));
    all.insert(all.end(), more.begin(), more.end());
    return heap.sequence(a.kind(), std::move(all));
  }
  return wrongOperands("+", a, b);
}

// A text or sequence as many times as an integer says.
Interpreter::ValueOr Interpreter::product(const Value &a, const Value &b) {
  const Value &many = a.isInt() ? b : a;
  const Value &times = a.isInt() ? a : b;
  if (!times.isInt() || !(many.isString() || many.isSequence()))
    return wrongOperands("*", a, b);
  const uint64_t count =
      static_cast<uint64_t>(std::max<int64_t>(0, times.integer()));
  if (many.isString()) {
    LLAMAC_RETURN_IF_ERROR(heap.wouldFit(count, many.text().size()));
    std::string text;
    if (!many.text().empty())
      for (uint64_t i = 0; i < count; ++i)
        absl::StrAppend(&text, many.text());
    return heap.string(std::move(text), many.string().markup);
  }
  const std::vector<Value> &items = many.sequence().items;
  uint64_t bytes = items.size() * sizeof(Value);
  LLAMAC_RETURN_IF_ERROR(heap.wouldFit(count, bytes));
  std::vector<Value> all;
  if (!items.empty())
    for (uint64_t i = 0; i < count; ++i)
      all.insert(all.end(), items.begin(), items.end());
  return heap.sequence(many.kind(), std::move(all));
}

absl::StatusOr<Value> Interpreter::binary(absl::string_view op, const Value &a,
                                          const Value &b) {
  if (op == "%" && a.isString())
    return formatPercent(*this, a, b);
  if (a.isNumber() && b.isNumber())
    return arithmetic(op, a, b);
  if (op == "+")
    return sum(a, b);
  if (op == "*")
    return product(a, b);
  return wrongOperands(op, a, b);
}

absl::StatusOr<bool> Interpreter::contains(const Value &container,
                                           const Value &value) {
  switch (container.kind()) {
  case Kind::String:
    if (!value.isString())
      return wrongOperands("in", value, container);
    LLAMAC_RETURN_IF_ERROR(heap.spendBytes(container.text().size()));
    return find(container.text(), value.text()) != absl::string_view::npos;
  case Kind::Dict: {
    LLAMAC_ASSIGN_OR_RETURN(const Value *const found,
                            lookUp(heap, container.dict(), value));
    return found != nullptr;
  }
  default: {
    LLAMAC_ASSIGN_OR_RETURN(const NextItem next, iterate(heap, container));
    while (true) {
      LLAMAC_RETURN_IF_ERROR(heap.spend(1));
      LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item, next());
      if (!item)
        return false;
      LLAMAC_ASSIGN_OR_RETURN(const bool same, equals(heap, *item, value));
      if (same)
        return true;
    }
  }
  }
}

} // namespace llamac::chat
