//===- Convert.cpp - Writing a checkpoint in another format ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model's configuration comes last: a directory with it is whole.
//
//===----------------------------------------------------------------------===//

#include "frontends/Convert.h"

#include "frontends/CheckpointFormats.h"
#include "frontends/Families.h"
#include "frontends/Files.h"
#include "frontends/TokenizerSources.h"
#include "frontends/WeightTable.h"
#include "frontends/gguf/GgufKeys.h"
#include "frontends/gguf/GgufWriter.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"
#include "runtime/formats/Dequantize.h"
#include "runtime/io/AtomicFile.h"

#include "absl/algorithm/container.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

namespace llamac {

// Makes `directory`. Usage error when there is something in it: it might be
// taken for a part of the model.
static absl::Status prepareDirectory(const std::string &directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    return usageError(
        absl::StrCat(directory, ": cannot be made: ", error.message()));
  const std::filesystem::directory_iterator first(directory, error);
  if (!error && first == std::filesystem::directory_iterator())
    return absl::OkStatus();
  return usageError(absl::StrCat(
      directory, ": expected an empty directory, got ",
      error ? error.message() : "one with " + first->path().filename().string(),
      "; choose a new directory"));
}

// The rotary scaling of `config`, also when it is given as factors; nothing
// when there is none. Unsupported: factors that Llama 3.1's rule does not make.
static absl::StatusOr<std::optional<RopeScaling>>
ropeScalingOf(const ModelConfig &config) {
  const std::vector<float> &factors = config.ropeFactors;
  if (factors.empty())
    return config.ropeScaling;
  const auto agrees = [&](const ModelConfig &candidate) {
    ModelConfig plain = candidate;
    plain.ropeScaling.reset();
    const std::vector<double> unscaled = ropeFrequencies(plain);
    const std::vector<double> scaled = ropeFrequencies(candidate);
    for (size_t i = 0; i < factors.size(); ++i)
      if (std::fabs(unscaled[i] / scaled[i] / factors[i] - 1) > 1e-4)
        return false;
    return true;
  };
  ModelConfig candidate = config;
  candidate.ropeFactors.clear();
  if (agrees(candidate))
    return std::nullopt;
  // The slowest frequency has the whole factor, unless none is slow enough.
  const double largest = *std::max_element(factors.begin(), factors.end());
  for (double factor : {std::round(largest), largest, 8.0, 32.0}) {
    candidate.ropeScaling = RopeScaling{.factor = factor};
    if (agrees(candidate))
      return candidate.ropeScaling;
  }
  return unsupportedError(absl::StrCat(
      "rope_freqs.weight: expected factors of Llama 3.1's rule, got others (up "
      "to ",
      largest, "), which only a GGUF file can hold"));
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

namespace {

// The state that the streams share.
struct StreamState {
  const Checkpoint *checkpoint;
  const ConvertOptions *options;
  uint64_t done = 0;
  uint64_t total = 0;
};

} // namespace

// Reorders the rows of whole heads from pairs (2i, 2i + 1) to (i, i + h/2).
static void toHalves(std::vector<uint8_t> &rows, int64_t rowBytes,
                     int64_t headSize) {
  const std::vector<uint8_t> pairs = rows;
  const int64_t count = static_cast<int64_t>(rows.size()) / rowBytes;
  for (int64_t row = 0; row < count; ++row)
    std::memcpy(rows.data() + rowOfHalves(row, headSize) * rowBytes,
                pairs.data() + row * rowBytes, static_cast<size_t>(rowBytes));
}

static absl::Status produceWeight(StreamState &state,
                                  const WeightSource &weight, DataType type,
                                  bool halves, const WriteBytes &write) {
  const auto rowBytes = static_cast<int64_t>(
      dataTypeBytes(type, static_cast<uint64_t>(weight.cols)));
  constexpr int64_t chunkBytes = int64_t{4} << 20; // Read at a time.
  const int64_t head = state.checkpoint->config.headSize;
  int64_t step = std::max<int64_t>(1, chunkBytes / rowBytes);
  if (halves)
    step = std::max<int64_t>(1, step / head) * head;
  std::vector<uint8_t> rows;
  for (int64_t first = 0; first < weight.rows; first += step) {
    const int64_t count = std::min(step, weight.rows - first);
    rows.resize(static_cast<size_t>(count * rowBytes));
    LLAMAC_RETURN_IF_ERROR(state.checkpoint->weights.readRowsAs(
        weight, type, first, count, rows.data()));
    if (halves) // A vector has elements for rows.
      toHalves(rows, weight.rows == 1 ? rowBytes / weight.cols : rowBytes,
               head);
    LLAMAC_RETURN_IF_ERROR(write(rows));
    state.done += rows.size();
    if (state.options->progress)
      state.options->progress(state.done, state.total);
  }
  return absl::OkStatus();
}

// Streams of all weights of `checkpoint`, in the order of expectedWeights, as
// `form` has them and of the types that `typeOf` gives. They refer to
// `checkpoint` and `options`, and report progress.
static std::vector<TensorStream>
streamWeights(const Checkpoint &checkpoint, const ConvertOptions &options,
              const StoredForm &form,
              absl::FunctionRef<DataType(const WeightSource &weight)> typeOf) {
  auto state = std::make_shared<StreamState>();
  state->checkpoint = &checkpoint;
  state->options = &options;
  std::vector<TensorStream> streams;
  const std::vector<ExpectedWeight> expected =
      expectedWeights(checkpoint.config);
  for (const auto &[name, weights] : tensorsOf(expected, form)) {
    TensorStream stream;
    stream.name = name;
    std::vector<std::pair<const WeightSource *, bool>> parts;
    uint64_t rows = 0;
    for (const ExpectedWeight *part : weights)
      if (const WeightSource *weight = checkpoint.weights.find(part->name)) {
        parts.emplace_back(weight, form.rotaryHalves && part->isRotary);
        rows += static_cast<uint64_t>(weight->rows);
      }
    if (parts.empty())
      continue; // "output" of tied embeddings.
    stream.type = typeOf(*parts[0].first);
    if (!weights[0]->isVector)
      stream.shape.push_back(rows);
    stream.shape.push_back(static_cast<uint64_t>(weights[0]->cols));
    stream.produce = [state, parts = std::move(parts),
                      type = stream.type](const WriteBytes &write) {
      for (const auto &[weight, reorder] : parts)
        LLAMAC_RETURN_IF_ERROR(
            produceWeight(*state, *weight, type, reorder, write));
      return absl::OkStatus();
    };
    state->total += stream.bytes();
    streams.push_back(std::move(stream));
  }
  return streams;
}

// streamWeights() for formats of plain floats.
static std::vector<TensorStream>
streamPlainWeights(const Checkpoint &checkpoint, const ConvertOptions &options,
                   const StoredForm &form) {
  return streamWeights(checkpoint, options, form,
                       [&](const WeightSource &weight) {
                         return isBlockFormat(weight.type) || weight.decoder
                                    ? options.type.value_or(DataType::BF16)
                                    : weight.type;
                       });
}

//===----------------------------------------------------------------------===//
// Files of both formats
//===----------------------------------------------------------------------===//

static void putTokenIds(const TokenizerSource &tokenizer,
                        nlohmann::ordered_json &json) {
  if (tokenizer.bos)
    json["bos_token_id"] = *tokenizer.bos;
  if (tokenizer.stopIds.size() == 1)
    json["eos_token_id"] = tokenizer.stopIds[0];
  else if (!tokenizer.stopIds.empty())
    json["eos_token_id"] = tokenizer.stopIds;
}

// Writes generation_config.json, unless it would be empty.
static absl::Status writeGenerationConfig(const Checkpoint &checkpoint,
                                          const std::string &directory) {
  nlohmann::ordered_json json;
  putTokenIds(checkpoint.tokenizer, json);
  const GenerationDefaults &generation = checkpoint.generation;
  if (generation.temperature == 0.0) {
    json["do_sample"] = false;
  } else if (generation.temperature) {
    json["do_sample"] = true;
    json["temperature"] = *generation.temperature;
  }
  if (generation.topP)
    json["top_p"] = *generation.topP;
  if (generation.topK)
    json["top_k"] = *generation.topK;
  if (json.empty())
    return absl::OkStatus();
  return writeFileAtomically(joinPath(directory, "generation_config.json"),
                             json.dump(2) + "\n");
}

// Writes all files into `directory`: the weights by `writeWeights`, and
// `config` under the name `configName`.
static absl::Status writeModel(const Checkpoint &checkpoint,
                               const std::string &directory,
                               const ConvertOptions &options,
                               absl::FunctionRef<absl::Status()> writeWeights,
                               absl::string_view configName,
                               const nlohmann::ordered_json &config) {
  if (checkpoint.config.features != ModelFeatures{})
    return unsupportedError(absl::StrCat(
        checkpoint.path, ": architecture: expected Llama's own, got one with "
                         "features that the other format is not written "
                         "with; only Llama's models are converted"));
  LLAMAC_RETURN_IF_ERROR(prepareDirectory(directory));
  LLAMAC_RETURN_IF_ERROR(writeWeights());
  if (options.writeTokenizer)
    LLAMAC_RETURN_IF_ERROR(options.writeTokenizer(directory));
  LLAMAC_RETURN_IF_ERROR(writeGenerationConfig(checkpoint, directory));
  return writeFileAtomically(joinPath(directory, configName),
                             config.dump(2) + "\n");
}

//===----------------------------------------------------------------------===//
// Meta
//===----------------------------------------------------------------------===//

namespace {

// The parameters of the rule by which params.json gives the FFN size.
struct FfnRule {
  std::optional<double> multiplier;
  int64_t multipleOf;
};

} // namespace

static absl::StatusOr<FfnRule> findFfnRule(int64_t dim, int64_t ffnDim) {
  // The rules of Meta's own models are preferred.
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

static absl::StatusOr<nlohmann::ordered_json>
renderParams(const ModelConfig &config) {
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
  return json;
}

absl::Status convertToMeta(const Checkpoint &checkpoint,
                           absl::string_view directory,
                           const ConvertOptions &options) {
  const std::string target(directory);
  LLAMAC_ASSIGN_OR_RETURN(const nlohmann::ordered_json params,
                          renderParams(checkpoint.config));
  const auto writeWeights = [&] {
    std::vector<TensorAlias> aliases;
    if (checkpoint.config.tiedEmbeddings)
      aliases.push_back({"output.weight", "tok_embeddings.weight"});
    return writeTorchFile(
        joinPath(target, "consolidated.00.pth"),
        streamPlainWeights(checkpoint, options,
                           {.name = &ExpectedWeight::metaName}),
        aliases);
  };
  return writeModel(checkpoint, target, options, writeWeights, "params.json",
                    params);
}

//===----------------------------------------------------------------------===//
// Hugging Face
//===----------------------------------------------------------------------===//

static const char *torchTypeName(DataType type) {
  return type == DataType::F32   ? "float32"
         : type == DataType::F16 ? "float16"
                                 : "bfloat16";
}

static absl::StatusOr<nlohmann::ordered_json>
renderConfig(const Checkpoint &checkpoint, DataType weightType) {
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
  putTokenIds(checkpoint.tokenizer, json);
  json["torch_dtype"] = torchTypeName(weightType);
  return json;
}

absl::Status convertToHuggingFace(const Checkpoint &checkpoint,
                                  absl::string_view directory,
                                  const ConvertOptions &options) {
  const std::string target(directory);
  const std::vector<TensorStream> streams = streamPlainWeights(
      checkpoint, options,
      {.name = &ExpectedWeight::hfName, .rotaryHalves = true});
  if (streams.empty())
    return internalError("a checkpoint without weights");
  LLAMAC_ASSIGN_OR_RETURN(const nlohmann::ordered_json config,
                          renderConfig(checkpoint, streams[0].type));
  const auto writeWeights = [&] {
    return writeSafetensors(joinPath(target, "model.safetensors"), streams);
  };
  return writeModel(checkpoint, target, options, writeWeights, "config.json",
                    config);
}

//===----------------------------------------------------------------------===//
// GGUF
//===----------------------------------------------------------------------===//

bool isGgufOutput(DataType type) {
  return canQuantizeTo(type) && ggmlTypeNumber(type);
}

// The number of general.file_type for matrices of each type.
static constexpr std::pair<DataType, uint32_t> ggufFileTypes[] = {
    {DataType::F32, 0},     {DataType::F16, 1},     {DataType::Q4_0, 2},
    {DataType::Q4_1, 3},    {DataType::Q8_0, 7},    {DataType::Q5_0, 8},
    {DataType::Q5_1, 9},    {DataType::Q2_K, 10},   {DataType::Q3_K, 12},
    {DataType::Q4_K, 15},   {DataType::Q5_K, 17},   {DataType::Q6_K, 18},
    {DataType::IQ4_NL, 25}, {DataType::IQ4_XS, 30}, {DataType::BF16, 32},
    {DataType::MXFP4, 38}};

// Adds what the types of `tensors` are: that of the most elements counts.
static void addFileType(absl::Span<const TensorStream> tensors,
                        GgufMetadata &metadata) {
  std::map<DataType, uint64_t> elements;
  for (const TensorStream &tensor : tensors)
    if (tensor.shape.size() > 1)
      elements[tensor.type] += tensor.elements();
  const auto most = absl::c_max_element(
      elements, [](auto &a, auto &b) { return a.second < b.second; });
  for (const auto &[type, number] : ggufFileTypes)
    if (type == most->first)
      metadata.add(ggufkeys::fileType, number);
  if (absl::c_any_of(elements,
                     [](auto &entry) { return isBlockFormat(entry.first); }))
    metadata.add<uint32_t>(ggufkeys::quantizationVersion, 2);
}

// Keys of "general." that are not taken from another GGUF.
static constexpr absl::string_view writtenKeys[] = {
    ggufkeys::alignment, ggufkeys::architecture, ggufkeys::fileType,
    ggufkeys::modelName, ggufkeys::quantizationVersion};

// Adds the tokenizer, and of another GGUF all that says nothing of the form of
// the weights.
static absl::Status addTokenizer(const Checkpoint &checkpoint,
                                 GgufMetadata &metadata) {
  const TokenizerSource &tokenizer = checkpoint.tokenizer;
  if (tokenizer.kind == TokenizerFormat::None) {
    printWarning("no tokenizer is written: the model has none");
    return absl::OkStatus();
  }
  if (tokenizer.kind == TokenizerFormat::Gguf) {
    for (const GgufValue &value : tokenizer.gguf->values())
      if (absl::StartsWith(value.key, ggufkeys::tokenizer) ||
          (absl::StartsWith(value.key, ggufkeys::general) &&
           !absl::c_linear_search(writtenKeys, value.key)))
        metadata.copy(value);
    return absl::OkStatus();
  }
  const absl::StatusOr<std::optional<std::string>> blob = buildDirectoryBlob(
      checkpoint.path, static_cast<uint32_t>(checkpoint.config.vocabSize));
  const absl::Status status =
      blob.ok() ? addGgufTokenizer(checkpoint, **blob, metadata)
                : blob.status();
  if (exitCode(status) != ExitCode::Unsupported)
    return status;
  // The weights are of use without it, to whoever has the tokenizer's file.
  printWarning(absl::StrCat("no tokenizer is written: ", status.message()));
  return absl::OkStatus();
}

absl::Status convertToGguf(const Checkpoint &checkpoint, absl::string_view path,
                           const ConvertOptions &options) {
  int64_t numKept = 0;
  const auto typeOf = [&](const WeightSource &weight) {
    if (weight.rows == 1)
      return DataType::F32;
    // GGUF has no 8-bit floats.
    const DataType type = options.type.value_or(
        ggmlTypeNumber(weight.type) ? weight.type : DataType::BF16);
    const int64_t block = dataTypeInfo(type).blockElements;
    if (weight.cols % block == 0)
      return type;
    ++numKept;
    return weight.type;
  };
  std::vector<TensorStream> tensors = streamWeights(
      checkpoint, options, ggufForm(familyInGguf(*checkpoint.family)), typeOf);
  if (numKept > 0)
    printWarning(absl::StrCat(numKept, " matrices keep their types: their ",
                              "rows are not whole blocks of ",
                              dataTypeName(*options.type)));
  GgufMetadata metadata;
  LLAMAC_RETURN_IF_ERROR(addGgufConfig(checkpoint, metadata));
  metadata.add<absl::string_view>(ggufkeys::modelName, checkpoint.name);
  metadata.add<uint32_t>(ggufkeys::alignment, ggufAlignment);
  addFileType(tensors, metadata);
  LLAMAC_RETURN_IF_ERROR(addTokenizer(checkpoint, metadata));
  const std::vector<float> factors = ggufRopeFactors(checkpoint.config);
  if (!factors.empty())
    tensors.push_back({.name = std::string(ggufkeys::ropeFactors),
                       .shape = {factors.size()},
                       .produce = [&](const WriteBytes &write) {
                         return write(absl::Span<const uint8_t>(
                             reinterpret_cast<const uint8_t *>(factors.data()),
                             factors.size() * sizeof(float)));
                       }});
  return writeGguf(path, metadata, tensors);
}

} // namespace llamac
