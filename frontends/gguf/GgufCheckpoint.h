//===- GgufCheckpoint.h - GGUF model files -------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_GGUF_GGUFCHECKPOINT_H
#define LLAMAC_FRONTENDS_GGUF_GGUFCHECKPOINT_H

#include "frontends/Checkpoint.h"

#include "absl/status/status.h"

#include <string>

namespace llamac {

/// Reads the file at `path` into `checkpoint`; without weights only the
/// configuration and the tokenizer.
absl::Status readGgufCheckpoint(const std::string &path, bool withWeights,
                                Checkpoint &checkpoint);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_GGUF_GGUFCHECKPOINT_H
