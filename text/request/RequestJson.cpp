//===- RequestJson.cpp - Requests as JSON has them ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/RequestJson.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/base/Suggestion.h"
#include "runtime/base/Terminal.h"
#include "text/request/ChatMessages.h"
#include "text/request/RequestOptions.h"

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <variant>

namespace llamac {

using nlohmann::json;
using nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {

/// A member of an object that is not null.
struct Member {
  const JsonObject &object;
  absl::string_view name;
  absl::string_view text; ///< The text that the object was parsed from.

  const json &value() const { return object.raw()[std::string(name)]; }

  absl::Status fail(absl::string_view expected) const {
    return object.wrongType(name, expected, value());
  }
};

} // namespace

/// Sets `to` to what is given.
template <typename Value>
static absl::Status take(const absl::StatusOr<std::optional<Value>> &given,
                         Value *to) {
  if (given.ok())
    *to = given->value_or(*to);
  return given.status();
}

static absl::Status read(const Member &member, bool *to) {
  return take(member.object.optionalBool(member.name), to);
}

static absl::Status read(const Member &member, Inverse to) {
  bool value = !*to.value;
  LLAMAC_RETURN_IF_ERROR(read(member, &value));
  *to.value = !value;
  return absl::OkStatus();
}

static absl::Status read(const Member &member, int64_t *to) {
  return take(member.object.optionalInt(member.name), to);
}

static absl::Status read(const Member &member, int *to) {
  using Limits = std::numeric_limits<int>;
  int64_t value = *to;
  LLAMAC_RETURN_IF_ERROR(read(member, &value));
  if (value < Limits::min() || value > Limits::max())
    return member.fail(absl::StrCat(Limits::min(), " to ", Limits::max()));
  *to = static_cast<int>(value);
  return absl::OkStatus();
}

static absl::Status read(const Member &member, double *to) {
  return take(member.object.optionalNumber(member.name), to);
}

/// Seeds are 64 bits, with a sign or without.
static absl::Status read(const Member &member, std::optional<uint64_t> *to) {
  const json &value = member.value();
  if (value.is_number_unsigned()) {
    *to = value.get<uint64_t>();
    return absl::OkStatus();
  }
  int64_t seed = 0;
  LLAMAC_RETURN_IF_ERROR(read(member, &seed));
  *to = static_cast<uint64_t>(seed);
  return absl::OkStatus();
}

static absl::Status read(const Member &member, std::string *to) {
  return take(member.object.optionalString(member.name), to);
}

/// One text may stand for a list of it.
static absl::Status read(const Member &member, std::vector<std::string> *to) {
  const json &value = member.value();
  if (value.is_string()) {
    *to = {value.get<std::string>()};
  } else if (value.is_array()) {
    LLAMAC_ASSIGN_OR_RETURN(*to, member.object.strings(member.name));
  } else {
    return member.fail("a string or an array of strings");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> readIds(const JsonObject &object,
                                             absl::string_view key,
                                             const json &value, int64_t end) {
  if (!value.is_array())
    return object.wrongType(key, "an array of token ids", value);
  std::vector<int32_t> ids;
  ids.reserve(value.size());
  for (const json &id : value) {
    // A number above those of int64_t is a negative one in them.
    if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
        id.get<int64_t>() >= end)
      return object.wrongType(
          key, absl::StrCat("0 to ", end - 1, " in an array of token ids"), id);
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

static absl::Status read(const Member &member, std::vector<int32_t> *to) {
  LLAMAC_ASSIGN_OR_RETURN(*to,
                          readIds(member.object, member.name, member.value()));
  return absl::OkStatus();
}

static absl::Status read(const Member &member, TokenWeights *to) {
  const json &value = member.value();
  if (!value.is_object())
    return member.fail("an object of token ids and numbers");
  to->clear();
  to->reserve(value.size());
  for (const auto &[key, weight] : value.items()) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(key, &id) || !weight.is_number())
      return member.object.fail(
          member.name, "an object of token ids and numbers",
          absl::StrCat(quoteForMessage(key), " with ", weight.type_name()));
    to->emplace_back(id, weight.get<float>());
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Grammars
//===----------------------------------------------------------------------===//

static absl::Status setGrammar(const Member &member, GrammarField to,
                               std::string text) {
  if (to.source->has_value())
    return member.object.fail(member.name, "the only grammar of a request",
                              "another one beside it");
  *to.source = GrammarSource{to.kind, std::move(text)};
  return absl::OkStatus();
}

static absl::Status read(const Member &member, GrammarField to) {
  if (to.kind == GrammarSource::JsonSchema) {
    if (!member.value().is_object() && !member.value().is_boolean())
      return member.fail("a JSON schema");
    return setGrammar(member, to,
                      member.object.textOf(member.name, member.text));
  }
  if (to.kind == GrammarSource::JsonObject) {
    bool isAsked = false;
    LLAMAC_RETURN_IF_ERROR(read(member, &isAsked));
    return isAsked ? setGrammar(member, to, "") : absl::OkStatus();
  }
  std::string text;
  LLAMAC_RETURN_IF_ERROR(read(member, &text));
  return setGrammar(member, to, std::move(text));
}

/// OpenAI's response_format, which is `format`.
static absl::Status readResponseFormat(const Member &member,
                                       const JsonObject &format,
                                       Request &request) {
  LLAMAC_RETURN_IF_ERROR(format.checkMembers({{"type", "json_schema"}}));
  LLAMAC_ASSIGN_OR_RETURN(const auto type, format.optionalString("type"));
  if (type == "json_schema" && !format.has("json_schema"))
    return format.fail("json_schema", "an object with a schema", "none");
  if (type != "json_schema" && format.has("json_schema"))
    return format.fail("json_schema", "with the type json_schema alone",
                       type.value_or("none").substr(0, 80));
  if (type == "text")
    return absl::OkStatus();
  if (type == "json_object")
    return setGrammar({format, "type", member.text},
                      {&request.grammar, GrammarSource::JsonObject}, "");
  if (type != "json_schema")
    return format.fail("type", "text, json_object or json_schema",
                       quoteForMessage(type.value_or("")));
  LLAMAC_ASSIGN_OR_RETURN(const auto named,
                          format.optionalObject("json_schema"));
  // A schema is always followed, which is what "strict" asks for.
  LLAMAC_RETURN_IF_ERROR(
      named->checkMembers({{"name", "description", "strict", "schema"}}));
  if (!named->has("schema"))
    return named->fail("schema", "a JSON schema", "none");
  return read({*named, "schema", member.text},
              GrammarField{&request.grammar, GrammarSource::JsonSchema});
}

static absl::Status readResponseFormat(const Member &member, Request &request) {
  LLAMAC_ASSIGN_OR_RETURN(const auto format,
                          member.object.optionalObject(member.name));
  return withField(
      withContext(readResponseFormat(member, *format, request), member.name),
      member.name);
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// OpenAI's name of what is several options here.
static constexpr absl::string_view responseFormat = "response_format";

/// Whether the command line has `option` by the name of field `name`:
/// --repeat-penalty is the option's repeat_penalty there.
static bool isFlagOf(const NamedOption<Request> &option,
                     absl::string_view name) {
  const absl::string_view flags = option.flag;
  return absl::c_linear_search(
      absl::StrSplit(flags.substr(0, flags.find(' ')), ','),
      absl::StrCat("--", absl::StrReplaceAll(name, {{"_", "-"}})));
}

/// The error for a field that is neither one of a request nor of `others`.
static absl::Status unknownField(const JsonObject &object,
                                 absl::string_view name,
                                 absl::Span<const absl::string_view> others) {
  std::vector<std::string> known = {std::string(responseFormat)};
  for (const NamedOption<Request> &option : requestOptions())
    known.emplace_back(option.name);
  for (const absl::string_view other : others)
    known.emplace_back(other);
  const absl::Span<const NamedOption<Request>> options = requestOptions();
  const auto *const meant = absl::c_find_if(
      options, [&](const auto &option) { return isFlagOf(option, name); });
  return object.fail(
      name.substr(0, 80), "a field of a request",
      absl::StrCat(
          "an unknown one",
          suggestion(meant == options.end() ? name : meant->name, known)));
}

absl::Status readRequestFields(const JsonObject &object, absl::string_view text,
                               absl::Span<const absl::string_view> others,
                               Request &request) {
  const absl::Span<const NamedOption<Request>> options = requestOptions();
  std::vector<absl::string_view> given;
  for (const auto &[name, value] : object.raw().items()) {
    if (value.is_null() || std::ranges::find(others, name) != others.end())
      continue;
    const auto option =
        std::ranges::find(options, name, &NamedOption<Request>::name);
    const bool isFormat = name == responseFormat;
    if (option == options.end() && !isFormat)
      return asUsageError(unknownField(object, name, others));
    const Member member{object, name, text};
    LLAMAC_RETURN_IF_ERROR(asUsageError(
        isFormat ? readResponseFormat(member, request)
                 : std::visit([&](auto field) { return read(member, field); },
                              option->field(request))));
    if (!isFormat)
      given.push_back(option->name);
  }
  drawWhereAsked(given, request);
  return absl::OkStatus();
}

std::vector<absl::string_view> promptFields() {
  std::vector<absl::string_view> fields = {"prompt", "tokens"};
  fields.insert(fields.end(), std::begin(chatRequestFields),
                std::end(chatRequestFields));
  return fields;
}

absl::Status checkNoTextOptions(const JsonObject &object) {
  for (const char *field : {"add_special_tokens", "parse_special"})
    if (object.has(field))
      return asUsageError(
          object.fail(field, "a prompt of text beside it", "another one"));
  return absl::OkStatus();
}

absl::Status
readPrompt(const JsonObject &object, absl::string_view text,
           PromptEncoder encode,
           const absl::StatusOr<std::unique_ptr<const ChatFormat>> &chat,
           Request &request) {
  const bool hasPrompt = object.has("prompt"), hasTokens = object.has("tokens"),
             hasMessages = object.has("messages");
  if (hasPrompt + hasTokens + hasMessages != 1)
    return asUsageError(object.fail(
        "prompt", "one of prompt, tokens and messages",
        hasPrompt || hasTokens || hasMessages ? "several" : "none"));
  for (const absl::string_view field : chatRequestFields)
    if (object.has(field) && !hasMessages)
      return asUsageError(object.fail(field, "messages beside it", "none"));
  const bool isText = hasPrompt && object.raw()["prompt"].is_string();
  if (!isText)
    LLAMAC_RETURN_IF_ERROR(checkNoTextOptions(object));
  if (hasTokens)
    return asUsageError(read(Member{object, "tokens", text}, &request.prompt));
  if (hasMessages) {
    LLAMAC_RETURN_IF_ERROR(chat.status());
    auto conversation = readChatRequest(object, text, **chat);
    if (!conversation.ok())
      return asUsageError(conversation.status());
    LLAMAC_ASSIGN_OR_RETURN(request.prompt,
                            (*chat)->prompt(std::move(conversation->inputs)));
    return absl::OkStatus();
  }
  const Member prompt{object, "prompt", text};
  if (prompt.value().is_array())
    return asUsageError(read(prompt, &request.prompt));
  if (!isText)
    return asUsageError(prompt.fail("a string or an array of token ids"));
  LLAMAC_ASSIGN_OR_RETURN(
      request.prompt, encode(prompt.value().get_ref<const std::string &>()));
  return absl::OkStatus();
}

/// A token, with its text where `tokenizer` is not null and has it.
static ordered_json logprobJson(const TokenLogprob &token,
                                const Tokenizer *tokenizer) {
  ordered_json one = {{"id", token.id}};
  if (tokenizer)
    one["token"] = std::string(tokenizer->tokenBytes(token.id).value_or(""));
  one["logprob"] = token.logprob;
  return one;
}

ordered_json logprobsJson(absl::Span<const TokenLogprobs> tokens,
                          const Tokenizer *tokenizer) {
  ordered_json list = ordered_json::array();
  for (const TokenLogprobs &token : tokens) {
    ordered_json one = logprobJson(token.chosen, tokenizer);
    one["rank"] = token.rank;
    one["top_logprobs"] = ordered_json::array();
    for (const TokenLogprob &other : token.alternatives)
      one["top_logprobs"].push_back(logprobJson(other, tokenizer));
    list.push_back(std::move(one));
  }
  return list;
}

absl::string_view finishReason(StopReason reason) {
  switch (reason) {
  case StopReason::StopId:
  case StopReason::StopString:
    return "stop";
  case StopReason::Length:
  case StopReason::Context:
  case StopReason::Deadline:
    return "length";
  case StopReason::Cancelled:
    return "abort";
  }
  return "";
}

} // namespace llamac
