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

namespace llamac {

/// Folder llamac/`part` of XDG_CACHE_HOME or, when that is not set, of
/// ~/.cache; made when it is not there. Usage error when the environment names
/// neither, or it cannot be made.
absl::StatusOr<std::string> cacheFolder(absl::string_view part);

} // namespace llamac

#endif // LLAMAC_RUNTIME_IO_CACHEFOLDER_H
