//===- EagleHead.cpp - EAGLE-3 heads --------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A head (Li et al. 2025, "EAGLE-3") is a directory like that of a model, whose
// architecture is LlamaForCausalLMEagle3. Its one layer, "midlayer", projects
// queries, keys and values of a token's embedding and the features behind each
// other, so that a matrix of q_proj has columns for both. `d2t` has, for each
// token that the head drafts, its id less its number. The embedding is the
// target's where the head brings none.
//
// Files of the library speculators say speculators_model_type = "eagle3", have
// the layer's configuration in an object of its own, and call it "layers.0".
//
//===----------------------------------------------------------------------===//

#include "frontends/huggingface/EagleHead.h"
#include "frontends/ByteCursor.h"
#include "frontends/Files.h"
#include "frontends/PulledNames.h"
#include "runtime/base/Status.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cstring>

namespace llamac {

static constexpr absl::string_view headArchitecture = "LlamaForCausalLMEagle3";

namespace {

/// Reads the columns of one half of a plain matrix.
class ColumnsOfRows final : public RowDecoder {
public:
  ColumnsOfRows(std::shared_ptr<const MappedFile> file, uint64_t offset,
                uint64_t rowBytes, uint64_t firstByte, uint64_t bytes)
      : file(std::move(file)), offset(offset + firstByte), rowBytes(rowBytes),
        bytes(bytes) {}

  void readRows(DataType, absl::Span<const int64_t> rows,
                uint8_t *out) const override {
    for (const int64_t row : rows) {
      std::memcpy(out,
                  file->data() + offset + static_cast<uint64_t>(row) * rowBytes,
                  bytes);
      out += bytes;
    }
  }

private:
  std::shared_ptr<const MappedFile> file;
  uint64_t offset, rowBytes, bytes;
};

/// The columns of a matrix that a weight has.
enum class Half { Whole, Embedding, Features };

/// A weight of a head.
struct HeadWeight {
  absl::string_view name;   ///< Canonical.
  absl::string_view tensor; ///< Without ".weight".
  int64_t rows;             ///< 1 for a vector.
  int64_t cols;             ///< Columns of the weight.
  Half half = Half::Whole;
  bool isRotary = false;
};

} // namespace

bool isEagleHead(const JsonObject &root) {
  const auto architectures = root.strings("architectures");
  if (architectures.ok() &&
      absl::c_linear_search(*architectures, headArchitecture))
    return true;
  const auto type = root.optionalString("speculators_model_type");
  return type.ok() && *type == "eagle3";
}

absl::StatusOr<JsonObject> layerConfigOfHead(const JsonObject &root) {
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> layer,
                          root.optionalObject("transformer_layer_config"));
  return layer.value_or(root);
}

absl::StatusOr<bool> isDraftHead(absl::string_view path) {
  LLAMAC_ASSIGN_OR_RETURN(std::string config, modelPath(path));
  if (isDirectory(config))
    config = joinPath(config, "config.json");
  if (!absl::EndsWith(config, ".json") || !fileExists(config))
    return false;
  LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<MappedFile> file,
                          MappedFile::open(config));
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument document,
                          parseJson(config, file->text()));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(document));
  return isEagleHead(root);
}

static std::vector<HeadWeight> headWeights(const ModelConfig &config) {
  const int64_t dim = config.dim, query = config.numHeads * config.headSize,
                keys = config.numKvHeads * config.headSize;
  std::vector<HeadWeight> weights = {
      {"features", "fc", dim, config.head->featureDim()},
      {"layers.0.embedding_norm", "midlayer.input_layernorm", 1, dim},
      {"layers.0.attention_norm", "midlayer.hidden_norm", 1, dim},
      {"layers.0.attention.wo", "midlayer.self_attn.o_proj", dim, query},
      {"layers.0.ffn_norm", "midlayer.post_attention_layernorm", 1, dim},
      {"layers.0.feed_forward.w1", "midlayer.mlp.gate_proj", config.ffnDim,
       dim},
      {"layers.0.feed_forward.w3", "midlayer.mlp.up_proj", config.ffnDim, dim},
      {"layers.0.feed_forward.w2", "midlayer.mlp.down_proj", dim,
       config.ffnDim},
      {"norm", "norm", 1, dim},
      {"output", "lm_head", config.logitsSize(), dim}};
  const auto addHalves = [&](absl::string_view features,
                             absl::string_view embedding,
                             absl::string_view tensor, int64_t rows,
                             bool isRotary) {
    weights.push_back({features, tensor, rows, dim, Half::Features, isRotary});
    weights.push_back(
        {embedding, tensor, rows, dim, Half::Embedding, isRotary});
  };
  addHalves("layers.0.attention.wq", "layers.0.attention.wq_embedding",
            "midlayer.self_attn.q_proj", query, true);
  addHalves("layers.0.attention.wk", "layers.0.attention.wk_embedding",
            "midlayer.self_attn.k_proj", keys, true);
  addHalves("layers.0.attention.wv", "layers.0.attention.wv_embedding",
            "midlayer.self_attn.v_proj", keys, false);
  return weights;
}

/// The tensors of the files in `directory`, by their names without "model." and
/// with "midlayer." for the layer.
static absl::StatusOr<TensorSet> readHeadTensors(const std::string &directory,
                                                 WeightMap &weights) {
  TensorSet found = {directory};
  const std::string torch = joinPath(directory, "pytorch_model.bin");
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                          listFiles(directory, "", ".safetensors"));
  for (const std::string &name : names)
    LLAMAC_RETURN_IF_ERROR(addTensorFile(
        joinPath(directory, name), readPackedSafetensors, weights, found));
  if (names.empty())
    LLAMAC_RETURN_IF_ERROR(
        addTensorFile(torch, readPackedTorchFile, weights, found));
  TensorSet tensors = {directory};
  for (auto &[name, tensor] : found.tensors) {
    absl::string_view bare = name;
    absl::ConsumePrefix(&bare, "model.");
    const bool isOfLayer = absl::ConsumePrefix(&bare, "layers.0.");
    const std::string key = absl::StrCat(isOfLayer ? "midlayer." : "", bare);
    if (!tensors.tensors.emplace(key, std::move(tensor)).second)
      return malformed(directory, 0, quoteForMessage(key), "one tensor",
                       "several, by other names of its layer or model");
  }
  return tensors;
}

static absl::StatusOr<const FoundTensor *>
findHeadTensor(const TensorSet &tensors, const std::string &name,
               absl::Span<const uint64_t> shape, absl::string_view type) {
  const auto found = tensors.tensors.find(name);
  if (found == tensors.tensors.end())
    return malformed(tensors.path, 0, name,
                     absl::StrCat("a tensor ", shapeText(shape)), "none");
  const FoundTensor &tensor = found->second;
  if (tensor.packedType != type)
    return malformed(tensor.file, tensor.offset, name,
                     type.empty() ? "F32, F16 or BF16" : type,
                     tensor.packedType.empty() ? dataTypeName(tensor.type)
                                               : tensor.packedType);
  if (tensor.shape != std::vector<uint64_t>(shape.begin(), shape.end()))
    return malformed(tensor.file, tensor.offset, name,
                     absl::StrCat("a shape of ", shapeText(shape)),
                     shapeText(tensor.shape));
  return &tensor;
}

/// Reads the ids of the tokens that the head drafts.
static absl::Status readDraftedTokens(const TensorSet &tensors,
                                      const WeightMap &weights, int64_t count,
                                      ModelConfig &config) {
  const std::string name = "d2t";
  LLAMAC_ASSIGN_OR_RETURN(
      const FoundTensor *tensor,
      findHeadTensor(tensors, name, {static_cast<uint64_t>(count)}, "I64"));
  const uint8_t *bytes =
      weights.files()[tensor->fileNumber]->data() + tensor->offset;
  config.head->tokens.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    std::memcpy(&offset, bytes + i * static_cast<int64_t>(sizeof offset),
                sizeof offset);
    if (offset < -i || offset >= config.vocabSize - i)
      return malformed(
          tensor->file, tensor->offset, absl::StrCat(name, "[", i, "]"),
          absl::StrCat("a number from ", -i, " to ", config.vocabSize - 1 - i,
                       ", to an id of the vocabulary"),
          offset);
    config.head->tokens[static_cast<size_t>(i)] =
        static_cast<int32_t>(i + offset);
  }
  return absl::OkStatus();
}

static absl::Status addHeadWeight(const HeadWeight &weight,
                                  const TensorSet &tensors,
                                  const ModelConfig &config,
                                  WeightMap &weights) {
  const std::string name = absl::StrCat(weight.tensor, ".weight");
  const auto rows = static_cast<uint64_t>(weight.rows);
  const auto cols = static_cast<uint64_t>(weight.cols);
  std::vector<uint64_t> shape = {rows,
                                 weight.half == Half::Whole ? cols : 2 * cols};
  const bool isVector = weight.rows == 1;
  LLAMAC_ASSIGN_OR_RETURN(
      const FoundTensor *tensor,
      findHeadTensor(tensors, name,
                     absl::MakeConstSpan(shape).subspan(isVector ? 1 : 0), ""));
  WeightSource source;
  source.name = std::string(weight.name);
  source.tensor = name;
  source.type = tensor->type;
  source.rows = weight.rows;
  source.cols = weight.cols;
  source.rotaryHalves = weight.isRotary ? config.headSize : 0;
  source.parts = {{tensor->fileNumber, tensor->offset, tensor->size}};
  if (weight.half != Half::Whole) {
    const uint64_t bytes = dataTypeBytes(tensor->type, cols);
    source.decoder = std::make_shared<ColumnsOfRows>(
        weights.files()[tensor->fileNumber], tensor->offset, 2 * bytes,
        weight.half == Half::Features ? bytes : 0, bytes);
  }
  return weights.add(std::move(source));
}

/// Adds the embedding of `target`, whose files the head then has too.
static absl::Status takeEmbeddingOf(const Checkpoint &target,
                                    WeightMap &weights) {
  const WeightSource *embedding = target.weights.find("tok_embeddings");
  if (!embedding)
    return internalError("a model has no embedding");
  WeightSource source = *embedding;
  for (FileExtent &part : source.parts)
    part.file = weights.addFile(target.weights.files()[part.file]);
  return weights.add(std::move(source));
}

absl::Status readEagleConfig(const JsonObject &root, const JsonObject &layer,
                             const OpenOptions &options,
                             Checkpoint &checkpoint) {
  if (options.headOf.empty())
    return usageError(absl::StrCat(
        checkpoint.path, ": an EAGLE-3 head drafts for a model and is compiled "
                         "for it: give it as --draft of a verb that runs that "
                         "model, or compile it with --head-of MODEL"));
  LLAMAC_ASSIGN_OR_RETURN(const Checkpoint target, openConfig(options.headOf));
  ModelConfig &config = checkpoint.config;
  const std::string asTarget = absl::StrCat(", as ", options.headOf, " has");
  DraftHead head;
  ConfigFields fields(root), ofLayer(layer);
  ofLayer.requireSupported(!config.tiedEmbeddings, "tie_word_embeddings",
                           "false for a head", "true");
  ofLayer.require(config.numLayers == 1, "num_hidden_layers", "1",
                  config.numLayers);
  ofLayer.require(config.vocabSize == target.config.vocabSize, "vocab_size",
                  absl::StrCat(target.config.vocabSize, asTarget),
                  config.vocabSize);
  const std::optional<int64_t> targetDim = fields.integer("target_hidden_size");
  head.targetDim = targetDim.value_or(config.dim);
  (targetDim ? fields : ofLayer)
      .require(head.targetDim == target.config.dim,
               targetDim ? "target_hidden_size" : "hidden_size",
               absl::StrCat(target.config.dim, asTarget), head.targetDim);
  head.addsToNorm = fields.flag("norm_before_residual").value_or(false);
  fields.requireSupported(!fields.flag("norm_before_fc").value_or(false),
                          "norm_before_fc", "false", "true");
  LLAMAC_RETURN_IF_ERROR(ofLayer.status());
  LLAMAC_RETURN_IF_ERROR(fields.status());
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<JsonObject> eagle,
                          root.optionalObject("eagle_config"));
  const JsonObject &from = eagle ? *eagle : root;
  LLAMAC_ASSIGN_OR_RETURN(head.layers,
                          from.intOrInts("eagle_aux_hidden_state_layer_ids"));
  const int64_t layers = target.config.numLayers;
  // The first choice of the method's authors.
  if (head.layers.empty())
    head.layers = {2, layers / 2, layers - 3};
  for (const int64_t layer : head.layers)
    if (layer < 0 || layer > layers)
      return from.fail(
          "eagle_aux_hidden_state_layer_ids",
          absl::StrCat("layers from 0 to ", layers, " of ", options.headOf),
          absl::StrCat(layer));
  config.maxContext = std::max(config.maxContext, target.config.maxContext);
  config.head = std::move(head);
  const int64_t drafted =
      fields.integer("draft_vocab_size").value_or(config.vocabSize);
  fields.require(drafted > 0 && drafted <= config.vocabSize, "draft_vocab_size",
                 absl::StrCat("1 to ", config.vocabSize), drafted);
  LLAMAC_RETURN_IF_ERROR(fields.status());
  // Until the weights say which; a head without weights has logits alone.
  if (drafted != config.vocabSize) {
    config.head->tokens.resize(static_cast<size_t>(drafted));
    for (int64_t i = 0; i < drafted; ++i)
      config.head->tokens[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  }
  return absl::OkStatus();
}

absl::Status readEagleWeights(const std::string &directory,
                              const OpenOptions &options,
                              Checkpoint &checkpoint) {
  ModelConfig &config = checkpoint.config;
  WeightMap &weights = checkpoint.weights;
  LLAMAC_ASSIGN_OR_RETURN(TensorSet tensors,
                          readHeadTensors(directory, weights));
  if (tensors.tensors.contains("d2t") ||
      config.logitsSize() != config.vocabSize)
    LLAMAC_RETURN_IF_ERROR(
        readDraftedTokens(tensors, weights, config.logitsSize(), config));
  if (tensors.tensors.contains("embed_tokens.weight")) {
    LLAMAC_RETURN_IF_ERROR(addHeadWeight(
        {"tok_embeddings", "embed_tokens", config.vocabSize, config.dim},
        tensors, config, weights));
  } else {
    if (config.dim != config.head->targetDim)
      return malformed(directory, 0, "embed_tokens.weight",
                       absl::StrCat("a tensor, as the width ", config.dim,
                                    " of the head is not its target's ",
                                    config.head->targetDim),
                       "none");
    LLAMAC_ASSIGN_OR_RETURN(const Checkpoint target,
                            openCheckpoint(options.headOf));
    LLAMAC_RETURN_IF_ERROR(takeEmbeddingOf(target, weights));
  }
  absl::flat_hash_set<std::string> known = {"d2t", "t2d",
                                            "embed_tokens.weight"};
  for (const HeadWeight &weight : headWeights(config)) {
    LLAMAC_RETURN_IF_ERROR(addHeadWeight(weight, tensors, config, weights));
    known.insert(absl::StrCat(weight.tensor, ".weight"));
  }
  for (const auto &[name, tensor] : tensors.tensors)
    if (!known.contains(name))
      return unsupportedError(malformed(tensor.file, tensor.offset, tensor.name,
                                        "only the tensors of an EAGLE-3 head",
                                        shapeText(tensor.shape))
                                  .message());
  return absl::OkStatus();
}

} // namespace llamac
