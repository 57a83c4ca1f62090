//===- TokenizerBlob.h - A tokenizer as one run of bytes --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan carries its tokenizer as one section in the form described here,
// whatever file it came from. The tables are laid out as they are used, hash
// tables included, so a blob is mapped and read in place: loading checks it
// and copies nothing that grows with the vocabulary.
//
// Layout, little-endian, no alignment needed:
//   char[8]  magic "LCTOKEN3"
//   u32      kind, pre-tokenizer, flags, vocabulary size n
//   i32      ids of begin-of-sequence, end-of-sequence, end-of-turn and
//            unknown; -1 where there is none
//   u64 x 2  offset and size of each section of BlobSection, in its order
//   ...      the sections
//
// Every lookup in a hash table probes onward from the slot its hash names,
// with wrap-around, until it meets its key or an empty slot. Tables have a
// power of two of slots.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TOKENIZER_TOKENIZERBLOB_H
#define LLAMAC_TEXT_TOKENIZER_TOKENIZERBLOB_H

#include "runtime/base/Status.h"
#include "text/tokenizer/PreTokenizer.h"

#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// How text becomes ids.
enum class TokenizerKind : uint8_t {
  BytePair,      ///< Bytes of a word merged pair by pair in order of rank.
  ScoredPieces,  ///< Characters of the text merged by score (GGUF's "llama").
  SentencePiece, ///< A SentencePiece model, run by its library.
  RankedPieces,  ///< Characters of the text merged pair by pair, as BytePair.
};

enum class TokenType : uint8_t {
  Normal,
  Control, ///< Special: found in text only where the caller asks.
  User,    ///< Added by the user: always found in text, before words are cut.
  Byte,    ///< One byte, for what no other token spells.
  Unknown, ///< Stands for what cannot be spelled; found in text as Control.
  Unused,  ///< Never found in text.
};

/// The most ids a vocabulary may have, and the longest token.
inline constexpr uint32_t maxVocabularySize = 1u << 22;
inline constexpr size_t maxTokenBytes = 1024;

/// Two neighbours that merge into one token. Lower ranks merge first; equal
/// ranks from left to right.
struct Merge {
  uint32_t left;
  uint32_t right;
  uint32_t rank;
  uint32_t result;
};

struct TokenizerFlags {
  bool addBos = false;         ///< Text is encoded with begin-of-sequence.
  bool wholeWordFirst = false; ///< A word that is a token is not merged.
  bool replaceInvalid = false; ///< Invalid UTF-8 is encoded as U+FFFD.
  bool addSpacePrefix = false; ///< ScoredPieces: a space goes before the text.
  bool composes = false;       ///< BytePair: text is brought to NFC first.
  /// White space around special tokens is that of ASCII alone, as llama.cpp
  /// has it.
  bool asciiSpaces = false;
};

/// The marks of a special token that is found in text.
struct SpecialMarks {
  bool leftSpaces = false;  ///< The white space ahead of it.
  bool rightSpaces = false; ///< The white space behind it.
  bool wholeWord = false;   ///< Not between characters of words.

  friend bool operator==(const SpecialMarks &, const SpecialMarks &) = default;
};

enum class BlobSection {
  TokenOffsets, ///< u32[n + 1] into TokenBytes.
  TokenBytes,
  TokenTypes,    ///< u8[n], TokenType.
  TokenIndex,    ///< u32 slots: ids of Normal tokens by XXH3 of their bytes.
  Merges,        ///< Slots of four u32: left, right, rank, result.
  Scores,        ///< f32[n].
  SpecialIds,    ///< u32: special tokens, sorted by their bytes.
  SpecialMarks,  ///< u8, one for each of these: bits of SpecialMarks.
  StopIds,       ///< u32, ascending.
  ChatTemplates, ///< u64 sizes of name and text, name, text; names ascending.
  Model,
  Count,
};

/// The name of a model's chat template where it has one alone.
inline constexpr absl::string_view defaultChatTemplate = "default";

/// A chat template and its name among those of the model.
struct NamedChatTemplate {
  absl::string_view name;
  absl::string_view text;
};

/// A blob that has been checked: every id in its tables is below the size of
/// the vocabulary, every offset inside the bytes, and no table makes a lookup
/// probe far. Views the bytes it was made from.
class TokenizerBlob {
public:
  /// Checks `bytes`, which must outlive the result. Error: a bad plan.
  static absl::StatusOr<TokenizerBlob> parse(absl::string_view bytes);

  TokenizerKind kind() const { return tokenizerKind; }
  PreTokenizerKind preTokenizer() const { return pre; }
  const TokenizerFlags &flags() const { return tokenizerFlags; }
  uint32_t vocabSize() const { return size; }
  std::optional<int32_t> bosId() const { return bos; }
  std::optional<int32_t> eosId() const { return eos; }
  std::optional<int32_t> eotId() const { return eot; }
  std::optional<int32_t> unknownId() const { return unknown; }

  /// `id` is below the size of the vocabulary.
  absl::string_view tokenBytes(uint32_t id) const {
    const uint32_t begin = load<uint32_t>(BlobSection::TokenOffsets, id);
    const uint32_t end = load<uint32_t>(BlobSection::TokenOffsets, id + 1);
    return section(BlobSection::TokenBytes).substr(begin, end - begin);
  }
  TokenType tokenType(uint32_t id) const {
    return static_cast<TokenType>(
        section(BlobSection::TokenTypes)[static_cast<size_t>(id)]);
  }
  float score(uint32_t id) const {
    return load<float>(BlobSection::Scores, id);
  }
  /// The bytes of the longest token, of any type.
  size_t longestToken() const { return longest; }

  /// The Normal token whose bytes are `bytes`.
  std::optional<uint32_t> findToken(absl::string_view bytes) const;

  /// The merge of `left` and `right`, if they merge.
  std::optional<Merge> findMerge(uint32_t left, uint32_t right) const;

  /// All merges by their rank, those of equal ranks by their ids.
  std::vector<Merge> merges() const;

  /// Control, User and Unknown tokens, sorted by their bytes.
  std::vector<int32_t> specialIds() const {
    return ids(BlobSection::SpecialIds);
  }
  /// The marks of the special token at `index` of these.
  SpecialMarks specialMarks(size_t index) const;
  /// The ids that end a generation, ascending.
  std::vector<int32_t> stopIds() const { return ids(BlobSection::StopIds); }
  /// Chat templates by their names, ascending.
  const std::vector<NamedChatTemplate> &chatTemplates() const {
    return templates;
  }
  /// The text of a chat template, if there is one of the name.
  std::optional<absl::string_view>
  chatTemplate(absl::string_view name = defaultChatTemplate) const;
  absl::string_view model() const { return section(BlobSection::Model); }

private:
  absl::string_view section(BlobSection which) const {
    return sections[static_cast<size_t>(which)];
  }
  template <typename T> T load(BlobSection which, size_t index) const {
    T value;
    std::memcpy(&value, section(which).data() + index * sizeof(T), sizeof(T));
    return value;
  }
  std::vector<int32_t> ids(BlobSection which) const;

  absl::Status parseHeader(absl::string_view bytes);
  absl::Status checkTokens();
  absl::Status checkTokenIndex() const;
  absl::Status checkMerges() const;
  absl::Status checkIds(BlobSection which, const char *name) const;
  absl::Status checkMarks() const;
  absl::Status readChatTemplates();

  TokenizerKind tokenizerKind = TokenizerKind::BytePair;
  PreTokenizerKind pre = PreTokenizerKind::Llama3;
  TokenizerFlags tokenizerFlags;
  uint32_t size = 0;
  std::optional<int32_t> bos, eos, eot, unknown;
  size_t longest = 0;
  size_t indexMask = 0;
  size_t mergeMask = 0;
  std::vector<NamedChatTemplate> templates;
  absl::string_view sections[static_cast<size_t>(BlobSection::Count)];
};

} // namespace llamac

#endif // LLAMAC_TEXT_TOKENIZER_TOKENIZERBLOB_H
