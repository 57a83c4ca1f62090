//===- ToolCallsTest.cpp - Calls of tools in an answer --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/ToolCalls.h"

#include "absl/strings/str_cat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

/// The whole output of a parser.
struct Answer {
  std::string content;
  std::vector<std::pair<std::string, std::string>> calls;

  void add(const ToolCallPieces &pieces) {
    content += pieces.content;
    for (const ToolCallPart &part : pieces.calls) {
      if (part.call == static_cast<int>(calls.size())) {
        EXPECT_NE(part.name, "");
        calls.emplace_back(part.name, "");
      }
      ASSERT_EQ(part.call + 1, static_cast<int>(calls.size()));
      calls.back().second += part.arguments;
    }
  }

  bool operator==(const Answer &) const = default;
};

const ToolCallSyntax &syntaxOf(absl::string_view name) {
  for (const ToolCallSyntax &syntax : toolCallSyntaxes())
    if (syntax.name == name)
      return syntax;
  ADD_FAILURE() << name;
  return toolCallSyntaxes().front();
}

Answer parsePieces(absl::string_view syntax, absl::string_view text,
                   size_t piece) {
  ToolCallParser parser(syntaxOf(syntax));
  Answer answer;
  for (size_t at = 0; at < text.size(); at += piece)
    answer.add(parser.add(text.substr(at, piece)));
  answer.add(parser.end());
  EXPECT_EQ(parser.calls(), static_cast<int>(answer.calls.size()));
  return answer;
}

/// parsePieces() for every way to cut `text` into pieces of one size.
Answer parse(absl::string_view syntax, absl::string_view text) {
  const Answer whole = parsePieces(syntax, text, text.size() + 1);
  for (size_t piece = 1; piece <= text.size(); ++piece)
    EXPECT_EQ(parsePieces(syntax, text, piece), whole) << piece;
  return whole;
}

TEST(ToolCallsTest, TextWithoutCallsIsContentToTheLastSpace) {
  for (const char *syntax : {"hermes", "llama3"}) {
    const Answer answer = parse(syntax, " Paris <b> is it.\n\n");
    EXPECT_EQ(answer.content, " Paris <b> is it.\n\n") << syntax;
    EXPECT_THAT(answer.calls, IsEmpty());
  }
}

TEST(ToolCallsTest, ACallOfHermesIsCutOutOfItsText) {
  const Answer answer = parse(
      "hermes",
      "Let me see.\n\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
      "{\"city\": \"Köln }\", \"days\": [1, {\"a\": "
      "\"\\\"\"}]}}\n</tool_call>");
  EXPECT_EQ(answer.content, "Let me see.");
  EXPECT_THAT(answer.calls,
              ElementsAre(Pair("get_weather",
                               "{\"city\": \"Köln }\", \"days\": [1, {\"a\": "
                               "\"\\\"\"}]}")));
}

TEST(ToolCallsTest, SeveralCallsKeepTheirOrder) {
  const Answer answer =
      parse("hermes",
            "<tool_call>\n{\"name\": \"a\", \"arguments\": {}}\n</tool_call>"
            "\n<tool_call>{\"arguments\": {\"x\": 1}, \"name\": \"b\"}"
            "</tool_call>\n");
  EXPECT_EQ(answer.content, "");
  EXPECT_THAT(answer.calls,
              ElementsAre(Pair("a", "{}"), Pair("b", "{\"x\":1}")));
}

TEST(ToolCallsTest, AnAnswerOfLlama3IsCallsOrContent) {
  EXPECT_THAT(
      parse("llama3", "{\"name\": \"f\", \"parameters\": {\"q\": \"x\"}}")
          .calls,
      ElementsAre(Pair("f", "{\"q\": \"x\"}")));
  EXPECT_THAT(parse("llama3",
                    "{\"name\": \"f\", \"parameters\": {}}; {\"name\": "
                    "\"g\", \"parameters\": {\"a\": 2}}")
                  .calls,
              ElementsAre(Pair("f", "{}"), Pair("g", "{\"a\": 2}")));
  const char *json = "{\"city\": \"Paris\"} is the answer";
  EXPECT_EQ(parse("llama3", json).content, json);
  EXPECT_THAT(parse("llama3", json).calls, IsEmpty());
}

TEST(ToolCallsTest, ArgumentsAsAStringAreTheirText) {
  EXPECT_THAT(parse("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": "
                              "\"{\\\"a\\\": 1}\"}</tool_call>")
                  .calls,
              ElementsAre(Pair("f", "{\"a\": 1}")));
}

TEST(ToolCallsTest, WhatOnlyBeginsAsACallIsContent) {
  for (const char *text :
       {"<tool_call>", "<tool_call>nothing</tool_call> more", "a <tool_cal",
        "<tool_call>{\"name\": 1, \"arguments\": {}}</tool_call>",
        "<tool_call>{\"name\": \"f\"}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arg"}) {
    const Answer answer = parse("hermes", text);
    EXPECT_EQ(answer.content, text);
    EXPECT_THAT(answer.calls, IsEmpty()) << text;
  }
}

TEST(ToolCallsTest, SpaceBeforeAMarkThatOpensNoCallStays) {
  for (const char *text :
       {"The <tool_call> mark opens a call.",
        "First.\n\n<tool_call>{oops}</tool_call>\n\nLast.",
        "a\n<tool_call> {'name': 'f'} ", " <tool_call>", "a \n <tool_call>\n",
        "a <tool_call>{\"name\": \"f\", \"arguments\": {oops}}</tool_call>",
        "a <tool_call>[{\"name\": \"f\", \"arguments\": {}}]</tool_call>"}) {
    const Answer answer = parse("hermes", text);
    EXPECT_EQ(answer.content, text);
    EXPECT_THAT(answer.calls, IsEmpty()) << text;
  }
  for (const char *text : {" \n {oops}", "{\"name\": \"f\", \"parameters\": [",
                           "  {\"name\": \"f\", \"parameters\": {oops}}\n"}) {
    const Answer answer = parse("llama3", text);
    EXPECT_EQ(answer.content, text);
    EXPECT_THAT(answer.calls, IsEmpty()) << text;
  }
}

TEST(ToolCallsTest, AMarkThatOpensNoCallHidesNoneBehindIt) {
  const char *call = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": "
                     "1}}</tool_call>";
  for (const char *before :
       {"A <tool_call> is what I write:", "<tool_call>", "<tool_call>{",
        "<tool_call>{\"name\": \"f\"}</tool_call>", "<tool_call>{\"it's"}) {
    const Answer answer = parse("hermes", absl::StrCat(before, "\n", call));
    EXPECT_EQ(answer.content, before);
    EXPECT_THAT(answer.calls, ElementsAre(Pair("f", "{\"a\": 1}")));
  }
}

TEST(ToolCallsTest, TextBehindACallThatIsNotClosedIsContent) {
  for (const char *behind : {"", "}", ", \"id\": 7}", "}}"}) {
    const Answer answer =
        parse("hermes", absl::StrCat("<tool_call>{\"name\": \"f\", "
                                     "\"arguments\": {\"a\": 1}",
                                     behind, "\nIt rains."));
    EXPECT_THAT(answer.content, testing::EndsWith("It rains."));
    EXPECT_THAT(answer.calls, ElementsAre(Pair("f", "{\"a\": 1}")));
  }
  const Answer answer =
      parse("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {}, \"id\": "
                      "{\"of\": \"</tool_call>\"}} </tool_call> It rains.");
  EXPECT_EQ(answer.content, " It rains.");
  EXPECT_THAT(answer.calls, ElementsAre(Pair("f", "{}")));
}

TEST(ToolCallsTest, MarksInsideOfStringsAreArguments) {
  EXPECT_THAT(parse("hermes",
                    "<tool_call>{\"arguments\": {\"a\": \"</tool_call> "
                    "<tool_call>{\"}, \"name\": \"f\"}</tool_call>"),
              testing::Field(&Answer::calls,
                             ElementsAre(Pair("f", "{\"a\":\"</tool_call> "
                                                   "<tool_call>{\"}"))));
}

TEST(ToolCallsTest, NothingIsGivenOfACallThatIsNotCertain) {
  ToolCallParser parser(syntaxOf("hermes"));
  const std::string head = "\n<tool_call>{\"name\": \"f\", \"arguments\": {";
  for (const char c : head) {
    const ToolCallPieces pieces = parser.add({&c, 1});
    EXPECT_EQ(pieces.content, "");
    EXPECT_THAT(pieces.calls, IsEmpty());
  }
  EXPECT_EQ(parser.add("\"").calls.size(), 1u);
}

TEST(ToolCallsTest, SaysWhetherTheLastCallGoesOn) {
  ToolCallParser parser(syntaxOf("llama3"));
  (void)parser.add("{\"name\": \"f\", \"parameters\": {\"a\": [1");
  EXPECT_TRUE(parser.isInArguments());
  (void)parser.add("]}");
  EXPECT_FALSE(parser.isInArguments());
}

TEST(ToolCallsTest, ArgumentsThatAreCutOffStayAsFarAsTheyCame) {
  EXPECT_THAT(parse("hermes", "<tool_call>{\"name\": \"f\", \"arguments\": "
                              "{\"a\": \"b")
                  .calls,
              ElementsAre(Pair("f", "{\"a\": \"b")));
}

TEST(ToolCallsTest, ManyLevelsAreNoCallAndNoCrash) {
  const std::string deep(100'000, '[');
  const std::string text =
      absl::StrCat("<tool_call>{\"x\": ", deep, "</tool_call>");
  EXPECT_EQ(parsePieces("hermes", text, text.size()).content, text);
}

} // namespace
} // namespace llamac
