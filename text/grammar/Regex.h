//===- Regex.h - Regular expressions as trees and automata ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ECMA-262's regular expressions, without look-around, references and word
// boundaries, which are refused. Grammars need them as text of rules; schemas
// combine several, and lengths, so these are deterministic automata of code
// points, for which "and" and "not" are exact.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_GRAMMAR_REGEX_H
#define LLAMAC_TEXT_GRAMMAR_REGEX_H

#include "text/grammar/GrammarWork.h"

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// Ranges of code points, in order, apart from each other; both ends are in.
using CharSet = std::vector<std::pair<uint32_t, uint32_t>>;

/// Every code point but the halves of pairs.
const CharSet &anyChar();
CharSet unite(CharSet a, const CharSet &b);
CharSet without(const CharSet &a, const CharSet &b);
inline CharSet intersect(const CharSet &a, const CharSet &b) {
  return without(a, without(anyChar(), b));
}

/// A class of XGrammar's EBNF.
std::string ebnfClass(const CharSet &set);
/// A literal of XGrammar's EBNF, of UTF-8.
std::string ebnfLiteral(absl::string_view text);

struct Regex {
  enum Kind { Empty, Set, Concat, Alternate, Repeat, Begin, End };
  Kind kind = Empty;
  std::vector<Regex> parts = {};
  CharSet set = {};
  int least = 0, most = 0; ///< Counts of Repeat; `most` -1: any number.
};

/// The largest count of a regex, a rule or a schema.
inline constexpr int64_t maxCount = 10000;

/// Usage error, with the offset, for what is no regex or is not supported.
absl::StatusOr<Regex> parseRegex(absl::string_view text);

/// XGrammar's EBNF for text that `regex` matches as a whole. Usage error for an
/// anchor elsewhere than at an end.
absl::StatusOr<std::string> regexExpression(const Regex &regex);

/// A set of strings: a deterministic automaton of code points.
class StringSet {
public:
  /// An arrow for each range of code points; what has none leads nowhere.
  struct Arrow {
    uint32_t first, last;
    int to;
    bool operator==(const Arrow &) const = default;
  };
  struct State {
    std::vector<Arrow> arrows;
    bool isEnd = false;
  };

  static StringSet all();
  static StringSet ofLength(int64_t least, int64_t most);
  static StringSet of(absl::Span<const std::string> texts);
  /// Strings of characters of `set`.
  static StringSet over(const CharSet &set);
  /// The strings in which `regex` matches anywhere. Usage error where the
  /// automaton would be too large, and that of `work`.
  static absl::StatusOr<StringSet> matching(const Regex &regex,
                                            GrammarWork &work);

  /// The strings that are in both sets. Errors: those of matching().
  absl::StatusOr<StringSet> with(const StringSet &other,
                                 GrammarWork &work) const;
  StringSet complement() const;

  bool isEmpty() const;
  bool contains(absl::string_view utf8) const;
  /// The state that begins is 0.
  const std::vector<State> &states() const { return automaton; }
  int64_t bytes() const;

private:
  /// Drops states that lead to no end.
  void trim();
  /// Makes states one that nothing tells apart.
  absl::Status minimise(GrammarWork &work);

  std::vector<State> automaton{1};
};

} // namespace llamac

#endif // LLAMAC_TEXT_GRAMMAR_REGEX_H
