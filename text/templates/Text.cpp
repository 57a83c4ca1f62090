//===- Text.cpp - Code points of UTF-8 ------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <utf8proc.h>

#include <cstdlib>
#include <cstring>
#include <limits>

namespace llamac::chat {

namespace {

struct CodeRange {
  int32_t first, last;
};

struct CodeMapping {
  int32_t code;
  int32_t to[3];
};

#include "text/templates/CaseTables.inc"

template <size_t N> bool isIn(const CodeRange (&ranges)[N], int32_t code) {
  for (const CodeRange &range : ranges)
    if (code >= range.first && code <= range.last)
      return true;
  return false;
}

utf8proc_category_t category(int32_t code) { return utf8proc_category(code); }

// Of `code` whose mapping is in `table`, or else `simple`.
template <size_t N>
void append(const CodeMapping (&table)[N], int32_t code, int32_t simple,
            std::string &to) {
  if (code >= 0x80)
    for (const CodeMapping &mapping : table)
      if (mapping.code == code) {
        for (const int32_t mapped : mapping.to)
          if (mapped != 0)
            encode(mapped, to);
        return;
      }
  encode(simple, to);
}

void appendUpper(int32_t code, std::string &to) {
  append(longUpper, code, utf8proc_toupper(code), to);
}

void appendTitle(int32_t code, std::string &to) {
  append(longTitle, code, utf8proc_totitle(code), to);
}

bool isCased(int32_t code) {
  return isUpper(code) || isLower(code) || isTitle(code);
}

// Unicode's Case_Ignorable: marks, modifiers, and what is inside of words.
bool isCaseIgnorable(int32_t code) {
  switch (category(code)) {
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_SK:
    return true;
  default:
    break;
  }
  for (const int32_t inWord :
       {0x27, 0x2e, 0x3a, 0xb7, 0x387, 0x55f, 0x5f4, 0x2018, 0x2019, 0x2024,
        0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a})
    if (code == inWord)
      return true;
  return false;
}

constexpr int32_t capitalSigma = 0x3a3;
constexpr int32_t finalSigma = 0x3c2;
constexpr int32_t dottedI = 0x130;

// Whether the capital sigma at [begin, end) of `text` ends a word: a letter is
// before it and none after it.
bool endsWord(absl::string_view text, size_t begin, size_t end) {
  bool follows = false;
  for (size_t at = begin; at > 0;) {
    do
      --at;
    while ((static_cast<uint8_t>(text[at]) & 0xc0) == 0x80);
    size_t next = at;
    const int32_t code = decode(text, next);
    if (isCaseIgnorable(code))
      continue;
    follows = isCased(code);
    break;
  }
  if (!follows)
    return false;
  while (end < text.size()) {
    const int32_t code = decode(text, end);
    if (!isCaseIgnorable(code))
      return !isCased(code);
  }
  return true;
}

// The code point of `text` at [begin, end) in lower case.
void appendLower(absl::string_view text, size_t begin, size_t end, int32_t code,
                 std::string &to) {
  if (code == capitalSigma && endsWord(text, begin, end))
    encode(finalSigma, to);
  else if (code == dottedI)
    to += "i\xcc\x87";
  else
    encode(utf8proc_tolower(code), to);
}

// Digits with single underscores between them.
std::optional<std::string> withoutUnderscores(absl::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_')
      plain += text[i];
    else if (i == 0 || i + 1 == text.size() ||
             !absl::ascii_isxdigit(text[i - 1]) ||
             !absl::ascii_isxdigit(text[i + 1]))
      return std::nullopt;
  }
  return plain;
}

} // namespace

bool isUtf8(absl::string_view text) {
  for (size_t at = 0; at < text.size();) {
    utf8proc_int32_t code;
    const utf8proc_ssize_t size = utf8proc_iterate(
        reinterpret_cast<const utf8proc_uint8_t *>(text.data() + at),
        static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (size <= 0)
      return false;
    at += static_cast<size_t>(size);
  }
  return true;
}

size_t codePoints(absl::string_view text) {
  size_t count = 0;
  for (const char c : text)
    count += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  return count;
}

int32_t decode(absl::string_view text, size_t &at) {
  const uint8_t first = static_cast<uint8_t>(text[at++]);
  if (first < 0x80)
    return first;
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  int32_t code = first & (0x3f >> more);
  for (int i = 0; i < more && at < text.size(); ++i)
    code = code << 6 | (static_cast<uint8_t>(text[at++]) & 0x3f);
  return code;
}

void encode(int32_t code, std::string &to) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(code, bytes);
  to.append(reinterpret_cast<const char *>(bytes), static_cast<size_t>(size));
}

size_t byteOf(absl::string_view text, size_t index) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if ((static_cast<uint8_t>(text[at]) & 0xc0) != 0x80 && index-- == 0)
      break;
  return at;
}

bool isSpace(int32_t code) {
  return (code >= 9 && code <= 13) || (code >= 28 && code <= 32) ||
         code == 0x85 ||
         (code >= 0xa0 && (category(code) == UTF8PROC_CATEGORY_ZS ||
                           code == 0x2028 || code == 0x2029));
}

bool isAlpha(int32_t code) {
  const utf8proc_category_t kind = category(code);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}
bool isDecimal(int32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }
bool isDigit(int32_t code) {
  return isDecimal(code) || isIn(otherDigits, code);
}
bool isNumeric(int32_t code) {
  const utf8proc_category_t kind = category(code);
  return (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO) ||
         isIn(otherNumbers, code);
}
bool isUpper(int32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LU || isIn(otherUpper, code);
}
bool isLower(int32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LL || isIn(otherLower, code);
}
bool isTitle(int32_t code) { return category(code) == UTF8PROC_CATEGORY_LT; }

bool isPrintable(int32_t code) {
  switch (category(code)) {
  case UTF8PROC_CATEGORY_CN:
  case UTF8PROC_CATEGORY_CC:
  case UTF8PROC_CATEGORY_CF:
  case UTF8PROC_CATEGORY_CS:
  case UTF8PROC_CATEGORY_CO:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP:
    return false;
  case UTF8PROC_CATEGORY_ZS:
    return code == ' ';
  default:
    return true;
  }
}

bool isIdentifier(absl::string_view text) {
  bool first = true;
  for (size_t at = 0; at < text.size(); first = false) {
    const int32_t code = decode(text, at);
    const utf8proc_category_t kind = category(code);
    const bool starts =
        code == '_' || isAlpha(code) || kind == UTF8PROC_CATEGORY_NL;
    if (!starts &&
        (first ||
         !(kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC ||
           kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_PC)))
      return false;
  }
  return !text.empty();
}

std::string upper(absl::string_view text) {
  std::string to;
  for (size_t at = 0; at < text.size();)
    appendUpper(decode(text, at), to);
  return to;
}

std::string lower(absl::string_view text) {
  std::string to;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t code = decode(text, at);
    appendLower(text, begin, at, code, to);
  }
  return to;
}

std::string capitalize(absl::string_view text) {
  std::string to;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t code = decode(text, at);
    if (begin == 0)
      appendTitle(code, to);
    else
      appendLower(text, begin, at, code, to);
  }
  return to;
}

std::string title(absl::string_view text) {
  std::string to;
  bool inWord = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t code = decode(text, at);
    if (inWord)
      appendLower(text, begin, at, code, to);
    else
      appendTitle(code, to);
    inWord = isCased(code);
  }
  return to;
}

std::string swapCase(absl::string_view text) {
  std::string to;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const int32_t code = decode(text, at);
    if (isUpper(code))
      appendLower(text, begin, at, code, to);
    else if (isLower(code))
      appendUpper(code, to);
    else
      encode(code, to);
  }
  return to;
}

std::string foldCase(absl::string_view text) {
  utf8proc_uint8_t *made = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t *>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &made,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_CASEFOLD));
  std::string folded(reinterpret_cast<const char *>(made),
                     size < 0 ? 0 : static_cast<size_t>(size));
  std::free(made);
  return folded;
}

absl::string_view strip(absl::string_view text,
                        std::optional<absl::string_view> chars, bool left,
                        bool right) {
  const auto goes = [&](int32_t code) {
    if (!chars)
      return isSpace(code);
    for (size_t at = 0; at < chars->size();)
      if (decode(*chars, at) == code)
        return true;
    return false;
  };
  while (left && !text.empty()) {
    size_t at = 0;
    if (!goes(decode(text, at)))
      break;
    text.remove_prefix(at);
  }
  while (right && !text.empty()) {
    size_t begin = text.size();
    do
      --begin;
    while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xc0) == 0x80);
    size_t at = begin;
    if (!goes(decode(text, at)))
      break;
    text = text.substr(0, begin);
  }
  return text;
}

size_t find(absl::string_view text, absl::string_view part, size_t from) {
  if (from > text.size())
    return absl::string_view::npos;
  if (part.empty())
    return from;
  // std::string_view::find takes the product of both sizes for hostile ones.
  const void *const at =
      memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return at ? static_cast<size_t>(static_cast<const char *>(at) - text.data())
            : absl::string_view::npos;
}

std::optional<std::string> replace(absl::string_view text,
                                   absl::string_view from, absl::string_view to,
                                   int64_t count, uint64_t limit) {
  std::string result;
  size_t at = 0;
  while (count != 0) {
    const size_t found = find(text, from, at);
    if (found == absl::string_view::npos || result.size() > limit)
      break;
    --count;
    absl::StrAppend(&result, text.substr(at, found - at));
    absl::StrAppend(&result, to);
    at = found + from.size();
    if (!from.empty())
      continue;
    if (at == text.size())
      break;
    const size_t begin = at;
    decode(text, at);
    absl::StrAppend(&result, text.substr(begin, at - begin));
  }
  if (result.size() > limit)
    return std::nullopt;
  absl::StrAppend(&result, text.substr(at));
  return result;
}

std::vector<absl::string_view> splitLines(absl::string_view text,
                                          bool keepEnds) {
  std::vector<absl::string_view> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const int32_t code = decode(text, at);
    if (!((code >= 10 && code <= 13) || (code >= 28 && code <= 30) ||
          code == 0x85 || code == 0x2028 || code == 0x2029))
      continue;
    if (code == '\r' && at < text.size() && text[at] == '\n')
      ++at;
    lines.push_back(text.substr(begin, (keepEnds ? at : end) - begin));
    begin = at;
  }
  if (begin < text.size())
    lines.push_back(text.substr(begin));
  return lines;
}

std::optional<double> parseFloat(absl::string_view text) {
  const std::optional<std::string> plain =
      withoutUnderscores(strip(text, std::nullopt, true, true));
  if (!plain || plain->empty())
    return std::nullopt;
  absl::string_view number = *plain;
  const bool negative = absl::ConsumePrefix(&number, "-");
  if (!negative)
    absl::ConsumePrefix(&number, "+");
  double value = 0;
  if (absl::EqualsIgnoreCase(number, "inf") ||
      absl::EqualsIgnoreCase(number, "infinity")) {
    value = std::numeric_limits<double>::infinity();
  } else if (absl::EqualsIgnoreCase(number, "nan")) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (number.find_first_not_of("0123456789.eE+-") !=
            absl::string_view::npos ||
        absl::StartsWith(number, "+") || absl::StartsWith(number, "-"))
      return std::nullopt;
    const char *const end = number.data() + number.size();
    const absl::from_chars_result read =
        absl::from_chars(number.data(), end, value);
    if (read.ptr != end || read.ec == std::errc::invalid_argument)
      return std::nullopt;
    if (read.ec == std::errc::result_out_of_range)
      value = value > 1 ? std::numeric_limits<double>::infinity() : 0;
  }
  return negative ? -value : value;
}

IntParse parseInt(absl::string_view text, int base, int64_t &value) {
  text = strip(text, std::nullopt, true, true);
  const bool negative = absl::ConsumePrefix(&text, "-");
  if (!negative)
    absl::ConsumePrefix(&text, "+");
  for (const auto &[prefix, of] :
       {std::pair("0x", 16), std::pair("0o", 8), std::pair("0b", 2)})
    if ((base == 0 || base == of) && absl::StartsWithIgnoreCase(text, prefix)) {
      text.remove_prefix(2);
      absl::ConsumePrefix(&text, "_");
      base = of;
      break;
    }
  // A zero before other digits would be octal in other languages.
  if (base == 0) {
    if (text.size() > 1 && text[0] == '0' &&
        text.find_first_not_of("0_") != absl::string_view::npos)
      return IntParse::Malformed;
    base = 10;
  }
  uint64_t sum = 0;
  bool overflow = false, digits = false, underscore = false;
  for (const char c : text) {
    if (c == '_') {
      if (!digits || underscore)
        return IntParse::Malformed;
      underscore = true;
      continue;
    }
    const int digit = absl::ascii_isdigit(c) ? c - '0'
                      : absl::ascii_isalpha(c)
                          ? absl::ascii_tolower(c) - 'a' + 10
                          : 99;
    if (digit >= base)
      return IntParse::Malformed;
    digits = true;
    underscore = false;
    overflow |= __builtin_mul_overflow(sum, static_cast<uint64_t>(base), &sum);
    overflow |= __builtin_add_overflow(sum, static_cast<uint64_t>(digit), &sum);
  }
  if (!digits || underscore)
    return IntParse::Malformed;
  const uint64_t most = static_cast<uint64_t>(INT64_MAX) + negative;
  if (overflow || sum > most)
    return IntParse::Overflow;
  value = static_cast<int64_t>(negative ? 0 - sum : sum);
  return IntParse::Ok;
}

} // namespace llamac::chat
