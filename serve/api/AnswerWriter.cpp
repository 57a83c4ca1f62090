//===- AnswerWriter.cpp - Answers of OpenAI's interface -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/AnswerWriter.h"

#include "runtime/io/JsonText.h"
#include "text/request/RequestJson.h"

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

namespace llamac::serve {

using Json = nlohmann::ordered_json;

std::string randomId(absl::string_view prefix) {
  static constexpr absl::string_view letters =
      "abcdefghijklmnopqrstuvwxyz0123456789";
  thread_local absl::BitGen random;
  std::string id(prefix);
  for (int i = 0; i < 24; ++i)
    id += letters[absl::Uniform<size_t>(random, 0, letters.size())];
  return id;
}

//===----------------------------------------------------------------------===//
// Logprobs
//===----------------------------------------------------------------------===//

std::vector<TokenTexts::Entry> TokenTexts::take(const AnswerPart &part) {
  for (size_t i = 0; i < part.logprobs.size(); ++i)
    waiting.push_back({textOf(part.tokens[i]), part.logprobs[i]});
  given += part.textBytes;
  std::vector<Entry> complete;
  while (!waiting.empty() && waiting.front().text.size() <= given) {
    given -= waiting.front().text.size();
    complete.push_back(std::move(waiting.front()));
    waiting.pop_front();
  }
  if (part.end && given > 0 && !waiting.empty()) {
    waiting.front().text.resize(given);
    complete.push_back(std::move(waiting.front()));
  }
  return complete;
}

/// JSON knows no infinity; OpenAI's interface has this for what is impossible.
static double finite(float logprob) {
  return std::max(static_cast<double>(logprob), -9999.0);
}

/// `text` as JSON has it, where bytes that are not UTF-8 are U+FFFD: texts that
/// differ there alone are one key of an object.
static std::string jsonString(absl::string_view text) {
  return Json::parse(jsonText(Json(text))).get<std::string>();
}

/// The top logprobs of a completion at a token of text `text`: the best logprob
/// of each text among the alternatives, best first, and the token that was
/// chosen.
static Json topLogprobs(const TokenTexts &tokens, absl::string_view text,
                        const TokenLogprobs &logprobs) {
  Json top = Json::object();
  for (const TokenLogprob &other : logprobs.alternatives)
    top.emplace(jsonString(other.id == logprobs.chosen.id
                               ? std::string(text)
                               : tokens.textOf(other.id)),
                finite(other.logprob));
  top.emplace(jsonString(text), finite(logprobs.chosen.logprob));
  return top;
}

/// A token of a chat's logprobs.
static Json chatLogprob(std::string text, float logprob) {
  Json bytes = Json::array();
  for (const char byte : text)
    bytes.push_back(static_cast<uint8_t>(byte));
  return {{"token", std::move(text)},
          {"logprob", finite(logprob)},
          {"bytes", std::move(bytes)}};
}

static size_t countCharacters(absl::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

Json AnswerWriter::logprobsOf(Choice &choice, const AnswerPart &part) const {
  if (!choice.tokens)
    return nullptr;
  Json lists = request->isChat
                   ? Json{{"content", Json::array()}, {"refusal", nullptr}}
                   : Json{{"tokens", Json::array()},
                          {"token_logprobs", Json::array()},
                          {"top_logprobs", Json::array()},
                          {"text_offset", Json::array()}};
  for (TokenTexts::Entry &entry : choice.tokens->take(part)) {
    const TokenLogprobs &logprobs = entry.logprobs;
    if (request->isChat) {
      Json one = chatLogprob(std::move(entry.text), logprobs.chosen.logprob);
      one["top_logprobs"] = Json::array();
      for (const TokenLogprob &other : logprobs.alternatives)
        one["top_logprobs"].push_back(
            chatLogprob(choice.tokens->textOf(other.id), other.logprob));
      lists["content"].push_back(std::move(one));
      continue;
    }
    lists["top_logprobs"].push_back(
        topLogprobs(*choice.tokens, entry.text, logprobs));
    lists["text_offset"].push_back(choice.offset);
    choice.offset += countCharacters(entry.text);
    lists["tokens"].push_back(std::move(entry.text));
    lists["token_logprobs"].push_back(finite(logprobs.chosen.logprob));
  }
  return lists;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

AnswerWriter::AnswerWriter(const ApiRequest &request)
    : request(&request), id(randomId(request.isChat ? "chatcmpl-" : "cmpl-")),
      created(std::time(nullptr)) {
  for (size_t prompt = 0; prompt < request.requests.size(); ++prompt) {
    used.promptTokens +=
        static_cast<int64_t>(request.requests[prompt].prompt.size());
    for (int i = 0; i < request.requests[prompt].answers; ++i) {
      Choice &choice = choices.emplace_back(AnswerReader(request.calls));
      if (request.wantsLogprobs())
        choice.tokens.emplace(request.model->tokenizer(),
                              request.requests[prompt].options.namedControls);
      if (!request.echoes.empty()) {
        choice.text = request.echoes[prompt];
        choice.offset = countCharacters(choice.text);
      }
    }
  }
}

/// Adds `delta` to what `choice` has.
void AnswerWriter::add(Choice &choice, const Delta &delta) const {
  choice.text += delta.content;
  for (const ToolCallPart &part : delta.calls) {
    if (part.call == static_cast<int>(choice.calls.size()))
      choice.calls.push_back({randomId("call_"), part.name, ""});
    choice.calls.back().arguments += part.arguments;
  }
  if (delta.logprobs.is_null())
    return;
  if (choice.logprobs.is_null()) {
    choice.logprobs = delta.logprobs;
    return;
  }
  for (const auto &[name, list] : delta.logprobs.items())
    for (const Json &one : list)
      choice.logprobs[name].push_back(one);
}

std::string AnswerWriter::take(size_t prompt, AnswerPart part) {
  size_t index = static_cast<size_t>(part.answer);
  for (size_t before = 0; before < prompt; ++before)
    index += static_cast<size_t>(request->requests[before].answers);
  Choice &choice = choices[index];
  const Delta delta{choice.reader.take(part), logprobsOf(choice, part)};
  add(choice, delta);
  const auto tokens = static_cast<int64_t>(part.tokens.size());
  choice.answerTokens += tokens;
  used.answerTokens += tokens;
  if (part.end) {
    choice.finishReason =
        std::string(choice.reader.finishReason(part.end->reason));
    // It counts what parts do not bring, such as a stop id.
    used.answerTokens += part.end->answerTokens - choice.answerTokens;
    if (part.answer == 0)
      used.cachedTokens += part.end->cachedTokens;
  }
  return request->streams ? events(index, choice, delta, part.end.has_value())
                          : "";
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

Json AnswerWriter::envelope(const char *object) const {
  return {{"id", id},
          {"object", object},
          {"created", created},
          {"model", request->model->name()},
          {"system_fingerprint", request->model->fingerprint()}};
}

Json AnswerWriter::usageJson() const {
  return {{"prompt_tokens", used.promptTokens},
          {"completion_tokens", used.answerTokens},
          {"total_tokens", used.promptTokens + used.answerTokens},
          {"prompt_tokens_details", {{"cached_tokens", used.cachedTokens}}}};
}

/// One event of a stream; `delta` is the text of a completion.
std::string AnswerWriter::event(size_t index, Json delta, Json logprobs,
                                const std::string *finishReason) const {
  Json choice = {{"index", index},
                 {request->isChat ? "delta" : "text", std::move(delta)},
                 {"logprobs", std::move(logprobs)},
                 {"finish_reason", nullptr}};
  if (finishReason)
    choice["finish_reason"] = *finishReason;
  Json chunk =
      envelope(request->isChat ? "chat.completion.chunk" : "text_completion");
  chunk["choices"] = Json::array({std::move(choice)});
  if (request->includesUsage)
    chunk["usage"] = request->countsUsage ? usageJson() : Json();
  return absl::StrCat("data: ", jsonText(chunk), "\n\n");
}

std::string AnswerWriter::events(size_t index, Choice &choice,
                                 const Delta &delta, bool isEnd) const {
  std::string text;
  const auto add = [&](Json part, Json logprobs = nullptr) {
    text += event(index, std::move(part), std::move(logprobs), nullptr);
  };
  const bool hasLogprobs =
      !delta.logprobs.is_null() && !delta.logprobs.front().empty();
  const bool isFirst = !std::exchange(choice.begun, true);
  if (!request->isChat) {
    if (isFirst && !request->echoes.empty())
      add(choice.text.substr(0, choice.text.size() - delta.content.size()));
    if (!delta.content.empty() || hasLogprobs)
      add(delta.content, hasLogprobs ? delta.logprobs : nullptr);
    if (isEnd)
      text += event(index, "", nullptr, &choice.finishReason);
    return text;
  }
  if (isFirst)
    add({{"role", "assistant"}, {"content", ""}});
  if (!delta.content.empty() || (hasLogprobs && delta.calls.empty()))
    add({{"content", delta.content}}, hasLogprobs ? delta.logprobs : nullptr);
  for (const ToolCallPart &part : delta.calls) {
    Json call = {{"index", part.call}};
    if (!part.name.empty())
      call.update({{"id", choice.calls[static_cast<size_t>(part.call)].id},
                   {"type", "function"}});
    call["function"] = Json::object();
    if (!part.name.empty())
      call["function"]["name"] = part.name;
    call["function"]["arguments"] = part.arguments;
    add({{"tool_calls", Json::array({std::move(call)})}},
        hasLogprobs && delta.content.empty() && &part == &delta.calls.front()
            ? delta.logprobs
            : nullptr);
  }
  if (isEnd)
    text += event(index, Json::object(), nullptr, &choice.finishReason);
  return text;
}

std::string AnswerWriter::streamEnd() const {
  std::string text;
  if (request->includesUsage) {
    Json chunk =
        envelope(request->isChat ? "chat.completion.chunk" : "text_completion");
    chunk["choices"] = Json::array();
    chunk["usage"] = usageJson();
    text = absl::StrCat("data: ", jsonText(chunk), "\n\n");
  }
  return text + "data: [DONE]\n\n";
}

std::string AnswerWriter::whole() const {
  Json answer =
      envelope(request->isChat ? "chat.completion" : "text_completion");
  answer["choices"] = Json::array();
  for (size_t i = 0; i < choices.size(); ++i) {
    const Choice &choice = choices[i];
    Json one = {{"index", i}};
    if (request->isChat) {
      Json message = {{"role", "assistant"},
                      {"content", choice.text},
                      {"refusal", nullptr}};
      if (!choice.calls.empty()) {
        if (choice.text.empty())
          message["content"] = nullptr;
        message["tool_calls"] = Json::array();
        for (const Call &call : choice.calls)
          message["tool_calls"].push_back(
              {{"id", call.id},
               {"type", "function"},
               {"function",
                {{"name", call.name}, {"arguments", call.arguments}}}});
      }
      one["message"] = std::move(message);
    } else {
      one["text"] = choice.text;
    }
    one["logprobs"] = choice.logprobs;
    one["finish_reason"] = choice.finishReason;
    answer["choices"].push_back(std::move(one));
  }
  answer["usage"] = usageJson();
  return jsonText(answer);
}

} // namespace llamac::serve
