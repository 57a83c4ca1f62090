//===- PreTokenizer.h - Cuts a text into words ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Byte-pair encoding never merges across the words that a regular expression
// finds. The expressions of Llama models are scanned by hand: linear in
// the text, without a regular-expression engine, its stack or its back
// tracking.
//
// Llama 3:
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
//    ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
// GPT-2:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|
//   \s+(?!\S)|\s+
// Qwen 2: Llama 3's, with single digits: \p{N} in place of \p{N}{1,3}.
// GPT-4o, with U for [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], L for
// [\p{Ll}\p{Lm}\p{Lo}\p{M}] and C for (?i:'s|'t|'re|'ve|'m|'ll|'d)?:
//   [^\r\n\p{L}\p{N}]?U*L+C|[^\r\n\p{L}\p{N}]?U+L*C|\p{N}{1,3}|
//    ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
// Tekken (Mistral NeMo): GPT-4o's without C, with single digits.
// SmolLM: every number character is a word of its own; the text between them
// is cut by GPT-2's expression, as if it were the whole text.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_TOKENIZER_PRETOKENIZER_H
#define LLAMAC_RUNTIME_ENGINE_TOKENIZER_PRETOKENIZER_H

#include "runtime/engine/tokenizer/CharClasses.h"

namespace llamac {

enum class PreTokenizerKind : uint8_t {
  Llama3,
  Gpt2,
  SmolLM,
  Qwen2,
  Gpt4o,
  Tekken
};
inline constexpr PreTokenizerKind lastPreTokenizer = PreTokenizerKind::Tekken;

// Expressions as tokenizer.json spells them; what the others split by has none
// there.
#define LLAMAC_LLAMA3_PATTERN(numbers)                                         \
  R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" numbers          \
  R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
inline constexpr const char *llama3Pattern =
    LLAMAC_LLAMA3_PATTERN(R"(\p{N}{1,3})");
inline constexpr const char *qwen2Pattern = LLAMAC_LLAMA3_PATTERN(R"(\p{N})");
#undef LLAMAC_LLAMA3_PATTERN
#define LLAMAC_CASED_PATTERN(contraction, numbers)                             \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*)"                      \
  R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" contraction                                  \
  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"                     \
  R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" contraction "|" numbers                      \
  R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"
inline constexpr const char *gpt4oPattern =
    LLAMAC_CASED_PATTERN(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)", R"(\p{N}{1,3})");
inline constexpr const char *tekkenPattern =
    LLAMAC_CASED_PATTERN("", R"(\p{N})");
#undef LLAMAC_CASED_PATTERN

/// The kinds that tokenizer.json has as one expression.
struct SplitPattern {
  PreTokenizerKind kind;
  const char *regex;
};
inline constexpr SplitPattern splitPatterns[] = {
    {PreTokenizerKind::Llama3, llama3Pattern},
    {PreTokenizerKind::Qwen2, qwen2Pattern},
    {PreTokenizerKind::Gpt4o, gpt4oPattern},
    {PreTokenizerKind::Tekken, tekkenPattern},
};

class PreTokenizer {
public:
  explicit PreTokenizer(PreTokenizerKind kind) : kind(kind) {}

  /// The end of the word that begins at `begin`, which is inside `text`. Every
  /// byte belongs to a word: words follow each other without gaps.
  size_t wordEnd(absl::string_view text, size_t begin) const;

private:
  size_t llama3WordEnd(absl::string_view text, size_t begin) const;
  size_t lettersEnd(absl::string_view text, size_t begin) const;
  size_t casedLettersEnd(absl::string_view text, size_t begin) const;
  size_t gpt2WordEnd(absl::string_view text, size_t begin) const;
  CharClass classAt(absl::string_view text, size_t at) const;
  size_t skipClass(absl::string_view text, size_t at, CharClass skipped) const;
  size_t spacesEnd(absl::string_view text, size_t begin) const;

  PreTokenizerKind kind;
  CharClasses classes;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_TOKENIZER_PRETOKENIZER_H
