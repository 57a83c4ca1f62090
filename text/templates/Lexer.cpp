//===- Lexer.cpp - Tokens of a template -----------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Lexer.h"

#include "runtime/base/Status.h"
#include "text/templates/Text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <cmath>
#include <optional>

namespace llamac::chat {

absl::Status syntaxError(int line, absl::string_view message) {
  return badFileError(
      absl::StrCat("chat template, line ", line, ": ", message));
}

absl::Status refusal(int line, absl::string_view message) {
  return unsupportedError(
      absl::StrCat("chat template, line ", line, ": ", message));
}

// With line ends of one kind, and without the one at the end.
static std::string normalizeLines(absl::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n')
        ++i;
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

// Names are ASCII.
static bool isNameByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
}

namespace {

constexpr absl::string_view operators[] = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

class Lexer {
public:
  explicit Lexer(absl::string_view text) : text(text) {}

  absl::StatusOr<std::vector<Token>> run() {
    while (at < text.size())
      LLAMAC_RETURN_IF_ERROR(lexRoot());
    add(TokenKind::End, "");
    return std::move(tokens);
  }

private:
  absl::string_view rest() const { return text.substr(at); }
  absl::Status fail(absl::string_view message) const {
    return syntaxError(line, message);
  }
  void advance(size_t size) {
    for (const char c : text.substr(at, size))
      line += c == '\n';
    at += size;
    afterNewline = size > 0 && text[at - 1] == '\n';
  }
  void add(TokenKind kind, absl::string_view as) {
    tokens.push_back({kind, line, std::string(as)});
  }
  static size_t spaces(absl::string_view text) {
    return text.size() - strip(text, std::nullopt, true, false).size();
  }

  absl::Status lexRoot();
  absl::Status lexTag(absl::string_view end, TokenKind endKind);
  absl::Status lexInTag();
  absl::Status lexNumber(bool &isNumber);
  absl::Status lexString();
  absl::Status lexComment();
  void addData(absl::string_view data, size_t skip, char sign, bool isBlock);

  absl::string_view text;
  size_t at = 0;
  int line = 1;
  bool afterNewline = true; ///< The last match ended with one.
  std::vector<Token> tokens;
  std::string open; ///< The brackets that are open in a tag.
};

} // namespace

// The text before a tag whose opening has `sign` (0 when none), `skip` bytes
// further. Statements and comments take the white space of their line with
// them.
void Lexer::addData(absl::string_view data, size_t skip, char sign,
                    bool isBlock) {
  absl::string_view kept = data;
  if (sign == '-') {
    kept = strip(data, std::nullopt, false, true);
  } else if (sign != '+' && isBlock) {
    const size_t newline = data.rfind('\n');
    const size_t begin = newline == absl::string_view::npos ? 0 : newline + 1;
    if ((begin > 0 || afterNewline) && begin < data.size() &&
        spaces(data.substr(begin)) == data.size() - begin)
      kept = data.substr(0, begin);
  }
  if (!kept.empty())
    add(TokenKind::Data, kept);
  advance(data.size() + skip);
}

static char signAt(absl::string_view text, size_t at) {
  return at < text.size() && (text[at] == '-' || text[at] == '+') ? text[at]
                                                                  : '\0';
}

absl::Status Lexer::lexRoot() {
  const absl::string_view source = rest();
  size_t tag = source.find('{');
  while (tag != absl::string_view::npos &&
         !(tag + 1 < source.size() &&
           absl::StrContains("{%#", source.substr(tag + 1, 1))))
    tag = source.find('{', tag + 1);
  if (tag == absl::string_view::npos) {
    add(TokenKind::Data, source);
    advance(source.size());
    return absl::OkStatus();
  }
  const char kind = source[tag + 1];
  const char sign = signAt(source, tag + 2);
  const size_t opening = sign ? 3 : 2;
  const absl::string_view data = source.substr(0, tag);
  addData(data, opening, sign, kind != '{');
  if (kind == '#')
    return lexComment();
  const bool isStatement = kind == '%';
  // The text in a raw block must not be taken for tags.
  absl::string_view name = strip(rest(), std::nullopt, true, false);
  if (isStatement && absl::ConsumePrefix(&name, "raw") &&
      (name.empty() || !isNameByte(name[0])))
    return refusal(line, "the tag 'raw' is not supported; write its text as "
                         "strings in {{ }}");
  add(isStatement ? TokenKind::BeginStatement : TokenKind::BeginExpression, "");
  return lexTag(isStatement ? "%}" : "}}", isStatement
                                               ? TokenKind::EndStatement
                                               : TokenKind::EndExpression);
}

absl::Status Lexer::lexComment() {
  const size_t end = rest().find("#}");
  if (end == absl::string_view::npos)
    return fail("a comment has no end");
  const char sign = end > 0 ? signAt(rest(), end - 1) : '\0';
  size_t size = end + 2;
  if (sign == '-')
    size += spaces(rest().substr(size));
  else if (sign != '+' && absl::StartsWith(rest().substr(size), "\n"))
    ++size;
  advance(size);
  return absl::OkStatus();
}

absl::Status Lexer::lexTag(absl::string_view end, TokenKind endKind) {
  open.clear();
  while (true) {
    if (at >= text.size()) // The parser says what was expected.
      return absl::OkStatus();
    const bool isStatement = endKind == TokenKind::EndStatement;
    const char sign = rest()[0];
    const bool hasSign = sign == '-' || (isStatement && sign == '+');
    if (open.empty() && absl::StartsWith(rest().substr(hasSign), end)) {
      add(endKind, "");
      size_t size = hasSign + 2;
      if (hasSign && sign == '-')
        size += spaces(rest().substr(size));
      else if (!hasSign && isStatement &&
               absl::StartsWith(rest().substr(size), "\n"))
        ++size;
      advance(size);
      return absl::OkStatus();
    }
    LLAMAC_RETURN_IF_ERROR(lexInTag());
  }
}

absl::Status Lexer::lexInTag() {
  if (const size_t size = spaces(rest())) {
    advance(size);
    return absl::OkStatus();
  }
  bool isNumber = false;
  LLAMAC_RETURN_IF_ERROR(lexNumber(isNumber));
  if (isNumber)
    return absl::OkStatus();
  const char c = rest()[0];
  if (isNameByte(c)) {
    size_t size = 1;
    while (size < rest().size() && isNameByte(rest()[size]))
      ++size;
    add(TokenKind::Name, rest().substr(0, size));
    advance(size);
    return absl::OkStatus();
  }
  if (c == '\'' || c == '"')
    return lexString();
  for (const absl::string_view name : operators) {
    if (!absl::StartsWith(rest(), name))
      continue;
    if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty() || open.back() != c)
        return fail(absl::StrCat("unexpected '", name, "'"));
      open.pop_back();
    }
    add(TokenKind::Operator, name);
    advance(name.size());
    return absl::OkStatus();
  }
  size_t end = 0;
  decode(rest(), end);
  return fail(
      absl::StrCat("unexpected character '", rest().substr(0, end), "'"));
}

// Decimal digits, with a point and more of them or without; the other numbers
// of Python are two tokens here, which no syntax has.
absl::Status Lexer::lexNumber(bool &isNumber) {
  const auto digits = [this](size_t from) {
    size_t size = 0;
    while (from + size < rest().size() &&
           absl::ascii_isdigit(static_cast<unsigned char>(rest()[from + size])))
      ++size;
    return size;
  };
  size_t size = digits(0);
  isNumber = size > 0;
  if (!isNumber)
    return absl::OkStatus();
  if (size > 1 && rest()[0] == '0')
    return fail("a number begins with 0");
  // A number after a dot is an index: 1 and then 5 in x.1.5.
  const bool isIndex = at > 0 && text[at - 1] == '.';
  size_t fraction = 0;
  if (!isIndex && size < rest().size() && rest()[size] == '.')
    fraction = digits(size + 1);
  if (fraction > 0)
    size += 1 + fraction;
  add(fraction > 0 ? TokenKind::Float : TokenKind::Integer,
      rest().substr(0, size));
  Token &token = tokens.back();
  if (fraction > 0 ? !absl::SimpleAtod(token.text, &token.real) ||
                         !std::isfinite(token.real)
                   : !absl::SimpleAtoi(token.text, &token.integer))
    return fail("an integer of more than 64 bits, or a number that is too "
                "large");
  advance(size);
  return absl::OkStatus();
}

absl::Status Lexer::lexString() {
  static constexpr absl::string_view names = "nrt\\'\"", codes = "\n\r\t\\'\"";
  const char quote = rest()[0];
  std::string value;
  size_t i = 1;
  for (; i < rest().size() && rest()[i] != quote; ++i) {
    if (rest()[i] != '\\') {
      value += rest()[i];
      continue;
    }
    if (++i == rest().size())
      break;
    const size_t known = names.find(rest()[i]);
    if (known == absl::string_view::npos)
      return refusal(line, absl::StrCat("the escape \\",
                                        absl::CEscape(rest().substr(i, 1)),
                                        " in a string is not supported; write "
                                        "the character itself"));
    value += codes[known];
  }
  if (i >= rest().size())
    return fail("a string has no end");
  add(TokenKind::String, value);
  advance(i + 1);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Token>> tokenize(absl::string_view source) {
  if (!isUtf8(source))
    return syntaxError(1, "expected UTF-8");
  const std::string text = normalizeLines(source);
  return Lexer(text).run();
}

} // namespace llamac::chat
