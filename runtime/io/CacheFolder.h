//===- CacheFolder.h - The user's cache folder ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_IO_CACHEFOLDER_H
#define LLAMAC_RUNTIME_IO_CACHEFOLDER_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include <string>
#include <sys/stat.h>

namespace llamac {

/// Folder llamac/`part` of XDG_CACHE_HOME or, when that is not set, of
/// ~/.cache, which may not be there. Usage error when the environment names
/// neither.
absl::StatusOr<std::string> cachePath(absl::string_view part);

/// cachePath(), made by makePrivateFolder().
absl::StatusOr<std::string> cacheFolder(absl::string_view part);

/// Makes `folder` and those above it that are not there, for the user alone.
/// Usage error when it cannot be made or is not to be trusted.
absl::Status makePrivateFolder(const std::string &folder);

/// Usage error for an untrusted file or folder `path`: by `info` others may
/// write to it, or its owner is neither the user nor root. Cached code is
/// executed.
absl::Status checkTrusted(const std::string &path, const struct stat &info);

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_CACHEFOLDER_H
