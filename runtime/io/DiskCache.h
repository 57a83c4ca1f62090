//===- DiskCache.h - Plans, objects and cubins on disk ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three caches, each in a folder of its own: plans, objects that Clang compiled
// and cubins that NVRTC compiled. A file is named by a hash of all that decides
// its contents (KEY.o). A missing, damaged or untrusted file is made again;
// where a cache cannot be used, one warning says so.
//
// A new file evicts those that were not used for 30 days, then the least
// recently used ones of all three caches until they take at most cacheLimit().
// Files with other names are never touched.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_IO_DISKCACHE_H
#define LLAMAC_RUNTIME_IO_DISKCACHE_H

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

enum class CacheKind { Plans, Objects, Cubins };

inline constexpr std::array cacheKinds = {CacheKind::Plans, CacheKind::Objects,
                                          CacheKind::Cubins};

/// Attempts to write to a cache that others may delete meanwhile.
inline constexpr int cacheAttempts = 5;

/// 32 hexadecimal digits that name what `parts` decide.
std::string keyOf(const std::vector<absl::string_view> &parts);

/// Bytes that the caches may take together, and who says so.
struct CacheLimit {
  uint64_t bytes = uint64_t{10} << 30;
  absl::string_view source = "default";
};

/// LLAMAC_CACHE_SIZE, else what keepCacheLimit() left, else 10 GiB.
CacheLimit cacheLimit();

/// Files that were removed from all caches, and the bytes that these have left.
struct Evicted {
  int64_t files = 0;
  uint64_t bytes = 0, leftBytes = 0;
};

/// Makes `size` ("500M"; "default" for none) the limit of this user from now
/// on, and evicts what is over it but for the file that was used last. Usage
/// error for another text, or when it cannot be written.
absl::StatusOr<Evicted> keepCacheLimit(absl::string_view size);

/// A file of a cache.
struct CacheFile {
  std::filesystem::path path;
  uint64_t bytes = 0;
  std::filesystem::file_time_type used = {}; ///< When it was written or found.
  bool temporary = false; ///< Whether a writer that is at work, or was killed,
                          ///< left it.
};

class DiskCache {
public:
  /// Folder llamac/plans, objects or cubins of the user's cache folder; for
  /// objects also LLAMAC_OBJECT_CACHE/objects, or none when that is set to
  /// nothing.
  explicit DiskCache(CacheKind kind);

  absl::string_view name() const; ///< "plans"

  /// An error where the environment names none; empty: caching is off.
  const absl::StatusOr<std::string> &folder() const { return where; }

  /// Makes the folder where it is not there. False when nothing can be cached,
  /// with a warning unless the cache is off.
  bool usable() const;

  /// The file of `key` in a cache that is usable().
  std::string pathOf(const std::string &key) const;

  /// Whether the file of `key` is there and only the user or root wrote to it;
  /// counts as a use.
  bool has(const std::string &key) const;

  /// The bytes cached under `key`; none when they are missing or damaged.
  std::optional<std::string> find(const std::string &key) const;

  /// Caches `bytes`, where possible.
  void keep(const std::string &key, absl::string_view bytes) const;

  /// After a new file was put at pathOf(`key`): makes it private, and evicts
  /// others.
  void added(const std::string &key) const;

  /// All its files.
  std::vector<CacheFile> files() const;

private:
  absl::Status write(const std::string &key, absl::string_view bytes) const;

  /// Warns, once in the process for each cache.
  void warn(absl::string_view what) const;

  CacheKind kind;
  absl::StatusOr<std::string> where;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_DISKCACHE_H
