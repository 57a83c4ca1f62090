//===- KeptFiles.cpp - What can be made again, kept on disk ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/KeptFiles.h"

#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/MappedFile.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <xxhash.h>

namespace llamac {

namespace fs = std::filesystem;

std::string keyOf(const std::vector<absl::string_view> &parts) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t *)> state(
      XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (const absl::string_view part : parts) {
    // Lengths keep a byte from wandering from one part to the next.
    const uint64_t size = part.size();
    XXH3_128bits_update(state.get(), &size, sizeof size);
    XXH3_128bits_update(state.get(), part.data(), part.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return absl::StrFormat("%016x%016x", hash.high64, hash.low64);
}

void removeUnusedFiles(const std::string &folder, absl::string_view extension) {
  constexpr std::chrono::hours unusedFor(24 * 30);
  const auto oldest = fs::file_time_type::clock::now() - unusedFor;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    std::error_code ofFile;
    const auto used = file->last_write_time(ofFile);
    if (!ofFile && used < oldest &&
        file->path().extension() == fs::path(std::string(extension)))
      fs::remove(file->path(), ofFile);
  }
}

/// The same, the first time that the process keeps something there.
static void removeUnusedOnce(const std::string &folder,
                             const std::string &extension) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!seen.insert(folder + "/*" + extension).second)
      return;
  }
  removeUnusedFiles(folder, extension);
}

std::string KeptFiles::pathOf(const std::string &key) const {
  return absl::StrCat(folder, "/", key, extension);
}

static std::string hashOf(absl::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical,
                           XXH3_128bits(bytes.data(), bytes.size()));
  return {reinterpret_cast<const char *>(canonical.digest),
          sizeof canonical.digest};
}

std::optional<std::string> KeptFiles::find(const std::string &key) const {
  const std::string path = pathOf(key);
  auto file = MappedFile::open(path);
  if (!file.ok())
    return std::nullopt;
  const absl::string_view all(
      reinterpret_cast<const char *>((*file)->span().data()),
      (*file)->span().size());
  constexpr size_t hashBytes = sizeof(XXH128_canonical_t);
  if (all.size() < hashBytes)
    return std::nullopt;
  const absl::string_view bytes = all.substr(0, all.size() - hashBytes);
  if (hashOf(bytes) != all.substr(bytes.size()))
    return std::nullopt;
  std::error_code error; // Found all the same where it may not be written.
  fs::last_write_time(path, fs::file_time_type::clock::now(), error);
  return std::string(bytes);
}

absl::Status KeptFiles::keep(const std::string &key,
                             absl::string_view bytes) const {
  removeUnusedOnce(folder, extension);
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                          AtomicFile::create(pathOf(key)));
  LLAMAC_RETURN_IF_ERROR(file->write(bytes));
  LLAMAC_RETURN_IF_ERROR(file->write(hashOf(bytes)));
  return file->commit();
}

} // namespace llamac
