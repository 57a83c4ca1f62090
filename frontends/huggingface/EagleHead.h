//===- EagleHead.h - EAGLE-3 heads ------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_HUGGINGFACE_EAGLEHEAD_H
#define LLAMAC_FRONTENDS_HUGGINGFACE_EAGLEHEAD_H

#include "frontends/CheckpointFormats.h"
#include "runtime/io/JsonReader.h"

#include <string>

namespace llamac {

/// Whether the configuration `root` is that of an EAGLE-3 head.
bool isEagleHead(const JsonObject &root);

/// The object of a head's configuration `root` that is as a model's.
absl::StatusOr<JsonObject> layerConfigOfHead(const JsonObject &root);

/// Reads what makes a head of the configuration of `checkpoint`, which is read
/// from `layer` but for that, for the model `options.headOf`. Usage error where
/// that is empty; bad file where the head is not one of that model.
absl::Status readEagleConfig(const JsonObject &root, const JsonObject &layer,
                             const OpenOptions &options,
                             Checkpoint &checkpoint);

/// Adds the weights of the head in `directory`, whose configuration is read.
absl::Status readEagleWeights(const std::string &directory,
                              const OpenOptions &options,
                              Checkpoint &checkpoint);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_HUGGINGFACE_EAGLEHEAD_H
