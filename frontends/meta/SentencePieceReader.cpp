//===- SentencePieceReader.cpp - Llama 2's tokenizer.model ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteTokens.h"
#include "frontends/TokenizerBlobWriter.h"
#include "frontends/TokenizerSources.h"
#include "runtime/engine/tokenizer/SentencePieceModel.h"
#include "runtime/io/ByteCursor.h"

#include "absl/strings/str_cat.h"

namespace llamac {

static TokenType tokenType(SentencePieceModel::PieceType type) {
  switch (type) {
  case SentencePieceModel::PieceType::Normal:
    return TokenType::Normal;
  case SentencePieceModel::PieceType::Control:
    return TokenType::Control;
  case SentencePieceModel::PieceType::Byte:
    return TokenType::Byte;
  case SentencePieceModel::PieceType::Unknown:
    return TokenType::Unknown;
  case SentencePieceModel::PieceType::Unused:
    break;
  }
  return TokenType::Unused;
}

static std::optional<uint32_t> optionalId(int id) {
  return id < 0 ? std::nullopt
                : std::optional<uint32_t>(static_cast<uint32_t>(id));
}

absl::StatusOr<std::string> buildSentencePieceBlob(const NamedText &file) {
  SentencePieceModel model;
  if (const std::string error =
          model.load({file.text.data(), file.text.size()});
      !error.empty())
    return malformed(file.file, 0, "model", "a SentencePiece model",
                     quoteForMessage(error));
  if (model.size() == 0 || model.size() > maxVocabularySize)
    return malformed(file.file, 0, "pieces",
                     absl::StrCat("1 to ", maxVocabularySize), model.size());
  TokenizerData data;
  data.kind = TokenizerKind::SentencePiece;
  for (uint32_t id = 0; id < model.size(); ++id) {
    const TokenType type = tokenType(model.type(id));
    std::optional<std::string> bytes = pieceBytes(model.piece(id), type);
    if (!bytes)
      return malformed(file.file, 0, absl::StrCat("piece ", id),
                       "<0x00> to <0xFF>", quoteForMessage(model.piece(id)));
    data.tokens.push_back(*std::move(bytes));
    data.types.push_back(type);
  }
  data.bosId = optionalId(model.bosId());
  data.eosId = optionalId(model.eosId());
  data.unknownId = optionalId(model.unknownId());
  data.flags.addBos = data.bosId.has_value();
  data.flags.addSpacePrefix = model.addsSpacePrefix();
  data.model = std::string(file.text);
  return writeTokenizerBlob(std::move(data), file.file);
}

} // namespace llamac
