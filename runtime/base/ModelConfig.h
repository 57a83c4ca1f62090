//===- ModelConfig.h - Hyperparameters of a Llama model ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_MODELCONFIG_H
#define LLAMAC_RUNTIME_BASE_MODELCONFIG_H

#include "absl/status/status.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace llamac {

/// Llama 3.1's scaling of the rotary frequencies ("llama3" in Hugging Face's
/// rope_scaling): wavelengths over oldContext / lowFreqFactor are divided by
/// `factor`, those under oldContext / highFreqFactor are kept, and those
/// between are blended linearly in oldContext / wavelength.
struct RopeScaling {
  double factor = 8.0;
  double lowFreqFactor = 1.0;
  double highFreqFactor = 4.0;
  double oldContext = 8192.0;

  friend bool operator==(const RopeScaling &, const RopeScaling &) = default;
};

/// The hyperparameters that decide the graph. Every frontend gives one.
struct ModelConfig {
  int64_t dim = 0;        ///< d, width of the residual stream.
  int64_t numLayers = 0;  ///< L.
  int64_t numHeads = 0;   ///< H, query heads.
  int64_t numKvHeads = 0; ///< G, key/value heads; divides numHeads.
  int64_t headSize = 0;   ///< h; a multiple of 8.
  int64_t ffnDim = 0;     ///< F.
  int64_t vocabSize = 0;  ///< V.
  int64_t maxContext = 0; ///< Longest context the model was trained for.
  double normEps = 1e-5;
  double ropeTheta = 500000.0;
  std::optional<RopeScaling> ropeScaling;
  /// GGUF's rope_freqs.weight: when present (headSize / 2 values) the i-th
  /// rotary frequency is divided by the i-th factor; excludes ropeScaling.
  std::vector<float> ropeFactors;
  bool tiedEmbeddings = false; ///< lm_head is the embedding table.

  friend bool operator==(const ModelConfig &, const ModelConfig &) = default;
};

/// The rotary frequencies of `config` in radians per position, after scaling:
/// headSize / 2 values, theta^(-2i/h) before scaling.
std::vector<double> ropeFrequencies(const ModelConfig &config);

/// Checks what the rest of the program takes for granted: every size positive
/// and below 2^31, G divides H, the head size a multiple of 8, eps and theta
/// finite and positive. An error names the field, expected and got.
absl::Status validateModelConfig(const ModelConfig &config);

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_MODELCONFIG_H
