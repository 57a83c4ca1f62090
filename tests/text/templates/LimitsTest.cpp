//===- LimitsTest.cpp - Tests of hostile chat templates -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Templates that need more than they may have end with one line, soon.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Status.h"
#include "text/templates/ChatTemplate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llamac {
namespace {

using ::testing::HasSubstr;

std::string repeat(absl::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all.append(text.data(), text.size());
  return all;
}

std::string errorOf(const std::string &source, ExitCode code,
                    const ChatTemplateLimits &limits = {}) {
  const auto parsed = ChatTemplate::parse(source, limits);
  const absl::Status status =
      parsed.ok() ? parsed->render({}).status() : parsed.status();
  EXPECT_EQ(exitCode(status), code) << source.substr(0, 100);
  return std::string(status.message());
}

TEST(ChatLimits, SyntaxThatIsNestedTooDeeply) {
  constexpr int many = 20'000;
  for (const std::string &source :
       {"{{ " + repeat("(", many) + "1" + repeat(")", many) + " }}",
        "{{ 1" + repeat(" + 1", many) + " }}",
        "{{ " + repeat("not ", many) + "1 }}",
        "{{ " + repeat("-", many) + "1 }}", "{{ x" + repeat(".x", many) + " }}",
        "{{ 1" + repeat("|int", many) + " }}", "{{ " + repeat("[", many),
        repeat("{% if x %}", many) + repeat("{% endif %}", many),
        repeat("{% for x in y %}", many)})
    EXPECT_THAT(errorOf(source, ExitCode::BadFile),
                HasSubstr("nested too deeply"));
}

TEST(ChatLimits, CallsThatAreNestedTooDeeply) {
  EXPECT_THAT(errorOf("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
                      ExitCode::Usage),
              HasSubstr("nested too"));
}

TEST(ChatLimits, ValuesThatAreNestedTooDeeply) {
  const std::string nest = "{% set ns = namespace(x=[]) %}{% for i in "
                           "range(10000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  for (const char *use :
       {"{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x == [ns.x] }}"})
    EXPECT_THAT(errorOf(nest + use, ExitCode::Usage),
                HasSubstr("nested too deeply"));
  EXPECT_THAT(
      errorOf(
          "{% set ns = namespace(x=[1]) %}{% for i in range(10000) %}{% set "
          "ns.x = ns.x | select %}{% endfor %}{{ ns.x | list }}",
          ExitCode::Usage),
      HasSubstr("generators are nested too deeply"));
}

TEST(ChatLimits, MoreThanTheMemory) {
  for (const char *source :
       {"{{ 'a' * 1000000000000 }}", "{{ [1] * 1000000000000 }}",
        "{{ ('a' * 100000) | replace('a', 'b' * 10000) }}",
        "{{ ('\\n' * 100000) | indent(100000, true, true) }}",
        "{% for i in range(100000) %}{{ 'a' * 100000 }}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = "
        "ns.x ~ ns.x %}{% endfor %}"})
    EXPECT_THAT(errorOf(source, ExitCode::Usage, {.memoryBytes = 1 << 24}),
                HasSubstr("bytes of text and values"));
}

TEST(ChatLimits, MoreThanTheSteps) {
  // Names that no step reads are loaded each time their scope is entered.
  std::string names;
  for (int i = 0; i < 10'000; ++i)
    names += "{{ x" + std::to_string(i) + " }}";
  const std::string manyNames = "{% for i in range(100000) %}{% if false %}" +
                                names + "{% endif %}{% endfor %}";
  const std::string longName = "{% for i in range(100000) %}{{ {}." +
                               repeat("x", 100'000) + " }}{% endfor %}";
  for (const char *source :
       {"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}"
        "{% endfor %}",
        "{% macro f(x) %}{% if x %}{{ f(x - 1) }}{{ f(x - 1) }}{% endif %}"
        "{% endmacro %}{{ f(60) }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(60) %}{% set ns.x = "
        "[ns.x, ns.x] %}{% endfor %}{{ ns.x == ns.x + [] }}",
        "{{ ('a' * 1000000).strip('b' * 1000000) }}", manyNames.c_str(),
        longName.c_str()})
    EXPECT_THAT(errorOf(source, ExitCode::Usage, {.steps = 1'000'000}),
                HasSubstr("more than 1000000 steps"));
}

TEST(ChatLimits, TextThatIsDroppedAgainIsNotCounted) {
  const auto parsed = ChatTemplate::parse(
      "{% for i in range(100) %}{% set x %}{% for j in range(10) %}"
      "{{ 'a' }}{% endfor %}{% endset %}{% endfor %}b",
      {.memoryBytes = 200'000});
  EXPECT_EQ(*parsed->render({}), "b");
}

TEST(ChatLimits, OtherNumbersThatAreTooLarge) {
  for (const auto &[source, message] :
       {std::pair("{{ range(1000000000) }}", "a range of more than 100000"),
        {"{{ 9223372036854775807 * 2 }}", "64 bits"},
        {"{{ 9223372036854775807 + 1 }}", "64 bits"}})
    EXPECT_THAT(errorOf(source, ExitCode::Usage), HasSubstr(message));
}

TEST(ChatLimits, TextIsSearchedInLinearTime) {
  const auto parsed =
      ChatTemplate::parse("{{ 'a' * 500000 ~ 'b' in 'a' * 1000000 }}");
  EXPECT_EQ(*parsed->render({}), "False");
}

TEST(ChatLimits, ATemplateThatIsTooLong) {
  EXPECT_THAT(errorOf("12345", ExitCode::BadFile, {.templateBytes = 4}),
              HasSubstr("expected at most 4 bytes, got 5"));
}

} // namespace
} // namespace llamac
