//===- ModelConfig.cpp - Hyperparameters of a Llama model -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/base/ModelConfig.h"

#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace llamac {

std::vector<double> ropeFrequencies(const ModelConfig &config,
                                    LayerAttention::Rotation rotation) {
  using Rotation = LayerAttention::Rotation;
  const int64_t half = config.headSize / 2;
  std::vector<double> freqs(half);
  if (rotation == Rotation::None)
    return freqs;
  const bool isLocal = rotation == Rotation::Local;
  const double theta = isLocal ? config.features.localTheta : config.ropeTheta;
  for (int64_t i = 0; i < half; ++i) {
    double freq = std::pow(theta, -2.0 * static_cast<double>(i) /
                                      static_cast<double>(config.headSize));
    if (isLocal) {
      freqs[i] = freq;
      continue;
    }
    if (!config.ropeFactors.empty()) {
      freq /= config.ropeFactors[i];
    } else if (config.ropeScaling) {
      const RopeScaling &scaling = *config.ropeScaling;
      const double wavelength = 2.0 * std::numbers::pi / freq;
      const double turns = scaling.oldContext / wavelength;
      if (turns < scaling.lowFreqFactor) {
        freq /= scaling.factor;
      } else if (turns <= scaling.highFreqFactor) {
        const double keep = (turns - scaling.lowFreqFactor) /
                            (scaling.highFreqFactor - scaling.lowFreqFactor);
        freq = (1.0 - keep) * freq / scaling.factor + keep * freq;
      }
    }
    freqs[i] = freq;
  }
  return freqs;
}

void warnOfLongContext(int64_t context, int64_t maxContext) {
  if (context > maxContext)
    printWarning(absl::StrCat(
        "a context of ", context, " tokens: the model was trained for up to ",
        maxContext, ", and answers may be bad beyond; -c ", maxContext,
        " compiles it for those"));
}

static absl::Status checkSize(const char *field, int64_t value) {
  constexpr int64_t limit = int64_t{1} << 31;
  if (value > 0 && value < limit)
    return absl::OkStatus();
  return badFileError(
      absl::StrCat(field, ": expected a size in [1, 2^31), got ", value));
}

static absl::Status checkHead(const ModelConfig &config) {
  const DraftHead &head = *config.head;
  LLAMAC_RETURN_IF_ERROR(checkSize("target's width", head.targetDim));
  if (config.numLayers != 1)
    return unsupportedError(absl::StrCat(
        "n_layers of a draft head: expected 1, got ", config.numLayers));
  if (head.layers.empty() || head.layers.size() > mostFeatures)
    return badFileError(absl::StrCat("feature layers: expected 1 to ",
                                     mostFeatures, ", got ",
                                     head.layers.size()));
  for (const int64_t layer : head.layers)
    if (layer < 0 || layer > mostLayers)
      return badFileError(absl::StrCat("feature layers: expected 0 to ",
                                       mostLayers, ", got ", layer));
  for (const int32_t token : head.tokens)
    if (token < 0 || token >= config.vocabSize)
      return badFileError(
          absl::StrCat("tokens of the head: expected ids below ",
                       config.vocabSize, ", got ", token));
  return absl::OkStatus();
}

absl::Status validateModelConfig(const ModelConfig &config) {
  LLAMAC_RETURN_IF_ERROR(checkSize("dim", config.dim));
  LLAMAC_RETURN_IF_ERROR(checkSize("n_layers", config.numLayers));
  LLAMAC_RETURN_IF_ERROR(checkSize("n_heads", config.numHeads));
  LLAMAC_RETURN_IF_ERROR(checkSize("n_kv_heads", config.numKvHeads));
  LLAMAC_RETURN_IF_ERROR(checkSize("head size", config.headSize));
  LLAMAC_RETURN_IF_ERROR(checkSize("ffn size", config.ffnDim));
  LLAMAC_RETURN_IF_ERROR(checkSize("vocab_size", config.vocabSize));
  LLAMAC_RETURN_IF_ERROR(checkSize("context", config.maxContext));
  if (config.numLayers > mostLayers)
    return badFileError(absl::StrCat("n_layers: expected at most ", mostLayers,
                                     ", got ", config.numLayers));
  if (config.numHeads % config.numKvHeads != 0)
    return badFileError(absl::StrCat("n_kv_heads: expected a divisor of ",
                                     config.numHeads, " heads, got ",
                                     config.numKvHeads));
  if (config.headSize % 8 != 0)
    return unsupportedError(absl::StrCat(
        "head size: expected a multiple of 8, got ", config.headSize));
  const ModelFeatures &features = config.features;
  for (const auto &[field, value] :
       {std::pair("norm_eps", config.normEps),
        std::pair("rope_theta", config.ropeTheta),
        std::pair("scale of the embedding", features.embeddingScale),
        std::pair("scale of the residual", features.residualScale),
        std::pair("scale of the logits", features.logitsScale)})
    if (!(value > 0) || !std::isfinite(value))
      return badFileError(
          absl::StrCat(field, ": expected a positive number, got ", value));
  for (const auto &[field, value] :
       {std::pair("scale of attention", features.attentionScale),
        std::pair("theta of local layers", features.localTheta)})
    if (!(value >= 0) || !std::isfinite(value))
      return badFileError(
          absl::StrCat(field, ": expected a positive number, got ", value));
  for (const LayerAttention &layer : features.layers)
    if (layer.window < 0 || layer.window >= int64_t{1} << 31)
      return badFileError(absl::StrCat(
          "window: expected a number of tokens, got ", layer.window));
  if (!config.ropeFactors.empty() &&
      static_cast<int64_t>(config.ropeFactors.size()) != config.headSize / 2)
    return badFileError(absl::StrCat("rope factors: expected ",
                                     config.headSize / 2, " values, got ",
                                     config.ropeFactors.size()));
  return config.head ? checkHead(config) : absl::OkStatus();
}

} // namespace llamac
