//===- CharClasses.h - Letters, numbers and spaces of Unicode ---*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The classes of characters the pre-tokenizers tell apart, and their case, by
// Unicode 16.0, the version of the regular expressions tiktoken runs.
// llama.cpp's tables are of 15.1: they differ only in characters 16.0 added.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TOKENIZER_CHARCLASSES_H
#define LLAMAC_TEXT_TOKENIZER_CHARCLASSES_H

#include "absl/strings/string_view.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace llamac {

enum class CharClass : uint8_t {
  Other,  ///< Everything else, unassigned and invalid bytes included.
  Letter, ///< \p{L}
  Number, ///< \p{N}
  Space,  ///< \s: the property White_Space.
};

/// A character of a text: its code point and the bytes it takes. A byte that
/// starts no character stands for itself, as U+FFFD of one byte.
struct DecodedChar {
  uint32_t codepoint;
  uint32_t length;
};

/// The character at `text[at]`; `at` is inside the text. Overlong forms and
/// code points over U+10FFFF are invalid bytes; a surrogate counts as one
/// character of three bytes, as llama.cpp has it.
DecodedChar decodeChar(absl::string_view text, size_t at);

/// Whether `codepoint` has the property White_Space.
bool isWhiteSpace(uint32_t codepoint);

/// Whether `codepoint` is what `\w` matches: alphabetic, a mark, a decimal
/// number, a connector or one that joins.
bool isWordChar(uint32_t codepoint);

/// Appends the UTF-8 form of `codepoint`, at most U+10FFFF.
void appendUtf8(std::string &out, uint32_t codepoint);

/// `text` with every byte that llama.cpp does not accept as part of a
/// character replaced by U+FFFD. Overlong forms, which it accepts, get their
/// shortest form.
std::string replaceInvalidUtf8(absl::string_view text);

/// `text` in Unicode's normal form C. Bytes that are no character stay.
std::string composeUtf8(absl::string_view text);

/// Looks code points up in one flat table, filled from the ranges.
class CharClasses {
public:
  CharClasses();

  CharClass operator[](uint32_t codepoint) const {
    return static_cast<CharClass>(entry(codepoint) & 3);
  }
  /// Whether a character may stand in the upper-case part of a word, or in the
  /// lower-case part: letters without case and marks in both.
  bool isUpper(uint32_t codepoint) const { ///< [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
    return (entry(codepoint) & upperBit) != 0;
  }
  bool isLower(uint32_t codepoint) const { ///< [\p{Ll}\p{Lm}\p{Lo}\p{M}]
    return (entry(codepoint) & lowerBit) != 0;
  }

private:
  static constexpr uint8_t upperBit = 4;
  static constexpr uint8_t lowerBit = 8;

  uint8_t entry(uint32_t codepoint) const {
    return codepoint < table.size() ? table[codepoint] : 0;
  }

  std::vector<uint8_t> table; ///< Ends with the last letter or mark there is.
};

} // namespace llamac

#endif // LLAMAC_TEXT_TOKENIZER_CHARCLASSES_H
