//===- Families.cpp - Members of Llama's family ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/Families.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <vector>

namespace llamac {

absl::Span<const ModelFamily> modelFamilies() {
  static const ModelFamily families[] = {
      {.modelType = "llama",
       .architecture = "LlamaForCausalLM",
       .gguf = "llama"},
      {.modelType = "mistral",
       .architecture = "MistralForCausalLM",
       .window = 4096,
       .maxContext = 131072,
       .windows = WindowRule::All},
      {.modelType = "qwen2",
       .architecture = "Qwen2ForCausalLM",
       .gguf = "qwen2",
       .ggufHalves = true,
       .window = 4096,
       .usesWindow = false,
       .maxContext = 32768,
       .windows = WindowRule::From,
       .interval = 28,
       .features = {.qkvBias = true}},
      {.modelType = "qwen3",
       .architecture = "Qwen3ForCausalLM",
       .gguf = "qwen3",
       .ggufHalves = true,
       .headSize = 128,
       .window = 4096,
       .usesWindow = false,
       .maxContext = 32768,
       .windows = WindowRule::From,
       .interval = 28,
       .features = {.headNorms = true}},
      {.modelType = "granite",
       .architecture = "GraniteForCausalLM",
       .gguf = "granite",
       .hasScales = true},
      {.modelType = "smollm3",
       .architecture = "SmolLM3ForCausalLM",
       .gguf = "smollm3",
       .tied = true,
       .maxContext = 32768,
       .theta = 2e6,
       .interval = 4},
      {.modelType = "olmo2",
       .architecture = "Olmo2ForCausalLM",
       .gguf = "olmo2",
       .ggufHalves = true,
       .normEps = 1e-5,
       .features = {.rowNorms = true, .preNorms = false, .postNorms = true}},
      {.modelType = "phi3",
       .architecture = "Phi3ForCausalLM",
       .gguf = "phi3",
       .ggufHalves = true,
       .fusedTensors = true,
       .maxContext = 4096,
       .normEps = 1e-5,
       .windows = WindowRule::All},
      {.modelType = "gemma3_text",
       .architecture = "Gemma3ForCausalLM",
       .gguf = "gemma3",
       .ggufHalves = true,
       .shiftedNorms = true,
       .tied = true,
       .headSize = 256,
       .window = 4096,
       .maxContext = 131072,
       .theta = 1e6,
       .embeddingBySqrtDim = true,
       .hasLocalTheta = true,
       .windows = WindowRule::AllButNth,
       .interval = 6,
       .features = {.headNorms = true,
                    .postNorms = true,
                    .activation = Activation::GeluTanh}},
  };
  return families;
}

std::vector<LayerAttention> ModelFamily::layersOf(int64_t numLayers,
                                                  int64_t window,
                                                  int64_t interval) const {
  using Rotation = LayerAttention::Rotation;
  std::vector<LayerAttention> layers(numLayers);
  for (int64_t i = 0; i < numLayers; ++i) {
    const bool isNth = interval > 0 && (i + 1) % interval == 0;
    if (windows == WindowRule::None && isNth)
      layers[i].rotation = Rotation::None;
    const bool hasWindow = windows == WindowRule::All ||
                           (windows == WindowRule::From && i >= interval) ||
                           (windows == WindowRule::AllButNth && !isNth);
    if (hasWindow) {
      layers[i].window = window;
      layers[i].rotation = hasLocalTheta ? Rotation::Local : Rotation::Global;
    }
  }
  const bool areAlike = std::all_of(
      layers.begin(), layers.end(),
      [](const LayerAttention &layer) { return layer == LayerAttention{}; });
  return areAlike ? std::vector<LayerAttention>{} : layers;
}

const ModelFamily *findFamily(absl::string_view ModelFamily::*field,
                              absl::string_view name) {
  for (const ModelFamily &family : modelFamilies())
    if (!name.empty() && family.*field == name)
      return &family;
  return nullptr;
}

const ModelFamily &familyInGguf(const ModelFamily &family) {
  return family.gguf.empty() ? *findFamily(&ModelFamily::gguf, "llama")
                             : family;
}

std::string familyNames(absl::string_view ModelFamily::*field) {
  std::vector<absl::string_view> names;
  for (const ModelFamily &family : modelFamilies())
    if (!(family.*field).empty())
      names.push_back(family.*field);
  std::string text(names[0]);
  for (size_t i = 1; i < names.size(); ++i)
    absl::StrAppend(&text, i + 1 < names.size() ? ", " : " or ", names[i]);
  return text;
}

} // namespace llamac
