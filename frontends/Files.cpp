//===- Files.cpp - Small helpers over files and directories ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/Files.h"

#include "frontends/ByteCursor.h"
#include "frontends/CheckpointFormats.h"
#include "frontends/TokenizerSources.h"
#include "runtime/base/Status.h"
#include "text/tokenizer/TokenizerBlob.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace llamac {

namespace fs = std::filesystem;

std::string joinPath(absl::string_view directory, absl::string_view name) {
  return absl::StrCat(absl::StripSuffix(directory, "/"), "/", name);
}

bool fileExists(const std::string &path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool isDirectory(const std::string &path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

absl::StatusOr<std::vector<std::string>> listFiles(const std::string &directory,
                                                   absl::string_view prefix,
                                                   absl::string_view suffix) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (absl::StartsWith(name, prefix) && absl::EndsWith(name, suffix) &&
        name.size() >= prefix.size() + suffix.size())
      names.push_back(name);
  }
  if (error)
    return badFileError(
        absl::StrCat(directory, ": cannot be listed: ", error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

std::string baseName(absl::string_view path) {
  while (absl::ConsumeSuffix(&path, "/")) {
  }
  const size_t slash = path.rfind('/');
  return std::string(slash == absl::string_view::npos ? path
                                                      : path.substr(slash + 1));
}

absl::StatusOr<JsonDocument> readConfigFile(const std::string &path,
                                            Checkpoint &checkpoint) {
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  LLAMAC_ASSIGN_OR_RETURN(JsonDocument document, parseJson(path, file->text()));
  checkpoint.configFiles.push_back(std::move(file));
  return document;
}

absl::Status readGenerationConfig(const std::string &directory,
                                  Checkpoint &checkpoint) {
  const std::string path = joinPath(directory, "generation_config.json");
  if (!fileExists(path))
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          readConfigFile(path, checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  GenerationDefaults &generation = checkpoint.generation;
  ConfigFields fields(root);
  generation.temperature = fields.number("temperature");
  generation.topP = fields.number("top_p");
  generation.topK = fields.integer("top_k");
  const double temperature = generation.temperature.value_or(0);
  const double topP = generation.topP.value_or(1);
  const int64_t topK = generation.topK.value_or(0);
  fields.require(temperature >= 0, "temperature", "a number of at least 0",
                 temperature);
  fields.require(topP > 0 && topP <= 1, "top_p", "a number in (0, 1]", topP);
  fields.require(topK >= 0, "top_k", "an integer of at least 0", topK);
  if (fields.flag("do_sample") == false)
    generation.temperature = 0.0;
  LLAMAC_RETURN_IF_ERROR(fields.status());
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int64_t> stops,
                          root.intOrInts("eos_token_id"));
  if (!stops.empty())
    checkpoint.tokenizer.stopIds = stops;
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int64_t> bos,
                          root.intOrInts("bos_token_id"));
  if (bos.size() == 1)
    checkpoint.tokenizer.bos = bos[0];
  return absl::OkStatus();
}

std::string jsonForMessage(const nlohmann::json &value) {
  return quoteForMessage(
      value.is_string() ? value.get_ref<const std::string &>()
                        : value.dump(-1, ' ', true,
                                     nlohmann::json::error_handler_t::replace));
}

// The files of chat templates in `directory`, by the templates' names.
static std::map<std::string, std::string>
chatTemplateFiles(absl::string_view directory) {
  std::map<std::string, std::string> files;
  const std::string path = joinPath(directory, "chat_template.jinja");
  if (fileExists(path))
    files.emplace(defaultChatTemplate, path);
  std::error_code error; // No such directory: no such templates.
  for (fs::directory_iterator
           entry(joinPath(directory, "additional_chat_templates"), error),
       end;
       !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".jinja")
      files.insert_or_assign(entry->path().stem().string(),
                             entry->path().string());
  return files;
}

absl::Status findTokenizer(const std::string &directory,
                           Checkpoint &checkpoint) {
  TokenizerSource &tokenizer = checkpoint.tokenizer;
  const std::string model = joinPath(directory, "tokenizer.model");
  const std::string json = joinPath(directory, "tokenizer.json");
  const bool preferJson = checkpoint.format == CheckpointFormat::HuggingFace;
  if (fileExists(json) && (preferJson || !fileExists(model))) {
    tokenizer.kind = TokenizerFormat::HuggingFace;
    tokenizer.paths.push_back(json);
  } else if (fileExists(model)) {
    LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file,
                            MappedFile::open(model));
    tokenizer.kind = isTiktokenModel(file->text())
                         ? TokenizerFormat::Tiktoken
                         : TokenizerFormat::SentencePiece;
    tokenizer.paths.push_back(model);
  }
  const std::string config = joinPath(directory, "tokenizer_config.json");
  if (tokenizer.kind == TokenizerFormat::None)
    return absl::OkStatus();
  if (fileExists(config))
    tokenizer.paths.push_back(config);
  for (const auto &[name, path] : chatTemplateFiles(directory))
    tokenizer.paths.push_back(path);
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>>
buildDirectoryBlob(absl::string_view directory,
                   std::optional<uint32_t> vocabSize) {
  std::vector<std::shared_ptr<MappedFile>> files; // The texts are theirs.
  absl::Status status;
  const auto readPath =
      [&](const std::string &path) -> std::optional<NamedText> {
    if (!fileExists(path) || !status.ok())
      return std::nullopt;
    absl::StatusOr<std::shared_ptr<MappedFile>> file = MappedFile::open(path);
    status.Update(file.status());
    if (!file.ok())
      return std::nullopt;
    files.push_back(*std::move(file));
    return NamedText{files.back()->path(), files.back()->text()};
  };
  const auto read = [&](absl::string_view name) {
    return readPath(joinPath(directory, name));
  };
  const std::optional<NamedText> model = read("tokenizer.model"),
                                 tokenizer = read("tokenizer.json"),
                                 config = read("tokenizer_config.json");
  ChatTemplateFiles templateFiles = {.tokenizerConfig = config};
  for (const auto &[name, path] : chatTemplateFiles(directory))
    if (const std::optional<NamedText> text = readPath(path))
      templateFiles.files.emplace(name, *text);
  LLAMAC_RETURN_IF_ERROR(status);
  if (!model && !tokenizer)
    return std::nullopt;
  LLAMAC_ASSIGN_OR_RETURN(const ChatTemplates templates,
                          readChatTemplates(templateFiles));
  if (tokenizer) {
    const std::optional<NamedText> generation = read("generation_config.json");
    LLAMAC_RETURN_IF_ERROR(status);
    absl::StatusOr<std::string> blob =
        buildHuggingFaceBlob({.tokenizer = *tokenizer,
                              .tokenizerConfig = config,
                              .generationConfig = generation,
                              .chatTemplates = templates});
    const bool otherKind =
        !blob.ok() && exitCode(blob.status()) == ExitCode::Unsupported;
    if (!otherKind || !model)
      return blob;
    LLAMAC_ASSIGN_OR_RETURN(
        std::string modelBlob,
        buildTokenizerModelBlob(*model, vocabSize, templates));
    LLAMAC_ASSIGN_OR_RETURN(const TokenizerBlob parsed,
                            TokenizerBlob::parse(modelBlob));
    LLAMAC_ASSIGN_OR_RETURN(const int64_t largest,
                            largestAddedToken(*tokenizer));
    if (largest >= static_cast<int64_t>(parsed.vocabSize()))
      return blob; // Names of turns would be nothing but text.
    return modelBlob;
  }
  return buildTokenizerModelBlob(*model, vocabSize, templates);
}

} // namespace llamac
