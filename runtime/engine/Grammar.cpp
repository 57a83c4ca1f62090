//===- Grammar.cpp - What an answer must match ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Grammar.h"

#include "runtime/base/Status.h"
#include "runtime/engine/JsonSchema.h"
#include "runtime/engine/Regex.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include <algorithm>

namespace llamac {

GrammarMatcher::~GrammarMatcher() = default;
Grammar::~Grammar() = default;
GrammarCompiler::Backend::~Backend() = default;

GrammarCompiler::GrammarCompiler(const Tokenizer &tokenizer, int64_t vocabSize,
                                 absl::Span<const int32_t> stopIds,
                                 const GrammarLimits &limits)
    : tokenizer(tokenizer), vocabSize(vocabSize),
      stopIds(stopIds.begin(), stopIds.end()), limits(limits) {}

GrammarCompiler::~GrammarCompiler() = default;

/// What the text of a grammar is called in messages.
static absl::string_view nameOf(GrammarSource::Kind kind) {
  static constexpr absl::string_view names[] = {
      "JSON schema", "JSON object", "regex", "grammar", "calls of tools"};
  return names[kind];
}

/// Error for text that no recursive reader should see.
static absl::Status checkText(const GrammarSource &source) {
  if (source.text.size() > GrammarCompiler::maxTextBytes)
    return usageError(absl::StrCat("expected at most ",
                                   GrammarCompiler::maxTextBytes,
                                   " bytes, got ", source.text.size()));
  if (source.text.find('\0') != std::string::npos)
    return usageError("expected text, got a zero byte");
  // Brackets in strings and classes count as well: few have as many.
  int depth = 0, most = 0;
  for (const char c : source.text) {
    if (c == '(' || c == '[' || c == '{')
      most = std::max(most, ++depth);
    else if (c == ')' || c == ']' || c == '}')
      depth = std::max(depth - 1, 0);
  }
  if (most > GrammarCompiler::maxDepth)
    return usageError(absl::StrCat("expected at most ",
                                   GrammarCompiler::maxDepth,
                                   " levels of brackets, got ", most));
  return absl::OkStatus();
}

/// Error for a count "{...}" in rules that is larger than XGrammar's numbers:
/// it would take another one.
static absl::Status checkCounts(absl::string_view rules) {
  char closing = 0; // Of a literal or class.
  for (size_t i = 0; i < rules.size(); ++i) {
    const char c = rules[i];
    if (closing) {
      if (c == '\\')
        ++i;
      else if (c == closing || c == '\n')
        closing = 0;
    } else if (c == '"' || c == '[') {
      closing = c == '"' ? '"' : ']';
    } else if (c == '#') {
      i = std::min(rules.find_first_of("\r\n", i), rules.size());
    } else if (absl::ascii_isdigit(static_cast<unsigned char>(c)) &&
               (i == 0 || rules[i - 1] == '{' || rules[i - 1] == ',' ||
                rules[i - 1] == ' ')) {
      int64_t count = 0;
      for (; i < rules.size() &&
             absl::ascii_isdigit(static_cast<unsigned char>(rules[i]));
           ++i)
        count = std::min<int64_t>(count * 10 + (rules[i] - '0'), maxCount + 1);
      --i;
      if (count > maxCount)
        return usageError(
            absl::StrCat("expected counts of at most ", maxCount));
    }
  }
  return absl::OkStatus();
}

/// `source` as rules or tags.
static absl::StatusOr<GrammarSource> translate(const GrammarSource &source) {
  LLAMAC_RETURN_IF_ERROR(checkText(source));
  const auto ebnf = [](std::string text) {
    return GrammarSource{GrammarSource::Ebnf, std::move(text)};
  };
  switch (source.kind) {
  case GrammarSource::JsonSchema:
  case GrammarSource::JsonObject: {
    LLAMAC_ASSIGN_OR_RETURN(
        std::string rules,
        jsonSchemaGrammar(source.kind == GrammarSource::JsonObject
                              ? R"({"type":"object"})"
                              : source.text));
    return ebnf(std::move(rules));
  }
  case GrammarSource::Regex: {
    LLAMAC_ASSIGN_OR_RETURN(const Regex regex, parseRegex(source.text));
    LLAMAC_ASSIGN_OR_RETURN(const std::string text, regexExpression(regex));
    return ebnf(absl::StrCat("root ::= ", text, "\n"));
  }
  case GrammarSource::Ebnf:
    LLAMAC_RETURN_IF_ERROR(checkCounts(source.text));
    return source;
  case GrammarSource::Tags:
    return source;
  }
  return internalError("unknown kind of grammar");
}

absl::StatusOr<const GrammarCompiler::Backend *> GrammarCompiler::backend() {
  if (!worker) {
    LLAMAC_ASSIGN_OR_RETURN(
        worker, newGrammarBackend(tokenizer, vocabSize, stopIds, limits));
  }
  return worker.get();
}

absl::StatusOr<std::shared_ptr<const Grammar>>
GrammarCompiler::compile(const GrammarSource &source) {
  auto find = [&]() -> std::shared_ptr<const Grammar> {
    const std::lock_guard lock(keeping);
    const auto found = std::find_if(kept.begin(), kept.end(), [&](auto &known) {
      return known.source == source;
    });
    if (found == kept.end())
      return nullptr;
    kept.splice(kept.begin(), kept, found);
    return found->grammar;
  };
  if (auto grammar = find())
    return grammar;
  absl::StatusOr<GrammarSource> checked = translate(source);
  if (!checked.ok())
    return withContext(checked.status(), nameOf(source.kind));
  checked->namedControls = source.namedControls;

  // One at a time: who asks for the same grammar finds it, and those who send
  // many do not get more than a processor.
  const std::lock_guard lock(compiling);
  if (auto grammar = find())
    return grammar;
  LLAMAC_ASSIGN_OR_RETURN(const Backend *const compiler, backend());
  absl::StatusOr<std::shared_ptr<const Grammar>> grammar =
      compiler->compile(*checked);
  if (!grammar.ok())
    return withContext(grammar.status(), nameOf(source.kind));
  const std::lock_guard keepingLock(keeping);
  kept.push_front({source, *grammar});
  uint64_t bytes = 0;
  for (auto known = kept.begin(); known != kept.end();) {
    bytes += known->grammar->bytes() + known->source.text.size();
    known = bytes > limits.keptBytes && known != kept.begin()
                ? kept.erase(known)
                : std::next(known);
  }
  return grammar;
}

} // namespace llamac
