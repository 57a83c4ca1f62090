//===- RequestJsonTest.cpp - Requests as JSON has them --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/RequestJson.h"

#include "runtime/base/Status.h"
#include "tests/frontends/tokenizer/TokenizerFixtures.h"
#include "text/request/ChatFormat.h"
#include "text/request/RequestOptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

/// The request that `text` is, over defaults that no field has.
absl::StatusOr<Request> requestOf(const std::string &text) {
  const auto document = parseJson("request", text);
  if (!document.ok())
    return document.status();
  const auto object = JsonObject::root(*document);
  if (!object.ok())
    return object.status();
  Request request;
  request.options.maxTokens = 77;
  request.options.sampling.temperature = 0.25;
  if (absl::Status status = readRequestFields(*object, text, {"id"}, request);
      !status.ok())
    return status;
  return request;
}

TEST(RequestJson, AbsentFieldsLeaveTheDefaults) {
  for (const char *text :
       {"{}", R"({"id": 3})", R"({"max_tokens": null, "temperature": null})",
        R"({"stream": null, "not_yet_known": null})"}) {
    const auto request = requestOf(text);
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(request->options.maxTokens, 77);
    EXPECT_EQ(request->options.sampling.temperature, 0.25);
    EXPECT_EQ(request->answers, 1);
    EXPECT_TRUE(request->options.stopAtStopIds);
  }
}

TEST(RequestJson, EveryFieldHasItsPlace) {
  // One member for each field, checked against the list itself.
  const std::string text = R"({
    "add_special_tokens": false, "parse_special": false,
    "detokenize": false, "frequency_penalty": -1.5, "ignore_eos": true,
    "logit_bias": {"5": -100, "7": 2.5}, "logprobs": 3, "max_tokens": 9,
    "min_p": 0.125, "min_tokens": 2, "n": 4, "presence_penalty": 1.25,
    "priority": -6, "repetition_penalty": 1.5, "seed": 18446744073709551615,
    "speculative": 7, "stop": ["a", "bc"], "stop_token_ids": [0, 12], "temperature": 0.75,
    "time_limit": 2.5, "top_k": 40, "top_p": 0.5})";
  const auto request = requestOf(text);
  ASSERT_TRUE(request.ok()) << request.status();
  const SamplingOptions &sampling = request->options.sampling;
  EXPECT_EQ(sampling.frequencyPenalty, -1.5);
  EXPECT_FALSE(request->options.stopAtStopIds);
  EXPECT_THAT(sampling.logitBias, ElementsAre(Pair(5, -100), Pair(7, 2.5)));
  EXPECT_EQ(sampling.logprobs, 3);
  EXPECT_EQ(request->options.maxTokens, 9);
  EXPECT_EQ(sampling.minP, 0.125);
  EXPECT_EQ(sampling.minTokens, 2);
  EXPECT_EQ(request->answers, 4);
  EXPECT_EQ(sampling.presencePenalty, 1.25);
  EXPECT_EQ(request->priority, -6);
  EXPECT_EQ(sampling.repetitionPenalty, 1.5);
  EXPECT_EQ(sampling.seed, UINT64_MAX);
  EXPECT_EQ(request->speculative, 7);
  EXPECT_THAT(request->options.stopStrings, ElementsAre("a", "bc"));
  EXPECT_THAT(request->options.stopIds, ElementsAre(0, 12));
  EXPECT_EQ(sampling.temperature, 0.75);
  EXPECT_EQ(sampling.topK, 40);
  EXPECT_EQ(sampling.topP, 0.5);
  EXPECT_EQ(request->timeLimit, 2.5);
  EXPECT_FALSE(request->wantsText);
  EXPECT_FALSE(request->encoding.addBos);
  EXPECT_FALSE(request->encoding.special);

  const auto document = *parseJson("request", text);
  std::set<std::string> tried = {"grammar", "json_object", "json_schema",
                                 "regex"}; // Below.
  for (const auto &[name, value] : document.root().items())
    tried.insert(name);
  for (const NamedOption<Request> &option : requestOptions())
    EXPECT_TRUE(tried.contains(option.name)) << option.name;
}

TEST(RequestJson, OneStopIsAStopOfItsOwn) {
  EXPECT_THAT(requestOf(R"({"stop": "end"})")->options.stopStrings,
              ElementsAre("end"));
  EXPECT_THAT(requestOf(R"({"stop": []})")->options.stopStrings, IsEmpty());
}

TEST(RequestJson, WholeNumbersMayBeWrittenAsFractions) {
  EXPECT_EQ(requestOf(R"({"max_tokens": 5.0})")->options.maxTokens, 5);
  EXPECT_EQ(requestOf(R"({"seed": 5.0})")->options.sampling.seed, 5);
  EXPECT_EQ(requestOf(R"({"seed": -1})")->options.sampling.seed, UINT64_MAX);
  EXPECT_EQ(
      requestOf(R"({"seed": -9223372036854775808})")->options.sampling.seed,
      uint64_t{1} << 63);
}

TEST(RequestJson, EveryGrammarHasItsKind) {
  const std::string schema = R"({"b": true, "a": [1,  2]})";
  const GrammarSource ofSchema = {GrammarSource::JsonSchema, schema};
  const GrammarSource ofObject = {GrammarSource::JsonObject, ""};
  for (const auto &[text, expected] : {
           std::pair(R"({"json_schema": )" + schema + "}", ofSchema),
           std::pair(R"({"json_schema":)" + schema + R"( , "n": 2})", ofSchema),
           std::pair(R"({"response_format": {"type": "json_schema",
                        "json_schema": {"name": "x", "strict": true,
                                        "schema": )" +
                         schema + "}}}",
                     ofSchema),
           std::pair(std::string(R"({"json_object": true})"), ofObject),
           std::pair(
               std::string(R"({"response_format": {"type": "json_object"}})"),
               ofObject),
           std::pair(std::string(R"({"regex": "[a-z]+"})"),
                     GrammarSource{GrammarSource::Regex, "[a-z]+"}),
           std::pair(std::string(R"({"grammar": "root ::= \"a\""})"),
                     GrammarSource{GrammarSource::Ebnf, "root ::= \"a\""}),
       }) {
    const auto request = requestOf(text);
    ASSERT_TRUE(request.ok()) << text << ": " << request.status();
    EXPECT_TRUE(request->grammar == expected) << text;
  }
  for (const char *text : {R"({"response_format": {"type": "text"}})",
                           R"({"json_object": false})", "{}"})
    EXPECT_FALSE(requestOf(text)->grammar) << text;
}

struct Wrong {
  const char *text, *message;
};

class RequestJsonRefuses : public testing::TestWithParam<Wrong> {};

TEST_P(RequestJsonRefuses, Field) {
  const absl::Status status = requestOf(GetParam().text).status();
  EXPECT_EQ(exitCode(status), ExitCode::Usage) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    RequestJson, RequestJsonRefuses,
    testing::Values(
        Wrong{R"({"temprature": 1})",
              "request:1:2: temprature: expected a field of a request, got an "
              "unknown one; did you mean temperature?"},
        Wrong{R"({"repeat_penalty": 1.1})",
              "unknown one; did you mean repetition_penalty?"},
        Wrong{R"({"guided_json": {}})",
              "unknown one; did you mean json_schema?"},
        Wrong{R"({"stream": false})", "stream: expected a field of a request"},
        Wrong{R"({"frequency_penalty": "1"})", "frequency_penalty: expected a"},
        Wrong{R"({"grammar": 7})", "grammar: expected a string"},
        Wrong{R"({"ignore_eos": 1})", "ignore_eos: expected true or false"},
        Wrong{R"({"logit_bias": [1]})", "logit_bias: expected an object"},
        Wrong{R"({"logit_bias": {"x": 1}})", "got \"x\" with number"},
        Wrong{R"({"logit_bias": {"1": "2"}})", "got \"1\" with string"},
        Wrong{R"({"logprobs": true})", "logprobs: expected an integer"},
        Wrong{R"({"max_tokens": 1.5})", "max_tokens: expected an integer"},
        Wrong{R"({"max_tokens": 1e30})", "max_tokens: expected an integer"},
        Wrong{R"({"min_p": []})", "min_p: expected a finite number"},
        Wrong{R"({"min_tokens": "a"})", "min_tokens: expected an integer"},
        Wrong{R"({"json_schema": "{}"})", "a JSON schema, got \"{}\""},
        Wrong{R"({"n": 2147483648})", "n: expected -2147483648 to 2147483647"},
        Wrong{R"({"presence_penalty": {}})", "presence_penalty: expected a"},
        Wrong{R"({"priority": 2147483648})", "priority: expected -2147483648"},
        Wrong{R"({"repetition_penalty": false})", "repetition_penalty: expect"},
        Wrong{R"({"regex": 5})", "regex: expected a string"},
        Wrong{R"({"response_format": "json_object"})",
              "response_format: expected an object"},
        Wrong{R"({"regex": "a", "grammar": "root ::= \"a\""})",
              "regex: expected the only grammar"},
        Wrong{R"({"response_format": {"type": "xml"}})",
              "text, json_object or json_schema, got \"xml\""},
        Wrong{R"({"response_format": {"type": "json_schema"}})",
              "json_schema: expected"},
        Wrong{R"({"response_format": {"type": "text", "of": 1}})",
              "of: expected one of"},
        Wrong{R"({"seed": 18446744073709551616})", "seed: expected an integer"},
        Wrong{R"({"seed": -9223372036854775809})", "seed: expected an integer"},
        Wrong{R"({"seed": "1"})", "seed: expected an integer"},
        Wrong{R"({"stop": 1})", "stop: expected a string or an array of"},
        Wrong{R"({"stop": ["a", 1]})", "stop: expected an array of strings"},
        Wrong{R"({"stop_token_ids": 1})", "stop_token_ids: expected an array"},
        Wrong{R"({"stop_token_ids": [-1]})", "of token ids, got -1"},
        Wrong{R"({"temperature": "hot"})",
              "temperature: expected a finite number, got \"hot\""},
        Wrong{R"({"top_k": 0.5})", "top_k: expected an integer, got 0.5"},
        Wrong{R"({"top_p": "x"})", "top_p: expected a finite number"}));

/// The temperature of a request with the fields of `text`, over a model that
/// advises `advised`.
double temperatureOf(const std::string &text, double advised = 0) {
  const auto document = *parseJson("request", text);
  Request request;
  request.options.sampling.temperature = advised;
  EXPECT_TRUE(
      readRequestFields(*JsonObject::root(document), text, {}, request).ok());
  return request.options.sampling.temperature;
}

TEST(RequestFields, WhatOnlyDrawnAnswersHaveDraws) {
  for (const char *text :
       {R"({"seed": 3})", R"({"top_p": 0.9})", R"({"top_k": 4})",
        R"({"min_p": 0.1})", R"({"n": 2})"}) {
    EXPECT_EQ(temperatureOf(text), 1) << text;
    EXPECT_EQ(temperatureOf(text, 0.6), 0.6) << text;
  }
  EXPECT_EQ(temperatureOf(R"({"seed": 3, "temperature": 0})"), 0);
  EXPECT_EQ(temperatureOf(R"({"temperature": 0.5, "top_p": 0.9})"), 0.5);
  EXPECT_EQ(temperatureOf(R"({"n": 1, "seed": null, "max_tokens": 4})"), 0);
}

/// Writes messages, tools and what else `templateText` has of a conversation.
const absl::StatusOr<std::unique_ptr<const ChatFormat>> &chatFormat() {
  static const auto tokenizer =
      test::load(buildGgufBlob(test::GgufFixture().vocabulary()));
  static const auto format = ChatFormat::create(
      *tokenizer, "{{ messages | tojson }}{{ tools | tojson }}{{ word }}",
      "test");
  return format;
}

/// The prompt of `text`; the ids of a text are its bytes.
absl::StatusOr<std::vector<int32_t>> promptOf(const std::string &text) {
  const auto document = *parseJson("request", text);
  Request request;
  const auto encode = [](absl::string_view of) {
    return absl::StatusOr<std::vector<int32_t>>(
        std::vector<int32_t>(of.begin(), of.end()));
  };
  if (absl::Status status = readPrompt(*JsonObject::root(document), text,
                                       encode, chatFormat(), request);
      !status.ok())
    return status;
  return request.prompt;
}

TEST(RequestPrompt, IsTextOrIds) {
  EXPECT_THAT(*promptOf(R"({"prompt": "ab"})"), ElementsAre('a', 'b'));
  EXPECT_THAT(*promptOf(R"({"prompt": [4, 5]})"), ElementsAre(4, 5));
  EXPECT_THAT(*promptOf(R"({"tokens": [4, 5], "prompt": null})"),
              ElementsAre(4, 5));
}

TEST(RequestPrompt, IsAConversationWhoseMembersKeepTheirOrder) {
  const std::string messages = R"([{"role":"user", "content":"a"}])";
  const std::string tools = R"([{"type": "function", "function": {
      "parameters": {"b":1,"a":2}, "name": "f"}}])";
  EXPECT_EQ(*promptOf(absl::StrCat(R"({"tools": )", tools, R"(, "messages": )",
                                   messages, "}")),
            *(*chatFormat())
                 ->prompt({.messages = messages,
                           .tools = tools,
                           .addGenerationPrompt = true}));
}

TEST(RequestPrompt, HasMessagesAsTemplatesKnowThem) {
  const std::string given = R"({"messages": [
      {"role": "developer", "content": [{"type": "text", "text": "a"},
                                        {"type": "text", "text": "b"}]},
      {"role": "assistant", "tool_calls": [{"id": "1", "type": "function",
       "function": {"name": "f", "arguments": "{\"x\": 1}"}}]}],
      "chat_template_kwargs": {"word": "w"}})";
  const auto known = nlohmann::ordered_json::parse(R"([
      {"role": "system", "content": "a\nb"},
      {"role": "assistant", "tool_calls": [{"id": "1", "type": "function",
       "function": {"name": "f", "arguments": {"x": 1}}}]}])");
  // The template's texts have a token for each character.
  const auto text = [](const std::vector<int32_t> &ids) {
    return std::string(ids.begin(), ids.end());
  };
  EXPECT_EQ(text(*promptOf(given)),
            text(*(*chatFormat())
                      ->prompt({.messages = known.dump(),
                                .addGenerationPrompt = true,
                                .variables = {{"word", "\"w\""}}})));
}

TEST(RequestPrompt, RefusesOthers) {
  for (const auto &[text, message] : {
           Wrong{"{}", "prompt: expected one of prompt, tokens and messages, "
                       "got none"},
           Wrong{R"({"prompt": "a", "tokens": [1]})", "got several"},
           Wrong{R"({"prompt": "a", "messages": []})", "got several"},
           Wrong{R"({"prompt": "a", "tools": []})",
                 "tools: expected messages beside it"},
           Wrong{R"({"messages": "a"})", "messages: expected an array"},
           Wrong{R"({"messages": []})", "messages: expected at least one"},
           Wrong{R"({"messages": [{"role": "me", "content": "a"}]})",
                 "messages[0]: request:1:16: role: expected one of system, "},
           Wrong{R"({"messages": [{"role": "user", "content": "a"},
                                  {"role": "user"}]})",
                 "messages[1]: request:2:36: content: expected a string or an "
                 "array of parts, got none"},
           Wrong{R"({"messages": [{"role": "user", "content": "a", "x": 1}]})",
                 "x: expected one of role, content"},
           Wrong{R"({"messages": [{"role": "user", "content": "a"}],
                     "tools": {}})",
                 "tools: expected an array"},
           Wrong{R"({"messages": [{"role": "user", "content": "a"}],
                     "tools": [{"type": "function"}]})",
                 "tools[0]: request:2:33: function: expected an object"},
           Wrong{R"({"messages": [{"role": "user", "content": "a"}],
                     "chat_template_kwargs": {"other": 1}})",
                 "other: expected a variable of the model's template"},
           Wrong{R"({"prompt": "a", "documents": []})",
                 "documents: expected messages beside it"},
           Wrong{R"({"prompt": 5})", "a string or an array of token ids"},
           Wrong{R"({"tokens": "a"})",
                 "tokens: expected an array of token ids"},
           Wrong{R"({"tokens": [1, 2147483648]})", "got 2147483648"},
           Wrong{R"({"tokens": [1, 18446744073709551615]})", "got 1844674407"},
           Wrong{R"({"tokens": [1.5]})", "got 1.5"},
       }) {
    const absl::Status status = promptOf(text).status();
    EXPECT_EQ(exitCode(status), ExitCode::Usage) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
  }
}

TEST(ReadIds, AreBelowTheEnd) {
  const auto document = *parseJson("body", R"({"ids": [0, 9]})");
  const auto object = *JsonObject::root(document);
  const nlohmann::json &ids = object.raw()["ids"];
  EXPECT_THAT(*readIds(object, "ids", ids, 10), ElementsAre(0, 9));
  EXPECT_THAT(std::string(readIds(object, "ids", ids, 9).status().message()),
              HasSubstr("ids: expected 0 to 8 in an array of token ids, got "
                        "9"));
}

TEST(LogprobsJson, HasTheTextWhereThereIsATokenizer) {
  const auto tokenizer =
      test::load(buildGgufBlob(test::GgufFixture().vocabulary()));
  const TokenLogprobs token = {
      .chosen = {'a', -0.5f}, .rank = 2, .alternatives = {{999, -0.25f}}};
  EXPECT_EQ(logprobsJson({token}, tokenizer.get()).dump(),
            R"([{"id":97,"token":"a","logprob":-0.5,"rank":2,)"
            R"("top_logprobs":[{"id":999,"token":"","logprob":-0.25}]}])");
  EXPECT_EQ(logprobsJson({token}, nullptr).dump(),
            R"([{"id":97,"logprob":-0.5,"rank":2,)"
            R"("top_logprobs":[{"id":999,"logprob":-0.25}]}])");
}

TEST(FinishReason, IsThatOfOpenAi) {
  EXPECT_EQ(finishReason(StopReason::StopId), "stop");
  EXPECT_EQ(finishReason(StopReason::StopString), "stop");
  EXPECT_EQ(finishReason(StopReason::Length), "length");
  EXPECT_EQ(finishReason(StopReason::Context), "length");
  EXPECT_EQ(finishReason(StopReason::Deadline), "length");
  EXPECT_EQ(finishReason(StopReason::Cancelled), "abort");
}

} // namespace
} // namespace llamac
