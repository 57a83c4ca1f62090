//===- RunCommand.h - Completes a prompt ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_RUNCOMMAND_H
#define LLAMAC_TOOLS_RUNCOMMAND_H

#include "engine/scheduler/Scheduler.h"
#include "tools/AnswerOptions.h"
#include "tools/ChatOptions.h"

#include "absl/functional/function_ref.h"

#include <cstdio>
#include <optional>
#include <string>

namespace llamac {

/// How far a text is completed that need not end.
inline constexpr int64_t mostRawTokens = 128;

/// An answer to a message has mostChatTokens, any other mostRawTokens, where
/// nobody asks for another number.
struct RunOptions : AnswerOptions {
  // One of these.
  std::optional<std::string> prompt; ///< Text, "-": of stdin.
  std::optional<std::string> file;   ///< A file with it.
  std::optional<std::string> tokens; ///< Ids: "1,2,3".
  /// Whether a text is the prompt as it is, and no message in a conversation.
  bool raw = false;
  ChatOptions chat = {}; ///< For a message.
  /// Whether names of special tokens in a prompt as it is stand for them.
  bool special = false;
  bool printIds = false; ///< The ids instead of the text.
  bool json = false;     ///< The answer and the timings as one JSON object.
  bool quiet = false;    ///< No timings.
  bool profile = false;  ///< The time of each kernel.
  std::string trace;     ///< A file for that of each launch; empty: none.
};

/// Before a model is loaded: reads a prompt of "-" from `in`, and files with
/// prompts, grammars and templates. Usage error for options that do not go
/// together, or a prompt that is not UTF-8; those of reading a file.
absl::Status prepareRun(RunOptions &options, std::FILE *in);

/// The model that answers a prompt, and the functions to run it.
struct RunSubject {
  const std::string &path;    ///< For messages.
  const Tokenizer *tokenizer; ///< Null where there is none.
  /// The ids of a text as it is; see Tokenizer::encode.
  absl::FunctionRef<absl::StatusOr<std::vector<int32_t>>(absl::string_view text,
                                                         bool special)>
      encode;
  /// Runs the request to its end, or until `isInterrupted`, and gives the
  /// callback its parts. A callback that returns an error ends it with that.
  absl::FunctionRef<absl::Status(
      Request, absl::FunctionRef<bool()> isInterrupted,
      absl::FunctionRef<absl::Status(const AnswerPart &)>)>
      answer;
  /// The most tokens of a prompt and its answer together.
  int64_t mostTokens = 0;
  const schema::SamplingT *sampling = nullptr; ///< Advised, if it is.
  GrammarCompiler *grammars = nullptr;         ///< Null without a tokenizer.
  double loadSeconds = 0;
};

/// runCommand(), whatever computes the tokens. After an interrupt, which ends
/// the answer, the process ends.
absl::Status runPrompt(const RunSubject &subject, const RunOptions &options,
                       std::FILE *out, std::FILE *log);

/// Answers or completes a prompt with `model`. A text is a message, written by
/// the chat template, where there is one. The answer alone, or its ids
/// separated by spaces, and a line feed go to `out` as they come, or at the end
/// one JSON object; what the prompt is, seed, timings and, without JSON,
/// logprobs go to `log`.
absl::Status runCommand(const std::shared_ptr<const Model> &model,
                        const RunOptions &options, std::FILE *out,
                        std::FILE *log);

/// " at 12.3 tok/s"; empty where there is no rate.
std::string rateText(int64_t count, double seconds);

/// The ids of "1,2,3"; spaces separate too. Usage error about option `name` for
/// anything else, or for none.
absl::StatusOr<std::vector<int32_t>>
parseTokenIds(absl::string_view text, absl::string_view name = "--tokens");

} // namespace llamac

#endif // LLAMAC_TOOLS_RUNCOMMAND_H
