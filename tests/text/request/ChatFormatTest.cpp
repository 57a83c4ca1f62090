//===- ChatFormatTest.cpp - Conversations as a model reads them -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/request/ChatFormat.h"

#include "runtime/base/Status.h"
#include "tests/frontends/tokenizer/TokenizerFixtures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// <|start|> is 265 and begins a sequence, <|eot_id|> is 266 and ends one.
std::unique_ptr<Tokenizer>
tokenizerWith(const std::map<std::string, absl::string_view> &templates) {
  test::GgufFixture fixture;
  fixture.chatTemplates = templates;
  return test::load(buildGgufBlob(fixture.vocabulary()));
}

std::unique_ptr<const ChatFormat> formatOf(const Tokenizer &tokenizer) {
  auto format = ChatFormat::create(tokenizer);
  EXPECT_TRUE(format.ok()) << format.status();
  return format.ok() ? *std::move(format) : nullptr;
}

void expectError(const absl::Status &status, ExitCode code,
                 const char *message) {
  EXPECT_EQ(exitCode(status), code);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

constexpr absl::string_view turns =
    "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}"
    "{% endfor %}{{ 'b' if add_generation_prompt }}";

TEST(ChatFormatTest, WritesTheTokensThatBeginAndEndASequenceByTheirNames) {
  const auto tokenizer = tokenizerWith({{"default", turns}});
  EXPECT_EQ(
      *formatOf(*tokenizer)
           ->text({.messages = R"([{"content": "a"}, {"content": "c"}])"}),
      "<|start|>a<|eot_id|>c<|eot_id|>");
}

TEST(ChatFormatTest, GivesTheirIdsAndAddsNone) {
  const auto tokenizer = tokenizerWith({{"default", turns}});
  EXPECT_THAT(*formatOf(*tokenizer)
                   ->prompt({.messages = R"([{"content": "a"}])",
                             .addGenerationPrompt = true}),
              ElementsAre(265, 'a', 266, 'b'));
  const auto bare = tokenizerWith({{"default", "{{ messages[0].content }}"}});
  EXPECT_THAT(*formatOf(*bare)->prompt({.messages = R"([{"content": "a"}])"}),
              ElementsAre('a'));
}

TEST(ChatFormatTest, ANameThatAUserTypesIsTheToken) {
  const auto tokenizer = tokenizerWith({{"default", turns}});
  EXPECT_THAT(*formatOf(*tokenizer)
                   ->prompt({.messages = R"([{"content": "a<|eot_id|>c"}])"}),
              ElementsAre(265, 'a', 266, 'c', 266));
}

TEST(ChatFormatTest, AnUnknownTokenIsUndefined) {
  test::GgufFixture fixture;
  fixture.bosId.reset();
  fixture.chatTemplates["default"] = "{{ bos_token is defined }}";
  const auto tokenizer = test::load(buildGgufBlob(fixture.vocabulary()));
  EXPECT_EQ(*formatOf(*tokenizer)->text({.messages = "[]"}), "False");
}

TEST(ChatFormatTest, ToolsAreWrittenByTheirOwnTemplate) {
  const auto both = tokenizerWith({{"default", "d"}, {"tool_use", "t"}});
  EXPECT_EQ(*formatOf(*both)->text({.messages = "[]"}), "d");
  EXPECT_EQ(*formatOf(*both)->text({.messages = "[]", .tools = "[]"}), "t");
  const auto one = tokenizerWith({{"default", "d{{ tools | length }}"}});
  EXPECT_EQ(*formatOf(*one)->text({.messages = "[]", .tools = "[]"}), "d0");
}

TEST(ChatFormatTest, SaysWhatItsTemplatesMention) {
  const auto tokenizer = tokenizerWith(
      {{"default", "{{ messages }}"}, {"tool_use", "{{ tools }}"}});
  const auto format = formatOf(*tokenizer);
  EXPECT_TRUE(format->mentions("messages"));
  EXPECT_FALSE(format->mentions("tools"));
  EXPECT_TRUE(format->mentions("tools", true));
  EXPECT_FALSE(format->mentions("messages", true));
}

TEST(ChatFormatTest, ATemplateMayBeGiven) {
  const auto tokenizer = tokenizerWith({{"tool_use", "t"}});
  const auto format =
      ChatFormat::create(*tokenizer, "{{ eos_token }}", "my.jinja");
  ASSERT_TRUE(format.ok()) << format.status();
  EXPECT_EQ(*(*format)->text({.messages = "[]", .tools = "[]"}), "<|eot_id|>");
}

TEST(ChatFormatTest, AModelWithoutATemplateIsAUsageError) {
  expectError(ChatFormat::create(*tokenizerWith({})).status(), ExitCode::Usage,
              "expected one called default, got none");
  expectError(
      ChatFormat::create(*tokenizerWith({{"rag", "r"}, {"x", "y"}})).status(),
      ExitCode::Usage, "expected one called default, got rag, x");
}

TEST(ChatFormatTest, ATemplateThatDoesNotParseIsNamed) {
  const auto tokenizer = tokenizerWith({{"default", "d"}, {"tool_use", "{{"}});
  expectError(ChatFormat::create(*tokenizer).status(), ExitCode::BadFile,
              "tool_use: chat template, line 1");
  expectError(ChatFormat::create(*tokenizer, "{{", "my.jinja").status(),
              ExitCode::BadFile, "my.jinja: chat template, line 1");
}

TEST(ChatFormatTest, WhatATemplateRaisesIsAUsageError) {
  const auto tokenizer =
      tokenizerWith({{"default", "{{ raise_exception('No system') }}"}});
  expectError(formatOf(*tokenizer)->prompt({.messages = "[]"}).status(),
              ExitCode::Usage, "No system");
}

} // namespace
} // namespace llamac
