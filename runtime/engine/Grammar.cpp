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
  auto check = [&]() -> absl::StatusOr<GrammarSource> {
    LLAMAC_RETURN_IF_ERROR(checkText(source));
    if (source.kind == GrammarSource::JsonObject)
      return GrammarSource{GrammarSource::JsonSchema,
                           R"({"type":"object","additionalProperties":true})"};
    if (source.kind != GrammarSource::JsonSchema)
      return source;
    LLAMAC_ASSIGN_OR_RETURN(std::string schema, prepareJsonSchema(source.text));
    return GrammarSource{source.kind, std::move(schema), source.namedControls};
  };
  absl::StatusOr<GrammarSource> checked = check();
  if (!checked.ok())
    return withContext(checked.status(), nameOf(source.kind));

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
