//===- ValueText.cpp - str() and repr() of values -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Interpreter.h"
#include "text/templates/Text.h"
#include "text/templates/Value.h"

#include "absl/strings/str_cat.h"

#include <cmath>

namespace llamac::chat {

std::string floatText(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  // The shortest digits that read back as the value: d.dde+x.
  char buffer[32];
  int precision = 0;
  do
    std::snprintf(buffer, sizeof(buffer), "%.*e", precision, value);
  while (std::strtod(buffer, nullptr) != value && ++precision < 17);
  const absl::string_view shortest(buffer);
  const size_t e = shortest.find('e');
  std::string digits;
  for (const char c : shortest.substr(0, e))
    if (c >= '0' && c <= '9')
      digits += c;
  const int exponent = std::atoi(buffer + e + 1);
  std::string text = std::signbit(value) ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    text += digits.substr(0, 1);
    if (digits.size() > 1)
      absl::StrAppend(&text, ".", digits.substr(1));
    absl::StrAppend(&text, exponent < 0 ? "e-" : "e+",
                    std::abs(exponent) < 10 ? "0" : "", std::abs(exponent));
  } else if (exponent < 0) {
    absl::StrAppend(&text, "0.", std::string(-exponent - 1, '0'), digits);
  } else {
    const size_t whole = static_cast<size_t>(exponent) + 1;
    if (digits.size() <= whole)
      absl::StrAppend(&text, digits, std::string(whole - digits.size(), '0'),
                      ".0");
    else
      absl::StrAppend(&text, digits.substr(0, whole), ".",
                      digits.substr(whole));
  }
  return text;
}

static void appendQuoted(absl::string_view text, std::string &to) {
  const char quote = text.find('\'') != absl::string_view::npos &&
                             text.find('"') == absl::string_view::npos
                         ? '"'
                         : '\'';
  to += quote;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t code = decode(text, at);
    char hex[12];
    if (code == quote || code == '\\') {
      to += '\\';
      to += static_cast<char>(code);
    } else if (code == '\n') {
      to += "\\n";
    } else if (code == '\r') {
      to += "\\r";
    } else if (code == '\t') {
      to += "\\t";
    } else if (isPrintable(code)) {
      absl::StrAppend(&to, text.substr(begin, at - begin));
    } else {
      std::snprintf(hex, sizeof(hex),
                    code < 0x100     ? "\\x%02x"
                    : code < 0x10000 ? "\\u%04x"
                                     : "\\U%08x",
                    static_cast<unsigned>(code));
      to += hex;
    }
  }
  to += quote;
}

static absl::Status appendItems(Heap &heap, absl::Span<const Value> items,
                                std::string &to, int depth) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0)
      to += ", ";
    LLAMAC_RETURN_IF_ERROR(appendRepr(heap, items[i], to, depth));
  }
  return absl::OkStatus();
}

static absl::Status appendDict(Heap &heap, const Dict &dict, std::string &to,
                               int depth) {
  to += '{';
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    if (i > 0)
      to += ", ";
    LLAMAC_RETURN_IF_ERROR(appendRepr(heap, dict.entries[i].first, to, depth));
    to += ": ";
    LLAMAC_RETURN_IF_ERROR(appendRepr(heap, dict.entries[i].second, to, depth));
  }
  to += '}';
  return absl::OkStatus();
}

absl::Status appendRepr(Heap &heap, const Value &value, std::string &to,
                        int depth) {
  if (depth > heap.limits.valueDepth)
    return tooDeep();
  LLAMAC_RETURN_IF_ERROR(heap.wouldFit(1, to.size()));
  switch (value.kind()) {
  case Kind::Undefined:
    to += "Undefined";
    return heap.spend(1);
  case Kind::String:
    LLAMAC_RETURN_IF_ERROR(heap.spendBytes(value.text().size()));
    to += value.string().markup ? "Markup(" : "";
    appendQuoted(value.text(), to);
    to += value.string().markup ? ")" : "";
    return absl::OkStatus();
  case Kind::List:
    to += '[';
    LLAMAC_RETURN_IF_ERROR(
        appendItems(heap, value.sequence().items, to, depth + 1));
    to += ']';
    return heap.spend(1);
  case Kind::Tuple:
    to += '(';
    LLAMAC_RETURN_IF_ERROR(
        appendItems(heap, value.sequence().items, to, depth + 1));
    to += value.sequence().items.size() == 1 ? ",)" : ")";
    return heap.spend(1);
  case Kind::Dict:
    return appendDict(heap, value.dict(), to, depth + 1);
  case Kind::Namespace:
    to += "<Namespace ";
    LLAMAC_RETURN_IF_ERROR(appendDict(heap, value.dict(), to, depth + 1));
    to += '>';
    return absl::OkStatus();
  case Kind::DictView: {
    static constexpr const char *names[] = {"dict_keys([", "dict_values([",
                                            "dict_items(["};
    to += names[static_cast<int>(value.view().part)];
    LLAMAC_ASSIGN_OR_RETURN(const std::vector<Value> all, items(heap, value));
    LLAMAC_RETURN_IF_ERROR(appendItems(heap, all, to, depth + 1));
    to += "])";
    return absl::OkStatus();
  }
  default:
    return appendText(heap, value, to);
  }
}

absl::Status appendText(Heap &heap, const Value &value, std::string &to) {
  LLAMAC_RETURN_IF_ERROR(heap.spend(1));
  switch (value.kind()) {
  case Kind::Missing:
  case Kind::Undefined:
    return absl::OkStatus();
  case Kind::None:
    to += "None";
    return absl::OkStatus();
  case Kind::Bool:
    to += value.boolean() ? "True" : "False";
    return absl::OkStatus();
  case Kind::Int:
    absl::StrAppend(&to, value.integer());
    return absl::OkStatus();
  case Kind::Float:
    to += floatText(value.real());
    return absl::OkStatus();
  case Kind::String:
    LLAMAC_RETURN_IF_ERROR(heap.spendBytes(value.text().size()));
    absl::StrAppend(&to, value.text());
    return absl::OkStatus();
  case Kind::List:
  case Kind::Tuple:
  case Kind::Dict:
  case Kind::DictView:
  case Kind::Namespace:
    return appendRepr(heap, value, to);
  case Kind::Range: {
    const Range &range = value.range();
    absl::StrAppend(&to, "range(", range.start, ", ", range.stop);
    if (range.step != 1)
      absl::StrAppend(&to, ", ", range.step);
    to += ')';
    return absl::OkStatus();
  }
  case Kind::Macro: {
    const std::string *const name = value.macro().node->name;
    if (!name)
      to += "<Macro anonymous>";
    else
      absl::StrAppend(&to, "<Macro '", *name, "'>");
    return absl::OkStatus();
  }
  default:
    // Python shows an address there.
    return templateError(absl::StrCat("a ", typeName(value), " has no text"));
  }
}

absl::StatusOr<std::string> textOf(Heap &heap, const Value &value) {
  std::string text;
  LLAMAC_RETURN_IF_ERROR(appendText(heap, value, text));
  return text;
}

} // namespace llamac::chat
