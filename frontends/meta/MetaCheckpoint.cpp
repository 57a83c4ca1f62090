//===- MetaCheckpoint.cpp - Meta's model directories ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// params.json holds hyperparameters, consolidated.NN.pth the weights. Several
// files are shards for tensor parallelism: each has every tensor, and a tensor
// is partitioned by rows, by columns or repeated.
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteCursor.h"
#include "frontends/CheckpointFormats.h"
#include "frontends/Families.h"
#include "frontends/Files.h"
#include "frontends/WeightTable.h"
#include "runtime/base/Status.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_format.h"

namespace llamac {

int64_t metaFfnSize(int64_t dim, std::optional<double> multiplier,
                    int64_t multipleOf) {
  auto size = static_cast<int64_t>(static_cast<double>(2 * (4 * dim)) / 3.0);
  if (multiplier)
    size = static_cast<int64_t>(*multiplier * static_cast<double>(size));
  return (size + multipleOf - 1) / multipleOf * multipleOf;
}

double MetaDefaults::ropeFactor(int64_t dim, int64_t numLayers) {
  const bool isLlama32 =
      (numLayers == 16 && dim == 2048) || (numLayers == 28 && dim == 3072);
  return isLlama32 ? 32.0 : 8.0;
}

int64_t MetaDefaults::maxContext(double theta, bool scaled) {
  if (scaled)
    return 131072;
  return theta >= 500000.0 ? 8192 : 4096;
}

// Keys of models that are more than a Llama text model, and what they mean.
static constexpr std::pair<absl::string_view, absl::string_view> refusedKeys[] =
    {
        {"quantization_args", "a quantised checkpoint"},
        {"lora_args", "LoRA adapters"},
        {"moe", "a mixture of experts"},
        {"moe_args", "a mixture of experts"},
        {"vision_chunk_size", "a vision model"},
        {"vision_args", "a vision model"},
        {"sliding_window", "attention within a window"},
};

// All others that a params.json may have; one that is not known could change
// what the model computes.
static constexpr absl::string_view otherKeys[] = {
    "dim",
    "ffn_dim_multiplier",
    "head_dim",
    "hidden_dim",
    "high_freq_factor",
    "low_freq_factor",
    "max_batch_size", // For Meta's own program.
    "max_seq_len",
    "model_parallel_size",
    "multiple_of",
    "n_heads",
    "n_kv_heads",
    "n_layers",
    "norm_eps",
    "old_context_len",
    "rope_scaling_factor",
    "rope_theta",
    "use_scaled_rope",
    "vocab_size",
};

// Reads params.json; vocabSize stays -1 where it says so.
static absl::Status readParams(const JsonObject &params,
                               const OpenOptions &options,
                               ModelConfig &config) {
  ConfigFields fields(params);
  for (const auto &[key, meaning] : refusedKeys)
    fields.requireSupported(!params.has(key), key, "a Llama text model",
                            meaning);
  for (const auto &[key, value] : params.raw().items())
    fields.requireSupported(value.is_null() ||
                                absl::c_linear_search(otherKeys, key),
                            quoteForMessage(key), "only the keys of a Llama",
                            jsonForMessage(value));
  config.dim = fields.requiredInteger("dim");
  config.numLayers = fields.requiredInteger("n_layers");
  config.numHeads = fields.requiredInteger("n_heads");
  constexpr int64_t maxSize = int64_t{1} << 31;
  fields.require(config.dim > 0 && config.dim < maxSize, "dim",
                 "a size in [1, 2^31)", config.dim);
  fields.require(config.numHeads > 0 && config.numHeads <= config.dim,
                 "n_heads", absl::StrCat("1 to dim = ", config.dim),
                 config.numHeads);
  config.numKvHeads = fields.integer("n_kv_heads").value_or(config.numHeads);
  fields.headSize("head_dim", "n_heads", "dim", config);
  config.vocabSize = fields.integer("vocab_size").value_or(-1);
  config.normEps = fields.number("norm_eps").value_or(1e-5);
  const int64_t multipleOf = fields.integer("multiple_of").value_or(256);
  const std::optional<double> multiplier = fields.number("ffn_dim_multiplier");
  fields.require(multipleOf > 0 && multipleOf < maxSize, "multiple_of",
                 "a size in [1, 2^31)", multipleOf);
  fields.require(!multiplier || (*multiplier > 0 && *multiplier < 0x1p31),
                 "ffn_dim_multiplier", "a number in (0, 2^31)",
                 multiplier.value_or(0));
  LLAMAC_RETURN_IF_ERROR(fields.status());
  config.ffnDim =
      fields
          .integer("hidden_dim") // Mistral's files have this key.
          .value_or(metaFfnSize(config.dim, multiplier, multipleOf));

  config.ropeTheta = fields.number("rope_theta").value_or(10000.0);
  if (fields.flag("use_scaled_rope").value_or(false)) {
    RopeScaling &scaling = config.ropeScaling.emplace();
    scaling.factor = MetaDefaults::ropeFactor(config.dim, config.numLayers);
    fields.positive("rope_scaling_factor", scaling.factor, false);
    fields.positive("low_freq_factor", scaling.lowFreqFactor, false);
    fields.positive("high_freq_factor", scaling.highFreqFactor, false);
    fields.positive("old_context_len", scaling.oldContext, false);
    scaling.factor = options.ropeFactor.value_or(scaling.factor);
  } else if (options.ropeFactor && fields.status().ok()) {
    return usageError("rope factor: expected a model with use_scaled_rope, got "
                      "one without scaling");
  }
  config.maxContext =
      fields.integer("max_seq_len")
          .value_or(MetaDefaults::maxContext(config.ropeTheta,
                                             config.ropeScaling.has_value()));
  return fields.status();
}

static std::string shardName(size_t number) {
  return absl::StrFormat("consolidated.%02d.pth", number);
}

static absl::StatusOr<std::vector<TensorSet>>
openShards(const std::string &directory, WeightMap &weights) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          listFiles(directory, "consolidated.", ".pth"));
  std::vector<TensorSet> shards;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string path = joinPath(directory, names[i]);
    if (names[i] != shardName(i))
      return badFileError(absl::StrCat(path, ": shard: expected ", shardName(i),
                                       " of ", names.size(), " files, got ",
                                       names[i]));
    LLAMAC_RETURN_IF_ERROR(addTensorFile(path, readTorchFile, weights,
                                         shards.emplace_back(TensorSet{path})));
  }
  return shards;
}

// The vocabulary size that the embedding's parts have, where params.json has
// none: their rows when they partition columns, the sum when they partition
// rows.
static absl::StatusOr<int64_t> inferVocabSize(const TensorParts &parts,
                                              int64_t dim) {
  uint64_t sum = 0;
  for (const FoundTensor *part : parts) {
    if (part->shape[0] > uint64_t{1} << 31)
      return malformed(part->file, part->offset, part->name,
                       absl::StrCat("a matrix of ", dim, " columns"),
                       shapeText(part->shape));
    sum += part->shape[0];
  }
  const bool splitsRows = parts[0]->shape[1] == static_cast<uint64_t>(dim);
  return static_cast<int64_t>(splitsRows ? sum : parts[0]->shape[0]);
}

// Whether every part of "output" is the embedding's own storage.
static bool sharesStorage(const TensorParts &output,
                          const TensorParts &embedding) {
  return std::equal(output.begin(), output.end(), embedding.begin(),
                    [](const FoundTensor *a, const FoundTensor *b) {
                      return a->offset == b->offset && a->shape == b->shape;
                    });
}

static absl::Status readMetaWeights(const std::string &directory,
                                    Checkpoint &checkpoint) {
  ModelConfig &config = checkpoint.config;
  LLAMAC_ASSIGN_OR_RETURN(std::vector<TensorSet> shards,
                          openShards(directory, checkpoint.weights));
  ExpectedWeight embedding;
  embedding.rows = config.vocabSize;
  embedding.cols = config.dim;
  LLAMAC_ASSIGN_OR_RETURN(
      const TensorParts parts,
      findParts(shards, "tok_embeddings.weight", embedding));
  if (config.vocabSize == -1) {
    LLAMAC_ASSIGN_OR_RETURN(config.vocabSize,
                            inferVocabSize(parts, config.dim));
  }
  LLAMAC_RETURN_IF_ERROR(withContext(
      validateModelConfig(config), absl::StrCat(directory, "/params.json:0")));

  config.tiedEmbeddings = !shards[0].tensors.contains("output.weight");
  if (!config.tiedEmbeddings) {
    LLAMAC_ASSIGN_OR_RETURN(const TensorParts output,
                            findParts(shards, "output.weight", embedding));
    config.tiedEmbeddings = sharesStorage(output, parts);
  }
  // Theta determines the rotary frequencies.
  for (TensorSet &shard : shards)
    shard.tensors.erase("rope.freqs");
  return addWeights(shards, {.name = &ExpectedWeight::metaName}, checkpoint);
}

absl::Status readMetaCheckpoint(const std::string &directory,
                                const std::string &configPath,
                                const OpenOptions &options, bool withWeights,
                                Checkpoint &checkpoint) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          readConfigFile(configPath, checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject params, JsonObject::root(document));
  checkpoint.family = findFamily(&ModelFamily::modelType, "llama");
  ModelConfig &config = checkpoint.config;
  LLAMAC_RETURN_IF_ERROR(readParams(params, options, config));
  if (withWeights) {
    LLAMAC_RETURN_IF_ERROR(readMetaWeights(directory, checkpoint));
  } else {
    if (config.vocabSize == -1)
      return params.fail("vocab_size", "a size, where there are no weights",
                         "-1 or none");
    // The shapes of Llama 3.2 are those whose embeddings Meta ties.
    config.tiedEmbeddings =
        MetaDefaults::ropeFactor(config.dim, config.numLayers) == 32.0;
    LLAMAC_RETURN_IF_ERROR(withContext(validateModelConfig(config),
                                       absl::StrCat(configPath, ":0")));
  }
  LLAMAC_RETURN_IF_ERROR(findTokenizer(directory, checkpoint));
  return readGenerationConfig(directory, checkpoint);
}

} // namespace llamac
