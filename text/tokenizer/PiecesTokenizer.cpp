//===- PiecesTokenizer.cpp - Pieces merged by score or rank ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The vocabulary of SentencePiece's BPE as GGUF carries it (Llama 2): tokens
// with scores. The text starts as its characters; of all neighbours that
// together spell a token the one with the highest score merges first, the
// leftmost of equals. A character that spells no token becomes the tokens of
// its bytes, and so does a byte that is not UTF-8.
//
// SentencePiece writes a space as U+2581. Here tokens hold plain spaces and a
// U+2581 of the text counts as a space, as it does there.
//
// tokenizer.json's byte pairs with bytes as a fallback (Gemma) are the same but
// for the order of merges: a list of them ranks them, and a character that is
// no token is its bytes before any merge.
//
//===----------------------------------------------------------------------===//

#include "text/tokenizer/MergeQueue.h"
#include "text/tokenizer/TokenizerKinds.h"

#include "absl/strings/str_replace.h"

#include <array>

namespace llamac {

namespace {

class PiecesTokenizer final : public Tokenizer {
public:
  explicit PiecesTokenizer(const TokenizerBlob &checked) : Tokenizer(checked) {
    for (uint32_t id = 0; id < blob.vocabSize(); ++id) {
      const absl::string_view bytes = blob.tokenBytes(id);
      if (blob.tokenType(id) == TokenType::Byte && bytes.size() == 1)
        byteTokens[static_cast<uint8_t>(bytes[0])] = id;
    }
  }

private:
  absl::Status encodeText(absl::string_view text, bool afterSpecial,
                          std::vector<int32_t> &ids) const override;
  void encodeScored(absl::string_view text, std::vector<int32_t> &ids) const;
  void encodeRanked(absl::string_view text, std::vector<int32_t> &ids) const;
  void appendBytes(absl::string_view piece, std::vector<int32_t> &ids) const;
  void append(absl::string_view piece, std::vector<int32_t> &ids) const;

  std::array<std::optional<uint32_t>, 256> byteTokens;
};

} // namespace

void PiecesTokenizer::append(absl::string_view piece,
                             std::vector<int32_t> &ids) const {
  if (const std::optional<uint32_t> id = blob.findToken(piece)) {
    ids.push_back(static_cast<int32_t>(*id));
    return;
  }
  appendBytes(piece, ids);
}

void PiecesTokenizer::appendBytes(absl::string_view piece,
                                  std::vector<int32_t> &ids) const {
  for (char c : piece) {
    const std::optional<uint32_t> id = byteTokens[static_cast<uint8_t>(c)];
    if (id)
      ids.push_back(static_cast<int32_t>(*id));
    else if (const std::optional<int32_t> unknown = blob.unknownId())
      ids.push_back(*unknown);
  }
}

absl::Status PiecesTokenizer::encodeText(absl::string_view original,
                                         bool afterSpecial,
                                         std::vector<int32_t> &ids) const {
  std::string text = absl::StrReplaceAll(original, {{"\xE2\x96\x81", " "}});
  if (afterSpecial && blob.flags().addSpacePrefix)
    text.insert(text.begin(), ' ');
  if (blob.kind() == TokenizerKind::RankedPieces)
    encodeRanked(text, ids);
  else
    encodeScored(text, ids);
  return absl::OkStatus();
}

void PiecesTokenizer::encodeRanked(absl::string_view text,
                                   std::vector<int32_t> &ids) const {
  // Merges with nothing.
  constexpr uint32_t noToken = 0xFFFFFFFF;
  MergeQueue<uint32_t> queue;
  queue.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = decodeChar(text, at).length;
    if (const auto id = blob.findToken(text.substr(at, length)))
      queue.addNode(at, length, *id);
    else
      for (size_t i = at; i < at + length; ++i)
        queue.addNode(
            i, 1, byteTokens[static_cast<uint8_t>(text[i])].value_or(noToken));
    at += length;
  }
  queue.run(RankedMerges{blob});
  queue.forEach([&](const MergeNode &node) {
    if (node.token != noToken)
      ids.push_back(static_cast<int32_t>(node.token));
    else
      appendBytes(text.substr(node.begin, 1), ids); // The unknown token.
  });
}

void PiecesTokenizer::encodeScored(absl::string_view text,
                                   std::vector<int32_t> &ids) const {
  const auto spelling = [&](size_t begin, size_t length) {
    return text.substr(begin, length);
  };
  // The key of a merge is its negated score: the highest goes first.
  const auto merge =
      [&](const MergeNode &left,
          const MergeNode &right) -> std::optional<MergeCandidate<float>> {
    const size_t length = size_t{left.length} + right.length;
    if (length > blob.longestToken())
      return std::nullopt;
    const std::optional<uint32_t> id =
        blob.findToken(spelling(left.begin, length));
    if (!id)
      return std::nullopt;
    return MergeCandidate<float>{-blob.score(*id), *id};
  };

  MergeQueue<float> queue;
  queue.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = decodeChar(text, at).length;
    queue.addNode(at, length, 0);
    at += length;
  }
  queue.run(merge);
  queue.forEach([&](const MergeNode &node) {
    append(spelling(node.begin, node.length), ids);
  });
}

absl::StatusOr<std::unique_ptr<Tokenizer>>
makePiecesTokenizer(const TokenizerBlob &blob) {
  return std::make_unique<PiecesTokenizer>(blob);
}

} // namespace llamac
