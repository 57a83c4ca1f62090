//===- Repository.cpp - What a repository of models holds -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/models/Repository.h"

#include "frontends/Files.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/JsonReader.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <map>
#include <set>

namespace llamac {

//===----------------------------------------------------------------------===//
// The listing
//===----------------------------------------------------------------------===//

static bool isHex(absl::string_view text, size_t digits) {
  return text.size() == digits && std::ranges::all_of(text, [](char c) {
           return absl::ascii_isxdigit(static_cast<unsigned char>(c));
         });
}

/// Whether a file of this name stays within its folder.
static bool staysInside(absl::string_view name) {
  for (const absl::string_view part : absl::StrSplit(name, '/'))
    if (part.empty() || part == "." || part == ".." || part.size() > 200)
      return false;
  return name.size() <= 1000 && !absl::StrContains(name, '\\') &&
         printable(name) == name;
}

absl::StatusOr<RepositoryListing> parseListing(const RepositoryName &name,
                                               absl::string_view text) {
  const std::string file = absl::StrCat("listing of ", name.repository);
  LLAMAC_ASSIGN_OR_RETURN(
      const JsonDocument document,
      parseJson(file, text, {.maxBytes = uint64_t{64} << 20}));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  RepositoryListing listing;
  LLAMAC_ASSIGN_OR_RETURN(const auto commit, root.optionalString("sha"));
  listing.commit = commit.value_or("");
  if (!isHex(listing.commit, 40))
    return root.fail("sha", "a commit of 40 hexadecimal digits",
                     quoteForMessage(listing.commit));
  LLAMAC_ASSIGN_OR_RETURN(const auto siblings, root.objects("siblings"));
  std::set<std::string> names;
  for (const JsonObject &entry : siblings) {
    LLAMAC_ASSIGN_OR_RETURN(const auto path, entry.optionalString("rfilename"));
    if (!path || !staysInside(*path) || !names.insert(*path).second)
      return entry.fail("rfilename", "the name of another file in a folder",
                        quoteForMessage(path.value_or("")));
    // A large file's blob is a pointer alone.
    LLAMAC_ASSIGN_OR_RETURN(const auto large, entry.optionalObject("lfs"));
    const JsonObject &of = large ? *large : entry;
    LLAMAC_ASSIGN_OR_RETURN(const auto size, of.optionalInt("size"));
    LLAMAC_ASSIGN_OR_RETURN(const auto hash,
                            of.optionalString(large ? "sha256" : "blobId"));
    PulledFile &listed = listing.files.emplace_back();
    listed.name = *path;
    listed.size = static_cast<uint64_t>(std::max<int64_t>(size.value_or(0), 0));
    (large ? listed.sha256 : listed.gitSha1) =
        absl::AsciiStrToLower(hash.value_or(""));
    if (!isHex(listed.sha256, 64) && !isHex(listed.gitSha1, 40))
      return entry.fail(large ? "lfs" : "blobId",
                        absl::StrCat("a checksum of ", *path), "none");
  }
  return listing;
}

//===----------------------------------------------------------------------===//
// The model's files
//===----------------------------------------------------------------------===//

namespace {

/// Gathers files of a listing.
struct Choice {
  const RepositoryListing &listing;
  std::vector<ChosenFile> files = {};

  bool has(absl::string_view path) const {
    return std::ranges::find(listing.files, path, &PulledFile::name) !=
           listing.files.end();
  }

  /// Adds the files in the folder `folder`, empty or with a slash behind it,
  /// whose other names `isWanted` takes.
  bool add(absl::string_view folder, bool isWeights, auto isWanted) {
    const size_t before = files.size();
    for (const PulledFile &file : listing.files) {
      absl::string_view name = file.name;
      if (!absl::ConsumePrefix(&name, folder) || !isWanted(name))
        continue;
      files.push_back({file.name, file, isWeights});
      files.back().stored.name = std::string(name);
    }
    return files.size() > before;
  }

  /// Adds what goes with the weights of Hugging Face and Meta.
  void addCompanions(absl::string_view folder) {
    static const std::set<absl::string_view> names = {
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "hf_quant_config.json",
        "params.json",
        "tokenizer.json",
        "tokenizer.model",
        "tokenizer_config.json",
        "model.safetensors.index.json"};
    add(folder, /*isWeights=*/false, [](absl::string_view name) {
      absl::string_view other = name;
      return names.contains(name) ||
             (absl::ConsumePrefix(&other, "additional_chat_templates/") &&
              isNamePart(other) && absl::EndsWith(other, ".jinja"));
    });
  }
};

} // namespace

/// Whether `name` is that of a file with this beginning and end.
static auto named(absl::string_view prefix, absl::string_view suffix) {
  return [=](absl::string_view name) {
    return isNamePart(name) && absl::StartsWith(name, prefix) &&
           absl::EndsWith(name, suffix);
  };
}

/// Adds a model of Hugging Face's form, where there is one: of a repository
/// that has its weights more than once, those that its own library reads.
static bool addHuggingFace(Choice &choice) {
  if (!choice.has("config.json"))
    return false;
  const auto is = [](absl::string_view only) { return named(only, only); };
  if (!choice.add("", true, is("model.safetensors")) &&
      !choice.add("", true, named("model-", ".safetensors")) &&
      !choice.add("", true, named("", ".safetensors")) &&
      !choice.add("", true, is("pytorch_model.bin")))
    return false;
  choice.addCompanions("");
  return true;
}

static bool addMeta(Choice &choice) {
  for (const absl::string_view folder : {"", "original/"})
    if (choice.has(absl::StrCat(folder, "params.json")) &&
        choice.add(folder, true, named("consolidated.", ".pth"))) {
      choice.addCompanions(folder);
      return true;
    }
  return false;
}

/// The .gguf files of each model in `listing`, by what they are called but for
/// the numbers of parts. Projectors of images and statistics are no models.
static std::map<std::string, std::vector<PulledFile>>
ggufModels(const RepositoryListing &listing) {
  std::map<std::string, std::vector<PulledFile>> models;
  for (const PulledFile &file : listing.files)
    if (const std::string name = baseName(file.name);
        isNamePart(name) && absl::EndsWithIgnoreCase(name, ".gguf") &&
        !absl::StartsWith(name, "mmproj") &&
        !absl::StrContains(name, "imatrix"))
      models[ggufStem(name)].push_back(file);
  return models;
}

/// The part of `stem` behind its last "-" or ".": "Q4_K_M".
static std::string tagOf(absl::string_view stem) {
  return absl::AsciiStrToUpper(stem.substr(stem.find_last_of("-.") + 1));
}

absl::StatusOr<ChosenFiles> chooseFiles(const RepositoryName &name,
                                        const RepositoryListing &listing) {
  Choice choice{listing};
  ChosenFiles chosen = {name};
  if (!name.file.empty() || (!addHuggingFace(choice) && !addMeta(choice))) {
    const auto models = ggufModels(listing);
    std::vector<std::string> all, meant;
    std::map<std::string, int> tags;
    for (const auto &[stem, files] : models)
      ++tags[tagOf(stem)];
    // The shortest name that no other model of the repository has.
    const auto shortName = [&](const std::string &stem) {
      return tags[tagOf(stem)] == 1 && isNamePart(tagOf(stem)) ? tagOf(stem)
                                                               : stem + ".gguf";
    };
    for (const auto &[stem, files] : models) {
      all.push_back(shortName(stem));
      if (name.file.empty() ||
          std::ranges::any_of(files, [&](const PulledFile &file) {
            return meansGguf(name.file, file.name);
          }))
        meant.push_back(stem);
    }
    if (all.empty())
      return badFileError(absl::StrCat(
          name.text(), ": expected config.json and *.safetensors, params.json "
                       "and consolidated.NN.pth, or *.gguf in the repository, "
                       "got none of them"));
    if (meant.size() != 1)
      return usageError(absl::StrCat(
          name.text(), ": expected one of the repository's .gguf files, as ",
          RepositoryName{name.repository, name.revision, all[0]}.text(),
          ", got ", meant.empty() ? "none" : "several", "; it has ",
          absl::StrJoin(all, ", ")));
    for (const PulledFile &file : models.at(meant[0])) {
      choice.files.push_back({file.name, file, /*isWeights=*/true});
      choice.files.back().stored.name = baseName(file.name);
    }
    if (!name.file.empty())
      chosen.name.file = shortName(meant[0]);
  }
  std::ranges::sort(choice.files, {}, [](const ChosenFile &file) {
    return std::pair(file.isWeights, file.path);
  });
  std::set<std::string> names;
  for (const ChosenFile &file : choice.files)
    if (!names.insert(file.stored.name).second)
      return badFileError(absl::StrCat(
          name.text(), ": expected files of different names, got two of ",
          file.stored.name));
  chosen.files = std::move(choice.files);
  return chosen;
}

} // namespace llamac
