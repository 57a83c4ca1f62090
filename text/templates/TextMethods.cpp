//===- TextMethods.cpp - Methods of texts ---------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/templates/Format.h"
#include "text/templates/Methods.h"
#include "text/templates/Tables.h"
#include "text/templates/Text.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>

namespace llamac::chat {

namespace method {

using ValueOr = absl::StatusOr<Value>;

// None counts as left out.
static bool isLeftOut(const Value &value) {
  return value.is(Kind::Missing) || value.is(Kind::None);
}

// A text made of the receiver, of its kind.
static ValueOr like(Interpreter &in, const Value &self, std::string text) {
  return in.heap.string(std::move(text), self.string().markup);
}

static ValueOr listLike(Interpreter &in, const Value &self,
                        const std::vector<absl::string_view> &parts,
                        Kind kind = Kind::List) {
  std::vector<Value> all;
  for (const absl::string_view part : parts) {
    LLAMAC_ASSIGN_OR_RETURN(const Value text,
                            like(in, self, std::string(part)));
    all.push_back(text);
  }
  return in.heap.sequence(kind, std::move(all));
}

// Counts a search from the right, which takes the product of both sizes at
// worst: all positions, and vectors of bytes at each.
static absl::Status spendFromRight(Heap &heap, absl::string_view text,
                                   absl::string_view part) {
  return heap.spend(1 + text.size() * part.size() / 256);
}

//===----------------------------------------------------------------------===//
// Case, kinds of characters
//===----------------------------------------------------------------------===//

template <std::string (*change)(absl::string_view)>
static ValueOr changed(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(positional(args, 0, 0).status());
  LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(self.text().size()));
  return like(in, self, change(self.text()));
}

template <bool (*holds)(int32_t)>
static ValueOr all(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(positional(args, 0, 0).status());
  LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(self.text().size()));
  for (size_t at = 0; at < self.text().size();)
    if (!holds(decode(self.text(), at)))
      return Value::boolean(false);
  return Value::boolean(!self.text().empty());
}

static bool isAlphaNumeric(int32_t code) {
  return isAlpha(code) || isNumeric(code);
}

static ValueOr isAscii(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(positional(args, 0, 0).status());
  return Value::boolean(self.string().isAscii());
}

static ValueOr isPrintableText(Interpreter &in, Value self,
                               CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const Value holds, all<isPrintable>(in, self, args));
  return Value::boolean(holds.boolean() || self.text().empty());
}

static ValueOr isIdentifierText(Interpreter &in, Value self,
                                CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(positional(args, 0, 0).status());
  return Value::boolean(isIdentifier(self.text()));
}

// Python's islower and isupper: letters with case, and only `right` ones.
template <bool (*right)(int32_t), bool (*wrong)(int32_t)>
static ValueOr inCase(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(positional(args, 0, 0).status());
  bool found = false;
  for (size_t at = 0; at < self.text().size();) {
    const int32_t code = decode(self.text(), at);
    if (wrong(code) || isTitle(code))
      return Value::boolean(false);
    found |= right(code);
  }
  return Value::boolean(found);
}

static ValueOr isTitleText(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_RETURN_IF_ERROR(positional(args, 0, 0).status());
  bool inWord = false, found = false;
  for (size_t at = 0; at < self.text().size();) {
    const int32_t code = decode(self.text(), at);
    const bool begins = isUpper(code) || isTitle(code);
    if (begins ? inWord : isLower(code) && !inWord)
      return Value::boolean(false);
    inWord = begins || isLower(code);
    found |= inWord;
  }
  return Value::boolean(found);
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

template <bool left, bool right>
static ValueOr stripped(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 0, 1));
  std::optional<absl::string_view> chars;
  if (given[0].isString())
    chars = given[0].text();
  else if (!isLeftOut(given[0]))
    return wrongArgument("a text", given[0]);
  if (chars)
    LLAMAC_RETURN_IF_ERROR(
        in.heap.spend(self.text().size() / 16 * (1 + chars->size())));
  return like(in, self, std::string(strip(self.text(), chars, left, right)));
}

// At white space; runs of it are one separator, and none at the ends.
static std::vector<absl::string_view>
splitSpaces(absl::string_view text, int64_t most, bool fromRight) {
  std::vector<absl::string_view> parts;
  text = strip(text, std::nullopt, true, true);
  while (!text.empty() && most-- != 0) {
    size_t begin = 0, end = 0;
    bool found = false;
    if (fromRight) {
      // The last space and all before it that follow each other.
      for (size_t at = text.size(); at > 0 && !found;) {
        do
          --at;
        while ((static_cast<uint8_t>(text[at]) & 0xc0) == 0x80);
        size_t next = at;
        if (isSpace(decode(text, next))) {
          found = true;
          end = next;
        }
      }
      if (!found)
        break;
      parts.push_back(text.substr(end));
      text = strip(text.substr(0, end), std::nullopt, false, true);
      continue;
    }
    for (size_t at = 0; at < text.size() && !found;) {
      begin = at;
      found = isSpace(decode(text, at));
    }
    if (!found)
      break;
    parts.push_back(text.substr(0, begin));
    text = strip(text.substr(begin), std::nullopt, true, false);
  }
  if (!text.empty())
    parts.push_back(text);
  if (fromRight)
    std::reverse(parts.begin(), parts.end());
  return parts;
}

template <bool fromRight>
static ValueOr split(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given,
                          bind("split", args, {"sep", "maxsplit"}));
  LLAMAC_ASSIGN_OR_RETURN(int64_t most, integer(given[1], -1));
  absl::string_view text = self.text();
  LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(text.size()));
  if (isLeftOut(given[0])) {
    // What is left when no more is cut keeps the space at its other end.
    std::vector<absl::string_view> parts =
        splitSpaces(text, most < 0 ? -1 : most, fromRight);
    if (most >= 0 && parts.size() == static_cast<size_t>(most) + 1) {
      absl::string_view &rest = fromRight ? parts.front() : parts.back();
      const char *const begin = fromRight ? text.data() : rest.data();
      const char *const end =
          fromRight ? rest.data() + rest.size() : text.data() + text.size();
      rest = absl::string_view(begin, static_cast<size_t>(end - begin));
    }
    return listLike(in, self, parts);
  }
  if (!given[0].isString())
    return wrongArgument("a text", given[0]);
  const absl::string_view separator = given[0].text();
  if (separator.empty())
    return templateError("split has an empty separator");
  if (fromRight)
    LLAMAC_RETURN_IF_ERROR(spendFromRight(in.heap, text, separator));
  std::vector<absl::string_view> parts;
  while (most-- != 0) {
    const size_t at = fromRight ? text.rfind(separator) : find(text, separator);
    if (at == absl::string_view::npos)
      break;
    LLAMAC_RETURN_IF_ERROR(in.heap.spend(1 + separator.size() / 16));
    parts.push_back(fromRight ? text.substr(at + separator.size())
                              : text.substr(0, at));
    text = fromRight ? text.substr(0, at) : text.substr(at + separator.size());
  }
  parts.push_back(text);
  if (fromRight)
    std::reverse(parts.begin(), parts.end());
  return listLike(in, self, parts);
}

static ValueOr lines(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given,
                          bind("splitlines", args, {"keepends"}));
  LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(self.text().size()));
  return listLike(
      in, self,
      splitLines(self.text(), !given[0].is(Kind::Missing) && isTrue(given[0])));
}

template <bool fromRight>
static ValueOr partition(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 1, 1));
  if (!given[0].isString())
    return wrongArgument("a text", given[0]);
  const absl::string_view text = self.text(), part = given[0].text();
  if (part.empty())
    return templateError("partition has an empty separator");
  if (fromRight)
    LLAMAC_RETURN_IF_ERROR(spendFromRight(in.heap, text, part));
  const size_t at = fromRight ? text.rfind(part) : find(text, part);
  if (at == absl::string_view::npos)
    return listLike(in, self,
                    fromRight ? std::vector<absl::string_view>{"", "", text}
                              : std::vector<absl::string_view>{text, "", ""},
                    Kind::Tuple);
  return listLike(in, self,
                  {text.substr(0, at), part, text.substr(at + part.size())},
                  Kind::Tuple);
}

template <bool atEnd>
static ValueOr without(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 1, 1));
  if (!given[0].isString())
    return wrongArgument("a text", given[0]);
  absl::string_view text = self.text();
  if (atEnd)
    absl::ConsumeSuffix(&text, given[0].text());
  else
    absl::ConsumePrefix(&text, given[0].text());
  return like(in, self, std::string(text));
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

namespace {

/// The part of a text that a method's start and end leave; they count code
/// points, from the end when negative.
struct Part {
  absl::string_view text;
  int64_t begin = 0;   ///< In code points.
  bool isValid = true; ///< Start is not behind the end.
};

absl::StatusOr<Part> partOf(Interpreter &in, const Value &self,
                            const Value &start, const Value &end) {
  LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(self.text().size()));
  const int64_t size = static_cast<int64_t>(self.string().length);
  const auto bound = [&](const Value &value,
                         int64_t otherwise) -> absl::StatusOr<int64_t> {
    LLAMAC_ASSIGN_OR_RETURN(
        int64_t at,
        integer(isLeftOut(value) ? Value::missing() : value, otherwise));
    return at < 0 ? std::max<int64_t>(0, at + size) : at;
  };
  LLAMAC_ASSIGN_OR_RETURN(const int64_t from, bound(start, 0));
  LLAMAC_ASSIGN_OR_RETURN(int64_t to, bound(end, size));
  to = std::min(to, size);
  if (from > to)
    return Part{"", from, false};
  const size_t first = byteOf(self.text(), static_cast<size_t>(from));
  const absl::string_view rest = self.text().substr(first);
  return Part{rest.substr(0, byteOf(rest, static_cast<size_t>(to - from))),
              from};
}

} // namespace

// The index where an argument is found, in code points; -1 when it is not.
template <bool fromRight, bool mustFind>
static ValueOr search(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 1, 3));
  if (!given[0].isString())
    return wrongArgument("a text", given[0]);
  LLAMAC_ASSIGN_OR_RETURN(const Part part,
                          partOf(in, self, given[1], given[2]));
  if (fromRight)
    LLAMAC_RETURN_IF_ERROR(spendFromRight(in.heap, part.text, given[0].text()));
  const size_t at = !part.isValid ? absl::string_view::npos
                    : fromRight   ? part.text.rfind(given[0].text())
                                  : find(part.text, given[0].text());
  if (at != absl::string_view::npos)
    return Value::integer(
        part.begin + static_cast<int64_t>(codePoints(part.text.substr(0, at))));
  if (mustFind)
    return templateError("the text is not found");
  return Value::integer(-1);
}

static ValueOr count(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 1, 3));
  if (!given[0].isString())
    return wrongArgument("a text", given[0]);
  LLAMAC_ASSIGN_OR_RETURN(const Part part,
                          partOf(in, self, given[1], given[2]));
  const absl::string_view sought = given[0].text();
  if (!part.isValid)
    return Value::integer(0);
  if (sought.empty())
    return Value::integer(static_cast<int64_t>(codePoints(part.text)) + 1);
  int64_t found = 0;
  for (size_t at = find(part.text, sought); at != absl::string_view::npos;
       at = find(part.text, sought, at + sought.size())) {
    LLAMAC_RETURN_IF_ERROR(in.heap.spend(1 + sought.size() / 16));
    ++found;
  }
  return Value::integer(found);
}

template <bool atEnd>
static ValueOr matches(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 1, 3));
  std::vector<Value> choices = {given[0]};
  if (given[0].is(Kind::Tuple))
    choices = given[0].sequence().items;
  LLAMAC_ASSIGN_OR_RETURN(const Part part,
                          partOf(in, self, given[1], given[2]));
  for (const Value &choice : choices) {
    if (!choice.isString())
      return wrongArgument("a text or a tuple of texts", choice);
    LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(choice.text().size()));
    if (part.isValid && (atEnd ? absl::EndsWith(part.text, choice.text())
                               : absl::StartsWith(part.text, choice.text())))
      return Value::boolean(true);
  }
  return Value::boolean(false);
}

//===----------------------------------------------------------------------===//
// Other texts
//===----------------------------------------------------------------------===//

static ValueOr replaced(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 2, 3));
  if (!given[0].isString() || !given[1].isString())
    return wrongArgument("texts", given[given[0].isString()]);
  LLAMAC_ASSIGN_OR_RETURN(const int64_t most, integer(given[2], -1));
  LLAMAC_RETURN_IF_ERROR(in.heap.spendBytes(self.text().size()));
  std::optional<std::string> text =
      replace(self.text(), given[0].text(), given[1].text(), most,
              in.heap.limits.memoryBytes);
  if (!text)
    return in.heap.wouldFit(2, in.heap.limits.memoryBytes);
  return like(in, self, *std::move(text));
}

static ValueOr join(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 1, 1));
  LLAMAC_ASSIGN_OR_RETURN(const auto parts, items(in.heap, given[0]));
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].isString())
      return wrongArgument("texts", parts[i]);
    LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(
        1, text.size() + self.text().size() + parts[i].text().size()));
    if (i > 0)
      absl::StrAppend(&text, self.text());
    absl::StrAppend(&text, parts[i].text());
  }
  return like(in, self, std::move(text));
}

// Padded to a width: -1 with the text at the left, 1 at the right, 0 centered.
template <int side>
static ValueOr padded(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 1, 2));
  LLAMAC_ASSIGN_OR_RETURN(const int64_t width, integer(given[0], 0));
  std::string fill = " ";
  if (!given[1].is(Kind::Missing)) {
    if (!given[1].isString() || given[1].string().length != 1)
      return wrongArgument("one character", given[1]);
    fill = std::string(given[1].text());
  }
  const int64_t missing = width - static_cast<int64_t>(self.string().length);
  if (missing <= 0)
    return self;
  LLAMAC_RETURN_IF_ERROR(
      in.heap.wouldFit(static_cast<uint64_t>(missing), fill.size()));
  const int64_t before = side < 0   ? 0
                         : side > 0 ? missing
                                    : missing / 2 + (missing & width & 1);
  std::string text;
  for (int64_t i = 0; i < before; ++i)
    text += fill;
  absl::StrAppend(&text, self.text());
  for (int64_t i = before; i < missing; ++i)
    text += fill;
  return like(in, self, std::move(text));
}

static ValueOr zeroFill(Interpreter &in, Value self, CallArguments &args) {
  LLAMAC_ASSIGN_OR_RETURN(const auto given, positional(args, 1, 1));
  LLAMAC_ASSIGN_OR_RETURN(const int64_t width, integer(given[0], 0));
  const int64_t missing = width - static_cast<int64_t>(self.string().length);
  if (missing <= 0)
    return self;
  LLAMAC_RETURN_IF_ERROR(in.heap.wouldFit(1, static_cast<uint64_t>(missing)));
  std::string text(self.text());
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  text.insert(sign, static_cast<size_t>(missing), '0');
  return like(in, self, std::move(text));
}

static ValueOr format(Interpreter &in, Value self, CallArguments &args) {
  return formatBraces(in, self, args);
}

absl::Span<const Function> textMethods() {
  static constexpr Function ofString[] = {
      {"capitalize", changed<capitalize>},
      {"casefold", changed<foldCase>},
      {"center", padded<0>},
      {"count", count},
      {"endswith", matches<true>},
      {"find", search<false, false>},
      {"format", format},
      {"index", search<false, true>},
      {"isalnum", all<isAlphaNumeric>},
      {"isalpha", all<isAlpha>},
      {"isascii", isAscii},
      {"isdecimal", all<isDecimal>},
      {"isdigit", all<isDigit>},
      {"isidentifier", isIdentifierText},
      {"islower", inCase<isLower, isUpper>},
      {"isnumeric", all<isNumeric>},
      {"isprintable", isPrintableText},
      {"isspace", all<isSpace>},
      {"istitle", isTitleText},
      {"isupper", inCase<isUpper, isLower>},
      {"join", join},
      {"ljust", padded<-1>},
      {"lower", changed<lower>},
      {"lstrip", stripped<true, false>},
      {"partition", partition<false>},
      {"removeprefix", without<false>},
      {"removesuffix", without<true>},
      {"replace", replaced},
      {"rfind", search<true, false>},
      {"rindex", search<true, true>},
      {"rjust", padded<1>},
      {"rpartition", partition<true>},
      {"rsplit", split<true>},
      {"rstrip", stripped<false, true>},
      {"split", split<false>},
      {"splitlines", lines},
      {"startswith", matches<false>},
      {"strip", stripped<true, true>},
      {"swapcase", changed<swapCase>},
      {"title", changed<title>},
      {"upper", changed<upper>},
      {"zfill", zeroFill},
  };
  return ofString;
}

} // namespace method

} // namespace llamac::chat
