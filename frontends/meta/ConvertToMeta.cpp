//===- ConvertToMeta.cpp - Writing Meta's model directories ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/Convert.h"
#include "frontends/ConvertCommon.h"
#include "frontends/Files.h"
#include "frontends/meta/MetaCheckpoint.h"
#include "frontends/meta/TorchWriter.h"
#include "runtime/base/Status.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/str_cat.h"

#include <nlohmann/json.hpp>

namespace llamac {

namespace {

// params.json gives the FFN size by a rule alone; this is what to put in it.
struct FfnRule {
  std::optional<double> multiplier;
  int64_t multipleOf;
};

} // namespace

static absl::StatusOr<FfnRule> findFfnRule(int64_t dim, int64_t ffnDim) {
  // The rules of Meta's own models first, since people know them.
  const FfnRule known[] = {{{}, 256},  {1.3, 1024}, {1.3, 4096}, {1.5, 256},
                           {1.0, 256}, {1.2, 4096}, {{}, 32},    {{}, 1}};
  for (const FfnRule &rule : known)
    if (metaFfnSize(dim, rule.multiplier, rule.multipleOf) == ffnDim)
      return rule;
  // Half a unit above F / base: truncation gives F whatever the rounding.
  const auto base = static_cast<double>(metaFfnSize(dim, std::nullopt, 1));
  const FfnRule exact = {(static_cast<double>(ffnDim) + 0.5) / base, 1};
  if (metaFfnSize(dim, exact.multiplier, exact.multipleOf) != ffnDim)
    return internalError(
        absl::StrCat("no ffn_dim_multiplier gives ", ffnDim, " for dim ", dim));
  return exact;
}

static absl::StatusOr<std::string> renderParams(const ModelConfig &config) {
  nlohmann::ordered_json json;
  json["dim"] = config.dim;
  json["n_layers"] = config.numLayers;
  json["n_heads"] = config.numHeads;
  json["n_kv_heads"] = config.numKvHeads;
  json["vocab_size"] = config.vocabSize;
  LLAMAC_ASSIGN_OR_RETURN(const FfnRule rule,
                          findFfnRule(config.dim, config.ffnDim));
  json["multiple_of"] = rule.multipleOf;
  if (rule.multiplier)
    json["ffn_dim_multiplier"] = *rule.multiplier;
  json["norm_eps"] = config.normEps;
  json["rope_theta"] = config.ropeTheta;
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<RopeScaling> scaling,
                          ropeScalingOf(config));
  if (scaling) {
    json["use_scaled_rope"] = true;
    // Meta's files leave these out; they are written only where a reader's
    // defaults would be wrong.
    const RopeScaling usual;
    if (scaling->factor !=
        MetaDefaults::ropeFactor(config.dim, config.numLayers))
      json["rope_scaling_factor"] = scaling->factor;
    if (scaling->lowFreqFactor != usual.lowFreqFactor)
      json["low_freq_factor"] = scaling->lowFreqFactor;
    if (scaling->highFreqFactor != usual.highFreqFactor)
      json["high_freq_factor"] = scaling->highFreqFactor;
    if (scaling->oldContext != usual.oldContext)
      json["old_context_len"] = scaling->oldContext;
  }
  if (config.headSize * config.numHeads != config.dim)
    json["head_dim"] = config.headSize;
  if (config.maxContext !=
      MetaDefaults::maxContext(config.ropeTheta, scaling.has_value()))
    json["max_seq_len"] = config.maxContext;
  return json.dump(2) + "\n";
}

absl::Status convertToMeta(const Checkpoint &checkpoint,
                           absl::string_view directory,
                           const ConvertOptions &options) {
  const std::string target(directory);
  LLAMAC_ASSIGN_OR_RETURN(const std::string params,
                          renderParams(checkpoint.config));
  LLAMAC_RETURN_IF_ERROR(prepareDirectory(target));
  const std::vector<TensorStream> streams = streamWeights(
      checkpoint, options, &ExpectedWeight::metaName, /*halves=*/false);
  std::vector<TensorAlias> aliases;
  if (checkpoint.config.tiedEmbeddings)
    aliases.push_back({"output.weight", "tok_embeddings.weight"});
  LLAMAC_RETURN_IF_ERROR(writeTorchFile(joinPath(target, "consolidated.00.pth"),
                                        streams, aliases));
  if (options.writeTokenizer)
    LLAMAC_RETURN_IF_ERROR(options.writeTokenizer(target));
  LLAMAC_RETURN_IF_ERROR(writeGenerationConfig(checkpoint, target));
  return writeFileAtomically(joinPath(target, "params.json"), params);
}

} // namespace llamac
