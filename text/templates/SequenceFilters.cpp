//===- SequenceFilters.cpp - Filters of sequences -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Interpreter.h"
#include "text/templates/Tables.h"
#include "text/templates/Text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <algorithm>

namespace llamac::chat {

namespace sequence_filter {

using ValueOr = absl::StatusOr<Value>;
using Item = absl::StatusOr<std::optional<Value>>;

//===----------------------------------------------------------------------===//
// Attributes by a path
//===----------------------------------------------------------------------===//

namespace {

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
      int64_t index;
      const bool isIndex =
          !part.empty() &&
          part.find_first_not_of("0123456789") == absl::string_view::npos;
      if (isIndex && parseInt(part, 10, index) == IntParse::Ok) {
        result.parts.push_back(Value::integer(index));
        continue;
      }
      LLAMAC_ASSIGN_OR_RETURN(const Value name,
                              in.heap.string(std::string(part)));
      result.parts.push_back(name);
    }
    return result;
  }

  ValueOr of(Interpreter &in, Value value,
             const Value &otherwise = Value::missing()) const {
    for (const Value &part : parts) {
      LLAMAC_ASSIGN_OR_RETURN(value, in.item(value, part));
      if (value.isUndefined() && !otherwise.is(Kind::Missing) &&
          !otherwise.is(Kind::None))
        value = otherwise;
    }
    return value;
  }

  // The same, with text in lower case.
  ValueOr ofAnyCase(Interpreter &in, const Value &value,
                    bool caseSensitive) const {
    LLAMAC_ASSIGN_OR_RETURN(const Value found, of(in, value));
    if (caseSensitive || !found.isString())
      return found;
    return in.heap.string(lower(found.text()), found.string().markup);
  }

private:
  std::vector<Value> parts;
};

/// Sorts `values` by `keys`, from the largest when `reverse`; equal ones keep
/// their order.
absl::StatusOr<std::vector<Value>> sortBy(Heap &heap,
                                          const std::vector<Value> &keys,
                                          const std::vector<Value> &values,
                                          bool reverse) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  LLAMAC_RETURN_IF_ERROR(stableSort(order, [&](size_t a, size_t b) {
    return compareOrder(heap, "<", keys[reverse ? b : a],
                        keys[reverse ? a : b]);
  }));
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const size_t i : order)
    sorted.push_back(values[i]);
  return sorted;
}

bool isSet(const Value &flag) {
  return !flag.is(Kind::Missing) && isTrue(flag);
}

} // namespace

//===----------------------------------------------------------------------===//
// One value of a sequence, or about it
//===----------------------------------------------------------------------===//

static ValueOr length(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("length", args, {}).status());
  if (input.is(Kind::Loop)) {
    LLAMAC_ASSIGN_OR_RETURN(const int64_t count, input.loop().count());
    return Value::integer(count);
  }
  const std::optional<int64_t> count = lengthOf(input);
  if (!count)
    return templateError(absl::StrCat("a ", typeName(input), " has no length"));
  return Value::integer(*count);
}

static ValueOr defaultValue(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound,
                          bind("default", args, {"default_value", "boolean"}));
  if (!input.isUndefined() && (!isSet(bound[1]) || isTrue(input)))
    return input;
  return bound[0].is(Kind::Missing) ? in.heap.string("") : bound[0];
}

static ValueOr first(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("first", args, {}).status());
  LLAMAC_ASSIGN_OR_RETURN(const NextItem next, iterate(in.heap, input));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item, next());
  return item.value_or(Value());
}

static ValueOr last(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("last", args, {}).status());
  if (!lengthOf(input))
    return templateError(
        absl::StrCat("a ", typeName(input), " has no last item"));
  if (input.isString() || input.isSequence())
    return in.item(input, Value::integer(-1));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<Value> all, items(in.heap, input));
  return all.empty() ? Value() : all.back();
}

static ValueOr join(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound,
                          bind("join", args, {"d", "attribute"}));
  LLAMAC_ASSIGN_OR_RETURN(const Path path, Path::parse(in, bound[1]));
  std::string separator, text;
  if (!bound[0].is(Kind::Missing))
    LLAMAC_RETURN_IF_ERROR(appendText(in.heap, bound[0], separator));
  LLAMAC_ASSIGN_OR_RETURN(const NextItem next, iterate(in.heap, input));
  for (bool isFirst = true;; isFirst = false) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item, next());
    if (!item)
      return in.heap.string(std::move(text));
    if (!isFirst)
      text += separator;
    LLAMAC_ASSIGN_OR_RETURN(const Value part, path.of(in, *item));
    LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(separator.size()));
    LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(1, text.size()));
    LLAMAC_RETURN_IF_ERROR(appendText(in.heap, part, text));
  }
}

static ValueOr sum(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound,
                          bind("sum", args, {"attribute", "start"}));
  LLAMAC_ASSIGN_OR_RETURN(const Path path, Path::parse(in, bound[0]));
  Value total = bound[1].is(Kind::Missing) ? Value::integer(0) : bound[1];
  if (total.isString())
    return templateError("sum joins no texts; join does");
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<Value> all, items(in.heap, input));
  for (const Value &item : all) {
    LLAMAC_ASSIGN_OR_RETURN(const Value part, path.of(in, item));
    LLAMAC_ASSIGN_OR_RETURN(total, in.binary("+", total, part));
  }
  return total;
}

static ValueOr extreme(Interpreter &in, const Value &input, CallArguments &args,
                       absl::string_view op) {
  LLAMAC_ASSIGN_OR_RETURN(
      const auto bound,
      bind("min and max", args, {"case_sensitive", "attribute"}));
  LLAMAC_ASSIGN_OR_RETURN(const Path path, Path::parse(in, bound[1]));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<Value> all, items(in.heap, input));
  Value best, bestKey;
  for (size_t i = 0; i < all.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(const Value key,
                            path.ofAnyCase(in, all[i], isSet(bound[0])));
    bool better = i == 0;
    if (i > 0) {
      LLAMAC_ASSIGN_OR_RETURN(better, compareOrder(in.heap, op, key, bestKey));
    }
    if (better) {
      best = all[i];
      bestKey = key;
    }
  }
  return best;
}

static ValueOr minimum(Interpreter &in, Value input, CallArguments &args) {
  return extreme(in, input, args, "<");
}
static ValueOr maximum(Interpreter &in, Value input, CallArguments &args) {
  return extreme(in, input, args, ">");
}

static ValueOr attribute(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto bound, bind("attr", args, {"name"}, 1));
  if (!bound[0].isString())
    return templateError("attr takes a name");
  if (input.isUndefined())
    return undefinedError(input);
  LLAMAC_ASSIGN_OR_RETURN(const Value found,
                          in.member(input, bound[0].string().bytes));
  return found.is(Kind::Missing) ? Value::undefined(&bound[0].string().bytes)
                                 : found;
}

//===----------------------------------------------------------------------===//
// Other sequences
//===----------------------------------------------------------------------===//

static ValueOr list(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("list", args, {}).status());
  LLAMAC_ASSIGN_OR_RETURN(std::vector<Value> all, items(in.heap, input));
  return in.heap.list(std::move(all));
}

static ValueOr itemsOf(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("items", args, {}).status());
  if (!input.isUndefined() && !input.is(Kind::Dict))
    return in.heap.generator([kind = std::string(typeName(input))]() -> Item {
      return templateError(absl::StrCat("items needs a dict, got ", kind));
    });
  if (input.isUndefined())
    return in.heap.generator([]() -> Item { return std::nullopt; });
  LLAMAC_ASSIGN_OR_RETURN(
      const Value view,
      in.heap.object(Kind::DictView,
                     DictView{DictView::Part::Items, &input.dict()}));
  LLAMAC_ASSIGN_OR_RETURN(NextItem next, iterate(in.heap, view));
  return in.heap.generator(std::move(next));
}

static ValueOr reverse(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(bind("reverse", args, {}).status());
  if (input.isString())
    return in.slice(input, Value::none(), Value::none(), Value::integer(-1));
  LLAMAC_ASSIGN_OR_RETURN(std::vector<Value> all, items(in.heap, input));
  std::reverse(all.begin(), all.end());
  LLAMAC_ASSIGN_OR_RETURN(const Value reversed, in.heap.list(std::move(all)));
  if (!lengthOf(input))
    return reversed;
  LLAMAC_ASSIGN_OR_RETURN(NextItem next, iterate(in.heap, reversed));
  return in.heap.generator(std::move(next));
}

static ValueOr sort(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(
      const auto bound,
      bind("sort", args, {"reverse", "case_sensitive", "attribute"}));
  std::vector<Path> paths;
  if (bound[2].isString()) {
    for (const absl::string_view part : absl::StrSplit(bound[2].text(), ',')) {
      LLAMAC_ASSIGN_OR_RETURN(const Value text,
                              in.heap.string(std::string(part)));
      LLAMAC_ASSIGN_OR_RETURN(Path path, Path::parse(in, text));
      paths.push_back(std::move(path));
    }
  } else {
    LLAMAC_ASSIGN_OR_RETURN(Path path, Path::parse(in, bound[2]));
    paths.push_back(std::move(path));
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<Value> all, items(in.heap, input));
  std::vector<Value> keys;
  for (const Value &value : all) {
    std::vector<Value> parts;
    for (const Path &path : paths) {
      LLAMAC_ASSIGN_OR_RETURN(const Value part,
                              path.ofAnyCase(in, value, isSet(bound[1])));
      parts.push_back(part);
    }
    LLAMAC_ASSIGN_OR_RETURN(const Value key, in.heap.list(std::move(parts)));
    keys.push_back(key);
  }
  LLAMAC_ASSIGN_OR_RETURN(std::vector<Value> sorted,
                          sortBy(in.heap, keys, all, isSet(bound[0])));
  return in.heap.list(std::move(sorted));
}

static ValueOr dictSort(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(
      const auto bound,
      bind("dictsort", args, {"case_sensitive", "by", "reverse"}));
  if (input.isUndefined())
    return undefinedError(input);
  if (!input.is(Kind::Dict))
    return templateError(
        absl::StrCat("dictsort needs a dict, got ", typeName(input)));
  const absl::string_view by = bound[1].is(Kind::Missing) ? "key"
                               : bound[1].isString()      ? bound[1].text()
                                                          : "";
  if (by != "key" && by != "value")
    return templateError("dictsort sorts by key or value");
  std::vector<Value> keys, pairs;
  for (const auto &[key, value] : input.dict().entries) {
    LLAMAC_ASSIGN_OR_RETURN(
        const Value sortKey,
        Path().ofAnyCase(in, by == "key" ? key : value, isSet(bound[0])));
    LLAMAC_ASSIGN_OR_RETURN(const Value pair, in.heap.tuple({key, value}));
    keys.push_back(sortKey);
    pairs.push_back(pair);
  }
  LLAMAC_ASSIGN_OR_RETURN(std::vector<Value> sorted,
                          sortBy(in.heap, keys, pairs, isSet(bound[2])));
  return in.heap.list(std::move(sorted));
}

static ValueOr unique(Interpreter &in, Value input, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(
      const auto bound, bind("unique", args, {"case_sensitive", "attribute"}));
  LLAMAC_ASSIGN_OR_RETURN(const Path path, Path::parse(in, bound[1]));
  LLAMAC_ASSIGN_OR_RETURN(const NextItem next, iterate(in.heap, input));
  LLAMAC_ASSIGN_OR_RETURN(const Value seen, in.heap.dict());
  return in.heap.generator(
      [&in, path, next, seen, caseSensitive = isSet(bound[0])]() -> Item {
        while (true) {
          LLAMAC_RETURN_IF_ERROR(in.heap.spend(1));
          LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item, next());
          if (!item)
            return item;
          LLAMAC_ASSIGN_OR_RETURN(const Value key,
                                  path.ofAnyCase(in, *item, caseSensitive));
          const size_t before = seen.dict().entries.size();
          LLAMAC_RETURN_IF_ERROR(in.heap.set(seen, key, Value::none()));
          if (seen.dict().entries.size() > before)
            return item;
        }
      });
}

//===----------------------------------------------------------------------===//
// Map and select
//===----------------------------------------------------------------------===//

static ValueOr map(Interpreter &in, Value input, CallArguments &args) {
  if (!isTrue(input))
    return in.heap.generator([]() -> Item { return std::nullopt; });
  LLAMAC_ASSIGN_OR_RETURN(const NextItem next, iterate(in.heap, input));
  const bool byAttribute =
      args.positional.empty() &&
      std::any_of(args.named.begin(), args.named.end(),
                  [](const auto &named) { return named.first == "attribute"; });
  if (byAttribute) {
    LLAMAC_ASSIGN_OR_RETURN(const auto bound,
                            bind("map", args, {"attribute", "default"}));
    LLAMAC_ASSIGN_OR_RETURN(const Path path, Path::parse(in, bound[0]));
    return in.heap.generator([&in, next, path, otherwise = bound[1]]() -> Item {
      LLAMAC_RETURN_IF_ERROR(in.heap.spend(1));
      LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item, next());
      if (!item)
        return item;
      LLAMAC_ASSIGN_OR_RETURN(const Value found, path.of(in, *item, otherwise));
      return found;
    });
  }
  if (args.positional.empty())
    return templateError("map needs a filter or an attribute");
  const Value name = args.positional[0];
  CallArguments rest = args;
  rest.positional.erase(rest.positional.begin());
  return in.heap.generator([&in, next, name, rest]() -> Item {
    LLAMAC_RETURN_IF_ERROR(in.heap.spend(1));
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item, next());
    if (!item)
      return item;
    CallArguments own = rest;
    LLAMAC_ASSIGN_OR_RETURN(const Value result,
                            in.applyFilter(name, *item, own));
    return result;
  });
}

// The items whose value, or attribute, passes a test; with `reject`, the
// others.
template <bool byAttribute, bool reject>
static ValueOr select(Interpreter &in, Value input, CallArguments &args) {
  if (!isTrue(input))
    return in.heap.generator([]() -> Item { return std::nullopt; });
  LLAMAC_ASSIGN_OR_RETURN(const NextItem next, iterate(in.heap, input));
  Path path;
  CallArguments rest = args;
  if (byAttribute) {
    if (rest.positional.empty())
      return templateError("selectattr needs an attribute");
    LLAMAC_ASSIGN_OR_RETURN(path, Path::parse(in, rest.positional[0]));
    rest.positional.erase(rest.positional.begin());
  }
  std::optional<Value> test;
  if (!rest.positional.empty()) {
    test = rest.positional[0];
    rest.positional.erase(rest.positional.begin());
  }
  return in.heap.generator([&in, next, path, test, rest]() -> Item {
    while (true) {
      LLAMAC_RETURN_IF_ERROR(in.heap.spend(1));
      LLAMAC_ASSIGN_OR_RETURN(const std::optional<Value> item, next());
      if (!item)
        return item;
      LLAMAC_ASSIGN_OR_RETURN(const Value value, path.of(in, *item));
      bool holds = isTrue(value);
      if (test) {
        CallArguments own = rest;
        LLAMAC_ASSIGN_OR_RETURN(holds, in.applyTest(*test, value, own));
      }
      if (holds != reject)
        return item;
    }
  });
}

static constexpr Function table[] = {
    {"attr", attribute},
    {"count", length},
    {"d", defaultValue},
    {"default", defaultValue},
    {"dictsort", dictSort},
    {"first", first},
    {"items", itemsOf},
    {"join", join},
    {"last", last},
    {"length", length},
    {"list", list},
    {"map", map},
    {"max", maximum},
    {"min", minimum},
    {"reject", select<false, true>},
    {"rejectattr", select<true, true>},
    {"reverse", reverse},
    {"select", select<false, false>},
    {"selectattr", select<true, false>},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

} // namespace sequence_filter

absl::Span<const Function> sequenceFilters() { return sequence_filter::table; }

const Function *findIn(absl::Span<const Function> table,
                       absl::string_view name) {
  for (const Function &function : table)
    if (name == function.name)
      return &function;
  return nullptr;
}

const Function *findFilter(absl::string_view name) {
  const Function *const found = findIn(textFilters(), name);
  return found ? found : findIn(sequenceFilters(), name);
}

} // namespace llamac::chat
