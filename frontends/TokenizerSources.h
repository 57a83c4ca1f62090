//===- TokenizerSources.h - Blobs from checkpoint formats -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the tokenizer files of the checkpoint formats, each of which may be
// hostile, and writes the blob a plan carries. Errors are bad files, in the
// form `file:offset: field: expected ..., got ...`, or name what is not
// supported.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_TOKENIZERSOURCES_H
#define LLAMAC_FRONTENDS_TOKENIZERSOURCES_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

class GgufMetadata;
class GgufReader;
struct Checkpoint;

/// The contents of a file, and its name for messages.
struct NamedText {
  absl::string_view file;
  absl::string_view text;
};

/// Chat templates by their names.
using ChatTemplates = std::map<std::string, std::string>;

/// Where a model directory has them.
struct ChatTemplateFiles {
  /// tokenizer_config.json: chat_template, one text or a list of named ones.
  std::optional<NamedText> tokenizerConfig;
  /// Files that take the place of these, by the templates' names:
  /// chat_template.jinja is "default", additional_chat_templates/NAME.jinja
  /// NAME.
  std::map<std::string, NamedText> files = {};
};
absl::StatusOr<ChatTemplates> readChatTemplates(const ChatTemplateFiles &from);

/// The number of special tokens that follow Llama 3's ranks.
inline constexpr uint32_t llama3SpecialTokens = 256;

/// tiktoken's tokenizer.model: lines "base64 rank", ranks 0 to n - 1, followed
/// in the vocabulary by `numSpecial` special tokens with Llama 3.1's names.
absl::StatusOr<std::string>
buildTiktokenBlob(const NamedText &model,
                  uint32_t numSpecial = llama3SpecialTokens,
                  const ChatTemplates &templates = {});

/// SentencePiece's tokenizer.model, as Llama 2 has it; begin-of-sequence goes
/// first.
absl::StatusOr<std::string>
buildSentencePieceBlob(const NamedText &model,
                       const ChatTemplates &templates = {});

/// Whether a tokenizer.model is tiktoken's, whose files start with base64; a
/// SentencePiece model starts with the tag of its first field, a line feed.
bool isTiktokenModel(absl::string_view text);

/// Meta's tokenizer.model, of either kind. `vocabSize` is the model's, when
/// known: it decides the number of special tokens of a tiktoken file.
absl::StatusOr<std::string>
buildTokenizerModelBlob(const NamedText &model,
                        std::optional<uint32_t> vocabSize = std::nullopt,
                        const ChatTemplates &templates = {});

/// A Hugging Face tokenizer: byte-level BPE with the pre-tokenizers of
/// PreTokenizerExpressions.h, or BPE of characters with bytes as a fallback.
struct HuggingFaceFiles {
  NamedText tokenizer; ///< tokenizer.json
  /// tokenizer_config.json: bos_token, eos_token, add_bos_token.
  std::optional<NamedText> tokenizerConfig;
  /// generation_config.json: eos_token_id, one or several; bos_token_id.
  std::optional<NamedText> generationConfig;
  ChatTemplates chatTemplates = {};
};
absl::StatusOr<std::string> buildHuggingFaceBlob(const HuggingFaceFiles &files);

/// The largest id of the added tokens of a tokenizer.json of any kind, -1
/// without any.
absl::StatusOr<int64_t> largestAddedToken(const NamedText &tokenizer);

/// The tokenizer of GGUF metadata; the names are those of the keys behind
/// "tokenizer.ggml.". Tokens and merges view the file.
struct GgufVocabulary {
  absl::string_view file; ///< For messages.
  /// The whole file, when tokens and merges lie in it: for offsets.
  absl::string_view contents;
  absl::string_view name;  ///< general.name, of the model.
  absl::string_view model; ///< "gpt2" or "llama".
  absl::string_view pre;   ///< "llama-bpe", "llama3", "smollm", "gpt-2", ..
  std::vector<absl::string_view> tokens;
  std::vector<int64_t> types; ///< token_type; may be empty.
  std::vector<absl::string_view> merges;
  std::vector<float> scores;
  std::optional<int64_t> bosId;
  std::optional<int64_t> eosId;
  std::optional<int64_t> eotId;
  std::optional<int64_t> eomId;
  std::optional<int64_t> unknownId;
  /// Ids of tokens of filling in the middle, by the key less "_token_id".
  std::map<std::string, int64_t> roleIds;
  std::optional<bool> addBos;
  std::optional<bool> addSpacePrefix;
  /// Templates by name: tokenizer.chat_template is "default",
  /// tokenizer.chat_template.NAME NAME.
  std::map<std::string, absl::string_view> chatTemplates;
};
absl::StatusOr<std::string> buildGgufBlob(const GgufVocabulary &vocabulary);

/// The blob from the metadata of a GGUF file.
absl::StatusOr<std::string> buildGgufBlob(const GgufReader &reader);

/// Adds the tokenizer of `checkpoint`, whose blob is `bytes`, with tokens that
/// never occur up to the size of the embedding. Warns of what GGUF cannot say.
/// Unsupported: a tokenizer that would give other ids.
absl::Status addGgufTokenizer(const Checkpoint &checkpoint,
                              const std::string &bytes, GgufMetadata &metadata);

/// Writes the byte-level vocabulary in the metadata of `reader` as
/// tokenizer.json and tokenizer_config.json into `directory`; they read back
/// as the same tokenizer. Errors: what buildGgufBlob finds wrong with it;
/// unsupported for a vocabulary of another kind than "gpt2".
absl::Status writeHuggingFaceTokenizer(const GgufReader &reader,
                                       const std::string &directory);

/// The tokenizer of a model directory: tokenizer.json with its companions, or
/// tokenizer.model where there is no tokenizer.json or it is of a kind that is
/// not supported and adds no tokens to those of tokenizer.model. Nothing when
/// the directory holds neither.
absl::StatusOr<std::optional<std::string>>
buildDirectoryBlob(absl::string_view directory,
                   std::optional<uint32_t> vocabSize = std::nullopt);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_TOKENIZERSOURCES_H
