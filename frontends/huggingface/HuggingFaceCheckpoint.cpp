//===- HuggingFaceCheckpoint.cpp - Hugging Face's model directories -------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// config.json holds hyperparameters (defaults are those of the family's class
// in Transformers), the weights are in model.safetensors, or in several files
// that model.safetensors.index.json lists. Rows of q_proj and k_proj are in the
// order of rotary halves, which the weight map undoes as it reads.
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteCursor.h"
#include "frontends/CheckpointFormats.h"
#include "frontends/Families.h"
#include "frontends/Files.h"
#include "frontends/WeightTable.h"
#include "frontends/huggingface/EagleHead.h"
#include "frontends/huggingface/Quantization.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/formats/Dequantize.h"

#include "absl/strings/match.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace llamac {

// The family that the file names, by its architecture or its model type.
static absl::StatusOr<const ModelFamily *> readFamily(const JsonObject &root) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> architectures,
                          root.strings("architectures"));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<std::string> type,
                          root.optionalString("model_type"));
  const std::string known = familyNames(&ModelFamily::architecture);
  if (architectures.empty() && !type)
    return root.fail("architectures", known, "none");
  const ModelFamily *family = nullptr;
  for (const std::string &architecture : architectures) {
    family = findFamily(&ModelFamily::architecture, architecture);
    if (!family)
      return root.unsupported("architectures", known,
                              quoteForMessage(architecture));
  }
  const ModelFamily *byType =
      type ? findFamily(&ModelFamily::modelType, *type) : family;
  if (!byType || (family && byType != family))
    return root.unsupported("model_type",
                            family ? quoteForMessage(family->modelType)
                                   : familyNames(&ModelFamily::modelType),
                            quoteForMessage(*type));
  return byType;
}

static void checkWholeRotation(ConfigFields<JsonObject> &fields) {
  const double partial = fields.number("partial_rotary_factor").value_or(1);
  fields.requireSupported(partial == 1, "partial_rotary_factor", "1", partial);
}

// Refuses what goes beyond the features of `family`.
static absl::Status checkFeatures(const JsonObject &root,
                                  const ModelFamily &family) {
  ConfigFields fields(root);
  const absl::string_view known = family.features.activation == Activation::Silu
                                      ? "silu"
                                      : "gelu_pytorch_tanh";
  for (absl::string_view key : {"hidden_act", "hidden_activation"}) {
    const std::string activation =
        fields.text(key).value_or(std::string(known));
    fields.requireSupported(activation == known, key, quoteForMessage(known),
                            quoteForMessage(activation));
  }
  for (absl::string_view key :
       {"attention_bias", "mlp_bias", "use_bidirectional_attention"})
    fields.requireSupported(!fields.flag(key).value_or(false), key, "false",
                            "true");
  for (absl::string_view key :
       {"attn_logit_softcapping", "final_logit_softcapping", "clip_qkv"}) {
    const std::optional<double> cap = fields.number(key);
    fields.requireSupported(!cap, key, "none", cap.value_or(0));
  }
  const std::string position =
      fields.text("position_embedding_type").value_or("rope");
  fields.requireSupported(position == "rope", "position_embedding_type",
                          "\"rope\"", quoteForMessage(position));
  checkWholeRotation(fields);
  return fields.status();
}

// Reads which layers have a window, and of how many tokens.
static absl::Status readWindows(const JsonObject &root,
                                const ModelFamily &family,
                                ModelConfig &config) {
  ConfigFields fields(root);
  // null says that there is none.
  int64_t window = root.raw().contains("sliding_window")
                       ? fields.integer("sliding_window").value_or(0)
                       : family.window;
  if (!fields.flag("use_sliding_window").value_or(family.usesWindow) ||
      window >= config.maxContext)
    window = 0;
  int64_t interval = family.interval;
  if (family.windows == WindowRule::AllButNth)
    interval = fields.integer("sliding_window_pattern").value_or(interval);
  else if (family.windows == WindowRule::From)
    interval = fields.integer("max_window_layers").value_or(interval);
  else
    interval = fields.integer("no_rope_layer_interval").value_or(interval);
  fields.requireSupported(window == 0 || family.windows != WindowRule::None,
                          "sliding_window", "none", window);
  LLAMAC_RETURN_IF_ERROR(fields.status());
  std::vector<LayerAttention> &layers = config.features.layers;
  layers = family.layersOf(config.numLayers, window, interval);

  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> types,
                          root.strings("layer_types"));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int64_t> rotates,
                          root.intOrInts("no_rope_layers"));
  const auto checkCount = [&](absl::string_view key, size_t count) {
    return count == 0 || count == static_cast<size_t>(config.numLayers)
               ? absl::OkStatus()
               : root.fail(key, absl::StrCat(config.numLayers, ", one a layer"),
                           absl::StrCat(count));
  };
  LLAMAC_RETURN_IF_ERROR(checkCount("layer_types", types.size()));
  LLAMAC_RETURN_IF_ERROR(checkCount("no_rope_layers", rotates.size()));
  using Rotation = LayerAttention::Rotation;
  const Rotation local =
      family.hasLocalTheta ? Rotation::Local : Rotation::Global;
  layers.resize(config.numLayers);
  for (size_t i = 0; i < types.size(); ++i) {
    const bool isSliding = types[i] == "sliding_attention";
    if (!isSliding && types[i] != "full_attention")
      return root.unsupported("layer_types",
                              "full_attention or sliding_attention",
                              quoteForMessage(types[i]));
    if (isSliding && family.windows == WindowRule::None)
      return root.unsupported("layer_types", "full_attention",
                              quoteForMessage(types[i]));
    layers[i].window = isSliding ? window : 0;
    if (family.windows != WindowRule::None)
      layers[i].rotation = isSliding ? local : Rotation::Global;
  }
  if (family.interval > 0 && family.windows == WindowRule::None)
    for (size_t i = 0; i < rotates.size(); ++i)
      layers[i].rotation = rotates[i] ? Rotation::Global : Rotation::None;
  if (std::all_of(layers.begin(), layers.end(),
                  [](const auto &layer) { return layer == LayerAttention{}; }))
    layers.clear();
  return absl::OkStatus();
}

// sqrt(d) as the number that Transformers multiplies by, in the type of the
// model.
static double embeddingScale(int64_t dim, absl::string_view type) {
  auto scale = static_cast<float>(std::sqrt(static_cast<double>(dim)));
  for (const auto &[name, stored] : {std::pair("bfloat16", DataType::BF16),
                                     std::pair("float16", DataType::F16)})
    if (type == name) {
      uint8_t bytes[2];
      quantizeRow(stored, &scale, 1, bytes);
      dequantizeRow(stored, bytes, 1, &scale);
    }
  return scale;
}

static absl::Status readFeatures(const JsonObject &root,
                                 const ModelFamily &family,
                                 ModelConfig &config) {
  ModelFeatures &features = config.features;
  features = family.features;
  ConfigFields fields(root);
  if (family.hasScales) {
    fields.positive("embedding_multiplier", features.embeddingScale, false);
    fields.positive("residual_multiplier", features.residualScale, false);
    fields.positive("attention_multiplier", features.attentionScale, false);
    double divisor = 1;
    fields.positive("logits_scaling", divisor, false);
    features.logitsScale = 1 / divisor;
  }
  if (family.embeddingBySqrtDim)
    features.embeddingScale = embeddingScale(
        config.dim,
        fields.text("torch_dtype").value_or(fields.text("dtype").value_or("")));
  if (family.hasLocalTheta) {
    features.localTheta = 10000;
    fields.positive("rope_local_base_freq", features.localTheta, false);
    double size = 256;
    fields.positive("query_pre_attn_scalar", size, false);
    features.attentionScale = 1 / std::sqrt(size);
  }
  LLAMAC_RETURN_IF_ERROR(fields.status());
  return readWindows(root, family, config);
}

// Reads the object rope_scaling, or rope_parameters as newer files have it.
static absl::Status readScaling(const JsonObject &rope, ModelConfig &config) {
  ConfigFields fields(rope);
  config.ropeTheta = fields.number("rope_theta").value_or(config.ropeTheta);
  checkWholeRotation(fields);
  fields.requireSupported(!rope.has("mrope_section"), "mrope_section", "none",
                          "positions of several kinds");
  const absl::string_view typeKey =
      rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = fields.text(typeKey).value_or("default");
  if (type == "default")
    return fields.status();
  if (type == "linear") {
    double factor = 1;
    fields.positive("factor", factor, true);
    config.ropeFactors.assign(static_cast<size_t>(config.headSize / 2),
                              static_cast<float>(factor));
    return fields.status();
  }
  fields.requireSupported(type == "llama3", typeKey,
                          "\"llama3\", \"linear\" or \"default\"",
                          quoteForMessage(type));
  RopeScaling &scaling = config.ropeScaling.emplace();
  fields.positive("factor", scaling.factor, true);
  fields.positive("low_freq_factor", scaling.lowFreqFactor, true);
  fields.positive("high_freq_factor", scaling.highFreqFactor, true);
  fields.positive("original_max_position_embeddings", scaling.oldContext, true);
  fields.require(
      scaling.highFreqFactor > scaling.lowFreqFactor, "high_freq_factor",
      absl::StrCat("more than low_freq_factor = ", scaling.lowFreqFactor),
      scaling.highFreqFactor);
  return fields.status();
}

// Reads the sizes, which are checked before anything is made of them.
static absl::Status readConfig(const JsonObject &root,
                               const ModelFamily &family, ModelConfig &config) {
  LLAMAC_RETURN_IF_ERROR(checkFeatures(root, family));
  ConfigFields fields(root);
  config.dim = fields.requiredInteger("hidden_size");
  config.numLayers = fields.requiredInteger("num_hidden_layers");
  config.numHeads = fields.requiredInteger("num_attention_heads");
  config.ffnDim = fields.requiredInteger("intermediate_size");
  config.vocabSize = fields.requiredInteger("vocab_size");
  config.numKvHeads =
      fields.integer("num_key_value_heads").value_or(config.numHeads);
  if (family.headSize > 0 && !root.has("head_dim"))
    config.headSize = family.headSize;
  else
    fields.headSize("head_dim", "num_attention_heads", "hidden_size", config);
  config.maxContext =
      fields.integer("max_position_embeddings").value_or(family.maxContext);
  config.normEps = fields.number("rms_norm_eps").value_or(family.normEps);
  config.tiedEmbeddings =
      fields.flag("tie_word_embeddings").value_or(family.tied);
  config.ropeTheta = fields.number("rope_theta").value_or(family.theta);
  return fields.status();
}

// Reads the form of newer files, which have parameters for each kind of layer.
static absl::Status readRopeOfKinds(const JsonObject &rope,
                                    const ModelFamily &family,
                                    ModelConfig &config) {
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> full,
                          rope.optionalObject("full_attention"));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> sliding,
                          rope.optionalObject("sliding_attention"));
  if (!full || !sliding || !family.hasLocalTheta)
    return rope.unsupported("rope_parameters", "one theta for all layers",
                            "one for each kind");
  LLAMAC_RETURN_IF_ERROR(readScaling(*full, config));
  ConfigFields fields(*sliding);
  fields.positive("rope_theta", config.features.localTheta, true);
  checkWholeRotation(fields);
  const std::string type = fields.text("rope_type").value_or("default");
  fields.requireSupported(type == "default", "rope_type", "\"default\"",
                          quoteForMessage(type));
  return fields.status();
}

static absl::Status readRopeAndFeatures(const JsonObject &root,
                                        const ModelFamily &family,
                                        ModelConfig &config) {
  LLAMAC_RETURN_IF_ERROR(readFeatures(root, family, config));
  for (absl::string_view key : {"rope_scaling", "rope_parameters"}) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> rope,
                            root.optionalObject(key));
    if (rope && (rope->has("full_attention") || rope->has("sliding_attention")))
      LLAMAC_RETURN_IF_ERROR(readRopeOfKinds(*rope, family, config));
    else if (rope)
      LLAMAC_RETURN_IF_ERROR(readScaling(*rope, config));
  }
  return absl::OkStatus();
}

// Where the index says that each tensor is, by the tensor's name.
using TensorIndex = absl::flat_hash_map<std::string, std::string>;

static absl::StatusOr<TensorIndex> readIndex(const std::string &path,
                                             Checkpoint &checkpoint) {
  TensorIndex index;
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          readConfigFile(path, checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> map,
                          root.optionalObject("weight_map"));
  if (!map)
    return root.fail("weight_map", "an object", "none");
  for (const auto &[tensor, unused] : map->raw().items()) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<std::string> name,
                            map->optionalString(tensor));
    // A plain name: the index must not reach out of its directory.
    if (!name || !absl::EndsWith(*name, ".safetensors") ||
        name->find('/') != std::string::npos)
      return map->fail(quoteForMessage(tensor),
                       "the name of a .safetensors file beside the index",
                       quoteForMessage(name.value_or("")));
    index.emplace(tensor, *name);
  }
  return index;
}

static absl::Status checkIndex(const TensorIndex &index, const TensorSet &set) {
  for (const auto &[name, tensor] : set.tensors) {
    const auto indexed = index.find(name);
    if (indexed == index.end())
      return malformed(tensor.file, tensor.offset, name,
                       "an entry in the index", "none");
    if (indexed->second != baseName(tensor.file))
      return malformed(
          tensor.file, tensor.offset, name,
          absl::StrCat("to be in ", indexed->second, " as the index says"),
          baseName(tensor.file));
  }
  return absl::OkStatus();
}

static absl::Status
readHuggingFaceWeights(const std::string &directory, const ModelFamily &family,
                       const std::optional<Quantization> &quantization,
                       Checkpoint &checkpoint) {
  const std::string indexPath =
      joinPath(directory, "model.safetensors.index.json");
  const bool hasIndex = fileExists(indexPath);
  TensorIndex index;
  std::set<std::string> names;
  if (hasIndex) {
    LLAMAC_ASSIGN_OR_RETURN(index, readIndex(indexPath, checkpoint));
    for (const auto &[unused, name] : index)
      names.insert(name);
  } else if (fileExists(joinPath(directory, "model.safetensors"))) {
    names = {"model.safetensors"};
  } else {
    LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                            listFiles(directory, "", ".safetensors"));
    names.insert(all.begin(), all.end());
  }
  std::vector<TensorSet> whole = {
      {names.size() == 1 ? joinPath(directory, *names.begin()) : directory}};
  for (const std::string &name : names)
    LLAMAC_RETURN_IF_ERROR(
        addTensorFile(joinPath(directory, name),
                      quantization ? readPackedSafetensors : readSafetensors,
                      checkpoint.weights, whole[0]));
  if (hasIndex)
    LLAMAC_RETURN_IF_ERROR(checkIndex(index, whole[0]));
  // Tensors of old checkpoints that the configuration determines.
  absl::erase_if(whole[0].tensors, [](const auto &entry) {
    return absl::EndsWith(entry.first, ".rotary_emb.inv_freq");
  });
  if (quantization)
    LLAMAC_RETURN_IF_ERROR(joinQuantized(*quantization, checkpoint.config,
                                         checkpoint.weights, whole[0]));
  return addWeights(whole,
                    {.name = &ExpectedWeight::hfName,
                     .rotaryHalves = true,
                     .fused = family.fusedTensors,
                     .shiftedNorms = family.shiftedNorms},
                    checkpoint);
}

absl::Status readHuggingFaceCheckpoint(const std::string &directory,
                                       const std::string &configPath,
                                       const OpenOptions &options,
                                       bool withWeights,
                                       Checkpoint &checkpoint) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          readConfigFile(configPath, checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::root(document));
  const bool isHead = isEagleHead(file);
  JsonObject root = file;
  if (isHead) {
    LLAMAC_ASSIGN_OR_RETURN(root, layerConfigOfHead(file));
  }
  const ModelFamily *family = findFamily(&ModelFamily::modelType, "llama");
  if (!isHead) {
    LLAMAC_ASSIGN_OR_RETURN(family, readFamily(root));
  }
  checkpoint.family = family;
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<Quantization> quantization,
                          readQuantization(root, directory, checkpoint));
  for (auto *read : {readConfig, readRopeAndFeatures}) {
    LLAMAC_RETURN_IF_ERROR(read(root, *family, checkpoint.config));
    LLAMAC_RETURN_IF_ERROR(withContext(validateModelConfig(checkpoint.config),
                                       absl::StrCat(configPath, ":0")));
  }
  if (isHead) {
    LLAMAC_RETURN_IF_ERROR(readEagleConfig(file, root, options, checkpoint));
    // It has the tokenizer of its model.
    return withWeights ? readEagleWeights(directory, options, checkpoint)
                       : absl::OkStatus();
  }
  if (quantization && !withWeights)
    printWarning(absl::StrCat(
        configPath, ": ", quantization->name,
        ": the weights, which say in what format they are kept, are not read; "
        "they count as plain ones"));
  if (withWeights)
    LLAMAC_RETURN_IF_ERROR(
        readHuggingFaceWeights(directory, *family, quantization, checkpoint));

  LLAMAC_ASSIGN_OR_RETURN(checkpoint.tokenizer.stopIds,
                          root.intOrInts("eos_token_id"));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int64_t> bos,
                          root.intOrInts("bos_token_id"));
  if (bos.size() == 1)
    checkpoint.tokenizer.bos = bos[0];
  LLAMAC_RETURN_IF_ERROR(findTokenizer(directory, checkpoint));
  return readGenerationConfig(directory, checkpoint);
}

} // namespace llamac
