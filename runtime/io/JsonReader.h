//===- JsonReader.h - JSON behind a depth and size gate ------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parsers of JSON are fed hostile text here: a linear scan bounds nesting and
// size before nlohmann-json sees it, its event interface is used so that
// nothing throws, and duplicate keys are refused. Errors have the form
// `file:offset: field: expected ..., got ...`.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_IO_JSONREADER_H
#define LLAMAC_RUNTIME_IO_JSONREADER_H

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

struct JsonLimits {
  uint64_t maxBytes = uint64_t{4} << 20;
  int maxDepth = 64; ///< Depth of nested arrays and objects.
  /// Whether the text is one line of a file, whose number is in its name.
  bool isLine = false;
};

/// The gate alone, for other readers: size and nesting of `text` of `file`.
absl::Status checkJsonLimits(absl::string_view file, absl::string_view text,
                             const JsonLimits &limits);

/// The error in nlohmann-json's message, without the words around it.
std::string jsonErrorReason(const nlohmann::detail::exception &error);

/// A parsed text and where its members' keys lie.
class JsonDocument {
public:
  JsonDocument() = default;
  JsonDocument(JsonDocument &&) = default;
  JsonDocument &operator=(JsonDocument &&) = default;

  const nlohmann::json &root() const { return value; }
  const std::string &file() const { return path; }

  /// Where the member `value` of an object of this document lies; 0 when it is
  /// not a member.
  uint64_t offsetOf(const nlohmann::json &value) const;

  /// The error `file:line:column: field: expected ..., got ...` at byte
  /// `offset`.
  absl::Status malformed(uint64_t offset, absl::string_view field,
                         const absl::AlphaNum &expected,
                         const absl::AlphaNum &got) const;

private:
  friend absl::StatusOr<JsonDocument>
  parseJson(absl::string_view, absl::string_view, const JsonLimits &);
  std::string path;
  std::vector<uint64_t> lines; ///< Where they begin; empty: it is one line.
  nlohmann::json value;
  // Members of objects are nodes of a map: their addresses last.
  absl::flat_hash_map<const void *, uint64_t> offsets;
};

/// Parses `text` of `file` to a tree; duplicate keys are refused.
absl::StatusOr<JsonDocument> parseJson(absl::string_view file,
                                       absl::string_view text,
                                       const JsonLimits &limits = {});

/// Typed access to the members of one object of a document. A member that is
/// null counts as absent.
class JsonObject {
public:
  /// The root of `document`, which must be an object.
  static absl::StatusOr<JsonObject> root(const JsonDocument &document);

  bool has(absl::string_view key) const { return member(key) != nullptr; }

  /// Integers; a number with a fraction, or outside int64_t, is an error.
  absl::StatusOr<int64_t> requiredInt(absl::string_view key) const;
  absl::StatusOr<std::optional<int64_t>>
  optionalInt(absl::string_view key) const;
  absl::StatusOr<std::optional<double>>
  optionalNumber(absl::string_view key) const;
  absl::StatusOr<std::optional<bool>> optionalBool(absl::string_view key) const;
  absl::StatusOr<std::optional<std::string>>
  optionalString(absl::string_view key) const;
  absl::StatusOr<std::optional<JsonObject>>
  optionalObject(absl::string_view key) const;

  /// A member that is an integer or an array of integers; empty when absent.
  absl::StatusOr<std::vector<int64_t>> intOrInts(absl::string_view key) const;
  /// A member that is an array of strings; empty when absent.
  absl::StatusOr<std::vector<std::string>> strings(absl::string_view key) const;
  /// A member that is an array of objects; empty when absent.
  absl::StatusOr<std::vector<JsonObject>> objects(absl::string_view key) const;

  /// The error `file:line:column: key: expected ..., got ...` at member `key`.
  absl::Status fail(absl::string_view key, absl::string_view expected,
                    absl::string_view got) const;
  /// fail() for a value that is well-formed but not supported.
  absl::Status unsupported(absl::string_view key, absl::string_view expected,
                           absl::string_view got) const;
  /// fail() for `value`, which is that of the member or a part of it.
  absl::Status wrongType(absl::string_view key, absl::string_view expected,
                         const nlohmann::json &value) const;

  /// Error for a member that is not one of `names`.
  absl::Status checkMembers(absl::Span<const absl::string_view> names) const;

  const nlohmann::json &raw() const { return *object; }

  /// The value of member `key`, which is there, as `text` has it, from which
  /// the document was parsed: an object's members in their order.
  std::string textOf(absl::string_view key, absl::string_view text) const;

private:
  JsonObject(const JsonDocument &document, const nlohmann::json &object)
      : document(&document), object(&object) {}
  const nlohmann::json *member(absl::string_view key) const;

  const JsonDocument *document;
  const nlohmann::json *object;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_JSONREADER_H
