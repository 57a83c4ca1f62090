//===- StringRules.cpp - Rules for strings of JSON ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/StringRules.h"

#include "runtime/engine/JsonSchema.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

#include <algorithm>
#include <map>

namespace llamac {

using Items = GrammarRules::Sequence;

static CharSet controls() { return {{0, 0x1F}}; }
static CharSet escaped() { return {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}; }

CharSet nameChars() { return without(anyChar(), {{0, 0x1F}, {0x7F, 0x9F}}); }

/// A character of JSON's short escapes and its letter.
static constexpr std::pair<char, char> shortEscapes[] = {
    {'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
    {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'},
};

/// One character of `set`, as JSON has it.
static std::string encoded(const CharSet &set) {
  std::vector<std::string> alternatives;
  if (const CharSet raw = without(set, escaped()); !raw.empty())
    alternatives.push_back(ebnfClass(raw));
  CharSet letters, rest = intersect(set, controls());
  for (const auto &[character, letter] : shortEscapes) {
    const auto code = static_cast<uint32_t>(character);
    if (intersect(set, {{code, code}}).empty())
      continue;
    letters =
        unite(std::move(letters),
              {{static_cast<uint32_t>(letter), static_cast<uint32_t>(letter)}});
    rest = without(rest, {{code, code}});
  }
  if (!letters.empty())
    alternatives.push_back(absl::StrCat("\"\\\\\" ", ebnfClass(letters)));
  for (const auto &[first, last] : rest)
    for (uint32_t c = first; c <= last; ++c)
      alternatives.push_back(absl::StrFormat("\"\\\\u%04x\"", c));
  return alternatives.size() == 1
             ? alternatives[0]
             : absl::StrCat("(", absl::StrJoin(alternatives, " | "), ")");
}

/// Escapes of one code point: no half of a pair stands alone.
static constexpr absl::string_view anyEscape =
    R"(([\"\\/bfnrt] | "u" ([0-9A-CE-Fa-ce-f] [0-9A-Fa-f]{3} | )"
    R"([Dd] ([0-7] [0-9A-Fa-f]{2} | [89ABab] [0-9A-Fa-f]{2} "\\u" [Dd] )"
    R"([C-Fc-f] [0-9A-Fa-f]{2}))))";

int StringRules::rest(bool isName) {
  int &rule = isName ? nameRest : anyRest;
  if (rule >= 0)
    return rule;
  rule = rules.add();
  // What comes after the string lets XGrammar know of more tokens whether they
  // are right before it follows them.
  const std::string ahead =
      absl::StrCat("[ \\n\\r\\t]{0,", maxJsonSpace, "} [,}\\]:]");
  const std::string raw =
      ebnfClass(without(isName ? nameChars() : anyChar(), escaped()));
  rules.define(
      rule,
      {{"\"\\\"\""},
       {raw, rule},
       {"\"\\\\\"", isName ? "[\"\\\\]" : std::string(anyEscape), rule}},
      ahead);
  return rule;
}

int StringRules::ofLength(int64_t least, int64_t most) {
  if (least == 0 && most < 0) {
    if (any < 0)
      any = rules.add({{"\"\\\"\"", rest(false)}});
    return any;
  }
  if (character < 0)
    character = rules.add({{encoded(anyChar())}});
  return rules.add({{"\"\\\"\"", {character, least, most}, "\"\\\"\""}});
}

int StringRules::of(const StringSet &set) {
  const auto &states = set.states();
  const auto count = static_cast<int>(states.size());
  // Each state with the characters that lead to each other one.
  std::vector<std::map<int, CharSet>> arrows(count);
  std::vector<int> rule(count, -1), entries(count);
  for (int i = 0; i < count; ++i)
    for (const StringSet::Arrow &arrow : states[i].arrows) {
      CharSet &chars = arrows[i][arrow.to];
      chars = unite(std::move(chars), {{arrow.first, arrow.last}});
    }
  for (int i = 0; i < count; ++i)
    for (const auto &[to, chars] : arrows[i])
      entries[to] += to != i;
  for (int i = 0; i < count; ++i)
    rule[i] = rules.add();
  // A state that is only passed through stands in the one before it.
  const auto isPassage = [&](int i) {
    return i != 0 && entries[i] == 1 && !states[i].isEnd &&
           arrows[i].size() == 1 && !arrows[i].contains(i);
  };
  for (int i = 0; i < count; ++i) {
    const auto loop = arrows[i].find(i);
    if (states[i].isEnd && arrows[i].size() == 1 && loop != arrows[i].end() &&
        (loop->second == anyChar() || loop->second == nameChars())) {
      rules.define(rule[i], {{rest(loop->second == nameChars())}});
      continue;
    }
    std::vector<Items> alternatives;
    if (states[i].isEnd)
      alternatives.push_back({"\"\\\"\""});
    for (const auto &[to, chars] : arrows[i]) {
      if (to == i)
        continue;
      Items sequence = {encoded(chars)};
      int next = to;
      while (isPassage(next)) {
        sequence.push_back(encoded(arrows[next].begin()->second));
        next = arrows[next].begin()->first;
      }
      sequence.push_back(rule[next]);
      alternatives.push_back(std::move(sequence));
    }
    if (loop != arrows[i].end()) {
      // As a repetition: a rule for each character would be left for each.
      const int tail = rules.add(std::move(alternatives));
      rules.define(rule[i],
                   {{absl::StrCat("(", encoded(loop->second), ")*"), tail}});
    } else {
      rules.define(rule[i], std::move(alternatives));
    }
  }
  return rules.add({{"\"\\\"\"", rule[0]}});
}

} // namespace llamac
