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

/// The most ranks that may partition a model.
inline constexpr int64_t mostRanks = 64;

/// KV heads that each of `ranks` ranks has of `heads`; where these are fewer,
/// several ranks have the same one.
constexpr int64_t kvHeadsOfRank(int64_t heads, int64_t ranks) {
  return (heads + ranks - 1) / ranks;
}

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

/// The attention of one layer.
struct LayerAttention {
  /// The rotation of queries and keys: by ropeTheta and its scaling, localTheta
  /// alone, or nothing.
  enum class Rotation : uint8_t { Global, Local, None };
  Rotation rotation = Rotation::Global;
  /// Keys that a row sees, up to its own; 0: all of them.
  int64_t window = 0;

  friend bool operator==(const LayerAttention &,
                         const LayerAttention &) = default;
};

enum class Activation : uint8_t { Silu, GeluTanh };

/// Features that members of Llama's family add to it, or do in another way. The
/// defaults are Llama's.
struct ModelFeatures {
  bool qkvBias = false;   ///< Query, key and value have biases.
  bool headNorms = false; ///< RMSNorm of each head of query and key, then RoPE.
  bool rowNorms = false;  ///< RMSNorm of all heads of query and key together.
  bool preNorms = true;   ///< RMSNorm ahead of attention and feed-forward.
  bool postNorms = false; ///< RMSNorm behind them, before they are added.
  Activation activation = Activation::Silu; ///< Activation of the
                                            ///< feed-forward's gate.
  double embeddingScale = 1;                ///< Scale of the rows of the
                                            ///< embedding.
  double residualScale = 1; ///< Scale of what attention and feed-forward add.
  double logitsScale = 1;
  double attentionScale = 0; ///< Scale of the scores; 0: 1 / sqrt(h).
  double localTheta = 0;     ///< Theta of layers with local rotation.
  /// One for each layer; empty: all are alike, as Llama's.
  std::vector<LayerAttention> layers = {};

  LayerAttention layer(int64_t index) const {
    return layers.empty() ? LayerAttention{} : layers[index];
  }

  friend bool operator==(const ModelFeatures &,
                         const ModelFeatures &) = default;
};

/// The most layers of a model, and the most of them that give features.
inline constexpr int64_t mostLayers = 10000;
inline constexpr size_t mostFeatures = 16;

/// An EAGLE-3 head (Li et al. 2025), in what it differs from a model. Its one
/// layer reads, beside a token, what another model, the target, made of the
/// token before: the residual streams of some of its layers, its features.
struct DraftHead {
  /// Layers of the target, whose inputs are features: from 0 for the embedding
  /// to the number of layers for what the last one makes.
  std::vector<int64_t> layers;
  int64_t targetDim = 0; ///< Width of the target's residual stream.
  /// The target's id of each token that the head has a logit for; empty: the
  /// head has logits of the target's vocabulary.
  std::vector<int32_t> tokens;
  /// Whether the layer adds its attention to the norm of its input, not to its
  /// input.
  bool addsToNorm = false;

  /// Numbers of a row of features.
  int64_t featureDim() const {
    return static_cast<int64_t>(layers.size()) * targetDim;
  }

  friend bool operator==(const DraftHead &, const DraftHead &) = default;
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
  bool tiedEmbeddings = false;   ///< lm_head is the embedding table.
  ModelFeatures features;        ///< Only the graph has them, no plan.
  std::optional<DraftHead> head; ///< None: a model, which stands alone.

  /// Logits of a row.
  int64_t logitsSize() const {
    return head && !head->tokens.empty()
               ? static_cast<int64_t>(head->tokens.size())
               : vocabSize;
  }

  friend bool operator==(const ModelConfig &, const ModelConfig &) = default;
};

/// The rotary frequencies of `config` in radians per position, after scaling:
/// headSize / 2 values, theta^(-2i/h) before scaling. Of layers with another
/// rotation than the global one: without scaling, or zeros.
std::vector<double> ropeFrequencies(
    const ModelConfig &config,
    LayerAttention::Rotation rotation = LayerAttention::Rotation::Global);

/// Warns on stderr where a plan's context is longer than the longest one that
/// the model was trained for.
void warnOfLongContext(int64_t context, int64_t maxContext);

/// Checks what the rest of the program takes for granted: every size positive
/// and below 2^31, G divides H, the head size a multiple of 8, eps, theta and
/// scales finite and positive. An error names the field, expected and got.
absl::Status validateModelConfig(const ModelConfig &config);

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_MODELCONFIG_H
