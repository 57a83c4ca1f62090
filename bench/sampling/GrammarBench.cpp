//===- GrammarBench.cpp - Speed of grammars -------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles grammars for the tokenizer of a model, follows an answer that each
// of them allows, and prints what compiling took and what finding the next
// tokens took for each token of the answer: median, 99th percentile, most.
//
// usage: llamac_grammar_bench MODEL (a .gguf file, or a folder with
// tokenizer.json or tokenizer.model)
//
//===----------------------------------------------------------------------===//

#include "frontends/TokenizerSources.h"
#include "frontends/gguf/GgufReader.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"
#include "text/grammar/Grammar.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

using namespace llamac;

namespace {

struct Case {
  const char *name;
  GrammarSource source;
  std::string answer;
};

} // namespace

static std::vector<Case> cases() {
  const std::string call =
      R"({"name": "get_weather", "arguments": {"city": "Zürich", "days": 3,)"
      R"( "units": "celsius"}})";
  std::string people = R"({"people": [)";
  for (int i = 0; i < 8; ++i)
    absl::StrAppend(&people, i ? ", " : "", R"({"name": "Grace Hopper )", i,
                    R"(", "age": )", 30 + i,
                    R"(, "email": "grace@example.com", "tags": ["navy", )"
                    R"("compilers \u00e9"], "score": -12.5e3})");
  people += "]}";
  return {
      {"schema: tool call",
       {GrammarSource::JsonSchema,
        R"({"type":"object","properties":{"name":{"const":"get_weather"},)"
        R"("arguments":{"type":"object","properties":{"city":{"type":"string"},)"
        R"("days":{"type":"integer","minimum":1,"maximum":14},"units":)"
        R"({"enum":["celsius","fahrenheit"]}},"required":["city","days"],)"
        R"("additionalProperties":false}},"required":["name","arguments"]})"},
       call},
      {"schema: list of records",
       {GrammarSource::JsonSchema,
        R"({"type":"object","properties":{"people":{"type":"array","items":)"
        R"({"$ref":"#/$defs/person"},"maxItems":20}},"required":["people"],)"
        R"("$defs":{"person":{"type":"object","properties":{"name":)"
        R"({"type":"string","maxLength":40},"age":{"type":"integer"},"email":)"
        R"({"type":"string","format":"email"},"tags":{"type":"array","items":)"
        R"({"type":"string"}},"score":{"type":"number"}},)"
        R"("required":["name","age"]}}})"},
       people},
      {"schema: pattern with a count",
       {GrammarSource::JsonSchema,
        R"({"type":"string","pattern":"^.{1,200}$"})"},
       R"("The quick brown fox jumps over the lazy dog; \"so what\", it said.")"},
      {"any JSON object", {GrammarSource::JsonObject, ""}, people},
      {"regex: date and time",
       {GrammarSource::Regex,
        R"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2}))"},
       "2024-02-29T23:59:58.123456+02:00"},
      {"EBNF: arithmetic",
       {GrammarSource::Ebnf, "root ::= sum\n"
                             "sum ::= product ((\"+\" | \"-\") product)*\n"
                             "product ::= value ((\"*\" | \"/\") value)*\n"
                             "value ::= [0-9]+ | \"(\" sum \")\"\n"},
       "(12+34)*5-(6/(7+8)-9)*10+(((11)))"},
  };
}

static absl::StatusOr<std::string> readTokenizer(const std::string &path) {
  if (!std::filesystem::is_directory(path)) {
    LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                            MappedFile::open(path));
    LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const GgufReader> model,
                            GgufReader::open(std::move(file)));
    return buildGgufBlob(*model);
  }
  LLAMAC_ASSIGN_OR_RETURN(std::optional<std::string> blob,
                          buildDirectoryBlob(path));
  return std::move(blob).value_or("");
}

static absl::Status follow(GrammarCompiler &compiler, const Tokenizer &words,
                           const Case &test) {
  const double start = steadySeconds();
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const Grammar> grammar,
                          compiler.compile(test.source));
  const double compiled = steadySeconds() - start;
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                          words.encode(test.answer));
  constexpr int rounds = 5;
  std::vector<double> times;
  TokenMask mask;
  for (int round = 0; round < rounds; ++round) {
    LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<GrammarMatcher> matcher,
                            grammar->newMatcher());
    for (const int32_t id : ids) {
      const double before = steadySeconds();
      LLAMAC_RETURN_IF_ERROR(matcher->nextTokens(mask));
      times.push_back(steadySeconds() - before);
      if (!(mask[id / 32] >> (id % 32) & 1))
        return internalError(absl::StrCat(test.name, ": refused its answer"));
      LLAMAC_RETURN_IF_ERROR(matcher->accept(id).status());
    }
  }
  std::sort(times.begin(), times.end());
  absl::PrintF("%-24s %9.1f %9.2f %7d %9.1f %9.1f %9.1f\n", test.name,
               compiled * 1e3, static_cast<double>(grammar->bytes()) / 1e6,
               ids.size(), times[times.size() / 2] * 1e6,
               times[times.size() * 99 / 100] * 1e6, times.back() * 1e6);
  return absl::OkStatus();
}

static absl::Status run(const std::string &path) {
  LLAMAC_ASSIGN_OR_RETURN(std::string blob, readTokenizer(path));
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> words,
                          loadTokenizer(std::move(blob)));
  const std::vector<int32_t> stopIds = {words->vocabSize() - 1};
  GrammarCompiler compiler(*words, words->vocabSize(), stopIds);
  const double start = steadySeconds();
  LLAMAC_RETURN_IF_ERROR(
      compiler.compile({GrammarSource::Regex, "a"}).status());
  absl::PrintF("vocabulary of %d tokens: %.1f ms\n\n", words->vocabSize(),
               (steadySeconds() - start) * 1e3);
  absl::PrintF("%-24s %9s %9s %7s %9s %9s %9s\n", "", "compiled", "", "",
               "mask: 50%", "99%", "most");
  absl::PrintF("%-24s %9s %9s %7s %9s %9s %9s\n", "grammar", "ms", "MB",
               "tokens", "us", "us", "us");
  for (const Case &test : cases())
    LLAMAC_RETURN_IF_ERROR(follow(compiler, *words, test));
  return absl::OkStatus();
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: llamac_grammar_bench MODEL\n");
    return 2;
  }
  const absl::Status status = run(argv[1]);
  if (!status.ok())
    std::fprintf(stderr, "llamac_grammar_bench: error: %s\n",
                 std::string(status.message()).c_str());
  return static_cast<int>(exitCode(status));
}
