//===- PreTokenizer.h - Cuts a text into words ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Byte-pair encoding never merges across the words that a regular expression
// finds. The expressions of the most common models are scanned by hand: linear
// in the text, without a regular-expression engine, its stack or its back
// tracking. ExpressionPreTokenizer runs all others.
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

#ifndef LLAMAC_TEXT_TOKENIZER_PRETOKENIZER_H
#define LLAMAC_TEXT_TOKENIZER_PRETOKENIZER_H

#include "text/tokenizer/CharClasses.h"
#include "text/tokenizer/PreTokenizerExpressions.h"

namespace llamac {

class PreTokenizer {
public:
  /// Whether the expressions of `kind` are scanned here.
  static bool scans(PreTokenizerKind kind) {
    return kind <= PreTokenizerKind::Tekken;
  }

  /// `kind` is one that is scanned here.
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

#endif // LLAMAC_TEXT_TOKENIZER_PRETOKENIZER_H
