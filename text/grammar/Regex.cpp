//===- Regex.cpp - Regular expressions as trees ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/grammar/Regex.h"

#include "runtime/base/Status.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <optional>

namespace llamac {

//===----------------------------------------------------------------------===//
// Sets of characters
//===----------------------------------------------------------------------===//

const CharSet &anyChar() {
  static const CharSet any = {{0, 0xD7FF}, {0xE000, 0x10FFFF}};
  return any;
}

CharSet unite(CharSet a, const CharSet &b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  CharSet merged;
  for (const auto &[first, last] : a) {
    if (!merged.empty() && first <= merged.back().second + 1)
      merged.back().second = std::max(merged.back().second, last);
    else
      merged.emplace_back(first, last);
  }
  return merged;
}

CharSet without(const CharSet &a, const CharSet &b) {
  CharSet rest;
  auto other = b.begin();
  for (auto [first, last] : a) {
    while (other != b.end() && other->second < first)
      ++other;
    for (auto cut = other; cut != b.end() && cut->first <= last; ++cut) {
      if (cut->first > first)
        rest.emplace_back(first, cut->first - 1);
      first = cut->second + 1;
    }
    if (first <= last)
      rest.emplace_back(first, last);
  }
  return rest;
}

static std::string ebnfChar(uint32_t c) {
  if (c < 0x80 && absl::ascii_isalnum(static_cast<unsigned char>(c)))
    return std::string(1, static_cast<char>(c));
  return c < 0x10000 ? absl::StrFormat("\\u%04x", c)
                     : absl::StrFormat("\\U%08x", c);
}

std::string ebnfClass(const CharSet &set) {
  std::string text = "[";
  for (const auto &[first, last] : set) {
    text += ebnfChar(first);
    if (last > first)
      absl::StrAppend(&text, "-", ebnfChar(last));
  }
  return text + "]";
}

std::string ebnfLiteral(absl::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      literal += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      absl::StrAppendFormat(&literal, "\\x%02x", c);
    else
      literal += c;
  }
  return literal + "\"";
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

namespace {

class RegexParser {
public:
  explicit RegexParser(absl::string_view text) : text(text) {}

  absl::StatusOr<Regex> parse() {
    LLAMAC_ASSIGN_OR_RETURN(Regex regex, alternatives());
    if (at < text.size())
      return fail("an unmatched )");
    return regex;
  }

private:
  absl::Status fail(absl::string_view what) const {
    return usageError(absl::StrCat("offset ", at, ": ", what));
  }
  absl::Status unsupported(absl::string_view what) const {
    return fail(absl::StrCat(what, " is not supported"));
  }
  bool sees(absl::string_view next) const {
    return absl::StartsWith(text.substr(at), next);
  }
  bool take(absl::string_view next) {
    if (!sees(next))
      return false;
    at += next.size();
    return true;
  }

  absl::StatusOr<Regex> alternatives();
  absl::StatusOr<Regex> sequence();
  absl::StatusOr<Regex> atom();
  absl::StatusOr<Regex> group();
  absl::StatusOr<Regex> repeated(Regex part, size_t start);
  absl::StatusOr<std::optional<std::pair<int, int>>> counts();
  absl::StatusOr<uint32_t> character();
  absl::StatusOr<CharSet> charClass();
  /// After a backslash: one character, or the set that a letter stands for.
  absl::StatusOr<CharSet> escape(bool inClass);
  absl::StatusOr<uint32_t> hex(size_t digits);

  absl::string_view text;
  size_t at = 0;
  int depth = 0;
};

} // namespace

static CharSet digits() { return {{'0', '9'}}; }
static CharSet wordChars() {
  return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
}
static CharSet spaces() {
  return {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},
          {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029},
          {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
}
/// Spaces to some readers: neither \s nor \S has them.
static CharSet doubtfulSpaces() {
  return {{0x1C, 0x1F}, {0x85, 0x85}, {0xFEFF, 0xFEFF}};
}
static CharSet lineEnds() {
  return {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
}

absl::StatusOr<Regex> RegexParser::alternatives() {
  Regex regex{.kind = Regex::Alternate};
  do {
    LLAMAC_ASSIGN_OR_RETURN(regex.parts.emplace_back(), sequence());
  } while (take("|"));
  if (regex.parts.size() == 1) {
    Regex only = std::move(regex.parts.front());
    return only;
  }
  return regex;
}

absl::StatusOr<Regex> RegexParser::sequence() {
  Regex regex{.kind = Regex::Concat};
  while (at < text.size() && !sees("|") && !sees(")")) {
    const size_t start = at;
    LLAMAC_ASSIGN_OR_RETURN(Regex part, atom());
    LLAMAC_ASSIGN_OR_RETURN(part, repeated(std::move(part), start));
    regex.parts.push_back(std::move(part));
  }
  if (regex.parts.size() == 1) {
    Regex only = std::move(regex.parts.front());
    return only;
  }
  return regex;
}

absl::StatusOr<Regex> RegexParser::group() {
  for (const absl::string_view look : {"?=", "?!"})
    if (sees(look))
      return unsupported("lookahead");
  for (const absl::string_view look : {"?<=", "?<!"})
    if (sees(look))
      return unsupported("lookbehind");
  if (take("?<")) {
    const size_t end = text.find('>', at);
    if (end == text.npos)
      return fail("a group's name without an end");
    at = end + 1;
  } else if (!take("?:") && sees("?")) {
    return unsupported("a group with flags");
  }
  constexpr int maxDepth = 64;
  if (++depth > maxDepth)
    return fail(absl::StrCat("expected at most ", maxDepth, " nested groups"));
  LLAMAC_ASSIGN_OR_RETURN(Regex inner, alternatives());
  --depth;
  if (!take(")"))
    return fail("a group without an end");
  return inner;
}

absl::StatusOr<Regex> RegexParser::atom() {
  if (take("("))
    return group();
  if (take("^"))
    return Regex{.kind = Regex::Begin};
  if (take("$"))
    return Regex{.kind = Regex::End};
  for (const char mark : {'*', '+', '?'})
    if (text[at] == mark)
      return fail(absl::StrCat(std::string(1, mark), " after nothing"));
  if (sees("{")) {
    const size_t start = at;
    LLAMAC_ASSIGN_OR_RETURN(const auto range, counts());
    if (range)
      return fail("a count after nothing");
    at = start;
  }
  Regex regex{.kind = Regex::Set};
  if (take(".")) {
    regex.set = without(anyChar(), lineEnds());
  } else if (take("[")) {
    LLAMAC_ASSIGN_OR_RETURN(regex.set, charClass());
  } else if (take("\\")) {
    LLAMAC_ASSIGN_OR_RETURN(regex.set, escape(/*inClass=*/false));
  } else {
    LLAMAC_ASSIGN_OR_RETURN(const uint32_t c, character());
    regex.set = {{c, c}};
  }
  return regex;
}

/// `{n}`, `{n,}` or `{n,m}`; none where the bracket is a character.
absl::StatusOr<std::optional<std::pair<int, int>>> RegexParser::counts() {
  const size_t start = at;
  ++at;
  const auto number = [&]() -> std::optional<int64_t> {
    if (at >= text.size() || !absl::ascii_isdigit(text[at]))
      return std::nullopt;
    int64_t value = 0;
    for (; at < text.size() && absl::ascii_isdigit(text[at]); ++at)
      value = std::min<int64_t>(value * 10 + (text[at] - '0'), maxCount + 1);
    return value;
  };
  const std::optional<int64_t> least = number();
  std::optional<int64_t> most = least;
  if (least && take(",")) {
    most = number();
    if (!most)
      most = -1;
  }
  if (!least || !take("}")) {
    at = start;
    return std::nullopt;
  }
  if (*least > maxCount || *most > maxCount) {
    at = start;
    return fail(absl::StrCat("expected counts of at most ", maxCount));
  }
  if (*most >= 0 && *most < *least) {
    at = start;
    return fail("a count whose end is below its beginning");
  }
  return std::pair(static_cast<int>(*least), static_cast<int>(*most));
}

absl::StatusOr<Regex> RegexParser::repeated(Regex part, size_t start) {
  std::pair<int, int> range;
  if (take("*")) {
    range = {0, -1};
  } else if (take("+")) {
    range = {1, -1};
  } else if (take("?")) {
    range = {0, 1};
  } else if (sees("{")) {
    LLAMAC_ASSIGN_OR_RETURN(const auto counted, counts());
    if (!counted)
      return part;
    range = *counted;
  } else {
    return part;
  }
  take("?"); // The order of attempts changes nothing in what matches.
  if (part.kind == Regex::Begin || part.kind == Regex::End) {
    at = start;
    return fail("a count of an anchor");
  }
  if (sees("*") || sees("+") || sees("?"))
    return fail("a count of a count");
  Regex regex{
      .kind = Regex::Repeat, .least = range.first, .most = range.second};
  regex.parts.push_back(std::move(part));
  return regex;
}

absl::StatusOr<uint32_t> RegexParser::character() {
  const auto byte = static_cast<unsigned char>(text[at]);
  const int size = byte < 0x80 ? 1 : byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
  if (size == 1) {
    ++at;
    return byte;
  }
  if (byte < 0xC2 || byte > 0xF4 || text.size() - at < size_t(size))
    return fail("expected UTF-8");
  uint32_t c = byte & (0x7Fu >> size);
  for (int i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[at + i]);
    if ((next & 0xC0) != 0x80)
      return fail("expected UTF-8");
    c = c << 6 | (next & 0x3F);
  }
  at += size;
  return c;
}

absl::StatusOr<uint32_t> RegexParser::hex(size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i, ++at) {
    if (at >= text.size() || !absl::ascii_isxdigit(text[at]))
      return fail(absl::StrCat("expected ", count, " hexadecimal digits"));
    const char c = absl::ascii_tolower(text[at]);
    value = value * 16 + (absl::ascii_isdigit(c) ? c - '0' : c - 'a' + 10);
  }
  return value;
}

absl::StatusOr<CharSet> RegexParser::escape(bool inClass) {
  if (at >= text.size())
    return fail("a backslash at the end");
  const char letter = text[at];
  const auto one = [](uint32_t c) { return CharSet{{c, c}}; };
  if (!absl::ascii_isalnum(static_cast<unsigned char>(letter))) {
    LLAMAC_ASSIGN_OR_RETURN(const uint32_t c, character());
    return one(c);
  }
  ++at;
  switch (letter) {
  case 'd':
    return digits();
  case 'D':
    return without(anyChar(), digits());
  case 'w':
    return wordChars();
  case 'W':
    return without(anyChar(), wordChars());
  case 's':
    return spaces();
  case 'S':
    return without(anyChar(), unite(spaces(), doubtfulSpaces()));
  case 't':
    return one('\t');
  case 'n':
    return one('\n');
  case 'r':
    return one('\r');
  case 'f':
    return one('\f');
  case 'v':
    return one('\v');
  case '0':
    if (at < text.size() && absl::ascii_isdigit(text[at]))
      return unsupported("an octal escape");
    return one(0);
  case 'c':
    if (at >= text.size() || !absl::ascii_isalpha(text[at]))
      return fail("expected a letter after \\c");
    return one(static_cast<uint32_t>(text[at++]) % 32);
  case 'x': {
    LLAMAC_ASSIGN_OR_RETURN(const uint32_t c, hex(2));
    return one(c);
  }
  case 'u': {
    uint32_t c = 0;
    if (take("{")) {
      const size_t end = text.find('}', at);
      if (end == text.npos || end == at || end - at > 6)
        return fail("expected a code point in \\u{...}");
      LLAMAC_ASSIGN_OR_RETURN(c, hex(end - at));
      ++at;
    } else {
      LLAMAC_ASSIGN_OR_RETURN(c, hex(4));
      if (c >= 0xD800 && c < 0xDC00 && take("\\u")) {
        LLAMAC_ASSIGN_OR_RETURN(const uint32_t low, hex(4));
        if (low < 0xDC00 || low > 0xDFFF)
          return fail("expected the second half of a pair");
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
      }
    }
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
      return fail("expected a code point, got half of one or none");
    return one(c);
  }
  case 'b':
    if (inClass)
      return one('\b');
    return unsupported("a word boundary");
  case 'B':
    return unsupported("a word boundary");
  case 'p':
  case 'P':
    return unsupported("a class of Unicode");
  default:
    --at;
    if (absl::ascii_isdigit(letter) || letter == 'k')
      return unsupported("a back-reference");
    return unsupported(absl::StrCat("\\", std::string(1, letter)));
  }
}

absl::StatusOr<CharSet> RegexParser::charClass() {
  const bool isNegated = take("^");
  CharSet set;
  const auto member = [&]() -> absl::StatusOr<CharSet> {
    if (take("\\"))
      return escape(/*inClass=*/true);
    LLAMAC_ASSIGN_OR_RETURN(const uint32_t c, character());
    return CharSet{{c, c}};
  };
  while (!take("]")) {
    if (at >= text.size())
      return fail("a class without an end");
    LLAMAC_ASSIGN_OR_RETURN(CharSet first, member());
    const auto isOne = [](const CharSet &of) {
      return of.size() == 1 && of[0].first == of[0].second;
    };
    if (sees("-") && !sees("-]") && at + 1 < text.size()) {
      ++at;
      LLAMAC_ASSIGN_OR_RETURN(const CharSet last, member());
      if (!isOne(first) || !isOne(last))
        return fail("a range whose ends are no characters");
      if (last[0].first < first[0].first)
        return fail("a range whose end is before its beginning");
      first[0].second = last[0].first;
    }
    set.insert(set.end(), first.begin(), first.end());
  }
  // At once: one by one, a long class would take the square of its length.
  set = unite(std::move(set), {});
  return isNegated ? without(anyChar(), set) : intersect(set, anyChar());
}

absl::StatusOr<Regex> parseRegex(absl::string_view text) {
  return RegexParser(text).parse();
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// A rule for what `regex` matches, where text before and after it may be none,
/// as `isFirst` and `isLast` say.
static absl::StatusOr<std::string> expression(const Regex &regex, bool isFirst,
                                              bool isLast) {
  switch (regex.kind) {
  case Regex::Empty:
    return "\"\"";
  case Regex::Begin:
  case Regex::End:
    if (regex.kind == Regex::Begin ? isFirst : isLast)
      return "\"\"";
    return usageError("an anchor is supported at the ends of the text alone, "
                      "got one elsewhere");
  case Regex::Set:
    if (regex.set.empty())
      return usageError("a class that has no character matches nothing");
    return ebnfClass(regex.set);
  case Regex::Repeat: {
    LLAMAC_ASSIGN_OR_RETURN(const std::string part,
                            expression(regex.parts[0], false, false));
    if (regex.most == 0)
      return "\"\"";
    const std::string count =
        regex.most == -1 && regex.least < 2 ? (regex.least ? "+" : "*")
        : regex.most == -1
            ? absl::StrCat("{", regex.least, ",}")
            : absl::StrCat("{", regex.least, ",", regex.most, "}");
    return absl::StrCat("(", part, ")", count);
  }
  case Regex::Alternate:
  case Regex::Concat: {
    if (regex.parts.empty())
      return "\"\"";
    const bool isConcat = regex.kind == Regex::Concat;
    size_t first = 0, last = regex.parts.size() - 1;
    if (isConcat) {
      while (first < last && regex.parts[first].kind == Regex::Begin)
        ++first;
      while (last > first && regex.parts[last].kind == Regex::End)
        --last;
    }
    std::string text = "(";
    for (size_t i = 0; i < regex.parts.size(); ++i) {
      LLAMAC_ASSIGN_OR_RETURN(const std::string part,
                              expression(regex.parts[i],
                                         isFirst && (!isConcat || i <= first),
                                         isLast && (!isConcat || i >= last)));
      absl::StrAppend(&text, i == 0 ? "" : isConcat ? " " : " | ", part);
    }
    return text + ")";
  }
  }
  return internalError("unknown kind of regex");
}

absl::StatusOr<std::string> regexExpression(const Regex &regex) {
  return expression(regex, true, true);
}

} // namespace llamac
