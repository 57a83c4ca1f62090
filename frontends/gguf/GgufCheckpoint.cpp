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
#include "frontends/gguf/GgufKeys.h"
#include "frontends/gguf/GgufParts.h"
#include "frontends/gguf/GgufWriter.h"
#include "runtime/base/Status.h"
#include "runtime/formats/Dequantize.h"

#include "absl/algorithm/container.h"
#include "absl/container/fixed_array.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace llamac {

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
  LLAMAC_ASSIGN_OR_RETURN(const auto name,
                          gguf.optionalString(ggufkeys::architecture));
  const std::string known = familyNames(&ModelFamily::gguf);
  if (!name)
    return gguf.fail(ggufkeys::architecture, known, "none");
  const ModelFamily *family = findFamily(&ModelFamily::gguf, *name);
  if (!family)
    return gguf.unsupported(ggufkeys::architecture, known,
                            quoteForMessage(*name));
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
    {ggufkeys::headCount},
    {ggufkeys::headCountKv},
    {ggufkeys::keyLength},
    {"attention.layer_norm_epsilon"},
    {ggufkeys::normEpsilon},
    {"attention.max_alibi_bias", 0},
    {ggufkeys::attentionScale, 0, &ModelFamily::hasScales},
    {ggufkeys::slidingWindow},
    {ggufkeys::slidingWindowPattern},
    {ggufkeys::valueLength},
    {"attn_logit_softcapping", 0},
    {ggufkeys::blockCount},
    {ggufkeys::contextLength},
    {ggufkeys::embeddingLength},
    {ggufkeys::embeddingScale, 1, &ModelFamily::hasScales},
    {"expert_count", 0},
    {"expert_feed_forward_length"}, // No model here has experts.
    {"expert_used_count"},
    {ggufkeys::feedForwardLength},
    {"final_logit_softcapping", 0},
    {"leading_dense_block_count"},
    {ggufkeys::logitScale, 1, &ModelFamily::hasScales},
    {"nextn_predict_layers", 0},
    {"pooling_type"}, // For embeddings of texts.
    {ggufkeys::residualScale, 1, &ModelFamily::hasScales},
    {ggufkeys::ropeDimensionCount},
    {ggufkeys::ropeFreqBase},
    {ggufkeys::ropeFreqBaseSwa, {}, &ModelFamily::hasLocalTheta},
    {"rope.scale_linear"},
    {"rope.scaling.attn_factor", 1},
    {ggufkeys::ropeScalingFactor},
    {ggufkeys::ropeFinetuned},
    {"rope.scaling.original_context_length"}, // For kinds that are refused.
    {ggufkeys::ropeScalingType},
    {"tensor_data_layout"},
    {"use_parallel_residual", 0},
    {ggufkeys::vocabSize},
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
       {keyOf(ggufkeys::headCount), keyOf(ggufkeys::headCountKv),
        keyOf(ggufkeys::feedForwardLength)}) {
    const GgufValue *value = gguf.find(key);
    fields.requireSupported(!value || !value->isArray, key,
                            "one number for all layers", "one for each");
  }
}

static LayerAttention layerOfWindow(const ModelFamily &family, int64_t window) {
  return {.rotation = family.hasLocalTheta ? LayerAttention::Rotation::Local
                                           : LayerAttention::Rotation::Global,
          .window = window};
}

// The scale of attention of models with a local theta, which no key says. The
// model of 27B, whose heads are not d / H wide, is the only one that scales by
// that.
static double scaleOfLocalTheta(const ModelConfig &config) {
  return config.numLayers == 62
             ? 1 / std::sqrt(static_cast<double>(config.dim) /
                             static_cast<double>(config.numHeads))
             : 0;
}

// Reads which layers have a window, and of how many tokens.
static absl::Status readWindows(const GgufReader &gguf,
                                const ModelFamily &family,
                                ModelConfig &config) {
  ConfigFields fields(gguf);
  const std::string windowKey =
      absl::StrCat(family.gguf, ".", ggufkeys::slidingWindow);
  const std::string patternKey =
      absl::StrCat(family.gguf, ".", ggufkeys::slidingWindowPattern);
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
  layers.resize(config.numLayers);
  for (size_t i = 0; i < isWindow.size(); ++i)
    layers[i] = isWindow[i] ? layerOfWindow(family, window) : LayerAttention{};
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
         {std::pair(ggufkeys::embeddingScale, &features.embeddingScale),
          std::pair(ggufkeys::residualScale, &features.residualScale),
          std::pair(ggufkeys::attentionScale, &features.attentionScale),
          std::pair(ggufkeys::logitScale, &divisor)}) {
      fields.positive(keyOf(name), *scale, false);
      *scale = asWritten(*scale);
    }
    features.logitsScale = 1 / divisor;
  }
  if (family.embeddingBySqrtDim)
    features.embeddingScale = std::sqrt(static_cast<double>(config.dim));
  if (family.hasLocalTheta) {
    features.localTheta = 10000;
    fields.positive(keyOf(ggufkeys::ropeFreqBaseSwa), features.localTheta,
                    false);
    features.localTheta = asWritten(features.localTheta);
    features.attentionScale = scaleOfLocalTheta(config);
  }
  LLAMAC_RETURN_IF_ERROR(fields.status());
  LLAMAC_RETURN_IF_ERROR(readWindows(gguf, family, config));
  // The key that says of other families whether they were trained with a
  // scaling says of Granite whether it has RoPE at all.
  const bool hasRope =
      fields.flag(keyOf(ggufkeys::ropeFinetuned)).value_or(true);
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
  config.dim = fields.requiredInteger(keyOf(ggufkeys::embeddingLength));
  config.numLayers = fields.requiredInteger(keyOf(ggufkeys::blockCount));
  config.numHeads = fields.requiredInteger(keyOf(ggufkeys::headCount));
  config.ffnDim = fields.requiredInteger(keyOf(ggufkeys::feedForwardLength));
  config.maxContext = fields.requiredInteger(keyOf(ggufkeys::contextLength));
  config.numKvHeads =
      fields.integer(keyOf(ggufkeys::headCountKv)).value_or(config.numHeads);
  fields.headSize(keyOf(ggufkeys::keyLength), keyOf(ggufkeys::headCount),
                  "embedding_length", config);
  for (const std::string &key :
       {keyOf(ggufkeys::valueLength), keyOf(ggufkeys::ropeDimensionCount)}) {
    const int64_t size = fields.integer(key).value_or(config.headSize);
    fields.requireSupported(size == config.headSize, key,
                            absl::StrCat("the head size, ", config.headSize),
                            size);
  }
  const std::string epsKey = keyOf(ggufkeys::normEpsilon);
  const std::optional<double> eps = fields.number(epsKey);
  fields.require(eps.has_value(), epsKey, "a float", "no such key");
  config.normEps = asWritten(eps.value_or(0));
  config.ropeTheta =
      asWritten(fields.number(keyOf(ggufkeys::ropeFreqBase)).value_or(10000.0));

  // The vocabulary is as long as the embedding; vocab_size agrees or is left
  // out.
  const std::string vocabKey = keyOf(ggufkeys::vocabSize);
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
  const auto type =
      fields.text(keyOf(ggufkeys::ropeScalingType)).value_or("linear");
  fields.requireSupported(type == "none" || type == "linear",
                          keyOf(ggufkeys::ropeScalingType),
                          "\"none\" or \"linear\"", quoteForMessage(type));
  // The second is the older name.
  for (const std::string &key :
       {keyOf(ggufkeys::ropeScalingFactor), keyOf("rope.scale_linear")}) {
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
  const auto [tensor, reader] = parts.findTensor(ggufkeys::ropeFactors);
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
      return malformed(path, tensor->offset, ggufkeys::ropeFactors,
                       absl::StrCat("f32 [", count, "]"),
                       absl::StrCat(dataTypeName(tensor->type), " ",
                                    shapeText(tensor->shape)));
    dequantizeRow(DataType::F32, file.data() + tensor->offset, count,
                  factors.data());
    for (size_t i = 0; i < factors.size(); ++i)
      if (!(factors[i] > 0) || !std::isfinite(factors[i]))
        return malformed(path, tensor->offset + i * sizeof(float),
                         ggufkeys::ropeFactors, "positive finite factors",
                         factors[i]);
  }
  for (float &each : factors)
    each *= static_cast<float>(factor);
  return absl::OkStatus();
}

StoredForm ggufForm(const ModelFamily &family) {
  return {.name = &ExpectedWeight::ggufName,
          .rotaryHalves = family.ggufHalves,
          .fused = family.fusedTensors};
}

static absl::Status readGgufWeights(const GgufParts &parts,
                                    const ModelFamily &family,
                                    Checkpoint &checkpoint) {
  std::vector<TensorSet> whole = {{parts.first()->file()->path()}};
  for (const auto &part : parts.all()) {
    const std::shared_ptr<MappedFile> &file = part->file();
    const uint32_t number = checkpoint.weights.addFile(file);
    for (const StoredTensor &tensor : part->tensors())
      if (tensor.name != ggufkeys::ropeFactors)
        whole[0].tensors.emplace(tensor.name,
                                 FoundTensor{tensor, file->path(), number});
  }
  return addWeights(whole, ggufForm(family), checkpoint);
}

static absl::Status readTokenizer(std::shared_ptr<const GgufReader> gguf,
                                  TokenizerSource &tokenizer) {
  if (!gguf->find(ggufkeys::tokens))
    return absl::OkStatus();
  tokenizer.kind = TokenizerFormat::Gguf;
  tokenizer.paths = {gguf->file()->path()};
  ConfigFields fields(*gguf);
  tokenizer.bos = fields.integer(ggufkeys::bosTokenId);
  tokenizer.addBos = fields.flag(ggufkeys::addBosToken);
  std::vector<int64_t> &stops = tokenizer.stopIds;
  for (absl::string_view key :
       {ggufkeys::eosTokenId, ggufkeys::eotTokenId, ggufkeys::eomTokenId})
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
  checkpoint.family = family;
  // Sizes come first: they are checked before anything is made of them.
  for (auto *read : {readGgufConfig, readFeatures, readRopeFactors}) {
    LLAMAC_RETURN_IF_ERROR(read(parts, *family, checkpoint.config));
    LLAMAC_RETURN_IF_ERROR(withContext(validateModelConfig(checkpoint.config),
                                       absl::StrCat(path, ":0")));
  }
  if (withWeights)
    LLAMAC_RETURN_IF_ERROR(readGgufWeights(parts, *family, checkpoint));
  LLAMAC_ASSIGN_OR_RETURN(const auto name,
                          gguf->optionalString(ggufkeys::modelName));
  if (name && !name->empty())
    checkpoint.name = std::string(*name);
  return readTokenizer(gguf, checkpoint.tokenizer);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

// The divisor of each rotary frequency; nothing where all stay as they are.
static std::vector<float> ropeDivisors(const ModelConfig &config) {
  if (!config.ropeScaling)
    return config.ropeFactors;
  ModelConfig plain = config;
  plain.ropeScaling.reset();
  const std::vector<double> unscaled = ropeFrequencies(plain);
  const std::vector<double> scaled = ropeFrequencies(config);
  std::vector<float> divisors(scaled.size());
  for (size_t i = 0; i < scaled.size(); ++i)
    divisors[i] = static_cast<float>(unscaled[i] / scaled[i]);
  return divisors;
}

static bool areAlike(absl::Span<const float> divisors) {
  return absl::c_all_of(divisors,
                        [&](float each) { return each == divisors[0]; });
}

std::vector<float> ggufRopeFactors(const ModelConfig &config) {
  std::vector<float> divisors = ropeDivisors(config);
  return areAlike(divisors) ? std::vector<float>() : divisors;
}

// Adds which layers have a window or no rotation, and sets `said` to what the
// keys say.
static void addLayers(const ModelFamily &family, const ModelConfig &config,
                      GgufMetadata &metadata,
                      std::vector<LayerAttention> &said) {
  const auto keyOf = [&](absl::string_view name) {
    return absl::StrCat(family.gguf, ".", name);
  };
  const std::vector<LayerAttention> &layers = config.features.layers;
  const std::vector<LayerAttention> unrotated(
      config.numLayers, {.rotation = LayerAttention::Rotation::None});
  int64_t window = 0;
  for (const LayerAttention &layer : layers)
    window = std::max(window, layer.window);
  const bool hasWindows = family.windows == WindowRule::All ||
                          family.windows == WindowRule::AllButNth;
  said = family.layersOf(config.numLayers, hasWindows ? window : 0,
                         family.interval);
  if (hasWindows && !said.empty())
    metadata.add(keyOf(ggufkeys::slidingWindow),
                 static_cast<uint32_t>(window ? window : config.maxContext));
  if (hasWindows && window && said != layers) {
    absl::FixedArray<bool> pattern(config.numLayers);
    said.assign(config.numLayers, {});
    for (int64_t i = 0; i < config.numLayers; ++i)
      if ((pattern[i] = layers[i].window != 0))
        said[i] = layerOfWindow(family, window);
    metadata.addArray<bool>(keyOf(ggufkeys::slidingWindowPattern), pattern);
  }
  if (family.hasScales && layers == unrotated) {
    metadata.add(keyOf(ggufkeys::ropeFinetuned), false);
    said = unrotated;
  }
}

absl::Status addGgufConfig(const Checkpoint &checkpoint,
                           GgufMetadata &metadata) {
  const ModelFamily &family = familyInGguf(*checkpoint.family);
  const ModelConfig &config = checkpoint.config;
  const ModelFeatures &features = config.features;
  const auto keyOf = [&](absl::string_view name) {
    return absl::StrCat(family.gguf, ".", name);
  };
  const auto addNumber = [&](absl::string_view name, double value) {
    metadata.add(keyOf(name), static_cast<float>(value));
  };
  metadata.add(ggufkeys::architecture, family.gguf);
  for (const auto &[name, size] :
       {std::pair(ggufkeys::contextLength, config.maxContext),
        std::pair(ggufkeys::embeddingLength, config.dim),
        std::pair(ggufkeys::blockCount, config.numLayers),
        std::pair(ggufkeys::feedForwardLength, config.ffnDim),
        std::pair(ggufkeys::headCount, config.numHeads),
        std::pair(ggufkeys::headCountKv, config.numKvHeads),
        std::pair(ggufkeys::keyLength, config.headSize),
        std::pair(ggufkeys::valueLength, config.headSize),
        std::pair(ggufkeys::ropeDimensionCount, config.headSize),
        std::pair(ggufkeys::vocabSize, config.vocabSize)})
    metadata.add(keyOf(name), static_cast<uint32_t>(size));
  addNumber(ggufkeys::normEpsilon, config.normEps);
  addNumber(ggufkeys::ropeFreqBase, config.ropeTheta);
  const std::vector<float> divisors = ropeDivisors(config);
  if (!divisors.empty() && areAlike(divisors)) {
    metadata.add<absl::string_view>(keyOf(ggufkeys::ropeScalingType), "linear");
    addNumber(ggufkeys::ropeScalingFactor, divisors[0]);
  }

  // The features that the architecture and the keys say.
  ModelFeatures said = family.features;
  const double usualScale = 1 / std::sqrt(static_cast<double>(config.headSize));
  const double scale =
      features.attentionScale ? features.attentionScale : usualScale;
  if (family.hasScales) {
    addNumber(ggufkeys::embeddingScale, features.embeddingScale);
    addNumber(ggufkeys::residualScale, features.residualScale);
    addNumber(ggufkeys::attentionScale, scale);
    addNumber(ggufkeys::logitScale, 1 / features.logitsScale);
    said.embeddingScale = features.embeddingScale;
    said.residualScale = features.residualScale;
    said.attentionScale = features.attentionScale;
    said.logitsScale = features.logitsScale;
  }
  if (family.embeddingBySqrtDim)
    said.embeddingScale = features.embeddingScale;
  if (family.hasLocalTheta) {
    addNumber(ggufkeys::ropeFreqBaseSwa, features.localTheta);
    said.localTheta = features.localTheta;
    said.attentionScale = scaleOfLocalTheta(config);
    if (said.attentionScale == 0 && scale == usualScale)
      said.attentionScale = features.attentionScale;
  }
  addLayers(family, config, metadata, said.layers);
  if (said == features)
    return absl::OkStatus();
  return unsupportedError(absl::StrCat(
      checkpoint.path, ": ",
      said.layers == features.layers ? "scale of attention"
                                     : "window or rotation of layers",
      ": expected what the architecture ", family.gguf,
      " has in GGUF, got another"));
}

} // namespace llamac
