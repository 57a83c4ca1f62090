//===- TextFilters.cpp - Filters of text and numbers ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Format.h"
#include "text/templates/Interpreter.h"
#include "text/templates/Json.h"
#include "text/templates/Tables.h"
#include "text/templates/Text.h"

#include "absl/strings/str_cat.h"

#include <cmath>

namespace llamac::chat {

namespace text_filter {

using ValueOr = absl::StatusOr<Value>;

// An argument that is a count or width. Error: no integer.
static absl::StatusOr<int64_t> integerOr(const Value &value,
                                         int64_t otherwise) {
  if (value.is(Kind::Missing))
    return otherwise;
  if (!value.isInt())
    return templateError(
        absl::StrCat("expected an integer, got ", typeName(value)));
  return value.integer();
}

// Python's str(value), a text as it is.
static ValueOr asString(Heap &heap, const Value &value) {
  if (value.isString())
    return value;
  LLAMAC_ASSIGN_OR_RETURN(std::string text, textOf(heap, value));
  return heap.string(std::move(text));
}

template <std::string (*change)(absl::string_view)>
static ValueOr changeText(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("the filter", args, {}).status());
  LLAMAC_ASSIGN_OR_RETURN(const Value text, asString(in.heap, input));
  LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(text.text().size()));
  return in.heap.string(change(text.text()), text.string().markup);
}

// Words begin after spaces and - ( { [ <.
static std::string titleWords(absl::string_view text) {
  std::string result;
  const auto separates = [](int32_t code) {
    return isSpace(code) || code == '-' || code == '(' || code == '{' ||
           code == '[' || code == '<';
  };
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (separates(decode(text, at))) {
      absl::StrAppend(&result, text.substr(begin, at - begin));
      continue;
    }
    size_t end = at;
    for (size_t next = at; next < text.size(); end = next)
      if (separates(decode(text, next)))
        break;
    result += upper(text.substr(begin, at - begin));
    result += lower(text.substr(at, end - at));
    at = end;
  }
  return result;
}

static ValueOr trim(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound, bind("trim", args, {"chars"}));
  std::optional<absl::string_view> chars;
  if (bound[0].isString())
    chars = bound[0].text();
  else if (!bound[0].is(Kind::Missing) && !bound[0].is(Kind::None))
    return templateError("trim takes a text");
  LLAMAC_ASSIGN_OR_RETURN(const Value text, asString(in.heap, input));
  if (chars)
    LLAMAC_RETURN_IF_ERROR(
        in.heap.spend(text.text().size() / 16 * (1 + chars->size())));
  return in.heap.string(std::string(strip(text.text(), chars, true, true)),
                        text.string().markup);
}

static ValueOr replaceText(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound,
                          bind("replace", args, {"old", "new", "count"}, 2));
  int64_t count = -1;
  if (!bound[2].is(Kind::None)) {
    LLAMAC_ASSIGN_OR_RETURN(count, integerOr(bound[2], -1));
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::string text, textOf(in.heap, input));
  LLAMAC_ASSIGN_OR_RETURN(const std::string from, textOf(in.heap, bound[0]));
  LLAMAC_ASSIGN_OR_RETURN(const std::string to, textOf(in.heap, bound[1]));
  std::optional<std::string> result =
      replace(text, from, to, count, in.heap.limits.memoryBytes);
  if (!result)
    return in.heap.wouldFit(2, in.heap.limits.memoryBytes);
  return in.heap.string(*std::move(result));
}

static ValueOr indent(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound,
                          bind("indent", args, {"width", "first", "blank"}));
  if (input.isUndefined())
    return undefinedError(input);
  if (!input.isString())
    return templateError(
        absl::StrCat("indent needs a text, got ", typeName(input)));
  std::string space;
  if (bound[0].isString()) {
    space = std::string(bound[0].text());
  } else {
    LLAMAC_ASSIGN_OR_RETURN(const int64_t width, integerOr(bound[0], 4));
    const uint64_t bytes = static_cast<uint64_t>(std::max<int64_t>(0, width));
    LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(1, bytes));
    space.assign(bytes, ' ');
  }
  const bool first = !bound[1].is(Kind::Missing) && isTrue(bound[1]);
  const bool blank = !bound[2].is(Kind::Missing) && isTrue(bound[2]);
  const std::string text = std::string(input.text()) + "\n";
  const std::vector<absl::string_view> lines = splitLines(text);
  LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(lines.size(), space.size()));
  std::string result;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0)
      result += '\n';
    if (i == 0 ? first : blank || !lines[i].empty())
      result += space;
    absl::StrAppend(&result, lines[i]);
  }
  return in.heap.string(std::move(result), input.string().markup);
}

static ValueOr string(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("string", args, {}).status());
  return asString(in.heap, input);
}

static ValueOr safe(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("safe", args, {}).status());
  LLAMAC_ASSIGN_OR_RETURN(std::string text, textOf(in.heap, input));
  return in.heap.string(std::move(text), true);
}

static ValueOr escape(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("escape", args, {}).status());
  if (input.isString() && input.string().markup)
    return input;
  LLAMAC_ASSIGN_OR_RETURN(const std::string text, textOf(in.heap, input));
  LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(6, text.size()));
  return in.heap.string(escapeHtml(text), true);
}

static ValueOr format(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const Value text, asString(in.heap, input));
  if (!args.positional.empty() && !args.named.empty())
    return templateError("format takes arguments with or without names");
  if (args.named.empty()) {
    LLAMAC_ASSIGN_OR_RETURN(const Value values, in.heap.tuple(args.positional));
    return formatPercent(in, text, values);
  }
  LLAMAC_ASSIGN_OR_RETURN(const Value values, in.heap.dict());
  for (const auto &[name, value] : args.named) {
    LLAMAC_ASSIGN_OR_RETURN(const Value key, in.heap.string(name));
    LLAMAC_RETURN_IF_ERROR(in.heap.set(values, key, value));
  }
  return formatPercent(in, text, values);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static ValueOr absolute(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("abs", args, {}).status());
  if (input.isUndefined())
    return undefinedError(input);
  if (input.is(Kind::Float))
    return Value::real(std::fabs(input.real()));
  if (!input.isInt())
    return templateError(
        absl::StrCat("abs needs a number, got ", typeName(input)));
  if (input.integer() == INT64_MIN)
    return integerOverflow();
  return Value::integer(std::abs(input.integer()));
}

static ValueOr truncated(double value) {
  if (!(std::fabs(value) < 0x1p63))
    return integerOverflow();
  return Value::integer(static_cast<int64_t>(value));
}

static ValueOr integer(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound,
                          bind("int", args, {"default", "base"}));
  const Value otherwise =
      bound[0].is(Kind::Missing) ? Value::integer(0) : bound[0];
  LLAMAC_ASSIGN_OR_RETURN(const int64_t base, integerOr(bound[1], 10));
  if (input.isUndefined())
    return undefinedError(input);
  if (input.isInt())
    return Value::integer(input.integer());
  if (input.is(Kind::Float))
    return std::isnan(input.real()) ? ValueOr(otherwise)
                                    : truncated(input.real());
  if (!input.isString())
    return otherwise;
  LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(input.text().size()));
  int64_t value = 0;
  const IntParse parsed =
      base == 0 || (base >= 2 && base <= 36)
          ? parseInt(input.text(), static_cast<int>(base), value)
          : IntParse::Malformed;
  if (parsed == IntParse::Overflow)
    return integerOverflow();
  if (parsed == IntParse::Ok)
    return Value::integer(value);
  const std::optional<double> real = parseFloat(input.text());
  return real && std::isfinite(*real) ? truncated(*real) : ValueOr(otherwise);
}

static ValueOr real(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound, bind("float", args, {"default"}));
  if (input.isUndefined())
    return undefinedError(input);
  if (input.isNumber())
    return Value::real(input.real());
  if (input.isString()) {
    LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(input.text().size()));
    if (const std::optional<double> value = parseFloat(input.text()))
      return Value::real(*value);
  }
  return bound[0].is(Kind::Missing) ? Value::real(0) : bound[0];
}

// `value` with `digits` decimals, halves to even by its exact value.
static double roundReal(double value, int64_t digits) {
  if (!std::isfinite(value) || digits > 323)
    return value;
  if (digits < -308)
    return std::copysign(0.0, value);
  if (digits >= 0)
    return std::strtod(printFloat(value, 'f', static_cast<int>(digits)).c_str(),
                       nullptr);
  const long double unit = std::pow(10.0L, static_cast<long double>(-digits));
  return static_cast<double>(std::nearbyint(value / unit) * unit);
}

static ValueOr roundInteger(int64_t value, int64_t digits) {
  if (digits >= 0)
    return Value::integer(value);
  if (digits < -18)
    return Value::integer(0);
  int64_t unit = 1;
  for (int64_t i = digits; i < 0; ++i)
    unit *= 10;
  int64_t rest = value % unit;
  if (rest < 0)
    rest += unit;
  int64_t low;
  if (__builtin_sub_overflow(value, rest, &low))
    return integerOverflow();
  const bool up =
      rest > unit - rest || (rest == unit - rest && (low / unit) % 2 != 0);
  if (up && __builtin_add_overflow(low, unit, &low))
    return integerOverflow();
  return Value::integer(low);
}

static ValueOr roundNumber(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound,
                          bind("round", args, {"precision", "method"}));
  LLAMAC_ASSIGN_OR_RETURN(const int64_t digits, integerOr(bound[0], 0));
  const absl::string_view method = bound[1].is(Kind::Missing) ? "common"
                                   : bound[1].isString()      ? bound[1].text()
                                                              : "";
  if (method != "common" && method != "ceil" && method != "floor")
    return templateError("round knows common, ceil and floor");
  if (input.isUndefined())
    return undefinedError(input);
  if (!input.isNumber())
    return templateError(
        absl::StrCat("round needs a number, got ", typeName(input)));
  if (method == "common")
    return input.isInt()
               ? roundInteger(input.integer(), digits)
               : ValueOr(Value::real(roundReal(input.real(), digits)));
  if (std::abs(digits) > 300 || !std::isfinite(input.real()))
    return templateError("round gets numbers that are too large");
  const double unit = digits < 0
                          ? 1.0 / std::pow(10.0, static_cast<double>(-digits))
                          : std::pow(10.0, static_cast<double>(digits));
  const double scaled = input.real() * unit;
  // Integers in Python: there is no negative zero.
  const double whole =
      method == "ceil" ? std::ceil(scaled) : std::floor(scaled);
  return Value::real((whole + 0.0) / unit);
}

static ValueOr toJsonFilter(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound, bind("tojson", args,
                                                 {"ensure_ascii", "indent",
                                                  "separators", "sort_keys"}));
  JsonStyle style;
  const auto isSet = [&](size_t i) {
    return !bound[i].is(Kind::Missing) && isTrue(bound[i]);
  };
  style.ascii = isSet(0);
  style.sortKeys = isSet(3);
  if (bound[1].isString()) {
    style.indent = std::string(bound[1].text());
  } else if (bound[1].isInt()) {
    const int64_t width = std::max<int64_t>(0, bound[1].integer());
    LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(64, static_cast<uint64_t>(width)));
    style.indent = std::string(static_cast<size_t>(width), ' ');
  } else if (!bound[1].is(Kind::Missing) && !bound[1].is(Kind::None)) {
    return templateError("indent is an integer or a text");
  }
  style.itemSeparator = style.indent ? "," : ", ";
  if (!bound[2].is(Kind::Missing) && !bound[2].is(Kind::None)) {
    LLAMAC_ASSIGN_OR_RETURN(const auto parts, items(in.heap, bound[2]));
    if (parts.size() != 2 || !parts[0].isString() || !parts[1].isString())
      return templateError("separators are two texts");
    style.itemSeparator = std::string(parts[0].text());
    style.keySeparator = std::string(parts[1].text());
  }
  std::string text;
  LLAMAC_RETURN_IF_ERROR(appendJson(in.heap, input, style, text));
  return in.heap.string(std::move(text));
}

static constexpr Function table[] = {
    {"abs", absolute},
    {"capitalize", changeText<capitalize>},
    {"e", escape},
    {"escape", escape},
    {"float", real},
    {"format", format},
    {"indent", indent},
    {"int", integer},
    {"lower", changeText<lower>},
    {"replace", replaceText},
    {"round", roundNumber},
    {"safe", safe},
    {"string", string},
    {"title", changeText<titleWords>},
    {"tojson", toJsonFilter},
    {"trim", trim},
    {"upper", changeText<upper>},
};

} // namespace text_filter

absl::Span<const Function> textFilters() { return text_filter::table; }

} // namespace llamac::chat
