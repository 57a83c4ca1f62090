//===- ConvertToHuggingFace.cpp - Writing Hugging Face's model directories ===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/Convert.h"
#include "frontends/ConvertCommon.h"
#include "frontends/Files.h"
#include "frontends/huggingface/SafetensorsWriter.h"
#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"

#include <nlohmann/json.hpp>

namespace llamac {

static absl::string_view torchTypeName(DataType type) {
  switch (type) {
  case DataType::F32:
    return "float32";
  case DataType::F16:
    return "float16";
  default:
    return "bfloat16";
  }
}

static absl::StatusOr<std::string> renderConfig(const Checkpoint &checkpoint,
                                                DataType weightType) {
  const ModelConfig &config = checkpoint.config;
  nlohmann::ordered_json json;
  json["architectures"] = nlohmann::json::array({"LlamaForCausalLM"});
  json["model_type"] = "llama";
  json["hidden_act"] = "silu";
  json["hidden_size"] = config.dim;
  json["intermediate_size"] = config.ffnDim;
  json["num_hidden_layers"] = config.numLayers;
  json["num_attention_heads"] = config.numHeads;
  json["num_key_value_heads"] = config.numKvHeads;
  json["head_dim"] = config.headSize;
  json["vocab_size"] = config.vocabSize;
  json["max_position_embeddings"] = config.maxContext;
  json["rms_norm_eps"] = config.normEps;
  json["rope_theta"] = config.ropeTheta;
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<RopeScaling> scaling,
                          ropeScalingOf(config));
  if (scaling)
    json["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", scaling->factor},
                            {"low_freq_factor", scaling->lowFreqFactor},
                            {"high_freq_factor", scaling->highFreqFactor},
                            {"original_max_position_embeddings",
                             static_cast<int64_t>(scaling->oldContext)}};
  json["tie_word_embeddings"] = config.tiedEmbeddings;
  json["attention_bias"] = false;
  json["mlp_bias"] = false;
  const TokenizerSource &tokenizer = checkpoint.tokenizer;
  if (tokenizer.bos)
    json["bos_token_id"] = *tokenizer.bos;
  if (tokenizer.stopIds.size() == 1)
    json["eos_token_id"] = tokenizer.stopIds[0];
  else if (!tokenizer.stopIds.empty())
    json["eos_token_id"] = tokenizer.stopIds;
  json["torch_dtype"] = std::string(torchTypeName(weightType));
  return json.dump(2) + "\n";
}

absl::Status convertToHuggingFace(const Checkpoint &checkpoint,
                                  absl::string_view directory,
                                  const ConvertOptions &options) {
  const std::string target(directory);
  const std::vector<TensorStream> streams = streamWeights(
      checkpoint, options, &ExpectedWeight::hfName, /*halves=*/true);
  if (streams.empty())
    return internalError("a checkpoint without weights");
  LLAMAC_ASSIGN_OR_RETURN(const std::string config,
                          renderConfig(checkpoint, streams[0].type));
  LLAMAC_RETURN_IF_ERROR(prepareDirectory(target));
  LLAMAC_RETURN_IF_ERROR(
      writeSafetensors(joinPath(target, "model.safetensors"), streams));
  if (options.writeTokenizer)
    LLAMAC_RETURN_IF_ERROR(options.writeTokenizer(target));
  LLAMAC_RETURN_IF_ERROR(writeGenerationConfig(checkpoint, target));
  return writeFileAtomically(joinPath(target, "config.json"), config);
}

} // namespace llamac
