//===- CacheFolder.cpp - The user's cache folder --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/io/CacheFolder.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace llamac {

absl::StatusOr<std::string> cachePath(absl::string_view part) {
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return absl::StrCat(cache, "/llamac/", part);
  if (const char *home = std::getenv("HOME"); home && *home)
    return absl::StrCat(home, "/.cache/llamac/", part);
  return usageError(absl::StrCat("no directory for cached ", part,
                                 ": set XDG_CACHE_HOME or HOME"));
}

absl::StatusOr<std::string> cacheFolder(absl::string_view part) {
  LLAMAC_ASSIGN_OR_RETURN(std::string folder, cachePath(part));
  LLAMAC_RETURN_IF_ERROR(makePrivateFolder(folder));
  return folder;
}

/// Makes folders like `mkdir -p -m 700`; errno says why not.
static bool makeFolders(const std::string &folder) {
  const size_t slash = folder.rfind('/');
  // Somebody may delete the parent that was just made.
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST)
      return true;
    if (errno != ENOENT || slash == std::string::npos || slash == 0 ||
        !makeFolders(folder.substr(0, slash)))
      return false;
  }
  return false;
}

absl::Status makePrivateFolder(const std::string &folder) {
  struct stat info;
  if (!makeFolders(folder) || stat(folder.c_str(), &info) != 0)
    return usageError(
        absl::StrCat(folder, ": cannot be made: ", std::strerror(errno)));
  if (!S_ISDIR(info.st_mode))
    return usageError(absl::StrCat(folder, ": expected a folder, got a file"));
  return checkTrusted(folder, info);
}

absl::Status checkTrusted(const std::string &path, const struct stat &info) {
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return usageError(absl::StrCat(path, ": expected an owner ", geteuid(),
                                   " (you) or 0 (root), got ", info.st_uid));
  if (info.st_mode & (S_IWGRP | S_IWOTH))
    return usageError(absl::StrFormat(
        "%s: expected a mode that lets nobody else write, got %04o; "
        "chmod go-w it",
        path, info.st_mode & 07777));
  return absl::OkStatus();
}

} // namespace llamac
