//===- GgufCheckpoint.h - GGUF model files -------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A writer of GGUF takes from here how a configuration and weights look there.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_GGUF_GGUFCHECKPOINT_H
#define LLAMAC_FRONTENDS_GGUF_GGUFCHECKPOINT_H

#include "frontends/Checkpoint.h"
#include "frontends/Families.h"
#include "frontends/WeightTable.h"
#include "frontends/gguf/GgufWriter.h"

#include "absl/status/status.h"

#include <vector>

namespace llamac {

/// How GGUF stores the weights of `family`.
StoredForm ggufForm(const ModelFamily &family);

/// Adds the architecture and the configuration of `checkpoint`. Unsupported:
/// features that its architecture does not have in GGUF.
absl::Status addGgufConfig(const Checkpoint &checkpoint,
                           GgufMetadata &metadata);

/// The elements of rope_freqs.weight; none where addGgufConfig() says all.
std::vector<float> ggufRopeFactors(const ModelConfig &config);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_GGUF_GGUFCHECKPOINT_H
