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

#include <cstdlib>
#include <filesystem>

namespace llamac {

absl::StatusOr<std::string> cacheFolder(absl::string_view part) {
  std::filesystem::path folder;
  if (const char *cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    folder = cache;
  else if (const char *home = std::getenv("HOME"); home && *home)
    folder = std::filesystem::path(home) / ".cache";
  else
    return usageError(absl::StrCat("no directory for cached ", part,
                                   ": set XDG_CACHE_HOME or HOME"));
  folder = folder / "llamac" / std::string(part);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return usageError(absl::StrCat(folder.string(),
                                   ": cannot be made: ", error.message(),
                                   "; set XDG_CACHE_HOME to a writable one"));
  return folder.string();
}

} // namespace llamac
