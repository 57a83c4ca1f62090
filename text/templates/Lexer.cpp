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
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <optional>

namespace llamac::chat {

absl::Status syntaxError(int line, absl::string_view message) {
  return badFileError(
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
  absl::Status lexRaw(size_t begin, bool trimsAfter);
  void addData(absl::string_view data, size_t skip, char sign, bool isBlock);

  // The size of "raw %}" or "endraw %}" after a tag's opening, if it is one.
  // `minus` says whether the tag trims what follows.
  static std::optional<size_t> rawTag(absl::string_view after,
                                      absl::string_view name, bool plus,
                                      bool &minus, bool &trims);

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

std::optional<size_t> Lexer::rawTag(absl::string_view after,
                                    absl::string_view name, bool plus,
                                    bool &minus, bool &trims) {
  size_t size = spaces(after);
  if (!absl::StartsWith(after.substr(size), name))
    return std::nullopt;
  size += name.size();
  size += spaces(after.substr(size));
  const absl::string_view end = after.substr(size);
  minus = absl::StartsWith(end, "-%}");
  trims = absl::StartsWith(end, "%}");
  if (minus || (plus && absl::StartsWith(end, "+%}")))
    return size + 3;
  return trims ? std::optional(size + 2) : std::nullopt;
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
  if (kind == '%') {
    bool minus, trims;
    if (const std::optional<size_t> size =
            rawTag(source.substr(tag + opening), "raw", false, minus, trims)) {
      addData(data, opening + *size, sign, true);
      return lexRaw(at, minus);
    }
  }
  addData(data, opening, sign, kind != '{');
  if (kind == '#')
    return lexComment();
  const bool isStatement = kind == '%';
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

// What is between `begin` and {% endraw %}.
absl::Status Lexer::lexRaw(size_t begin, bool trimsAfter) {
  if (trimsAfter)
    advance(spaces(rest()));
  size_t tag = rest().find("{%");
  for (; tag != absl::string_view::npos; tag = rest().find("{%", tag + 1)) {
    const char sign = signAt(rest(), tag + 2);
    const size_t opening = sign ? 3 : 2;
    bool minus, trims;
    const std::optional<size_t> size =
        rawTag(rest().substr(tag + opening), "endraw", true, minus, trims);
    if (!size)
      continue;
    addData(rest().substr(0, tag), opening + *size, sign, true);
    if (minus)
      advance(spaces(rest()));
    else if (trims && absl::StartsWith(rest(), "\n"))
      advance(1);
    return absl::OkStatus();
  }
  return fail("a raw block has no end");
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

// Of a letter or digit; spaces beyond ASCII are looked for apart.
static bool isNameByte(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         static_cast<uint8_t>(c) >= 0x80;
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
    while (size < rest().size() && isNameByte(rest()[size]) &&
           (static_cast<uint8_t>(rest()[size]) < 0xc0 ||
            spaces(rest().substr(size)) == 0))
      ++size;
    if (!isIdentifier(rest().substr(0, size)))
      return fail("invalid character in a name");
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

// The size of digits of `base` at the start of `text`, single underscores
// between them.
static size_t digits(absl::string_view text, int base, bool underscoreFirst) {
  size_t size = 0;
  while (size < text.size()) {
    const size_t digit =
        text[size] == '_' && (size > 0 || underscoreFirst) ? size + 1 : size;
    if (digit >= text.size())
      break;
    const char c = text[digit];
    const bool fits = base == 16  ? absl::ascii_isxdigit(c)
                      : base == 8 ? c >= '0' && c <= '7'
                      : base == 2 ? c == '0' || c == '1'
                                  : absl::ascii_isdigit(c);
    if (!fits)
      break;
    size = digit + 1;
  }
  return size;
}

absl::Status Lexer::lexNumber(bool &isNumber) {
  const absl::string_view source = rest();
  const size_t whole = digits(source, 10, false);
  if (whole == 0)
    return absl::OkStatus();
  isNumber = true;
  // A number after a dot is an index: 1 and then 5 in x.1.5.
  size_t size = whole;
  bool real = false;
  if (at == 0 || text[at - 1] != '.') {
    if (size < source.size() && source[size] == '.')
      if (const size_t fraction = digits(source.substr(size + 1), 10, false)) {
        size += 1 + fraction;
        real = true;
      }
    if (size < source.size() && absl::ascii_tolower(source[size]) == 'e') {
      const bool sign = signAt(source, size + 1) != '\0';
      if (const size_t exponent =
              digits(source.substr(size + 1 + sign), 10, false)) {
        size += 1 + sign + exponent;
        real = true;
      }
    }
  }
  if (real) {
    add(TokenKind::Float, source.substr(0, size));
    tokens.back().real = parseFloat(tokens.back().text).value_or(0);
    advance(size);
    return absl::OkStatus();
  }
  if (source[0] == '0') {
    // 0x1f, 0o17, 0b1; else zeros alone, and what follows is another token.
    size = 1;
    const char prefix =
        source.size() > 1 ? absl::ascii_tolower(source[1]) : '\0';
    const int base = prefix == 'x'   ? 16
                     : prefix == 'o' ? 8
                     : prefix == 'b' ? 2
                                     : 0;
    const size_t more = base ? digits(source.substr(2), base, true) : 0;
    if (more > 0)
      size = 2 + more;
    else
      while (size < source.size() &&
             (source[size] == '0' ||
              (source[size] == '_' &&
               absl::StartsWith(source.substr(size + 1), "0"))))
        ++size;
  }
  add(TokenKind::Integer, source.substr(0, size));
  if (parseInt(tokens.back().text, 0, tokens.back().integer) != IntParse::Ok)
    return fail("an integer of more than 64 bits");
  advance(size);
  return absl::OkStatus();
}

// The code of `count` hexadecimal digits at the start of `text`.
static std::optional<int32_t> hexCode(absl::string_view text, size_t count) {
  int64_t code;
  if (text.size() < count ||
      digits(text.substr(0, count), 16, false) != count ||
      absl::StrContains(text.substr(0, count), "_") ||
      parseInt(text.substr(0, count), 16, code) != IntParse::Ok ||
      code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
    return std::nullopt;
  return static_cast<int32_t>(code);
}

absl::Status Lexer::lexString() {
  const char quote = rest()[0];
  size_t end = 1;
  while (end < rest().size() && rest()[end] != quote)
    end += rest()[end] == '\\' ? 2 : 1;
  if (end >= rest().size())
    return fail("a string has no end");
  const absl::string_view body = rest().substr(1, end - 1);
  std::string value;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      value += body[i];
      continue;
    }
    const char c = body[++i];
    static constexpr absl::string_view names = "abfnrtv\\'\"";
    static constexpr absl::string_view codes = "\a\b\f\n\r\t\v\\'\"";
    if (const size_t known = names.find(c); known != absl::string_view::npos) {
      value += codes[known];
    } else if (c == '\n') { // The line goes on.
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const std::optional<int32_t> code = hexCode(body.substr(i + 1), count);
      if (!code)
        return fail(absl::StrCat("\\", absl::string_view(&c, 1),
                                 " is followed by no character's code"));
      encode(*code, value);
      i += count;
    } else if (c >= '0' && c <= '7') {
      int32_t code = 0;
      size_t size = 0;
      for (; size < 3 && i + size < body.size() && body[i + size] >= '0' &&
             body[i + size] <= '7';
           ++size)
        code = code * 8 + (body[i + size] - '0');
      encode(code, value);
      i += size - 1;
    } else if (c == 'N') {
      return fail("\\N{...} is not supported");
    } else if (static_cast<uint8_t>(c) >= 0x80) {
      // Python makes \xe9 of a letter before it sees the backslash.
      size_t next = i;
      const int32_t code = decode(body, next);
      char escaped[16];
      std::snprintf(escaped, sizeof(escaped),
                    code < 0x100     ? "\\x%02x"
                    : code < 0x10000 ? "\\u%04x"
                                     : "\\U%08x",
                    static_cast<unsigned>(code));
      value += escaped;
      i = next - 1;
    } else {
      value += '\\';
      value += c;
    }
  }
  add(TokenKind::String, value);
  advance(end + 1);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Token>> tokenize(absl::string_view source) {
  if (!isUtf8(source))
    return syntaxError(1, "expected UTF-8");
  const std::string text = normalizeLines(source);
  return Lexer(text).run();
}

} // namespace llamac::chat
