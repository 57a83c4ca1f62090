//===- BytePairTokenizer.cpp - Words, then byte pairs ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pre-tokenizer cuts the text into words, and each word is a token as it
// stands or is merged from its bytes.
//
//===----------------------------------------------------------------------===//

#include "text/tokenizer/BytePair.h"
#include "text/tokenizer/PreTokenizer.h"
#include "text/tokenizer/TokenizerKinds.h"

namespace llamac {

namespace {

class BytePairTokenizer final : public Tokenizer {
public:
  explicit BytePairTokenizer(const TokenizerBlob &checked)
      : Tokenizer(checked), words(blob.preTokenizer()), bytePair(blob) {}

  absl::Status load() {
    if (PreTokenizer::scans(blob.preTokenizer()))
      return absl::OkStatus();
    LLAMAC_ASSIGN_OR_RETURN(
        ExpressionPreTokenizer preTokenizer,
        ExpressionPreTokenizer::create(blob.preTokenizer()));
    expressions.emplace(std::move(preTokenizer));
    return absl::OkStatus();
  }

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
    if (expressions)
      return expressions->split(
          text, [&](absl::string_view word) { encodeWord(word, ids); });
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
  std::optional<ExpressionPreTokenizer>
      expressions; ///< Where `words` scans none.
  BytePair bytePair;
};

} // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>>
makeBytePairTokenizer(const TokenizerBlob &blob) {
  auto tokenizer = std::make_unique<BytePairTokenizer>(blob);
  LLAMAC_RETURN_IF_ERROR(tokenizer->load());
  return tokenizer;
}

} // namespace llamac
