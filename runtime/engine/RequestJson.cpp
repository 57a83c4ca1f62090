//===- RequestJson.cpp - Requests as JSON has them ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/RequestJson.h"

#include "runtime/base/Status.h"
#include "runtime/base/Suggestion.h"
#include "runtime/base/Terminal.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>

namespace llamac {

using nlohmann::json;

/// Answers that one request may ask for.
static constexpr int64_t mostAnswers = 1024;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {

/// A member of an object that is not null.
struct Member {
  const JsonObject &object;
  absl::string_view name;
  const RequestContext &context;

  const json &value() const { return object.raw()[std::string(name)]; }

  absl::Status fail(absl::string_view expected) const {
    return object.wrongType(name, expected, value());
  }
};

} // namespace

static absl::Status read(const Member &member, double &to) {
  LLAMAC_ASSIGN_OR_RETURN(const auto value,
                          member.object.optionalNumber(member.name));
  to = value.value_or(to);
  return absl::OkStatus();
}

static absl::Status read(const Member &member, int64_t &to) {
  LLAMAC_ASSIGN_OR_RETURN(const auto value,
                          member.object.optionalInt(member.name));
  to = value.value_or(to);
  return absl::OkStatus();
}

/// A whole number from `least` to `most`.
static absl::Status read(const Member &member, int &to, int64_t least,
                         int64_t most) {
  int64_t value = to;
  LLAMAC_RETURN_IF_ERROR(read(member, value));
  if (value < least || value > most)
    return member.fail(absl::StrCat(least, " to ", most));
  to = static_cast<int>(value);
  return absl::OkStatus();
}

static absl::Status readSeed(const Member &member,
                             std::optional<uint64_t> &to) {
  const json &value = member.value();
  if (value.is_number_unsigned()) {
    to = value.get<uint64_t>();
    return absl::OkStatus();
  }
  int64_t seed = 0;
  LLAMAC_RETURN_IF_ERROR(read(member, seed));
  if (seed < 0)
    return member.fail("0 or more");
  to = static_cast<uint64_t>(seed);
  return absl::OkStatus();
}

static absl::Status readIds(const Member &member, std::vector<int32_t> &to) {
  const json &value = member.value();
  if (!value.is_array())
    return member.fail("an array of token ids");
  to.clear();
  to.reserve(value.size());
  for (const json &item : value) {
    if (!item.is_number_integer() || item.get<int64_t>() < 0 ||
        item.get<int64_t>() > std::numeric_limits<int32_t>::max())
      return member.object.wrongType(member.name, "an array of token ids",
                                     item);
    to.push_back(item.get<int32_t>());
  }
  return absl::OkStatus();
}

static absl::Status readStop(const Member &member,
                             std::vector<std::string> &to) {
  const json &value = member.value();
  if (value.is_string()) {
    to = {value.get<std::string>()};
  } else if (value.is_array()) {
    LLAMAC_ASSIGN_OR_RETURN(to, member.object.strings(member.name));
  } else {
    return member.fail("a string or an array of strings");
  }
  if (std::ranges::find(to, "") != to.end())
    return member.object.fail(member.name, "texts that are not empty",
                              "an empty one");
  return absl::OkStatus();
}

static absl::Status readLogitBias(const Member &member,
                                  std::vector<std::pair<int32_t, float>> &to) {
  const json &value = member.value();
  if (!value.is_object())
    return member.fail("an object of token ids and numbers");
  to.clear();
  to.reserve(value.size());
  for (const auto &[key, bias] : value.items()) {
    int32_t id = 0;
    if (!absl::SimpleAtoi(key, &id) || !bias.is_number())
      return member.object.fail(
          member.name, "an object of token ids and numbers",
          absl::StrCat(quoteForMessage(key), " with ", bias.type_name()));
    to.emplace_back(id, bias.get<float>());
  }
  return absl::OkStatus();
}

static absl::Status readString(const Member &member, std::string &to) {
  LLAMAC_ASSIGN_OR_RETURN(const auto value,
                          member.object.optionalString(member.name));
  to = value.value_or("");
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Grammars
//===----------------------------------------------------------------------===//

/// Makes answers match `source`, which `member` has.
static absl::Status setGrammar(const Member &member,
                               const GrammarSource &source, Request &request) {
  if (request.options.sampling.grammar)
    return member.object.fail(
        member.name, "one of grammar, json_schema, regex and response_format",
        "several");
  if (!member.context.grammars)
    return member.object.fail(member.name, "a model with a tokenizer",
                              "one without");
  LLAMAC_ASSIGN_OR_RETURN(request.options.sampling.grammar,
                          member.context.grammars->compile(source));
  return absl::OkStatus();
}

template <GrammarSource::Kind kind>
static absl::Status readGrammar(const Member &member, Request &request) {
  GrammarSource source{kind, ""};
  LLAMAC_RETURN_IF_ERROR(readString(member, source.text));
  return setGrammar(member, source, request);
}

/// A schema as an object.
static absl::Status readSchema(const Member &member, Request &request) {
  if (!member.value().is_object() && !member.value().is_boolean())
    return member.fail("a JSON schema");
  return setGrammar(member,
                    {GrammarSource::JsonSchema,
                     member.object.textOf(member.name, member.context.text)},
                    request);
}

/// Error for a member of `object` that is not one of `names`.
static absl::Status
checkMembers(const JsonObject &object,
             std::initializer_list<absl::string_view> names) {
  for (const auto &[name, value] : object.raw().items())
    if (std::ranges::find(names, name) == names.end())
      return object.fail(name.substr(0, 80), "a known field", "an unknown one");
  return absl::OkStatus();
}

/// OpenAI's response_format.
static absl::Status readResponseFormat(const Member &member, Request &request) {
  LLAMAC_ASSIGN_OR_RETURN(const auto format,
                          member.object.optionalObject(member.name));
  LLAMAC_RETURN_IF_ERROR(checkMembers(*format, {"type", "json_schema"}));
  LLAMAC_ASSIGN_OR_RETURN(const auto type, format->optionalString("type"));
  if (format->has("json_schema") != (type == "json_schema"))
    return format->fail("json_schema", "with the type json_schema alone",
                        type.value_or("none").substr(0, 80));
  if (type == "text")
    return absl::OkStatus();
  if (type == "json_object")
    return setGrammar(member, {GrammarSource::JsonObject, ""}, request);
  if (type != "json_schema")
    return format->fail("type", "text, json_object or json_schema",
                        quoteForMessage(type.value_or("")));
  LLAMAC_ASSIGN_OR_RETURN(const auto named,
                          format->optionalObject("json_schema"));
  // A schema is always followed, which is what "strict" asks for.
  LLAMAC_RETURN_IF_ERROR(
      checkMembers(*named, {"name", "description", "strict", "schema"}));
  if (!named->has("schema"))
    return named->fail("schema", "a JSON schema", "none");
  return readSchema({*named, "schema", member.context}, request);
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// A field whose value is that of an option of sampling.
template <auto option>
static absl::Status sampling(const Member &member, Request &request) {
  return read(member, request.options.sampling.*option);
}

namespace {

struct Field {
  absl::string_view name;
  absl::Status (*read)(const Member &member, Request &request);
};

} // namespace

static constexpr Field fields[] = {
    {"frequency_penalty", sampling<&SamplingOptions::frequencyPenalty>},
    {"grammar", readGrammar<GrammarSource::Ebnf>},
    {"ignore_eos",
     [](const Member &member, Request &request) -> absl::Status {
       LLAMAC_ASSIGN_OR_RETURN(const auto ignores,
                               member.object.optionalBool(member.name));
       request.options.stopAtStopIds = !ignores.value_or(false);
       return absl::OkStatus();
     }},
    {"json_schema", readSchema},
    {"logit_bias",
     [](const Member &member, Request &request) {
       return readLogitBias(member, request.options.sampling.logitBias);
     }},
    {"logprobs", sampling<&SamplingOptions::logprobs>},
    {"max_tokens",
     [](const Member &member, Request &request) {
       return read(member, request.options.maxTokens);
     }},
    {"min_p", sampling<&SamplingOptions::minP>},
    {"min_tokens", sampling<&SamplingOptions::minTokens>},
    {"n",
     [](const Member &member, Request &request) {
       return read(member, request.answers, 1, mostAnswers);
     }},
    {"presence_penalty", sampling<&SamplingOptions::presencePenalty>},
    {"priority",
     [](const Member &member, Request &request) {
       return read(member, request.priority, std::numeric_limits<int>::min(),
                   std::numeric_limits<int>::max());
     }},
    {"regex", readGrammar<GrammarSource::Regex>},
    {"repetition_penalty", sampling<&SamplingOptions::repetitionPenalty>},
    {"response_format", readResponseFormat},
    {"seed",
     [](const Member &member, Request &request) {
       return readSeed(member, request.options.sampling.seed);
     }},
    {"stop",
     [](const Member &member, Request &request) {
       return readStop(member, request.options.stopStrings);
     }},
    {"stop_token_ids",
     [](const Member &member, Request &request) {
       return readIds(member, request.options.stopIds);
     }},
    {"temperature", sampling<&SamplingOptions::temperature>},
    {"top_k",
     [](const Member &member, Request &request) {
       int64_t &to = request.options.sampling.topK;
       const absl::Status status = read(member, to);
       to = to == -1 ? 0 : to; // As vLLM has it: all.
       return status;
     }},
    {"top_p", sampling<&SamplingOptions::topP>},
};

/// `status`, which is an error of a file's, as one of a request's.
static absl::Status asUsage(const absl::Status &status) {
  return status.ok() ? status : usageError(status.message());
}

absl::Status readRequestFields(const JsonObject &object,
                               const RequestContext &context,
                               Request &request) {
  const absl::Span<const absl::string_view> others = context.others;
  for (const auto &[name, value] : object.raw().items()) {
    const auto *field = std::ranges::find(fields, name, &Field::name);
    if (field == std::end(fields) &&
        std::ranges::find(others, name) == others.end()) {
      std::vector<std::string> known(others.begin(), others.end());
      for (const absl::string_view own : requestFieldNames())
        known.emplace_back(own);
      return asUsage(
          object.fail(name.substr(0, 80), "a field of a request",
                      absl::StrCat("an unknown one", suggestion(name, known))));
    }
    if (field != std::end(fields) && !value.is_null())
      LLAMAC_RETURN_IF_ERROR(
          asUsage(field->read({object, field->name, context}, request)));
  }
  return absl::OkStatus();
}

std::vector<absl::string_view> requestFieldNames() {
  std::vector<absl::string_view> names;
  for (const Field &field : fields)
    names.push_back(field.name);
  return names;
}

absl::Status readPrompt(const JsonObject &object, PromptEncoder encode,
                        Request &request) {
  const bool hasPrompt = object.has("prompt"), hasTokens = object.has("tokens");
  if (hasPrompt == hasTokens)
    return asUsage(object.fail(hasPrompt ? "tokens" : "prompt",
                               "one of prompt and tokens",
                               hasPrompt ? "both" : "neither"));
  const RequestContext none;
  const Member member{object, hasPrompt ? "prompt" : "tokens", none};
  if (!member.value().is_string() || !hasPrompt)
    return member.value().is_array() || !hasPrompt
               ? asUsage(readIds(member, request.prompt))
               : asUsage(member.fail("a string or an array of token ids"));
  LLAMAC_ASSIGN_OR_RETURN(
      request.prompt, encode(member.value().get_ref<const std::string &>()));
  return absl::OkStatus();
}

absl::string_view finishReason(StopReason reason) {
  switch (reason) {
  case StopReason::StopId:
  case StopReason::StopString:
    return "stop";
  case StopReason::Length:
  case StopReason::Context:
    return "length";
  case StopReason::Cancelled:
  case StopReason::Deadline:
    return "abort";
  }
  return "";
}

} // namespace llamac
