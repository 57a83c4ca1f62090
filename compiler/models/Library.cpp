//===- Library.cpp - The pulled models ------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/models/Library.h"

#include "frontends/Files.h"
#include "frontends/PulledNames.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Suggestion.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/JsonReader.h"
#include "runtime/io/JsonText.h"
#include "runtime/io/MappedFile.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <filesystem>

namespace llamac {

namespace fs = std::filesystem;

uint64_t PulledModel::bytes() const {
  uint64_t bytes = 0;
  for (const PulledFile &file : files)
    bytes += file.size;
  return bytes;
}

std::string PulledModel::describeSize() const {
  return absl::StrCat(formatBytes(bytes()), " in ", files.size(),
                      files.size() == 1 ? " file" : " files");
}

absl::string_view PulledModel::format() const {
  if (std::ranges::any_of(files, [](const PulledFile &file) {
        return absl::EndsWithIgnoreCase(file.name, ".gguf");
      }))
    return "gguf";
  return std::ranges::find(files, "params.json", &PulledFile::name) !=
                 files.end()
             ? "meta"
             : "huggingface";
}

absl::StatusOr<PulledModel> readManifest(const std::string &folder) {
  LLAMAC_ASSIGN_OR_RETURN(const auto file,
                          MappedFile::open(joinPath(folder, pulledManifest)));
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          parseJson(file->path(), file->text()));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  absl::Status status;
  const auto text = [&](const JsonObject &of, absl::string_view key) {
    auto value = of.optionalString(key);
    status.Update(value.status());
    return value.ok() ? value->value_or("") : "";
  };
  PulledModel model;
  model.name = text(root, "name");
  model.source = text(root, "source");
  model.revision = text(root, "revision");
  LLAMAC_ASSIGN_OR_RETURN(model.pulled, root.requiredInt("pulled"));
  LLAMAC_ASSIGN_OR_RETURN(const auto files, root.objects("files"));
  for (const JsonObject &of : files) {
    LLAMAC_ASSIGN_OR_RETURN(const int64_t size, of.requiredInt("size"));
    model.files.push_back({text(of, "name"), static_cast<uint64_t>(size),
                           text(of, "sha256"), text(of, "git_sha1"),
                           text(of, "etag")});
  }
  LLAMAC_RETURN_IF_ERROR(status);
  return model;
}

absl::Status writeManifest(const PulledModel &model,
                           const std::string &folder) {
  nlohmann::ordered_json json = {{"name", model.name},
                                 {"source", model.source},
                                 {"revision", model.revision},
                                 {"pulled", model.pulled},
                                 {"files", nlohmann::ordered_json::array()}};
  for (const PulledFile &file : model.files)
    json["files"].push_back({{"name", file.name},
                             {"size", file.size},
                             {"sha256", file.sha256},
                             {"git_sha1", file.gitSha1},
                             {"etag", file.etag}});
  return writeFileAtomically(joinPath(folder, pulledManifest),
                             jsonText(json, 2) + "\n");
}

absl::StatusOr<std::vector<PulledModel>> pulledModels() {
  LLAMAC_ASSIGN_OR_RETURN(const std::string folder, modelsFolder());
  std::vector<PulledModel> models;
  for (const std::string &name : pulledNames()) {
    LLAMAC_ASSIGN_OR_RETURN(PulledModel model,
                            readManifest(joinPath(folder, name)));
    model.name = name;
    models.push_back(std::move(model));
  }
  return models;
}

absl::StatusOr<std::string> partialFolder(absl::string_view name) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string folder, modelsFolder());
  return absl::StrCat(folder, "/.partial/", name);
}

void removeEmptyAbove(const std::string &folder) {
  const std::string models = modelsFolder().value_or("");
  std::error_code error;
  for (fs::path above = fs::path(folder).parent_path();
       above.native().size() > models.size(); above = above.parent_path())
    if (!fs::remove(above, error))
      return;
}

absl::Status removeModelFolder(const std::string &folder) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string models, modelsFolder());
  std::error_code error;
  const fs::path all = fs::canonical(models, error);
  const fs::path real = fs::canonical(folder, error);
  if (!error && !absl::StartsWith(real.native(), all.native() + "/"))
    return usageError(absl::StrCat(folder, ": expected a folder within ",
                                   models, ", got a link to ", real.native()));
  // Without it the rest is no model, should this end halfway.
  fs::remove(joinPath(folder, pulledManifest), error);
  if (!error)
    fs::remove_all(folder, error);
  if (error)
    return usageError(
        absl::StrCat(folder, ": cannot be removed: ", error.message()));
  removeEmptyAbove(folder);
  return absl::OkStatus();
}

static uint64_t bytesIn(const std::string &folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error))
    if (std::error_code none; entry->is_regular_file(none))
      bytes += entry->file_size(none);
  return bytes;
}

absl::StatusOr<RemovedModel> removePulled(const std::string &name) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string models, modelsFolder());
  LLAMAC_ASSIGN_OR_RETURN(const std::string partial, partialFolder(name));
  const std::optional<std::string> whole = findPulled(name);
  const bool isName = RepositoryName::parse(name) || isNamePart(name);
  std::vector<std::string> folders;
  if (whole)
    folders.push_back(*whole);
  if (isName && fileExists(joinPath(partial, pulledManifest)))
    folders.push_back(partial);
  if (folders.empty())
    return badFileError(
        absl::StrCat(name,
                     ": expected the name of a pulled model, as llamac "
                     "list shows them, got another",
                     suggestion(name, pulledNames())));
  RemovedModel removed = {whole ? whole->substr(models.size() + 1) : name};
  for (const std::string &folder : folders) {
    removed.bytes += bytesIn(folder);
    LLAMAC_RETURN_IF_ERROR(removeModelFolder(folder));
  }
  return removed;
}

} // namespace llamac
