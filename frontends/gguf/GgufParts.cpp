//===- GgufParts.cpp - A model in one or several GGUF files ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/GgufParts.h"

#include "frontends/ByteCursor.h"
#include "frontends/CheckpointFormats.h"
#include "frontends/Files.h"
#include "frontends/gguf/GgufKeys.h"
#include "runtime/base/Status.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include <algorithm>

namespace llamac {

static constexpr absl::string_view numberKey = "split.no";
static constexpr absl::string_view countKey = "split.count";
static constexpr absl::string_view tensorsKey = "split.tensors.count";

// The end of the name of part `number`, counted from 0.
static std::string partSuffix(int64_t number, int64_t count) {
  return absl::StrFormat("-%05d-of-%05d.gguf", number + 1, count);
}

namespace {

// A file's own account of its place.
struct PartInfo {
  int64_t number = 0;
  int64_t count = 1;
  std::optional<int64_t> tensors;
};

} // namespace

static absl::StatusOr<PartInfo> readInfo(const GgufReader &gguf) {
  ConfigFields fields(gguf);
  PartInfo info;
  info.number = fields.integer(numberKey).value_or(0);
  info.count = std::max<int64_t>(1, fields.integer(countKey).value_or(1));
  info.tensors = fields.integer(tensorsKey);
  constexpr int64_t mostParts = 65535;
  fields.require(info.count <= mostParts, countKey,
                 absl::StrCat("at most ", mostParts, " files"), info.count);
  fields.require(info.number >= 0 && info.number < info.count, numberKey,
                 absl::StrCat("0 to ", info.count - 1), info.number);
  LLAMAC_RETURN_IF_ERROR(fields.status());
  return info;
}

absl::Status GgufParts::addPart(const std::string &path, int64_t number,
                                int64_t count) {
  const std::string what = absl::StrCat("part ", number + 1, " of ", count);
  if (!fileExists(path))
    return badFileError(absl::StrCat(
        path, ": ", what, ": expected a file beside ",
        baseName(first()->file()->path()), ", got none; all parts are needed"));
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<const GgufReader> part,
                          GgufReader::open(std::move(file)));
  LLAMAC_ASSIGN_OR_RETURN(const PartInfo info, readInfo(*part));
  LLAMAC_ASSIGN_OR_RETURN(const PartInfo head, readInfo(*first()));
  if (info.count != count)
    return part->fail(countKey, absl::StrCat(count, ", as in the first part"),
                      absl::StrCat(info.count));
  if (info.number != number)
    return part->fail(numberKey, absl::StrCat(number, ", as the name says"),
                      absl::StrCat(info.number));
  if (info.tensors != head.tensors)
    return part->fail(tensorsKey,
                      absl::StrCat(head.tensors.value_or(0),
                                   ", as in the first part of the model"),
                      info.tensors ? absl::StrCat(*info.tensors) : "none");
  for (absl::string_view key : {ggufkeys::architecture, ggufkeys::modelName}) {
    LLAMAC_ASSIGN_OR_RETURN(const auto own, part->optionalString(key));
    LLAMAC_ASSIGN_OR_RETURN(const auto model, first()->optionalString(key));
    if (own && own != model)
      return part->fail(key,
                        absl::StrCat(quoteForMessage(model.value_or("")),
                                     ", as in the first part of the model"),
                        quoteForMessage(*own));
  }
  parts.push_back(std::move(part));
  return absl::OkStatus();
}

absl::Status GgufParts::checkTensors() const {
  absl::flat_hash_map<absl::string_view, const GgufReader *> files;
  int64_t count = 0;
  for (const auto &part : parts)
    for (const StoredTensor &tensor : part->tensors()) {
      ++count;
      const auto [at, isNew] = files.emplace(tensor.name, part.get());
      if (!isNew)
        return malformed(
            part->file()->path(), tensor.offset, tensor.name,
            "a tensor in one part",
            absl::StrCat("another in ", baseName(at->second->file()->path())));
    }
  LLAMAC_ASSIGN_OR_RETURN(const PartInfo head, readInfo(*first()));
  if (head.tensors && *head.tensors != count)
    return first()->fail(
        tensorsKey, absl::StrCat("the tensors of all parts, ", count),
        absl::StrCat(*head.tensors, "; another model's part, or an old one"));
  return absl::OkStatus();
}

absl::StatusOr<GgufParts> GgufParts::open(const std::string &path) {
  GgufParts model;
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<const GgufReader> head,
                          GgufReader::open(std::move(file)));
  LLAMAC_ASSIGN_OR_RETURN(const PartInfo info, readInfo(*head));
  if (info.number != 0)
    return head->fail(numberKey, "0, of the first part, which opens the model",
                      absl::StrCat(info.number,
                                   "; open the file whose name ends with ",
                                   partSuffix(0, info.count)));
  model.parts.push_back(std::move(head));
  if (info.count > 1) {
    const std::string suffix = partSuffix(0, info.count);
    absl::string_view prefix = path;
    if (!absl::ConsumeSuffix(&prefix, suffix))
      return model.first()->fail(
          countKey,
          absl::StrCat("a file name that ends with ", suffix,
                       ", by which the others are found"),
          quoteForMessage(baseName(path)));
    for (int64_t i = 1; i < info.count; ++i)
      LLAMAC_RETURN_IF_ERROR(model.addPart(
          absl::StrCat(prefix, partSuffix(i, info.count)), i, info.count));
  }
  LLAMAC_RETURN_IF_ERROR(model.checkTensors());
  return model;
}

GgufParts::Found GgufParts::findTensor(absl::string_view name) const {
  for (const auto &part : parts)
    if (const StoredTensor *tensor = part->findTensor(name))
      return {tensor, part.get()};
  return {};
}

std::optional<std::string> firstPart(const std::vector<std::string> &names) {
  for (const std::string &name : names) {
    absl::string_view prefix = name;
    constexpr absl::string_view first = "-00001-of-";
    const size_t at = prefix.rfind(first);
    if (at == absl::string_view::npos)
      continue;
    const absl::string_view ending = prefix.substr(at + first.size());
    prefix = prefix.substr(0, at);
    // "-00002-of-" is as long.
    if (std::all_of(names.begin(), names.end(), [&](const std::string &other) {
          return other.size() == name.size() &&
                 absl::StartsWith(other, prefix) &&
                 absl::EndsWith(other, absl::StrCat("-of-", ending));
        }))
      return name;
  }
  return std::nullopt;
}

} // namespace llamac
