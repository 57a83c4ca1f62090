//===- BytePairTokenizer.cpp - Words, then byte pairs ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Llama 3, SmolLM and GPT-2: the pre-tokenizer cuts the text into words, and
// each word is a token as it stands or is merged from its bytes.
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/tokenizer/BytePair.h"
#include "runtime/engine/tokenizer/PreTokenizer.h"
#include "runtime/engine/tokenizer/TokenizerKinds.h"

namespace llamac {

namespace {

class BytePairTokenizer final : public Tokenizer {
public:
  explicit BytePairTokenizer(const TokenizerBlob &checked)
      : Tokenizer(checked), words(blob.preTokenizer()), bytePair(blob) {}

private:
  absl::Status encodeText(absl::string_view text, bool afterSpecial,
                          std::vector<int32_t> &ids) const override {
    std::string replaced;
    if (blob.flags().replaceInvalid) {
      replaced = replaceInvalidUtf8(text);
      text = replaced;
    }
    std::string composed;
    if (blob.flags().composes) {
      composed = composeUtf8(text);
      text = composed;
    }
    ids.reserve(ids.size() + text.size() / 4);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = words.wordEnd(text, begin);
      encodeWord(text.substr(begin, end - begin), ids);
      begin = end;
    }
    return absl::OkStatus();
  }

  void encodeWord(absl::string_view word, std::vector<int32_t> &ids) const {
    if (blob.flags().wholeWordFirst && word.size() <= blob.longestToken()) {
      if (const std::optional<uint32_t> id = blob.findToken(word)) {
        ids.push_back(static_cast<int32_t>(*id));
        return;
      }
    }
    bytePair.encode(word, ids);
  }

  PreTokenizer words;
  BytePair bytePair;
};

} // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>>
makeBytePairTokenizer(const TokenizerBlob &blob) {
  return std::make_unique<BytePairTokenizer>(blob);
}

} // namespace llamac
