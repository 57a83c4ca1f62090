//===- ConvertCommon.h - What all converters do --------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_CONVERTCOMMON_H
#define LLAMAC_FRONTENDS_CONVERTCOMMON_H

#include "frontends/Convert.h"
#include "frontends/TensorStream.h"
#include "frontends/WeightTable.h"

#include "absl/status/statusor.h"

#include <vector>

namespace llamac {

/// Makes `directory`. Usage error when there is something in it: it might be
/// taken for a part of the model.
absl::Status prepareDirectory(const std::string &directory);

/// The rotary scaling of `config`, also when it is given as factors; nothing
/// when there is none. Unsupported: factors that Llama 3.1's rule does not
/// make.
absl::StatusOr<std::optional<RopeScaling>>
ropeScalingOf(const ModelConfig &config);

/// Streams of all weights of `checkpoint`, in the order of expectedWeights and
/// named by `name`; `halves` puts wq and wk in the order of rotary halves. They
/// refer to `checkpoint` and `options`, and report progress.
std::vector<TensorStream> streamWeights(const Checkpoint &checkpoint,
                                        const ConvertOptions &options,
                                        std::string ExpectedWeight::*name,
                                        bool halves);

/// Writes generation_config.json, when the checkpoint knows anything for it.
absl::Status writeGenerationConfig(const Checkpoint &checkpoint,
                                   const std::string &directory);

} // namespace llamac

#endif // LLAMAC_FRONTENDS_CONVERTCOMMON_H
