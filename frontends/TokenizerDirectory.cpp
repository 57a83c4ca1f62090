//===- TokenizerDirectory.cpp - The tokenizer of a directory --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/Files.h"
#include "frontends/TokenizerSources.h"
#include "runtime/io/ByteCursor.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace llamac {

bool isTiktokenModel(absl::string_view text) {
  return !text.empty() &&
         (absl::ascii_isalnum(static_cast<unsigned char>(text[0])) ||
          text[0] == '+' || text[0] == '/');
}

absl::StatusOr<std::string>
buildTokenizerModelBlob(const NamedText &model,
                        std::optional<uint32_t> vocabSize) {
  if (!isTiktokenModel(model.text))
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

absl::StatusOr<std::optional<std::string>>
buildDirectoryBlob(absl::string_view directory,
                   std::optional<uint32_t> vocabSize) {
  std::vector<std::shared_ptr<MappedFile>> files; // The texts are theirs.
  absl::Status status;
  const auto read = [&](absl::string_view name) -> std::optional<NamedText> {
    const std::string path = joinPath(directory, name);
    if (!fileExists(path) || !status.ok())
      return std::nullopt;
    absl::StatusOr<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
    status.Update(file.status());
    if (!file.ok())
      return std::nullopt;
    files.push_back(*std::move(file));
    return NamedText{files.back()->path(), files.back()->text()};
  };
  const std::optional<NamedText> model = read("tokenizer.model");
  if (const std::optional<NamedText> tokenizer = read("tokenizer.json")) {
    const HuggingFaceFiles all = {
        .tokenizer = *tokenizer,
        .tokenizerConfig = read("tokenizer_config.json"),
        .generationConfig = read("generation_config.json"),
        .chatTemplate = read("chat_template.jinja")};
    LLAMAC_RETURN_IF_ERROR(status);
    absl::StatusOr<std::string> blob = buildHuggingFaceBlob(all);
    const bool otherKind =
        !blob.ok() && exitCode(blob.status()) == ExitCode::Unsupported;
    if (!otherKind || !model)
      return blob;
  }
  LLAMAC_RETURN_IF_ERROR(status);
  if (model)
    return buildTokenizerModelBlob(*model, vocabSize);
  return std::nullopt;
}

} // namespace llamac
