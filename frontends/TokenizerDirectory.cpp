//===- TokenizerDirectory.cpp - The tokenizer of a directory --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteCursor.h"
#include "frontends/TokenizerSources.h"
#include "runtime/io/MappedFile.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include <filesystem>
#include <memory>

namespace llamac {

absl::StatusOr<std::string>
buildTokenizerModelBlob(const NamedText &model,
                        std::optional<uint32_t> vocabSize) {
  // A tiktoken file starts with base64, a SentencePiece model with the tag of
  // its first field, a line feed.
  const bool isText =
      !model.text.empty() &&
      (absl::ascii_isalnum(static_cast<unsigned char>(model.text[0])) ||
       model.text[0] == '+' || model.text[0] == '/');
  if (!isText)
    return buildSentencePieceBlob(model);
  if (!vocabSize)
    return buildTiktokenBlob(model);
  // Every line but empty ones is a rank: what the model has beyond them are
  // special tokens.
  uint64_t ranks = 0;
  for (absl::string_view line : absl::StrSplit(model.text, '\n'))
    if (!line.empty() && line != "\r")
      ++ranks;
  if (ranks > *vocabSize)
    return malformed(
        model.file, 0, "ranks",
        absl::StrCat("at most the model's vocabulary of ", *vocabSize), ranks);
  return buildTiktokenBlob(model, static_cast<uint32_t>(*vocabSize - ranks));
}

namespace {

/// A file of the directory that may be missing.
class OptionalFile {
public:
  static absl::StatusOr<OptionalFile> open(const std::filesystem::path &path) {
    OptionalFile out;
    std::error_code error;
    if (std::filesystem::exists(path, error)) {
      LLAMAC_ASSIGN_OR_RETURN(out.mapped, MappedFile::open(path.string()));
    }
    return out;
  }
  std::optional<NamedText> text() const {
    if (!mapped)
      return std::nullopt;
    return NamedText{mapped->path(), mapped->text()};
  }

private:
  std::shared_ptr<MappedFile> mapped;
};

} // namespace

absl::StatusOr<std::optional<std::string>>
buildDirectoryBlob(absl::string_view directory,
                   std::optional<uint32_t> vocabSize) {
  const std::filesystem::path root{std::string(directory)};
  LLAMAC_ASSIGN_OR_RETURN(const OptionalFile tokenizer,
                          OptionalFile::open(root / "tokenizer.json"));
  LLAMAC_ASSIGN_OR_RETURN(const OptionalFile model,
                          OptionalFile::open(root / "tokenizer.model"));
  const std::optional<NamedText> tokenizerText = tokenizer.text();
  const std::optional<NamedText> modelText = model.text();
  if (tokenizerText) {
    LLAMAC_ASSIGN_OR_RETURN(const OptionalFile config,
                            OptionalFile::open(root / "tokenizer_config.json"));
    LLAMAC_ASSIGN_OR_RETURN(
        const OptionalFile generation,
        OptionalFile::open(root / "generation_config.json"));
    LLAMAC_ASSIGN_OR_RETURN(const OptionalFile chat,
                            OptionalFile::open(root / "chat_template.jinja"));
    absl::StatusOr<std::string> blob =
        buildHuggingFaceBlob({.tokenizer = *tokenizerText,
                              .tokenizerConfig = config.text(),
                              .generationConfig = generation.text(),
                              .chatTemplate = chat.text()});
    const bool otherKind =
        !blob.ok() && exitCode(blob.status()) == ExitCode::Unsupported;
    if (!otherKind || !modelText)
      return blob;
  }
  if (modelText)
    return buildTokenizerModelBlob(*modelText, vocabSize);
  return std::nullopt;
}

} // namespace llamac
