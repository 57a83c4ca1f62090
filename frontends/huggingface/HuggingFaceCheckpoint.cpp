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

#include "frontends/huggingface/HuggingFaceCheckpoint.h"

#include "frontends/ByteCursor.h"
#include "frontends/Files.h"
#include "frontends/WeightTable.h"
#include "frontends/huggingface/SafetensorsReader.h"
#include "runtime/base/Status.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <set>

namespace llamac {

static absl::Status checkArchitecture(const JsonObject &root) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> architectures,
                          root.strings("architectures"));
  for (const std::string &architecture : architectures)
    if (architecture != "LlamaForCausalLM")
      return root.unsupported("architectures", "LlamaForCausalLM",
                              quoteForMessage(architecture));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<std::string> type,
                          root.optionalString("model_type"));
  if (architectures.empty() && !type)
    return root.fail("architectures", "LlamaForCausalLM", "none");
  if (type && *type != "llama")
    return root.unsupported("model_type", "\"llama\"", quoteForMessage(*type));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<std::string> activation,
                          root.optionalString("hidden_act"));
  if (activation && *activation != "silu")
    return root.unsupported("hidden_act", "\"silu\"",
                            quoteForMessage(*activation));
  for (absl::string_view key : {"attention_bias", "mlp_bias"}) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<bool> bias,
                            root.optionalBool(key));
    if (bias == true)
      return root.unsupported(key, "false", "true");
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> partial,
                          root.optionalNumber("partial_rotary_factor"));
  if (partial && *partial != 1.0)
    return root.unsupported("partial_rotary_factor", "1",
                            absl::StrCat(*partial));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> quantization,
                          root.optionalObject("quantization_config"));
  if (quantization) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<std::string> method,
                            quantization->optionalString("quant_method"));
    return root.unsupported("quantization_config", "plain weights",
                            quoteForMessage(method.value_or("quantisation")));
  }
  return absl::OkStatus();
}

// Reads the object rope_scaling, or rope_parameters as newer files have it.
static absl::Status readScaling(const JsonObject &rope, ModelConfig &config) {
  LLAMAC_ASSIGN_OR_RETURN(std::optional<std::string> type,
                          rope.optionalString("rope_type"));
  const absl::string_view typeKey = type ? "rope_type" : "type";
  if (!type) {
    LLAMAC_ASSIGN_OR_RETURN(type, rope.optionalString("type"));
  }
  if (!type || *type == "default")
    return absl::OkStatus();
  if (*type != "llama3")
    return rope.unsupported(typeKey, "\"llama3\" or \"default\"",
                            quoteForMessage(*type));
  RopeScaling scaling;
  const std::pair<absl::string_view, double *> numbers[] = {
      {"factor", &scaling.factor},
      {"low_freq_factor", &scaling.lowFreqFactor},
      {"high_freq_factor", &scaling.highFreqFactor},
      {"original_max_position_embeddings", &scaling.oldContext},
  };
  for (const auto &[key, number] : numbers) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> given,
                            rope.optionalNumber(key));
    if (!given || *given <= 0)
      return rope.fail(key, "a positive number",
                       given ? absl::StrCat(*given) : "none");
    *number = *given;
  }
  if (scaling.highFreqFactor <= scaling.lowFreqFactor)
    return rope.fail(
        "high_freq_factor",
        absl::StrCat("more than low_freq_factor = ", scaling.lowFreqFactor),
        absl::StrCat(scaling.highFreqFactor));
  config.ropeScaling = scaling;
  return absl::OkStatus();
}

static absl::Status readConfig(const JsonObject &root, ModelConfig &config) {
  LLAMAC_RETURN_IF_ERROR(checkArchitecture(root));
  LLAMAC_ASSIGN_OR_RETURN(config.dim, root.requiredInt("hidden_size"));
  LLAMAC_ASSIGN_OR_RETURN(config.numLayers,
                          root.requiredInt("num_hidden_layers"));
  LLAMAC_ASSIGN_OR_RETURN(config.numHeads,
                          root.requiredInt("num_attention_heads"));
  LLAMAC_ASSIGN_OR_RETURN(config.ffnDim, root.requiredInt("intermediate_size"));
  LLAMAC_ASSIGN_OR_RETURN(config.vocabSize, root.requiredInt("vocab_size"));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> kvHeads,
                          root.optionalInt("num_key_value_heads"));
  config.numKvHeads = kvHeads.value_or(config.numHeads);
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> headSize,
                          root.optionalInt("head_dim"));
  if (config.numHeads <= 0 || (!headSize && config.dim % config.numHeads != 0))
    return root.fail("num_attention_heads",
                     absl::StrCat("a divisor of hidden_size = ", config.dim),
                     absl::StrCat(config.numHeads));
  config.headSize = headSize.value_or(config.dim / config.numHeads);
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> context,
                          root.optionalInt("max_position_embeddings"));
  config.maxContext = context.value_or(2048);
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> eps,
                          root.optionalNumber("rms_norm_eps"));
  config.normEps = eps.value_or(1e-6);
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<bool> tied,
                          root.optionalBool("tie_word_embeddings"));
  config.tiedEmbeddings = tied.value_or(false);

  LLAMAC_ASSIGN_OR_RETURN(std::optional<double> theta,
                          root.optionalNumber("rope_theta"));
  for (absl::string_view key : {"rope_scaling", "rope_parameters"}) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> rope,
                            root.optionalObject(key));
    if (!rope)
      continue;
    LLAMAC_RETURN_IF_ERROR(readScaling(*rope, config));
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> inner,
                            rope->optionalNumber("rope_theta"));
    if (inner)
      theta = inner;
  }
  config.ropeTheta = theta.value_or(10000.0);
  return absl::OkStatus();
}

namespace {

// The names of the files that hold the weights; with an index also where it
// says each tensor is.
struct WeightFiles {
  std::vector<std::string> names;
  absl::flat_hash_map<std::string, std::string> index;
};

} // namespace

static absl::StatusOr<WeightFiles> findFiles(const std::string &directory,
                                             Checkpoint &checkpoint) {
  WeightFiles files;
  const std::string indexPath =
      joinPath(directory, "model.safetensors.index.json");
  if (fileExists(indexPath)) {
    LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                            readConfigFile(indexPath, checkpoint));
    LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> map,
                            root.optionalObject("weight_map"));
    if (!map)
      return root.fail("weight_map", "an object", "none");
    std::set<std::string> names;
    for (const auto &[tensor, unused] : map->raw().items()) {
      LLAMAC_ASSIGN_OR_RETURN(const std::optional<std::string> name,
                              map->optionalString(tensor));
      // A plain name: the index must not reach out of its directory.
      if (!name || !absl::EndsWith(*name, ".safetensors") ||
          name->find('/') != std::string::npos)
        return map->fail(quoteForMessage(tensor),
                         "the name of a .safetensors file beside the index",
                         quoteForMessage(name.value_or("")));
      names.insert(*name);
      files.index.emplace(tensor, *name);
    }
    files.names.assign(names.begin(), names.end());
    return files;
  }
  if (fileExists(joinPath(directory, "model.safetensors"))) {
    files.names = {"model.safetensors"};
    return files;
  }
  LLAMAC_ASSIGN_OR_RETURN(files.names,
                          listFiles(directory, "", ".safetensors"));
  return files;
}

// Tensors of old checkpoints that follow from the configuration.
static bool isIgnored(absl::string_view name) {
  return absl::EndsWith(name, ".rotary_emb.inv_freq");
}

static absl::Status readWeights(const std::string &directory,
                                Checkpoint &checkpoint) {
  const ModelConfig &config = checkpoint.config;
  WeightMap &weights = checkpoint.weights;
  LLAMAC_ASSIGN_OR_RETURN(const WeightFiles files,
                          findFiles(directory, checkpoint));
  absl::flat_hash_map<std::string, FoundTensor> found;
  for (const std::string &name : files.names) {
    LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                            MappedFile::open(joinPath(directory, name)));
    LLAMAC_ASSIGN_OR_RETURN(std::vector<SafetensorsTensor> tensors,
                            readSafetensors(*file));
    const uint32_t number = weights.addFile(file);
    for (SafetensorsTensor &tensor : tensors) {
      FoundTensor entry;
      entry.name = tensor.name;
      entry.file = file->path();
      entry.type = tensor.type;
      entry.shape = std::move(tensor.shape);
      entry.extent = {number, tensor.offset, tensor.size};
      if (!files.index.empty()) {
        const auto indexed = files.index.find(tensor.name);
        if (indexed == files.index.end() || indexed->second != name)
          return malformed(entry.file, entry.extent.offset, entry.name,
                           indexed == files.index.end()
                               ? "an entry in the index"
                               : absl::StrCat("to be in ", indexed->second,
                                              " as the index says"),
                           indexed == files.index.end() ? "none" : name);
      }
      const auto [existing, isNew] =
          found.emplace(tensor.name, std::move(entry));
      if (!isNew)
        return malformed(file->path(), tensor.offset, tensor.name,
                         "a tensor in one file",
                         absl::StrCat("another in ", existing->second.file));
    }
  }

  const std::string where =
      files.names.size() == 1 ? joinPath(directory, files.names[0]) : directory;
  for (const ExpectedWeight &expected : expectedWeights(config)) {
    const auto entry = found.find(expected.hfName);
    // With tied embeddings a stored lm_head is a copy that is not used.
    if (expected.name == "output" && config.tiedEmbeddings) {
      found.erase(expected.hfName);
      continue;
    }
    if (entry == found.end())
      return missingTensor(where, expected.hfName, expected);
    const FoundTensor &tensor = entry->second;
    const std::vector<uint64_t> shape =
        expected.isVector
            ? std::vector<uint64_t>{static_cast<uint64_t>(expected.cols)}
            : std::vector<uint64_t>{static_cast<uint64_t>(expected.rows),
                                    static_cast<uint64_t>(expected.cols)};
    if (tensor.shape != shape)
      return wrongShape(tensor, expected);
    WeightSource source;
    source.name = expected.name;
    source.tensor = expected.hfName;
    source.type = tensor.type;
    source.rows = expected.rows;
    source.cols = expected.cols;
    source.parts = {tensor.extent};
    source.rotaryHalves = expected.isRotary ? config.headSize : 0;
    LLAMAC_RETURN_IF_ERROR(weights.add(std::move(source)));
    found.erase(entry);
  }
  for (const auto &[name, tensor] : found)
    if (!isIgnored(name))
      return unknownTensor(tensor);
  return absl::OkStatus();
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
    LLAMAC_RETURN_IF_ERROR(readWeights(directory, checkpoint));

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
