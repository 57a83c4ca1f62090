//===- PreTokenizerExpressions.h - Regular expressions of words -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A pre-tokenizer is a list of regular expressions. Each in turn cuts the words
// that those before it have left: a match is a word, and so is what lies
// between two matches. The expressions are spelled as tokenizer.json spells
// them, for its reader and its writer. PreTokenizer.cpp scans those of the
// most common models by hand; all others are run here.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TOKENIZER_PRETOKENIZEREXPRESSIONS_H
#define LLAMAC_TEXT_TOKENIZER_PRETOKENIZEREXPRESSIONS_H

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace llamac {

enum class PreTokenizerKind : uint8_t {
  Llama3,
  Gpt2,
  SmolLM,
  Qwen2,
  Gpt4o,
  Tekken,
  BailingMoe,
  Bloom,
  Chameleon,
  Coarse, ///< For GGUF files that do not name theirs.
  DeepSeekCoder,
  DeepSeekLlm,
  DeepSeek3,
  ExaoneMoe,
  Falcon,
  Jais2,
  KimiK2,
  Laguna,
  MiniCpm5,
  Qwen35,
  SeedCoder,
  Spark,
  SuperBpe,
  TinyAya,
  UfakZeka,
  Viking,
  Youtu,
};
inline constexpr PreTokenizerKind lastPreTokenizer = PreTokenizerKind::Youtu;

/// GPT-2's expression, which tokenizer.json has as an option of ByteLevel.
inline constexpr const char *gpt2Expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|)"
    R"(\s+(?!\S)|\s+)";
/// Every number character alone, which tokenizer.json has as Digits.
inline constexpr const char *digitExpression = R"(\p{N})";

/// The expressions of `kind`.
absl::Span<const char *const> preTokenizerExpressions(PreTokenizerKind kind);

class PiecePattern;

/// Runs the expressions of a kind. Never changes: any number of threads may
/// use one.
class ExpressionPreTokenizer {
public:
  static absl::StatusOr<ExpressionPreTokenizer> create(PreTokenizerKind kind);
  ExpressionPreTokenizer(ExpressionPreTokenizer &&) noexcept;
  ~ExpressionPreTokenizer();

  /// Calls `word` with every word of `text`, in order; together they are the
  /// text. Bytes that are no character count as control characters. Error: the
  /// text needs more memory or steps than an expression may take.
  absl::Status split(absl::string_view text,
                     absl::FunctionRef<void(absl::string_view)> word) const;

private:
  ExpressionPreTokenizer();
  std::vector<std::unique_ptr<PiecePattern>> patterns;
};

} // namespace llamac

#endif // LLAMAC_TEXT_TOKENIZER_PRETOKENIZEREXPRESSIONS_H
