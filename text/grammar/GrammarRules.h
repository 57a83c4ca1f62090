//===- GrammarRules.h - Rules of a grammar ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A context-free grammar that is built rule by rule and printed as XGrammar's
// EBNF, without what matches no text: rules that refer to each other for ever.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_GRAMMAR_GRAMMARRULES_H
#define LLAMAC_TEXT_GRAMMAR_GRAMMARRULES_H

#include "text/grammar/GrammarWork.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <cstdint>
#include <string>
#include <vector>

namespace llamac {

class GrammarRules {
public:
  /// `work` outlives it, and is told of what the rules take.
  explicit GrammarRules(GrammarWork &work) : work(work) {}

  /// Text of EBNF; or a rule, `least` to `most` times (-1: any number).
  struct Item {
    std::string text = {};
    int rule = -1;
    int64_t least = 1, most = 1;

    Item(std::string text) : text(std::move(text)) {}
    Item(const char *text) : text(text) {}
    Item(int rule, int64_t least = 1, int64_t most = 1)
        : rule(rule), least(least), most(most) {}
  };
  using Sequence = std::vector<Item>;

  /// A rule that is defined later.
  int add() {
    rules.emplace_back();
    return static_cast<int>(rules.size()) - 1;
  }
  /// `ahead`: a lookahead of XGrammar's, which says what comes after.
  void define(int rule, std::vector<Sequence> alternatives,
              absl::string_view ahead = "");
  int add(std::vector<Sequence> alternatives) {
    const int rule = add();
    define(rule, std::move(alternatives));
    return rule;
  }
  /// Has `rule` match at most `most` characters, each time that it is used. It
  /// may go on where it cannot end.
  void limitChars(int rule, int64_t most) { rules[rule].mostChars = most; }
  int64_t size() const { return static_cast<int64_t>(rules.size()); }

  /// Usage error where the rules take too much by now. Who adds some in a loop
  /// asks in it.
  absl::Status check() const { return exceeded; }

  /// The rules that `root` needs. Empty where no text matches it. Errors: that
  /// of check().
  absl::StatusOr<std::string> print(int root);

private:
  struct Rule {
    std::vector<Sequence> alternatives = {};
    std::string ahead = {};
    int64_t mostChars = -1; ///< -1: any number.
  };
  std::vector<bool> findProductive() const;
  void count(int64_t bytes);

  GrammarWork &work;
  absl::Status exceeded;
  std::vector<Rule> rules;
};

} // namespace llamac

#endif // LLAMAC_TEXT_GRAMMAR_GRAMMARRULES_H
