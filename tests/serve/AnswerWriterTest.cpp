//===- AnswerWriterTest.cpp - Answers as JSON and as events ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "serve/api/AnswerWriter.h"

#include "tests/serve/ServedToy.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace llamac::serve {
namespace {

using nlohmann::json;
using testing::StartsWith;

/// The objects of a stream's events, and whether [DONE] came last.
std::vector<json> objectsOf(const std::string &stream, bool &isDone) {
  std::vector<json> objects;
  isDone = false;
  for (absl::string_view event :
       absl::StrSplit(stream, "\n\n", absl::SkipEmpty())) {
    EXPECT_FALSE(isDone);
    EXPECT_TRUE(absl::ConsumePrefix(&event, "data: ")) << event;
    isDone = event == "[DONE]";
    if (!isDone)
      objects.push_back(json::parse(event));
  }
  return objects;
}

class AnswerWriterTest : public ServedToyTest {
protected:
  /// A request of `prompts` prompts with `answers` answers each.
  ApiRequest ask(size_t prompts = 1, int answers = 1) const {
    ApiRequest request{.model = models.front().get()};
    request.requests.resize(prompts);
    for (Request &one : request.requests) {
      one.prompt.resize(7);
      one.answers = answers;
    }
    return request;
  }

  static AnswerPart endOf(StopReason reason, int answer = 0) {
    AnswerPart part{.answer = answer};
    part.end = AnswerEnd{.reason = reason,
                         .promptTokens = 7,
                         .cachedTokens = 4,
                         .answerTokens = 3};
    return part;
  }
};

TEST_F(AnswerWriterTest, AStreamHasTheTextOfTheWholeAnswerPieceByPiece) {
  ApiRequest request = ask();
  request.streams = true;
  AnswerWriter writer(request);
  std::string stream;
  for (const char *text : {"One ", "", "two \"3\"\n", "\xe2\x82\xac"})
    stream += writer.take(0, {.text = text});
  stream += writer.take(0, endOf(StopReason::Length));
  stream += writer.streamEnd();

  bool isDone = false;
  std::string text;
  const std::vector<json> events = objectsOf(stream, isDone);
  EXPECT_TRUE(isDone);
  ASSERT_EQ(events.size(), 4u); // An empty piece is no event.
  for (const json &event : events) {
    EXPECT_EQ(event["object"], "text_completion");
    EXPECT_EQ(event["id"], events[0]["id"]);
    text += event["choices"][0]["text"].get<std::string>();
    EXPECT_EQ(event["choices"][0]["finish_reason"].is_null(),
              &event != &events.back());
  }
  EXPECT_EQ(events.back()["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(text, "One two \"3\"\n\xe2\x82\xac");
  EXPECT_EQ(json::parse(writer.whole())["choices"][0]["text"], text);
}

TEST_F(AnswerWriterTest, AChatStreamBeginsWithTheRoleAndEndsWithTheUsage) {
  ApiRequest request = ask();
  request.isChat = request.streams = request.includesUsage = true;
  AnswerWriter writer(request);
  std::string stream = writer.take(0, {.text = "Hello"});
  stream += writer.take(0, endOf(StopReason::StopId));
  stream += writer.streamEnd();
  bool isDone = false;
  const std::vector<json> events = objectsOf(stream, isDone);
  EXPECT_TRUE(isDone);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0]["choices"][0]["delta"],
            json({{"role", "assistant"}, {"content", ""}}));
  EXPECT_EQ(events[1]["choices"][0]["delta"], json({{"content", "Hello"}}));
  EXPECT_EQ(events[2]["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(events[2]["usage"], nullptr);
  EXPECT_EQ(events[3]["choices"], json::array());
  EXPECT_EQ(events[3]["usage"]["total_tokens"], 10);
  EXPECT_THAT(events[0]["id"].get<std::string>(), StartsWith("chatcmpl-"));
}

TEST_F(AnswerWriterTest, UsageCountsTheTokensSoFar) {
  const ApiRequest request = ask();
  AnswerWriter writer(request);
  EXPECT_EQ(writer.usage().promptTokens, 7);
  for (int64_t count = 1; count <= 3; ++count) {
    (void)writer.take(0, {.tokens = {5}});
    EXPECT_EQ(writer.usage().answerTokens, count);
  }
  (void)writer.take(0, endOf(StopReason::Length));
  EXPECT_EQ(writer.usage().answerTokens, 3);
  EXPECT_EQ(writer.usage().cachedTokens, 4);
}

TEST_F(AnswerWriterTest, UsageCountsAPromptOnceForAllOfItsAnswers) {
  const ApiRequest request = ask(/*prompts=*/2, /*answers=*/3);
  AnswerWriter writer(request);
  for (size_t prompt = 0; prompt < 2; ++prompt)
    for (int answer = 0; answer < 3; ++answer) {
      EXPECT_EQ(writer.take(prompt, {.answer = answer,
                                     .text = std::string(1, 'a' + answer)}),
                "");
      (void)writer.take(prompt, endOf(StopReason::StopId, answer));
    }
  const json whole = json::parse(writer.whole());
  ASSERT_EQ(whole["choices"].size(), 6u);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(whole["choices"][i]["index"], i);
    EXPECT_EQ(whole["choices"][i]["text"], std::string(1, 'a' + i % 3));
  }
  EXPECT_EQ(whole["usage"]["prompt_tokens"], 2 * 7);
  EXPECT_EQ(whole["usage"]["completion_tokens"], 6 * 3);
  EXPECT_EQ(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 2 * 4);
}

TEST_F(AnswerWriterTest, AnEchoIsWhereOffsetsOfTokensBegin) {
  ApiRequest request = ask();
  request.echoes = {"\xc3\xa9t\xc3\xa9 "}; // Four characters.
  request.requests[0].options.sampling.logprobs = 0;
  AnswerWriter writer(request);
  const std::string text = toy::tokenText(40);
  (void)writer.take(
      0,
      {.tokens = {40},
       .text = text,
       .textBytes = text.size(),
       .logprobs = {{.chosen = {40, -0.5f}, .rank = 1, .alternatives = {}}}});
  (void)writer.take(0, endOf(StopReason::Length));
  const json choice = json::parse(writer.whole())["choices"][0];
  EXPECT_EQ(choice["text"], request.echoes[0] + text);
  EXPECT_EQ(choice["logprobs"]["text_offset"], json({4}));
  EXPECT_EQ(choice["logprobs"]["tokens"], json({text}));
  EXPECT_EQ(choice["logprobs"]["token_logprobs"], json({-0.5}));
}

TEST_F(AnswerWriterTest, LogprobsOfATokenComeWithItsText) {
  ApiRequest request = ask();
  request.isChat = request.streams = true;
  request.requests[0].options.sampling.logprobs = 1;
  AnswerWriter writer(request);
  const std::string first = toy::tokenText(40), second = toy::tokenText(41);
  const TokenLogprobs impossible{
      .chosen = {41, -INFINITY}, .rank = 2, .alternatives = {{40, 0}}};
  // The second token is held back, as if it might begin a stop string.
  std::string stream = writer.take(
      0, {.tokens = {40, 41},
          .text = first,
          .textBytes = first.size(),
          .logprobs = {{.chosen = {40, -1}, .rank = 1, .alternatives = {}},
                       impossible}});
  stream += writer.take(0, {.text = second, .textBytes = second.size()});
  bool isDone = false;
  std::vector<json> tokens;
  for (const json &event : objectsOf(stream, isDone)) {
    const json &choice = event["choices"][0];
    if (choice["logprobs"].is_null())
      continue;
    ASSERT_EQ(choice["logprobs"]["content"].size(), 1u);
    tokens.push_back(choice["logprobs"]["content"][0]);
    EXPECT_EQ(choice["delta"]["content"], tokens.back()["token"]);
  }
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(tokens[0]["token"], first);
  EXPECT_EQ(tokens[1]["token"], second);
  // JSON has no infinity.
  EXPECT_EQ(tokens[1]["logprob"], -9999.0);
  EXPECT_EQ(tokens[1]["top_logprobs"][0]["token"], first);
}

/// A model's text that calls a tool, of the syntax with marks.
const ToolCallSyntax &markedSyntax() {
  const auto syntaxes = toolCallSyntaxes();
  return *std::find_if(syntaxes.begin(), syntaxes.end(),
                       [](const ToolCallSyntax &syntax) {
                         return *syntax.open && *syntax.close;
                       });
}

std::string callText(const std::string &arguments) {
  const ToolCallSyntax &syntax = markedSyntax();
  return absl::StrCat(syntax.open, "{\"name\": \"weather\", \"",
                      syntax.arguments, "\": ", arguments);
}

TEST_F(AnswerWriterTest, CallsOfToolsAreTheSameHoweverTheTextIsCut) {
  const std::string text =
      absl::StrCat("Let me see.", callText("{\"city\": \"Oslo\"}"), "}",
                   markedSyntax().close);
  for (size_t size = 1; size <= text.size(); ++size) {
    ApiRequest request = ask();
    request.isChat = request.streams = true;
    request.calls.syntax = &markedSyntax();
    AnswerWriter writer(request);
    std::string stream;
    for (size_t at = 0; at < text.size(); at += size)
      stream += writer.take(0, {.text = text.substr(at, size)});
    stream += writer.take(0, endOf(StopReason::StopId));
    const json choice = json::parse(writer.whole())["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "tool_calls");
    EXPECT_EQ(choice["message"]["content"], "Let me see.");
    ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u);
    const json call = choice["message"]["tool_calls"][0];
    EXPECT_EQ(call["function"]["name"], "weather");
    EXPECT_EQ(json::parse(call["function"]["arguments"].get<std::string>()),
              json({{"city", "Oslo"}}));
    bool isDone = false;
    std::string arguments;
    for (const json &event : objectsOf(stream, isDone))
      for (const json &part :
           event["choices"][0]["delta"].value("tool_calls", json::array()))
        arguments += part["function"]["arguments"].get<std::string>();
    EXPECT_EQ(json(arguments), call["function"]["arguments"]);
  }
}

TEST_F(AnswerWriterTest, ACallThatIsCutIsNoCallThatTheModelWanted) {
  ApiRequest request = ask();
  request.isChat = true;
  request.calls.syntax = &markedSyntax();
  AnswerWriter writer(request);
  (void)writer.take(0, {.text = callText("{\"city\": ")});
  (void)writer.take(0, endOf(StopReason::StopId));
  EXPECT_EQ(writer.finishReason(), "length");
}

} // namespace
} // namespace llamac::serve
