//===- DiskCache.cpp - Plans, objects and cubins on disk ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/DiskCache.h"

#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/CacheFolder.h"
#include "runtime/io/MappedFile.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <xxhash.h>

namespace llamac {

namespace fs = std::filesystem;
using FileClock = fs::file_time_type::clock;

namespace {

struct KindRow {
  const char *name;
  const char *extension;
};

} // namespace

static const KindRow &rowOf(CacheKind kind) {
  static constexpr KindRow rows[] = {
      {"plans", ".plan"}, {"objects", ".o"}, {"cubins", ".cubin"}};
  return rows[static_cast<size_t>(kind)];
}

static constexpr size_t keyDigits = 32;

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

/// The bytes of "500M"; units are of 1024, and up to T.
static std::optional<uint64_t> parseSize(absl::string_view text) {
  const absl::string_view units = "KMGT";
  int shift = 0;
  if (!text.empty())
    if (const size_t unit = units.find(absl::ascii_toupper(text.back()));
        unit != absl::string_view::npos) {
      shift = 10 * static_cast<int>(unit + 1);
      text.remove_suffix(1);
    }
  uint64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number > UINT64_MAX >> shift)
    return std::nullopt;
  return number << shift;
}

/// The file with the limit of this user; bytes as digits.
static absl::StatusOr<std::string> limitFile() { return cachePath("limit"); }

CacheLimit cacheLimit() {
  const char *given = std::getenv("LLAMAC_CACHE_SIZE");
  if (given && *given) {
    if (const std::optional<uint64_t> limit = parseSize(given))
      return {*limit, "LLAMAC_CACHE_SIZE"};
    static std::atomic<bool> warned = false;
    if (!warned.exchange(true))
      printWarning(absl::StrCat(
          "LLAMAC_CACHE_SIZE: expected bytes such as 500M or 10G, got ", given,
          "; ", formatBytes(CacheLimit().bytes), " is used"));
    return {};
  }
  std::string text;
  std::ifstream(limitFile().value_or("")) >> text;
  const std::optional<uint64_t> limit = parseSize(text);
  return limit ? CacheLimit{*limit, "llamac cache limit"} : CacheLimit();
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static absl::StatusOr<std::string> folderOf(CacheKind kind) {
  const char *named =
      kind == CacheKind::Objects ? std::getenv("LLAMAC_OBJECT_CACHE") : nullptr;
  if (!named)
    return cachePath(rowOf(kind).name);
  return *named ? absl::StrCat(named, "/", rowOf(kind).name) : "";
}

DiskCache::DiskCache(CacheKind kind) : kind(kind), where(folderOf(kind)) {}

absl::string_view DiskCache::name() const { return rowOf(kind).name; }

std::string DiskCache::pathOf(const std::string &key) const {
  return absl::StrCat(*where, "/", key, rowOf(kind).extension);
}

std::vector<CacheFile> DiskCache::files() const {
  std::vector<CacheFile> found;
  std::error_code error;
  for (fs::directory_iterator file(where.value_or(""), error), end;
       !error && file != end; file.increment(error)) {
    // KEY.o; .KEY.o.tmp-PID-N while AtomicFile writes it.
    const std::string name = file->path().filename();
    absl::string_view rest = name;
    const bool temporary = absl::ConsumePrefix(&rest, ".");
    const absl::string_view key = rest.substr(0, keyDigits);
    rest.remove_prefix(key.size());
    std::error_code ofFile;
    if (key.size() != keyDigits ||
        !std::ranges::all_of(key, absl::ascii_isxdigit) ||
        !absl::ConsumePrefix(&rest, rowOf(kind).extension) ||
        !(temporary ? absl::StartsWith(rest, ".tmp-") : rest.empty()) ||
        file->symlink_status(ofFile).type() != fs::file_type::regular)
      continue;
    CacheFile &next = found.emplace_back(CacheFile{file->path()});
    next.temporary = temporary;
    next.bytes = file->file_size(ofFile);
    next.used = file->last_write_time(ofFile);
    if (ofFile) // Another process was faster.
      found.pop_back();
  }
  return found;
}

/// Removes temporary files of killed writers, files unused for 30 days, and the
/// least recently used ones over the limit, but never the most recently used
/// one.
static Evicted evict() {
  Evicted evicted;
  constexpr std::chrono::hours writingFor(1), unusedFor(24 * 30);
  std::vector<CacheFile> files;
  for (const CacheKind kind : cacheKinds)
    for (CacheFile &file : DiskCache(kind).files())
      files.push_back(std::move(file));
  // Temporary ones, then those that were used longest ago.
  std::ranges::sort(files, {}, [](const CacheFile &file) {
    return std::pair(!file.temporary, file.used);
  });
  uint64_t &total = evicted.leftBytes;
  for (const CacheFile &file : files)
    total += file.temporary ? 0 : file.bytes;
  const auto now = FileClock::now();
  const uint64_t limit = cacheLimit().bytes;
  for (const CacheFile &file : files) {
    const bool isOld =
        now - file.used > (file.temporary ? writingFor : unusedFor);
    const bool isOver =
        !file.temporary && total > limit && &file != &files.back();
    std::error_code error; // Another process was faster.
    if ((isOld || isOver) && fs::remove(file.path, error) && !file.temporary) {
      total -= file.bytes;
      evicted.bytes += file.bytes;
      ++evicted.files;
    }
  }
  return evicted;
}

absl::StatusOr<Evicted> keepCacheLimit(absl::string_view size) {
  const std::optional<uint64_t> limit = parseSize(size);
  if (!limit && size != "default")
    return usageError(absl::StrCat(
        "limit: expected bytes such as 500M or 10G, or default, got ", size));
  LLAMAC_ASSIGN_OR_RETURN(const std::string path, limitFile());
  LLAMAC_RETURN_IF_ERROR(makePrivateFolder(fs::path(path).parent_path()));
  if (limit) {
    LLAMAC_RETURN_IF_ERROR(
        writeFileAtomically(path, absl::StrCat(*limit, "\n")));
  } else if (std::error_code error; !fs::remove(path, error) && error) {
    return usageError(
        absl::StrCat(path, ": cannot be removed: ", error.message()));
  }
  return evict();
}

//===----------------------------------------------------------------------===//
// Use
//===----------------------------------------------------------------------===//

void DiskCache::warn(absl::string_view what) const {
  static std::array<std::atomic<bool>, cacheKinds.size()> warned;
  if (!warned[static_cast<size_t>(kind)].exchange(true))
    printWarning(what);
}

bool DiskCache::usable() const {
  if (where.ok() && where->empty())
    return false;
  const absl::Status made =
      where.ok() ? makePrivateFolder(*where) : where.status();
  if (!made.ok())
    warn(absl::StrCat(name(), " are not cached: ", made.message()));
  return made.ok();
}

bool DiskCache::has(const std::string &key) const {
  struct stat info;
  const std::string path = pathOf(key);
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
    return false;
  if (const absl::Status trusted = checkTrusted(path, info); !trusted.ok()) {
    warn(absl::StrCat(trusted.message(), "; it is made again"));
    return false;
  }
  std::error_code ignored; // Used all the same where it may not be written.
  fs::last_write_time(path, FileClock::now(), ignored);
  return true;
}

static std::string hashOf(absl::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical,
                           XXH3_128bits(bytes.data(), bytes.size()));
  return {reinterpret_cast<const char *>(canonical.digest),
          sizeof canonical.digest};
}

std::optional<std::string> DiskCache::find(const std::string &key) const {
  if (!usable() || !has(key))
    return std::nullopt;
  const auto file = MappedFile::open(pathOf(key));
  constexpr size_t hashBytes = sizeof(XXH128_canonical_t);
  if (!file.ok() || (*file)->size() < hashBytes)
    return std::nullopt;
  absl::string_view bytes = (*file)->text();
  const absl::string_view hash = bytes.substr(bytes.size() - hashBytes);
  bytes.remove_suffix(hashBytes);
  if (hashOf(bytes) != hash)
    return std::nullopt;
  return std::string(bytes);
}

absl::Status DiskCache::write(const std::string &key,
                              absl::string_view bytes) const {
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                          AtomicFile::create(pathOf(key)));
  LLAMAC_RETURN_IF_ERROR(file->write(bytes));
  LLAMAC_RETURN_IF_ERROR(file->write(hashOf(bytes)));
  return file->commit();
}

void DiskCache::keep(const std::string &key, absl::string_view bytes) const {
  absl::Status status;
  // The folder may be deleted at any time, and is then made again.
  for (int attempt = 0; attempt < cacheAttempts; ++attempt) {
    if (!usable())
      return;
    if (status = write(key, bytes); status.ok())
      return added(key);
  }
  warn(absl::StrCat(name(), " are not cached: ", status.message()));
}

void DiskCache::added(const std::string &key) const {
  chmod(pathOf(key).c_str(), 0600);
  // Plans are large and few, the others small and many.
  static std::atomic<bool> evicted = false;
  if (kind == CacheKind::Plans || !evicted.exchange(true))
    evict();
}

} // namespace llamac
