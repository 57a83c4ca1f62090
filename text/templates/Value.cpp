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

#include "absl/hash/hash.h"
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
    return tooMany("bytes of values", limits.memoryBytes);
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
  LLAMAC_RETURN_IF_ERROR(checkKey(key));
  // As Hugging Face's namespaces, which keep Python's own names away.
  if (dict.is(Kind::Namespace) && key.isString() &&
      absl::StartsWith(key.text(), "_"))
    return templateError(absl::StrCat("a namespace has no '",
                                      key.text().substr(0, 60),
                                      "': names begin with no underscore"));
  LLAMAC_RETURN_IF_ERROR(reserve(4 * sizeof(Value)));
  dict.dict().set(key, value);
  return absl::OkStatus();
}

absl::StatusOr<Value> Heap::generator(NextItem next) {
  return object(Kind::Generator, Generator{std::move(next)});
}

//===----------------------------------------------------------------------===//
// Dictionaries
//===----------------------------------------------------------------------===//

// `rest` is how many values a key may still have.
static bool isHashable(const Value &value, int &rest) {
  switch (value.kind()) {
  case Kind::List:
  case Kind::Dict:
  case Kind::DictView:
  case Kind::Missing:
    return false;
  case Kind::Tuple:
    for (const Value &item : value.sequence().items) {
      --rest;
      if (rest < 0 || !isHashable(item, rest))
        return false;
    }
    return true;
  default:
    return true;
  }
}

static uint64_t keyBytes(const Value &key) {
  if (key.isString())
    return key.text().size();
  uint64_t bytes = 0;
  if (key.is(Kind::Tuple))
    for (const Value &item : key.sequence().items)
      bytes += keyBytes(item);
  return bytes;
}

absl::Status Heap::checkKey(const Value &key) {
  int rest = 32;
  if (!isHashable(key, rest))
    return templateError(
        absl::StrCat("a ", typeName(key), " cannot be a key of a dict"));
  return spendBytes(keyBytes(key));
}

absl::StatusOr<const Value *> lookUp(Heap &heap, const Dict &dict,
                                     const Value &key) {
  LLAMAC_RETURN_IF_ERROR(heap.checkKey(key));
  return dict.find(key);
}

static bool isIntegral(double value) {
  return std::trunc(value) == value && std::fabs(value) < 0x1p63;
}

size_t KeyHash::operator()(const Value &key) const {
  switch (key.kind()) {
  case Kind::None:
  case Kind::Undefined:
    return static_cast<size_t>(key.kind());
  case Kind::Bool:
  case Kind::Int:
    return absl::HashOf(key.integer());
  case Kind::Float:
    return isIntegral(key.real())
               ? absl::HashOf(static_cast<int64_t>(key.real()))
               : absl::HashOf(key.real());
  case Kind::String:
    return absl::HashOf(key.text());
  case Kind::Tuple: {
    size_t hash = 1;
    for (const Value &item : key.sequence().items)
      hash = absl::HashOf(hash, (*this)(item));
    return hash;
  }
  default:
    return absl::HashOf(key.address());
  }
}

// As Python compares an int with a float: by their exact values.
static int orderOf(const Value &a, const Value &b) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  const auto exact = [](const Value &value) {
    return value.is(Kind::Float) ? static_cast<long double>(value.real())
                                 : static_cast<long double>(value.integer());
  };
  const long double x = exact(a), y = exact(b);
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

bool KeyEqual::operator()(const Value &a, const Value &b) const {
  if (a.isNumber() && b.isNumber())
    return orderOf(a, b) == 0;
  if (a.kind() != b.kind())
    return false;
  if (a.isString())
    return a.text() == b.text();
  if (a.is(Kind::Tuple)) {
    const std::vector<Value> &x = a.sequence().items, &y = b.sequence().items;
    if (x.size() != y.size())
      return false;
    for (size_t i = 0; i < x.size(); ++i)
      if (!(*this)(x[i], y[i]))
        return false;
    return true;
  }
  return a.is(Kind::None) || a.isUndefined() || a.address() == b.address();
}

const Value *Dict::find(const Value &key) const {
  const auto at = index.find(key);
  return at == index.end() ? nullptr : &entries[at->second].second;
}

const Value *Dict::find(absl::string_view key) const {
  String text{std::string(key), 0};
  return find(Value::of(Kind::String, &text));
}

void Dict::set(const Value &key, const Value &value) {
  const auto [at, isNew] = index.emplace(key, entries.size());
  if (isNew)
    entries.emplace_back(key, value);
  else
    entries[at->second].second = value;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

absl::Status templateError(absl::string_view message) {
  return usageError(message);
}

absl::string_view typeName(const Value &value) {
  switch (value.kind()) {
  case Kind::Missing:
  case Kind::Undefined:
    return "undefined";
  case Kind::None:
    return "none";
  case Kind::Bool:
    return "bool";
  case Kind::Int:
    return "int";
  case Kind::Float:
    return "float";
  case Kind::String:
    return "str";
  case Kind::List:
    return "list";
  case Kind::Tuple:
    return "tuple";
  case Kind::Dict:
    return "dict";
  case Kind::DictView:
    return "view of a dict";
  case Kind::Range:
    return "range";
  case Kind::Namespace:
    return "namespace";
  case Kind::Generator:
    return "generator";
  case Kind::Macro:
    return "macro";
  case Kind::Method:
    return "method";
  case Kind::Function:
    return "function";
  case Kind::Loop:
    return "loop";
  case Kind::Cycler:
    return "cycler";
  case Kind::Joiner:
    return "joiner";
  }
  return "";
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
    return static_cast<int64_t>(value.sequence().items.size());
  case Kind::Dict:
    return static_cast<int64_t>(value.dict().entries.size());
  case Kind::DictView:
    return static_cast<int64_t>(value.view().dict->entries.size());
  case Kind::Range:
    return value.range().count;
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
  case Kind::Tuple: {
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
  case Kind::Range: {
    const Range &x = a.range(), &y = b.range();
    return x.count == y.count &&
           (x.count == 0 ||
            (x.start == y.start && (x.count == 1 || x.step == y.step)));
  }
  case Kind::Undefined:
  case Kind::None:
    return true;
  default:
    return a.address() == b.address();
  }
}

absl::StatusOr<bool> equals(Heap &heap, const Value &a, const Value &b) {
  return equalsAt(heap, a, b, 0);
}

// a < b is -1, equality 0, a > b is 1; 2 when neither.
static absl::StatusOr<int> order(Heap &heap, absl::string_view op,
                                 const Value &a, const Value &b, int depth) {
  LLAMAC_RETURN_IF_ERROR(heap.spend(1));
  if (depth > heap.limits.valueDepth)
    return tooDeep();
  if (a.isNumber() && b.isNumber())
    return orderOf(a, b);
  if (a.isString() && b.isString()) {
    LLAMAC_RETURN_IF_ERROR(heap.spendBytes(a.text().size()));
    const int sign = a.text().compare(b.text());
    return sign < 0 ? -1 : sign > 0;
  }
  if (a.isSequence() && a.kind() == b.kind()) {
    const std::vector<Value> &x = a.sequence().items, &y = b.sequence().items;
    for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
      LLAMAC_ASSIGN_OR_RETURN(const bool same,
                              equalsAt(heap, x[i], y[i], depth + 1));
      if (!same)
        return order(heap, op, x[i], y[i], depth + 1);
    }
    return x.size() < y.size() ? -1 : x.size() > y.size();
  }
  for (const Value &value : {a, b})
    if (value.isUndefined())
      return undefinedError(value);
  return templateError(absl::StrCat("'", op, "' compares no ", typeName(a),
                                    " with ", typeName(b)));
}

absl::StatusOr<bool> compareOrder(Heap &heap, absl::string_view op,
                                  const Value &a, const Value &b) {
  LLAMAC_ASSIGN_OR_RETURN(const int sign, order(heap, op, a, b, 0));
  if (op == "<")
    return sign == -1;
  if (op == "<=")
    return sign == -1 || sign == 0;
  if (op == ">")
    return sign == 1;
  return sign == 1 || sign == 0;
}

absl::Status stableSort(std::vector<size_t> &order, IndexLess less) {
  const size_t size = order.size();
  std::vector<size_t> merged(size);
  for (size_t run = 1; run < size; run *= 2) {
    for (size_t begin = 0; begin < size; begin += 2 * run) {
      const size_t middle = std::min(begin + run, size);
      const size_t end = std::min(middle + run, size);
      size_t left = begin, right = middle;
      for (size_t to = begin; to < end; ++to) {
        bool takesRight = left == middle;
        if (left < middle && right < end) {
          LLAMAC_ASSIGN_OR_RETURN(takesRight, less(order[right], order[left]));
        }
        merged[to] = order[takesRight ? right++ : left++];
      }
    }
    order.swap(merged);
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Iteration
//===----------------------------------------------------------------------===//

absl::StatusOr<NextItem> iterate(Heap &heap, const Value &value) {
  using Item = absl::StatusOr<std::optional<Value>>;
  // Items by their number, of which there are `count`.
  const auto counted = [](size_t count, auto at) -> NextItem {
    return [count, at, i = size_t{0}]() mutable -> Item {
      if (i >= count)
        return std::nullopt;
      return at(i++);
    };
  };
  switch (value.kind()) {
  case Kind::Undefined:
    return NextItem([]() -> Item { return std::nullopt; });
  case Kind::List:
  case Kind::Tuple: {
    const Sequence *const sequence = &value.sequence();
    return counted(sequence->items.size(),
                   [sequence](size_t i) -> Item { return sequence->items[i]; });
  }
  case Kind::String:
    return NextItem([&heap, text = value.text()]() mutable -> Item {
      if (text.empty())
        return std::nullopt;
      size_t at = 0;
      decode(text, at);
      std::string character(text.substr(0, at));
      text.remove_prefix(at);
      LLAMAC_ASSIGN_OR_RETURN(const Value item,
                              heap.string(std::move(character)));
      return item;
    });
  case Kind::Dict:
  case Kind::DictView: {
    const bool whole = value.is(Kind::Dict);
    const Dict *const dict = whole ? &value.dict() : value.view().dict;
    const DictView::Part part =
        whole ? DictView::Part::Keys : value.view().part;
    return counted(dict->entries.size(), [&heap, dict, part](size_t i) -> Item {
      const auto &[key, mapped] = dict->entries[i];
      if (part == DictView::Part::Keys)
        return key;
      if (part == DictView::Part::Values)
        return mapped;
      LLAMAC_ASSIGN_OR_RETURN(const Value item, heap.tuple({key, mapped}));
      return item;
    });
  }
  case Kind::Range: {
    const Range *const range = &value.range();
    return counted(static_cast<size_t>(range->count),
                   [range](size_t i) -> Item {
                     return range->at(static_cast<int64_t>(i));
                   });
  }
  case Kind::Generator: {
    Generator *const generator = &value.generator();
    return NextItem([&heap, generator]() -> Item {
      // A generator may take its items from another, and so on.
      if (heap.generators >= heap.limits.valueDepth)
        return templateError("generators are nested too deeply");
      ++heap.generators;
      Item item = generator->next();
      --heap.generators;
      return item;
    });
  }
  default:
    return templateError(
        absl::StrCat("'", typeName(value), "' object is not iterable"));
  }
}

absl::StatusOr<std::vector<Value>> items(Heap &heap, const Value &value) {
  LLAMAC_ASSIGN_OR_RETURN(const NextItem next, iterate(heap, value));
  std::vector<Value> all;
  while (true) {
    LLAMAC_RETURN_IF_ERROR(heap.spend(1));
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item, next());
    if (!item)
      return all;
    all.push_back(*item);
  }
}

} // namespace llamac::chat
