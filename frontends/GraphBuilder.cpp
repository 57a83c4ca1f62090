//===- GraphBuilder.cpp - The graph of a Llama model ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/GraphBuilder.h"

#include "ir/llama/Llama.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace mlir;

namespace llamac {

namespace {

/// Builds @step. Every op is made by `op<...>("scope.step", operands...)`,
/// whose first argument becomes the location.
class StepBuilder {
public:
  StepBuilder(MLIRContext &context, const ModelConfig &config,
              const WeightTypeFn &weightType, ArrayRef<int64_t> featureLayers)
      : builder(&context), config(config), weightType(weightType),
        featureLayers(featureLayers) {}

  OwningOpRef<ModuleOp> build();

private:
  void startFunction(ModuleOp module);
  Value headInput();
  Value attention(const std::string &layer, int64_t index, Value y,
                  Value embedded);
  Value feedForward(const std::string &layer, Value y);

  NameLoc loc(const std::string &name) {
    return NameLoc::get(builder.getStringAttr(name));
  }
  FloatAttr f64(double value) { return builder.getF64FloatAttr(value); }

  template <typename Op, typename... Args>
  Op op(const std::string &name, Args &&...args) {
    return builder.create<Op>(loc(name), std::forward<Args>(args)...);
  }

  Value weight(const std::string &name, ArrayRef<int64_t> shape) {
    Type element =
        llama::elementTypeOf(*builder.getContext(), weightType(name));
    return op<llama::WeightOp>(name, RankedTensorType::get(shape, element),
                               builder.getStringAttr(name));
  }
  Value norm(const std::string &name, Value x) {
    return op<llama::RMSNormOp>(name, x, weight(name, {config.dim}),
                                f64(config.normEps));
  }
  Value linear(const std::string &name, Value x, int64_t rows, int64_t cols) {
    return op<llama::LinearOp>(name, x, weight(name, {rows, cols}),
                               /*leaves=*/IntegerAttr());
  }
  Value scale(const std::string &name, Value x, double factor) {
    return factor == 1 ? x : op<llama::ScaleOp>(name, x, f64(factor));
  }
  /// x + what a part of a layer makes of it.
  Value residual(const std::string &name, Value x, Value made) {
    made = scale(name, made, features.residualScale);
    return op<llama::AddOp>(name, x, made);
  }
  Value ropeTable(LayerAttention::Rotation rotation) {
    static constexpr const char *names[] = {"rope_table", "local_rope_table",
                                            "no_rope_table"};
    const auto which = static_cast<size_t>(rotation);
    if (!ropes[which])
      ropes[which] = op<llama::RopeTableOp>(
          names[which], positions,
          ArrayRef<double>(ropeFrequencies(config, rotation)));
    return ropes[which];
  }
  Value mask(int64_t window) {
    Value &mask = masks[window];
    if (!mask)
      mask = op<llama::CausalMaskOp>(
          "causal_mask", positions, sequences, index.getKeyPositions(),
          index.getKeySequences(),
          window ? builder.getI64IntegerAttr(window) : IntegerAttr());
    return mask;
  }

  OpBuilder builder;
  const ModelConfig &config;
  const ModelFeatures &features = config.features;
  const WeightTypeFn &weightType;
  const ArrayRef<int64_t> featureLayers;

  // The arguments of @step; every append replaces its layer's cache.
  Value tokens, positions, sequences, logitsRows, targetFeatures, headState;
  SmallVector<Value> caches;
  // Shared by the layers that are alike: the cos/sin caches, by rotation, the
  // keys of the step, and the masks, by window.
  Value ropes[3];
  llama::CacheIndexOp index;
  std::map<int64_t, Value> masks;
};

} // namespace

OwningOpRef<ModuleOp> StepBuilder::build() {
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder.getUnknownLoc());
  startFunction(*module);

  Value table = weight("tok_embeddings", {config.vocabSize, config.dim});
  ropeTable(features.layer(0).rotation);
  index =
      op<llama::CacheIndexOp>("cache_index", caches[0], positions, sequences);
  mask(features.layer(0).window);

  Value x = op<llama::EmbeddingOp>("tok_embeddings", tokens, table,
                                   /*rank=*/Value());
  x = scale("tok_embeddings", x, features.embeddingScale);
  Value embedded;
  if (config.head) {
    embedded = norm("layers.0.embedding_norm", x);
    x = headInput();
  }
  std::vector<Value> streams = {x}; // The input of each layer, and the result.
  for (int64_t i = 0; i < config.numLayers; ++i) {
    std::string layer = "layers." + std::to_string(i) + ".";
    Value y = features.preNorms ? norm(layer + "attention_norm", x) : x;
    Value o = attention(layer + "attention.", i, y, embedded);
    if (features.postNorms)
      o = norm(layer + "attention_post_norm", o);
    const bool addsToNorm = config.head && config.head->addsToNorm;
    x = residual(layer + "attention.residual", addsToNorm ? y : x, o);
    Value z = features.preNorms ? norm(layer + "ffn_norm", x) : x;
    Value f = feedForward(layer + "feed_forward.", z);
    if (features.postNorms)
      f = norm(layer + "ffn_post_norm", f);
    x = residual(layer + "feed_forward.residual", x, f);
    streams.push_back(x);
  }

  if (config.head)
    x = op<llama::GatherRowsOp>("logits_rows", x, logitsRows);
  const Value made = x;
  x = norm("norm", x);
  if (!config.head)
    x = op<llama::GatherRowsOp>("logits_rows", x, logitsRows);
  Value head = config.tiedEmbeddings
                   ? table
                   : weight("output", {config.logitsSize(), config.dim});
  Value logits =
      op<llama::LinearOp>("output", x, head, /*leaves=*/IntegerAttr());
  logits = scale("output", logits, features.logitsScale);
  SmallVector<Value> results = {logits};
  if (config.head)
    results.push_back(made);
  for (const int64_t layer : featureLayers)
    results.push_back(streams[layer]);
  llvm::append_range(results, caches);
  op<func::ReturnOp>("step", results);
  return module;
}

/// Opens @step in `module` and sets the builder to its body.
void StepBuilder::startFunction(ModuleOp module) {
  MLIRContext *context = builder.getContext();
  module->setAttr(
      llama::LlamaDialect::getModelAttrName(),
      llama::ModelAttr::get(context, config.dim, config.numLayers,
                            config.numHeads, config.numKvHeads, config.headSize,
                            config.ffnDim, config.vocabSize, config.maxContext,
                            f64(config.normEps), f64(config.ropeTheta),
                            builder.getBoolAttr(config.tiedEmbeddings)));

  Type indices =
      RankedTensorType::get(ShapedType::kDynamic, builder.getI32Type());
  Type cache = llama::KVType::get(context, config.numKvHeads, config.headSize);
  auto matrix = [&](int64_t columns) {
    return RankedTensorType::get({ShapedType::kDynamic, columns},
                                 builder.getF32Type());
  };
  const Type stream = matrix(config.dim);
  builder.setInsertionPointToEnd(module.getBody());
  SmallVector<Type> inputs(4, indices), results = {matrix(config.logitsSize())};
  if (config.head)
    inputs.append({matrix(config.head->featureDim()), stream});
  inputs.append(config.numLayers, cache);
  results.append(config.head ? 1 : featureLayers.size(), stream);
  results.append(config.numLayers, cache);
  auto step = op<func::FuncOp>("step", "step",
                               builder.getFunctionType(inputs, results));

  Block *body = builder.createBlock(&step.getBody());
  auto argument = [&](llama::StepRole role, Type type,
                      std::optional<int64_t> layer = std::nullopt) {
    const unsigned number = body->getNumArguments();
    step.setArgAttr(number, llama::LlamaDialect::getRoleAttrName(),
                    llama::StepRoleAttr::get(context, role, layer));
    return body->addArgument(type, loc(stringifyStepRole(role).str()));
  };
  tokens = argument(llama::StepRole::Tokens, indices);
  positions = argument(llama::StepRole::Positions, indices);
  sequences = argument(llama::StepRole::Sequences, indices);
  logitsRows = argument(llama::StepRole::LogitsRows, indices);
  if (config.head) {
    targetFeatures = argument(llama::StepRole::Features, inputs[4]);
    headState = argument(llama::StepRole::HeadState, inputs[5]);
  }
  for (int64_t layer = 0; layer < config.numLayers; ++layer)
    caches.push_back(argument(llama::StepRole::KV, cache, layer));
}

/// The residual stream of a draft head [N, d]: of the target's features, or
/// what the head itself made of the token before.
Value StepBuilder::headInput() {
  Value x =
      linear("features", targetFeatures, config.dim, config.head->featureDim());
  return op<llama::AddOp>("head_state", headState, x);
}

/// y [N, d] -> attention over the cache, back in [N, d]. A draft head projects
/// [`embedded`, y], whose two halves have weights of their own here.
Value StepBuilder::attention(const std::string &scope, int64_t layer, Value y,
                             Value embedded) {
  const int64_t h = config.headSize;
  auto project = [&](const std::string &part, int64_t heads) -> Value {
    const std::string name = scope + "w" + part;
    Value x = linear(name, y, heads * h, config.dim);
    if (embedded) {
      const std::string half = name + "_embedding";
      x = op<llama::AddOp>(half, x,
                           linear(half, embedded, heads * h, config.dim));
    }
    if (features.qkvBias) {
      const std::string bias = scope + "b" + part;
      x = op<llama::BiasOp>(bias, x, weight(bias, {heads * h}));
    }
    if (features.rowNorms && part != "v") {
      const std::string norm = scope + part + "_norm";
      x = op<llama::RMSNormOp>(norm, x, weight(norm, {heads * h}),
                               f64(config.normEps));
    }
    return op<llama::SplitHeadsOp>(name, x, builder.getI64IntegerAttr(heads));
  };
  const LayerAttention form = features.layer(layer);
  const Value table = ropeTable(form.rotation);
  auto rotate = [&](const std::string &part, Value x) -> Value {
    if (features.headNorms) {
      const std::string name = scope + part + "_norm";
      x = op<llama::RMSNormOp>(name, x, weight(name, {h}), f64(config.normEps));
    }
    return op<llama::RopeOp>(scope + "rope_" + part, x, table);
  };
  Value q = project("q", config.numHeads);
  Value k = project("k", config.numKvHeads);
  Value v = project("v", config.numKvHeads);
  q = rotate("q", q);
  k = rotate("k", k);

  Value &cache = caches[layer];
  cache = op<llama::CacheAppendOp>(scope + "append", cache, k, v, positions,
                                   sequences);
  auto cached = op<llama::CacheReadOp>(scope + "read", cache);

  const double factor = features.attentionScale != 0
                            ? features.attentionScale
                            : 1.0 / std::sqrt(static_cast<double>(h));
  Value s = op<llama::AttentionScoresOp>(scope + "scores", q, cached.getKeys());
  s = op<llama::ScaleOp>(scope + "scale", s, f64(factor));
  s = op<llama::AddMaskOp>(scope + "mask", s, mask(form.window));
  Value p = op<llama::SoftmaxOp>(scope + "softmax", s);
  Value o =
      op<llama::AttentionValuesOp>(scope + "values", p, cached.getValues());
  o = op<llama::MergeHeadsOp>(scope + "merge", o);
  return linear(scope + "wo", o, config.dim, config.numHeads * h);
}

/// y [N, d] -> (f(y W1^T) * (y W3^T)) W2^T in [N, d], where f is SiLU or GELU.
Value StepBuilder::feedForward(const std::string &scope, Value y) {
  Value gate = linear(scope + "w1", y, config.ffnDim, config.dim);
  Value up = linear(scope + "w3", y, config.ffnDim, config.dim);
  if (features.activation == Activation::Silu)
    gate = op<llama::SiluOp>(scope + "silu", gate);
  else
    gate = op<llama::GeluTanhOp>(scope + "gelu", gate);
  Value product = op<llama::MulOp>(scope + "mul", gate, up);
  return linear(scope + "w2", product, config.dim, config.ffnDim);
}

OwningOpRef<ModuleOp> buildStepGraph(MLIRContext &context,
                                     const ModelConfig &config,
                                     const WeightTypeFn &weightType,
                                     ArrayRef<int64_t> featureLayers) {
  context.loadDialect<func::FuncDialect, llama::LlamaDialect>();
  return StepBuilder(context, config, weightType, featureLayers).build();
}

} // namespace llamac
