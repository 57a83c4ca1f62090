//===- Value.cpp - Values of a template -----------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Value.h"

#include "text/templates/Interpreter.h"
#include "text/templates/Text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace llamac::chat {

//===----------------------------------------------------------------------===//
// The heap
//===----------------------------------------------------------------------===//

Heap::~Heap() {
  for (const Owned &each : owned)
    each.free(each.object);
}

absl::Status Heap::tooMany(absl::string_view what, uint64_t limit) {
  return templateError(
      absl::StrCat("it needs more than ", limit, " ", what,
                   "; the template or the messages are too large"));
}

absl::Status Heap::wouldFit(uint64_t count, uint64_t bytes) const {
  uint64_t product;
  if (__builtin_mul_overflow(count, bytes, &product) ||
      product > limits.memoryBytes - memory)
    return tooMany("bytes of text and values", limits.memoryBytes);
  return absl::OkStatus();
}

absl::Status Heap::reserve(uint64_t bytes) {
  LLAMAC_RETURN_IF_ERROR(wouldFit(1, bytes));
  memory += bytes;
  return absl::OkStatus();
}

absl::StatusOr<Value> Heap::string(std::string text, bool markup) {
  LLAMAC_RETURN_IF_ERROR(spendBytes(text.size()));
  LLAMAC_RETURN_IF_ERROR(reserve(text.size()));
  const size_t length = codePoints(text);
  return object(Kind::String, String{std::move(text), length, markup});
}

absl::StatusOr<Value> Heap::sequence(Kind kind, std::vector<Value> items) {
  LLAMAC_RETURN_IF_ERROR(spend(1 + items.size() / 4));
  LLAMAC_RETURN_IF_ERROR(reserve(items.size() * sizeof(Value)));
  return object(kind, Sequence{std::move(items)});
}

absl::StatusOr<Value> Heap::dict(Kind kind) { return object(kind, Dict{}); }

absl::Status Heap::set(const Value &dict, const Value &key,
                       const Value &value) {
  std::optional<std::string> text = Dict::keyText(key);
  if (!text)
    return templateError(absl::StrCat("a ", typeName(key),
                                      " as a key of a dict is not supported"));
  // Hugging Face's namespaces keep Python's own names away; so do these.
  if (dict.is(Kind::Namespace) && absl::StartsWith(*text, "s_"))
    return templateError(absl::StrCat("a namespace has no '",
                                      key.text().substr(0, 60),
                                      "': names begin with no underscore"));
  LLAMAC_RETURN_IF_ERROR(spendBytes(text->size()));
  LLAMAC_RETURN_IF_ERROR(reserve(4 * sizeof(Value) + text->size()));
  Dict &into = dict.dict();
  const auto [at, isNew] =
      into.index.emplace(*std::move(text), into.entries.size());
  if (isNew)
    into.entries.emplace_back(key, value);
  else
    into.entries[at->second].second = value;
  return absl::OkStatus();
}

absl::StatusOr<Value> Heap::generator(Iterator *source, Iterator::Make make) {
  Iterator made;
  made.depth = source->depth + 1;
  if (made.depth > limits.valueDepth)
    return templateError("generators are nested too deeply");
  made.source = source;
  made.make = std::move(make);
  return object(Kind::Generator, std::move(made));
}

//===----------------------------------------------------------------------===//
// Dictionaries
//===----------------------------------------------------------------------===//

std::optional<std::string> Dict::keyText(const Value &key) {
  if (key.isString())
    return absl::StrCat("s", key.text());
  if (key.is(Kind::None))
    return "n";
  if (key.isInt())
    return absl::StrCat("i", key.integer());
  if (!key.is(Kind::Float))
    return std::nullopt;
  const double real = key.real();
  return std::trunc(real) == real && std::fabs(real) < 0x1p63
             ? absl::StrCat("i", static_cast<int64_t>(real))
             : absl::StrCat("f", floatText(real));
}

const Value *Dict::find(const Value &key) const {
  const std::optional<std::string> text = keyText(key);
  const auto at = text ? index.find(*text) : index.end();
  return at == index.end() ? nullptr : &entries[at->second].second;
}

const Value *Dict::find(absl::string_view key) const {
  const auto at = index.find(absl::StrCat("s", key));
  return at == index.end() ? nullptr : &entries[at->second].second;
}

absl::StatusOr<const Value *> lookUp(Heap &heap, const Dict &dict,
                                     const Value &key) {
  if (key.is(Kind::List) || key.is(Kind::Dict))
    return templateError(
        absl::StrCat("a ", typeName(key), " cannot be a key of a dict"));
  LLAMAC_RETURN_IF_ERROR(
      heap.spendBytes(key.isString() ? key.text().size() : 0));
  return dict.find(key);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

absl::Status templateError(absl::string_view message) {
  return usageError(message);
}

absl::string_view typeName(const Value &value) {
  static constexpr absl::string_view names[] = {
      "undefined",      "undefined", "none",      "bool",      "int",
      "float",          "str",       "list",      "tuple",     "range",
      "view of a dict", "dict",      "namespace", "generator", "macro",
      "method",         "function",  "loop"};
  return names[static_cast<size_t>(value.kind())];
}

absl::Status undefinedError(const Value &value) {
  return templateError(value.undefinedName()
                           ? absl::StrCat("'",
                                          value.undefinedName()->substr(0, 200),
                                          "' is undefined")
                           : "the value is undefined");
}

//===----------------------------------------------------------------------===//
// Truth, length, equality and order
//===----------------------------------------------------------------------===//

bool isTrue(const Value &value) {
  switch (value.kind()) {
  case Kind::Missing:
  case Kind::Undefined:
  case Kind::None:
    return false;
  case Kind::Bool:
  case Kind::Int:
    return value.integer() != 0;
  case Kind::Float:
    return value.real() != 0;
  default:
    return lengthOf(value).value_or(1) != 0;
  }
}

std::optional<int64_t> lengthOf(const Value &value) {
  switch (value.kind()) {
  case Kind::Undefined:
    return 0;
  case Kind::String:
    return static_cast<int64_t>(value.string().length);
  case Kind::List:
  case Kind::Tuple:
  case Kind::Range:
  case Kind::View:
    return static_cast<int64_t>(value.sequence().items.size());
  case Kind::Dict:
    return static_cast<int64_t>(value.dict().entries.size());
  default:
    return std::nullopt;
  }
}

absl::Status tooDeep() {
  return templateError("lists and dictionaries are nested too deeply");
}

absl::Status integerOverflow() {
  return templateError("an integer of more than 64 bits");
}

std::optional<int> orderOf(const Value &a, const Value &b) {
  if (a.isString() && b.isString()) {
    const int sign = a.text().compare(b.text());
    return sign < 0 ? -1 : sign > 0;
  }
  if (!a.isNumber() || !b.isNumber())
    return std::nullopt;
  // Python compares an int with a float by their exact values.
  static_assert(std::numeric_limits<long double>::digits >= 64);
  const auto exact = [](const Value &value) {
    return value.is(Kind::Float) ? static_cast<long double>(value.real())
                                 : static_cast<long double>(value.integer());
  };
  const long double x = exact(a), y = exact(b);
  return x < y ? -1 : x > y;
}

static absl::StatusOr<bool> equalsAt(Heap &heap, const Value &a, const Value &b,
                                     int depth) {
  LLAMAC_RETURN_IF_ERROR(heap.spend(1));
  if (depth > heap.limits.valueDepth)
    return tooDeep();
  if (a.isNumber() && b.isNumber())
    return orderOf(a, b) == 0;
  if (a.kind() != b.kind())
    return false;
  switch (a.kind()) {
  case Kind::String:
    LLAMAC_RETURN_IF_ERROR(heap.spendBytes(a.text().size()));
    return a.text() == b.text();
  case Kind::List:
  case Kind::Tuple:
  case Kind::Range: {
    const std::vector<Value> &x = a.sequence().items, &y = b.sequence().items;
    if (x.size() != y.size())
      return false;
    for (size_t i = 0; i < x.size(); ++i) {
      LLAMAC_ASSIGN_OR_RETURN(const bool same,
                              equalsAt(heap, x[i], y[i], depth + 1));
      if (!same)
        return false;
    }
    return true;
  }
  case Kind::Dict: {
    if (a.dict().entries.size() != b.dict().entries.size())
      return false;
    for (const auto &[key, value] : a.dict().entries) {
      LLAMAC_ASSIGN_OR_RETURN(const Value *const other,
                              lookUp(heap, b.dict(), key));
      if (!other)
        return false;
      LLAMAC_ASSIGN_OR_RETURN(const bool same,
                              equalsAt(heap, value, *other, depth + 1));
      if (!same)
        return false;
    }
    return true;
  }
  case Kind::Undefined:
  case Kind::None:
    return true;
  case Kind::View:
  case Kind::Method: // Python makes one for each use, and compares what it has.
    return templateError(
        absl::StrCat("'==' compares no ", typeName(a), "; compare lists"));
  default:
    return a.address() == b.address();
  }
}

absl::StatusOr<bool> equals(Heap &heap, const Value &a, const Value &b) {
  return equalsAt(heap, a, b, 0);
}

absl::StatusOr<int> compareOrder(Heap &heap, absl::string_view op,
                                 const Value &a, const Value &b) {
  LLAMAC_RETURN_IF_ERROR(heap.spendBytes(a.isString() ? a.text().size() : 0));
  if (const std::optional<int> order = orderOf(a, b))
    return *order;
  for (const Value &value : {a, b})
    if (value.isUndefined())
      return undefinedError(value);
  return templateError(absl::StrCat("'", op, "' of a ", typeName(a), " and a ",
                                    typeName(b), " is not supported"));
}

//===----------------------------------------------------------------------===//
// Iteration
//===----------------------------------------------------------------------===//

Iterator::Item Iterator::next(Heap &heap) {
  while (true) {
    LLAMAC_RETURN_IF_ERROR(heap.spend(1));
    if (!source) {
      if (at == items->size())
        return std::nullopt;
      return (*items)[at++];
    }
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item,
                            source->next(heap));
    if (!item)
      return item;
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> made, make(*item));
    if (made)
      return made;
  }
}

absl::StatusOr<Iterator *> iterate(Heap &heap, const Value &value) {
  Value list = value;
  switch (value.kind()) {
  case Kind::Generator:
    return &value.generator();
  case Kind::List:
  case Kind::Tuple:
  case Kind::Range:
  case Kind::View:
    break;
  case Kind::Undefined: {
    LLAMAC_ASSIGN_OR_RETURN(list, heap.list({}));
    break;
  }
  case Kind::String: {
    std::vector<Value> characters;
    const absl::string_view text = value.text();
    for (size_t at = 0; at < text.size();) {
      const size_t begin = at;
      decode(text, at);
      LLAMAC_ASSIGN_OR_RETURN(
          const Value character,
          heap.string(std::string(text.substr(begin, at - begin))));
      characters.push_back(character);
    }
    LLAMAC_ASSIGN_OR_RETURN(list, heap.list(std::move(characters)));
    break;
  }
  case Kind::Dict: {
    std::vector<Value> keys;
    for (const auto &[key, mapped] : value.dict().entries)
      keys.push_back(key);
    LLAMAC_ASSIGN_OR_RETURN(list, heap.list(std::move(keys)));
    break;
  }
  default:
    return templateError(
        absl::StrCat("'", typeName(value), "' object is not iterable"));
  }
  Iterator made;
  made.items = &list.sequence().items;
  LLAMAC_ASSIGN_OR_RETURN(const Value iterator,
                          heap.object(Kind::Generator, std::move(made)));
  return &iterator.generator();
}

absl::StatusOr<std::vector<Value>> items(Heap &heap, const Value &value) {
  LLAMAC_ASSIGN_OR_RETURN(Iterator *const iterator, iterate(heap, value));
  std::vector<Value> all;
  while (true) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item,
                            iterator->next(heap));
    if (!item)
      return all;
    all.push_back(*item);
  }
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string floatText(double value) {
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
    return appendRepr(heap, value, to);
  default:
    // Python shows most of them by their address.
    return templateError(
        absl::StrCat("the text of a ", typeName(value), " is not supported"));
  }
}

absl::StatusOr<std::string> textOf(Heap &heap, const Value &value) {
  std::string text;
  LLAMAC_RETURN_IF_ERROR(appendText(heap, value, text));
  return text;
}

} // namespace llamac::chat
