//===- GgufCheckpoint.cpp - GGUF model files ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hyperparameters are metadata under "llama.", the tokenizer metadata under
// "tokenizer.ggml.". Rows of attn_q and attn_k are in Meta's order, since the
// programs that write llama files undo Hugging Face's. Llama 3.1's scaling
// comes as a tensor of factors, rope_freqs.weight.
//
//===----------------------------------------------------------------------===//

#include "frontends/gguf/GgufCheckpoint.h"

#include "frontends/ByteCursor.h"
#include "frontends/WeightTable.h"
#include "runtime/base/Status.h"
#include "runtime/io/Dequantize.h"

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace llamac {

static constexpr absl::string_view ropeFactorsName = "rope_freqs.weight";

// The shortest decimal that names the fp32 number `value`, as a double: 1e-05
// for what fp32 holds as 9.99999975e-06, since that is what was meant.
static double asWritten(double value) {
  char text[64];
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value)
    return value;
  const auto end = std::to_chars(text, text + sizeof(text), narrow).ptr;
  double result = value;
  std::from_chars(text, end, result);
  return result;
}

static absl::StatusOr<int64_t> requiredInt(const GgufReader &gguf,
                                           absl::string_view key) {
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> value, gguf.getInt(key));
  if (!value)
    return gguf.fail(key, "an integer", "no such key");
  return *value;
}

static absl::Status unsupportedKey(const GgufReader &gguf,
                                   absl::string_view key,
                                   absl::string_view expected,
                                   absl::string_view got) {
  return unsupportedError(gguf.fail(key, expected, got).message());
}

// Refuses what goes beyond a plain Llama model.
static absl::Status checkArchitecture(const GgufReader &gguf) {
  LLAMAC_ASSIGN_OR_RETURN(const auto architecture,
                          gguf.getString("general.architecture"));
  if (!architecture)
    return gguf.fail("general.architecture", "\"llama\"", "none");
  if (*architecture != "llama")
    return unsupportedKey(gguf, "general.architecture", "\"llama\"",
                          quoteForMessage(*architecture));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> experts,
                          gguf.getInt("llama.expert_count"));
  if (experts.value_or(0) > 0)
    return unsupportedKey(gguf, "llama.expert_count", "0",
                          absl::StrCat(*experts));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> splits,
                          gguf.getInt("split.count"));
  if (splits.value_or(1) > 1)
    return unsupportedKey(gguf, "split.count", "a model in one file",
                          absl::StrCat(*splits, " files"));
  LLAMAC_ASSIGN_OR_RETURN(const auto scaling,
                          gguf.getString("llama.rope.scaling.type"));
  if (scaling && *scaling != "none")
    return unsupportedKey(gguf, "llama.rope.scaling.type", "\"none\"",
                          quoteForMessage(*scaling));
  for (absl::string_view key :
       {"llama.rope.scale_linear", "llama.rope.scaling.factor"}) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> factor,
                            gguf.getFloat(key));
    if (factor && *factor != 1.0)
      return unsupportedKey(gguf, key, "1", absl::StrCat(*factor));
  }
  for (absl::string_view key :
       {"llama.attention.head_count", "llama.attention.head_count_kv",
        "llama.feed_forward_length"}) {
    const GgufValue *value = gguf.find(key);
    if (value && value->isArray)
      return unsupportedKey(gguf, key, "one number for all layers",
                            "one for each");
  }
  return absl::OkStatus();
}

static absl::Status readConfig(const GgufReader &gguf, ModelConfig &config) {
  LLAMAC_ASSIGN_OR_RETURN(config.dim,
                          requiredInt(gguf, "llama.embedding_length"));
  LLAMAC_ASSIGN_OR_RETURN(config.numLayers,
                          requiredInt(gguf, "llama.block_count"));
  LLAMAC_ASSIGN_OR_RETURN(config.numHeads,
                          requiredInt(gguf, "llama.attention.head_count"));
  LLAMAC_ASSIGN_OR_RETURN(config.ffnDim,
                          requiredInt(gguf, "llama.feed_forward_length"));
  LLAMAC_ASSIGN_OR_RETURN(config.maxContext,
                          requiredInt(gguf, "llama.context_length"));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> kvHeads,
                          gguf.getInt("llama.attention.head_count_kv"));
  config.numKvHeads = kvHeads.value_or(config.numHeads);

  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> keyLength,
                          gguf.getInt("llama.attention.key_length"));
  if (config.numHeads <= 0 || (!keyLength && config.dim % config.numHeads != 0))
    return gguf.fail(
        "llama.attention.head_count",
        absl::StrCat("a divisor of embedding_length = ", config.dim),
        absl::StrCat(config.numHeads));
  config.headSize = keyLength.value_or(config.dim / config.numHeads);
  for (absl::string_view key :
       {"llama.attention.value_length", "llama.rope.dimension_count"}) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> size,
                            gguf.getInt(key));
    if (size && *size != config.headSize)
      return unsupportedKey(gguf, key,
                            absl::StrCat("the head size, ", config.headSize),
                            absl::StrCat(*size));
  }

  LLAMAC_ASSIGN_OR_RETURN(
      const std::optional<double> eps,
      gguf.getFloat("llama.attention.layer_norm_rms_epsilon"));
  if (!eps)
    return gguf.fail("llama.attention.layer_norm_rms_epsilon", "a float",
                     "no such key");
  config.normEps = asWritten(*eps);
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<double> theta,
                          gguf.getFloat("llama.rope.freq_base"));
  config.ropeTheta = asWritten(theta.value_or(10000.0));

  // The vocabulary is as long as the embedding; llama.vocab_size agrees or is
  // left out.
  const GgufTensor *embedding = gguf.findTensor("token_embd.weight");
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> vocab,
                          gguf.getInt("llama.vocab_size"));
  if (!embedding && !vocab)
    return gguf.fail("llama.vocab_size", "an integer", "no such key");
  config.vocabSize = embedding ? embedding->rows : *vocab;
  if (vocab && *vocab != config.vocabSize)
    return gguf.fail(
        "llama.vocab_size",
        absl::StrCat("the rows of token_embd.weight, ", config.vocabSize),
        absl::StrCat(*vocab));
  config.tiedEmbeddings = !gguf.findTensor("output.weight");
  return absl::OkStatus();
}

static FoundTensor asFound(const GgufReader &gguf, const GgufTensor &tensor) {
  FoundTensor found;
  found.name = std::string(tensor.name);
  found.file = gguf.file()->path();
  found.type = tensor.type;
  if (tensor.rank > 1)
    found.shape.push_back(static_cast<uint64_t>(tensor.rows));
  found.shape.push_back(static_cast<uint64_t>(tensor.cols));
  found.extent = {0, tensor.offset, tensor.size};
  return found;
}

static absl::Status readRopeFactors(const GgufReader &gguf,
                                    ModelConfig &config) {
  const GgufTensor *tensor = gguf.findTensor(ropeFactorsName);
  if (!tensor)
    return absl::OkStatus();
  const FoundTensor found = asFound(gguf, *tensor);
  if (tensor->type != DataType::F32 || tensor->rank != 1 ||
      tensor->cols != config.headSize / 2)
    return malformed(
        found.file, tensor->offset, ropeFactorsName,
        absl::StrCat("f32 [", config.headSize / 2, "]"),
        absl::StrCat(dataTypeName(tensor->type), " ", shapeText(found.shape)));
  config.ropeFactors.resize(static_cast<size_t>(tensor->cols));
  dequantizeRow(DataType::F32, gguf.file()->data() + tensor->offset,
                tensor->cols, config.ropeFactors.data());
  for (size_t i = 0; i < config.ropeFactors.size(); ++i)
    if (!(config.ropeFactors[i] > 0) || !std::isfinite(config.ropeFactors[i]))
      return malformed(found.file, tensor->offset + i * sizeof(float),
                       ropeFactorsName, "positive finite factors",
                       config.ropeFactors[i]);
  return absl::OkStatus();
}

static absl::Status readWeights(const GgufReader &gguf,
                                Checkpoint &checkpoint) {
  const ModelConfig &config = checkpoint.config;
  checkpoint.weights.addFile(gguf.file());
  absl::flat_hash_set<absl::string_view> used = {ropeFactorsName};
  for (const ExpectedWeight &expected : expectedWeights(config)) {
    if (expected.name == "output" && config.tiedEmbeddings)
      continue;
    const GgufTensor *tensor = gguf.findTensor(expected.ggufName);
    if (!tensor)
      return missingTensor(gguf.file()->path(), expected.ggufName, expected);
    used.insert(tensor->name);
    if (tensor->rank != (expected.isVector ? 1 : 2) ||
        tensor->rows != expected.rows || tensor->cols != expected.cols)
      return wrongShape(asFound(gguf, *tensor), expected);
    WeightSource source;
    source.name = expected.name;
    source.tensor = expected.ggufName;
    source.type = tensor->type;
    source.rows = expected.rows;
    source.cols = expected.cols;
    source.parts = {{0, tensor->offset, tensor->size}};
    LLAMAC_RETURN_IF_ERROR(checkpoint.weights.add(std::move(source)));
  }
  for (const GgufTensor &tensor : gguf.tensors())
    if (!used.contains(tensor.name))
      return unknownTensor(asFound(gguf, tensor));
  return absl::OkStatus();
}

static absl::Status readTokenizer(std::shared_ptr<const GgufReader> gguf,
                                  TokenizerSource &tokenizer) {
  if (!gguf->find("tokenizer.ggml.tokens"))
    return absl::OkStatus();
  tokenizer.kind = TokenizerFormat::Gguf;
  tokenizer.paths = {gguf->file()->path()};
  LLAMAC_ASSIGN_OR_RETURN(tokenizer.bos,
                          gguf->getInt("tokenizer.ggml.bos_token_id"));
  LLAMAC_ASSIGN_OR_RETURN(tokenizer.addBos,
                          gguf->getBool("tokenizer.ggml.add_bos_token"));
  for (absl::string_view key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id"}) {
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<int64_t> id, gguf->getInt(key));
    if (id && std::find(tokenizer.stopIds.begin(), tokenizer.stopIds.end(),
                        *id) == tokenizer.stopIds.end())
      tokenizer.stopIds.push_back(*id);
  }
  tokenizer.gguf = std::move(gguf);
  return absl::OkStatus();
}

absl::Status readGgufCheckpoint(const std::string &path, bool withWeights,
                                Checkpoint &checkpoint) {
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const GgufReader> gguf,
                          GgufReader::open(std::move(file)));
  LLAMAC_RETURN_IF_ERROR(checkArchitecture(*gguf));
  LLAMAC_RETURN_IF_ERROR(readConfig(*gguf, checkpoint.config));
  LLAMAC_RETURN_IF_ERROR(readRopeFactors(*gguf, checkpoint.config));
  LLAMAC_RETURN_IF_ERROR(withContext(validateModelConfig(checkpoint.config),
                                     absl::StrCat(path, ":0")));
  if (withWeights)
    LLAMAC_RETURN_IF_ERROR(readWeights(*gguf, checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(const auto name, gguf->getString("general.name"));
  if (name && !name->empty())
    checkpoint.name = std::string(*name);
  return readTokenizer(gguf, checkpoint.tokenizer);
}

} // namespace llamac
