//===- ScoredPiecesTokenizer.cpp - Pieces merged by score -----------------===//
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
//===----------------------------------------------------------------------===//

#include "runtime/engine/tokenizer/MergeQueue.h"
#include "runtime/engine/tokenizer/TokenizerKinds.h"

#include "absl/strings/str_replace.h"

#include <array>

namespace llamac {

namespace {

class ScoredPiecesTokenizer final : public Tokenizer {
public:
  explicit ScoredPiecesTokenizer(const TokenizerBlob &checked)
      : Tokenizer(checked) {
    for (uint32_t id = 0; id < blob.vocabSize(); ++id) {
      const absl::string_view bytes = blob.tokenBytes(id);
      if (blob.tokenType(id) == TokenType::Byte && bytes.size() == 1)
        byteTokens[static_cast<uint8_t>(bytes[0])] = id;
    }
  }

private:
  absl::Status encodeText(absl::string_view text, bool afterSpecial,
                          std::vector<int32_t> &ids) const override;
  void append(absl::string_view piece, std::vector<int32_t> &ids) const;

  std::array<std::optional<uint32_t>, 256> byteTokens;
};

} // namespace

void ScoredPiecesTokenizer::append(absl::string_view piece,
                                   std::vector<int32_t> &ids) const {
  if (const std::optional<uint32_t> id = blob.findToken(piece)) {
    ids.push_back(static_cast<int32_t>(*id));
    return;
  }
  for (char c : piece) {
    const std::optional<uint32_t> id = byteTokens[static_cast<uint8_t>(c)];
    if (id)
      ids.push_back(static_cast<int32_t>(*id));
    else if (const std::optional<int32_t> unknown = blob.unknownId())
      ids.push_back(*unknown);
  }
}

absl::Status
ScoredPiecesTokenizer::encodeText(absl::string_view original, bool afterSpecial,
                                  std::vector<int32_t> &ids) const {
  std::string text = absl::StrReplaceAll(original, {{"\xE2\x96\x81", " "}});
  if (afterSpecial && blob.flags().addSpacePrefix)
    text.insert(text.begin(), ' ');

  const auto spelling = [&](size_t begin, size_t length) {
    return absl::string_view(text).substr(begin, length);
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
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Tokenizer>>
makeScoredPiecesTokenizer(const TokenizerBlob &blob) {
  return std::make_unique<ScoredPiecesTokenizer>(blob);
}

} // namespace llamac
