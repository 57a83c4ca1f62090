//===- GrammarAnswers.cpp - Answers that grammars of schemas allow --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Run by test_schemas.py. Reads a line of JSON for each schema: the schema as
// text, answers, and how many random ones to make, with tokens of one byte.
// Writes a line for each: an error, or for each answer whether it is allowed,
// and the random ones that were finished.
//
//===----------------------------------------------------------------------===//

#include "frontends/TokenizerBlobWriter.h"
#include "runtime/base/Status.h"
#include "text/grammar/Grammar.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

using namespace llamac;
using nlohmann::json;

static constexpr int32_t stop = 0, firstByte = 1;
static constexpr int64_t vocabSize = 257;

static std::unique_ptr<Tokenizer> makeTokenizer() {
  TokenizerData data;
  data.preTokenizer = PreTokenizerKind::Gpt2;
  data.tokens = {"<stop>"};
  data.types = {TokenType::Control};
  for (int byte = 0; byte < 256; ++byte)
    data.tokens.push_back(std::string(1, static_cast<char>(byte)));
  data.types.resize(data.tokens.size(), TokenType::Normal);
  return *loadTokenizer(*writeTokenizerBlob(std::move(data), "test"));
}

static absl::StatusOr<bool> allows(const Grammar &grammar,
                                   const std::string &answer) {
  LLAMAC_ASSIGN_OR_RETURN(const auto matcher, grammar.newMatcher());
  for (const char c : answer) {
    LLAMAC_ASSIGN_OR_RETURN(
        const bool isAllowed,
        matcher->accept(firstByte + static_cast<uint8_t>(c)));
    if (!isAllowed)
      return false;
  }
  return matcher->accept(stop);
}

/// A random answer; empty where it was not finished. What closes something is
/// likelier than the rest, and a space less.
static absl::StatusOr<std::string> makeAnswer(const Grammar &grammar,
                                              std::mt19937 &random) {
  LLAMAC_ASSIGN_OR_RETURN(const auto matcher, grammar.newMatcher());
  std::string answer;
  TokenMask mask;
  constexpr int most = 3000, mostFree = 200;
  for (int i = 0; i < most; ++i) {
    LLAMAC_RETURN_IF_ERROR(matcher->nextTokens(mask));
    std::vector<int32_t> all, closing, others;
    for (int32_t id = 0; id < vocabSize; ++id) {
      if (!(mask[id / 32] >> id % 32 & 1))
        continue;
      const auto c = static_cast<char>(id - firstByte);
      all.push_back(id);
      if (id == stop || c == '"' || c == ']' || c == '}')
        closing.push_back(id);
      if (id == stop || !absl::StrContains(" \n\r\t", c))
        others.push_back(id);
    }
    if (!closing.empty() && (i > mostFree || random() % 4 == 0))
      all = closing;
    else if (!others.empty() && random() % 8 != 0)
      all = others;
    bool isTaken = false;
    // The mask may have a byte that begins no character.
    for (int trial = 0; trial < 50 && !isTaken && !all.empty(); ++trial) {
      const int32_t id = all[random() % all.size()];
      LLAMAC_ASSIGN_OR_RETURN(isTaken, matcher->accept(id));
      if (isTaken && id == stop)
        return answer;
      if (isTaken)
        answer += static_cast<char>(id - firstByte);
    }
    if (!isTaken)
      return internalError(absl::StrCat("nothing goes on with ", answer));
  }
  return "";
}

static json follow(GrammarCompiler &compiler, const json &task,
                   std::mt19937 &random) {
  const auto grammar = compiler.compile(
      {GrammarSource::JsonSchema, task["schema"].get<std::string>()});
  if (!grammar.ok())
    return {{"error", std::string(grammar.status().message())}};
  json allowed = json::array(), made = json::array();
  for (const json &answer : task["answers"]) {
    const auto isAllowed = allows(**grammar, answer.get<std::string>());
    if (!isAllowed.ok())
      return {{"failure", std::string(isAllowed.status().message())}};
    allowed.push_back(*isAllowed);
  }
  for (int i = 0; i < task["random"].get<int>(); ++i) {
    const auto answer = makeAnswer(**grammar, random);
    if (!answer.ok())
      return {{"failure", std::string(answer.status().message())}};
    if (!answer->empty())
      made.push_back(*answer);
  }
  return {{"allowed", allowed}, {"made", made}};
}

int main() {
  const std::unique_ptr<Tokenizer> tokenizer = makeTokenizer();
  GrammarCompiler compiler(*tokenizer, vocabSize, {stop});
  std::mt19937 random(1);
  for (std::string line; std::getline(std::cin, line);)
    std::cout << follow(compiler, json::parse(line), random)
                     .dump(-1, ' ', /*ensure_ascii=*/true,
                           json::error_handler_t::replace)
              << std::endl;
  return 0;
}
