//===- Checkpoint.cpp - Opening a model directory or file -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/Checkpoint.h"

#include "frontends/ByteCursor.h"
#include "frontends/CheckpointFormats.h"
#include "frontends/Files.h"
#include "frontends/PulledNames.h"
#include "frontends/gguf/GgufParts.h"
#include "frontends/huggingface/EagleHead.h"
#include "runtime/base/Status.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <filesystem>

namespace llamac {

absl::string_view checkpointFormatName(CheckpointFormat format) {
  static constexpr absl::string_view names[] = {"meta", "huggingface", "gguf"};
  return names[static_cast<size_t>(format)];
}

absl::string_view tokenizerFormatName(TokenizerFormat kind) {
  static constexpr absl::string_view names[] = {
      "none", "tiktoken", "huggingface", "gguf", "sentencepiece"};
  return names[static_cast<size_t>(kind)];
}

absl::StatusOr<std::string> Checkpoint::fingerprint() const {
  std::vector<std::shared_ptr<MappedFile>> files = configFiles;
  files.insert(files.end(), weights.files().begin(), weights.files().end());
  for (const std::string &tokenizerPath : tokenizer.paths) {
    LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                            MappedFile::open(tokenizerPath));
    files.push_back(std::move(file));
  }
  return fingerprintFiles(files);
}

namespace {

// The checkpoint that a path holds. For GGUF `path` is the file; for the others
// the directory, and `config` the configuration file.
struct Detected {
  CheckpointFormat format;
  std::string path;
  std::string config = {};
};

} // namespace

static absl::StatusOr<Detected> detectDirectory(const std::string &path,
                                                bool withWeights) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> shards,
                          listFiles(path, "consolidated.", ".pth"));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> tensors,
                          listFiles(path, "", ".safetensors"));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> ggufs,
                          listFiles(path, "", ".gguf"));
  const bool params = fileExists(joinPath(path, "params.json"));
  const bool config = fileExists(joinPath(path, "config.json"));
  if (params && (!withWeights || !shards.empty()))
    return Detected{CheckpointFormat::Meta, path,
                    joinPath(path, "params.json")};
  bool hasTensors = !withWeights || !tensors.empty();
  if (config && !hasTensors &&
      fileExists(joinPath(path, "pytorch_model.bin"))) {
    LLAMAC_ASSIGN_OR_RETURN(hasTensors, isDraftHead(path));
  }
  if (config && hasTensors)
    return Detected{CheckpointFormat::HuggingFace, path,
                    joinPath(path, "config.json")};
  if (ggufs.size() == 1)
    return Detected{CheckpointFormat::Gguf, joinPath(path, ggufs[0])};
  if (const std::optional<std::string> first = firstPart(ggufs))
    return Detected{CheckpointFormat::Gguf, joinPath(path, *first)};
  return badFileError(absl::StrCat(
      path,
      ": model: expected params.json and consolidated.NN.pth, config.json "
      "and *.safetensors, or one .gguf file or the parts of one, got ",
      params ? "params.json, " : "", config ? "config.json, " : "",
      shards.size(), " consolidated.*.pth, ", tensors.size(),
      " *.safetensors and ", ggufs.size(), " *.gguf"));
}

// The key of the model's width tells the format of a configuration file.
static absl::StatusOr<Detected> detectConfig(const std::string &path,
                                             const MappedFile &file) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          parseJson(path, file.text()));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  const size_t slash = path.rfind('/');
  const std::string directory =
      slash == std::string::npos ? "." : path.substr(0, slash);
  if (root.has("dim"))
    return Detected{CheckpointFormat::Meta, directory, path};
  if (root.has("hidden_size") || isEagleHead(root))
    return Detected{CheckpointFormat::HuggingFace, directory, path};
  return malformed(path, 0, "configuration",
                   "\"dim\" of a params.json or \"hidden_size\" of a "
                   "config.json",
                   "neither");
}

static absl::StatusOr<Detected> detect(const std::string &path,
                                       bool withWeights) {
  if (isDirectory(path))
    return detectDirectory(path, withWeights);
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  if (absl::EndsWith(path, ".gguf") || absl::StartsWith(file->text(), "GGUF"))
    return Detected{CheckpointFormat::Gguf, path};
  if (!withWeights && absl::EndsWith(path, ".json"))
    return detectConfig(path, *file);
  if (absl::EndsWith(path, ".json"))
    return badFileError(absl::StrCat(
        path, ": model: expected a directory or a .gguf file, got one without "
              "weights; llamac compile --no-weights takes it for its shapes"));
  return badFileError(absl::StrCat(
      path, ": model: expected a directory or a .gguf file, got another file"));
}

static absl::StatusOr<Checkpoint>
openAs(absl::string_view given, const OpenOptions &options, bool withWeights) {
  Checkpoint checkpoint;
  LLAMAC_ASSIGN_OR_RETURN(checkpoint.path, modelPath(given));
  LLAMAC_ASSIGN_OR_RETURN(const Detected detected,
                          detect(checkpoint.path, withWeights));
  checkpoint.format = detected.format;
  // "." has no name of its own.
  checkpoint.name = baseName(
      std::filesystem::absolute(detected.path).lexically_normal().native());
  switch (detected.format) {
  case CheckpointFormat::Meta:
    LLAMAC_RETURN_IF_ERROR(readMetaCheckpoint(
        detected.path, detected.config, options, withWeights, checkpoint));
    break;
  case CheckpointFormat::HuggingFace:
    LLAMAC_RETURN_IF_ERROR(readHuggingFaceCheckpoint(
        detected.path, detected.config, options, withWeights, checkpoint));
    break;
  case CheckpointFormat::Gguf:
    LLAMAC_RETURN_IF_ERROR(
        readGgufCheckpoint(detected.path, withWeights, checkpoint));
    break;
  }
  return checkpoint;
}

absl::StatusOr<Checkpoint> openCheckpoint(absl::string_view path,
                                          const OpenOptions &options) {
  return openAs(path, options, /*withWeights=*/true);
}

absl::StatusOr<Checkpoint> openConfig(absl::string_view path,
                                      const OpenOptions &options) {
  return openAs(path, options, /*withWeights=*/false);
}

} // namespace llamac
