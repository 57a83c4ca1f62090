//===- TokenizerFixtures.h - Small vocabularies for tests -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vocabularies of the 256 bytes and a few merges, in each format, whole so
// that a test can break one thing.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_FRONTENDS_TOKENIZER_TOKENIZERFIXTURES_H
#define LLAMAC_TESTS_FRONTENDS_TOKENIZER_TOKENIZERFIXTURES_H

#include "frontends/TokenizerSources.h"
#include "text/tokenizer/Tokenizer.h"

#include <nlohmann/json.hpp>

#include <map>

namespace llamac::test {

/// The lines of a tiktoken file: the bytes by value (rank = byte), then the
/// tokens of `extraTokens`.
std::vector<std::string> tiktokenLines();
std::string joinLines(const std::vector<std::string> &lines);

/// The tokens behind the bytes, in order of rank; "ab" is 256.
inline constexpr const char *extraTokens[] = {"ab", "abc", " t", "he",  " the",
                                              "12", "123", "  ", "\n\n"};

/// A tokenizer.json of the same tokens, with special tokens <|start|> (265)
/// and <|eot_id|> (266) and the word <user> (267) that is added but not
/// special. Its pre-tokenizer is Llama 3's.
nlohmann::json huggingFaceJson();

/// One of the pieces <eos>, <0x00> to <0xFF>, "▁", "a", "b", "ab" (260) and
/// "▁▁" (261), which is also an added word; spaces become U+2581.
nlohmann::json piecesJson();

/// GPT-2's spelling of `bytes`, as tokenizer.json and GGUF write tokens.
std::string spell(const std::string &bytes);

/// GGUF metadata of the same tokens with <|start|> and <|eot_id|>, owning what
/// the vocabulary views.
struct GgufFixture {
  GgufFixture();
  GgufVocabulary vocabulary() const;

  std::string model = "gpt2";
  std::string pre = "smollm";
  std::vector<std::string> tokens;
  std::vector<int64_t> types;
  std::vector<std::string> merges;
  std::vector<float> scores;
  std::optional<int64_t> bosId = 265;
  std::optional<int64_t> eosId = 266;
  std::optional<bool> addBos;
  std::map<std::string, absl::string_view> chatTemplates;
};

/// A vocabulary of scored pieces: <unk>, <s>, </s>, the bytes <0x00> to
/// <0xFF> from 3, and "▁", "a", "b", "ab", "▁ab" from 259.
GgufFixture scoredPieces();

/// The tokenizer of a blob that must be good.
std::unique_ptr<Tokenizer> load(const absl::StatusOr<std::string> &blob);

/// The ids of `text`, which must not fail.
std::vector<int32_t> encode(const Tokenizer &tokenizer, absl::string_view text,
                            EncodeOptions options = {});

} // namespace llamac::test

#endif // LLAMAC_TESTS_FRONTENDS_TOKENIZER_TOKENIZERFIXTURES_H
