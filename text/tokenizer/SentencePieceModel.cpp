//===- SentencePieceModel.cpp - The SentencePiece library -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/tokenizer/SentencePieceModel.h"

#include <sentencepiece_processor.h>

namespace llamac {

struct SentencePieceModel::Library {
  sentencepiece::SentencePieceProcessor processor;
};

SentencePieceModel::SentencePieceModel()
    : library(std::make_unique<Library>()) {}
SentencePieceModel::~SentencePieceModel() = default;

static std::string errorText(const sentencepiece::util::Status &status) {
  return status.ok() ? std::string() : status.ToString();
}

std::string SentencePieceModel::load(std::string_view bytes) {
  return errorText(library->processor.LoadFromSerializedProto(bytes));
}

uint32_t SentencePieceModel::size() const {
  return static_cast<uint32_t>(library->processor.GetPieceSize());
}

const std::string &SentencePieceModel::piece(uint32_t id) const {
  return library->processor.IdToPiece(static_cast<int>(id));
}

SentencePieceModel::PieceType SentencePieceModel::type(uint32_t id) const {
  const int index = static_cast<int>(id);
  if (library->processor.IsControl(index))
    return PieceType::Control;
  if (library->processor.IsUnknown(index))
    return PieceType::Unknown;
  if (library->processor.IsByte(index))
    return PieceType::Byte;
  return library->processor.IsUnused(index) ? PieceType::Unused
                                            : PieceType::Normal;
}

float SentencePieceModel::score(uint32_t id) const {
  return library->processor.GetScore(static_cast<int>(id));
}

int SentencePieceModel::bosId() const { return library->processor.bos_id(); }
int SentencePieceModel::eosId() const { return library->processor.eos_id(); }
int SentencePieceModel::unknownId() const {
  return library->processor.unk_id();
}

std::string SentencePieceModel::encode(std::string_view text,
                                       std::vector<int> &ids) const {
  return errorText(library->processor.Encode(text, &ids));
}

bool SentencePieceModel::addsSpacePrefix() const {
  std::vector<std::string> pieces;
  return library->processor.Encode("a", &pieces).ok() && !pieces.empty() &&
         pieces[0].rfind("\xE2\x96\x81", 0) == 0;
}

} // namespace llamac
