//===- TokenizerBlobWriter.h - A tokenizer as a plan has it -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_TOKENIZERBLOBWRITER_H
#define LLAMAC_FRONTENDS_TOKENIZERBLOBWRITER_H

#include "frontends/TokenizerSources.h"
#include "text/tokenizer/TokenizerBlob.h"

#include "absl/types/span.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// A tokenizer before it is written, as the readers of the formats fill it.
struct TokenizerData {
  TokenizerKind kind = TokenizerKind::BytePair;
  PreTokenizerKind preTokenizer = PreTokenizerKind::Llama3;
  TokenizerFlags flags;
  std::vector<std::string> tokens; ///< Bytes by id; of specials, their text.
  std::vector<TokenType> types;    ///< One for each token.
  std::vector<float> scores;       ///< ScoredPieces: one for each token.
  std::vector<Merge> merges;       ///< BytePair.
  std::optional<uint32_t> bosId;
  std::optional<uint32_t> eosId;
  std::optional<uint32_t> eotId;
  std::optional<uint32_t> unknownId;
  std::vector<uint32_t> stopIds; ///< Besides the known names.
  /// Marks of special tokens by id, where they have any.
  std::map<uint32_t, SpecialMarks> specialMarks;
  /// Texts by name; carried as they are.
  ChatTemplates chatTemplates;
  std::string model; ///< SentencePiece: the model file.
};

/// The names of special tokens that end a text or a turn.
absl::Span<const absl::string_view> stopTokenNames();

/// The blob of `data`. Adds to the stop ids the end-of-sequence id and every
/// special token whose name is known to end a text or a turn (<|eot_id|>,
/// <|im_end|>, ..), and finds the end-of-turn id by name where `data` has
/// none. Errors name `file`: two ordinary tokens of the same bytes, a pair that
/// merges twice, ids out of range.
absl::StatusOr<std::string> writeTokenizerBlob(TokenizerData data,
                                               absl::string_view file);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_TOKENIZERBLOBWRITER_H
