//===- CacheCommand.cpp - The caches on disk ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/io/DiskCache.h"
#include "tools/ToolVerbs.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <memory>

namespace llamac {

static std::string dateOf(std::filesystem::file_time_type time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(
          std::chrono::file_clock::to_sys(time)));
  std::array<char, 32> text{};
  std::tm parts{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M",
                localtime_r(&seconds, &parts));
  return text.data();
}

static std::string describe(const CacheLimit &limit) {
  return absl::StrCat(formatBytes(limit.bytes), " (", limit.source, ")");
}

static absl::Status listCaches() {
  absl::PrintF("%-8s %7s %11s  %-16s  %s\n", "cache", "files", "size",
               "last used", "folder");
  uint64_t total = 0;
  for (const CacheKind kind : cacheKinds) {
    const DiskCache cache(kind);
    const std::vector<CacheFile> files = cache.files();
    uint64_t bytes = 0;
    std::string used = "-";
    for (const CacheFile &file : files)
      bytes += file.bytes;
    if (!files.empty())
      used = dateOf(std::ranges::max(files, {}, &CacheFile::used).used);
    absl::PrintF("%-8s %7d %11s  %-16s  %s\n", cache.name(), files.size(),
                 formatBytes(bytes), used,
                 printable(cache.folder().value_or("")));
    total += bytes;
  }
  absl::PrintF("%s of %s\n", formatBytes(total), describe(cacheLimit()));
  return absl::OkStatus();
}

static absl::Status clearCaches() {
  int64_t count = 0;
  uint64_t bytes = 0;
  for (const CacheKind kind : cacheKinds)
    for (const CacheFile &file : DiskCache(kind).files()) {
      std::error_code error;
      const bool removed = std::filesystem::remove(file.path, error);
      if (error)
        return usageError(absl::StrCat(
            file.path.string(), ": cannot be removed: ", error.message()));
      count += removed;
      bytes += removed ? file.bytes : 0;
    }
  absl::PrintF("removed %s, %s\n", formatCount(count, "file"),
               formatBytes(bytes));
  return absl::OkStatus();
}

/// Prints the limit, after it became `size` unless that is empty.
static absl::Status limitCaches(const std::string &size) {
  Evicted evicted;
  if (!size.empty()) {
    LLAMAC_ASSIGN_OR_RETURN(evicted, keepCacheLimit(size));
  }
  std::string text = describe(cacheLimit());
  if (evicted.files > 0)
    absl::StrAppend(&text, "; removed ", formatCount(evicted.files, "file"),
                    ", ", formatBytes(evicted.bytes));
  if (evicted.leftBytes > cacheLimit().bytes)
    absl::StrAppend(&text, "; the file used last stays, ",
                    formatBytes(evicted.leftBytes));
  absl::PrintF("%s\n", text);
  return absl::OkStatus();
}

void addCacheCommand(CLI::App &app, absl::Status &status) {
  CLI::App *verb =
      app.add_subcommand("cache", "List, clear or limit the disk caches");
  verb->require_subcommand(0, 1);
  const auto list = [&status] { status = listCaches(); };
  verb->add_subcommand("list", "Sizes and last use of the caches (default)")
      ->callback(list);
  verb->add_subcommand("clear", "Remove every cached file")
      ->callback([&status] { status = clearCaches(); });
  auto size = std::make_shared<std::string>();
  CLI::App *limit = verb->add_subcommand(
      "limit", "Print the size that the caches keep to, or set it");
  limit->add_option("SIZE", *size,
                    "Bytes, such as 500M or 10G; default for 10G");
  limit->callback([size, &status] { status = limitCaches(*size); });
  verb->callback([verb, list] {
    if (verb->get_subcommands().empty())
      list();
  });
  verb->footer("Cached plans and compiled kernels are made again when they are "
               "needed; what\n`llamac tune` found stays. The least recently "
               "used go when they take more\nthan the limit: "
               "LLAMAC_CACHE_SIZE, else what `cache limit` set, else 10G.");
}

} // namespace llamac
