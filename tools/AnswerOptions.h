//===- AnswerOptions.h - How an answer is made ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_ANSWEROPTIONS_H
#define LLAMAC_TOOLS_ANSWEROPTIONS_H

#include "runtime/plan/plan_generated.h"
#include "text/grammar/Grammar.h"
#include "text/request/Answer.h"

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// As the command line says it, for the commands that answer one prompt after
/// the other.
struct AnswerOptions {
  /// How to choose tokens, where it is not as the plan advises.
  std::optional<double> temperature;
  std::optional<int64_t> topK;
  std::optional<double> topP;
  /// "ID=VALUE", for SamplingOptions::logitBias.
  std::vector<std::string> logitBias;
  // What the answer matches, one of these: a schema, or a file with one; any
  // JSON object; a regex; a file with rules.
  std::optional<std::string> jsonSchema;
  bool jsonObject = false;
  std::optional<std::string> regex;
  std::optional<std::string> grammarFile;
  // The same, by prepareAnswer(), and the file that it came from, if one.
  std::optional<GrammarSource> grammar;
  std::string grammarPath;
  /// Tokens to generate at most, -1 for as many as the context holds; none: the
  /// command has a default.
  std::optional<int64_t> maxTokens;
  GenerateOptions generate = {}; ///< But for those above.
};

/// Before a model is loaded: reads files with grammars. Usage error for options
/// that do not go together or are out of range; those of reading a file.
absl::Status prepareAnswer(AnswerOptions &options);

/// The grammar of `options`, which has one, by `compiler`, null where `path`
/// has no tokenizer. Bad file for a file of rules or a schema that is wrong,
/// usage error for one that the command line has.
absl::StatusOr<std::shared_ptr<const Grammar>>
compileGrammar(const AnswerOptions &options, absl::string_view path,
               GrammarCompiler *compiler);

/// How to sample: `options` over `advised`, which may be null.
SamplingOptions samplingOf(const AnswerOptions &options,
                           const schema::SamplingT *advised);

/// Usage error where `tokenizer`, of the model at `path`, is null: its answers
/// have no text.
absl::Status checkHasText(absl::string_view path, const Tokenizer *tokenizer);

/// Writes what answers are to `out`, at once. Memory error where it cannot.
absl::Status writeOutput(std::FILE *out, absl::string_view text);

} // namespace llamac

#endif // LLAMAC_TOOLS_ANSWEROPTIONS_H
