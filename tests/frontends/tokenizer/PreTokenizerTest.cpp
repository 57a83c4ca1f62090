//===- PreTokenizerTest.cpp - Where words end -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The expressions, run by PCRE2, are the oracle. Its Unicode is older: the
// texts hold no character newer than Unicode 14.
//
//===----------------------------------------------------------------------===//

#include "text/tokenizer/PreTokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

namespace llamac {

using testing::ElementsAre;
using testing::ElementsAreArray;

// Made once for each kind: its table is larger than any text here.
static const PreTokenizer &preTokenizer(PreTokenizerKind kind) {
  static std::map<PreTokenizerKind, PreTokenizer> made;
  return made.try_emplace(kind, kind).first->second;
}

static std::vector<std::string> words(PreTokenizerKind kind,
                                      const std::string &text) {
  const PreTokenizer &pre = preTokenizer(kind);
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = pre.wordEnd(text, begin);
    if (end <= begin || end > text.size()) {
      ADD_FAILURE() << "a word of " << text << " from " << begin << " to "
                    << end;
      break;
    }
    out.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return out;
}

namespace {

/// All matches of an expression, and the text between them.
class Expression {
public:
  explicit Expression(const char *pattern) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern),
                             PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                             &error, &at, nullptr));
  }

  std::vector<std::string> split(const std::string &text) const {
    std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
        pcre2_match_data_create_from_pattern(code.get(), nullptr),
        pcre2_match_data_free);
    std::vector<std::string> out;
    size_t begin = 0;
    while (begin < text.size() &&
           pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                       text.size(), begin, 0, match.get(), nullptr) > 0) {
      const PCRE2_SIZE *span = pcre2_get_ovector_pointer(match.get());
      if (span[0] > begin)
        out.push_back(text.substr(begin, span[0] - begin));
      out.push_back(text.substr(span[0], span[1] - span[0]));
      begin = span[1];
    }
    if (begin < text.size())
      out.push_back(text.substr(begin));
    return out;
  }

private:
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code{nullptr,
                                                               pcre2_code_free};
};

} // namespace

static constexpr const char *llama3Expression =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Random strings of what the expressions tell apart.
static std::vector<std::string> randomTexts() {
  const char *pieces[] = {" ",
                          " ",
                          "\n",
                          "\r",
                          "\t",
                          "a",
                          "B",
                          "s",
                          "S",
                          "'",
                          "re",
                          "LL",
                          "1",
                          "2",
                          "!",
                          ".",
                          "\xC3\xA9",
                          "\xE4\xB8\xAD",
                          "\xC2\xBD",
                          "\xC2\xA0",
                          "\xE3\x80\x80",
                          "\xCC\x81",
                          "\xC5\xBF",
                          "\xF0\x9F\x98\x80",
                          "\xE2\x80\x8D",
                          "\xD9\xA3",
                          "/",
                          "\xC7\x85",
                          "\xCA\xB0",
                          "\xCE\xA3"};
  std::mt19937 random(7);
  std::vector<std::string> texts;
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (size_t n = 1 + random() % 12; n > 0; --n)
      text += pieces[random() % std::size(pieces)];
    texts.push_back(text);
  }
  return texts;
}

TEST(PreTokenizer, Llama3IsItsExpression) {
  const Expression expression(llama3Expression);
  for (const std::string &text : randomTexts())
    ASSERT_THAT(words(PreTokenizerKind::Llama3, text),
                ElementsAreArray(expression.split(text)))
        << text;
}

TEST(PreTokenizer, Qwen2IsItsExpression) {
  const Expression expression(
      preTokenizerExpressions(PreTokenizerKind::Qwen2)[0]);
  for (const std::string &text : randomTexts())
    ASSERT_THAT(words(PreTokenizerKind::Qwen2, text),
                ElementsAreArray(expression.split(text)))
        << text;
}

TEST(PreTokenizer, ThoseThatTellCaseApartAreTheirExpressions) {
  for (const PreTokenizerKind kind :
       {PreTokenizerKind::Gpt4o, PreTokenizerKind::Tekken}) {
    const Expression expression(preTokenizerExpressions(kind)[0]);
    for (const std::string &text : randomTexts())
      ASSERT_THAT(words(kind, text), ElementsAreArray(expression.split(text)))
          << text;
  }
}

TEST(ExpressionPreTokenizer, RunsTheExpressionsOfEveryKind) {
  for (int kind = 0; kind <= static_cast<int>(lastPreTokenizer); ++kind) {
    const auto preTokenizer =
        ExpressionPreTokenizer::create(static_cast<PreTokenizerKind>(kind));
    ASSERT_TRUE(preTokenizer.ok()) << preTokenizer.status().message();
    EXPECT_FALSE(
        preTokenizerExpressions(static_cast<PreTokenizerKind>(kind)).empty());
    for (const absl::string_view text :
         {absl::string_view("a \xFF\xED\xA0\x80 1234'S\xF0\x9F"),
          absl::string_view("x\0y", 3), absl::string_view()}) {
      std::string whole;
      ASSERT_TRUE(preTokenizer
                      ->split(text,
                              [&](absl::string_view word) {
                                EXPECT_FALSE(word.empty());
                                whole.append(word.data(), word.size());
                              })
                      .ok());
      EXPECT_EQ(whole, text);
    }
  }
}

TEST(ExpressionPreTokenizer, FindsTheWordsThatAreScannedByHand) {
  for (int kind = 0; PreTokenizer::scans(static_cast<PreTokenizerKind>(kind));
       ++kind) {
    const auto preTokenizer =
        ExpressionPreTokenizer::create(static_cast<PreTokenizerKind>(kind));
    ASSERT_TRUE(preTokenizer.ok());
    std::vector<std::string> texts = randomTexts();
    texts.resize(1000); // PreTokenizer's tests have the others.
    for (const std::string &text : texts) {
      std::vector<std::string> found;
      ASSERT_TRUE(
          preTokenizer
              ->split(text,
                      [&](absl::string_view word) { found.emplace_back(word); })
              .ok());
      ASSERT_THAT(words(static_cast<PreTokenizerKind>(kind), text),
                  ElementsAreArray(found))
          << text;
    }
  }
}

TEST(PreTokenizer, Gpt2IsItsExpression) {
  const Expression expression(gpt2Expression);
  for (const std::string &text : randomTexts())
    ASSERT_THAT(words(PreTokenizerKind::Gpt2, text),
                ElementsAreArray(expression.split(text)))
        << text;
}

TEST(PreTokenizer, SmolLMTakesNumbersOutFirst) {
  const Expression number(R"(\p{N})");
  const Expression expression(gpt2Expression);
  for (const std::string &text : randomTexts()) {
    std::vector<std::string> expected;
    for (const std::string &part : number.split(text))
      for (const std::string &word : expression.split(part))
        expected.push_back(word);
    ASSERT_THAT(words(PreTokenizerKind::SmolLM, text),
                ElementsAreArray(expected))
        << text;
  }
}

TEST(PreTokenizer, InvalidBytesAreCharactersOfTheirOwn) {
  EXPECT_THAT(words(PreTokenizerKind::Llama3, "\xE4\xB8"
                                              "a\xFF\xFE 1"),
              ElementsAre("\xE4\xB8", "a", "\xFF\xFE", " ", "1"));
}

TEST(CharClasses, DecodesOnlyShortestForms) {
  for (const char *text : {"\xC0\x80", "\xE0\x80\x80", "\xF0\x80\x80\x80",
                           "\xF4\x90\x80\x80", "\x80", "\xE4\xB8", "\xFF"}) {
    const DecodedChar decoded = decodeChar(text, 0);
    EXPECT_EQ(decoded.codepoint, 0xFFFDu);
    EXPECT_EQ(decoded.length, 1u);
  }
  EXPECT_EQ(decodeChar("\xF4\x8F\xBF\xBF", 0).codepoint, 0x10FFFFu);
}

TEST(CharClasses, ReplacesEveryInvalidByte) {
  EXPECT_EQ(replaceInvalidUtf8("a\xFF\xE4\xB8z\xE4\xB8\xAD"),
            "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\xE4\xB8\xAD");
  // An overlong form is taken for the character it means, as llama.cpp does.
  EXPECT_EQ(replaceInvalidUtf8("\xC1\x81"), "A");
}

} // namespace llamac
