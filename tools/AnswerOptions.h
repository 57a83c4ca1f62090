//===- AnswerOptions.h - How an answer is made ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TOOLS_ANSWEROPTIONS_H
#define LLAMAC_TOOLS_ANSWEROPTIONS_H

#include "text/grammar/Grammar.h"
#include "text/request/RequestOptions.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// "-s,--seed" and "SEED" of the option with this flag.
using FlagOfOption = std::pair<std::string, std::string>;
FlagOfOption flagOf(const NamedOption<Request> &option);
/// The names of the flag of the option that is called `name`.
std::string flagsOf(absl::string_view name);

/// The options of answers on the command line, for the commands that answer one
/// prompt after the other.
struct AnswerOptions {
  /// Has the options that are given. A grammar may be the name of its file
  /// until prepareAnswer().
  Request request;
  std::vector<const NamedOption<Request> *> given;
  std::string grammarPath; ///< The file that the grammar came from, if one did.

  /// The field of `option`, which is then given.
  OptionField set(const NamedOption<Request> &option);
  /// Changes `target` in all that is given.
  void applyTo(Request &target) const;
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

/// Usage error where `tokenizer`, of the model at `path`, is null: its answers
/// have no text.
absl::Status checkHasText(absl::string_view path, const Tokenizer *tokenizer);

/// All of the file or pipe at `path`; of `in` for "-". Errors name the path and
/// the system's reason, and are of the bad-file or the memory kind.
absl::StatusOr<std::string> readInput(const std::string &path, std::FILE *in);

/// Gives `text` what a command was given of `sources`, as its help calls them:
/// itself, stdin for "-", or the file `file` ("-": stdin); where there is none
/// of them, nor anything else, what is piped to `in`. The line feed at the end
/// of a file or pipe is no part of it. Usage error for several, for none, or
/// for a text that is not UTF-8, which it calls `name`; those of readInput().
/// The one for none ends with `hint`.
absl::Status takeText(std::optional<std::string> &text,
                      const std::optional<std::string> &file, bool hasElse,
                      std::FILE *in, absl::string_view name,
                      absl::string_view sources, absl::string_view hint = "");

/// Writes what answers are to `out`, at once. Memory error where it cannot.
absl::Status writeOutput(std::FILE *out, absl::string_view text);

} // namespace llamac

#endif // LLAMAC_TOOLS_ANSWEROPTIONS_H
