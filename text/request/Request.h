//===- Request.h - What is asked of a scheduler -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_REQUEST_REQUEST_H
#define LLAMAC_TEXT_REQUEST_REQUEST_H

#include "text/request/Answer.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// Answers that one request may ask for.
inline constexpr int mostAnswers = 1024;

/// Drafts of an answer that one step verifies.
inline constexpr int mostDrafts = 16;

/// A prompt, and how it is to be answered.
struct Request {
  std::vector<int32_t> prompt; ///< At least one id.
  /// How a text became the prompt, where it was one.
  EncodeOptions encoding = {.special = true, .addBos = true};
  GenerateOptions options = {};
  /// Answers match this grammar, which Scheduler::prepare() compiles.
  std::optional<GrammarSource> grammar = {};
  /// How many answers, at most mostAnswers. Number i has the seed of the
  /// options plus i, and shares the prompt's keys and values with the others.
  int answers = 1;
  /// The most draft tokens that a step verifies of an answer, at most
  /// mostDrafts; 0: none; -1: as many as pay; -2: as many as pay where there is
  /// a draft model, else none.
  int speculative = -2;
  /// Higher ones go first, equal ones in the order they came.
  int priority = 0;
  /// Seconds from submit() on, after which answers end as they are; 0: none.
  double timeLimit = 0;
  bool wantsText = true;
};

/// Lets an answer that would be longer than what fits, where a prompt and its
/// answer have `mostTokens` at most, be as long as fits.
inline void fitAnswer(Request &request, int64_t mostTokens) {
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  if (prompt <= mostTokens && request.options.maxTokens > mostTokens - prompt)
    request.options.maxTokens = -1;
}

/// How an answer ended, and what it took.
struct AnswerEnd {
  /// An error ends an answer too: one of its own, or that of the device.
  absl::Status status = {};
  StopReason reason = StopReason::Cancelled; ///< Where `status` is ok.
  uint64_t seed = 0;
  int64_t promptTokens = 0;
  int64_t cachedTokens = 0; ///< Prompt tokens found in the prefix cache.
  int64_t answerTokens = 0;
  int64_t preemptions = 0;
  /// Tokens that were drafted, and those of them that became the answer's.
  int64_t draftTokens = 0, acceptedTokens = 0;
  /// Seconds from submit() until the prompt was begun, the first token and the
  /// end; 0 for what never came.
  double queueSeconds = 0, firstTokenSeconds = 0, seconds = 0;
};

/// "; drafts: 30 of 40 tokens accepted", for a line of figures; empty where
/// nothing was drafted.
inline std::string draftsText(int64_t draftTokens, int64_t acceptedTokens) {
  return draftTokens == 0 ? ""
                          : absl::StrCat("; drafts: ", acceptedTokens, " of ",
                                         draftTokens, " tokens accepted");
}

/// The tokens and the text that a step brought for one answer.
struct AnswerPart {
  int answer = 0;                   ///< Its number, from 0 on.
  std::vector<int32_t> tokens = {}; ///< Without the stop id.
  std::string text = {};            ///< The text that has become certain.
  size_t textBytes = 0;             ///< The bytes of tokens that it is made of.
  /// One for each token, where they are asked for.
  std::vector<TokenLogprobs> logprobs = {};
  std::optional<AnswerEnd> end = {};
};

/// Adds `part`, which comes next, to the parts of the same answer in `to`.
inline void append(AnswerPart &to, const AnswerPart &part) {
  to.tokens.insert(to.tokens.end(), part.tokens.begin(), part.tokens.end());
  to.text += part.text;
  to.textBytes += part.textBytes;
  to.logprobs.insert(to.logprobs.end(), part.logprobs.begin(),
                     part.logprobs.end());
  to.end = part.end;
}

/// Is called in step(): must neither block nor throw, nor call the scheduler.
using AnswerCallback = std::function<void(const AnswerPart &)>;

} // namespace llamac

#endif // LLAMAC_TEXT_REQUEST_REQUEST_H
