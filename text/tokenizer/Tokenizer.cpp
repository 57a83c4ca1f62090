//===- Tokenizer.cpp - Text to ids and back -------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All kinds of tokenizers share this: the text is cut at its special tokens,
// each part between them goes to the kind's own algorithm, and ids turn back to
// bytes by look-up.
//
//===----------------------------------------------------------------------===//

#include "text/tokenizer/Tokenizer.h"

#include "text/tokenizer/TokenizerKinds.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace llamac {

Tokenizer::~Tokenizer() = default;

static std::vector<SpecialTokens::Entry>
specialEntries(const TokenizerBlob &blob, bool onlyUser) {
  std::vector<SpecialTokens::Entry> entries;
  const std::vector<int32_t> ids = blob.specialIds();
  for (size_t i = 0; i < ids.size(); ++i) {
    const int32_t id = ids[i];
    const TokenType type = blob.tokenType(static_cast<uint32_t>(id));
    std::string text(blob.tokenBytes(static_cast<uint32_t>(id)));
    // tokenizer.json finds them in text that spells U+2581.
    if (blob.kind() == TokenizerKind::RankedPieces)
      text = absl::StrReplaceAll(text, {{" ", "\xE2\x96\x81"}});
    if (!text.empty() && (!onlyUser || type == TokenType::User))
      entries.push_back({std::move(text), id, blob.specialMarks(i)});
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto &a, const auto &b) { return a.text < b.text; });
  return entries;
}

Tokenizer::Tokenizer(const TokenizerBlob &checked)
    : blob(checked), allSpecials(specialEntries(blob, false)),
      userSpecials(specialEntries(blob, true)) {}

bool Tokenizer::isControl(int32_t id) const {
  return blob.tokenType(static_cast<uint32_t>(id)) == TokenType::Control;
}

absl::Status Tokenizer::checkId(int32_t id) const {
  if (id >= 0 && id < vocabSize())
    return absl::OkStatus();
  return usageError(
      absl::StrCat("token id: expected 0 to ", vocabSize() - 1, ", got ", id));
}

static bool isSpace(absl::string_view text, const DecodedChar &character,
                    size_t at, bool asciiOnly) {
  if (character.length == 1)
    return absl::ascii_isspace(static_cast<unsigned char>(text[at]));
  return !asciiOnly && isWhiteSpace(character.codepoint);
}

// Where the white space ends that begins at `at`.
static size_t skipSpaces(absl::string_view text, size_t at, bool asciiOnly) {
  while (at < text.size()) {
    const DecodedChar next = decodeChar(text, at);
    if (!isSpace(text, next, at, asciiOnly))
      break;
    at += next.length;
  }
  return at;
}

// The character that ends at `end`, which is not the beginning.
static size_t lastCharBegin(absl::string_view text, size_t end) {
  constexpr size_t longestChar = 4;
  // Its last byte alone would be no character, but taken for one.
  for (size_t length = std::min(end, longestChar); length > 1; --length)
    if (decodeChar(text, end - length).length == length)
      return end - length;
  return end - 1;
}

// Where the white space begins that ends at `end`, not before `least`.
static size_t skipSpacesBack(absl::string_view text, size_t least, size_t end,
                             bool asciiOnly) {
  while (end > least) {
    const size_t begin = lastCharBegin(text, end);
    if (begin < least ||
        !isSpace(text, decodeChar(text, begin), begin, asciiOnly))
      break;
    end = begin;
  }
  return end;
}

static bool isWithinWord(absl::string_view text, size_t begin, size_t end) {
  return (begin > 0 &&
          isWordChar(decodeChar(text, lastCharBegin(text, begin)).codepoint)) ||
         (end < text.size() && isWordChar(decodeChar(text, end).codepoint));
}

// A special token takes the white space that its marks name, though not what
// another has taken. One that must be a whole word and is not is text, and no
// other begins inside it.
absl::StatusOr<std::vector<int32_t>>
Tokenizer::encode(absl::string_view text, EncodeOptions options) const {
  if (text.size() > std::numeric_limits<int32_t>::max())
    return usageError(absl::StrCat("text: expected less than 2 GiB, got ",
                                   text.size(), " bytes"));
  std::vector<int32_t> ids;
  if (options.addBos) {
    const std::optional<int32_t> bos = blob.bosId();
    if (!bos)
      return usageError("the model has no begin-of-sequence token to add");
    ids.push_back(*bos);
  }
  const SpecialTokens &specials = options.special ? allSpecials : userSpecials;
  const bool asciiOnly = blob.flags().asciiSpaces;
  bool afterSpecial = true;
  size_t done = 0; // The end of the text that has its ids.
  const auto encodeUpTo = [&](size_t end) {
    if (end <= done)
      return absl::OkStatus();
    const absl::string_view part = text.substr(done, end - done);
    return encodeText(part, std::exchange(afterSpecial, false), ids);
  };
  for (size_t at = 0; const auto match = specials.find(text, at);) {
    at = match->end;
    const SpecialMarks &marks = match->marks;
    if (marks.wholeWord && isWithinWord(text, match->begin, match->end))
      continue;
    LLAMAC_RETURN_IF_ERROR(encodeUpTo(
        marks.leftSpaces ? skipSpacesBack(text, done, match->begin, asciiOnly)
                         : match->begin));
    ids.push_back(match->id);
    afterSpecial = true;
    done = marks.rightSpaces ? skipSpaces(text, match->end, asciiOnly)
                             : match->end;
  }
  LLAMAC_RETURN_IF_ERROR(encodeUpTo(text.size()));
  return ids;
}

absl::StatusOr<std::string> Tokenizer::decode(std::span<const int32_t> ids,
                                              DecodeOptions options) const {
  // Where the encoder puts a space before text, the space goes away again.
  bool dropSpace = options.startOfText && blob.flags().addSpacePrefix;
  std::string out;
  for (int32_t id : ids) {
    LLAMAC_RETURN_IF_ERROR(checkId(id));
    absl::string_view bytes = blob.tokenBytes(static_cast<uint32_t>(id));
    if (isControl(id)) {
      if (options.special)
        out.append(bytes.data(), bytes.size());
      dropSpace = blob.flags().addSpacePrefix;
      continue;
    }
    if (dropSpace && !bytes.empty() && bytes[0] == ' ')
      bytes.remove_prefix(1);
    dropSpace = false;
    out.append(bytes.data(), bytes.size());
  }
  return out;
}

absl::StatusOr<absl::string_view> Tokenizer::tokenBytes(int32_t id) const {
  LLAMAC_RETURN_IF_ERROR(checkId(id));
  return blob.tokenBytes(static_cast<uint32_t>(id));
}

absl::StatusOr<std::unique_ptr<Tokenizer>>
loadTokenizer(absl::string_view blobBytes) {
  LLAMAC_ASSIGN_OR_RETURN(const TokenizerBlob blob,
                          TokenizerBlob::parse(blobBytes));
  switch (blob.kind()) {
  case TokenizerKind::BytePair:
    return makeBytePairTokenizer(blob);
  case TokenizerKind::ScoredPieces:
  case TokenizerKind::RankedPieces:
    return makePiecesTokenizer(blob);
  case TokenizerKind::SentencePiece:
    return makeSentencePieceTokenizer(blob);
  }
  return internalError("tokenizer: a kind without an implementation");
}

absl::StatusOr<std::unique_ptr<Tokenizer>>
loadTokenizer(std::string blobBytes) {
  auto owned = std::make_unique<const std::string>(std::move(blobBytes));
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer,
                          loadTokenizer(absl::string_view(*owned)));
  tokenizer->ownedBytes = std::move(owned);
  return tokenizer;
}

} // namespace llamac
