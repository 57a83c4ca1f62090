//===- Format.cpp - Python's two ways to format text ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Format.h"

#include "text/templates/Text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <cmath>

namespace llamac::chat {

std::string escapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"},
                                    {"<", "&lt;"},
                                    {">", "&gt;"},
                                    {"'", "&#39;"},
                                    {"\"", "&#34;"}});
}

std::string printFloat(double value, char form, int precision, bool alternate) {
  if (std::isnan(value) || std::isinf(value)) {
    const std::string text = floatText(value);
    return absl::ascii_isupper(form) ? absl::AsciiStrToUpper(text) : text;
  }
  const std::string format =
      absl::StrCat(alternate ? "%#.*" : "%.*", absl::string_view(&form, 1));
  std::string text(static_cast<size_t>(std::snprintf(nullptr, 0, format.c_str(),
                                                     precision, value)),
                   '\0');
  std::snprintf(text.data(), text.size() + 1, format.c_str(), precision, value);
  return text;
}

namespace {

/// How a value is shown: Python's format specification.
struct Spec {
  std::string fill = " ";
  char align = '\0'; ///< '<', '>', '^' or '='; 0: what is usual.
  char sign = '-';
  bool alternate = false;
  int64_t width = 0;
  char grouping = '\0';
  int64_t precision = -1;
  char type = '\0';
};

absl::Status malformed(absl::string_view format) {
  return templateError(
      absl::StrCat("malformed format '", format.substr(0, 60), "'"));
}

/// Digits at `at`, which moves past them.
absl::StatusOr<int64_t> readNumber(absl::string_view format, size_t &at) {
  int64_t number = 0;
  for (; at < format.size() && absl::ascii_isdigit(format[at]); ++at) {
    number = number * 10 + (format[at] - '0');
    if (number > 1'000'000)
      return templateError("a width or precision of more than 1000000");
  }
  return number;
}

std::string inBase(uint64_t value, unsigned base, bool upper) {
  std::string digits;
  do
    digits.insert(digits.begin(), (upper ? "0123456789ABCDEF"
                                         : "0123456789abcdef")[value % base]);
  while (value /= base);
  return digits;
}

/// `body` with a sign, a prefix and the width of `spec`.
std::string pad(const Spec &spec, char usualAlign, absl::string_view sign,
                absl::string_view body) {
  const int64_t length = static_cast<int64_t>(codePoints(body) + sign.size());
  const int64_t missing = std::max<int64_t>(0, spec.width - length);
  const char align = spec.align ? spec.align : usualAlign;
  const int64_t before = align == '>' || align == '=' ? missing
                         : align == '^'               ? missing / 2
                                                      : 0;
  std::string text;
  if (align == '=')
    absl::StrAppend(&text, sign);
  for (int64_t i = 0; i < before; ++i)
    text += spec.fill;
  if (align != '=')
    absl::StrAppend(&text, sign);
  absl::StrAppend(&text, body);
  for (int64_t i = before; i < missing; ++i)
    text += spec.fill;
  return text;
}

/// The digits of `body` before its point, in groups of `size`.
std::string grouped(std::string body, char separator, size_t size) {
  size_t end = 0;
  while (end < body.size() && absl::ascii_isxdigit(body[end]) &&
         (size == 4 || absl::ascii_isdigit(body[end])))
    ++end;
  for (size_t at = end; at > size; at -= size)
    body.insert(at - size, 1, separator);
  return body;
}

std::string signOf(const Spec &spec, bool negative) {
  return negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
}

absl::StatusOr<std::string> showInt(const Spec &spec, int64_t value) {
  const bool negative = value < 0;
  const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(value)
                                      : static_cast<uint64_t>(value);
  std::string body, prefix = signOf(spec, negative);
  const char kind = absl::ascii_tolower(spec.type);
  const unsigned base = kind == 'x'   ? 16
                        : kind == 'o' ? 8
                        : kind == 'b' ? 2
                                      : 10;
  body = inBase(magnitude, base, spec.type == 'X');
  if (spec.alternate && base != 10)
    absl::StrAppend(&prefix, "0", absl::string_view(&spec.type, 1));
  if (spec.grouping)
    body = grouped(std::move(body), spec.grouping, base == 10 ? 3 : 4);
  return pad(spec, '>', prefix, body);
}

absl::StatusOr<std::string> showFloat(const Spec &spec, double value) {
  const bool negative = std::signbit(value) && !std::isnan(value);
  const double magnitude = std::fabs(value);
  std::string body;
  if (!spec.type && spec.precision < 0) {
    body = floatText(magnitude);
  } else if (spec.type == '%') {
    body =
        printFloat(magnitude * 100, 'f',
                   spec.precision < 0 ? 6 : static_cast<int>(spec.precision)) +
        "%";
  } else {
    const char form = !spec.type || spec.type == 'n' ? 'g' : spec.type;
    int precision = spec.precision < 0 ? 6 : static_cast<int>(spec.precision);
    body = printFloat(magnitude, form, precision, spec.alternate);
    if (!spec.type && !std::isinf(value) && !std::isnan(value)) {
      // As 'g', but with a digit after the point: 'r' with a precision.
      if (precision == 0)
        precision = 1;
      const std::string shown = printFloat(magnitude, 'e', precision - 1);
      const int exponent = std::atoi(shown.c_str() + shown.find('e') + 1);
      if (exponent >= precision - 1 && !absl::StrContains(body, "e"))
        body = exponent == precision - 1
                   ? printFloat(magnitude, 'e', precision - 1)
                   : body;
      if (!absl::StrContains(body, "e") && !absl::StrContains(body, "."))
        body += ".0";
    }
  }
  if (spec.grouping)
    body = grouped(std::move(body), spec.grouping, 3);
  return pad(spec, '>', signOf(spec, negative), body);
}

} // namespace

//===----------------------------------------------------------------------===//
// format % value
//===----------------------------------------------------------------------===//

namespace {

class PercentFormatter {
public:
  PercentFormatter(Interpreter &interpreter, const Value &format,
                   const Value &value)
      : heap(interpreter.heap), format(format.text()),
        markup(format.string().markup), value(value) {}

  absl::StatusOr<Value> run();

private:
  absl::StatusOr<Value> next();
  absl::Status show(size_t &at);
  absl::StatusOr<std::string> text(const Value &shown, Spec spec);

  Heap &heap;
  const absl::string_view format;
  const bool markup;
  const Value value;
  size_t used = 0;
  bool named = false;
  std::string result;
};

absl::StatusOr<Value> PercentFormatter::next() {
  if (value.is(Kind::Tuple)) {
    if (used < value.sequence().items.size())
      return value.sequence().items[used++];
  } else if (used++ == 0) {
    return value;
  }
  return templateError("not enough arguments for the format");
}

absl::StatusOr<std::string> PercentFormatter::text(const Value &shown,
                                                   Spec spec) {
  const bool zeros = spec.align == '=';
  if (spec.type == 's' || spec.type == 'r' || spec.type == 'a') {
    std::string body;
    if (spec.type == 's')
      LLAMAC_RETURN_IF_ERROR(appendText(heap, shown, body));
    else
      LLAMAC_RETURN_IF_ERROR(appendRepr(heap, shown, body));
    if (markup && !(shown.isString() && shown.string().markup))
      body = escapeHtml(body);
    if (spec.precision >= 0)
      body.resize(byteOf(body, static_cast<size_t>(spec.precision)));
    spec.fill = " ";
    return pad(spec, '>', "", body);
  }
  if (spec.type == 'c') {
    std::string body;
    if (shown.isString() && shown.string().length == 1)
      body = std::string(shown.text());
    else if (shown.isInt() && shown.integer() >= 0 &&
             shown.integer() <= 0x10ffff &&
             (shown.integer() < 0xd800 || shown.integer() > 0xdfff))
      encode(static_cast<int32_t>(shown.integer()), body);
    else
      return templateError("%c needs one character");
    spec.fill = " ";
    return pad(spec, '>', "", body);
  }
  if (shown.isUndefined())
    return undefinedError(shown);
  const bool whole =
      absl::StrContains("diuxXo", absl::string_view(&spec.type, 1));
  if (!shown.isNumber() ||
      (shown.is(Kind::Float) &&
       absl::StrContains("xXo", absl::string_view(&spec.type, 1))))
    return templateError(absl::StrCat("%", absl::string_view(&spec.type, 1),
                                      " needs a number, got ",
                                      typeName(shown)));
  if (!whole)
    return showFloat(spec, shown.real());
  int64_t integer = shown.integer();
  if (shown.is(Kind::Float)) {
    if (!(std::fabs(shown.real()) < 0x1p63))
      return integerOverflow();
    integer = static_cast<int64_t>(shown.real());
  }
  if (spec.precision >= 0) {
    // At least so many digits.
    Spec digits = spec;
    digits.sign = '-';
    digits.width = 0;
    digits.alternate = false;
    LLAMAC_ASSIGN_OR_RETURN(std::string body, showInt(digits, integer));
    const bool negative = integer < 0;
    if (negative)
      body.erase(0, 1);
    if (body.size() < static_cast<size_t>(spec.precision))
      body.insert(0, static_cast<size_t>(spec.precision) - body.size(), '0');
    std::string prefix = signOf(spec, negative);
    if (spec.alternate &&
        absl::StrContains("xXo", absl::string_view(&spec.type, 1)))
      absl::StrAppend(&prefix, "0", absl::string_view(&spec.type, 1));
    if (!zeros)
      spec.fill = " ";
    return pad(spec, '>', prefix, body);
  }
  return showInt(spec, integer);
}

// The conversion that begins at `at`, behind its %.
absl::Status PercentFormatter::show(size_t &at) {
  std::optional<Value> shown;
  if (at < format.size() && format[at] == '(') {
    const size_t end = format.find(')', at);
    if (end == absl::string_view::npos)
      return malformed(format);
    if (!value.is(Kind::Dict))
      return templateError("the format needs a dict");
    const absl::string_view key = format.substr(at + 1, end - at - 1);
    const Value *const found = value.dict().find(key);
    if (!found)
      return templateError(absl::StrCat("the format finds no '", key, "'"));
    shown = *found;
    named = true;
    at = end + 1;
  }
  Spec spec;
  bool left = false, zero = false;
  for (; at < format.size() && absl::StrContains("-+ #0", format.substr(at, 1));
       ++at) {
    left |= format[at] == '-';
    zero |= format[at] == '0';
    spec.alternate |= format[at] == '#';
    if (format[at] == '+' || (format[at] == ' ' && spec.sign != '+'))
      spec.sign = format[at];
  }
  const auto number = [&]() -> absl::StatusOr<int64_t> {
    if (at >= format.size() || format[at] != '*')
      return readNumber(format, at);
    ++at;
    LLAMAC_ASSIGN_OR_RETURN(const Value given, next());
    if (!given.isInt() || std::abs(given.integer()) > 1'000'000)
      return templateError("* needs a small integer");
    return given.integer();
  };
  LLAMAC_ASSIGN_OR_RETURN(spec.width, number());
  if (spec.width < 0) {
    left = true;
    spec.width = -spec.width;
  }
  if (at < format.size() && format[at] == '.') {
    ++at;
    LLAMAC_ASSIGN_OR_RETURN(spec.precision, number());
    spec.precision = std::max<int64_t>(spec.precision, 0);
  }
  while (at < format.size() && absl::StrContains("hlL", format.substr(at, 1)))
    ++at;
  if (at >= format.size())
    return malformed(format);
  spec.type = format[at++];
  if (spec.type == '%') {
    result += '%';
    return absl::OkStatus();
  }
  if (!absl::StrContains("sracdiuxXofFeEgG", absl::string_view(&spec.type, 1)))
    return malformed(format);
  if (zero && !left) {
    spec.align = '=';
    spec.fill = "0";
  }
  if (spec.type == 's' || spec.type == 'r' || spec.type == 'a' ||
      spec.type == 'c')
    spec.align = '>';
  if (left)
    spec.align = '<';
  if (!shown) {
    LLAMAC_ASSIGN_OR_RETURN(shown, next());
  }
  LLAMAC_RETURN_IF_ERROR(heap.wouldFit(
      1,
      result.size() + static_cast<uint64_t>(
                          spec.width + std::max<int64_t>(0, spec.precision))));
  LLAMAC_ASSIGN_OR_RETURN(const std::string body, text(*shown, spec));
  LLAMAC_RETURN_IF_ERROR(heap.spendBytes(body.size()));
  result += body;
  return absl::OkStatus();
}

absl::StatusOr<Value> PercentFormatter::run() {
  for (size_t at = 0; at < format.size();) {
    const size_t percent = std::min(format.find('%', at), format.size());
    absl::StrAppend(&result, format.substr(at, percent - at));
    at = percent;
    if (at < format.size())
      LLAMAC_RETURN_IF_ERROR(show(++at));
  }
  const size_t given =
      value.is(Kind::Tuple) ? value.sequence().items.size() : 1;
  // Python takes whatever has items for a mapping, and may find it unused.
  const bool isMapping = value.is(Kind::Dict) || value.is(Kind::List) ||
                         value.is(Kind::Range) || value.isUndefined();
  if (used < given && !named && !isMapping)
    return templateError("not all arguments are used by the format");
  return heap.string(std::move(result), markup);
}

//===----------------------------------------------------------------------===//
// format.format(arguments)
//===----------------------------------------------------------------------===//

class BraceFormatter {
public:
  BraceFormatter(Interpreter &interpreter, const CallArguments &arguments)
      : interpreter(interpreter), heap(interpreter.heap), arguments(arguments) {
  }

  absl::StatusOr<std::string> run(absl::string_view format, int depth);

private:
  absl::StatusOr<Value> argument(absl::string_view name);
  absl::StatusOr<Value> field(absl::string_view path);
  absl::StatusOr<Spec> parse(absl::string_view text);
  absl::StatusOr<std::string> show(const Value &value, absl::string_view text);

  Interpreter &interpreter;
  Heap &heap;
  const CallArguments &arguments;
  size_t automatic = 0;
  bool numbered = false;
};

absl::StatusOr<Value> BraceFormatter::argument(absl::string_view name) {
  const bool isNumber = !name.empty() && name.find_first_not_of("0123456789") ==
                                             absl::string_view::npos;
  if (name.empty() || isNumber) {
    size_t at = 0;
    LLAMAC_ASSIGN_OR_RETURN(const int64_t number, readNumber(name, at));
    if (isNumber ? automatic > 0 : numbered)
      return templateError("a format with and without numbers of fields");
    numbered |= isNumber;
    const size_t index = isNumber ? static_cast<size_t>(number) : automatic++;
    if (index < arguments.positional.size())
      return arguments.positional[index];
    return templateError(absl::StrCat("the format finds no argument ", index));
  }
  for (const auto &[other, value] : arguments.named)
    if (other == name)
      return value;
  return templateError(absl::StrCat("the format finds no '", name, "'"));
}

// NAME.ATTRIBUTE[KEY]...
absl::StatusOr<Value> BraceFormatter::field(absl::string_view path) {
  size_t at = std::min(path.find_first_of(".["), path.size());
  LLAMAC_ASSIGN_OR_RETURN(Value value, argument(path.substr(0, at)));
  while (at < path.size()) {
    const bool isKey = path[at] == '[';
    const size_t end =
        isKey ? path.find(']', at)
              : std::min(path.find_first_of(".[", at + 1), path.size());
    if (end == absl::string_view::npos)
      return malformed(path);
    const absl::string_view name = path.substr(at + 1, end - at - 1);
    if (name.empty())
      return malformed(path);
    int64_t index;
    LLAMAC_ASSIGN_OR_RETURN(const Value text, heap.string(std::string(name)));
    if (isKey && parseInt(name, 10, index) == IntParse::Ok) {
      LLAMAC_ASSIGN_OR_RETURN(value,
                              interpreter.item(value, Value::integer(index)));
    } else if (isKey) {
      LLAMAC_ASSIGN_OR_RETURN(value, interpreter.item(value, text));
    } else {
      LLAMAC_ASSIGN_OR_RETURN(
          value, interpreter.attribute(value, text.string().bytes));
    }
    at = end + isKey;
    if (at < path.size() && path[at] != '.' && path[at] != '[')
      return malformed(path);
  }
  return value;
}

absl::StatusOr<Spec> BraceFormatter::parse(absl::string_view text) {
  Spec spec;
  size_t at = 0;
  const auto isAlign = [&](size_t i) {
    return i < text.size() && absl::StrContains("<>^=", text.substr(i, 1));
  };
  size_t second = 0;
  if (!text.empty())
    decode(text, second);
  if (isAlign(second) && second > 0) {
    spec.fill = std::string(text.substr(0, second));
    spec.align = text[second];
    at = second + 1;
  } else if (isAlign(0)) {
    spec.align = text[at++];
  }
  if (at < text.size() && absl::StrContains("+- ", text.substr(at, 1)))
    spec.sign = text[at++];
  if (at < text.size() && text[at] == '#') {
    spec.alternate = true;
    ++at;
  }
  if (at < text.size() && text[at] == '0') {
    ++at;
    if (!spec.align) {
      spec.align = '=';
      spec.fill = "0";
    }
  }
  LLAMAC_ASSIGN_OR_RETURN(spec.width, readNumber(text, at));
  if (at < text.size() && (text[at] == ',' || text[at] == '_'))
    spec.grouping = text[at++];
  if (at < text.size() && text[at] == '.') {
    const size_t begin = ++at;
    LLAMAC_ASSIGN_OR_RETURN(spec.precision, readNumber(text, at));
    if (at == begin)
      return malformed(text);
  }
  if (at < text.size())
    spec.type = text[at++];
  if (at < text.size())
    return malformed(text);
  return spec;
}

absl::StatusOr<std::string> BraceFormatter::show(const Value &value,
                                                 absl::string_view text) {
  if (text.empty())
    return textOf(heap, value);
  LLAMAC_ASSIGN_OR_RETURN(Spec spec, parse(text));
  LLAMAC_RETURN_IF_ERROR(
      heap.wouldFit(4, static_cast<uint64_t>(
                           spec.width + std::max<int64_t>(0, spec.precision))));
  const auto isType = [&](absl::string_view types) {
    return !spec.type ||
           absl::StrContains(types, absl::string_view(&spec.type, 1));
  };
  if (value.isString() && isType("s") && spec.sign == '-' && !spec.alternate &&
      !spec.grouping && spec.align != '=') {
    std::string body(value.text());
    if (spec.precision >= 0)
      body.resize(byteOf(body, static_cast<size_t>(spec.precision)));
    return pad(spec, '<', "", body);
  }
  if (value.isInt() && isType("dxXob") && spec.precision < 0)
    return showInt(spec, value.integer());
  if (value.isNumber() && spec.type && isType("eEfFgG%"))
    return showFloat(spec, value.real());
  if (value.is(Kind::Float) && isType(""))
    return showFloat(spec, value.real());
  return templateError(absl::StrCat("a ", typeName(value),
                                    " cannot be formatted as '", text, "'"));
}

absl::StatusOr<std::string> BraceFormatter::run(absl::string_view format,
                                                int depth) {
  if (depth > 1)
    return malformed(format);
  std::string result;
  for (size_t at = 0; at < format.size();) {
    const char c = format[at++];
    if (c != '{' && c != '}') {
      result += c;
      continue;
    }
    if (at < format.size() && format[at] == c) {
      result += c;
      ++at;
      continue;
    }
    if (c == '}')
      return malformed(format);
    // The field ends at its own bracket.
    const size_t begin = at;
    for (int open = 1; open > 0; ++at) {
      if (at >= format.size())
        return malformed(format);
      open += format[at] == '{' ? 1 : format[at] == '}' ? -1 : 0;
    }
    const absl::string_view inner = format.substr(begin, at - 1 - begin);
    const size_t end = std::min(inner.find_first_of("!:"), inner.size());
    LLAMAC_ASSIGN_OR_RETURN(Value value, field(inner.substr(0, end)));
    size_t spec = end;
    if (end < inner.size() && inner[end] == '!') {
      const absl::string_view conversion = inner.substr(end + 1, 1);
      if (conversion.empty() || !absl::StrContains("rs", conversion) ||
          (end + 2 < inner.size() && inner[end + 2] != ':'))
        return malformed(format);
      std::string text;
      if (conversion == "r")
        LLAMAC_RETURN_IF_ERROR(appendRepr(heap, value, text));
      else
        LLAMAC_RETURN_IF_ERROR(appendText(heap, value, text));
      LLAMAC_ASSIGN_OR_RETURN(value, heap.string(std::move(text)));
      spec = end + 2;
    }
    std::string how;
    if (spec < inner.size()) {
      LLAMAC_ASSIGN_OR_RETURN(how, run(inner.substr(spec + 1), depth + 1));
    }
    LLAMAC_ASSIGN_OR_RETURN(const std::string shown, show(value, how));
    LLAMAC_RETURN_IF_ERROR(heap.spendBytes(shown.size()));
    LLAMAC_RETURN_IF_ERROR(heap.wouldFit(1, result.size() + shown.size()));
    result += shown;
  }
  return result;
}

} // namespace

absl::StatusOr<Value> formatPercent(Interpreter &interpreter,
                                    const Value &format, const Value &value) {
  return PercentFormatter(interpreter, format, value).run();
}

absl::StatusOr<Value> formatBraces(Interpreter &interpreter,
                                   const Value &format,
                                   const CallArguments &arguments) {
  LLAMAC_RETURN_IF_ERROR(interpreter.heap.spendBytes(format.text().size()));
  LLAMAC_ASSIGN_OR_RETURN(
      std::string text,
      BraceFormatter(interpreter, arguments).run(format.text(), 0));
  return interpreter.heap.string(std::move(text), format.string().markup);
}

} // namespace llamac::chat
