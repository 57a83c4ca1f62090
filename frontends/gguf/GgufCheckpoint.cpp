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

#include "frontends/ByteCursor.h"
#include "frontends/CheckpointFormats.h"
#include "frontends/WeightTable.h"
#include "runtime/base/Status.h"
#include "runtime/io/Dequantize.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace llamac {

static constexpr absl::string_view ropeFactorsName = "rope_freqs.weight";

// The shortest decimal that rounds to the fp32 number `value`: 1e-05 for
// 9.99999975e-06, since that is what was meant.
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

// Refuses what goes beyond a plain Llama model.
static void checkGgufArchitecture(const GgufReader &gguf,
                                  ConfigFields<GgufReader> &fields) {
  const auto architecture = fields.text("general.architecture");
  fields.require(architecture.has_value(), "general.architecture", "\"llama\"",
                 "none");
  fields.requireSupported(architecture == "llama", "general.architecture",
                          "\"llama\"",
                          quoteForMessage(architecture.value_or("")));
  const int64_t experts = fields.integer("llama.expert_count").value_or(0);
  fields.requireSupported(experts <= 0, "llama.expert_count", "0", experts);
  const int64_t splits = fields.integer("split.count").value_or(1);
  fields.requireSupported(splits <= 1, "split.count", "a model in one file",
                          absl::StrCat(splits, " files"));
  const auto scaling = fields.text("llama.rope.scaling.type").value_or("none");
  fields.requireSupported(scaling == "none", "llama.rope.scaling.type",
                          "\"none\"", quoteForMessage(scaling));
  for (absl::string_view key :
       {"llama.rope.scale_linear", "llama.rope.scaling.factor"}) {
    const double factor = fields.number(key).value_or(1);
    fields.requireSupported(factor == 1, key, "1", factor);
  }
  for (absl::string_view key :
       {"llama.attention.head_count", "llama.attention.head_count_kv",
        "llama.feed_forward_length"}) {
    const GgufValue *value = gguf.find(key);
    fields.requireSupported(!value || !value->isArray, key,
                            "one number for all layers", "one for each");
  }
}

static absl::Status readGgufConfig(const GgufReader &gguf,
                                   ModelConfig &config) {
  ConfigFields fields(gguf);
  checkGgufArchitecture(gguf, fields);
  config.dim = fields.requiredInteger("llama.embedding_length");
  config.numLayers = fields.requiredInteger("llama.block_count");
  config.numHeads = fields.requiredInteger("llama.attention.head_count");
  config.ffnDim = fields.requiredInteger("llama.feed_forward_length");
  config.maxContext = fields.requiredInteger("llama.context_length");
  config.numKvHeads =
      fields.integer("llama.attention.head_count_kv").value_or(config.numHeads);
  fields.headSize("llama.attention.key_length", "llama.attention.head_count",
                  "embedding_length", config);
  for (absl::string_view key :
       {"llama.attention.value_length", "llama.rope.dimension_count"}) {
    const int64_t size = fields.integer(key).value_or(config.headSize);
    fields.requireSupported(size == config.headSize, key,
                            absl::StrCat("the head size, ", config.headSize),
                            size);
  }
  constexpr absl::string_view epsKey = "llama.attention.layer_norm_rms_epsilon";
  const std::optional<double> eps = fields.number(epsKey);
  fields.require(eps.has_value(), epsKey, "a float", "no such key");
  config.normEps = asWritten(eps.value_or(0));
  config.ropeTheta =
      asWritten(fields.number("llama.rope.freq_base").value_or(10000.0));

  // The vocabulary is as long as the embedding; llama.vocab_size agrees or is
  // left out.
  constexpr absl::string_view vocabKey = "llama.vocab_size";
  const StoredTensor *embedding = gguf.findTensor("token_embd.weight");
  const std::optional<int64_t> vocab = fields.integer(vocabKey);
  fields.require(embedding || vocab, vocabKey, "an integer", "no such key");
  config.vocabSize =
      embedding ? static_cast<int64_t>(embedding->shape[0]) : vocab.value_or(0);
  fields.require(
      vocab.value_or(config.vocabSize) == config.vocabSize, vocabKey,
      absl::StrCat("the rows of token_embd.weight, ", config.vocabSize),
      vocab.value_or(0));
  config.tiedEmbeddings = !gguf.findTensor("output.weight");
  return fields.status();
}

static absl::Status readRopeFactors(const GgufReader &gguf,
                                    ModelConfig &config) {
  const StoredTensor *tensor = gguf.findTensor(ropeFactorsName);
  if (!tensor)
    return absl::OkStatus();
  const std::string &path = gguf.file()->path();
  const int64_t count = config.headSize / 2;
  if (tensor->type != DataType::F32 ||
      tensor->shape != std::vector<uint64_t>{static_cast<uint64_t>(count)})
    return malformed(path, tensor->offset, ropeFactorsName,
                     absl::StrCat("f32 [", count, "]"),
                     absl::StrCat(dataTypeName(tensor->type), " ",
                                  shapeText(tensor->shape)));
  config.ropeFactors.resize(static_cast<size_t>(count));
  dequantizeRow(DataType::F32, gguf.file()->data() + tensor->offset, count,
                config.ropeFactors.data());
  for (size_t i = 0; i < config.ropeFactors.size(); ++i)
    if (!(config.ropeFactors[i] > 0) || !std::isfinite(config.ropeFactors[i]))
      return malformed(path, tensor->offset + i * sizeof(float),
                       ropeFactorsName, "positive finite factors",
                       config.ropeFactors[i]);
  return absl::OkStatus();
}

static absl::Status readGgufWeights(const GgufReader &gguf,
                                    Checkpoint &checkpoint) {
  const uint32_t number = checkpoint.weights.addFile(gguf.file());
  std::vector<TensorSet> whole = {{gguf.file()->path()}};
  for (const StoredTensor &tensor : gguf.tensors())
    if (tensor.name != ropeFactorsName)
      whole[0].tensors.emplace(
          tensor.name, FoundTensor{tensor, gguf.file()->path(), number});
  return addWeights(whole, &ExpectedWeight::ggufName, /*rotaryHalves=*/false,
                    checkpoint);
}

static absl::Status readTokenizer(std::shared_ptr<const GgufReader> gguf,
                                  TokenizerSource &tokenizer) {
  if (!gguf->find("tokenizer.ggml.tokens"))
    return absl::OkStatus();
  tokenizer.kind = TokenizerFormat::Gguf;
  tokenizer.paths = {gguf->file()->path()};
  ConfigFields fields(*gguf);
  tokenizer.bos = fields.integer("tokenizer.ggml.bos_token_id");
  tokenizer.addBos = fields.flag("tokenizer.ggml.add_bos_token");
  std::vector<int64_t> &stops = tokenizer.stopIds;
  for (absl::string_view key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id"})
    if (const std::optional<int64_t> id = fields.integer(key);
        id && std::find(stops.begin(), stops.end(), *id) == stops.end())
      stops.push_back(*id);
  LLAMAC_RETURN_IF_ERROR(fields.status());
  tokenizer.gguf = std::move(gguf);
  return absl::OkStatus();
}

absl::Status readGgufCheckpoint(const std::string &path, bool withWeights,
                                Checkpoint &checkpoint) {
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const GgufReader> gguf,
                          GgufReader::open(std::move(file)));
  LLAMAC_RETURN_IF_ERROR(readGgufConfig(*gguf, checkpoint.config));
  LLAMAC_RETURN_IF_ERROR(readRopeFactors(*gguf, checkpoint.config));
  LLAMAC_RETURN_IF_ERROR(withContext(validateModelConfig(checkpoint.config),
                                     absl::StrCat(path, ":0")));
  if (withWeights)
    LLAMAC_RETURN_IF_ERROR(readGgufWeights(*gguf, checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(const auto name,
                          gguf->optionalString("general.name"));
  if (name && !name->empty())
    checkpoint.name = std::string(*name);
  return readTokenizer(gguf, checkpoint.tokenizer);
}

} // namespace llamac
