//===- StringRules.cpp - Rules for strings of JSON ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/grammar/StringRules.h"

#include "text/grammar/JsonSchema.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace llamac {

using Items = GrammarRules::Sequence;

/// A rule for each length is the fastest to follow, and takes long to compile.
static constexpr int64_t longestChain = 16;

static CharSet controls() { return {{0, 0x1F}}; }
static CharSet escaped() { return {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}; }

CharSet nameChars() { return without(anyChar(), {{0, 0x1F}, {0x7F, 0x9F}}); }

/// A character of JSON's short escapes and its letter.
static constexpr std::pair<char, char> shortEscapes[] = {
    {'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
    {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'},
};

/// One character of `set`, as JSON has it: alternatives. As a choice within a
/// sequence they would be a rule by themselves, and XGrammar does not know of
/// tokens that go on behind it before it follows them.
static std::vector<std::string> encoded(const CharSet &set) {
  std::vector<std::string> alternatives;
  if (const CharSet raw = without(set, escaped()); !raw.empty())
    alternatives.push_back(ebnfClass(raw));
  CharSet letters, rest = intersect(set, controls());
  for (const auto &[character, letter] : shortEscapes) {
    const uint32_t code = static_cast<uint8_t>(character);
    if (intersect(set, {{code, code}}).empty())
      continue;
    letters =
        unite(std::move(letters),
              {{static_cast<uint32_t>(letter), static_cast<uint32_t>(letter)}});
    rest = without(rest, {{code, code}});
  }
  if (!letters.empty())
    alternatives.push_back(absl::StrCat("\"\\\\\" ", ebnfClass(letters)));
  // Control characters come by their codes, of which the last digit is a class.
  for (uint32_t row = 0; row <= 0x1F; row += 16) {
    CharSet digits;
    for (const auto &[first, last] : intersect(rest, {{row, row + 15}}))
      for (uint32_t c = first; c <= last; ++c) {
        const auto digit = static_cast<uint8_t>("0123456789abcdef"[c - row]);
        digits.emplace_back(digit, digit);
      }
    if (!digits.empty())
      alternatives.push_back(absl::StrFormat("\"\\\\u00%x\" %s", row / 16,
                                             ebnfClass(unite(digits, {}))));
  }
  return alternatives;
}

/// `parts`, each followed by `rule`.
static void addBefore(int rule, const std::vector<std::string> &parts,
                      std::vector<Items> &to) {
  for (const std::string &part : parts)
    to.push_back({part, rule});
}

#define LLAMAC_HEX " [0-9A-Fa-f]"
/// Escapes of one code point: no half of a pair stands alone. Alternatives, as
/// of encoded().
static constexpr const char *anyEscapes[] = {
    R"("\\" [\"\\/bfnrt])",
    R"("\\u" [0-9A-CE-Fa-ce-f])" LLAMAC_HEX LLAMAC_HEX LLAMAC_HEX,
    R"("\\u" [Dd] [0-7])" LLAMAC_HEX LLAMAC_HEX,
    R"("\\u" [Dd] [89ABab])" LLAMAC_HEX LLAMAC_HEX
    R"( "\\u" [Dd] [C-Fc-f])" LLAMAC_HEX LLAMAC_HEX,
};
#undef LLAMAC_HEX

int StringRules::rest(bool isName) {
  int &rule = isName ? nameRest : anyRest;
  if (rule >= 0)
    return rule;
  rule = rules.add();
  // The text after the string lets XGrammar know of more tokens whether they
  // are right before it follows them.
  const std::string ahead =
      absl::StrCat("[ \\n\\r\\t]{0,", maxJsonSpace, "} [,}\\]:]");
  const std::string raw =
      ebnfClass(without(isName ? nameChars() : anyChar(), escaped()));
  std::vector<Items> alternatives = {{"\"\\\"\""}, {raw, rule}};
  if (isName)
    alternatives.push_back({R"("\\" [\"\\])", rule});
  else
    addBefore(rule, {std::begin(anyEscapes), std::end(anyEscapes)},
              alternatives);
  rules.define(rule, std::move(alternatives), ahead);
  return rule;
}

int StringRules::restOfAtMost(const CharSet &set, int64_t most) {
  const auto [known, isNew] = runs.try_emplace(set);
  int &run = known->second;
  if (isNew) {
    run = rules.add();
    std::vector<Items> goingOn = {{"\"\""}};
    addBefore(run, encoded(set), goingOn);
    rules.define(run, std::move(goingOn));
  }
  const int limited = rules.add({{run}});
  rules.limitChars(limited, most);
  return rules.add({{limited, "\"\\\"\""}});
}

int StringRules::restOfLength(int64_t least, int64_t most) {
  if (least == 0 && most < 0)
    return rest(false);
  if (const auto known = rests.find({least, most}); known != rests.end())
    return known->second;
  if (least == 0 && most > longestChain)
    return rests[{least, most}] = restOfAtMost(anyChar(), most);
  std::vector<Items> alternatives;
  if (least == 0)
    alternatives.push_back({"\"\\\"\""});
  if (most != 0)
    addBefore(
        restOfLength(std::max<int64_t>(least - 1, 0), most < 0 ? -1 : most - 1),
        encoded(anyChar()), alternatives);
  return rests[{least, most}] = rules.add(std::move(alternatives));
}

int StringRules::ofLength(int64_t least, int64_t most) {
  if (least == 0 && most < 0) {
    if (any < 0)
      any = rules.add({{"\"\\\"\"", rest(false)}});
    return any;
  }
  constexpr int64_t longestLeast = 64;
  if (least <= longestLeast)
    return rules.add({{"\"\\\"\"", restOfLength(least, most)}});
  if (character < 0) {
    std::vector<Items> parts;
    for (const std::string &part : encoded(anyChar()))
      parts.push_back({part});
    character = rules.add(std::move(parts));
  }
  return rules.add({{"\"\\\"\"", {character, least, most}, "\"\\\"\""}});
}

namespace {
/// A state with the characters that lead to each other one.
using Arrows = std::map<int, CharSet>;
} // namespace

/// How many characters may come after each state, or -1: where all that may
/// come are so many at most of one set, found from where nothing may.
static std::vector<int64_t>
countedTails(const std::vector<StringSet::State> &states,
             const std::vector<Arrows> &arrows) {
  std::vector<int64_t> tails(states.size(), -1);
  std::vector<std::vector<int>> before(states.size());
  std::vector<int> open;
  for (int i = 0; i < static_cast<int>(states.size()); ++i) {
    if (states[i].isEnd && arrows[i].size() == 1)
      before[arrows[i].begin()->first].push_back(i);
    if (states[i].isEnd && arrows[i].empty())
      open.push_back(i);
  }
  for (const int last : open)
    tails[last] = 0;
  while (!open.empty()) {
    const int next = open.back();
    open.pop_back();
    for (const int i : before[next])
      if (tails[next] == 0 ||
          arrows[i].begin()->second == arrows[next].begin()->second) {
        tails[i] = tails[next] + 1;
        open.push_back(i);
      }
  }
  return tails;
}

int StringRules::of(const StringSet &set) {
  const auto &states = set.states();
  const auto count = static_cast<int>(states.size());
  std::vector<Arrows> arrows(count);
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
  const std::vector<int64_t> tails = countedTails(states, arrows);
  // A state that is only passed through stands in the one before it.
  const auto isPassage = [&](int i) {
    return i != 0 && entries[i] == 1 && !states[i].isEnd &&
           arrows[i].size() == 1 && !arrows[i].contains(i) &&
           encoded(arrows[i].begin()->second).size() == 1;
  };
  for (int i = 0; i < count; ++i) {
    const auto loop = arrows[i].find(i);
    if (states[i].isEnd && arrows[i].size() == 1 && loop != arrows[i].end() &&
        (loop->second == anyChar() || loop->second == nameChars())) {
      rules.define(rule[i], {{rest(loop->second == nameChars())}});
      continue;
    }
    if (tails[i] > longestChain) {
      rules.define(rule[i],
                   {{restOfAtMost(arrows[i].begin()->second, tails[i])}});
      continue;
    }
    std::vector<Items> alternatives;
    if (states[i].isEnd)
      alternatives.push_back({"\"\\\"\""});
    for (const auto &[to, chars] : arrows[i]) {
      if (to == i)
        continue;
      Items behind;
      int next = to;
      while (isPassage(next)) {
        behind.push_back(encoded(arrows[next].begin()->second).front());
        next = arrows[next].begin()->first;
      }
      behind.push_back(rule[next]);
      for (const std::string &part : encoded(chars)) {
        Items sequence = {part};
        sequence.insert(sequence.end(), behind.begin(), behind.end());
        alternatives.push_back(std::move(sequence));
      }
    }
    if (loop == arrows[i].end()) {
      rules.define(rule[i], std::move(alternatives));
    } else if (const auto parts = encoded(loop->second); parts.size() == 1) {
      // A repetition is used since a rule for each character would be left for
      // each.
      const int tail = rules.add(std::move(alternatives));
      rules.define(rule[i], {{absl::StrCat("(", parts.front(), ")*"), tail}});
    } else {
      addBefore(rule[i], parts, alternatives);
      rules.define(rule[i], std::move(alternatives));
    }
  }
  return rules.add({{"\"\\\"\"", rule[0]}});
}

} // namespace llamac
