//===- Grammar.cpp - What an answer must match ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/grammar/Grammar.h"

#include "runtime/base/Exceptions.h"
#include "runtime/base/Status.h"
#include "runtime/io/JsonText.h"
#include "text/grammar/JsonSchema.h"
#include "text/grammar/Regex.h"

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

/// The word for the text of a grammar in messages.
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
  char closing = 0; // Closes a literal or class.
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

/// Makes rules of the schemas in `format`, a part of tags.
static absl::Status translateTags(nlohmann::ordered_json &format,
                                  GrammarWork &work) {
  if (!format.is_structured())
    return absl::OkStatus();
  if (const auto type = format.find("type");
      type == format.end() || *type != "json_schema") {
    for (nlohmann::ordered_json &part : format)
      LLAMAC_RETURN_IF_ERROR(translateTags(part, work));
    return absl::OkStatus();
  }
  LLAMAC_ASSIGN_OR_RETURN(
      std::string rules,
      jsonSchemaGrammar(jsonText(format["json_schema"]), work));
  format = {{"type", "grammar"}, {"grammar", std::move(rules)}};
  return absl::OkStatus();
}

/// `source` as rules or tags with rules.
static absl::StatusOr<GrammarSource> translate(const GrammarSource &source,
                                               GrammarWork &work) {
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
                              : source.text,
                          work));
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
  case GrammarSource::Tags: {
    auto tags = nlohmann::ordered_json::parse(source.text, nullptr,
                                              /*allow_exceptions=*/false);
    LLAMAC_RETURN_IF_ERROR(translateTags(tags, work));
    return GrammarSource{GrammarSource::Tags, jsonText(tags)};
  }
  }
  return internalError("unknown kind of grammar");
}

absl::Status checkGrammar(const GrammarSource &source,
                          const GrammarLimits &limits) {
  GrammarWork work(limits.compileSeconds, limits.compileBytes);
  const absl::Status status = withoutExceptions([&]() -> absl::Status {
    LLAMAC_ASSIGN_OR_RETURN(const GrammarSource translated,
                            translate(source, work));
    return parseGrammar(translated, work);
  });
  return status.ok() ? status : withContext(status, nameOf(source.kind));
}

absl::StatusOr<std::shared_ptr<const Grammar>>
GrammarCompiler::compileNew(const GrammarSource &source, GrammarWork &work) {
  if (!worker) {
    LLAMAC_ASSIGN_OR_RETURN(
        worker, newGrammarBackend(tokenizer, vocabSize, stopIds, limits));
  }
  LLAMAC_ASSIGN_OR_RETURN(GrammarSource translated, translate(source, work));
  translated.namedControls = source.namedControls;
  // The translator has freed what it held.
  work.giveBack(work.heldBytes());
  return worker->compile(translated, work);
}

std::shared_ptr<const Grammar>
GrammarCompiler::find(const GrammarSource &source) {
  const std::lock_guard lock(keeping);
  const auto found = std::find_if(kept.begin(), kept.end(), [&](auto &known) {
    return known.source == source;
  });
  if (found == kept.end())
    return nullptr;
  kept.splice(kept.begin(), kept, found);
  return found->grammar;
}

void GrammarCompiler::keep(const GrammarSource &source,
                           std::shared_ptr<const Grammar> grammar) {
  std::list<Kept> dropped; // Without the lock, as that takes time.
  const std::lock_guard lock(keeping);
  kept.push_front({source, std::move(grammar)});
  int64_t bytes = 0;
  for (auto known = kept.begin(); known != kept.end();) {
    const auto next = std::next(known);
    bytes += known->grammar->bytes() +
             static_cast<int64_t>(known->source.text.size());
    if (bytes > limits.keptBytes && known != kept.begin())
      dropped.splice(dropped.end(), kept, known);
    known = next;
  }
}

absl::StatusOr<std::shared_ptr<const Grammar>>
GrammarCompiler::compile(const GrammarSource &source,
                         const std::atomic<bool> *isUnwanted) {
  if (auto grammar = find(source))
    return grammar;
  // One at a time: who asks for the same grammar finds it, and those who send
  // many do not get more than a processor.
  const std::lock_guard lock(compiling);
  if (auto grammar = find(source))
    return grammar;
  GrammarWork work(limits.compileSeconds, limits.compileBytes, isUnwanted);
  absl::StatusOr<std::shared_ptr<const Grammar>> grammar =
      withoutExceptions([&] { return compileNew(source, work); });
  giveMemoryBack(work.peakBytes() - (grammar.ok() ? (*grammar)->bytes() : 0));
  if (!grammar.ok())
    return withContext(grammar.status(), nameOf(source.kind));
  keep(source, *grammar);
  return grammar;
}

} // namespace llamac
