//===- GgufCheckpoint.cpp - GGUF model files ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hyperparameters are metadata under the family's name, "llama.", the tokenizer
// metadata under "tokenizer.ggml.". Rows of attn_q and attn_k are in Meta's
// order, since the programs that write llama files undo Hugging Face's, or in
// that, as the family says. Llama 3.1's scaling comes as a tensor of factors,
// rope_freqs.weight. A key of the family that is not known could change what
// the model computes, so that it is refused, like a tensor that is not known.
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteCursor.h"
#include "frontends/CheckpointFormats.h"
#include "frontends/Families.h"
#include "frontends/WeightTable.h"
#include "frontends/gguf/GgufParts.h"
#include "runtime/base/Status.h"
#include "runtime/formats/Dequantize.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

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

static absl::StatusOr<const ModelFamily *> readFamily(const GgufReader &gguf) {
  constexpr absl::string_view key = "general.architecture";
  LLAMAC_ASSIGN_OR_RETURN(const auto name, gguf.optionalString(key));
  const std::string known = familyNames(&ModelFamily::gguf);
  if (!name)
    return gguf.fail(key, known, "none");
  const ModelFamily *family = findFamily(&ModelFamily::gguf, *name);
  if (!family)
    return gguf.unsupported(key, known, quoteForMessage(*name));
  return family;
}

namespace {

// A key behind the family's name.
struct KnownKey {
  absl::string_view name;
  /// The number that changes nothing, and is alone supported. Without one the
  /// key is read, or never changes anything.
  std::optional<double> neutral = {};
  bool ModelFamily::*isRead = nullptr; ///< The families that read it.
};

} // namespace

static constexpr KnownKey knownKeys[] = {
    {"attention.causal", 1},
    {"attention.clamp_kqv", 0},
    {"attention.head_count"},
    {"attention.head_count_kv"},
    {"attention.key_length"},
    {"attention.layer_norm_epsilon"},
    {"attention.layer_norm_rms_epsilon"},
    {"attention.max_alibi_bias", 0},
    {"attention.scale", 0, &ModelFamily::hasScales},
    {"attention.sliding_window"},
    {"attention.sliding_window_pattern"},
    {"attention.value_length"},
    {"attn_logit_softcapping", 0},
    {"block_count"},
    {"context_length"},
    {"embedding_length"},
    {"embedding_scale", 1, &ModelFamily::hasScales},
    {"expert_count", 0},
    {"expert_feed_forward_length"}, // No model here has experts.
    {"expert_used_count"},
    {"feed_forward_length"},
    {"final_logit_softcapping", 0},
    {"leading_dense_block_count"},
    {"logit_scale", 1, &ModelFamily::hasScales},
    {"nextn_predict_layers", 0},
    {"pooling_type"}, // For embeddings of texts.
    {"residual_scale", 1, &ModelFamily::hasScales},
    {"rope.dimension_count"},
    {"rope.freq_base"},
    {"rope.freq_base_swa", {}, &ModelFamily::hasLocalTheta},
    {"rope.scale_linear"},
    {"rope.scaling.attn_factor", 1},
    {"rope.scaling.factor"},
    {"rope.scaling.finetuned"},
    {"rope.scaling.original_context_length"}, // For kinds that are refused.
    {"rope.scaling.type"},
    {"tensor_data_layout"},
    {"use_parallel_residual", 0},
    {"vocab_size"},
};

// The scalar of `key` as a number; nothing for a text or an array.
static std::optional<double> numberOf(const GgufReader &gguf,
                                      absl::string_view key) {
  if (const auto value = gguf.optionalInt(key); value.ok() && *value)
    return static_cast<double>(**value);
  if (const auto value = gguf.optionalNumber(key); value.ok())
    return *value;
  if (const auto value = gguf.optionalBool(key); value.ok() && *value)
    return **value ? 1 : 0;
  return std::nullopt;
}

// Refuses what goes beyond the features of `family`.
static void checkFeatures(const GgufReader &gguf, const ModelFamily &family,
                          ConfigFields<GgufReader> &fields) {
  const auto keyOf = [&](absl::string_view name) {
    return absl::StrCat(family.gguf, ".", name);
  };
  for (const GgufValue &value : gguf.values()) {
    absl::string_view name = value.key;
    if (!absl::ConsumePrefix(&name, keyOf("")))
      continue;
    const auto known =
        std::find_if(std::begin(knownKeys), std::end(knownKeys),
                     [&](const KnownKey &key) { return key.name == name; });
    const std::optional<double> number = numberOf(gguf, value.key);
    const std::string got = number ? absl::StrCat(*number) : "another value";
    if (known == std::end(knownKeys))
      fields.requireSupported(false, value.key,
                              "only the keys of a model of this architecture",
                              got);
    else if (known->isRead && !(family.*known->isRead) && !known->neutral)
      fields.requireSupported(false, value.key, "none in this architecture",
                              got);
    else if (known->neutral && !(known->isRead && family.*known->isRead))
      fields.requireSupported(number == known->neutral, value.key,
                              absl::StrCat(*known->neutral), got);
  }
  for (const std::string &key :
       {keyOf("attention.head_count"), keyOf("attention.head_count_kv"),
        keyOf("feed_forward_length")}) {
    const GgufValue *value = gguf.find(key);
    fields.requireSupported(!value || !value->isArray, key,
                            "one number for all layers", "one for each");
  }
}

// Reads which layers have a window, and of how many tokens.
static absl::Status readWindows(const GgufReader &gguf,
                                const ModelFamily &family,
                                ModelConfig &config) {
  ConfigFields fields(gguf);
  const std::string windowKey =
      absl::StrCat(family.gguf, ".attention.sliding_window");
  const std::string patternKey = windowKey + "_pattern";
  int64_t window = fields.integer(windowKey).value_or(0);
  const bool isKnown = family.windows == WindowRule::All ||
                       family.windows == WindowRule::AllButNth;
  // A window that holds the longest context changes nothing.
  if (window >= config.maxContext)
    window = 0;
  fields.requireSupported(window == 0 || isKnown, windowKey, "none", window);
  const GgufValue *pattern = gguf.find(patternKey);
  int64_t interval = family.interval;
  if (pattern && !pattern->isArray)
    interval = fields.integer(patternKey).value_or(interval);
  LLAMAC_RETURN_IF_ERROR(fields.status());
  std::vector<LayerAttention> &layers = config.features.layers;
  layers = family.layersOf(config.numLayers, window, interval);
  if (!pattern || !pattern->isArray || window == 0)
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int64_t> isWindow,
                          gguf.ints(patternKey));
  if (isWindow.size() != static_cast<size_t>(config.numLayers))
    return gguf.fail(patternKey,
                     absl::StrCat(config.numLayers, ", one a layer"),
                     absl::StrCat(isWindow.size()));
  const LayerAttention windowed = {
      .rotation = family.hasLocalTheta ? LayerAttention::Rotation::Local
                                       : LayerAttention::Rotation::Global,
      .window = window};
  layers.resize(config.numLayers);
  for (size_t i = 0; i < isWindow.size(); ++i)
    layers[i] = isWindow[i] ? windowed : LayerAttention{};
  return absl::OkStatus();
}

static absl::Status readFeatures(const GgufParts &parts,
                                 const ModelFamily &family,
                                 ModelConfig &config) {
  const GgufReader &gguf = *parts.first();
  ConfigFields fields(gguf);
  const auto keyOf = [&](absl::string_view name) {
    return absl::StrCat(family.gguf, ".", name);
  };
  ModelFeatures &features = config.features;
  features = family.features;
  if (family.hasScales) {
    double divisor = 1;
    for (const auto &[name, scale] :
         {std::pair("embedding_scale", &features.embeddingScale),
          std::pair("residual_scale", &features.residualScale),
          std::pair("attention.scale", &features.attentionScale),
          std::pair("logit_scale", &divisor)}) {
      fields.positive(keyOf(name), *scale, false);
      *scale = asWritten(*scale);
    }
    features.logitsScale = 1 / divisor;
  }
  if (family.embeddingBySqrtDim)
    features.embeddingScale = std::sqrt(static_cast<double>(config.dim));
  if (family.hasLocalTheta) {
    features.localTheta = 10000;
    fields.positive(keyOf("rope.freq_base_swa"), features.localTheta, false);
    features.localTheta = asWritten(features.localTheta);
    // The model of 27B, whose heads are not d / H wide, is the only one that
    // scales by that.
    if (config.numLayers == 62)
      features.attentionScale =
          1 / std::sqrt(static_cast<double>(config.dim) /
                        static_cast<double>(config.numHeads));
  }
  LLAMAC_RETURN_IF_ERROR(fields.status());
  LLAMAC_RETURN_IF_ERROR(readWindows(gguf, family, config));
  // The key that says of other families whether they were trained with a
  // scaling says of Granite whether it has RoPE at all.
  const bool hasRope =
      fields.flag(keyOf("rope.scaling.finetuned")).value_or(true);
  if (family.hasScales && !hasRope)
    features.layers.assign(static_cast<size_t>(config.numLayers),
                           {.rotation = LayerAttention::Rotation::None});
  return fields.status();
}

static absl::Status readGgufConfig(const GgufParts &parts,
                                   const ModelFamily &family,
                                   ModelConfig &config) {
  const GgufReader &gguf = *parts.first();
  ConfigFields fields(gguf);
  const auto keyOf = [&](absl::string_view name) {
    return absl::StrCat(family.gguf, ".", name);
  };
  checkFeatures(gguf, family, fields);
  config.dim = fields.requiredInteger(keyOf("embedding_length"));
  config.numLayers = fields.requiredInteger(keyOf("block_count"));
  config.numHeads = fields.requiredInteger(keyOf("attention.head_count"));
  config.ffnDim = fields.requiredInteger(keyOf("feed_forward_length"));
  config.maxContext = fields.requiredInteger(keyOf("context_length"));
  config.numKvHeads = fields.integer(keyOf("attention.head_count_kv"))
                          .value_or(config.numHeads);
  fields.headSize(keyOf("attention.key_length"), keyOf("attention.head_count"),
                  "embedding_length", config);
  for (const std::string &key :
       {keyOf("attention.value_length"), keyOf("rope.dimension_count")}) {
    const int64_t size = fields.integer(key).value_or(config.headSize);
    fields.requireSupported(size == config.headSize, key,
                            absl::StrCat("the head size, ", config.headSize),
                            size);
  }
  const std::string epsKey = keyOf("attention.layer_norm_rms_epsilon");
  const std::optional<double> eps = fields.number(epsKey);
  fields.require(eps.has_value(), epsKey, "a float", "no such key");
  config.normEps = asWritten(eps.value_or(0));
  config.ropeTheta =
      asWritten(fields.number(keyOf("rope.freq_base")).value_or(10000.0));

  // The vocabulary is as long as the embedding; vocab_size agrees or is left
  // out.
  const std::string vocabKey = keyOf("vocab_size");
  const StoredTensor *embedding = parts.findTensor("token_embd.weight").tensor;
  const std::optional<int64_t> vocab = fields.integer(vocabKey);
  fields.require(embedding || vocab, vocabKey, "an integer", "no such key");
  config.vocabSize =
      embedding ? static_cast<int64_t>(embedding->shape[0]) : vocab.value_or(0);
  fields.require(
      vocab.value_or(config.vocabSize) == config.vocabSize, vocabKey,
      absl::StrCat("the rows of token_embd.weight, ", config.vocabSize),
      vocab.value_or(0));
  config.tiedEmbeddings = !parts.findTensor("output.weight").tensor;
  return fields.status();
}

// The factor that divides all rotary frequencies, by its type: there is none
// of the type "none", whatever else the file says. 0 stands for none too.
static absl::StatusOr<double> readRopeFactor(const GgufReader &gguf,
                                             const ModelFamily &family) {
  ConfigFields fields(gguf);
  const auto keyOf = [&](absl::string_view name) {
    return absl::StrCat(family.gguf, ".", name);
  };
  const auto type = fields.text(keyOf("rope.scaling.type")).value_or("linear");
  fields.requireSupported(type == "none" || type == "linear",
                          keyOf("rope.scaling.type"), "\"none\" or \"linear\"",
                          quoteForMessage(type));
  // The second is the older name.
  for (const std::string &key :
       {keyOf("rope.scaling.factor"), keyOf("rope.scale_linear")}) {
    const std::optional<double> given = fields.number(key);
    if (!given)
      continue;
    fields.require(*given >= 0 && std::isfinite(*given), key,
                   "a positive number", *given);
    LLAMAC_RETURN_IF_ERROR(fields.status());
    return type == "none" || *given == 0 ? 1 : *given;
  }
  LLAMAC_RETURN_IF_ERROR(fields.status());
  return 1;
}

// Reads what divides the rotary frequencies: the factor of all of them times
// the tensor's of each.
static absl::Status readRopeFactors(const GgufParts &parts,
                                    const ModelFamily &family,
                                    ModelConfig &config) {
  LLAMAC_ASSIGN_OR_RETURN(const double factor,
                          readRopeFactor(*parts.first(), family));
  const auto [tensor, reader] = parts.findTensor(ropeFactorsName);
  if (!tensor && factor == 1)
    return absl::OkStatus();
  const int64_t count = config.headSize / 2;
  std::vector<float> &factors = config.ropeFactors;
  factors.assign(static_cast<size_t>(count), 1);
  if (tensor) {
    const MappedFile &file = *reader->file();
    const std::string &path = file.path();
    if (tensor->type != DataType::F32 ||
        tensor->shape != std::vector<uint64_t>{static_cast<uint64_t>(count)})
      return malformed(path, tensor->offset, ropeFactorsName,
                       absl::StrCat("f32 [", count, "]"),
                       absl::StrCat(dataTypeName(tensor->type), " ",
                                    shapeText(tensor->shape)));
    dequantizeRow(DataType::F32, file.data() + tensor->offset, count,
                  factors.data());
    for (size_t i = 0; i < factors.size(); ++i)
      if (!(factors[i] > 0) || !std::isfinite(factors[i]))
        return malformed(path, tensor->offset + i * sizeof(float),
                         ropeFactorsName, "positive finite factors",
                         factors[i]);
  }
  for (float &each : factors)
    each *= static_cast<float>(factor);
  return absl::OkStatus();
}

static absl::Status readGgufWeights(const GgufParts &parts,
                                    const ModelFamily &family,
                                    Checkpoint &checkpoint) {
  std::vector<TensorSet> whole = {{parts.first()->file()->path()}};
  for (const auto &part : parts.all()) {
    const std::shared_ptr<MappedFile> &file = part->file();
    const uint32_t number = checkpoint.weights.addFile(file);
    for (const StoredTensor &tensor : part->tensors())
      if (tensor.name != ropeFactorsName)
        whole[0].tensors.emplace(tensor.name,
                                 FoundTensor{tensor, file->path(), number});
  }
  return addWeights(whole,
                    {.name = &ExpectedWeight::ggufName,
                     .rotaryHalves = family.ggufHalves,
                     .fused = family.fusedTensors},
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
  LLAMAC_ASSIGN_OR_RETURN(const GgufParts parts, GgufParts::open(path));
  const std::shared_ptr<const GgufReader> &gguf = parts.first();
  LLAMAC_ASSIGN_OR_RETURN(const ModelFamily *family, readFamily(*gguf));
  // Sizes come first: they are checked before anything is made of them.
  for (auto *read : {readGgufConfig, readFeatures, readRopeFactors}) {
    LLAMAC_RETURN_IF_ERROR(read(parts, *family, checkpoint.config));
    LLAMAC_RETURN_IF_ERROR(withContext(validateModelConfig(checkpoint.config),
                                       absl::StrCat(path, ":0")));
  }
  if (withWeights)
    LLAMAC_RETURN_IF_ERROR(readGgufWeights(parts, *family, checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(const auto name,
                          gguf->optionalString("general.name"));
  if (name && !name->empty())
    checkpoint.name = std::string(*name);
  return readTokenizer(gguf, checkpoint.tokenizer);
}

} // namespace llamac
