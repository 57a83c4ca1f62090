//===- Pull.h - Fetches models ----------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_MODELS_PULL_H
#define LLAMAC_COMPILER_MODELS_PULL_H

#include "absl/status/status.h"

#include <string>

namespace llamac {

/// Fetches the model that `what`, a name or a URL, stands for into the models'
/// folder; says on stderr what it does unless `quiet`. What came before an
/// error or a signal is kept, and used by the next pull of the same. Errors:
/// usage for a name that leaves the file open; bad file for what the server
/// does not have or give, or is not as it is listed; unsupported for a model's
/// configuration; memory where the disk is full.
absl::Status pullModel(const std::string &what, bool quiet);

} // namespace llamac

#endif // LLAMAC_COMPILER_MODELS_PULL_H
