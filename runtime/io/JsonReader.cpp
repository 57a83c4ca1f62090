//===- JsonReader.cpp - JSON behind a depth and size gate -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/JsonReader.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/base/Suggestion.h"
#include "runtime/io/Malformed.h"

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include <cmath>
#include <iterator>

namespace llamac {

using nlohmann::json;

/// Where the lines of `text` begin; empty for one line of a file.
static std::vector<uint64_t> linesOf(absl::string_view text,
                                     const JsonLimits &limits) {
  std::vector<uint64_t> lines;
  if (limits.isLine)
    return lines;
  lines.push_back(0);
  for (size_t i = text.find('\n'); i != absl::string_view::npos;
       i = text.find('\n', i + 1))
    lines.push_back(i + 1);
  return lines;
}

/// The error at byte `offset` of a file with these `lines`. Lines and columns
/// count from 1. A text of no file has no places.
static absl::Status malformedAt(absl::string_view file,
                                const std::vector<uint64_t> &lines,
                                uint64_t offset, absl::string_view field,
                                const absl::AlphaNum &expected,
                                const absl::AlphaNum &got) {
  if (lines.empty() || file.empty())
    return malformed(file, offset + 1, field, expected, got);
  const auto line = absl::c_upper_bound(lines, offset) - lines.begin();
  return malformed(absl::StrCat(file, ":", line),
                   offset - lines[static_cast<size_t>(line - 1)] + 1, field,
                   expected, got);
}

// Checks size and nesting of `text` in one pass that knows only strings and
// brackets.
absl::Status checkJsonLimits(absl::string_view file, absl::string_view text,
                             const JsonLimits &limits) {
  if (text.size() > limits.maxBytes)
    return malformedAt(
        file, linesOf("", limits), 0, "size",
        absl::StrCat("at most ", limits.maxBytes, " bytes of JSON"),
        text.size());
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limits.maxDepth)
        return malformedAt(file, linesOf(text, limits), i, "nesting",
                           absl::StrCat("at most ", limits.maxDepth, " levels"),
                           "more");
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return absl::OkStatus();
}

std::string jsonErrorReason(const nlohmann::detail::exception &error) {
  // nlohmann-json's text is "[...] parse error at line 1, column 2: syntax
  // error while parsing value - unexpected end of input; expected ...": what
  // follows the dash says it best.
  std::string reason = error.what();
  if (const size_t dash = reason.find(" - "); dash != std::string::npos)
    reason = reason.substr(dash + 3);
  if (const size_t last = reason.find("; last read:");
      last != std::string::npos)
    reason = reason.substr(0, last);
  return reason.substr(0, 200);
}

namespace {

// Lets the lexer report how far it has read.
class CountingIterator {
public:
  // Names that std::iterator_traits asks for.
  // NOLINTBEGIN(readability-identifier-naming)
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;
  // NOLINTEND(readability-identifier-naming)

  CountingIterator(const char *at, uint64_t *consumed)
      : at(at), consumed(consumed) {}
  reference operator*() const { return *at; }
  CountingIterator &operator++() {
    ++at;
    ++*consumed;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator &a, const CountingIterator &b) {
    return a.at == b.at;
  }

private:
  const char *at;
  uint64_t *consumed;
};

// Builds a tree; the path of open containers is a stack, never recursion.
class TreeBuilder final : public nlohmann::json_sax<json> {
public:
  TreeBuilder(const JsonDocument &document, json &root,
              absl::flat_hash_map<const void *, uint64_t> &offsets)
      : document(document), root(root), offsets(offsets) {}

  absl::Status parse(absl::string_view text) {
    const char *begin = text.data();
    const bool parsed =
        json::sax_parse(CountingIterator(begin, &consumed),
                        CountingIterator(begin + text.size(), &consumed), this);
    return parsed || !status.ok()
               ? status
               : internalError("a JSON handler stopped without a reason");
  }

  bool null() override { return place(nullptr); }
  bool boolean(bool value) override { return place(value); }
  bool number_integer(int64_t value) override { return place(value); }
  bool number_unsigned(uint64_t value) override { return place(value); }
  bool number_float(double value, const std::string &text) override {
    return place(value);
  }
  bool string(std::string &value) override { return place(std::move(value)); }
  bool binary(json::binary_t &value) override {
    return fail(consumed, "value", "JSON", "binary data");
  }
  bool start_object(std::size_t count) override { return open(json::object()); }
  bool start_array(std::size_t count) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string &name) override {
    auto [member, isNew] =
        containers.back()->get_ref<json::object_t &>().emplace(name, nullptr);
    const uint64_t quoted = name.size() + 2;
    const uint64_t start = consumed > quoted ? consumed - quoted : 0;
    if (!isNew) {
      fail(start, name.substr(0, 200), "a key used once", "a duplicate");
      status = withField(std::move(status), name.substr(0, 200));
      return false;
    }
    offsets.emplace(&member->second, start);
    slot = &member->second;
    return true;
  }
  bool parse_error(std::size_t position, const std::string &lastToken,
                   const nlohmann::detail::exception &error) override {
    return fail(position > 0 ? position - 1 : 0, "JSON", "well-formed text",
                jsonErrorReason(error));
  }

private:
  // Records why the parser stops.
  bool fail(uint64_t offset, absl::string_view field,
            absl::string_view expected, absl::string_view got) {
    status = document.malformed(offset, field, expected, got);
    return false;
  }

  // Stores a value at the key just read, at the end of the open array, or as
  // the root.
  json *store(json value) {
    if (slot) {
      *slot = std::move(value);
      return std::exchange(slot, nullptr);
    }
    if (containers.empty()) {
      root = std::move(value);
      return &root;
    }
    auto &array = containers.back()->get_ref<json::array_t &>();
    array.push_back(std::move(value));
    return &array.back();
  }
  bool place(json value) {
    store(std::move(value));
    return true;
  }
  bool open(json container) {
    containers.push_back(store(std::move(container)));
    return true;
  }
  bool close() {
    containers.pop_back();
    return true;
  }

  const JsonDocument &document;
  json &root;
  absl::flat_hash_map<const void *, uint64_t> &offsets;
  // Read so far: up to the end of the current token, or one byte further.
  uint64_t consumed = 0;
  absl::Status status;
  std::vector<json *> containers;
  json *slot = nullptr;
};

} // namespace

absl::StatusOr<JsonDocument> parseJson(absl::string_view file,
                                       absl::string_view text,
                                       const JsonLimits &limits) {
  JsonDocument document;
  document.path = std::string(file);
  LLAMAC_RETURN_IF_ERROR(checkJsonLimits(file, text, limits));
  document.lines = linesOf(text, limits);
  TreeBuilder builder(document, document.value, document.offsets);
  LLAMAC_RETURN_IF_ERROR(builder.parse(text));
  return document;
}

uint64_t JsonDocument::offsetOf(const json &member) const {
  const auto found = offsets.find(&member);
  return found == offsets.end() ? 0 : found->second;
}

absl::Status JsonDocument::malformed(uint64_t offset, absl::string_view field,
                                     const absl::AlphaNum &expected,
                                     const absl::AlphaNum &got) const {
  return malformedAt(path, lines, offset, field, expected, got);
}

absl::StatusOr<JsonObject> JsonObject::root(const JsonDocument &document) {
  if (!document.root().is_object())
    return document.malformed(0, "root", "an object",
                              document.root().type_name());
  return JsonObject(document, document.root());
}

const json *JsonObject::member(absl::string_view key) const {
  const auto found = object->find(std::string(key));
  return found == object->end() || found->is_null() ? nullptr : &*found;
}

absl::Status JsonObject::fail(absl::string_view key, absl::string_view expected,
                              absl::string_view got) const {
  const json *value = member(key);
  uint64_t offset = document->offsetOf(value ? *value : *object);
  // The item of an array is no member: its own first member says where it is.
  if (!value && object != &document->root())
    for (const json &own : *object)
      if (const uint64_t at = document->offsetOf(own);
          offset == 0 || at < offset)
        offset = at;
  return withField(document->malformed(offset, key, expected, got), key);
}

absl::Status JsonObject::unsupported(absl::string_view key,
                                     absl::string_view expected,
                                     absl::string_view got) const {
  return unsupportedError(fail(key, expected, got).message());
}

absl::Status
JsonObject::checkMembers(absl::Span<const absl::string_view> names) const {
  for (const auto &[name, value] : object->items())
    if (!value.is_null() && !absl::c_linear_search(names, name))
      return fail(name.substr(0, 80),
                  absl::StrCat("one of ", absl::StrJoin(names, ", ")),
                  absl::StrCat("an unknown field",
                               suggestion(name, {names.begin(), names.end()})));
  return absl::OkStatus();
}

// A short rendering of `value`; containers by their type alone.
static std::string shown(const json &value) {
  if (value.is_structured())
    return absl::StrCat("an ", value.type_name());
  const std::string text =
      value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 80) + "...";
}

absl::Status JsonObject::wrongType(absl::string_view key,
                                   absl::string_view expected,
                                   const json &value) const {
  return fail(key, expected, shown(value));
}

// The bytes of the value that `text` begins with; knows only strings and
// brackets.
static absl::string_view firstValue(absl::string_view text) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inString && c == '\\')
      ++i;
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '[' || c == '{'))
      ++depth;
    else if (!inString && (c == ']' || c == '}' || c == ',') && depth == 0)
      return text.substr(0, i);
    else if (!inString && (c == ']' || c == '}'))
      --depth;
  }
  return text;
}

std::string JsonObject::textOf(absl::string_view key,
                               absl::string_view text) const {
  const json &value = *member(key);
  const uint64_t offset = document->offsetOf(value);
  const size_t colon = text.find(':', offset + key.size());
  if (colon != absl::string_view::npos) {
    const absl::string_view found =
        absl::StripAsciiWhitespace(firstValue(text.substr(colon + 1)));
    // A key that is written with escapes is not where it is looked for.
    if (json::parse(found.begin(), found.end(), nullptr, false) == value)
      return std::string(found);
  }
  return value.dump();
}

// The value as an int64_t, when it is one: 8192 and 8192.0, not 0.5 or 1e30.
static std::optional<int64_t> asInt(const json &value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    return number <= static_cast<uint64_t>(INT64_MAX)
               ? std::optional<int64_t>(static_cast<int64_t>(number))
               : std::nullopt;
  }
  if (value.is_number_integer())
    return value.get<int64_t>();
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::trunc(number) == number && std::fabs(number) < 0x1p53)
      return static_cast<int64_t>(number);
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<int64_t>>
JsonObject::optionalInt(absl::string_view key) const {
  const json *value = member(key);
  if (!value)
    return std::nullopt;
  const std::optional<int64_t> number = asInt(*value);
  if (!number)
    return wrongType(key, "an integer", *value);
  return number;
}

absl::StatusOr<int64_t> JsonObject::requiredInt(absl::string_view key) const {
  LLAMAC_ASSIGN_OR_RETURN(std::optional<int64_t> value, optionalInt(key));
  if (!value)
    return fail(key, "an integer", "no such key");
  return *value;
}

absl::StatusOr<std::optional<double>>
JsonObject::optionalNumber(absl::string_view key) const {
  const json *value = member(key);
  if (!value)
    return std::nullopt;
  if (!value->is_number() || !std::isfinite(value->get<double>()))
    return wrongType(key, "a finite number", *value);
  return value->get<double>();
}

absl::StatusOr<std::optional<bool>>
JsonObject::optionalBool(absl::string_view key) const {
  const json *value = member(key);
  if (!value)
    return std::nullopt;
  if (!value->is_boolean())
    return wrongType(key, "true or false", *value);
  return value->get<bool>();
}

absl::StatusOr<std::optional<std::string>>
JsonObject::optionalString(absl::string_view key) const {
  const json *value = member(key);
  if (!value)
    return std::nullopt;
  if (!value->is_string())
    return wrongType(key, "a string", *value);
  return value->get<std::string>();
}

absl::StatusOr<std::optional<JsonObject>>
JsonObject::optionalObject(absl::string_view key) const {
  const json *value = member(key);
  if (!value)
    return std::nullopt;
  if (!value->is_object())
    return wrongType(key, "an object", *value);
  return JsonObject(*document, *value);
}

absl::StatusOr<std::vector<int64_t>>
JsonObject::intOrInts(absl::string_view key) const {
  std::vector<int64_t> numbers;
  const json *value = member(key);
  if (!value)
    return numbers;
  const auto append = [&](const json &item) {
    const std::optional<int64_t> number = asInt(item);
    if (number)
      numbers.push_back(*number);
    return number.has_value();
  };
  bool good = true;
  if (value->is_array())
    for (const json &item : *value)
      good = good && append(item);
  else
    good = append(*value);
  if (!good)
    return wrongType(key, "an integer or an array of integers", *value);
  return numbers;
}

absl::StatusOr<std::vector<std::string>>
JsonObject::strings(absl::string_view key) const {
  std::vector<std::string> texts;
  const json *value = member(key);
  if (!value)
    return texts;
  if (!value->is_array())
    return wrongType(key, "an array of strings", *value);
  for (const json &item : *value) {
    if (!item.is_string())
      return wrongType(key, "an array of strings", *value);
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

absl::StatusOr<std::vector<JsonObject>>
JsonObject::objects(absl::string_view key) const {
  std::vector<JsonObject> items;
  const json *value = member(key);
  if (!value)
    return items;
  if (!value->is_array())
    return wrongType(key, "an array of objects", *value);
  for (const json &item : *value) {
    if (!item.is_object())
      return fail(key, "an array of objects",
                  absl::StrCat("one with ", shown(item), " in it"));
    items.push_back(JsonObject(*document, item));
  }
  return items;
}

} // namespace llamac
