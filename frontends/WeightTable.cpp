//===- WeightTable.cpp - The weights a Llama model has --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/WeightTable.h"

#include "frontends/ByteCursor.h"
#include "runtime/base/Status.h"
#include "runtime/base/Terminal.h"

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cstring>

namespace llamac {

namespace {

// A size of the configuration that shapes are made of.
enum class Size { One, Dim, QueryRows, KeyRows, Ffn, Vocab, Head };

struct WeightRow {
  absl::string_view meta;
  absl::string_view huggingFace;
  absl::string_view gguf;
  Size rows;
  Size cols;
  enum Kind { Plain, Rotary, Norm, RotaryNorm } kind = Plain;
  bool (*isIn)(const ModelFeatures &) = nullptr; ///< Null: in all models.
  absl::string_view suffix = ".weight";
};

} // namespace

static bool hasBias(const ModelFeatures &of) { return of.qkvBias; }
static bool hasHeadNorms(const ModelFeatures &of) { return of.headNorms; }
static bool hasRowNorms(const ModelFeatures &of) { return of.rowNorms; }
static bool hasPreNorms(const ModelFeatures &of) { return of.preNorms; }
static bool hasPostNorms(const ModelFeatures &of) { return of.postNorms; }
static bool hasOnlyPreNorms(const ModelFeatures &of) { return !of.postNorms; }
static bool hasBothNorms(const ModelFeatures &of) {
  return of.preNorms && of.postNorms;
}

static constexpr WeightRow embeddingRow = {"tok_embeddings",
                                           "model.embed_tokens", "token_embd",
                                           Size::Vocab, Size::Dim};
// Hugging Face calls the norm behind attention what it calls the one ahead of
// the feed-forward in models without that.
static constexpr WeightRow layerRows[] = {
    {"attention_norm", "input_layernorm", "attn_norm", Size::One, Size::Dim,
     WeightRow::Norm, hasPreNorms},
    {"attention.wq", "self_attn.q_proj", "attn_q", Size::QueryRows, Size::Dim,
     WeightRow::Rotary},
    {"attention.wk", "self_attn.k_proj", "attn_k", Size::KeyRows, Size::Dim,
     WeightRow::Rotary},
    {"attention.wv", "self_attn.v_proj", "attn_v", Size::KeyRows, Size::Dim},
    {"attention.bq", "self_attn.q_proj", "attn_q", Size::One, Size::QueryRows,
     WeightRow::Rotary, hasBias, ".bias"},
    {"attention.bk", "self_attn.k_proj", "attn_k", Size::One, Size::KeyRows,
     WeightRow::Rotary, hasBias, ".bias"},
    {"attention.bv", "self_attn.v_proj", "attn_v", Size::One, Size::KeyRows,
     WeightRow::Plain, hasBias, ".bias"},
    {"attention.q_norm", "self_attn.q_norm", "attn_q_norm", Size::One,
     Size::Head, WeightRow::RotaryNorm, hasHeadNorms},
    {"attention.k_norm", "self_attn.k_norm", "attn_k_norm", Size::One,
     Size::Head, WeightRow::RotaryNorm, hasHeadNorms},
    {"attention.q_norm", "self_attn.q_norm", "attn_q_norm", Size::One,
     Size::QueryRows, WeightRow::RotaryNorm, hasRowNorms},
    {"attention.k_norm", "self_attn.k_norm", "attn_k_norm", Size::One,
     Size::KeyRows, WeightRow::RotaryNorm, hasRowNorms},
    {"attention.wo", "self_attn.o_proj", "attn_output", Size::Dim,
     Size::QueryRows},
    {"attention_post_norm", "post_attention_layernorm", "post_attention_norm",
     Size::One, Size::Dim, WeightRow::Norm, hasPostNorms},
    {"ffn_norm", "post_attention_layernorm", "ffn_norm", Size::One, Size::Dim,
     WeightRow::Norm, hasOnlyPreNorms},
    {"ffn_norm", "pre_feedforward_layernorm", "ffn_norm", Size::One, Size::Dim,
     WeightRow::Norm, hasBothNorms},
    {"feed_forward.w1", "mlp.gate_proj", "ffn_gate", Size::Ffn, Size::Dim},
    {"feed_forward.w3", "mlp.up_proj", "ffn_up", Size::Ffn, Size::Dim},
    {"feed_forward.w2", "mlp.down_proj", "ffn_down", Size::Dim, Size::Ffn},
    {"ffn_post_norm", "post_feedforward_layernorm", "post_ffw_norm", Size::One,
     Size::Dim, WeightRow::Norm, hasPostNorms},
};
static constexpr WeightRow headRows[] = {
    {"norm", "model.norm", "output_norm", Size::One, Size::Dim,
     WeightRow::Norm},
    {"output", "lm_head", "output", Size::Vocab, Size::Dim},
};

namespace {

// Weights of a layer that some families have as one tensor, one behind the
// other.
struct FusedRow {
  absl::string_view huggingFace;
  absl::string_view gguf;
  absl::string_view parts[3]; ///< Canonical names.
};

} // namespace

static constexpr FusedRow fusedRows[] = {
    {"self_attn.qkv_proj",
     "attn_qkv",
     {"attention.wq", "attention.wk", "attention.wv"}},
    {"mlp.gate_up_proj", "ffn_up", {"feed_forward.w1", "feed_forward.w3"}},
};

static int64_t sizeOf(const ModelConfig &config, Size size) {
  const int64_t sizes[] = {1,
                           config.dim,
                           config.numHeads * config.headSize,
                           config.numKvHeads * config.headSize,
                           config.ffnDim,
                           config.vocabSize,
                           config.headSize};
  return sizes[static_cast<size_t>(size)];
}

std::vector<ExpectedWeight> expectedWeights(const ModelConfig &config) {
  std::vector<ExpectedWeight> weights;
  const auto add = [&](const WeightRow &row, absl::string_view meta,
                       absl::string_view huggingFace, absl::string_view gguf) {
    if (row.isIn && !row.isIn(config.features))
      return;
    ExpectedWeight weight;
    weight.name = absl::StrCat(meta, row.meta);
    weight.metaName = absl::StrCat(weight.name, row.suffix);
    weight.hfName = absl::StrCat(huggingFace, row.huggingFace, row.suffix);
    weight.ggufName = absl::StrCat(gguf, row.gguf, row.suffix);
    weight.rows = sizeOf(config, row.rows);
    weight.cols = sizeOf(config, row.cols);
    weight.isVector = row.rows == Size::One;
    weight.isRotary =
        row.kind == WeightRow::Rotary || row.kind == WeightRow::RotaryNorm;
    weight.isNorm =
        row.kind == WeightRow::Norm || row.kind == WeightRow::RotaryNorm;
    weights.push_back(std::move(weight));
  };
  add(embeddingRow, "", "", "");
  for (int64_t layer = 0; layer < config.numLayers; ++layer)
    for (const WeightRow &row : layerRows)
      add(row, absl::StrCat("layers.", layer, "."),
          absl::StrCat("model.layers.", layer, "."),
          absl::StrCat("blk.", layer, "."));
  for (const WeightRow &row : headRows)
    add(row, "", "", "");
  return weights;
}

// The name of the fused tensor that holds `weight`; empty where there is none.
static std::string fusedName(const ExpectedWeight &weight,
                             const StoredForm &form) {
  absl::string_view leaf = weight.name;
  if (!form.fused || !absl::ConsumePrefix(&leaf, "layers."))
    return "";
  const absl::string_view layer = leaf.substr(0, leaf.find('.'));
  leaf.remove_prefix(layer.size() + 1);
  for (const FusedRow &row : fusedRows)
    if (absl::c_linear_search(row.parts, leaf))
      return form.name == &ExpectedWeight::ggufName
                 ? absl::StrCat("blk.", layer, ".", row.gguf, ".weight")
                 : absl::StrCat("model.layers.", layer, ".", row.huggingFace,
                                ".weight");
  return "";
}

std::vector<TensorOfWeights>
tensorsOf(absl::Span<const ExpectedWeight> expected, const StoredForm &form) {
  std::vector<TensorOfWeights> tensors;
  for (const ExpectedWeight &weight : expected) {
    const std::string fused = fusedName(weight, form);
    // The parts follow each other.
    if (!fused.empty() && tensors.back().name == fused)
      tensors.back().weights.push_back(&weight);
    else
      tensors.push_back({fused.empty() ? weight.*form.name : fused, {&weight}});
  }
  return tensors;
}

std::string shapeText(absl::Span<const uint64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

static std::string shapeText(const ExpectedWeight &expected) {
  return expected.isVector
             ? absl::StrCat("[", expected.cols, "]")
             : absl::StrCat("[", expected.rows, ", ", expected.cols, "]");
}

static absl::Status wrongShape(const FoundTensor &tensor,
                               const ExpectedWeight &expected) {
  return malformed(tensor.file, tensor.offset, tensor.name,
                   absl::StrCat("a shape of ", shapeText(expected)),
                   shapeText(tensor.shape));
}

absl::Status addTensorFile(
    const std::string &path,
    absl::StatusOr<std::vector<StoredTensor>> (*read)(const MappedFile &file),
    WeightMap &weights, TensorSet &set) {
  LLAMAC_ASSIGN_OR_RETURN(std::shared_ptr<MappedFile> file,
                          MappedFile::open(path));
  LLAMAC_ASSIGN_OR_RETURN(std::vector<StoredTensor> tensors, read(*file));
  const uint32_t number = weights.addFile(std::move(file));
  for (StoredTensor &tensor : tensors) {
    FoundTensor &slot = set.tensors[tensor.name];
    if (!slot.file.empty())
      return malformed(path, tensor.offset, tensor.name, "a tensor in one file",
                       absl::StrCat("another in ", slot.file));
    slot = {std::move(tensor), path, number};
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorParts> findParts(absl::Span<const TensorSet> shards,
                                      absl::string_view name,
                                      const ExpectedWeight &expected) {
  TensorParts parts;
  for (const TensorSet &shard : shards) {
    const auto found = shard.tensors.find(name);
    if (found == shard.tensors.end())
      return malformed(shard.path, 0, name,
                       absl::StrCat("a tensor ", shapeText(expected)), "none");
    if (found->second.shape.size() != (expected.isVector ? 1 : 2))
      return wrongShape(found->second, expected);
    parts.push_back(&found->second);
  }
  return parts;
}

// The dimension that `parts` partition a matrix along: rows (0) or columns (1).
// They add up to the whole in one dimension only.
static absl::StatusOr<int> findPartsDim(const TensorParts &parts,
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
                              const TensorParts &parts, WeightSource source,
                              WeightMap &weights) {
  source.name = expected.name;
  source.type = parts[0]->type;
  source.rows = expected.rows;
  source.cols = expected.cols;
  for (const FoundTensor *part : parts) {
    if (part->type != source.type)
      return malformed(
          part->file, part->offset, part->name,
          absl::StrCat(dataTypeName(source.type), " as in the first shard"),
          dataTypeName(part->type));
    if (expected.isVector &&
        part->shape[0] != static_cast<uint64_t>(expected.cols))
      return wrongShape(*part, expected);
    source.parts.push_back({part->fileNumber, part->offset, part->size});
  }
  if (parts[0]->decoder) {
    source.parts = parts[0]->extents;
    source.decoder = parts[0]->decoder;
    source.decoderRow = parts[0]->decoderRow;
  }
  if (expected.isVector) {
    source.parts.resize(1); // Every shard has the whole.
  } else {
    LLAMAC_ASSIGN_OR_RETURN(source.partsDim, findPartsDim(parts, expected));
  }
  return weights.add(std::move(source));
}

/// Puts the parts of each fused tensor of `shard` in its place.
static absl::Status separateFused(TensorSet &shard, const StoredForm &form,
                                  absl::Span<const ExpectedWeight> expected) {
  for (const auto &[name, parts] : tensorsOf(expected, form)) {
    if (parts.size() == 1)
      continue;
    ExpectedWeight whole;
    for (const ExpectedWeight *part : parts) {
      whole.rows += part->rows;
      whole.cols = part->cols;
    }
    LLAMAC_ASSIGN_OR_RETURN(const TensorParts found,
                            findParts({&shard, 1}, name, whole));
    const FoundTensor tensor = *found[0];
    if (tensor.shape != std::vector{static_cast<uint64_t>(whole.rows),
                                    static_cast<uint64_t>(whole.cols)})
      return wrongShape(tensor, whole);
    shard.tensors.erase(name);
    const uint64_t rowBytes = tensor.size / tensor.shape[0];
    uint64_t offset = tensor.offset;
    int64_t firstRow = 0;
    for (const ExpectedWeight *part : parts) {
      FoundTensor slice = tensor;
      slice.shape[0] = static_cast<uint64_t>(part->rows);
      slice.offset = offset;
      slice.size = slice.shape[0] * rowBytes;
      offset += slice.size;
      slice.decoderRow = firstRow;
      firstRow += part->rows;
      shard.tensors.emplace(part->*form.name, std::move(slice));
    }
  }
  return absl::OkStatus();
}

// Whether two tensors hold the same, as far as their beginnings, middles and
// ends say: a head is never compared with an embedding byte by byte.
static bool isCopy(const FoundTensor &a, const FoundTensor &b,
                   const WeightMap &weights) {
  if (a.type != b.type || a.shape != b.shape || a.decoder || b.decoder)
    return false;
  const auto bytes = [&](const FoundTensor &tensor) {
    return weights.files()[tensor.fileNumber]->data() + tensor.offset;
  };
  constexpr uint64_t most = 64 << 10;
  const uint64_t count = std::min(a.size, most);
  for (const uint64_t from :
       {uint64_t{0}, (a.size - count) / 2, a.size - count})
    if (std::memcmp(bytes(a) + from, bytes(b) + from, count) != 0)
      return false;
  return true;
}

// Warns of an "output" that is no copy of the embedding, which takes its place.
static void warnOfOwnHead(const TensorSet &shard, const FoundTensor &embedding,
                          const std::string &name, const WeightMap &weights) {
  const auto head = shard.tensors.find(name);
  if (head != shard.tensors.end() && !isCopy(head->second, embedding, weights))
    printWarning(absl::StrCat(
        head->second.file, ": ", name,
        ": is not used: the configuration ties the head to the embedding, from "
        "which this tensor differs"));
}

absl::Status addWeights(std::vector<TensorSet> &shards, const StoredForm &form,
                        Checkpoint &checkpoint) {
  const ModelConfig &config = checkpoint.config;
  std::string ExpectedWeight::*const name = form.name;
  const std::vector<ExpectedWeight> weights = expectedWeights(config);
  if (form.fused)
    for (TensorSet &shard : shards)
      LLAMAC_RETURN_IF_ERROR(separateFused(shard, form, weights));
  FoundTensor embedding;
  for (const ExpectedWeight &expected : weights) {
    const bool isTiedHead = expected.name == "output" && config.tiedEmbeddings;
    if (&expected == &weights.front())
      if (const auto at = shards[0].tensors.find(expected.*name);
          at != shards[0].tensors.end())
        embedding = at->second;
    if (isTiedHead && shards.size() == 1)
      warnOfOwnHead(shards[0], embedding, expected.*name, checkpoint.weights);
    if (!isTiedHead) {
      LLAMAC_ASSIGN_OR_RETURN(const TensorParts parts,
                              findParts(shards, expected.*name, expected));
      WeightSource source;
      source.tensor = expected.*name;
      if (form.rotaryHalves && expected.isRotary)
        source.rotaryHalves = config.headSize;
      if (form.shiftedNorms && expected.isNorm)
        source.addend = 1;
      LLAMAC_RETURN_IF_ERROR(
          addWeight(expected, parts, std::move(source), checkpoint.weights));
    }
    for (TensorSet &shard : shards)
      shard.tensors.erase(expected.*name);
  }
  for (const TensorSet &shard : shards)
    for (const auto &[unused, tensor] : shard.tensors)
      return unsupportedError(
          malformed(tensor.file, tensor.offset, tensor.name,
                    absl::EndsWith(tensor.name, ".bias")
                        ? "a model of this architecture without biases"
                        : "only the tensors of a model of this architecture",
                    shapeText(tensor.shape))
              .message());
  return absl::OkStatus();
}

} // namespace llamac
