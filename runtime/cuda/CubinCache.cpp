//===- CubinCache.cpp - Compiled kernels, kept on disk --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/cuda/CubinCache.h"

#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/CacheFolder.h"
#include "runtime/io/MappedFile.h"
#include "runtime/plan/PlanFormat.h"

#include "absl/strings/str_cat.h"

#include <cstring>

namespace llamac {

static PlanHash hashOf(absl::string_view text) {
  return hashBytes(
      {reinterpret_cast<const uint8_t *>(text.data()), text.size()});
}

std::string cubinKey(const CudaSource &source, const std::string &architecture,
                     const std::string &version) {
  // Lengths keep a byte from wandering from one part to the next.
  std::string all;
  auto add = [&](absl::string_view part) {
    absl::StrAppend(&all, part.size(), ":", part);
  };
  for (absl::string_view part :
       {absl::string_view(architecture), absl::string_view(version),
        absl::string_view(source.name), absl::string_view(source.text)})
    add(part);
  for (const SourceHeader &header : source.headers) {
    add(header.name);
    add(header.text);
  }
  return hashText(hashOf(all));
}

static absl::StatusOr<std::string> pathOf(const std::string &key) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string folder, cacheFolder("cubins"));
  return absl::StrCat(folder, "/", key, ".cubin");
}

std::optional<std::string> findCubin(const std::string &key) {
  const absl::StatusOr<std::string> path = pathOf(key);
  if (!path.ok())
    return std::nullopt;
  auto file = MappedFile::open(*path);
  if (!file.ok())
    return std::nullopt;
  // The image, then its hash.
  const absl::Span<const uint8_t> bytes = (*file)->span();
  if (bytes.size() < sizeof(PlanHash))
    return std::nullopt;
  const size_t size = bytes.size() - sizeof(PlanHash);
  PlanHash hash;
  std::memcpy(&hash, bytes.data() + size, sizeof hash);
  if (!(hashBytes(bytes.first(size)) == hash))
    return std::nullopt;
  return std::string(reinterpret_cast<const char *>(bytes.data()), size);
}

absl::Status keepCubin(const std::string &key, const std::string &image) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string path, pathOf(key));
  const PlanHash hash = hashOf(image);
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file,
                          AtomicFile::create(path));
  LLAMAC_RETURN_IF_ERROR(file->write(image));
  LLAMAC_RETURN_IF_ERROR(file->write(absl::Span<const uint8_t>(
      reinterpret_cast<const uint8_t *>(&hash), sizeof hash)));
  return file->commit();
}

} // namespace llamac
