//===- AnswerOptions.cpp - How an answer is made --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/AnswerOptions.h"

#include "engine/sampling/Sampler.h"
#include "engine/step/Model.h"
#include "runtime/base/FieldError.h"
#include "runtime/base/Status.h"
#include "runtime/io/MappedFile.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <cerrno>
#include <cstring>

#include <memory>
#include <utility>

namespace llamac {

SamplingOptions samplingOf(const AnswerOptions &options,
                           const schema::SamplingT *advised) {
  const SamplingOptions model = advisedSampling(advised);
  SamplingOptions sampling = options.generate.sampling;
  sampling.temperature = options.temperature.value_or(model.temperature);
  sampling.topK = options.topK.value_or(model.topK);
  sampling.topP = options.topP.value_or(model.topP);
  return sampling;
}

/// The pairs of "ID=VALUE".
static absl::StatusOr<std::vector<std::pair<int32_t, float>>>
parseLogitBias(const std::vector<std::string> &texts) {
  std::vector<std::pair<int32_t, float>> result;
  for (const std::string &text : texts) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(text, absl::MaxSplits('=', 1));
    auto &[id, value] = result.emplace_back();
    if (!absl::SimpleAtoi(parts.first, &id) ||
        !absl::SimpleAtof(parts.second, &value))
      return usageError(absl::StrCat(
          "--logit-bias: expected ID=VALUE such as 13=-1.5, got ", text));
  }
  return result;
}

/// The text of a small file.
static absl::StatusOr<std::string> readText(const std::string &path) {
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  // A larger one is refused by its first bytes as well.
  return std::string(file->text().substr(0, GrammarCompiler::maxTextBytes + 1));
}

/// What `options` says that the answer matches, if it does.
static absl::StatusOr<std::optional<GrammarSource>>
readGrammar(AnswerOptions &options) {
  if (options.jsonSchema.has_value() + options.jsonObject +
          options.regex.has_value() + options.grammarFile.has_value() >
      1)
    return usageError("expected one of --json-schema, --json-object, --regex "
                      "and --grammar, got several");
  if (options.jsonObject)
    return GrammarSource{GrammarSource::JsonObject, ""};
  if (options.regex)
    return GrammarSource{GrammarSource::Regex, *options.regex};
  if (options.grammarFile) {
    options.grammarPath = *options.grammarFile;
    LLAMAC_ASSIGN_OR_RETURN(std::string text, readText(options.grammarPath));
    return GrammarSource{GrammarSource::Ebnf, std::move(text)};
  }
  if (!options.jsonSchema)
    return std::nullopt;
  std::string schema = *options.jsonSchema;
  // No file is called so, or can be named as ./{...}.
  if (!absl::StartsWith(schema, "{")) {
    options.grammarPath = schema;
    LLAMAC_ASSIGN_OR_RETURN(schema, readText(options.grammarPath));
  }
  return GrammarSource{GrammarSource::JsonSchema, std::move(schema)};
}

/// `status`, where it is about a field of a request, with the option for it.
static absl::Status aboutOption(const absl::Status &status) {
  static constexpr std::pair<absl::string_view, absl::string_view> others[] = {
      {"temperature", "temp"}, {"repetition_penalty", "repeat-penalty"}};
  const std::string field = fieldOf(status);
  absl::string_view message = status.message();
  if (field.empty() || !absl::ConsumePrefix(&message, field))
    return status;
  std::string option = absl::StrReplaceAll(field, {{"_", "-"}});
  for (const auto &[name, other] : others)
    if (field == name)
      option = std::string(other);
  return remade(status, status.code(), absl::StrCat("--", option, message));
}

absl::Status prepareAnswer(AnswerOptions &options) {
  if (options.maxTokens.value_or(0) < -1)
    return usageError(
        absl::StrCat("-n: expected -1 or more, got ", *options.maxTokens));
  LLAMAC_ASSIGN_OR_RETURN(options.generate.sampling.logitBias,
                          parseLogitBias(options.logitBias));
  LLAMAC_ASSIGN_OR_RETURN(options.grammar, readGrammar(options));
  return aboutOption(Sampler::create(samplingOf(options, nullptr)).status());
}

absl::StatusOr<std::shared_ptr<const Grammar>>
compileGrammar(const AnswerOptions &options, absl::string_view path,
               GrammarCompiler *compiler) {
  if (!compiler)
    return usageError(
        absl::StrCat(path, ": a grammar needs a tokenizer, and there is none"));
  auto grammar = compiler->compile(*options.grammar);
  // Another text in the file may do, whatever is wrong with this one.
  if (!grammar.ok() && exitCode(grammar.status()) == ExitCode::Usage &&
      !options.grammarPath.empty())
    return badFileError(
        absl::StrCat(options.grammarPath, ": ", grammar.status().message()));
  return grammar;
}

absl::Status checkHasText(absl::string_view path, const Tokenizer *tokenizer) {
  return tokenizer
             ? absl::OkStatus()
             : usageError(absl::StrCat(path,
                                       ": there is no tokenizer to make text "
                                       "with; ask for ids by --print-ids"));
}

absl::Status writeOutput(std::FILE *out, absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), out) == text.size() &&
      std::fflush(out) == 0)
    return absl::OkStatus();
  return memoryError(
      absl::StrCat("cannot write the answer: ", std::strerror(errno)));
}

} // namespace llamac
