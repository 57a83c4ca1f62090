//===- ApiRequest.cpp - Requests of OpenAI's interface --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/ApiRequest.h"

#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/base/Suggestion.h"
#include "runtime/base/Terminal.h"
#include "text/request/ChatMessages.h"
#include "text/request/ChatTurn.h"
#include "text/request/RequestJson.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace llamac::serve {

using nlohmann::json;

/// The size of a body, which the connection has limited already.
static constexpr JsonLimits bodyLimits = {.maxBytes = uint64_t{1} << 30};

absl::StatusOr<JsonDocument> readBody(absl::string_view text) {
  return parseJson("body", text, bodyLimits);
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

// The fields that this file reads beside conversationFields();
// requestOptions() has the others.
static constexpr absl::string_view commonFields[] = {
    "model", "stream", "stream_options", "logprobs", "user"};
static constexpr absl::string_view chatFields[] = {
    "top_logprobs", "safety_identifier", "prompt_cache_key", "service_tier",
    "store",        "metadata",          "modalities"};
static constexpr absl::string_view completionFields[] = {"prompt", "echo",
                                                         "best_of", "suffix"};

namespace {
/// A field of which one value alone is supported: what is done anyway.
struct FixedField {
  const char *name;
  bool (*isFixed)(const json &value);
  const char *expected;
};
} // namespace

static constexpr FixedField fixedFields[] = {
    {"store", [](const json &value) { return value == false; },
     "false, as nothing is stored"},
    {"metadata", [](const json &value) { return value == json::object(); },
     "none, as nothing is stored"},
    {"service_tier",
     [](const json &value) { return value == "auto" || value == "default"; },
     "auto or default"},
    {"modalities",
     [](const json &value) { return value == json::array({"text"}); },
     "[\"text\"]"},
    {"suffix", [](const json &value) { return value == json(""); },
     "none, as the model writes on behind the prompt"},
};

static absl::Status checkFixedFields(const JsonObject &object) {
  for (const FixedField &field : fixedFields)
    if (object.has(field.name) && !field.isFixed(object.raw()[field.name]))
      return object.wrongType(field.name, field.expected,
                              object.raw()[field.name]);
  for (const char *label : {"user", "safety_identifier", "prompt_cache_key"})
    LLAMAC_RETURN_IF_ERROR(object.optionalString(label).status());
  return absl::OkStatus();
}

absl::StatusOr<const ServedModel *> findModel(const ServedModels &models,
                                              absl::string_view name) {
  std::vector<std::string> names;
  for (const auto &model : models) {
    if (model->name() == name)
      return model.get();
    names.push_back(model->name());
  }
  return withReason(
      withField(absl::NotFoundError(
                    absl::StrCat("model: expected one that is served, got ",
                                 quoteForMessage(name), suggestion(name, names),
                                 "; GET /v1/models lists them")),
                "model"),
      "model_not_found");
}

absl::StatusOr<const ServedModel *> findModel(const ServedModels &models,
                                              const JsonObject &object) {
  LLAMAC_ASSIGN_OR_RETURN(const auto name, object.optionalString("model"));
  if (!name && models.size() == 1)
    return models.front().get();
  if (!name)
    return object.fail(
        "model", "the name of a model; GET /v1/models lists them", "none");
  return findModel(models, *name);
}

/// The fields `stream` and `stream_options`.
static absl::Status readStreaming(const JsonObject &object, ApiRequest &to) {
  LLAMAC_ASSIGN_OR_RETURN(const auto streams, object.optionalBool("stream"));
  to.streams = streams.value_or(false);
  LLAMAC_ASSIGN_OR_RETURN(const auto options,
                          object.optionalObject("stream_options"));
  if (!options)
    return absl::OkStatus();
  if (!to.streams)
    return object.fail("stream_options", "stream to be true beside it",
                       "false");
  for (const auto &[name, value] : options->raw().items())
    if (!value.is_null() && name != "include_usage" &&
        name != "continuous_usage_stats" &&
        !(name == "include_obfuscation" && value == false))
      return withField(options->fail(name.substr(0, 80),
                                     "include_usage or continuous_usage_stats",
                                     "another option"),
                       "stream_options");
  LLAMAC_ASSIGN_OR_RETURN(const auto includesUsage,
                          options->optionalBool("include_usage"));
  to.includesUsage = includesUsage.value_or(false);
  LLAMAC_ASSIGN_OR_RETURN(const auto countsUsage,
                          options->optionalBool("continuous_usage_stats"));
  to.countsUsage = to.includesUsage && countsUsage.value_or(false);
  return absl::OkStatus();
}

/// The most alternatives that OpenAI's interface gives.
static constexpr int64_t mostTopLogprobs = 20;

/// Sets what the fields of a chat say of logprobs.
static absl::Status readChatFields(const JsonObject &object, Request &request) {
  LLAMAC_ASSIGN_OR_RETURN(const auto wanted, object.optionalBool("logprobs"));
  LLAMAC_ASSIGN_OR_RETURN(const auto top, object.optionalInt("top_logprobs"));
  if (top && !wanted.value_or(false))
    return object.fail("top_logprobs", "logprobs to be true beside it",
                       "false");
  if (top && (*top < 0 || *top > mostTopLogprobs))
    return object.fail("top_logprobs", absl::StrCat("0 to ", mostTopLogprobs),
                       absl::StrCat(*top));
  if (wanted.value_or(false))
    request.options.sampling.logprobs = top.value_or(0);
  return absl::OkStatus();
}

/// Sets what the fields of a completion say beside the prompt.
static absl::Status readCompletionFields(const JsonObject &object,
                                         Request &request) {
  LLAMAC_ASSIGN_OR_RETURN(const auto logprobs, object.optionalInt("logprobs"));
  if (logprobs && (*logprobs < 0 || *logprobs > mostTopLogprobs))
    return object.fail("logprobs", absl::StrCat("0 to ", mostTopLogprobs),
                       absl::StrCat(*logprobs));
  request.options.sampling.logprobs = logprobs.value_or(-1);
  LLAMAC_ASSIGN_OR_RETURN(const auto bestOf, object.optionalInt("best_of"));
  if (bestOf && *bestOf != request.answers)
    return object.fail("best_of", "the same as n, as all answers are given",
                       absl::StrCat(*bestOf));
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Prompts
//===----------------------------------------------------------------------===//

/// `made`, whose error is about `field`.
static absl::StatusOr<std::vector<int32_t>>
inField(absl::StatusOr<std::vector<int32_t>> made, absl::string_view field) {
  return made.ok() ? std::move(made)
                   : withField(std::move(made).status(), field);
}

/// OpenAI's default for a completion.
static constexpr int64_t completionTokens = 16;

/// The field of `object` that asks for a grammar, if one does.
static absl::string_view grammarField(const JsonObject &object) {
  for (const absl::string_view field : {"json_schema", "regex", "grammar"})
    if (object.has(field))
      return field;
  return "response_format";
}

/// Sets what `object` says of the conversation, and of its tools.
static absl::Status readChat(const JsonObject &object, absl::string_view text,
                             ApiRequest &to, Request &request) {
  LLAMAC_ASSIGN_OR_RETURN(const ChatFormat *format, to.model->chat());
  const bool hasGrammar = request.grammar.has_value();
  LLAMAC_ASSIGN_OR_RETURN(
      to.calls,
      readConversation(object, text, *format, to.model->tokenizer(), request));
  if (request.grammar && !hasGrammar)
    to.grammarField = "tools";
  if (request.encoding.addBos)
    request.prompt = to.model->model().withBos(std::move(request.prompt));
  return absl::OkStatus();
}

namespace {
/// A prompt of a completion.
struct Prompt {
  std::vector<int32_t> ids;
  std::optional<std::string> text = {}; ///< The text that they were made from.
};
} // namespace

/// The prompts of a completion: text, ids, or a list of either.
static absl::StatusOr<std::vector<Prompt>> readPrompts(const JsonObject &object,
                                                       const ServedModel &model,
                                                       EncodeOptions encoding) {
  if (!object.has("prompt"))
    return object.fail("prompt", "a string, ids or an array of either", "none");
  const json &value = object.raw()["prompt"];
  const bool isList =
      value.is_array() && !value.empty() && !value.front().is_number();
  const size_t count = isList ? value.size() : 1;
  if (count > mostAnswers)
    return object.fail("prompt", absl::StrCat("at most ", mostAnswers),
                       absl::StrCat(count));
  std::vector<Prompt> prompts(count);
  bool hasText = false;
  for (size_t i = 0; i < count; ++i) {
    const json &one = isList ? value[i] : value;
    if (one.is_string()) {
      hasText = true;
      prompts[i].text = one.get<std::string>();
      LLAMAC_ASSIGN_OR_RETURN(
          prompts[i].ids,
          inField(model.model().encode(*prompts[i].text, encoding), "prompt"));
    } else {
      LLAMAC_ASSIGN_OR_RETURN(
          prompts[i].ids,
          readIds(object, "prompt", one, model.tokenizer().vocabSize()));
    }
  }
  if (!hasText)
    LLAMAC_RETURN_IF_ERROR(checkNoTextOptions(object));
  return prompts;
}

/// Fills `to` with a request for each prompt, like `request` in all else.
static absl::Status readCompletion(const JsonObject &object,
                                   const Request &request, ApiRequest &to) {
  LLAMAC_ASSIGN_OR_RETURN(const auto echo, object.optionalBool("echo"));
  if (echo.value_or(false) && request.options.sampling.logprobs >= 0)
    return object.fail("echo",
                       "no logprobs beside it, as there are none of "
                       "prompts",
                       "some");
  LLAMAC_ASSIGN_OR_RETURN(auto prompts,
                          readPrompts(object, *to.model, request.encoding));
  for (Prompt &prompt : prompts) {
    if (echo.value_or(false) && prompt.text) {
      to.echoes.push_back(*prompt.text);
    } else if (echo.value_or(false)) {
      // Without the token that begins sequences.
      absl::Span<const int32_t> shown = prompt.ids;
      if (!shown.empty() && to.model->tokenizer().isControl(shown.front()))
        shown.remove_prefix(1);
      LLAMAC_ASSIGN_OR_RETURN(
          to.echoes.emplace_back(),
          to.model->tokenizer().decode({shown.data(), shown.size()}));
    }
    Request &one = to.requests.emplace_back(request);
    one.prompt = std::move(prompt.ids);
    if (!object.has("max_tokens"))
      fitAnswer(one, to.model->model().context());
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

static absl::Status read(const JsonObject &object, absl::string_view text,
                         ApiRequest &to) {
  Request request;
  request.options.maxTokens = to.isChat ? -1 : completionTokens;
  request.encoding.addBos = !to.isChat;
  request.options.sampling =
      advisedSampling(to.model->model().plan().sampling.get());
  std::vector<absl::string_view> others(std::begin(commonFields),
                                        std::end(commonFields));
  const auto add = [&](absl::Span<const absl::string_view> fields) {
    others.insert(others.end(), fields.begin(), fields.end());
  };
  if (to.isChat) {
    if (object.has("prompt"))
      return object.fail("prompt", "messages in its place",
                         "what /v1/completions takes");
    add(chatFields);
    add(conversationFields());
  } else {
    if (object.has("messages"))
      return object.fail("messages", "prompt in its place",
                         "what /v1/chat/completions takes");
    add(completionFields);
  }
  LLAMAC_RETURN_IF_ERROR(readRequestFields(object, text, others, request));
  LLAMAC_RETURN_IF_ERROR(checkFixedFields(object));
  LLAMAC_RETURN_IF_ERROR(readStreaming(object, to));
  to.grammarField = std::string(grammarField(object));
  if (!to.isChat) {
    LLAMAC_RETURN_IF_ERROR(readCompletionFields(object, request));
    return readCompletion(object, request, to);
  }
  LLAMAC_RETURN_IF_ERROR(readChatFields(object, request));
  LLAMAC_RETURN_IF_ERROR(readChat(object, text, to, request));
  to.requests.push_back(std::move(request));
  return absl::OkStatus();
}

absl::Status
takeGrammar(ApiRequest &request,
            const absl::StatusOr<std::shared_ptr<const Grammar>> &compiled) {
  const std::string &field = request.grammarField;
  if (!compiled.ok())
    return withField(
        absl::StartsWith(compiled.status().message(), absl::StrCat(field, ": "))
            ? compiled.status()
            : withContext(compiled.status(), field),
        field);
  for (Request &one : request.requests)
    one.options.sampling.grammar = *compiled;
  return absl::OkStatus();
}

absl::StatusOr<ApiRequest> readApiRequest(const ServedModels &models,
                                          bool isChat, absl::string_view text) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document, readBody(text));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::root(document));
  ApiRequest to;
  to.isChat = isChat;
  LLAMAC_ASSIGN_OR_RETURN(to.model, findModel(models, object));
  LLAMAC_RETURN_IF_ERROR(read(object, text, to));
  return to;
}

absl::StatusOr<std::vector<int32_t>>
readTokenizeRequest(const ServedModel &model, const JsonObject &object,
                    absl::string_view text) {
  std::vector<absl::string_view> known = {"model", "prompt",
                                          "add_special_tokens", "parse_special",
                                          "add_generation_prompt"};
  known.insert(known.end(), std::begin(chatRequestFields),
               std::end(chatRequestFields));
  LLAMAC_RETURN_IF_ERROR(object.checkMembers(known));
  if (object.has("messages") == object.has("prompt"))
    return object.fail("prompt", "one of prompt and messages",
                       object.has("prompt") ? "both" : "neither");
  LLAMAC_ASSIGN_OR_RETURN(const auto addBos,
                          object.optionalBool("add_special_tokens"));
  if (object.has("messages")) {
    if (object.has("parse_special"))
      return object.fail("parse_special", "a prompt of text beside it",
                         "a conversation");
    LLAMAC_ASSIGN_OR_RETURN(const ChatFormat *format, model.chat());
    LLAMAC_ASSIGN_OR_RETURN(ChatRequest chat,
                            readChatRequest(object, text, *format));
    LLAMAC_ASSIGN_OR_RETURN(const auto prompts,
                            object.optionalBool("add_generation_prompt"));
    chat.inputs.addGenerationPrompt = prompts.value_or(true);
    LLAMAC_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                            format->prompt(std::move(chat.inputs)));
    return addBos.value_or(false) ? model.model().withBos(std::move(ids)) : ids;
  }
  LLAMAC_ASSIGN_OR_RETURN(const auto prompt, object.optionalString("prompt"));
  LLAMAC_ASSIGN_OR_RETURN(const auto special,
                          object.optionalBool("parse_special"));
  return model.model().encode(*prompt, {.special = special.value_or(true),
                                        .addBos = addBos.value_or(true)});
}

absl::StatusOr<std::vector<int32_t>>
readDetokenizeRequest(const ServedModel &model, const JsonObject &object) {
  LLAMAC_RETURN_IF_ERROR(object.checkMembers({{"model", "tokens"}}));
  if (!object.has("tokens"))
    return object.fail("tokens", "ids", "none");
  return readIds(object, "tokens", object.raw()["tokens"],
                 model.tokenizer().vocabSize());
}

} // namespace llamac::serve
