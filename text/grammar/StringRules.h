//===- StringRules.h - Rules for strings of JSON ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_GRAMMAR_STRINGRULES_H
#define LLAMAC_TEXT_GRAMMAR_STRINGRULES_H

#include "text/grammar/GrammarRules.h"
#include "text/grammar/Regex.h"

#include <map>
#include <utility>

namespace llamac {

/// Characters of names that a schema does not list: none of control, of which
/// regexes of languages differ.
CharSet nameChars();

/// Adds rules for strings, with their quotes. What JSON must escape is written
/// in one way; where any string may come each character may be escaped, but
/// none as half of a pair.
class StringRules {
public:
  explicit StringRules(GrammarRules &rules) : rules(rules) {}

  /// Strings of `least` to `most` characters (-1: any number).
  int ofLength(int64_t least, int64_t most);
  /// Strings of `set`, which is not empty.
  int of(const StringSet &set);

private:
  /// The rest of any string, with its end; of nameChars() where it `isName`.
  int rest(bool isName);
  /// The rest of any string with `least` to `most` characters.
  int restOfLength(int64_t least, int64_t most);
  /// The rest of a string with at most `most` characters of `set`, where those
  /// of an escape count one by one.
  int restOfAtMost(const CharSet &set, int64_t most);

  GrammarRules &rules;
  int any = -1, anyRest = -1, nameRest = -1, character = -1;
  std::map<std::pair<int64_t, int64_t>, int> rests; ///< Rules by length.
  std::map<CharSet, int> runs; ///< Any number of characters of a set.
};

} // namespace llamac

#endif // LLAMAC_TEXT_GRAMMAR_STRINGRULES_H
