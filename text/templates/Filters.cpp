//===- Filters.cpp - Filters of templates ---------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Json.h"
#include "text/templates/Tables.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace llamac::chat {

namespace filter {

using ValueOr = absl::StatusOr<Value>;
using Item = Iterator::Item;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

// Python's str(value), a text as it is.
static ValueOr string(Interpreter &in, const Value &self, CallArguments &) {
  if (self.isString())
    return self;
  LLAMAC_ASSIGN_OR_RETURN(std::string text, textOf(in.heap, self));
  return in.heap.string(std::move(text));
}

static ValueOr safe(Interpreter &in, const Value &self, CallArguments &) {
  LLAMAC_ASSIGN_OR_RETURN(std::string text, textOf(in.heap, self));
  return in.heap.string(std::move(text), true);
}

static ValueOr indent(Interpreter &in, const Value &self, CallArguments &args) {
  if (self.isUndefined())
    return undefinedError(self);
  if (!self.isString() || (args.has(0) && !args[0].isInt()))
    return templateError(
        absl::StrCat("indent needs a text and a width, got ", typeName(self)));
  const uint64_t width = static_cast<uint64_t>(
      std::max<int64_t>(0, args.has(0) ? args[0].integer() : 4));
  LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(1, width));
  const std::string space(width, ' ');
  const std::string text = std::string(self.text()) + "\n";
  const std::vector<absl::string_view> lines = linesOf(text);
  LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(lines.size(), space.size()));
  std::string result;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0)
      result += '\n';
    if (i == 0 ? args.isSet(1) : args.isSet(2) || !lines[i].empty())
      result += space;
    absl::StrAppend(&result, lines[i]);
  }
  return in.heap.string(std::move(result));
}

static ValueOr toJson(Interpreter &in, const Value &self, CallArguments &args) {
  JsonStyle style;
  style.ascii = args.isSet(0);
  if (args[1].isInt()) {
    const int64_t width = std::max<int64_t>(0, args[1].integer());
    LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(64, static_cast<uint64_t>(width)));
    style.indent = std::string(static_cast<size_t>(width), ' ');
  } else if (args.has(1) && !args[1].is(Kind::None)) {
    return templateError("tojson takes an integer as indent");
  }
  style.itemSeparator = style.indent ? "," : ", ";
  if (args.has(2) && !args[2].is(Kind::None)) {
    LLAMAC_ASSIGN_OR_RETURN(const auto parts, items(in.heap, args[2]));
    if (parts.size() != 2 || !parts[0].isString() || !parts[1].isString())
      return templateError("separators are two texts");
    style.itemSeparator = std::string(parts[0].text());
    style.keySeparator = std::string(parts[1].text());
  }
  std::string text;
  LLAMAC_RETURN_IF_ERROR(appendJson(in.heap, self, style, text));
  return in.heap.string(std::move(text));
}

// A text that is no number gives the default. One with underscores or digits
// beyond ASCII may be a number in Python, and is an error.
static ValueOr integer(Interpreter &in, const Value &self,
                       CallArguments &args) {
  const Value otherwise = args.has(0) ? args[0] : Value::integer(0);
  if (self.isUndefined())
    return undefinedError(self);
  if (self.isInt())
    return Value::integer(self.integer());
  double real = 0;
  if (self.is(Kind::Float)) {
    real = self.real();
  } else if (!self.isString()) {
    return otherwise;
  } else {
    LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(self.text().size()));
    const absl::string_view text = strip(self.text(), std::nullopt, true, true);
    int64_t value;
    if (absl::SimpleAtoi(text, &value))
      return Value::integer(value);
    bool isPlain = true;
    for (size_t at = 0; at < text.size();) {
      const int32_t code = decode(text, at);
      if (code < 0x80 && absl::StrContains("0123456789.eE+-", char(code)))
        continue;
      if (code != '_' && !isDecimal(code))
        return otherwise;
      isPlain = false;
    }
    if (!isPlain)
      return templateError("'int' of digits beyond ASCII is not supported");
    if (!absl::SimpleAtod(text, &real) || !std::isfinite(real))
      return otherwise;
  }
  return std::fabs(real) < 0x1p63
             ? ValueOr(Value::integer(static_cast<int64_t>(real)))
             : integerOverflow();
}

//===----------------------------------------------------------------------===//
// Attributes by a path
//===----------------------------------------------------------------------===//

/// "a.b.0": an attribute or item of an item, and so on. With no path, the
/// value itself.
class Path {
public:
  static absl::StatusOr<Path> parse(Interpreter &in, const Value &path) {
    Path result;
    if (path.is(Kind::Missing) || path.is(Kind::None))
      return result;
    if (!path.isString()) {
      result.parts.push_back(path);
      return result;
    }
    for (const absl::string_view part : absl::StrSplit(path.text(), '.')) {
      LLAMAC_ASSIGN_OR_RETURN(Value key, in.heap.string(std::string(part)));
      int64_t index;
      if (part.find_first_not_of("0123456789") == absl::string_view::npos &&
          absl::SimpleAtoi(part, &index))
        key = Value::integer(index);
      result.parts.push_back(key);
    }
    return result;
  }

  ValueOr of(Interpreter &in, Value value) const {
    for (const Value &part : parts) {
      LLAMAC_ASSIGN_OR_RETURN(value, in.item(value, part));
    }
    return value;
  }

  // The result of of(), in lower case if it is a text.
  ValueOr inLowerCase(Interpreter &in, const Value &value) const {
    LLAMAC_ASSIGN_OR_RETURN(const Value found, of(in, value));
    if (!found.isString())
      return found;
    LLAMAC_ASSIGN_OR_RETURN(std::string text, lower(found.text()));
    return in.heap.string(std::move(text));
  }

private:
  std::vector<Value> parts;
};

//===----------------------------------------------------------------------===//
// One value of a sequence, or about it
//===----------------------------------------------------------------------===//

static ValueOr length(Interpreter &, const Value &self, CallArguments &) {
  const std::optional<int64_t> count = lengthOf(self);
  if (!count)
    return templateError(absl::StrCat("a ", typeName(self), " has no length"));
  return Value::integer(*count);
}

static ValueOr defaultValue(Interpreter &in, const Value &self,
                            CallArguments &args) {
  if (!self.isUndefined() && (!args.isSet(1) || isTrue(self)))
    return self;
  return args.has(0) ? args[0] : in.heap.string("");
}

static ValueOr first(Interpreter &in, const Value &self, CallArguments &) {
  LLAMAC_ASSIGN_OR_RETURN(Iterator *const iterator, iterate(in.heap, self));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item,
                          iterator->next(in.heap));
  return item.value_or(Value());
}

static ValueOr last(Interpreter &in, const Value &self, CallArguments &) {
  if (!lengthOf(self))
    return templateError(
        absl::StrCat("a ", typeName(self), " has no last item"));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<Value> all, items(in.heap, self));
  return all.empty() ? Value() : all.back();
}

static ValueOr join(Interpreter &in, const Value &self, CallArguments &args) {
  std::string separator, text;
  if (args.has(0))
    LLAMAC_RETURN_IF_ERROR(appendText(in.heap, args[0], separator));
  LLAMAC_ASSIGN_OR_RETURN(Iterator *const iterator, iterate(in.heap, self));
  for (bool isFirst = true;; isFirst = false) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item,
                            iterator->next(in.heap));
    if (!item)
      return in.heap.string(std::move(text));
    if (!isFirst)
      text += separator;
    LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(separator.size()));
    LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(1, text.size()));
    LLAMAC_RETURN_IF_ERROR(appendText(in.heap, *item, text));
  }
}

// The item with the least key, or with the greatest.
template <int sign>
static ValueOr extreme(Interpreter &in, const Value &self, CallArguments &) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<Value> all, items(in.heap, self));
  Value best, bestKey;
  for (size_t i = 0; i < all.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(const Value key, Path().inLowerCase(in, all[i]));
    int order = sign;
    if (i > 0) {
      LLAMAC_ASSIGN_OR_RETURN(
          order, compareOrder(in.heap, sign < 0 ? "<" : ">", key, bestKey));
    }
    if (order == sign) {
      best = all[i];
      bestKey = key;
    }
  }
  return best;
}

//===----------------------------------------------------------------------===//
// Other sequences
//===----------------------------------------------------------------------===//

static ValueOr list(Interpreter &in, const Value &self, CallArguments &) {
  LLAMAC_ASSIGN_OR_RETURN(std::vector<Value> all, items(in.heap, self));
  return in.heap.list(std::move(all));
}

// A generator of pairs, as jinja2's is, and not a view.
static ValueOr itemsOf(Interpreter &in, const Value &self, CallArguments &) {
  LLAMAC_ASSIGN_OR_RETURN(Value pairs, in.heap.list({}));
  if (!self.isUndefined()) {
    if (!self.is(Kind::Dict))
      return templateError(
          absl::StrCat("items needs a dict, got ", typeName(self)));
    CallArguments none;
    LLAMAC_ASSIGN_OR_RETURN(
        pairs, in.call(*methods(Kind::Dict).find("items"), self, none));
  }
  LLAMAC_ASSIGN_OR_RETURN(Iterator *const made, iterate(in.heap, pairs));
  return Value::of(Kind::Generator, made);
}

// The values of `keyed` in the order of their keys; equal ones stay in theirs.
static ValueOr sorted(Interpreter &in,
                      std::vector<std::pair<Value, Value>> keyed) {
  // Keys are all numbers or all texts: to compare them cannot fail below.
  for (size_t i = 1; i < keyed.size(); ++i)
    LLAMAC_RETURN_IF_ERROR(
        compareOrder(in.heap, "<", keyed[i].first, keyed[0].first).status());
  const uint64_t levels = static_cast<uint64_t>(std::bit_width(keyed.size()));
  for (const auto &[key, value] : keyed)
    LLAMAC_RETURN_IF_ERROR(in.heap.spend(
        levels * (1 + (key.isString() ? key.text().size() / 16 : 0))));
  std::vector<size_t> order(keyed.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int sign = *orderOf(keyed[a].first, keyed[b].first);
    return sign < 0 || (sign == 0 && a < b);
  });
  std::vector<Value> values;
  values.reserve(order.size());
  for (const size_t i : order)
    values.push_back(keyed[i].second);
  return in.heap.list(std::move(values));
}

static ValueOr sort(Interpreter &in, const Value &self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const Path path, Path::parse(in, args[0]));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<Value> all, items(in.heap, self));
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value &value : all) {
    LLAMAC_ASSIGN_OR_RETURN(const Value key, path.inLowerCase(in, value));
    keyed.emplace_back(key, value);
  }
  return sorted(in, std::move(keyed));
}

static ValueOr dictSort(Interpreter &in, const Value &self, CallArguments &) {
  if (!self.is(Kind::Dict))
    return self.isUndefined()
               ? undefinedError(self)
               : templateError(absl::StrCat("dictsort needs a dict, got ",
                                            typeName(self)));
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto &[key, value] : self.dict().entries) {
    LLAMAC_ASSIGN_OR_RETURN(const Value lowered, Path().inLowerCase(in, key));
    LLAMAC_ASSIGN_OR_RETURN(const Value pair, in.heap.tuple({key, value}));
    keyed.emplace_back(lowered, pair);
  }
  return sorted(in, std::move(keyed));
}

static ValueOr unique(Interpreter &in, const Value &self, CallArguments &) {
  LLAMAC_ASSIGN_OR_RETURN(Iterator *const source, iterate(in.heap, self));
  LLAMAC_ASSIGN_OR_RETURN(const Value seen, in.heap.dict());
  return in.heap.generator(source, [&in, seen](const Value &item) -> Item {
    LLAMAC_ASSIGN_OR_RETURN(const Value key, Path().inLowerCase(in, item));
    const size_t before = seen.dict().entries.size();
    LLAMAC_RETURN_IF_ERROR(in.heap.set(seen, key, Value::none()));
    return seen.dict().entries.size() > before ? std::optional(item)
                                               : std::nullopt;
  });
}

//===----------------------------------------------------------------------===//
// Map and select
//===----------------------------------------------------------------------===//

// An iterator that gives nothing is what they make of a value that is false.
static absl::StatusOr<Iterator *> sourceOf(Interpreter &in, const Value &self) {
  return iterate(in.heap, isTrue(self) ? self : Value());
}

static Value takeFirst(CallArguments &args) {
  const Value taken = args.positional.front();
  args.positional.erase(args.positional.begin());
  return taken;
}

static ValueOr map(Interpreter &in, const Value &self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(Iterator *const source, sourceOf(in, self));
  if (args.positional.empty()) {
    if (args.named.size() != 1 || args.named[0].first != "attribute")
      return templateError("map takes a filter, or an attribute alone");
    LLAMAC_ASSIGN_OR_RETURN(const Path path,
                            Path::parse(in, args.named[0].second));
    return in.heap.generator(source, [&in, path](const Value &item) -> Item {
      LLAMAC_ASSIGN_OR_RETURN(const Value found, path.of(in, item));
      return found;
    });
  }
  CallArguments rest = args;
  const Value name = takeFirst(rest);
  return in.heap.generator(
      source, [&in, name, rest](const Value &item) -> Item {
        LLAMAC_ASSIGN_OR_RETURN(const Value made,
                                in.apply(filters(), name, item, rest));
        return made;
      });
}

// The items whose value, or attribute, passes a test; with `reject`, the
// others.
template <bool byAttribute, bool reject>
static ValueOr select(Interpreter &in, const Value &self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(Iterator *const source, sourceOf(in, self));
  Path path;
  CallArguments rest = args;
  if (byAttribute) {
    if (rest.positional.empty())
      return templateError("selectattr needs an attribute");
    LLAMAC_ASSIGN_OR_RETURN(path, Path::parse(in, takeFirst(rest)));
  }
  std::optional<Value> test;
  if (!rest.positional.empty())
    test = takeFirst(rest);
  return in.heap.generator(
      source, [&in, path, test, rest](const Value &item) -> Item {
        LLAMAC_ASSIGN_OR_RETURN(Value holds, path.of(in, item));
        if (test) {
          LLAMAC_ASSIGN_OR_RETURN(holds, in.apply(tests(), *test, holds, rest));
        }
        return isTrue(holds) != reject ? std::optional(item) : std::nullopt;
      });
}

static constexpr Function table[] = {
    {"capitalize", changeText<capitalize>},
    {"count", length, {}, 0, false, true},
    {"d", defaultValue, {"default_value", "boolean"}, 0, false, true},
    {"default", defaultValue, {"default_value", "boolean"}, 0, false, true},
    {"dictsort", dictSort},
    {"first", first},
    {"indent", indent, {"width", "first", "blank"}},
    {"int", integer, {"default"}},
    {"items", itemsOf},
    {"join", join, {"d"}},
    {"last", last},
    {"length", length, {}, 0, false, true},
    {"list", list},
    {"lower", changeText<lower>},
    {"map", map, {}, 0, true},
    {"max", extreme<1>},
    {"min", extreme<-1>},
    {"reject", select<false, true>, {}, 0, true},
    {"rejectattr", select<true, true>, {}, 0, true},
    {"replace", replaceText, {"old", "new", "count"}, 2},
    {"safe", safe, {}, 0, false, true},
    {"select", select<false, false>, {}, 0, true},
    {"selectattr", select<true, false>, {}, 0, true},
    {"sort", sort, {"attribute"}},
    {"string", string, {}, 0, false, true},
    {"title", changeText<titleWords>},
    {"tojson",
     toJson,
     {"ensure_ascii", "indent", "separators"},
     0,
     false,
     true},
    {"trim", stripText<true, true>, {"chars"}},
    {"unique", unique},
    {"upper", changeText<upper>},
};

} // namespace filter

const Table &filters() {
  static constexpr Table table = {
      "filter", filter::table,
      "abs attr batch center e escape filesizeformat float forceescape format "
      "groupby pprint random reverse round slice striptags sum truncate "
      "urlencode urlize wordcount wordwrap xmlattr"};
  return table;
}

absl::StatusOr<Value> replaceText(Interpreter &in, const Value &self,
                                  CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string text, textOf(in.heap, self));
  LLAMAC_ASSIGN_OR_RETURN(const std::string from, textOf(in.heap, args[0]));
  LLAMAC_ASSIGN_OR_RETURN(const std::string to, textOf(in.heap, args[1]));
  if (from.empty())
    return templateError("'replace' of an empty text is not supported");
  if (args.has(2) && !args[2].isInt())
    return templateError("'replace' takes an integer as count");
  const uint64_t limit = in.heap.limits.memoryBytes;
  std::optional<std::string> result =
      replace(text, from, to, args.has(2) ? args[2].integer() : -1, limit);
  if (!result)
    return in.heap.wouldFit(2, limit);
  return in.heap.string(*std::move(result));
}

} // namespace llamac::chat
