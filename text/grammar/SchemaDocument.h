//===- SchemaDocument.h - What a JSON schema says ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A JSON schema (draft 2020-12) whose keywords are known and of their types,
// whose references lead somewhere, and which says of a value whether it is
// valid.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_GRAMMAR_SCHEMADOCUMENT_H
#define LLAMAC_TEXT_GRAMMAR_SCHEMADOCUMENT_H

#include "text/grammar/GrammarWork.h"
#include "text/grammar/Regex.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace llamac {

/// Whose members keep their order.
using OrderedJson = nlohmann::ordered_json;

/// Types of values; an integer is a number without a fraction.
enum SchemaType : unsigned {
  NullType = 1,
  BooleanType = 2,
  IntegerType = 4,
  FractionType = 8,
  StringType = 16,
  ArrayType = 32,
  ObjectType = 64,
  AnyType = 127,
};

/// A schema, or the part of it that stands in one keyword.
struct SchemaPart {
  enum Kind {
    Whole,
    Own, ///< Without anyOf, oneOf, allOf and $ref.
    AnyOf,
    OneOf,
  };
  const OrderedJson *schema;
  Kind kind = Whole;

  auto operator<=>(const SchemaPart &) const = default;
};

/// Schemas of which a value must fulfil all.
using SchemaParts = std::vector<SchemaPart>;

class SchemaDocument {
public:
  /// Usage error for text that is no JSON, with its offset, and, with the place
  /// as a JSON pointer, for what is no schema or uses what is not supported;
  /// and of each function that of `work`, which outlives the result.
  static absl::StatusOr<std::unique_ptr<SchemaDocument>>
  parse(absl::string_view text, GrammarWork &work);

  const OrderedJson &root() const { return document; }

  /// `what`, with the place of `schema` before it.
  absl::Status errorAt(const OrderedJson &schema, absl::string_view what) const;

  /// `parts` as parts of other kinds than Whole, each once. A schema that is
  /// false sets `isFalse`. Usage error for a schema that refers to itself
  /// before it says anything.
  absl::StatusOr<SchemaParts> flatten(const SchemaParts &parts, bool &isFalse);

  /// Whether `value` fulfils all `parts`.
  absl::StatusOr<bool> holds(const OrderedJson &value, const SchemaParts &parts,
                             int depth = 0);

  /// The strings in which `pattern`, which stands in `schema`, matches.
  absl::StatusOr<const StringSet *> pattern(const OrderedJson &schema,
                                            const std::string &pattern);

  /// The parts that the value of property `name` must fulfil by the keywords of
  /// `schema`.
  absl::StatusOr<SchemaParts> valueOf(const OrderedJson &schema,
                                      const std::string &name);

  /// The strings that the patterns, lengths and, unless `skipsFormats`, formats
  /// of `schemas` leave. Usage error where they are too many for automata.
  absl::StatusOr<StringSet>
  strings(const std::vector<const OrderedJson *> &schemas, bool skipsFormats);

private:
  explicit SchemaDocument(GrammarWork &work) : work(work) {}

  absl::Status check(const OrderedJson &schema, const std::string &place,
                     const OrderedJson *resource);
  absl::Status checkKeyword(const OrderedJson &schema, absl::string_view name,
                            const OrderedJson &value, const std::string &place);
  absl::Status checkParts(absl::string_view name, const OrderedJson &value,
                          const std::string &place,
                          const OrderedJson *resource);
  absl::StatusOr<const OrderedJson *> resolve(const OrderedJson &schema);
  absl::Status expand(const SchemaPart &part,
                      std::vector<const OrderedJson *> &path,
                      SchemaParts &found, bool &isFalse);
  absl::StatusOr<bool> isListed(const OrderedJson &value,
                                const OrderedJson &schema,
                                absl::string_view name);
  absl::StatusOr<bool> holdsOwn(const OrderedJson &value,
                                const OrderedJson &schema, int depth);
  absl::StatusOr<bool> holdsArray(const OrderedJson &value,
                                  const OrderedJson &schema, int depth);
  absl::StatusOr<bool> holdsObject(const OrderedJson &value,
                                   const OrderedJson &schema, int depth);

  struct Known {
    std::string place;
    const OrderedJson *resource; ///< The schema that its references are
                                 ///< relative to.
  };

  GrammarWork &work;
  OrderedJson document;
  absl::flat_hash_map<const OrderedJson *, Known> schemas;
  std::vector<const OrderedJson *> references; ///< Schemas whose $ref is open.
  std::map<std::string, StringSet> patterns;
  /// Values of each enum or const, as text that equal ones share.
  absl::flat_hash_map<const OrderedJson *, absl::flat_hash_set<std::string>>
      listed;
  int64_t steps = 0; ///< Steps of holds().
};

/// The types that keyword `type` of `schema` names; AnyType without it.
unsigned typesOf(const OrderedJson &schema);

/// The type that `keyword` speaks of; 0 for one of all types or of none.
unsigned typeOfKeyword(absl::string_view keyword);

/// The member `name` of `schema`, or null.
const OrderedJson *member(const OrderedJson &schema, absl::string_view name);

} // namespace llamac

#endif // LLAMAC_TEXT_GRAMMAR_SCHEMADOCUMENT_H
