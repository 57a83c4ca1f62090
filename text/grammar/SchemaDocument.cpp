//===- SchemaDocument.cpp - What a JSON schema says -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/grammar/SchemaDocument.h"

#include "runtime/base/Status.h"
#include "runtime/io/JsonReader.h"
#include "text/grammar/JsonNumbers.h"
#include "text/grammar/SchemaFormats.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace llamac {

//===----------------------------------------------------------------------===//
// Keywords
//===----------------------------------------------------------------------===//

namespace {

/// The form of a keyword's value.
enum class Shape {
  Schema,
  Schemas,      ///< A list, not empty.
  NamedSchemas, ///< An object of them.
  Patterns,     ///< An object of them, by regexes.
  Types,
  Values,
  Anything,
  Count,
  Number,
  Divisor,
  Text,
  Pattern,
  Format,
  Names,
  Refused,
};

struct Keyword {
  absl::string_view name;
  Shape shape;
  unsigned type = 0; ///< The type of the values that it speaks of; 0: all.
};

/// All that restrict values or hold schemas; others are annotations.
constexpr unsigned numbers = IntegerType | FractionType;
constexpr Keyword keywords[] = {
    {"$defs", Shape::NamedSchemas},
    {"$dynamicRef", Shape::Refused},
    {"$id", Shape::Text},
    {"$recursiveRef", Shape::Refused},
    {"$ref", Shape::Text},
    {"additionalItems", Shape::Refused},
    {"additionalProperties", Shape::Schema, ObjectType},
    {"allOf", Shape::Schemas},
    {"anyOf", Shape::Schemas},
    {"const", Shape::Anything},
    {"contains", Shape::Refused},
    {"definitions", Shape::NamedSchemas},
    {"dependencies", Shape::Refused},
    {"dependentRequired", Shape::Refused},
    {"dependentSchemas", Shape::Refused},
    {"else", Shape::Refused},
    {"enum", Shape::Values},
    {"exclusiveMaximum", Shape::Number, numbers},
    {"exclusiveMinimum", Shape::Number, numbers},
    {"format", Shape::Format, StringType},
    {"if", Shape::Refused},
    {"items", Shape::Schema, ArrayType},
    {"maxContains", Shape::Refused},
    {"maxItems", Shape::Count, ArrayType},
    {"maxLength", Shape::Count, StringType},
    {"maxProperties", Shape::Count, ObjectType},
    {"maximum", Shape::Number, numbers},
    {"minContains", Shape::Refused},
    {"minItems", Shape::Count, ArrayType},
    {"minLength", Shape::Count, StringType},
    {"minProperties", Shape::Count, ObjectType},
    {"minimum", Shape::Number, numbers},
    {"multipleOf", Shape::Divisor, numbers},
    {"not", Shape::Refused},
    {"oneOf", Shape::Schemas},
    {"pattern", Shape::Pattern, StringType},
    {"patternProperties", Shape::Patterns, ObjectType},
    {"prefixItems", Shape::Schemas, ArrayType},
    {"properties", Shape::NamedSchemas, ObjectType},
    {"propertyNames", Shape::Schema, ObjectType},
    {"required", Shape::Names, ObjectType},
    {"then", Shape::Refused},
    {"type", Shape::Types},
    {"unevaluatedItems", Shape::Refused},
    {"unevaluatedProperties", Shape::Refused},
    {"uniqueItems", Shape::Refused},
};

} // namespace

static const Keyword *findKeyword(absl::string_view name) {
  const auto *found = std::find_if(
      std::begin(keywords), std::end(keywords),
      [&](const Keyword &keyword) { return keyword.name == name; });
  return found == std::end(keywords) ? nullptr : found;
}

unsigned typeOfKeyword(absl::string_view keyword) {
  const Keyword *found = findKeyword(keyword);
  return found ? found->type : 0;
}

const OrderedJson *member(const OrderedJson &schema, absl::string_view name) {
  if (!schema.is_object())
    return nullptr;
  const auto found = schema.find(std::string(name));
  return found == schema.end() ? nullptr : &*found;
}

static const std::string &textOf(const OrderedJson &value) {
  return value.get_ref<const std::string &>();
}

static unsigned typeNamed(absl::string_view name) {
  static constexpr std::pair<absl::string_view, unsigned> names[] = {
      {"null", NullType},       {"boolean", BooleanType},
      {"integer", IntegerType}, {"number", numbers},
      {"string", StringType},   {"array", ArrayType},
      {"object", ObjectType},
  };
  for (const auto &[known, type] : names)
    if (known == name)
      return type;
  return 0;
}

unsigned typesOf(const OrderedJson &schema) {
  const OrderedJson *types = member(schema, "type");
  if (!types)
    return AnyType;
  if (types->is_string())
    return typeNamed(textOf(*types));
  unsigned all = 0;
  for (const OrderedJson &type : *types)
    all |= typeNamed(textOf(type));
  return all;
}

static unsigned typeOfValue(const OrderedJson &value) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    return number == std::floor(number) ? IntegerType : FractionType;
  }
  return value.is_number() ? IntegerType : typeNamed(value.type_name());
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

static absl::Status errorAtPlace(absl::string_view place,
                                 absl::string_view what) {
  return usageError(absl::StrCat("#", place, ": ", what));
}

absl::Status SchemaDocument::errorAt(const OrderedJson &schema,
                                     absl::string_view what) const {
  const auto known = schemas.find(&schema);
  return errorAtPlace(known == schemas.end() ? "" : known->second.place, what);
}

static std::string escaped(absl::string_view name) {
  return absl::StrReplaceAll(name, {{"~", "~0"}, {"/", "~1"}});
}

static std::string shownWhole(const OrderedJson &value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/true,
                    OrderedJson::error_handler_t::replace);
}

/// A value as messages have it.
static std::string shown(const OrderedJson &value) {
  constexpr size_t most = 60;
  std::string text = shownWhole(value);
  if (text.size() > most)
    text = absl::StrCat(text.substr(0, most), "...");
  return text;
}

absl::Status SchemaDocument::checkKeyword(const OrderedJson &schema,
                                          absl::string_view name,
                                          const OrderedJson &value,
                                          const std::string &place) {
  const auto expected = [&](absl::string_view what) {
    return errorAtPlace(
        place, absl::StrCat(name, ": expected ", what, ", got ", shown(value)));
  };
  const auto allStrings = [&] {
    return std::all_of(value.begin(), value.end(),
                       [](const OrderedJson &one) { return one.is_string(); });
  };
  switch (findKeyword(name)->shape) {
  case Shape::Schema:
  case Shape::Anything:
    return absl::OkStatus();
  case Shape::Schemas:
    if (!value.is_array() || value.empty())
      return expected("a list of schemas");
    return absl::OkStatus();
  case Shape::NamedSchemas:
  case Shape::Patterns:
    if (!value.is_object())
      return expected("an object of schemas");
    if (findKeyword(name)->shape == Shape::Patterns)
      for (auto part = value.begin(); part != value.end(); ++part)
        LLAMAC_RETURN_IF_ERROR(pattern(schema, part.key()).status());
    return absl::OkStatus();
  case Shape::Types: {
    constexpr absl::string_view names =
        "one or more of null, boolean, integer, number, string, array and "
        "object";
    if (value.is_string() ? typeNamed(textOf(value)) == 0
                          : !value.is_array() || value.empty() || !allStrings())
      return expected(names);
    if (value.is_array())
      for (const OrderedJson &type : value)
        if (typeNamed(textOf(type)) == 0)
          return expected(names);
    return absl::OkStatus();
  }
  case Shape::Values:
    return value.is_array() && !value.empty() ? absl::OkStatus()
                                              : expected("a list of values");
  case Shape::Count:
    // 2.0 is an integer, as in a draft of 2020.
    if (!value.is_number() || typeOfValue(value) != IntegerType || value < 0 ||
        value > maxCount)
      return expected(absl::StrCat("0 to ", maxCount));
    return absl::OkStatus();
  case Shape::Number:
    return value.is_number() ? absl::OkStatus() : expected("a number");
  case Shape::Divisor: {
    constexpr int64_t most = 500;
    if (!value.is_number() || value <= 0)
      return expected("a number above 0");
    if (typeOfValue(value) != IntegerType || value > most)
      return errorAtPlace(
          place, absl::StrCat(name, " is supported for integers from 1 to ",
                              most, ", got ", shown(value)));
    return absl::OkStatus();
  }
  case Shape::Text:
    return value.is_string() ? absl::OkStatus() : expected("a string");
  case Shape::Format:
    return value.is_string() ? absl::OkStatus() : expected("a string");
  case Shape::Pattern:
    if (!value.is_string())
      return expected("a string");
    return pattern(schema, textOf(value)).status();
  case Shape::Names:
    return value.is_array() && allStrings() ? absl::OkStatus()
                                            : expected("a list of names");
  case Shape::Refused:
    if (name == "uniqueItems" && value == false)
      return absl::OkStatus();
    return errorAtPlace(place, absl::StrCat(name, " is not supported"));
  }
  return absl::OkStatus();
}

absl::Status SchemaDocument::checkParts(absl::string_view name,
                                        const OrderedJson &value,
                                        const std::string &place,
                                        const OrderedJson *resource) {
  const std::string at = absl::StrCat(place, "/", escaped(name));
  switch (findKeyword(name)->shape) {
  case Shape::Schema:
    return check(value, at, resource);
  case Shape::Schemas:
    for (size_t i = 0; i < value.size(); ++i)
      LLAMAC_RETURN_IF_ERROR(
          check(value[i], absl::StrCat(at, "/", i), resource));
    return absl::OkStatus();
  case Shape::NamedSchemas:
  case Shape::Patterns:
    for (auto part = value.begin(); part != value.end(); ++part)
      LLAMAC_RETURN_IF_ERROR(check(
          part.value(), absl::StrCat(at, "/", escaped(part.key())), resource));
    return absl::OkStatus();
  default:
    return absl::OkStatus();
  }
}

absl::Status SchemaDocument::check(const OrderedJson &schema,
                                   const std::string &place,
                                   const OrderedJson *resource) {
  if (!schema.is_object() && !schema.is_boolean())
    return errorAtPlace(
        place, absl::StrCat("expected a schema, got ", schema.type_name()));
  if (const OrderedJson *id = member(schema, "$id");
      !resource ||
      (id && id->is_string() && !absl::StartsWith(textOf(*id), "#")))
    resource = &schema;
  if (!schemas.try_emplace(&schema, Known{place, resource}).second)
    return absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR(
      work.take(static_cast<int64_t>(sizeof(Known) + place.size())));
  if (schema.is_boolean())
    return absl::OkStatus();
  for (auto part = schema.begin(); part != schema.end(); ++part)
    if (findKeyword(part.key()))
      LLAMAC_RETURN_IF_ERROR(
          checkKeyword(schema, part.key(), part.value(), place));
  for (auto part = schema.begin(); part != schema.end(); ++part)
    if (findKeyword(part.key()))
      LLAMAC_RETURN_IF_ERROR(
          checkParts(part.key(), part.value(), place, resource));
  if (member(schema, "$ref"))
    references.push_back(&schema);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SchemaDocument>>
SchemaDocument::parse(absl::string_view text, GrammarWork &work) {
  // Its tree has members by name, and an answer has them in their order.
  if (const absl::Status status = parseJson("schema", text).status();
      !status.ok())
    return usageError(status.message());
  std::unique_ptr<SchemaDocument> result(new SchemaDocument(work));
  result->document =
      OrderedJson::parse(text.begin(), text.end(), /*cb=*/nullptr,
                         /*allow_exceptions=*/false);
  LLAMAC_RETURN_IF_ERROR(result->check(result->document, "", nullptr));
  // A place that is named may have more of them.
  while (!result->references.empty()) {
    const OrderedJson *const schema = result->references.back();
    result->references.pop_back();
    LLAMAC_RETURN_IF_ERROR(result->resolve(*schema).status());
  }
  return result;
}

//===----------------------------------------------------------------------===//
// References
//===----------------------------------------------------------------------===//

/// `text` without its percent-encoding; none where that is malformed.
static std::optional<std::string> percentDecoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    uint32_t byte = 0;
    if (text.size() - i < 3 || !absl::ascii_isxdigit(text[i + 1]) ||
        !absl::SimpleHexAtoi(text.substr(i + 1, 2), &byte))
      return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

/// The schema to which $ref of `schema` leads, by RFC 6901.
absl::StatusOr<const OrderedJson *>
SchemaDocument::resolve(const OrderedJson &schema) {
  const Known from = schemas.at(&schema);
  const std::string &reference = textOf(*member(schema, "$ref"));
  const auto fail = [&] {
    return errorAtPlace(from.place,
                        absl::StrCat("$ref: expected the place of a schema in "
                                     "this one, got ",
                                     reference));
  };
  const size_t hash = reference.find('#');
  const absl::string_view resource =
      absl::string_view(reference).substr(0, hash);
  const OrderedJson *target = from.resource;
  std::string place = schemas.at(target).place;
  if (!resource.empty()) {
    target = nullptr;
    LLAMAC_RETURN_IF_ERROR(work.spend(static_cast<int64_t>(schemas.size())));
    for (const auto &[known, about] : schemas)
      if (const OrderedJson *id = member(*known, "$id");
          id && about.resource == known && textOf(*id) == resource) {
        target = known;
        place = about.place;
      }
    if (!target)
      return fail();
  }
  const auto pointer = percentDecoded(
      hash == reference.npos ? ""
                             : absl::string_view(reference).substr(hash + 1));
  if (!pointer || (!pointer->empty() && pointer->front() != '/'))
    return fail();
  const OrderedJson *inner = target;
  std::vector<std::string> names;
  if (!pointer->empty())
    names = absl::StrSplit(absl::string_view(*pointer).substr(1), '/');
  for (const std::string &name : names) {
    for (size_t i = 0; i < name.size(); ++i)
      if (name[i] == '~' &&
          (i + 1 == name.size() || (name[i + 1] != '0' && name[i + 1] != '1')))
        return fail();
    const std::string key =
        absl::StrReplaceAll(name, {{"~1", "/"}, {"~0", "~"}});
    absl::StrAppend(&place, "/", name);
    if (target->is_array()) {
      uint32_t index = 0;
      const bool isIndex = !key.empty() && absl::SimpleAtoi(key, &index) &&
                           key == absl::StrCat(index) && index < target->size();
      if (!isIndex)
        return fail();
      target = &(*target)[index];
    } else if (const OrderedJson *found = member(*target, key)) {
      target = found;
    } else {
      return fail();
    }
    // A schema with an id of its own is a document by itself.
    if (const OrderedJson *id = member(*target, "$id"); id && id->is_string())
      inner = target;
  }
  // Any place may be one of a schema, whose keywords are checked then.
  LLAMAC_RETURN_IF_ERROR(check(*target, place, inner));
  return target;
}

absl::Status SchemaDocument::expand(const SchemaPart &part,
                                    std::vector<const OrderedJson *> &path,
                                    SchemaParts &found, bool &isFalse) {
  const OrderedJson &schema = *part.schema;
  const auto add = [&](const SchemaPart &one) {
    if (std::find(found.begin(), found.end(), one) == found.end())
      found.push_back(one);
  };
  if (part.kind != SchemaPart::Whole) {
    add(part);
    return absl::OkStatus();
  }
  if (schema.is_boolean()) {
    isFalse |= schema == false;
    return absl::OkStatus();
  }
  if (std::find(path.begin(), path.end(), &schema) != path.end())
    return errorAt(schema, "$ref: the schema is its own part, so that it says "
                           "nothing");
  constexpr size_t most = 100;
  if (path.size() > most)
    return errorAt(schema, absl::StrCat("expected at most ", most,
                                        " references one after the other"));
  // A schema that was expanded before, by another way, has all its parts there.
  const SchemaPart own{&schema, SchemaPart::Own};
  if (std::find(found.begin(), found.end(), own) != found.end())
    return absl::OkStatus();
  // Each part is looked for among the others.
  constexpr size_t partsAStep = 64;
  LLAMAC_RETURN_IF_ERROR(
      work.spend(1 + static_cast<int64_t>(found.size() / partsAStep)));
  path.push_back(&schema);
  if (member(schema, "$ref")) {
    LLAMAC_ASSIGN_OR_RETURN(const OrderedJson *const target, resolve(schema));
    LLAMAC_RETURN_IF_ERROR(expand({target}, path, found, isFalse));
  }
  add(own);
  if (const OrderedJson *all = member(schema, "allOf"))
    for (const OrderedJson &one : *all)
      LLAMAC_RETURN_IF_ERROR(expand({&one}, path, found, isFalse));
  if (member(schema, "anyOf"))
    add({&schema, SchemaPart::AnyOf});
  if (member(schema, "oneOf"))
    add({&schema, SchemaPart::OneOf});
  path.pop_back();
  return absl::OkStatus();
}

absl::StatusOr<SchemaParts> SchemaDocument::flatten(const SchemaParts &parts,
                                                    bool &isFalse) {
  SchemaParts found;
  std::vector<const OrderedJson *> path;
  for (const SchemaPart &part : parts)
    LLAMAC_RETURN_IF_ERROR(expand(part, path, found, isFalse));
  return found;
}

//===----------------------------------------------------------------------===//
// Strings
//===----------------------------------------------------------------------===//

absl::StatusOr<const StringSet *>
SchemaDocument::pattern(const OrderedJson &schema, const std::string &pattern) {
  const auto found = patterns.find(pattern);
  if (found != patterns.end())
    return &found->second;
  const auto make = [&]() -> absl::StatusOr<StringSet> {
    LLAMAC_ASSIGN_OR_RETURN(const Regex regex, parseRegex(pattern));
    return StringSet::matching(regex, work);
  };
  absl::StatusOr<StringSet> made = make();
  if (!made.ok())
    return errorAt(schema, absl::StrCat("pattern ", shown(pattern), ": ",
                                        made.status().message()));
  LLAMAC_RETURN_IF_ERROR(work.take(made->bytes()));
  return &(patterns[pattern] = *std::move(made));
}

absl::StatusOr<StringSet>
SchemaDocument::strings(const std::vector<const OrderedJson *> &owns,
                        bool skipsFormats) {
  StringSet all = StringSet::all();
  int64_t least = 0, most = -1;
  const OrderedJson *last = &document;
  const auto narrow = [&](const StringSet &by) -> absl::Status {
    absl::StatusOr<StringSet> both = all.with(by, work);
    if (!both.ok())
      return errorAt(*last, both.status().message());
    all = *std::move(both);
    return absl::OkStatus();
  };
  for (const OrderedJson *own : owns) {
    if (const OrderedJson *text = member(*own, "pattern")) {
      last = own;
      LLAMAC_ASSIGN_OR_RETURN(const StringSet *const set,
                              pattern(*own, textOf(*text)));
      LLAMAC_RETURN_IF_ERROR(narrow(*set));
    }
    if (const OrderedJson *name = member(*own, "format");
        name && !skipsFormats && formatPattern(textOf(*name))) {
      last = own;
      LLAMAC_ASSIGN_OR_RETURN(const StringSet *const set,
                              pattern(*own, wholeFormat(textOf(*name))));
      LLAMAC_RETURN_IF_ERROR(narrow(*set));
    }
    if (const OrderedJson *count = member(*own, "minLength"))
      least = std::max(least, count->get<int64_t>());
    if (const OrderedJson *count = member(*own, "maxLength"))
      most = most < 0 ? count->get<int64_t>()
                      : std::min(most, count->get<int64_t>());
  }
  if (most >= 0 && least > most)
    return StringSet::of({});
  if (least > 0 || most >= 0)
    LLAMAC_RETURN_IF_ERROR(narrow(StringSet::ofLength(least, most)));
  return all;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Adds text to `to` that is the same for all that is equal to `value`: 1.0 is
/// equal to 1, and objects are in any order of their members.
static void addCanonical(const OrderedJson &value, std::string &to) {
  if (value.is_number()) {
    const Decimal number = Decimal::of(value);
    absl::StrAppend(&to, number.isNegative ? "-" : "", number.whole, ".",
                    number.fraction);
  } else if (value.is_object()) {
    std::map<std::string, const OrderedJson *> members;
    for (auto one = value.begin(); one != value.end(); ++one)
      members.emplace(shownWhole(one.key()), &one.value());
    to += '{';
    for (const auto &[name, one] : members) {
      absl::StrAppend(&to, name, ":");
      addCanonical(*one, to);
      to += ',';
    }
    to += '}';
  } else if (value.is_array()) {
    to += '[';
    for (const OrderedJson &one : value) {
      addCanonical(one, to);
      to += ',';
    }
    to += ']';
  } else {
    to += shownWhole(value);
  }
}

/// Whether `value` is equal to one of those that keyword `name` of `schema`,
/// const or enum, names.
absl::StatusOr<bool> SchemaDocument::isListed(const OrderedJson &value,
                                              const OrderedJson &schema,
                                              absl::string_view name) {
  const OrderedJson &values = *member(schema, name);
  const auto canonical = [&](const OrderedJson &one) {
    std::string text;
    addCanonical(one, text);
    return text;
  };
  const auto [known, isNew] = listed.try_emplace(&values);
  if (isNew && name == "const") {
    known->second.insert(canonical(values));
  } else if (isNew) {
    for (const OrderedJson &one : values) {
      std::string text = canonical(one);
      LLAMAC_RETURN_IF_ERROR(
          work.take(static_cast<int64_t>(sizeof(std::string) + text.size())));
      known->second.insert(std::move(text));
    }
  }
  const std::string text = canonical(value);
  LLAMAC_RETURN_IF_ERROR(work.spend(static_cast<int64_t>(text.size())));
  return known->second.contains(text);
}

/// Whether `count` is within the bounds that `least` and `most` name.
static bool isCounted(const OrderedJson &schema, size_t count,
                      absl::string_view least, absl::string_view most) {
  const OrderedJson *low = member(schema, least);
  const OrderedJson *high = member(schema, most);
  return (!low || count >= low->get<uint64_t>()) &&
         (!high || count <= high->get<uint64_t>());
}

static size_t countCharacters(absl::string_view utf8) {
  return std::count_if(utf8.begin(), utf8.end(),
                       [](char c) { return (c & 0xC0) != 0x80; });
}

absl::StatusOr<bool> SchemaDocument::holds(const OrderedJson &value,
                                           const SchemaParts &parts,
                                           int depth) {
  constexpr int maxDepth = 200;
  constexpr int64_t maxHeld = 1'000'000;
  if (parts.empty())
    return true;
  LLAMAC_RETURN_IF_ERROR(work.spend());
  if (depth > maxDepth || ++steps > maxHeld)
    return errorAt(*parts.front().schema,
                   "the values of the schema take too long to check");
  bool isFalse = false;
  LLAMAC_ASSIGN_OR_RETURN(const SchemaParts flat, flatten(parts, isFalse));
  if (isFalse)
    return false;
  for (const SchemaPart &part : flat) {
    if (part.kind == SchemaPart::Own) {
      LLAMAC_ASSIGN_OR_RETURN(const bool isHeld,
                              holdsOwn(value, *part.schema, depth));
      if (!isHeld)
        return false;
      continue;
    }
    const bool isAny = part.kind == SchemaPart::AnyOf;
    int count = 0;
    for (const OrderedJson &one :
         *member(*part.schema, isAny ? "anyOf" : "oneOf")) {
      LLAMAC_ASSIGN_OR_RETURN(const bool isHeld,
                              holds(value, {{&one}}, depth + 1));
      count += isHeld;
    }
    if (isAny ? count == 0 : count != 1)
      return false;
  }
  return true;
}

absl::StatusOr<bool> SchemaDocument::holdsOwn(const OrderedJson &value,
                                              const OrderedJson &schema,
                                              int depth) {
  for (const char *name : {"const", "enum"})
    if (member(schema, name)) {
      LLAMAC_ASSIGN_OR_RETURN(const bool isOne, isListed(value, schema, name));
      if (!isOne)
        return false;
    }
  if (!(typesOf(schema) & typeOfValue(value)))
    return false;
  if (value.is_number()) {
    const auto breaks = [&](absl::string_view name, auto isBroken) {
      const OrderedJson *bound = member(schema, name);
      return bound &&
             isBroken(compare(Decimal::of(value), Decimal::of(*bound)));
    };
    if (breaks("minimum", [](int order) { return order < 0; }) ||
        breaks("maximum", [](int order) { return order > 0; }) ||
        breaks("exclusiveMinimum", [](int order) { return order <= 0; }) ||
        breaks("exclusiveMaximum", [](int order) { return order >= 0; }))
      return false;
    if (const OrderedJson *divisor = member(schema, "multipleOf"))
      return std::fmod(value.get<double>(), divisor->get<double>()) == 0;
    return true;
  }
  if (value.is_string()) {
    const std::string &text = textOf(value);
    if (!isCounted(schema, countCharacters(text), "minLength", "maxLength"))
      return false;
    std::vector<std::string> regexes;
    if (const OrderedJson *regex = member(schema, "pattern"))
      regexes.push_back(textOf(*regex));
    if (const OrderedJson *format = member(schema, "format");
        format && formatPattern(textOf(*format)))
      regexes.push_back(wholeFormat(textOf(*format)));
    for (const std::string &regex : regexes) {
      LLAMAC_ASSIGN_OR_RETURN(const StringSet *const set,
                              pattern(schema, regex));
      LLAMAC_RETURN_IF_ERROR(work.spend(static_cast<int64_t>(text.size())));
      if (!set->contains(text))
        return false;
    }
    return true;
  }
  if (value.is_array())
    return holdsArray(value, schema, depth);
  if (value.is_object())
    return holdsObject(value, schema, depth);
  return true;
}

absl::StatusOr<bool> SchemaDocument::holdsArray(const OrderedJson &value,
                                                const OrderedJson &schema,
                                                int depth) {
  if (!isCounted(schema, value.size(), "minItems", "maxItems"))
    return false;
  const OrderedJson *prefix = member(schema, "prefixItems");
  const OrderedJson *items = member(schema, "items");
  for (size_t i = 0; i < value.size(); ++i) {
    const OrderedJson *item =
        prefix && i < prefix->size() ? &(*prefix)[i] : items;
    if (!item)
      continue;
    LLAMAC_ASSIGN_OR_RETURN(const bool isHeld,
                            holds(value[i], {{item}}, depth + 1));
    if (!isHeld)
      return false;
  }
  return true;
}

absl::StatusOr<bool> SchemaDocument::holdsObject(const OrderedJson &value,
                                                 const OrderedJson &schema,
                                                 int depth) {
  if (!isCounted(schema, value.size(), "minProperties", "maxProperties"))
    return false;
  if (const OrderedJson *required = member(schema, "required"))
    for (const OrderedJson &name : *required)
      if (!value.contains(textOf(name)))
        return false;
  const OrderedJson *names = member(schema, "propertyNames");
  for (auto one = value.begin(); one != value.end(); ++one) {
    LLAMAC_ASSIGN_OR_RETURN(SchemaParts parts, valueOf(schema, one.key()));
    LLAMAC_ASSIGN_OR_RETURN(bool isHeld, holds(one.value(), parts, depth + 1));
    if (isHeld && names) {
      LLAMAC_ASSIGN_OR_RETURN(isHeld, holds(one.key(), {{names}}, depth + 1));
    }
    if (!isHeld)
      return false;
  }
  return true;
}

absl::StatusOr<SchemaParts> SchemaDocument::valueOf(const OrderedJson &schema,
                                                    const std::string &name) {
  SchemaParts parts;
  if (const OrderedJson *named = member(schema, "properties"))
    if (const OrderedJson *one = member(*named, name))
      parts.push_back({one});
  if (const OrderedJson *some = member(schema, "patternProperties"))
    for (auto one = some->begin(); one != some->end(); ++one) {
      LLAMAC_ASSIGN_OR_RETURN(const StringSet *const set,
                              pattern(schema, one.key()));
      LLAMAC_RETURN_IF_ERROR(work.spend(static_cast<int64_t>(name.size())));
      if (set->contains(name))
        parts.push_back({&one.value()});
    }
  if (const OrderedJson *others = member(schema, "additionalProperties");
      others && parts.empty())
    parts.push_back({others});
  return parts;
}

} // namespace llamac
