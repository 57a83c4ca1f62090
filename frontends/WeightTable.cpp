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

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace llamac {

namespace {

// A size of the configuration that shapes are made of.
enum class Size { One, Dim, QueryRows, KeyRows, Ffn, Vocab };

struct WeightRow {
  absl::string_view meta;
  absl::string_view huggingFace;
  absl::string_view gguf;
  Size rows;
  Size cols;
  bool isRotary;
};

} // namespace

static constexpr WeightRow embeddingRow = {
    "tok_embeddings", "model.embed_tokens",
    "token_embd",     Size::Vocab,
    Size::Dim,        false};
static constexpr WeightRow layerRows[] = {
    {"attention_norm", "input_layernorm", "attn_norm", Size::One, Size::Dim,
     false},
    {"attention.wq", "self_attn.q_proj", "attn_q", Size::QueryRows, Size::Dim,
     true},
    {"attention.wk", "self_attn.k_proj", "attn_k", Size::KeyRows, Size::Dim,
     true},
    {"attention.wv", "self_attn.v_proj", "attn_v", Size::KeyRows, Size::Dim,
     false},
    {"attention.wo", "self_attn.o_proj", "attn_output", Size::Dim,
     Size::QueryRows, false},
    {"ffn_norm", "post_attention_layernorm", "ffn_norm", Size::One, Size::Dim,
     false},
    {"feed_forward.w1", "mlp.gate_proj", "ffn_gate", Size::Ffn, Size::Dim,
     false},
    {"feed_forward.w3", "mlp.up_proj", "ffn_up", Size::Ffn, Size::Dim, false},
    {"feed_forward.w2", "mlp.down_proj", "ffn_down", Size::Dim, Size::Ffn,
     false},
};
static constexpr WeightRow headRows[] = {
    {"norm", "model.norm", "output_norm", Size::One, Size::Dim, false},
    {"output", "lm_head", "output", Size::Vocab, Size::Dim, false},
};

static int64_t sizeOf(const ModelConfig &config, Size size) {
  switch (size) {
  case Size::One:
    return 1;
  case Size::Dim:
    return config.dim;
  case Size::QueryRows:
    return config.numHeads * config.headSize;
  case Size::KeyRows:
    return config.numKvHeads * config.headSize;
  case Size::Ffn:
    return config.ffnDim;
  case Size::Vocab:
    return config.vocabSize;
  }
  return 0;
}

std::vector<ExpectedWeight> expectedWeights(const ModelConfig &config) {
  std::vector<ExpectedWeight> weights;
  const auto add = [&](const WeightRow &row, absl::string_view meta,
                       absl::string_view huggingFace, absl::string_view gguf) {
    ExpectedWeight weight;
    weight.name = absl::StrCat(meta, row.meta);
    weight.metaName = absl::StrCat(weight.name, ".weight");
    weight.hfName = absl::StrCat(huggingFace, row.huggingFace, ".weight");
    weight.ggufName = absl::StrCat(gguf, row.gguf, ".weight");
    weight.rows = sizeOf(config, row.rows);
    weight.cols = sizeOf(config, row.cols);
    weight.isVector = row.rows == Size::One;
    weight.isRotary = row.isRotary;
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

std::string shapeText(absl::Span<const uint64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

static std::string shapeText(const ExpectedWeight &expected) {
  return expected.isVector
             ? absl::StrCat("[", expected.cols, "]")
             : absl::StrCat("[", expected.rows, ", ", expected.cols, "]");
}

absl::Status wrongShape(const FoundTensor &tensor,
                        const ExpectedWeight &expected) {
  return malformed(tensor.file, tensor.extent.offset, tensor.name,
                   absl::StrCat("a shape of ", shapeText(expected)),
                   shapeText(tensor.shape));
}

absl::Status missingTensor(absl::string_view file, absl::string_view tensor,
                           const ExpectedWeight &expected) {
  return malformed(file, 0, tensor,
                   absl::StrCat("a tensor ", shapeText(expected)), "none");
}

absl::Status unknownTensor(const FoundTensor &tensor) {
  return unsupportedError(malformed(tensor.file, tensor.extent.offset,
                                    tensor.name,
                                    absl::EndsWith(tensor.name, ".bias")
                                        ? "a Llama model without biases"
                                        : "only the tensors of a Llama model",
                                    shapeText(tensor.shape))
                              .message());
}

} // namespace llamac
