//===- HuggingFaceCheckpoint.h - Hugging Face models ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_HUGGINGFACE_HUGGINGFACECHECKPOINT_H
#define LLAMAC_FRONTENDS_HUGGINGFACE_HUGGINGFACECHECKPOINT_H

#include "frontends/Checkpoint.h"

#include "absl/status/status.h"

#include <string>

namespace llamac {

/// Reads `directory`, whose config.json is at `configPath`, into `checkpoint`;
/// without weights only the configuration and what is known of the tokenizer.
absl::Status readHuggingFaceCheckpoint(const std::string &directory,
                                       const std::string &configPath,
                                       bool withWeights,
                                       Checkpoint &checkpoint);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_HUGGINGFACE_HUGGINGFACECHECKPOINT_H
