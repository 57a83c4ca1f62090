//===- Json.cpp - JSON to values and back ---------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Json.h"

#include "runtime/io/JsonReader.h"
#include "text/templates/Text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace llamac::chat {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

// The path of open containers is a stack, never recursion.
class ValueBuilder final : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit ValueBuilder(Heap &heap) : heap(heap) {}

  bool null() override { return place(Value::none()); }
  bool boolean(bool value) override { return place(Value::boolean(value)); }
  bool number_integer(int64_t value) override {
    return place(Value::integer(value));
  }
  bool number_unsigned(uint64_t value) override {
    return value > static_cast<uint64_t>(INT64_MAX)
               ? fail(integerOverflow())
               : place(Value::integer(static_cast<int64_t>(value)));
  }
  bool number_float(double value, const std::string &text) override {
    return text.find_first_of(".eE") == std::string::npos
               ? fail(integerOverflow())
               : place(Value::real(value));
  }
  bool string(std::string &value) override {
    return place(heap.string(std::move(value)));
  }
  bool binary(nlohmann::json::binary_t &) override {
    return fail(templateError("expected JSON, got binary data"));
  }
  bool start_object(std::size_t) override { return open(heap.dict()); }
  bool start_array(std::size_t) override { return open(heap.list({})); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string &name) override {
    const absl::StatusOr<Value> made = heap.string(std::move(name));
    if (!made.ok())
      return fail(made.status());
    keys.back() = *made;
    return true;
  }
  bool parse_error(std::size_t position, const std::string &,
                   const nlohmann::detail::exception &error) override {
    return fail(templateError(
        absl::StrCat("byte ", position, ": ", jsonErrorReason(error))));
  }

  Value root;
  absl::Status status;

private:
  bool fail(absl::Status why) {
    status = std::move(why);
    return false;
  }
  bool place(const absl::StatusOr<Value> &value) {
    if (!value.ok())
      return fail(value.status());
    if (containers.empty()) {
      root = *value;
    } else if (containers.back().is(Kind::List)) {
      if (const absl::Status kept = heap.reserve(sizeof(Value)); !kept.ok())
        return fail(kept);
      containers.back().sequence().items.push_back(*value);
    } else {
      const absl::Status kept =
          heap.set(containers.back(), keys.back(), *value);
      if (!kept.ok())
        return fail(kept);
    }
    return true;
  }
  bool open(const absl::StatusOr<Value> &container) {
    if (!place(container))
      return false;
    containers.push_back(*container);
    keys.emplace_back();
    return true;
  }
  bool close() {
    containers.pop_back();
    keys.pop_back();
    return true;
  }

  Heap &heap;
  std::vector<Value> containers;
  std::vector<Value> keys; ///< The last one of each open object.
};

} // namespace

absl::StatusOr<Value> parseJsonValue(Heap &heap, absl::string_view name,
                                     absl::string_view text) {
  if (text.empty())
    return Value::none();
  LLAMAC_RETURN_IF_ERROR(heap.spendBytes(text.size()));
  ValueBuilder builder(heap);
  absl::Status status = checkJsonLimits(
      name, text, {heap.limits.jsonBytes, heap.limits.valueDepth});
  if (!status.ok())
    return usageError(status.message());
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (!builder.status.ok())
    return withContext(builder.status, name);
  return builder.root;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static void appendEscape(uint32_t unit, std::string &to) {
  absl::StrAppend(&to, "\\u", absl::Hex(unit, absl::kZeroPad4));
}

static void appendJsonText(absl::string_view text, bool ascii,
                           std::string &to) {
  to += '"';
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t code = decode(text, at);
    static constexpr absl::string_view codes = "\"\\\n\r\t\f\b";
    static constexpr absl::string_view names = "\"\\nrtfb";
    if (const size_t known = code < 0x80 ? codes.find(static_cast<char>(code))
                                         : absl::string_view::npos;
        known != absl::string_view::npos) {
      to += '\\';
      to += names[known];
    } else if (code < 0x20 || (ascii && code >= 0x7f && code < 0x10000)) {
      appendEscape(static_cast<uint32_t>(code), to);
    } else if (ascii && code >= 0x10000) {
      const uint32_t pair = static_cast<uint32_t>(code) - 0x10000;
      appendEscape(0xd800 + (pair >> 10), to);
      appendEscape(0xdc00 + (pair & 0x3ff), to);
    } else {
      absl::StrAppend(&to, text.substr(begin, at - begin));
    }
  }
  to += '"';
}

static void appendBreak(const JsonStyle &style, int depth, std::string &to) {
  if (!style.indent)
    return;
  to += '\n';
  for (int i = 0; i < depth; ++i)
    to += *style.indent;
}

static absl::Status appendObject(Heap &heap, const Dict &dict,
                                 const JsonStyle &style, std::string &to,
                                 int depth) {
  to += '{';
  for (size_t i = 0; i < dict.entries.size(); ++i) {
    const auto &[key, value] = dict.entries[i];
    if (!key.isString())
      return templateError(
          absl::StrCat("a key in JSON is a text, got ", typeName(key)));
    if (i > 0)
      to += style.itemSeparator;
    appendBreak(style, depth + 1, to);
    LLAMAC_RETURN_IF_ERROR(heap.spendBytes(key.text().size()));
    appendJsonText(key.text(), style.ascii, to);
    to += style.keySeparator;
    LLAMAC_RETURN_IF_ERROR(appendJson(heap, value, style, to, depth + 1));
  }
  if (!dict.entries.empty())
    appendBreak(style, depth, to);
  to += '}';
  return absl::OkStatus();
}

absl::Status appendJson(Heap &heap, const Value &value, const JsonStyle &style,
                        std::string &to, int depth) {
  if (depth > heap.limits.valueDepth)
    return tooDeep();
  LLAMAC_RETURN_IF_ERROR(heap.spendBytes(
      (style.indent ? style.indent->size() * static_cast<size_t>(depth) : 0) +
      style.itemSeparator.size() + style.keySeparator.size()));
  LLAMAC_RETURN_IF_ERROR(heap.wouldFit(1, to.size()));
  switch (value.kind()) {
  case Kind::String:
    LLAMAC_RETURN_IF_ERROR(heap.spendBytes(value.text().size()));
    appendJsonText(value.text(), style.ascii, to);
    return absl::OkStatus();
  case Kind::None:
    to += "null";
    return absl::OkStatus();
  case Kind::Bool:
    to += value.boolean() ? "true" : "false";
    return absl::OkStatus();
  case Kind::Int:
  case Kind::Float:
    return appendText(heap, value, to);
  case Kind::List:
  case Kind::Tuple: {
    const std::vector<Value> &items = value.sequence().items;
    to += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0)
        to += style.itemSeparator;
      appendBreak(style, depth + 1, to);
      LLAMAC_RETURN_IF_ERROR(appendJson(heap, items[i], style, to, depth + 1));
    }
    if (!items.empty())
      appendBreak(style, depth, to);
    to += ']';
    return absl::OkStatus();
  }
  case Kind::Dict:
    return appendObject(heap, value.dict(), style, to, depth);
  default:
    return value.isUndefined()
               ? undefinedError(value)
               : templateError(absl::StrCat("JSON has no ", typeName(value)));
  }
}

} // namespace llamac::chat
