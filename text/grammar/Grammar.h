//===- Grammar.h - What an answer must match --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A grammar is compiled once for the tokens of a model; a matcher follows one
// answer and says which tokens may come next. XGrammar (Dong et al. 2024) does
// both. Where llamac was built without it every grammar is refused.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_GRAMMAR_GRAMMAR_H
#define LLAMAC_TEXT_GRAMMAR_GRAMMAR_H

#include "text/grammar/GrammarWork.h"
#include "text/tokenizer/Tokenizer.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace llamac {

struct GrammarSource {
  enum Kind {
    JsonSchema, ///< A schema for jsonSchemaGrammar().
    JsonObject, ///< Any JSON object; `text` is empty.
    Regex,      ///< A regex for the whole answer, in ECMAScript's syntax.
    Ebnf,       ///< Rules "name ::= ..." as in GBNF, of which "root" is first.
    Tags,       ///< Text with rules in places, as XGrammar's structural tags
                ///< say; their schemas are as jsonSchemaGrammar() takes them.
  };
  Kind kind = JsonObject;
  std::string text;
  /// Control tokens that stand for their names in it; others are in no grammar.
  std::vector<int32_t> namedControls = {};

  bool operator==(const GrammarSource &) const = default;
};

/// A set of token ids: id i is in it where bit i % 32 of word i / 32 is set.
using TokenMask = std::vector<uint32_t>;

/// The state of one answer; used by one thread at a time.
class GrammarMatcher {
public:
  virtual ~GrammarMatcher();

  /// Makes `mask` the tokens that may come next: stop ids where the answer may
  /// end, and no others where it can only end. Empty after a stop id, and where
  /// the vocabulary has no token that goes on. Usage error where the grammar is
  /// so ambiguous that it takes too long; the matcher is of no use then.
  virtual absl::Status nextTokens(TokenMask &mask) = 0;

  /// Goes on by `id`. False, and nothing has changed, where the grammar does
  /// not allow it: the mask may hold a token that ends inside a character which
  /// cannot be completed. Errors: those of nextTokens().
  virtual absl::StatusOr<bool> accept(int32_t id) = 0;
};

/// A compiled grammar; never changes, so that threads may share it.
class Grammar {
public:
  virtual ~Grammar();
  virtual absl::StatusOr<std::unique_ptr<GrammarMatcher>>
  newMatcher() const = 0;

  /// Bytes of memory, about.
  virtual int64_t bytes() const = 0;

  /// The ids that end an answer.
  virtual absl::Span<const int32_t> stopIds() const = 0;
};

/// Seconds are those of a processor.
struct GrammarLimits {
  int64_t keptBytes = int64_t{256} << 20; ///< Bytes of grammars that are kept.
  /// Time to compile one: schemas of a hundred properties take a second or two.
  double compileSeconds = 10;
  int64_t compileBytes = int64_t{512} << 20; ///< Bytes that a compilation holds
                                             ///< at once.
  /// Time to follow an answer: some, and more for each token, which takes some
  /// 50 microseconds by most grammars.
  double answerSeconds = 1, tokenSeconds = 5e-3;
};

/// Error of compiling `source` that no vocabulary is needed for: its syntax,
/// what it asks for that is not supported, and its size.
absl::Status checkGrammar(const GrammarSource &source,
                          const GrammarLimits &limits = {});

/// Compiles grammars for one vocabulary and keeps those used last. Threads may
/// share one.
class GrammarCompiler {
public:
  /// The most bytes of a grammar's text, and the most levels of its brackets.
  static constexpr size_t maxTextBytes = size_t{64} << 10;
  static constexpr int maxDepth = 64;

  /// `tokenizer` outlives the result. `vocabSize` counts the logits of a row,
  /// which may be more than its tokens.
  GrammarCompiler(const Tokenizer &tokenizer, int64_t vocabSize,
                  absl::Span<const int32_t> stopIds,
                  const GrammarLimits &limits = {});
  ~GrammarCompiler();

  /// The grammar of `source` where it is kept, else null. Never waits for one
  /// that is compiled.
  std::shared_ptr<const Grammar> find(const GrammarSource &source);

  /// The grammar of `source`, one after the other. Errors: usage for text that
  /// is no grammar, asks for what is not supported, or would take too much time
  /// or memory; unsupported where llamac was built without grammars. Ends soon
  /// where another thread sets `isUnwanted`.
  absl::StatusOr<std::shared_ptr<const Grammar>>
  compile(const GrammarSource &source,
          const std::atomic<bool> *isUnwanted = nullptr);

  /// Compiles grammars; made when first needed.
  class Backend {
  public:
    virtual ~Backend();
    /// `source` is one of rules or tags.
    virtual absl::StatusOr<std::shared_ptr<const Grammar>>
    compile(const GrammarSource &source, GrammarWork &work) = 0;
  };

private:
  struct Kept {
    GrammarSource source;
    std::shared_ptr<const Grammar> grammar;
  };

  absl::StatusOr<std::shared_ptr<const Grammar>>
  compileNew(const GrammarSource &source, GrammarWork &work);
  void keep(const GrammarSource &source,
            std::shared_ptr<const Grammar> grammar);

  const Tokenizer &tokenizer;
  int64_t vocabSize;
  std::vector<int32_t> stopIds;
  GrammarLimits limits;
  std::mutex compiling; ///< Held while a grammar is compiled.
  std::unique_ptr<Backend> worker;
  std::mutex keeping;   ///< Guards `kept`.
  std::list<Kept> kept; ///< The one used last is first.
};

/// Usage error where `source`, of rules or tags, is none; unsupported where
/// llamac was built without grammars.
absl::Status parseGrammar(const GrammarSource &source, GrammarWork &work);

/// The backend for a vocabulary; see GrammarCompiler.
absl::StatusOr<std::unique_ptr<GrammarCompiler::Backend>>
newGrammarBackend(const Tokenizer &tokenizer, int64_t vocabSize,
                  absl::Span<const int32_t> stopIds,
                  const GrammarLimits &limits);

} // namespace llamac

#endif // LLAMAC_TEXT_GRAMMAR_GRAMMAR_H
