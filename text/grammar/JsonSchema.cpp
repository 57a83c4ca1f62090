//===- JsonSchema.cpp - Grammars of JSON schemas --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rule is made for a set of schemas of which a value must fulfil all: allOf,
// a $ref and what stands beside it, properties and the patterns that match
// their names are such sets, so that one mechanism has every combination. A
// choice (anyOf, oneOf) is taken out of the set, and each of its schemas put
// in. What remains are keywords, which are combined by type: numbers as bounds,
// strings as automata, arrays and objects item by item. Values that are listed
// (const, enum) are checked one by one instead.
//
// The alternatives of oneOf must exclude each other: a set with two of them has
// to be empty. For this what is empty is never guessed: a set whose rule is
// being made counts as one that has values.
//
//===----------------------------------------------------------------------===//

#include "text/grammar/JsonSchema.h"

#include "runtime/base/Status.h"
#include "text/grammar/GrammarRules.h"
#include "text/grammar/JsonNumbers.h"
#include "text/grammar/SchemaDocument.h"
#include "text/grammar/SchemaFormats.h"
#include "text/grammar/StringRules.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace llamac {

namespace {

using Items = GrammarRules::Sequence;
using Sequences = std::vector<Items>;
using Schemas = std::vector<const OrderedJson *>;

/// No rule: no value is valid.
constexpr int none = -1;

class SchemaTranslator {
public:
  SchemaTranslator(SchemaDocument &document, GrammarWork &work)
      : document(document), work(work), rules(work), strings(rules) {}

  absl::StatusOr<std::string> translate();

private:
  absl::StatusOr<int> compile(const SchemaParts &parts);
  absl::StatusOr<int> compileSet(const SchemaParts &parts);
  absl::StatusOr<int> compileValues(const SchemaParts &parts,
                                    const OrderedJson &values);
  absl::StatusOr<int> compileChoice(const SchemaParts &parts, size_t choice);
  absl::StatusOr<int> compileTypes(const Schemas &schemas, unsigned types);
  absl::StatusOr<int> compileType(const Schemas &schemas, SchemaType type);
  absl::StatusOr<int> compileNumber(const Schemas &schemas, bool isInteger);
  absl::StatusOr<int> compileString(const Schemas &schemas);
  absl::StatusOr<int> compileArray(const Schemas &schemas);
  absl::StatusOr<int> compileObject(const Schemas &schemas);
  absl::Status addNamed(const Schemas &schemas, struct ObjectShape &shape);
  absl::Status addOthers(const Schemas &schemas, struct ObjectShape &shape);
  absl::StatusOr<StringSet> namesOf(const Schemas &schemas);
  absl::StatusOr<int> compileMembers(const struct ObjectShape &shape,
                                     const OrderedJson &schema);

  int anyValue();
  Items literal(const OrderedJson &value);

  SchemaDocument &document;
  GrammarWork &work;
  GrammarRules rules;
  StringRules strings;
  std::map<std::pair<SchemaParts, bool>, int> known;
  int any = none;
  int depth = 0;
  bool isProbe = false; ///< Asks whether there are values at all.
};

/// The members that an object may have.
struct ObjectShape {
  struct Named {
    std::string name;
    int value;
    bool isRequired;
  };
  std::vector<Named> named = {};
  /// Names of others, and what follows: alternatives.
  Sequences others = {};
  int64_t least = 0, most = -1;
  bool isImpossible = false;
};

} // namespace

static_assert(maxJsonSpace == 16);
static constexpr const char *space = "[ \\n\\r\\t]{0,16}";

static void append(Items &to, Items more) {
  for (GrammarRules::Item &item : more)
    to.push_back(std::move(item));
}

static Items comma() { return {space, "\",\"", space}; }
static Items colon() { return {space, "\":\"", space}; }

static std::string dumped(const OrderedJson &value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false,
                    OrderedJson::error_handler_t::replace);
}

//===----------------------------------------------------------------------===//
// Sets of schemas
//===----------------------------------------------------------------------===//

absl::StatusOr<int> SchemaTranslator::compile(const SchemaParts &parts) {
  bool isFalse = false;
  LLAMAC_ASSIGN_OR_RETURN(const SchemaParts flat,
                          document.flatten(parts, isFalse));
  if (isFalse)
    return none;
  const OrderedJson &at = flat.empty() ? document.root() : *flat[0].schema;
  std::pair<SchemaParts, bool> key{flat, isProbe};
  std::sort(key.first.begin(), key.first.end());
  if (const auto found = known.find(key); found != known.end())
    return found->second;
  constexpr int maxDepth = 120;
  constexpr int64_t maxRules = 60000;
  if (depth > maxDepth || rules.size() > maxRules)
    return document.errorAt(at, "the schema has too many parts, or "
                                "combinations of them");
  LLAMAC_RETURN_IF_ERROR(rules.check());
  LLAMAC_RETURN_IF_ERROR(
      work.take(static_cast<int64_t>(key.first.size() * sizeof(SchemaPart))));
  const int rule = rules.add();
  known[key] = rule;
  ++depth;
  LLAMAC_ASSIGN_OR_RETURN(const int content, compileSet(flat));
  --depth;
  if (content == none)
    return known[key] = none;
  rules.define(rule, {{content}});
  return rule;
}

absl::StatusOr<int> SchemaTranslator::compileSet(const SchemaParts &parts) {
  Schemas schemas;
  for (const SchemaPart &part : parts)
    if (part.kind == SchemaPart::Own) {
      if (const OrderedJson *only = member(*part.schema, "const"))
        return compileValues(parts, OrderedJson::array({*only}));
      if (const OrderedJson *some = member(*part.schema, "enum"))
        return compileValues(parts, *some);
      schemas.push_back(part.schema);
    }
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].kind != SchemaPart::Own)
      return compileChoice(parts, i);
  unsigned types = AnyType, implied = 0;
  bool isTyped = false;
  for (const OrderedJson *schema : schemas) {
    types &= typesOf(*schema);
    isTyped |= schema->contains("type");
    for (auto one = schema->begin(); one != schema->end(); ++one)
      implied |= typeOfKeyword(one.key());
  }
  if (!isTyped && implied) {
    LLAMAC_ASSIGN_OR_RETURN(const int rule, compileTypes(schemas, implied));
    if (rule != none)
      return rule;
    types &= ~implied;
  }
  return compileTypes(schemas, types);
}

absl::StatusOr<int> SchemaTranslator::compileValues(const SchemaParts &parts,
                                                    const OrderedJson &values) {
  Sequences alternatives;
  for (const OrderedJson &value : values) {
    LLAMAC_ASSIGN_OR_RETURN(const bool isHeld, document.holds(value, parts));
    if (isHeld)
      alternatives.push_back(literal(value));
  }
  return alternatives.empty() ? none : rules.add(std::move(alternatives));
}

absl::StatusOr<int> SchemaTranslator::compileChoice(const SchemaParts &parts,
                                                    size_t choice) {
  const SchemaPart chosen = parts[choice];
  SchemaParts rest = parts;
  rest.erase(rest.begin() + static_cast<ptrdiff_t>(choice));
  const bool isOne = chosen.kind == SchemaPart::OneOf;
  const OrderedJson &schemas =
      *member(*chosen.schema, isOne ? "oneOf" : "anyOf");
  const auto with = [&](std::initializer_list<size_t> which) {
    SchemaParts all = rest;
    for (const size_t i : which)
      all.push_back({&schemas[i]});
    return compile(all);
  };
  Sequences alternatives;
  std::vector<size_t> possible;
  for (size_t i = 0; i < schemas.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(const int rule, with({i}));
    if (rule == none)
      continue;
    alternatives.push_back({rule});
    possible.push_back(i);
  }
  if (isOne) {
    const bool wasProbe = std::exchange(isProbe, true);
    for (size_t i = 0; i < possible.size(); ++i)
      for (size_t j = i + 1; j < possible.size(); ++j) {
        LLAMAC_ASSIGN_OR_RETURN(const int both,
                                with({possible[i], possible[j]}));
        if (both != none)
          return document.errorAt(
              *chosen.schema,
              absl::StrCat("oneOf: schemas that exclude each other are "
                           "supported; a value may fulfil those at ",
                           possible[i], " and ", possible[j]));
      }
    isProbe = wasProbe;
  }
  return alternatives.empty() ? none : rules.add(std::move(alternatives));
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// Whether no keyword of `schemas` speaks of values of `types`.
static bool areFree(const Schemas &schemas, unsigned types) {
  for (const OrderedJson *schema : schemas)
    for (auto one = schema->begin(); one != schema->end(); ++one)
      if (typeOfKeyword(one.key()) & types)
        return false;
  return true;
}

absl::StatusOr<int> SchemaTranslator::compileTypes(const Schemas &schemas,
                                                   unsigned types) {
  if (types == AnyType && areFree(schemas, AnyType))
    return anyValue();
  Sequences alternatives;
  for (const SchemaType type :
       {NullType, BooleanType, IntegerType, FractionType, StringType, ArrayType,
        ObjectType}) {
    if (!(types & type))
      continue;
    // Numbers are made at once.
    if (type == IntegerType && types & FractionType)
      continue;
    LLAMAC_ASSIGN_OR_RETURN(const int rule, compileType(schemas, type));
    if (rule != none)
      alternatives.push_back({rule});
  }
  return alternatives.empty() ? none : rules.add(std::move(alternatives));
}

absl::StatusOr<int> SchemaTranslator::compileType(const Schemas &schemas,
                                                  SchemaType type) {
  switch (type) {
  case NullType:
    return rules.add({{"\"null\""}});
  case BooleanType:
    return rules.add({{"\"true\""}, {"\"false\""}});
  case IntegerType:
  case FractionType:
    return compileNumber(schemas, type == IntegerType);
  case StringType:
    return compileString(schemas);
  case ArrayType:
    return compileArray(schemas);
  default:
    return compileObject(schemas);
  }
}

absl::StatusOr<int> SchemaTranslator::compileNumber(const Schemas &schemas,
                                                    bool isInteger) {
  NumberBounds bounds;
  bounds.isInteger = isInteger;
  const OrderedJson *last = &document.root();
  const auto bound = [&](const OrderedJson &schema,
                         absl::string_view name) -> std::optional<Decimal> {
    const OrderedJson *value = member(schema, name);
    if (!value)
      return std::nullopt;
    last = &schema;
    return Decimal::of(*value);
  };
  for (const OrderedJson *schema : schemas) {
    if (auto value = bound(*schema, "minimum"))
      bounds.addLow({*value, false});
    if (auto value = bound(*schema, "exclusiveMinimum"))
      bounds.addLow({*value, true});
    if (auto value = bound(*schema, "maximum"))
      bounds.addHigh({*value, false});
    if (auto value = bound(*schema, "exclusiveMaximum"))
      bounds.addHigh({*value, true});
    if (const OrderedJson *divisor = member(*schema, "multipleOf")) {
      last = schema;
      bounds.multipleOf = std::lcm(bounds.multipleOf, divisor->get<int64_t>());
      constexpr int64_t most = 500;
      if (bounds.multipleOf > most)
        return document.errorAt(*schema,
                                absl::StrCat("multipleOf: expected a common "
                                             "multiple of at most ",
                                             most));
      // 1.0 is a multiple of 1 and no fraction.
      bounds.isInteger = true;
    }
  }
  absl::StatusOr<int> rule = addNumbers(rules, bounds);
  if (!rule.ok())
    return document.errorAt(*last, rule.status().message());
  return rule;
}

absl::StatusOr<int> SchemaTranslator::compileString(const Schemas &schemas) {
  int64_t least = 0, most = -1;
  std::set<std::string> patterns, formats;
  for (const OrderedJson *schema : schemas) {
    if (const OrderedJson *count = member(*schema, "minLength"))
      least = std::max(least, count->get<int64_t>());
    if (const OrderedJson *count = member(*schema, "maxLength"))
      most = most < 0 ? count->get<int64_t>()
                      : std::min(most, count->get<int64_t>());
    if (const OrderedJson *pattern = member(*schema, "pattern"))
      patterns.insert(pattern->get<std::string>());
    if (const OrderedJson *format = member(*schema, "format"))
      if (formatPattern(format->get<std::string>()))
        formats.insert(format->get<std::string>());
  }
  if (most >= 0 && least > most)
    return none;
  if (patterns.empty() && (formats.empty() || isProbe))
    return strings.ofLength(least, most);
  if (patterns.empty() && formats.size() == 1 && least == 0 && most < 0) {
    LLAMAC_ASSIGN_OR_RETURN(const Regex regex,
                            parseRegex(formatPattern(*formats.begin())));
    LLAMAC_ASSIGN_OR_RETURN(const std::string text, regexExpression(regex));
    return rules.add({{"\"\\\"\"", text, "\"\\\"\""}});
  }
  LLAMAC_ASSIGN_OR_RETURN(const StringSet set,
                          document.strings(schemas, /*skipsFormats=*/isProbe));
  return set.isEmpty() ? none : strings.of(set);
}

absl::StatusOr<int> SchemaTranslator::compileArray(const Schemas &schemas) {
  int64_t least = 0, most = -1;
  size_t prefix = 0;
  bool isOpen = true, isLimited = false;
  for (const OrderedJson *schema : schemas) {
    if (const OrderedJson *count = member(*schema, "minItems"))
      least = std::max(least, count->get<int64_t>());
    if (const OrderedJson *count = member(*schema, "maxItems"))
      most = most < 0 ? count->get<int64_t>()
                      : std::min(most, count->get<int64_t>());
    if (const OrderedJson *items = member(*schema, "prefixItems")) {
      prefix = std::max(prefix, items->size());
      isOpen &= schema->contains("items");
      isLimited = true;
    }
  }
  // Where nothing is said of others there are as few as can be.
  if (isLimited && !isOpen) {
    const auto few = std::max<int64_t>(static_cast<int64_t>(prefix), least);
    most = most < 0 ? few : std::min(most, few);
  }
  if (most >= 0 && least > most)
    return none;
  std::vector<int> values; // Rules of the prefix, and of what follows it.
  for (size_t i = 0; i <= prefix; ++i) {
    if (most >= 0 && static_cast<int64_t>(i) >= most)
      break;
    SchemaParts parts;
    for (const OrderedJson *schema : schemas) {
      const OrderedJson *first = member(*schema, "prefixItems");
      const OrderedJson *item =
          first && i < first->size() ? &(*first)[i] : member(*schema, "items");
      if (item)
        parts.push_back({item});
    }
    LLAMAC_ASSIGN_OR_RETURN(const int value, compile(parts));
    if (value == none) {
      most = static_cast<int64_t>(i);
      break;
    }
    values.push_back(value);
  }
  if (most >= 0 && least > most)
    return none;
  const auto count = static_cast<int64_t>(values.size());
  // The text that follows the first `i` items, from the last one on.
  const Items end = {space, "\"]\""};
  int next = none;
  for (int64_t i = std::min<int64_t>(count, static_cast<int64_t>(prefix) + 1);
       i >= 0; --i) {
    Sequences alternatives;
    if (i >= 1 && i == static_cast<int64_t>(prefix) + 1) {
      // Any number of the last kind.
      Items item = comma();
      item.push_back(values.back());
      const int64_t low = std::max<int64_t>(0, least - i);
      const int64_t high = most < 0 ? -1 : most - i;
      Items tail;
      if (high != 0)
        tail.push_back({rules.add({item}), low, high});
      append(tail, end);
      alternatives.push_back(tail);
    } else {
      if (i >= least)
        alternatives.push_back(end);
      if (i < count) {
        Items item = i > 0 ? comma() : Items{space};
        item.push_back(values[i]);
        item.push_back(next);
        alternatives.push_back(item);
      }
    }
    next = rules.add(std::move(alternatives));
  }
  return rules.add({{"\"[\"", next}});
}

//===----------------------------------------------------------------------===//
// Objects
//===----------------------------------------------------------------------===//

absl::Status SchemaTranslator::addNamed(const Schemas &schemas,
                                        ObjectShape &shape) {
  std::vector<std::string> names;
  std::set<std::string> isKnown, required;
  const auto add = [&](const std::string &name) {
    if (isKnown.insert(name).second)
      names.push_back(name);
  };
  for (const OrderedJson *schema : schemas)
    if (const OrderedJson *named = member(*schema, "properties"))
      for (auto one = named->begin(); one != named->end(); ++one)
        add(one.key());
  for (const OrderedJson *schema : schemas)
    if (const OrderedJson *some = member(*schema, "required"))
      for (const OrderedJson &name : *some) {
        add(name.get<std::string>());
        required.insert(name.get<std::string>());
      }
  for (const std::string &name : names) {
    SchemaParts parts;
    bool isAllowed = true;
    for (const OrderedJson *schema : schemas) {
      LLAMAC_ASSIGN_OR_RETURN(const SchemaParts own,
                              document.valueOf(*schema, name));
      parts.insert(parts.end(), own.begin(), own.end());
      if (const OrderedJson *allowed = member(*schema, "propertyNames")) {
        LLAMAC_ASSIGN_OR_RETURN(const bool isHeld,
                                document.holds(name, {{allowed}}));
        isAllowed &= isHeld;
      }
    }
    int value = none;
    if (isAllowed) {
      LLAMAC_ASSIGN_OR_RETURN(value, compile(parts));
    }
    shape.named.push_back({name, value, required.contains(name)});
    shape.isImpossible |= value == none && required.contains(name);
  }
  return absl::OkStatus();
}

/// The names that propertyNames of `schemas` allow.
absl::StatusOr<StringSet> SchemaTranslator::namesOf(const Schemas &schemas) {
  SchemaParts parts;
  for (const OrderedJson *schema : schemas)
    if (const OrderedJson *names = member(*schema, "propertyNames"))
      parts.push_back({names});
  bool isFalse = false;
  LLAMAC_ASSIGN_OR_RETURN(const SchemaParts flat,
                          document.flatten(parts, isFalse));
  if (isFalse)
    return StringSet::of({});
  Schemas owns;
  for (const SchemaPart &part : flat) {
    if (part.kind != SchemaPart::Own)
      return document.errorAt(*part.schema,
                              "anyOf and oneOf are not supported in "
                              "propertyNames");
    owns.push_back(part.schema);
    if (!(typesOf(*part.schema) & StringType))
      return StringSet::of({});
  }
  for (const OrderedJson *own : owns) {
    OrderedJson listed;
    if (const OrderedJson *only = member(*own, "const"))
      listed = OrderedJson::array({*only});
    else if (const OrderedJson *some = member(*own, "enum"))
      listed = *some;
    else
      continue;
    std::vector<std::string> names;
    for (const OrderedJson &name : listed) {
      LLAMAC_ASSIGN_OR_RETURN(const bool isHeld, document.holds(name, flat));
      if (isHeld && name.is_string())
        names.push_back(name.get<std::string>());
    }
    return StringSet::of(names);
  }
  return document.strings(owns, /*skipsFormats=*/isProbe);
}

/// Members whose names the schemas do not list: for each set of patterns, those
/// that match these and no others.
absl::Status SchemaTranslator::addOthers(const Schemas &schemas,
                                         ObjectShape &shape) {
  std::vector<std::pair<std::string, const OrderedJson *>> patterns;
  bool isNamed = false, isAllowed = false, hasNames = false;
  const OrderedJson *at = &document.root();
  for (const OrderedJson *schema : schemas) {
    isNamed |= schema->contains("properties");
    if (const OrderedJson *others = member(*schema, "additionalProperties"))
      isAllowed |= *others != false;
    hasNames |= schema->contains("propertyNames");
    if (const OrderedJson *some = member(*schema, "patternProperties"))
      for (auto one = some->begin(); one != some->end(); ++one)
        if (std::none_of(patterns.begin(), patterns.end(), [&](auto &known) {
              return known.first == one.key();
            })) {
          patterns.emplace_back(one.key(), schema);
          at = schema;
        }
  }
  constexpr size_t most = 5;
  if (patterns.size() > most)
    return document.errorAt(*at, absl::StrCat("patternProperties: expected at "
                                              "most ",
                                              most, " patterns, got ",
                                              patterns.size()));
  const auto countNamed = std::count_if(
      shape.named.begin(), shape.named.end(),
      [](const ObjectShape::Named &one) { return one.value != none; });
  isAllowed |= (!isNamed && patterns.empty()) || countNamed < shape.least;
  if (patterns.empty() && !isAllowed)
    return absl::OkStatus();
  // A plain string is the fastest name.
  const bool isFree = patterns.empty() && !hasNames && shape.named.empty();
  StringSet names = StringSet::all();
  if (!isFree) {
    names = StringSet::over(nameChars());
    std::vector<std::string> taken;
    taken.reserve(shape.named.size());
    for (const ObjectShape::Named &one : shape.named)
      taken.push_back(one.name);
    LLAMAC_ASSIGN_OR_RETURN(const StringSet allowed, namesOf(schemas));
    absl::StatusOr<StringSet> rest = names.with(allowed, work);
    if (rest.ok())
      rest = rest->with(StringSet::of(taken).complement(), work);
    if (!rest.ok())
      return document.errorAt(*at, rest.status().message());
    names = *std::move(rest);
  }
  for (unsigned mask = 0; mask < 1u << patterns.size(); ++mask) {
    if (mask == 0 && !isAllowed)
      continue;
    absl::StatusOr<StringSet> matching = names;
    for (size_t i = 0; i < patterns.size() && matching.ok(); ++i) {
      LLAMAC_ASSIGN_OR_RETURN(
          const StringSet *const set,
          document.pattern(*patterns[i].second, patterns[i].first));
      matching = matching->with(mask >> i & 1 ? *set : set->complement(), work);
    }
    if (!matching.ok())
      return document.errorAt(*at, matching.status().message());
    if (matching->isEmpty())
      continue;
    SchemaParts parts;
    for (const OrderedJson *schema : schemas) {
      bool isMatched = false;
      if (const OrderedJson *some = member(*schema, "patternProperties"))
        for (size_t i = 0; i < patterns.size(); ++i)
          if (mask >> i & 1)
            if (const OrderedJson *one = member(*some, patterns[i].first)) {
              parts.push_back({one});
              isMatched = true;
            }
      if (const OrderedJson *others = member(*schema, "additionalProperties");
          others && !isMatched)
        parts.push_back({others});
    }
    LLAMAC_ASSIGN_OR_RETURN(const int value, compile(parts));
    if (value == none)
      continue;
    Items pair = {isFree ? strings.ofLength(0, -1) : strings.of(*matching)};
    append(pair, colon());
    pair.push_back(value);
    shape.others.push_back(std::move(pair));
  }
  return absl::OkStatus();
}

/// The rule for what follows "{". There are rules for what comes after the
/// first `i` properties that are named, of which `count` are there, from the
/// last one on. Other members may have the same name, so that they are one of
/// `least`, and each one of `most`.
absl::StatusOr<int>
SchemaTranslator::compileMembers(const ObjectShape &shape,
                                 const OrderedJson &schema) {
  const auto size = static_cast<int64_t>(shape.named.size());
  const bool isLimited =
      shape.most >= 0 && (shape.most < size || !shape.others.empty());
  const int64_t counted =
      std::max<int64_t>({1, shape.least, isLimited ? shape.most : 0});
  constexpr int64_t maxStates = 20000;
  if (counted * (size + 1) > maxStates)
    return document.errorAt(schema, "minProperties and maxProperties are too "
                                    "large for so many properties");
  const Items end = {space, "\"}\""};
  // Rules by the number of members, up to `counted`: the end, or others.
  const int other = shape.others.empty() ? none : rules.add(shape.others);
  const int more = other == none ? none : rules.add({[&] {
    Items sequence = comma();
    sequence.push_back(other);
    return sequence;
  }()});
  std::vector<int> next(counted + 1, none);
  for (int64_t count = 0; count <= counted; ++count) {
    Sequences alternatives;
    if (count >= shape.least)
      alternatives.push_back(end);
    const int64_t left = isLimited ? shape.most - count : -1;
    if (other != none && count + 1 >= shape.least && left != 0) {
      Items sequence = count > 0 ? comma() : Items{space};
      sequence.push_back(other);
      if (left != 1)
        sequence.push_back({more, 0, left < 0 ? -1 : left - 1});
      append(sequence, end);
      alternatives.push_back(sequence);
    }
    if (!alternatives.empty())
      next[count] = rules.add(std::move(alternatives));
  }
  for (int64_t i = size - 1; i >= 0; --i) {
    const ObjectShape::Named &one = shape.named[i];
    if (one.value == none)
      continue;
    std::vector<int> here(counted + 1, none);
    for (int64_t count = 0; count <= counted; ++count) {
      Sequences alternatives;
      const bool isFull = isLimited && count == shape.most;
      const int after = next[std::min(count + 1, counted)];
      if (!isFull && after != none) {
        Items sequence = count > 0 ? comma() : Items{space};
        sequence.push_back(ebnfLiteral(dumped(one.name)));
        append(sequence, colon());
        sequence.push_back(one.value);
        sequence.push_back(after);
        alternatives.push_back(sequence);
      }
      if (!one.isRequired && next[count] != none)
        alternatives.push_back({next[count]});
      if (!alternatives.empty())
        here[count] = rules.add(std::move(alternatives));
    }
    next = std::move(here);
  }
  return next[0];
}

absl::StatusOr<int> SchemaTranslator::compileObject(const Schemas &schemas) {
  ObjectShape shape;
  const OrderedJson *at = &document.root();
  for (const OrderedJson *schema : schemas) {
    if (const OrderedJson *count = member(*schema, "minProperties")) {
      shape.least = std::max(shape.least, count->get<int64_t>());
      at = schema;
    }
    if (const OrderedJson *count = member(*schema, "maxProperties")) {
      shape.most = shape.most < 0 ? count->get<int64_t>()
                                  : std::min(shape.most, count->get<int64_t>());
      at = schema;
    }
  }
  LLAMAC_RETURN_IF_ERROR(addNamed(schemas, shape));
  if (shape.isImpossible)
    return none;
  LLAMAC_RETURN_IF_ERROR(addOthers(schemas, shape));
  if (shape.most >= 0 && shape.least > shape.most)
    return none;
  LLAMAC_ASSIGN_OR_RETURN(const int members, compileMembers(shape, *at));
  if (members == none) {
    // Others of different names would do, which rules do not tell apart.
    if (!shape.others.empty() && shape.least > 1)
      return document.errorAt(
          *at, absl::StrCat("minProperties is supported up to one more than "
                            "the properties that are named, got ",
                            shape.least));
    return none;
  }
  return rules.add({{"\"{\"", members}});
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

int SchemaTranslator::anyValue() {
  if (any != none)
    return any;
  any = rules.add();
  const int string = strings.ofLength(0, -1);
  Items more = comma();
  more.push_back(any);
  const int item = rules.add({more});
  Items array = {"\"[\"", space, any, {item, 0, -1}, space, "\"]\""};
  const int pair = rules.add({[&] {
    Items sequence = {string};
    append(sequence, colon());
    sequence.push_back(any);
    return sequence;
  }()});
  Items another = comma();
  another.push_back(pair);
  Items object = {"\"{\"", space,  pair, {rules.add({another}), 0, -1},
                  space,   "\"}\""};
  const int arrays = rules.add({array, {"\"[\"", space, "\"]\""}});
  const int objects = rules.add({object, {"\"{\"", space, "\"}\""}});
  const int number = *addNumbers(rules, {});
  rules.define(any, {{number},
                     {string},
                     {"(\"true\" | \"false\")"},
                     {"\"null\""},
                     {arrays},
                     {objects}});
  return any;
}

Items SchemaTranslator::literal(const OrderedJson &value) {
  if (!value.is_structured())
    return {ebnfLiteral(dumped(value))};
  Items sequence = {value.is_array() ? "\"[\"" : "\"{\"", space};
  bool isFirst = true;
  for (auto one = value.begin(); one != value.end(); ++one) {
    if (!isFirst)
      append(sequence, comma());
    isFirst = false;
    if (value.is_object()) {
      sequence.push_back(ebnfLiteral(dumped(one.key())));
      append(sequence, colon());
    }
    append(sequence, literal(one.value()));
  }
  if (!value.empty())
    sequence.push_back(space);
  sequence.push_back(value.is_array() ? "\"]\"" : "\"}\"");
  return sequence;
}

absl::StatusOr<std::string> SchemaTranslator::translate() {
  LLAMAC_ASSIGN_OR_RETURN(const int root, compile({{&document.root()}}));
  std::string text;
  if (root != none) {
    LLAMAC_ASSIGN_OR_RETURN(text, rules.print(root));
  }
  if (text.empty())
    return usageError("#: no value is valid by it");
  return text;
}

absl::StatusOr<std::string> jsonSchemaGrammar(absl::string_view text,
                                              GrammarWork &work) {
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<SchemaDocument> document,
                          SchemaDocument::parse(text, work));
  return SchemaTranslator(*document, work).translate();
}

} // namespace llamac
