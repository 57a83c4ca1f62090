//===- PulledNames.cpp - Names of pulled models ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/PulledNames.h"

#include "frontends/Files.h"
#include "runtime/base/Status.h"
#include "runtime/base/Suggestion.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace llamac {

namespace fs = std::filesystem;

absl::StatusOr<std::string> modelsFolder() {
  if (const char *models = std::getenv("LLAMAC_MODELS"); models && *models)
    return std::string(absl::StripSuffix(models, "/"));
  if (const char *data = std::getenv("XDG_DATA_HOME"); data && *data)
    return absl::StrCat(data, "/llamac/models");
  if (const char *home = std::getenv("HOME"); home && *home)
    return absl::StrCat(home, "/.local/share/llamac/models");
  return usageError(
      "no folder for models: set LLAMAC_MODELS, XDG_DATA_HOME or HOME");
}

bool isNamePart(absl::string_view text) {
  return !text.empty() && text.size() <= 200 && text[0] != '.' &&
         text[0] != '-' && std::ranges::all_of(text, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  absl::StrContains("._-", c);
         });
}

std::optional<RepositoryName> RepositoryName::parse(absl::string_view text) {
  const std::vector<std::string> file =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  const std::vector<std::string> revision =
      absl::StrSplit(file[0], absl::MaxSplits('@', 1));
  std::vector<absl::string_view> parts = absl::StrSplit(revision[0], '/');
  if (parts.size() != 2)
    return std::nullopt;
  parts.insert(parts.end(), revision.begin() + 1, revision.end());
  if (file.size() == 2)
    for (absl::string_view part : absl::StrSplit(file[1], '/'))
      parts.push_back(part);
  if (!std::ranges::all_of(parts, isNamePart))
    return std::nullopt;
  return RepositoryName{revision[0], revision.size() == 2 ? revision[1] : "",
                        file.size() == 2 ? file[1] : ""};
}

std::string RepositoryName::text() const {
  return absl::StrCat(repository, revision.empty() ? "" : "@", revision,
                      file.empty() ? "" : ":", file);
}

std::string ggufStem(absl::string_view file) {
  std::string stem = baseName(file);
  stem.resize(stem.size() - (absl::EndsWithIgnoreCase(stem, ".gguf") ? 5 : 0));
  const auto isNumber = [](absl::string_view text) {
    return text.size() == 5 && std::ranges::all_of(text, [](char c) {
             return absl::ascii_isdigit(static_cast<unsigned char>(c));
           });
  };
  // "-00001-of-00003"
  const absl::string_view text = stem;
  if (const size_t size = text.size(); size > 15 && text[size - 15] == '-' &&
                                       isNumber(text.substr(size - 14, 5)) &&
                                       text.substr(size - 9, 4) == "-of-" &&
                                       isNumber(text.substr(size - 5)))
    stem.resize(size - 15);
  return stem;
}

bool meansGguf(absl::string_view asked, absl::string_view file) {
  const std::string stem = ggufStem(file);
  return absl::EqualsIgnoreCase(asked, file) ||
         absl::EqualsIgnoreCase(asked, baseName(file)) ||
         absl::EqualsIgnoreCase(asked, stem) ||
         absl::EndsWithIgnoreCase(stem, absl::StrCat("-", asked)) ||
         absl::EndsWithIgnoreCase(stem, absl::StrCat(".", asked));
}

static bool isPulled(const std::string &folder) {
  return fileExists(joinPath(folder, pulledManifest));
}

/// The names in `folder` that may be parts of a pulled model's.
static std::vector<std::string> namesIn(const std::string &folder) {
  auto names = listFiles(folder, "", "").value_or(std::vector<std::string>());
  std::erase_if(names, [](const std::string &name) { return name[0] == '.'; });
  return names;
}

std::vector<std::string> pulledNames() {
  std::vector<std::string> names;
  const std::string folder = modelsFolder().value_or("");
  for (const std::string &owner : namesIn(folder)) {
    if (isPulled(joinPath(folder, owner)))
      names.push_back(owner);
    else
      for (const std::string &model : namesIn(joinPath(folder, owner)))
        if (isPulled(absl::StrCat(folder, "/", owner, "/", model)))
          names.push_back(absl::StrCat(owner, "/", model));
  }
  return names;
}

std::optional<std::string> findPulled(absl::string_view name) {
  const auto folder = modelsFolder();
  auto asked = RepositoryName::parse(name);
  if (!folder.ok() || (!asked && !isNamePart(name)))
    return std::nullopt;
  if (std::string path = joinPath(*folder, name); isPulled(path))
    return path;
  if (!asked || asked->file.empty())
    return std::nullopt;
  // The file may have been pulled by another of its names.
  const std::string file = std::exchange(asked->file, "");
  for (const std::string &other : pulledNames()) {
    std::string path = joinPath(*folder, other);
    if (absl::StartsWith(other, asked->text() + ":") &&
        std::ranges::any_of(namesIn(path), [&](const std::string &gguf) {
          return meansGguf(file, gguf);
        }))
      return path;
  }
  return std::nullopt;
}

absl::StatusOr<std::string> modelPath(absl::string_view given) {
  std::string path(given);
  std::error_code error;
  if (fs::exists(path, error))
    return path;
  if (const auto pulled = findPulled(given))
    return *pulled;
  // Names of files are no names of repositories.
  const std::string extension = fs::path(path).extension();
  const bool isRepository = RepositoryName::parse(given).has_value();
  if ((!isRepository && !isNamePart(given)) || extension == ".gguf" ||
      extension == ".json" || extension == ".plan")
    return path;
  return badFileError(absl::StrCat(
      given,
      ": expected a path or the name of a pulled model, got neither; llamac ",
      isRepository ? absl::StrCat("pull ", given, " fetches it")
                   : "list has the names, and llamac pull OWNER/MODEL fetches "
                     "one",
      suggestion(given, pulledNames())));
}

} // namespace llamac
