//===- MetaCheckpoint.h - Meta's model directories ------------ -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_FRONTENDS_META_METACHECKPOINT_H
#define LLAMAC_FRONTENDS_META_METACHECKPOINT_H

#include "frontends/Checkpoint.h"

#include "absl/status/status.h"

#include <cstdint>
#include <optional>
#include <string>

namespace llamac {

/// Reads `directory`, whose params.json is at `configPath`, into `checkpoint`;
/// without weights only the configuration and what is known of the tokenizer.
absl::Status readMetaCheckpoint(const std::string &directory,
                                const std::string &configPath,
                                const OpenOptions &options, bool withWeights,
                                Checkpoint &checkpoint);

/// The FFN size of Meta's reference model: two thirds of 4 `dim`, times
/// `multiplier` where there is one, rounded up to `multipleOf`; each step
/// truncated to an integer.
int64_t metaFfnSize(int64_t dim, std::optional<double> multiplier,
                    int64_t multipleOf);

/// What a params.json means where it leaves keys out.
struct MetaDefaults {
  /// The factor of use_scaled_rope: 32 for the shapes of Llama 3.2 (16 layers
  /// of 2048, 28 of 3072), 8 for others.
  static double ropeFactor(int64_t dim, int64_t numLayers);
  /// Without max_seq_len: 131072 when RoPE is scaled; 8192 for Llama 3's theta
  /// of 500000 or more; 4096, Llama 2's, for others.
  static int64_t maxContext(double theta, bool scaled);
};

} // namespace llamac

#endif // LLAMAC_FRONTENDS_META_METACHECKPOINT_H
