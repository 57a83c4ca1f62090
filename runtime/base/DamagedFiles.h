//===- DamagedFiles.h - Outliving a truncated file --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tool ends where it finds a mapped file truncated (FatalEvents.h). A server
// has answers of other models to finish first: what it cannot read of the file
// are zeros, and whoever uses results asks before whether they are of such a
// file.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_DAMAGEDFILES_H
#define LLAMAC_RUNTIME_BASE_DAMAGEDFILES_H

#include "absl/strings/string_view.h"

namespace llamac {

/// From now on the process outlives files that are truncated while they are
/// mapped, up to 16 of them. For main(), after installFatalHandlers().
void outliveDamagedFiles();

/// Whether the file mapped by the name `path` was found truncated since.
bool isDamaged(absl::string_view path);

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_DAMAGEDFILES_H
