//===- Answer.h - An answer as it grows -------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_REQUEST_ANSWER_H
#define LLAMAC_TEXT_REQUEST_ANSWER_H

#include "text/request/SamplingOptions.h"
#include "text/request/TextStream.h"
#include "text/tokenizer/Tokenizer.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

struct GenerateOptions {
  SamplingOptions sampling = {};
  /// Tokens to generate at most; -1 for as many as the context holds.
  int64_t maxTokens = -1;
  /// Texts that end the answer and do not belong to it.
  std::vector<std::string> stopStrings = {};
  /// Ids that do so beside the model's.
  std::vector<int32_t> stopIds = {};
  /// Whether the model's stop ids end the answer.
  bool stopAtStopIds = true;
  /// Control tokens whose names are text of the answer; others have no text.
  std::vector<int32_t> namedControls = {};
};

enum class StopReason {
  Length,  ///< maxTokens.
  Context, ///< The context is full.
  StopId,
  StopString,
  Cancelled, ///< The caller said so.
  Deadline,  ///< The time limit of the request.
};

/// "length", "context", "stop id", "stop string", "cancelled", "deadline".
absl::string_view stopReasonName(StopReason reason);

/// The ids that end an answer with `options` of a model that has `stopIds`.
std::vector<int32_t> stopIdsOf(const GenerateOptions &options,
                               absl::Span<const int32_t> stopIds);

/// The bytes of token `id` in an answer: none for control tokens but
/// `namedControls`, nor past the tokenizer's tokens, as a vocabulary may have
/// more rows.
absl::string_view bytesInAnswer(const Tokenizer &tokenizer, int32_t id,
                                absl::Span<const int32_t> namedControls);

/// Usage error for an empty stop string, or for what needs a tokenizer where
/// there is none: text, or stop strings.
absl::Status checkGenerateOptions(const GenerateOptions &options,
                                  bool wantsText, const Tokenizer *tokenizer);

/// Takes the tokens of an answer one by one, and finds out when it ends.
class Answer {
public:
  /// The answer has at most `most` tokens, and is ended by `stopIds` besides
  /// the options' stop strings. Makes text where it is wanted; `tokenizer` may
  /// then not be null, and outlives it.
  Answer(const GenerateOptions &options, std::vector<int32_t> stopIds,
         int64_t most, bool wantsText, const Tokenizer *tokenizer);

  /// Takes the next token. Returns the text that has become certain: whole
  /// UTF-8 characters, and nothing that may begin a stop string. A sequence of
  /// bytes that is no UTF-8 is U+FFFD.
  std::string add(int32_t id);

  /// Ends the answer, where add() has not. Returns the text that was held back,
  /// but not a character that the end cuts.
  std::string end(StopReason why);

  /// The bytes of tokens that the text so far was made of.
  size_t textBytes() const { return text.bytesGiven(); }

  /// The ids that end it.
  absl::Span<const int32_t> stopIds() const { return endIds; }

  /// Why it has ended; none while it goes on.
  const std::optional<StopReason> &ended() const { return reason; }

  /// Without the stop id that ended it.
  const std::vector<int32_t> &ids() const { return tokens; }

private:
  const Tokenizer *tokenizer; ///< Null where no text is needed.
  bool wantsText;
  std::vector<int32_t> endIds, namedControls;
  int64_t maxTokens, most;
  TextStream text;
  std::vector<int32_t> tokens;
  std::optional<StopReason> reason;
};

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_ANSWER_H
