//===- Text.cpp - Code points of UTF-8 ------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Text.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

#include <utf8proc.h>

#include <cstring>

namespace llamac::chat {

static utf8proc_category_t category(int32_t code) {
  return utf8proc_category(code);
}

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

bool isDecimal(int32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }

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

//===----------------------------------------------------------------------===//
// Case
//===----------------------------------------------------------------------===//

// The letters, in lower case, that `code` becomes in upper or title case, when
// they are several: those of its case folding. None otherwise.
static absl::Span<const int32_t> severalFolded(int32_t code,
                                               int32_t (&folded)[8]) {
  if (code < 0x80 || category(code) == UTF8PROC_CATEGORY_LU)
    return {};
  const utf8proc_ssize_t size = utf8proc_decompose_char(
      code, folded, std::size(folded), UTF8PROC_CASEFOLD, nullptr);
  return size > 1 ? absl::MakeConstSpan(folded, static_cast<size_t>(size))
                  : absl::Span<const int32_t>();
}

absl::StatusOr<std::string> upper(absl::string_view text) {
  std::string to;
  for (size_t at = 0; at < text.size();) {
    const int32_t code = decode(text, at);
    int32_t folded[8];
    const absl::Span<const int32_t> several = severalFolded(code, folded);
    for (const int32_t each : several)
      encode(utf8proc_toupper(each), to);
    if (several.empty())
      encode(utf8proc_toupper(code), to);
  }
  return to;
}

absl::StatusOr<std::string> lower(absl::string_view text) {
  constexpr int32_t capitalSigma = 0x3a3, dottedI = 0x130;
  std::string to;
  for (size_t at = 0; at < text.size();) {
    const int32_t code = decode(text, at);
    if (code == capitalSigma)
      return usageError("the lower case of a capital sigma depends on its "
                        "word, which is not supported");
    if (code == dottedI)
      to += "i\xcc\x87";
    else
      encode(utf8proc_tolower(code), to);
  }
  return to;
}

absl::StatusOr<std::string> capitalize(absl::string_view text) {
  if (text.empty())
    return std::string();
  size_t at = 0;
  const int32_t code = decode(text, at);
  int32_t folded[8];
  constexpr int32_t sharpS = 0xdf;
  if (!severalFolded(code, folded).empty() &&
      (code == sharpS || (utf8proc_totitle(code) == code &&
                          category(code) != UTF8PROC_CATEGORY_LT)))
    return usageError(absl::StrCat("the title case of '", text.substr(0, at),
                                   "' is several letters, which is not "
                                   "supported"));
  std::string to;
  encode(utf8proc_totitle(code), to);
  LLAMAC_ASSIGN_OR_RETURN(const std::string rest, lower(text.substr(at)));
  return to + rest;
}

absl::StatusOr<std::string> titleWords(absl::string_view text) {
  std::string result;
  const auto separates = [](int32_t code) {
    return isSpace(code) || (code < 0x80 && strchr("-({[<", code) && code);
  };
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    if (separates(decode(text, at))) {
      absl::StrAppend(&result, text.substr(begin, at - begin));
      continue;
    }
    size_t end = at;
    for (size_t next = at; next < text.size(); end = next)
      if (separates(decode(text, next)))
        break;
    LLAMAC_ASSIGN_OR_RETURN(const std::string initial,
                            upper(text.substr(begin, at - begin)));
    LLAMAC_ASSIGN_OR_RETURN(const std::string rest,
                            lower(text.substr(at, end - at)));
    absl::StrAppend(&result, initial, rest);
    at = end;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

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
  while (count-- != 0 && result.size() <= limit) {
    const size_t found = find(text, from, at);
    if (found == absl::string_view::npos)
      break;
    absl::StrAppend(&result, text.substr(at, found - at), to);
    at = found + from.size();
  }
  if (result.size() > limit)
    return std::nullopt;
  absl::StrAppend(&result, text.substr(at));
  return result;
}

std::vector<absl::string_view> linesOf(absl::string_view text) {
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
    lines.push_back(text.substr(begin, end - begin));
    begin = at;
  }
  if (begin < text.size())
    lines.push_back(text.substr(begin));
  return lines;
}

} // namespace llamac::chat
