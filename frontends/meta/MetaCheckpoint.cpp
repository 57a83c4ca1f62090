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
// is split by rows, split by columns or repeated. Which it is follows from the
// shapes: the parts of a matrix add up to the whole in one dimension only.
//
//===----------------------------------------------------------------------===//

#include "frontends/meta/MetaCheckpoint.h"

#include "frontends/ByteCursor.h"
#include "frontends/Files.h"
#include "frontends/WeightTable.h"
#include "frontends/meta/TorchReader.h"
#include "runtime/base/Status.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <cmath>

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

namespace {

// Keys of models that are more than a Llama text model, and what they mean.
struct RefusedKey {
  absl::string_view key;
  absl::string_view meaning;
};

} // namespace

static constexpr RefusedKey refusedKeys[] = {
    {"quantization_args", "a quantised checkpoint"},
    {"lora_args", "LoRA adapters"},
    {"moe", "a mixture of experts"},
    {"moe_args", "a mixture of experts"},
    {"vision_chunk_size", "a vision model"},
    {"vision_args", "a vision model"},
};

static absl::Status readRope(const JsonObject &params,
                             const OpenOptions &options, ModelConfig &config) {
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> theta,
                          params.optionalNumber("rope_theta"));
  config.ropeTheta = theta.value_or(10000.0);
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<bool> scaled,
                          params.optionalBool("use_scaled_rope"));
  if (!scaled.value_or(false)) {
    if (options.ropeFactor)
      return usageError(absl::StrCat(
          "rope factor: expected a model with use_scaled_rope, got one "
          "without scaling"));
    return absl::OkStatus();
  }
  RopeScaling scaling;
  scaling.factor = MetaDefaults::ropeFactor(config.dim, config.numLayers);
  const std::pair<absl::string_view, double *> numbers[] = {
      {"rope_scaling_factor", &scaling.factor},
      {"low_freq_factor", &scaling.lowFreqFactor},
      {"high_freq_factor", &scaling.highFreqFactor},
      {"old_context_len", &scaling.oldContext},
  };
  for (const auto &[key, number] : numbers) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> given,
                            params.optionalNumber(key));
    if (given && *given <= 0)
      return params.fail(key, "a positive number", absl::StrCat(*given));
    *number = given.value_or(*number);
  }
  scaling.factor = options.ropeFactor.value_or(scaling.factor);
  config.ropeScaling = scaling;
  return absl::OkStatus();
}

// Reads params.json; vocabSize stays -1 where it says so.
static absl::Status readParams(const JsonObject &params,
                               const OpenOptions &options,
                               ModelConfig &config) {
  for (const RefusedKey &refused : refusedKeys)
    if (params.has(refused.key))
      return params.unsupported(refused.key, "a Llama text model",
                                refused.meaning);
  LLAMAC_ASSIGN_OR_RETURN(config.dim, params.requiredInt("dim"));
  LLAMAC_ASSIGN_OR_RETURN(config.numLayers, params.requiredInt("n_layers"));
  LLAMAC_ASSIGN_OR_RETURN(config.numHeads, params.requiredInt("n_heads"));
  constexpr int64_t maxSize = int64_t{1} << 31;
  if (config.dim <= 0 || config.dim >= maxSize)
    return params.fail("dim", "a size in [1, 2^31)", absl::StrCat(config.dim));
  if (config.numHeads <= 0 || config.numHeads > config.dim)
    return params.fail("n_heads", absl::StrCat("1 to dim = ", config.dim),
                       absl::StrCat(config.numHeads));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> kvHeads,
                          params.optionalInt("n_kv_heads"));
  config.numKvHeads = kvHeads.value_or(config.numHeads);
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> headSize,
                          params.optionalInt("head_dim"));
  if (!headSize && config.dim % config.numHeads != 0)
    return params.fail("n_heads",
                       absl::StrCat("a divisor of dim = ", config.dim),
                       absl::StrCat(config.numHeads));
  config.headSize = headSize.value_or(config.dim / config.numHeads);
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> vocab,
                          params.optionalInt("vocab_size"));
  config.vocabSize = vocab.value_or(-1);
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> eps,
                          params.optionalNumber("norm_eps"));
  config.normEps = eps.value_or(1e-5);

  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> multipleOf,
                          params.optionalInt("multiple_of"));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> multiplier,
                          params.optionalNumber("ffn_dim_multiplier"));
  if (multipleOf && (*multipleOf <= 0 || *multipleOf >= maxSize))
    return params.fail("multiple_of", "a size in [1, 2^31)",
                       absl::StrCat(*multipleOf));
  if (multiplier && !(*multiplier > 0 && *multiplier < 0x1p31))
    return params.fail("ffn_dim_multiplier", "a number in (0, 2^31)",
                       absl::StrCat(*multiplier));
  config.ffnDim = metaFfnSize(config.dim, multiplier, multipleOf.value_or(256));

  LLAMAC_RETURN_IF_ERROR(readRope(params, options, config));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> context,
                          params.optionalInt("max_seq_len"));
  config.maxContext = context.value_or(MetaDefaults::maxContext(
      config.ropeTheta, config.ropeScaling.has_value()));
  return absl::OkStatus();
}

// The tensors of one shard by name.
using Shard = absl::flat_hash_map<std::string, FoundTensor>;

static absl::StatusOr<std::vector<Shard>>
openShards(const std::string &directory, WeightMap &weights) {
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          listFiles(directory, "consolidated.", ".pth"));
  std::vector<Shard> shards;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string expected = absl::StrFormat("consolidated.%02d.pth", i);
    if (names[i] != expected)
      return badFileError(absl::StrCat(joinPath(directory, names[i]),
                                       ": shard: expected ", expected, " of ",
                                       names.size(), " files, got ", names[i]));
    LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                            MappedFile::open(joinPath(directory, names[i])));
    LLAMAC_ASSIGN_OR_RETURN(std::vector<TorchTensor> tensors,
                            readTorchFile(file));
    const uint32_t number = weights.addFile(file);
    Shard &shard = shards.emplace_back();
    for (TorchTensor &tensor : tensors) {
      FoundTensor found;
      found.name = tensor.name;
      found.file = file->path();
      found.type = tensor.type;
      found.shape = std::move(tensor.shape);
      found.extent = {number, tensor.offset, tensor.size};
      shard.emplace(std::move(tensor.name), std::move(found));
    }
  }
  return shards;
}

// The parts of `expected` in all shards.
static absl::StatusOr<std::vector<const FoundTensor *>>
findParts(const std::vector<Shard> &shards, const std::string &directory,
          const ExpectedWeight &expected) {
  std::vector<const FoundTensor *> parts;
  for (size_t i = 0; i < shards.size(); ++i) {
    const auto found = shards[i].find(expected.metaName);
    if (found == shards[i].end())
      return missingTensor(
          joinPath(directory, absl::StrFormat("consolidated.%02d.pth", i)),
          expected.metaName, expected);
    if (found->second.shape.size() != (expected.isVector ? 1 : 2))
      return wrongShape(found->second, expected);
    parts.push_back(&found->second);
  }
  return parts;
}

// What `parts` of a matrix split: rows (0) or columns (1).
static absl::StatusOr<int>
findSplitDim(const std::vector<const FoundTensor *> &parts,
             const ExpectedWeight &expected) {
  const uint64_t whole[] = {static_cast<uint64_t>(expected.rows),
                            static_cast<uint64_t>(expected.cols)};
  for (int dim : {0, 1}) {
    uint64_t sum = 0;
    bool fits = true;
    for (const FoundTensor *part : parts) {
      fits = fits && part->shape[1 - dim] == whole[1 - dim] &&
             part->shape[dim] <= whole[dim];
      sum += part->shape[dim];
    }
    if (fits && sum == whole[dim])
      return dim;
  }
  absl::Status error = wrongShape(*parts[0], expected);
  if (parts.size() == 1)
    return error;
  return badFileError(absl::StrCat(error.message(), " in the first of ",
                                   parts.size(), " shards"));
}

static absl::Status addWeight(const ExpectedWeight &expected,
                              const std::vector<const FoundTensor *> &parts,
                              WeightMap &weights) {
  WeightSource source;
  source.name = expected.name;
  source.tensor = expected.metaName;
  source.type = parts[0]->type;
  source.rows = expected.rows;
  source.cols = expected.cols;
  for (const FoundTensor *part : parts)
    if (part->type != source.type)
      return malformed(
          part->file, part->extent.offset, part->name,
          absl::StrCat(dataTypeName(source.type), " as in the first shard"),
          dataTypeName(part->type));
  if (expected.isVector) {
    for (const FoundTensor *part : parts)
      if (part->shape[0] != static_cast<uint64_t>(expected.cols))
        return wrongShape(*part, expected);
    source.parts = {parts[0]->extent};
  } else {
    LLAMAC_ASSIGN_OR_RETURN(source.splitDim, findSplitDim(parts, expected));
    for (const FoundTensor *part : parts)
      source.parts.push_back(part->extent);
  }
  return weights.add(std::move(source));
}

// The vocabulary size that the embedding's parts have, where params.json has
// none: their rows when they split columns, the sum when they split rows.
static absl::StatusOr<int64_t>
inferVocabSize(const std::vector<const FoundTensor *> &parts, int64_t dim) {
  uint64_t sum = 0;
  for (const FoundTensor *part : parts) {
    if (part->shape.size() != 2 || part->shape[0] > uint64_t{1} << 31)
      return malformed(part->file, part->extent.offset, part->name,
                       absl::StrCat("a matrix of ", dim, " columns"),
                       shapeText(part->shape));
    sum += part->shape[0];
  }
  const bool splitsRows = parts[0]->shape[1] == static_cast<uint64_t>(dim);
  return static_cast<int64_t>(splitsRows ? sum : parts[0]->shape[0]);
}

// Whether every part of "output" is the embedding's own storage.
static bool sharesStorage(const std::vector<const FoundTensor *> &output,
                          const std::vector<const FoundTensor *> &embedding) {
  for (size_t i = 0; i < output.size(); ++i)
    if (output[i]->extent.offset != embedding[i]->extent.offset ||
        output[i]->shape != embedding[i]->shape)
      return false;
  return true;
}

static absl::Status readWeights(const std::string &directory,
                                const JsonObject &params,
                                Checkpoint &checkpoint) {
  ModelConfig &config = checkpoint.config;
  LLAMAC_ASSIGN_OR_RETURN(std::vector<Shard> shards,
                          openShards(directory, checkpoint.weights));
  ExpectedWeight embedding;
  embedding.metaName = "tok_embeddings.weight";
  embedding.rows = config.vocabSize;
  embedding.cols = config.dim;
  LLAMAC_ASSIGN_OR_RETURN(const auto embeddingParts,
                          findParts(shards, directory, embedding));
  if (config.vocabSize == -1) {
    LLAMAC_ASSIGN_OR_RETURN(config.vocabSize,
                            inferVocabSize(embeddingParts, config.dim));
  }
  LLAMAC_RETURN_IF_ERROR(withContext(
      validateModelConfig(config), absl::StrCat(directory, "/params.json:0")));

  config.tiedEmbeddings = false;
  for (const ExpectedWeight &expected : expectedWeights(config)) {
    if (expected.name == "output" && !shards[0].contains(expected.metaName)) {
      config.tiedEmbeddings = true;
      continue;
    }
    LLAMAC_ASSIGN_OR_RETURN(const auto parts,
                            findParts(shards, directory, expected));
    if (expected.name == "output" && sharesStorage(parts, embeddingParts)) {
      config.tiedEmbeddings = true;
    } else {
      LLAMAC_RETURN_IF_ERROR(addWeight(expected, parts, checkpoint.weights));
    }
    for (Shard &shard : shards)
      if (expected.name != "tok_embeddings")
        shard.erase(expected.metaName);
  }
  // Rotary frequencies follow from theta; anything else would be missed.
  for (const Shard &shard : shards)
    for (const auto &[name, tensor] : shard)
      if (name != "rope.freqs" && name != embedding.metaName)
        return unknownTensor(tensor);
  return absl::OkStatus();
}

absl::Status readMetaCheckpoint(const std::string &directory,
                                const std::string &configPath,
                                const OpenOptions &options, bool withWeights,
                                Checkpoint &checkpoint) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          readConfigFile(configPath, checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject params, JsonObject::root(document));
  ModelConfig &config = checkpoint.config;
  LLAMAC_RETURN_IF_ERROR(readParams(params, options, config));
  if (withWeights) {
    LLAMAC_RETURN_IF_ERROR(readWeights(directory, params, checkpoint));
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
