//===- ChatTemplateTest.cpp - Tests of chat templates ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// test_chat_templates.py compares with jinja2's output; these are the
// interface, and behaviours that have a name.
//
//===----------------------------------------------------------------------===//

#include "text/templates/ChatTemplate.h"
#include "runtime/base/Status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llamac {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The text of `source`, or the message of its error.
std::string render(absl::string_view source,
                   const ChatTemplateInputs &inputs = {}) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok())
    return std::string(parsed.status().message());
  const auto text = parsed->render(inputs);
  return text.ok() ? *text : std::string(text.status().message());
}

TEST(ChatTemplate, RendersMessages) {
  EXPECT_EQ(render("{{ bos_token }}{% for m in messages %}<{{ m.role }}>"
                   "{{ m['content'] | trim }}{% endfor %}"
                   "{% if add_generation_prompt %}<assistant>{% endif %}",
                   {.messages = R"([{"role": "user", "content": " Hi "}])",
                    .addGenerationPrompt = true,
                    .bosToken = "<s>"}),
            "<s><user>Hi<assistant>");
}

TEST(ChatTemplate, KeepsTheOrderOfMembers) {
  EXPECT_EQ(render("{{ tools | tojson }}",
                   {.tools = R"([{"b": 1, "a": {"d": "ü", "c": 1.0}}])"}),
            R"([{"b": 1, "a": {"d": "ü", "c": 1.0}}])");
}

TEST(ChatTemplate, LeavesOutTokensThatTheModelHasNot) {
  EXPECT_EQ(
      render("{{ bos_token is defined }}{{ eos_token }}", {.eosToken = "</s>"}),
      "False</s>");
}

TEST(ChatTemplate, LetsOtherVariablesWin) {
  EXPECT_EQ(
      render("{{ enable_thinking }}{{ tools }}",
             {.tools = "[1]",
              .variables = {{"enable_thinking", "false"}, {"tools", "[2]"}}}),
      "False[2]");
}

TEST(ChatTemplate, FormatsTheTimeItIsGiven) {
  const auto now = [] {
    std::tm time{};
    time.tm_year = 124;
    time.tm_mday = 5;
    return time;
  };
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y%%') }}", {.now = now}),
            "05 Jan 2024%");
}

TEST(ChatTemplate, RendersMoreThanOnce) {
  const auto parsed = ChatTemplate::parse("{% set x = messages %}{{ x }}");
  ASSERT_TRUE(parsed.ok());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(*parsed->render({.messages = "[1]"}), "[1]");
}

TEST(ChatTemplate, RefusesWhatIsNoTemplate) {
  for (const auto &[text, message] :
       {std::pair("a\n{{ 1 + }}", "line 2: expected an expression, got '}}'"),
        {"{% if x %}", "line 1: expected {% endif %}, got the end"},
        {"{% wish %}", "line 1: unknown tag 'wish'"},
        {"{# a", "line 1: a comment has no end"},
        {"{{ 'a }}", "line 1: a string has no end"},
        {"{{ 1 | wish }}", "line 1: no filter is named 'wish'"},
        {"{{ 1 is wish }}", "line 1: no test is named 'wish'"},
        {"{% break %}", "line 1: 'break' outside of a loop"},
        {"{{ 9223372036854775808 }}", "an integer of more than 64 bits"},
        {"\xff", "expected UTF-8"}}) {
    const auto parsed = ChatTemplate::parse(text);
    EXPECT_EQ(exitCode(parsed.status()), ExitCode::BadFile) << text;
    EXPECT_THAT(parsed.status().message(), HasSubstr(message));
  }
}

TEST(ChatTemplate, RefusesByNameWhatNoModelUses) {
  for (const auto &[text, message] :
       {std::pair("{% include 'x' %}", "the tag 'include' is not supported; "
                                       "there are break, continue, filter"),
        {"{% call f() %}", "the tag 'call'"},
        {"{%- raw %}{{ ' }}{% endraw %}", "the tag 'raw'"},
        {"{% for x in y recursive %}", "a recursive loop"},
        {"{% for x in y %}{{ loop.cycle(1) }}",
         "the attribute of loop 'cycle'"},
        {"{% macro f() %}{{ varargs }}{% endmacro %}", "'varargs' in a macro"},
        {"{% macro f(caller) %}", "a parameter 'caller'"},
        {"{% if x %}{{ [1] | batch(2) }}{% endif %}",
         "the filter 'batch' is not supported; there are capitalize, count"},
        {"{{ 1 | int(base=2) }}", "the filter 'int' with an argument 'base' is "
                                  "not supported; it takes 0 "
                                  "to 1: default"},
        {"{{ x | map('abs') }}", "the filter 'abs'"},
        {"{{ x | selectattr('y', 'gt', 1) }}", "the test 'gt'"},
        {"{{ x is divisibleby 3 }}", "the test 'divisibleby' is not supported; "
                                     "there are !=, ==, boolean"},
        {"{{ x.zfill(3) }}", "the method 'zfill' is not supported; there are "
                             "capitalize, endswith"},
        {"{{ x.split() }}", "the method 'split' with 0 arguments"},
        {"{{ cycler(1) }}", "the function 'cycler'"},
        {"{{ f(*x) }}", "arguments after '*' and '**'"},
        {"{{ 1 / 2 }}", "the operator '/'"},
        {"{{ 2 ** 3 }}", "the operator '**'"},
        {"{{ '%d' % 3 }}", "the operator '%' of texts"},
        {"{{ +1 }}", "the sign '+'"},
        {"{{ 1 < x < 2 }}", "a chain of comparisons"},
        {"{{ x[1, 2] }}", "several keys within []"},
        {"{{ '\\x41' }}", "the escape \\x in a string"},
        {"{{ '{:>9}'.format(x) }}", "of the fields of a format only {}"},
        {"{{ strftime_now('%c') }}", "does not support '%c'; there are %a"},
        {"{{ strftime_now('%d %') }}", "does not support '%'; there are %a"}}) {
    const auto parsed = ChatTemplate::parse(std::string("\n") + text);
    EXPECT_EQ(exitCode(parsed.status()), ExitCode::Unsupported) << text;
    EXPECT_THAT(
        parsed.status().message(),
        AllOf(StartsWith("chat template, line 2: "), HasSubstr(message)));
  }
}

TEST(ChatTemplate, RefusesWhenRenderedWhatDependsOnValues) {
  for (const auto &[text, message] :
       {std::pair("{{ x % 1 }}", "'%' of texts is not supported"),
        {"{{ 1.5 // 1 }}", "'//' of numbers with a point is not supported"},
        {"{{ {}.keys() }}", "the text of a view of a dict is not supported"},
        {"{{ range(2) }}", "the text of a range is not supported"},
        {"{{ [1] < [2] }}", "'<' of a list and a list is not supported"},
        {"{{ (x | safe).strip() }}", "'strip' of a text that 'safe' returned"},
        {"{{ x.replace('', 'b') }}", "'replace' of an empty text"},
        {"{{ 'Σ' | lower }}", "the lower case of a capital sigma"},
        {"{{ 'ﬁ' | capitalize }}", "the title case of 'ﬁ'"},
        {"{{ '٣' | int }}", "'int' of digits beyond ASCII"},
        {"{% for a in [1] if a %}{{ loop.length }}{% endfor %}", "loop.length"},
        {"{{ {1: 2} | tojson }}", "a key in JSON is a text"}})
    EXPECT_THAT(render(text, {.variables = {{"x", "\"a\""}}}),
                HasSubstr(message));
}

TEST(ChatTemplate, PassesOnWhatTheTemplateSays) {
  const auto parsed =
      ChatTemplate::parse("\n{{ raise_exception('Roles must alternate') }}");
  const auto text = parsed->render({});
  EXPECT_EQ(exitCode(text.status()), ExitCode::Usage);
  EXPECT_EQ(text.status().message(),
            "chat template, line 2: Roles must alternate");
}

TEST(ChatTemplate, NamesTheLineOfAnError) {
  EXPECT_EQ(render("{% if true %}\n{{ x }}\n{{ x.y }}{% endif %}"),
            "chat template, line 3: 'x' is undefined");
  EXPECT_EQ(render("{{ messages[0].content + 1 }}",
                   {.messages = R"([{"content": "a"}])"}),
            "chat template, line 1: '+' joins no str with int");
}

TEST(ChatTemplate, RefusesInputsThatAreNoJson) {
  EXPECT_THAT(render("", {.messages = "[1"}), HasSubstr("messages: byte"));
  EXPECT_THAT(render("", {.messages = "[99999999999999999999]"}),
              HasSubstr("messages: an integer of more than 64 bits"));
  EXPECT_THAT(render("", {.bosToken = "\xff"}),
              HasSubstr("bos_token: expected UTF-8"));
}

TEST(ChatTemplate, ChangesNoListOrDictionary) {
  for (const char *text :
       {"{{ [1].append(2) }}", "{{ {}.update({}) }}", "{{ [1].pop() }}"})
    EXPECT_THAT(render(text), HasSubstr("is undefined"));
  EXPECT_EQ(render("{{ ''.__class__ is defined }}"), "False");
}

} // namespace
} // namespace llamac
