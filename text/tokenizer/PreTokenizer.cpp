//===- PreTokenizer.cpp - Cuts a text into words --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function below tries the alternatives of its expression in order, as
// the expression does; an alternative that matches ends the word. Greedy runs
// need no back tracking but in `\s*[\r\n]+`, which ends after the last line
// break of the run, and in `\s+(?!\S)`, which leaves the last space of a run
// to the word behind it.
//
//===----------------------------------------------------------------------===//

#include "text/tokenizer/PreTokenizer.h"

namespace llamac {

static bool isLineBreak(char c) { return c == '\r' || c == '\n'; }

static char lowerAscii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

// The length of the contraction ('s, 't, 're, 've, 'm, 'll, 'd) at `at`, or 0.
// Ignoring case, U+017F (long s) is an s.
static size_t contractionLength(absl::string_view text, size_t at,
                                bool ignoreCase) {
  const absl::string_view rest = text.substr(at);
  if (rest.size() < 2 || rest[0] != '\'')
    return 0;
  const char first = ignoreCase ? lowerAscii(rest[1]) : rest[1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd')
    return 2;
  if (rest.size() < 3)
    return 0;
  if (ignoreCase && rest[1] == '\xC5' && rest[2] == '\xBF')
    return 3;
  const char second = ignoreCase ? lowerAscii(rest[2]) : rest[2];
  if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
      (first == 'l' && second == 'l'))
    return 3;
  return 0;
}

CharClass PreTokenizer::classAt(absl::string_view text, size_t at) const {
  return classes[decodeChar(text, at).codepoint];
}

size_t PreTokenizer::skipClass(absl::string_view text, size_t at,
                               CharClass skipped) const {
  while (at < text.size()) {
    const DecodedChar decoded = decodeChar(text, at);
    if (classes[decoded.codepoint] != skipped)
      break;
    at += decoded.length;
  }
  return at;
}

// `\s+(?!\S)|\s+` at a space: the run up to the end of the text, or all of it
// but its last character, or the one character it is. SmolLM's text ends where
// a number begins.
size_t PreTokenizer::spacesEnd(absl::string_view text, size_t begin) const {
  size_t last = begin;
  size_t end = begin;
  bool textEnds = true;
  while (end < text.size()) {
    const DecodedChar decoded = decodeChar(text, end);
    const CharClass charClass = classes[decoded.codepoint];
    if (charClass != CharClass::Space) {
      textEnds =
          kind == PreTokenizerKind::SmolLM && charClass == CharClass::Number;
      break;
    }
    last = end;
    end += decoded.length;
  }
  return !textEnds && last > begin ? last : end;
}

// `[^\r\n\p{L}\p{N}]?\p{L}+`, or `begin` where it does not match.
size_t PreTokenizer::lettersEnd(absl::string_view text, size_t begin) const {
  const DecodedChar first = decodeChar(text, begin);
  const CharClass firstClass = classes[first.codepoint];
  const size_t second = begin + first.length;
  const bool isPrefix = firstClass != CharClass::Number &&
                        !isLineBreak(text[begin]) && second < text.size() &&
                        classAt(text, second) == CharClass::Letter;
  return firstClass == CharClass::Letter || isPrefix
             ? skipClass(text, second, CharClass::Letter)
             : begin;
}

// `[^\r\n\p{L}\p{N}]?U*L+|[^\r\n\p{L}\p{N}]?U+L*`, or `begin`. What has no
// case is in U and in L: `U*L+` gives back such a character where nothing of L
// is behind the run of U, and all behind the last one.
size_t PreTokenizer::casedLettersEnd(absl::string_view text,
                                     size_t begin) const {
  const DecodedChar first = decodeChar(text, begin);
  const CharClass firstClass = classes[first.codepoint];
  const bool isPrefix = firstClass != CharClass::Letter &&
                        firstClass != CharClass::Number &&
                        !isLineBreak(text[begin]);
  size_t upperEnds = begin; // The end of `U+` where `U*L+` does not match.
  for (size_t start : {begin + (isPrefix ? first.length : 0), begin}) {
    size_t end = start;
    size_t withoutCaseEnd = start;
    bool isLower = false;
    while (end < text.size()) {
      const DecodedChar next = decodeChar(text, end);
      isLower = classes.isLower(next.codepoint);
      if (!classes.isUpper(next.codepoint))
        break;
      end += next.length;
      if (isLower)
        withoutCaseEnd = end;
    }
    if (end < text.size() && isLower) {
      while (end < text.size()) {
        const DecodedChar next = decodeChar(text, end);
        if (!classes.isLower(next.codepoint))
          break;
        end += next.length;
      }
      return end;
    }
    if (withoutCaseEnd > start)
      return withoutCaseEnd;
    if (end > start && upperEnds == begin)
      upperEnds = end;
    if (!isPrefix)
      break;
  }
  return upperEnds;
}

size_t PreTokenizer::llama3WordEnd(absl::string_view text, size_t begin) const {
  const bool isCased =
      kind == PreTokenizerKind::Gpt4o || kind == PreTokenizerKind::Tekken;
  if (!isCased)
    if (const size_t length = contractionLength(text, begin, true))
      return begin + length;
  const size_t letters =
      isCased ? casedLettersEnd(text, begin) : lettersEnd(text, begin);
  if (letters > begin)
    return letters + (kind == PreTokenizerKind::Gpt4o
                          ? contractionLength(text, letters, true)
                          : 0);

  const DecodedChar first = decodeChar(text, begin);
  const CharClass firstClass = classes[first.codepoint];
  const size_t second = begin + first.length;

  // \p{N}{1,3}, or \p{N}
  if (firstClass == CharClass::Number) {
    const bool isSingle =
        kind == PreTokenizerKind::Qwen2 || kind == PreTokenizerKind::Tekken;
    const int most = isSingle ? 1 : 3;
    size_t end = second;
    for (int count = 1; count < most && end < text.size(); ++count) {
      const DecodedChar next = decodeChar(text, end);
      if (classes[next.codepoint] != CharClass::Number)
        break;
      end += next.length;
    }
    return end;
  }

  // ` ?[^\s\p{L}\p{N}]+[\r\n]*`, or `[\r\n/]*`
  if (firstClass == CharClass::Other ||
      (text[begin] == ' ' && second < text.size() &&
       classAt(text, second) == CharClass::Other)) {
    size_t end = skipClass(text, second, CharClass::Other);
    while (end < text.size() &&
           (isLineBreak(text[end]) || (isCased && text[end] == '/')))
      ++end;
    return end;
  }

  // `\s*[\r\n]+`
  const size_t runEnd = skipClass(text, begin, CharClass::Space);
  for (size_t end = runEnd; end > begin; --end)
    if (isLineBreak(text[end - 1]))
      return end;

  return spacesEnd(text, begin);
}

size_t PreTokenizer::gpt2WordEnd(absl::string_view text, size_t begin) const {
  if (const size_t length = contractionLength(text, begin, false))
    return begin + length;

  // ` ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+`
  const size_t body = begin + (text[begin] == ' ' ? 1 : 0);
  if (body < text.size()) {
    const DecodedChar first = decodeChar(text, body);
    const CharClass bodyClass = classes[first.codepoint];
    const bool alone =
        kind == PreTokenizerKind::SmolLM && bodyClass == CharClass::Number;
    if (alone && body == begin)
      return begin + first.length;
    if (!alone && bodyClass != CharClass::Space)
      return skipClass(text, body + first.length, bodyClass);
  }
  return spacesEnd(text, begin);
}

size_t PreTokenizer::wordEnd(absl::string_view text, size_t begin) const {
  switch (kind) {
  case PreTokenizerKind::Llama3:
  case PreTokenizerKind::Qwen2:
  case PreTokenizerKind::Gpt4o:
  case PreTokenizerKind::Tekken:
    return llama3WordEnd(text, begin);
  default:
    return gpt2WordEnd(text, begin);
  }
}

} // namespace llamac
