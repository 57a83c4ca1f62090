//===- JsonSchema.cpp - Schemas that grammars can follow ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/JsonSchema.h"

#include "runtime/base/Status.h"
#include "runtime/io/JsonReader.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace llamac {

namespace {

/// Whose members keep their order.
using Json = nlohmann::ordered_json;

/// What a keyword says of values.
enum class KeywordUse {
  Any,    ///< Which values are allowed, by itself: of these XGrammar takes one.
  String, ///< Something of strings, of numbers, ...
  Number,
  Array,
  Object,
  Refused, ///< What no grammar here follows.
};

struct Keyword {
  absl::string_view name;
  KeywordUse use;
};

/// All that restrict values; others are annotations.
constexpr Keyword keywords[] = {
    {"$ref", KeywordUse::Any},
    {"const", KeywordUse::Any},
    {"enum", KeywordUse::Any},
    {"anyOf", KeywordUse::Any},
    {"oneOf", KeywordUse::Any},
    {"allOf", KeywordUse::Any},
    {"minLength", KeywordUse::String},
    {"maxLength", KeywordUse::String},
    {"pattern", KeywordUse::String},
    {"minimum", KeywordUse::Number},
    {"maximum", KeywordUse::Number},
    {"exclusiveMinimum", KeywordUse::Number},
    {"exclusiveMaximum", KeywordUse::Number},
    {"multipleOf", KeywordUse::Number},
    {"items", KeywordUse::Array},
    {"prefixItems", KeywordUse::Array},
    {"minItems", KeywordUse::Array},
    {"maxItems", KeywordUse::Array},
    {"properties", KeywordUse::Object},
    {"required", KeywordUse::Object},
    {"patternProperties", KeywordUse::Object},
    {"propertyNames", KeywordUse::Object},
    {"additionalProperties", KeywordUse::Object},
    {"minProperties", KeywordUse::Object},
    {"maxProperties", KeywordUse::Object},
    {"$dynamicRef", KeywordUse::Refused},
    {"$recursiveRef", KeywordUse::Refused},
    {"additionalItems", KeywordUse::Refused},
    {"contains", KeywordUse::Refused},
    {"dependencies", KeywordUse::Refused},
    {"dependentRequired", KeywordUse::Refused},
    {"dependentSchemas", KeywordUse::Refused},
    {"else", KeywordUse::Refused},
    {"if", KeywordUse::Refused},
    {"maxContains", KeywordUse::Refused},
    {"minContains", KeywordUse::Refused},
    {"not", KeywordUse::Refused},
    {"then", KeywordUse::Refused},
    {"unevaluatedItems", KeywordUse::Refused},
    {"unevaluatedProperties", KeywordUse::Refused},
    {"uniqueItems", KeywordUse::Refused},
};

/// Keywords that hold one schema, a list of schemas, or named schemas.
constexpr absl::string_view oneSchema[] = {"items", "additionalProperties",
                                           "propertyNames"};
constexpr absl::string_view schemaLists[] = {"prefixItems", "anyOf", "oneOf",
                                             "allOf"};
constexpr absl::string_view namedSchemas[] = {"properties", "patternProperties",
                                              "$defs", "definitions"};
/// Keywords whose values are counts, up to maxCount.
constexpr absl::string_view counts[] = {"minLength",     "maxLength",
                                        "minItems",      "maxItems",
                                        "minProperties", "maxProperties"};
constexpr int64_t maxCount = 10000;

/// Walks a schema, changes it in place and finds what is not supported.
class SchemaPreparer {
public:
  absl::Status prepare(Json &root);

private:
  absl::Status visit(Json &schema, const std::string &place);
  absl::Status visitParts(Json &schema, const std::string &place);
  absl::Status checkKeywords(Json &schema, const std::string &place);
  absl::Status checkCounts(const Json &schema, const std::string &place) const;

  /// Places of schemas, and of "$ref" with where they lead.
  absl::flat_hash_set<std::string> places;
  std::vector<std::pair<std::string, std::string>> references;
};

} // namespace

static absl::Status errorAt(absl::string_view place, absl::string_view what) {
  return usageError(absl::StrCat("#", place, ": ", what));
}

static bool isOfType(const Json &value, absl::string_view type) {
  if (type == "integer")
    return value.is_number_integer();
  if (type == "number")
    return value.is_number();
  return type == value.type_name();
}

/// Whether `value` is allowed by a schema's "type", which is a name or a list.
static bool isOfTypes(const Json &value, const Json &types) {
  if (types.is_string())
    return isOfType(value, types.get_ref<const std::string &>());
  return std::any_of(types.begin(), types.end(), [&](const Json &type) {
    return type.is_string() &&
           isOfType(value, type.get_ref<const std::string &>());
  });
}

static absl::string_view typeOf(KeywordUse use) {
  switch (use) {
  case KeywordUse::String:
    return "string";
  case KeywordUse::Number:
    return "number";
  case KeywordUse::Array:
    return "array";
  default:
    return "object";
  }
}

static bool hasOneOf(const Json &schema,
                     absl::Span<const absl::string_view> names) {
  return std::any_of(names.begin(), names.end(),
                     [&](auto name) { return schema.contains(name); });
}

/// Whether `schema` says by its "type" alone that it is of `type`.
static bool isTyped(const Json &schema, absl::string_view type) {
  const auto found = schema.find("type");
  return found != schema.end() && found->is_string() &&
         found->get_ref<const std::string &>() == type;
}

absl::Status SchemaPreparer::checkCounts(const Json &schema,
                                         const std::string &place) const {
  for (const absl::string_view name : counts) {
    const auto found = schema.find(name);
    if (found == schema.end())
      continue;
    if (!found->is_number_integer() || *found < 0 || *found > maxCount)
      return errorAt(place, absl::StrCat(name, ": expected 0 to ", maxCount,
                                         ", got ", found->dump()));
  }
  return absl::OkStatus();
}

/// Finds out what decides which values are allowed, and gives `schema` the type
/// that its keywords imply.
absl::Status SchemaPreparer::checkKeywords(Json &schema,
                                           const std::string &place) {
  absl::string_view alone;        // A keyword of KeywordUse::Any.
  const Keyword *typed = nullptr; // The first one of a type.
  for (const Keyword &keyword : keywords) {
    if (!schema.contains(keyword.name))
      continue;
    if (keyword.name == "uniqueItems" && schema["uniqueItems"] == false)
      continue;
    if (keyword.use == KeywordUse::Refused)
      return errorAt(place, absl::StrCat(keyword.name, " is not supported"));
    if (!alone.empty())
      return errorAt(place, absl::StrCat(keyword.name, " beside ", alone,
                                         " is not supported"));
    if (keyword.use == KeywordUse::Any) {
      alone = keyword.name;
    } else if (!schema.contains("type") && typed && typed->use != keyword.use) {
      return errorAt(place, absl::StrCat("expected a type beside ", typed->name,
                                         " and ", keyword.name));
    } else if (!typed) {
      typed = &keyword;
    }
  }
  if (!alone.empty() && schema.contains("type")) {
    const Json &types = schema["type"];
    const bool isConst = alone == "const";
    if (!isConst && alone != "enum")
      return errorAt(place,
                     absl::StrCat("type beside ", alone, " is not supported"));
    const Json values =
        isConst ? Json::array({schema["const"]}) : schema["enum"];
    for (const Json &value : values)
      if (!isOfTypes(value, types))
        return errorAt(place,
                       absl::StrCat(alone, ": expected values of type ",
                                    types.dump(), ", got ", value.dump()));
  }
  if (alone.empty() && typed && !schema.contains("type"))
    schema["type"] = typeOf(typed->use);
  return absl::OkStatus();
}

absl::Status SchemaPreparer::visitParts(Json &schema,
                                        const std::string &place) {
  for (const absl::string_view name : oneSchema)
    if (const auto found = schema.find(name); found != schema.end())
      LLAMAC_RETURN_IF_ERROR(visit(*found, absl::StrCat(place, "/", name)));
  for (const absl::string_view name : schemaLists) {
    const auto found = schema.find(name);
    if (found == schema.end())
      continue;
    const std::string list = absl::StrCat(place, "/", name);
    if (!found->is_array() || found->empty())
      return errorAt(list, "expected a list of schemas");
    for (size_t i = 0; i < found->size(); ++i)
      LLAMAC_RETURN_IF_ERROR(visit((*found)[i], absl::StrCat(list, "/", i)));
  }
  for (const absl::string_view name : namedSchemas) {
    const auto found = schema.find(name);
    if (found == schema.end())
      continue;
    const std::string names = absl::StrCat(place, "/", name);
    if (!found->is_object())
      return errorAt(names, "expected an object of schemas");
    for (auto part = found->begin(); part != found->end(); ++part)
      LLAMAC_RETURN_IF_ERROR(
          visit(part.value(), absl::StrCat(names, "/", part.key())));
  }
  return absl::OkStatus();
}

absl::Status SchemaPreparer::visit(Json &schema, const std::string &place) {
  places.insert(place);
  if (schema.is_boolean())
    return absl::OkStatus();
  if (!schema.is_object())
    return errorAt(place,
                   absl::StrCat("expected a schema, got ", schema.type_name()));
  LLAMAC_RETURN_IF_ERROR(checkCounts(schema, place));
  LLAMAC_RETURN_IF_ERROR(checkKeywords(schema, place));
  if (schema.contains("$ref")) {
    const Json &reference = schema["$ref"];
    if (!reference.is_string())
      return errorAt(place, "$ref: expected a string");
    references.emplace_back(place, reference.get<std::string>());
  }
  if (isTyped(schema, "object")) {
    if (!hasOneOf(schema, {"properties", "patternProperties", "propertyNames",
                           "additionalProperties"}))
      schema["additionalProperties"] = true;
    // XGrammar requires those properties that are named.
    if (schema.contains("required")) {
      if (!schema["required"].is_array())
        return errorAt(place, "required: expected a list of names");
      Json &properties = schema["properties"];
      for (const Json &name : schema["required"]) {
        if (!name.is_string())
          return errorAt(place, "required: expected a list of names");
        const auto &key = name.get_ref<const std::string &>();
        if (!properties.contains(key) && !schema.contains("patternProperties"))
          properties[key] = true;
      }
    }
  }
  if (isTyped(schema, "array") && !hasOneOf(schema, {"items", "prefixItems"}))
    schema["items"] = true;
  return visitParts(schema, place);
}

absl::Status SchemaPreparer::prepare(Json &root) {
  LLAMAC_RETURN_IF_ERROR(visit(root, ""));
  for (const auto &[place, target] : references)
    if (!absl::StartsWith(target, "#") || !places.contains(target.substr(1)))
      return errorAt(place, absl::StrCat("$ref: expected the place of a schema "
                                         "in this one, got ",
                                         target));
  return absl::OkStatus();
}

absl::StatusOr<std::string> prepareJsonSchema(absl::string_view text) {
  // Its tree has members by name, and an answer has them in their order.
  if (const absl::Status status = parseJson("schema", text).status();
      !status.ok())
    return usageError(status.message());
  Json root = Json::parse(text.begin(), text.end(), /*cb=*/nullptr,
                          /*allow_exceptions=*/false);
  LLAMAC_RETURN_IF_ERROR(SchemaPreparer().prepare(root));
  return root.dump();
}

} // namespace llamac
