//===- CharClasses.cpp - Letters, numbers and spaces of Unicode -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/tokenizer/CharClasses.h"

#include <utf8proc.h>

#include <cstdlib>

#include <iterator>

namespace llamac {

namespace {

struct ClassRange {
  uint32_t first;
  uint32_t last;
  CharClass charClass;
  bool upper, lower;
  bool turns = false; ///< Upper and lower case by turns.
};

} // namespace

// Sorted, without overlaps.
static constexpr ClassRange ranges[] = {
#define L(first, last) {first, last, CharClass::Letter, true, true},
#define U(first, last) {first, last, CharClass::Letter, true, false},
#define W(first, last) {first, last, CharClass::Letter, false, true},
#define A(first, last) {first, last, CharClass::Letter, true, true, true},
#define M(first, last) {first, last, CharClass::Other, true, true},
#define N(first, last) {first, last, CharClass::Number, false, false},
#define S(first, last) {first, last, CharClass::Space, false, false},
#include "text/tokenizer/CharClasses.inc"
#undef L
#undef U
#undef W
#undef A
#undef M
#undef N
#undef S
};

CharClasses::CharClasses() : table(std::rbegin(ranges)->last + 1, 0) {
  for (const ClassRange &range : ranges)
    for (uint32_t at = range.first; at <= range.last; ++at) {
      const bool odd = (at - range.first) % 2 != 0;
      table[at] = static_cast<uint8_t>(range.charClass);
      if (range.upper && !(range.turns && odd))
        table[at] |= upperBit;
      if (range.lower && !(range.turns && !odd))
        table[at] |= lowerBit;
    }
}

static constexpr uint32_t replacementChar = 0xFFFD;

// The smallest code point that needs a form of 0, 1, .. 4 bytes.
static constexpr uint32_t shortestForm[] = {0, 0, 0x80, 0x800, 0x10000};

static bool isContinuation(absl::string_view text, size_t at) {
  return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80;
}

// Decodes by the lead byte's length and the continuation bytes alone: the
// result may be overlong or over U+10FFFF. No length when bytes are missing.
static DecodedChar decodeByLead(absl::string_view text, size_t at) {
  const uint8_t lead = static_cast<uint8_t>(text[at]);
  uint32_t length = 0;
  uint32_t codepoint = 0;
  if (lead < 0x80)
    return {lead, 1};
  if ((lead & 0xE0) == 0xC0) {
    length = 2;
    codepoint = lead & 0x1F;
  } else if ((lead & 0xF0) == 0xE0) {
    length = 3;
    codepoint = lead & 0x0F;
  } else if ((lead & 0xF8) == 0xF0) {
    length = 4;
    codepoint = lead & 0x07;
  }
  for (uint32_t i = 1; i < length; ++i) {
    if (!isContinuation(text, at + i))
      return {replacementChar, 0};
    codepoint = codepoint << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3F);
  }
  return {codepoint, length};
}

DecodedChar decodeChar(absl::string_view text, size_t at) {
  const DecodedChar decoded = decodeByLead(text, at);
  if (decoded.length == 0 || decoded.codepoint > 0x10FFFF ||
      decoded.codepoint < shortestForm[decoded.length])
    return {replacementChar, 1};
  return decoded;
}

bool isWhiteSpace(uint32_t codepoint) {
  for (const ClassRange &range : ranges)
    if (codepoint <= range.last)
      return codepoint >= range.first && range.charClass == CharClass::Space;
  return false;
}

bool isWordChar(uint32_t codepoint) {
  // Symbols that are letters in circles and squares count as alphabetic.
  struct Range {
    uint32_t first, last;
  };
  static constexpr Range circled[] = {{0x200C, 0x200D},
                                      {0x24B6, 0x24E9},
                                      {0x1F130, 0x1F149},
                                      {0x1F150, 0x1F169},
                                      {0x1F170, 0x1F189}};
  for (const Range &range : circled)
    if (codepoint >= range.first && codepoint <= range.last)
      return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(codepoint))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO:
  case UTF8PROC_CATEGORY_MN:
  case UTF8PROC_CATEGORY_MC:
  case UTF8PROC_CATEGORY_ME:
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_PC:
    return true;
  default:
    return false;
  }
}

void appendUtf8(std::string &out, uint32_t codepoint) {
  if (codepoint < 0x80) {
    out.push_back(static_cast<char>(codepoint));
    return;
  }
  if (codepoint < 0x800) {
    out.push_back(static_cast<char>(0xC0 | codepoint >> 6));
  } else {
    if (codepoint < 0x10000) {
      out.push_back(static_cast<char>(0xE0 | codepoint >> 12));
    } else {
      out.push_back(static_cast<char>(0xF0 | codepoint >> 18));
      out.push_back(static_cast<char>(0x80 | (codepoint >> 12 & 0x3F)));
    }
    out.push_back(static_cast<char>(0x80 | (codepoint >> 6 & 0x3F)));
  }
  out.push_back(static_cast<char>(0x80 | (codepoint & 0x3F)));
}

std::string replaceInvalidUtf8(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const DecodedChar decoded = decodeByLead(text, at);
    const bool valid = decoded.length > 0 && decoded.codepoint <= 0x10FFFF;
    appendUtf8(out, valid ? decoded.codepoint : replacementChar);
    at += valid ? decoded.length : 1;
  }
  return out;
}

std::string composeUtf8(absl::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    // Characters up to the next one that is none.
    size_t end = at;
    DecodedChar next = {};
    while (end < text.size()) {
      next = decodeChar(text, end);
      const bool isSurrogate =
          next.codepoint >= 0xD800 && next.codepoint < 0xE000;
      if (isSurrogate ||
          (next.codepoint == replacementChar && next.length == 1))
        break;
      end += next.length;
    }
    if (end > at) {
      utf8proc_uint8_t *made = nullptr;
      const utf8proc_ssize_t size = utf8proc_map(
          reinterpret_cast<const utf8proc_uint8_t *>(text.data() + at),
          static_cast<utf8proc_ssize_t>(end - at), &made,
          static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      if (size >= 0)
        out.append(reinterpret_cast<const char *>(made),
                   static_cast<size_t>(size));
      else
        out.append(text.data() + at, end - at); // No memory.
      std::free(made);
    }
    if (end < text.size()) {
      out.append(text.data() + end, next.length);
      end += next.length;
    }
    at = end;
  }
  return out;
}

} // namespace llamac
