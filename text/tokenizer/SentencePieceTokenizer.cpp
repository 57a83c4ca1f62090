//===- SentencePieceTokenizer.cpp - Llama 2's tokenizer.model -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The blob holds the model file, for the library to encode with, and the
// vocabulary as the other kinds have it, for decoding.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Terminal.h"
#include "text/tokenizer/SentencePieceModel.h"
#include "text/tokenizer/TokenizerKinds.h"

#include "absl/strings/str_cat.h"

namespace llamac {

static std::string_view toStd(absl::string_view text) {
  return {text.data(), text.size()};
}

namespace {

class SentencePieceTokenizer final : public Tokenizer {
public:
  explicit SentencePieceTokenizer(const TokenizerBlob &checked)
      : Tokenizer(checked) {}

  absl::Status load() {
    if (const std::string error = model.load(toStd(blob.model()));
        !error.empty())
      return badPlanError(
          absl::StrCat("tokenizer: the SentencePiece model in the plan: ",
                       quoteForMessage(error)));
    if (model.size() != blob.vocabSize())
      return badPlanError(absl::StrCat(
          "tokenizer: vocabulary size: expected that of the model, ",
          model.size(), ", got ", blob.vocabSize()));
    return absl::OkStatus();
  }

private:
  absl::Status encodeText(absl::string_view text, bool afterSpecial,
                          std::vector<int32_t> &ids) const override {
    std::vector<int> pieces;
    if (const std::string error = model.encode(toStd(text), pieces);
        !error.empty())
      return internalError(absl::StrCat("SentencePiece: ", error));
    ids.insert(ids.end(), pieces.begin(), pieces.end());
    return absl::OkStatus();
  }

  SentencePieceModel model;
};

} // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>>
makeSentencePieceTokenizer(const TokenizerBlob &blob) {
  auto tokenizer = std::make_unique<SentencePieceTokenizer>(blob);
  LLAMAC_RETURN_IF_ERROR(tokenizer->load());
  return tokenizer;
}

} // namespace llamac
