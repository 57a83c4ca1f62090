//===- AnswerOptions.cpp - How an answer is made --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/AnswerOptions.h"

#include "engine/sampling/Sampler.h"
#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/io/MappedFile.h"
#include "tools/ChatOptions.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <unistd.h>
#include <variant>

namespace llamac {

OptionField AnswerOptions::set(const NamedOption<Request> &option) {
  given.push_back(&option);
  return option.field(request);
}

void AnswerOptions::applyTo(Request &target) const {
  Request source = request;
  std::vector<absl::string_view> names;
  for (const NamedOption<Request> *option : given) {
    copyOption(*option, source, target);
    names.emplace_back(option->name);
  }
  drawWhereAsked(names, target);
}

/// The text of a small file.
static absl::StatusOr<std::string> readText(const std::string &path) {
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  // A larger one is refused by its first bytes as well.
  return std::string(file->text().substr(0, GrammarCompiler::maxTextBytes + 1));
}

/// An error about the grammar of `options`, named by the file that it is in.
/// Another text in the file may do, whatever is wrong with this one.
static absl::Status aboutGrammar(const AnswerOptions &options,
                                 const absl::Status &status) {
  return exitCode(status) == ExitCode::Usage && !options.grammarPath.empty()
             ? badFileError(
                   absl::StrCat(options.grammarPath, ": ", status.message()))
             : status;
}

/// Puts the text of the grammar in place of the file that it is in, and checks
/// what can be checked before a model is loaded.
static absl::Status readGrammar(AnswerOptions &options) {
  if (std::ranges::count_if(options.given, [&](const auto *option) {
        return std::holds_alternative<GrammarField>(
            option->field(options.request));
      }) > 1)
    return usageError("expected one of --json-schema, --json-object, --regex "
                      "and --grammar, got several");
  if (!options.request.grammar)
    return absl::OkStatus();
  auto &[kind, text, controls] = *options.request.grammar;
  // No file is called {...} or a rule ::= ..., or can be named as ./{...}.
  if ((kind == GrammarSource::Ebnf && !absl::StrContains(text, "::=")) ||
      (kind == GrammarSource::JsonSchema && !absl::StartsWith(text, "{"))) {
    options.grammarPath = text;
    LLAMAC_ASSIGN_OR_RETURN(text, readText(options.grammarPath));
  }
  return aboutGrammar(options, checkGrammar(*options.request.grammar));
}

FlagOfOption flagOf(const NamedOption<Request> &option) {
  return absl::StrSplit(option.flag, absl::MaxSplits(' ', 1));
}

std::string flagsOf(absl::string_view name) {
  const auto options = requestOptions();
  return flagOf(*std::ranges::find(options, name, &NamedOption<Request>::name))
      .first;
}

/// `status`, where it is about a field of a request, with the option for it.
static absl::Status aboutOption(const absl::Status &status) {
  const std::string field = fieldOf(status);
  absl::string_view message = status.message();
  for (const NamedOption<Request> &option : requestOptions())
    if (field == option.name && absl::ConsumePrefix(&message, field)) {
      const std::string names = flagOf(option).first;
      const std::string longNames = names.substr(names.find("--"));
      return remade(
          status, status.code(),
          absl::StrCat(longNames.substr(0, longNames.find(',')), message));
    }
  return status;
}

absl::Status prepareAnswer(AnswerOptions &options) {
  LLAMAC_RETURN_IF_ERROR(readGrammar(options));
  LLAMAC_RETURN_IF_ERROR(aboutOption(checkNumbers(options.request)));
  return aboutOption(
      Sampler::create(options.request.options.sampling).status());
}

absl::StatusOr<std::shared_ptr<const Grammar>>
compileGrammar(const AnswerOptions &options, absl::string_view path,
               GrammarCompiler *compiler) {
  if (!compiler)
    return usageError(
        absl::StrCat(path, ": a grammar needs a tokenizer, and there is none"));
  auto grammar = compiler->compile(*options.request.grammar);
  if (!grammar.ok())
    return aboutGrammar(options, grammar.status());
  return grammar;
}

absl::Status checkHasText(absl::string_view path, const Tokenizer *tokenizer) {
  return tokenizer
             ? absl::OkStatus()
             : usageError(absl::StrCat(path,
                                       ": there is no tokenizer to make text "
                                       "with; ask for ids by --print-ids"));
}

absl::StatusOr<std::string> readInput(const std::string &path, std::FILE *in) {
  const bool isNamed = path != "-";
  std::FILE *const file = isNamed ? std::fopen(path.c_str(), "re") : in;
  if (!file)
    return systemError(errno, absl::StrCat(path, ": cannot be opened"),
                       badFileError);
  std::string text;
  std::array<char, 1 << 16> piece;
  while (const size_t size = std::fread(piece.data(), 1, piece.size(), file))
    text.append(piece.data(), size);
  const int error = std::ferror(file) ? errno : 0;
  if (isNamed)
    std::fclose(file);
  if (error != 0)
    return systemError(error, absl::StrCat(path, ": cannot be read"),
                       badFileError);
  return text;
}

absl::Status takeText(std::optional<std::string> &text,
                      const std::optional<std::string> &file, bool hasElse,
                      std::FILE *in, absl::string_view name,
                      absl::string_view sources, absl::string_view hint) {
  const int given = text.has_value() + file.has_value() + hasElse;
  const bool isPiped = given == 0 && isatty(fileno(in)) == 0;
  const auto refuse = [&](absl::string_view got) {
    return usageError(
        absl::StrCat(name, ": expected ", sources, ", got ", got));
  };
  if (given > 1)
    return refuse("several");
  if (file || isPiped || text == "-") {
    LLAMAC_ASSIGN_OR_RETURN(text, readInput(file ? *file : "-", in));
    if (isPiped && text->empty())
      text.reset();
    else if (absl::EndsWith(*text, "\n"))
      text->pop_back();
  }
  if (text)
    return checkUtf8(name, *text);
  return hasElse ? absl::OkStatus()
                 : refuse(absl::StrCat("none, nor a text on stdin", hint));
}

absl::Status writeOutput(std::FILE *out, absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), out) == text.size() &&
      std::fflush(out) == 0)
    return absl::OkStatus();
  return memoryError(
      absl::StrCat("cannot write the answer: ", std::strerror(errno)));
}

} // namespace llamac
