//===- Tokenizer.h - Text to ids and back -----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tokenizer made from a blob (TokenizerBlob.h), which TokenizerSources.h
// makes from the files of the checkpoint formats. It never changes after it
// was made: any number of threads may use one.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TOKENIZER_TOKENIZER_H
#define LLAMAC_TEXT_TOKENIZER_TOKENIZER_H

#include "runtime/base/Status.h"
#include "text/tokenizer/SpecialTokens.h"
#include "text/tokenizer/TokenizerBlob.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace llamac {

struct EncodeOptions {
  /// Whether the names of special tokens in the text stand for them. Without
  /// it a user's "<|eot_id|>" is only text.
  bool special = false;
  /// Whether the begin-of-sequence token goes first. The vocabulary's flag says
  /// what the model expects.
  bool addBos = false;
};

struct DecodeOptions {
  /// Whether special tokens are written as their names or left out.
  bool special = true;
  /// Whether the ids begin a text. SentencePiece puts a space before a text;
  /// it is taken away again only there.
  bool startOfText = true;
};

class Tokenizer {
public:
  virtual ~Tokenizer();

  /// The blob that the tokenizer was made from.
  const TokenizerBlob &vocabulary() const { return blob; }
  int32_t vocabSize() const { return static_cast<int32_t>(blob.vocabSize()); }

  /// The ids of `text`, which may be any bytes. Bytes that are not UTF-8 keep
  /// their own tokens; a vocabulary from GGUF gets U+FFFD for each of them, as
  /// in llama.cpp. What a vocabulary has no token for (SmolLM's has none for a
  /// few bytes) becomes its unknown token, or nothing where it has none.
  /// Errors: addBos without such a token.
  absl::StatusOr<std::vector<int32_t>> encode(absl::string_view text,
                                              EncodeOptions options = {}) const;

  /// The bytes of `ids`; they may end inside a character. Error: an id outside
  /// the vocabulary.
  absl::StatusOr<std::string> decode(std::span<const int32_t> ids,
                                     DecodeOptions options = {}) const;

  /// The bytes of one token; of a special token, its name. Error: an id
  /// outside the vocabulary.
  absl::StatusOr<absl::string_view> tokenBytes(int32_t id) const;

  /// Whether `id`, inside the vocabulary, is a control token.
  bool isControl(int32_t id) const;

protected:
  explicit Tokenizer(const TokenizerBlob &blob);

  /// Appends the ids of `text`, in which no special token is looked for.
  /// `afterSpecial`: it begins the text or follows a special token.
  virtual absl::Status encodeText(absl::string_view text, bool afterSpecial,
                                  std::vector<int32_t> &ids) const = 0;

  const TokenizerBlob blob;

private:
  friend absl::StatusOr<std::unique_ptr<Tokenizer>>
  loadTokenizer(std::string blobBytes);

  absl::Status checkId(int32_t id) const;

  /// The bytes that `blob` views, when the tokenizer owns it.
  std::unique_ptr<const std::string> ownedBytes;
  SpecialTokens allSpecials;
  SpecialTokens userSpecials;
};

/// The tokenizer of a blob that outlives it, such as a mapped plan's section.
/// Error: a bad plan.
absl::StatusOr<std::unique_ptr<Tokenizer>>
loadTokenizer(absl::string_view blobBytes);

/// The tokenizer of a blob that it keeps.
absl::StatusOr<std::unique_ptr<Tokenizer>> loadTokenizer(std::string blobBytes);

} // namespace llamac

#endif // LLAMAC_TEXT_TOKENIZER_TOKENIZER_H
