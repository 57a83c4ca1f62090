//===- HuggingFaceCheckpoint.cpp - Hugging Face's model directories -------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// config.json holds hyperparameters (defaults are those of Transformers'
// LlamaConfig), the weights are in model.safetensors, or in several files that
// model.safetensors.index.json lists. Rows of q_proj and k_proj are in the
// order of rotary halves, which the weight map undoes as it reads.
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteCursor.h"
#include "frontends/CheckpointFormats.h"
#include "frontends/Files.h"
#include "frontends/WeightTable.h"
#include "runtime/base/Status.h"

#include "absl/strings/match.h"

#include <set>

namespace llamac {

// Refuses what goes beyond a plain Llama model.
static absl::Status checkArchitecture(const JsonObject &root) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> architectures,
                          root.strings("architectures"));
  ConfigFields fields(root);
  for (const std::string &architecture : architectures)
    fields.requireSupported(architecture == "LlamaForCausalLM", "architectures",
                            "LlamaForCausalLM", quoteForMessage(architecture));
  const std::optional<std::string> type = fields.text("model_type");
  fields.require(!architectures.empty() || type, "architectures",
                 "LlamaForCausalLM", "none");
  for (const auto &[key, known] :
       {std::pair("model_type", "llama"), std::pair("hidden_act", "silu")}) {
    const std::string given = fields.text(key).value_or(known);
    fields.requireSupported(given == known, key, quoteForMessage(known),
                            quoteForMessage(given));
  }
  for (absl::string_view key : {"attention_bias", "mlp_bias"})
    fields.requireSupported(!fields.flag(key).value_or(false), key, "false",
                            "true");
  const double partial = fields.number("partial_rotary_factor").value_or(1);
  fields.requireSupported(partial == 1, "partial_rotary_factor", "1", partial);
  LLAMAC_RETURN_IF_ERROR(fields.status());
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> quantization,
                          root.optionalObject("quantization_config"));
  if (!quantization)
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<std::string> method,
                          quantization->optionalString("quant_method"));
  return root.unsupported("quantization_config", "plain weights",
                          quoteForMessage(method.value_or("quantisation")));
}

// Reads the object rope_scaling, or rope_parameters as newer files have it.
static absl::Status readScaling(const JsonObject &rope, ModelConfig &config) {
  ConfigFields fields(rope);
  config.ropeTheta = fields.number("rope_theta").value_or(config.ropeTheta);
  const absl::string_view typeKey =
      rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = fields.text(typeKey).value_or("default");
  if (type == "default")
    return fields.status();
  fields.requireSupported(type == "llama3", typeKey,
                          "\"llama3\" or \"default\"", quoteForMessage(type));
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

static absl::Status readConfig(const JsonObject &root, ModelConfig &config) {
  LLAMAC_RETURN_IF_ERROR(checkArchitecture(root));
  ConfigFields fields(root);
  config.dim = fields.requiredInteger("hidden_size");
  config.numLayers = fields.requiredInteger("num_hidden_layers");
  config.numHeads = fields.requiredInteger("num_attention_heads");
  config.ffnDim = fields.requiredInteger("intermediate_size");
  config.vocabSize = fields.requiredInteger("vocab_size");
  config.numKvHeads =
      fields.integer("num_key_value_heads").value_or(config.numHeads);
  fields.headSize("head_dim", "num_attention_heads", "hidden_size", config);
  config.maxContext = fields.integer("max_position_embeddings").value_or(2048);
  config.normEps = fields.number("rms_norm_eps").value_or(1e-6);
  config.tiedEmbeddings = fields.flag("tie_word_embeddings").value_or(false);
  config.ropeTheta = fields.number("rope_theta").value_or(10000.0);
  LLAMAC_RETURN_IF_ERROR(fields.status());
  for (absl::string_view key : {"rope_scaling", "rope_parameters"}) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> rope,
                            root.optionalObject(key));
    if (rope)
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

static absl::Status readHuggingFaceWeights(const std::string &directory,
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
    LLAMAC_RETURN_IF_ERROR(addTensorFile(joinPath(directory, name),
                                         readSafetensors, checkpoint.weights,
                                         whole[0]));
  if (hasIndex)
    LLAMAC_RETURN_IF_ERROR(checkIndex(index, whole[0]));
  // Tensors of old checkpoints that the configuration determines.
  absl::erase_if(whole[0].tensors, [](const auto &entry) {
    return absl::EndsWith(entry.first, ".rotary_emb.inv_freq");
  });
  return addWeights(whole, &ExpectedWeight::hfName, /*rotaryHalves=*/true,
                    checkpoint);
}

absl::Status readHuggingFaceCheckpoint(const std::string &directory,
                                       const std::string &configPath,
                                       bool withWeights,
                                       Checkpoint &checkpoint) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          readConfigFile(configPath, checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  LLAMAC_RETURN_IF_ERROR(readConfig(root, checkpoint.config));
  LLAMAC_RETURN_IF_ERROR(withContext(validateModelConfig(checkpoint.config),
                                     absl::StrCat(configPath, ":0")));
  if (withWeights)
    LLAMAC_RETURN_IF_ERROR(readHuggingFaceWeights(directory, checkpoint));

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
