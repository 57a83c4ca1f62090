//===- Configs.cpp - What the kernels of an op are made with --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Configs.h"
#include "codegen/OpShapes.h"
#include "codegen/Tiles.h"
#include "codegen/cuda/WgmmaTiles.h"

using namespace mlir;

namespace llamac {

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

static constexpr FormatRow formatRows[] = {
    {"f16", cuda::WeightFormat::F16, "F16"},
    {"bf16", cuda::WeightFormat::BF16, "BF16"},
    {"q8_0", cuda::WeightFormat::Q8_0, "Q8_0"},
    {"q4_0", cuda::WeightFormat::Q4_0, "Q4_0"},
    {"q4_1", cuda::WeightFormat::Q4_1, "Q4_1"},
    {"mxfp8", cuda::WeightFormat::MXFP8, "MXFP8"},
};

const FormatRow &formatRow(Value weight) {
  auto type = cast<RankedTensorType>(weight.getType());
  StringRef name = llama::elementTypeName(type.getElementType());
  for (const FormatRow &row : formatRows)
    if (row.element == name)
      return row;
  // Any other is uploaded as bf16.
  return formatRows[1];
}

bool isPackable(Value weight) {
  return cuda::isPackableDepth(formatRow(weight).format, widthOf(weight));
}

int64_t rowsOf(Value weight) {
  return cast<RankedTensorType>(weight.getType()).getDimSize(0);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

SmallVector<Value> weightsOf(kernel::MatmulOp op) {
  return llvm::to_vector(op.getWeights());
}
SmallVector<Value> weightsOf(kernel::QkvOp op) {
  return {op.getQueryWeight(), op.getKeyWeight(), op.getValueWeight()};
}

static bool areOfOneFormat(ArrayRef<Value> weights) {
  return llvm::all_equal(llvm::map_range(
      weights, [](Value weight) { return formatRow(weight).format; }));
}

/// Takes over the size of `member` where `config` says it.
template <typename Config>
static void setTile(Config config, StringRef name, int &member) {
  member = static_cast<int>(tileOf(config, name, member));
}

// More rows or weights keep more sums in registers, which leaves fewer for
// loads in flight.
cuda::GemvConfig gemvConfig(Value weight, size_t weights,
                            kernel::MatmulConfigAttr attr) {
  cuda::GemvConfig config{.format = formatRow(weight).format,
                          .outputs = rowsOf(weight),
                          .depth = widthOf(weight),
                          .weights = static_cast<int>(weights),
                          .maxRows = static_cast<int>(attr.getRowBlock())};
  while (config.unroll > 1 &&
         config.maxRows * config.weights * config.unroll > maxUnrolledSums)
    config.unroll /= 2;
  setTile(attr, "warps", config.warps);
  setTile(attr, "outputsPerWarp", config.outputsPerWarp);
  setTile(attr, "unroll", config.unroll);
  return config;
}

/// Whether weights of few rows stream through shared memory, by instructions of
/// sm_90. Later GPUs have them too, but nobody has tried what is best there.
static bool streams(kernel::MatmulConfigAttr attr,
                    const CudaTargetOptions &options) {
  return options.gpu.tier == KernelTier::Sm90 &&
         attr.getFamily() == kernel::MatmulFamily::Gemv &&
         attr.getRowBlock() <= cuda::streamMaxRows &&
         tileOf(attr, "stream", 1) != 0;
}

bool streams(kernel::MatmulOp op, const CudaTargetOptions &options) {
  return streams(op.getConfigAttr(), options);
}

/// Of matrices that share their input and are all of one format: `weights` of
/// the same shape, or parts that lie apart.
static cuda::StreamConfig streamConfig(ArrayRef<Value> parts, size_t weights,
                                       kernel::MatmulConfigAttr attr,
                                       const CudaTargetOptions &options) {
  cuda::StreamConfig config{.product = gemvConfig(parts.front(), weights, attr),
                            .parts = {},
                            .blocks = options.gpu.multiprocessors};
  config.product.outputs = 0;
  for (auto [i, part] : llvm::enumerate(parts)) {
    config.parts[i] = rowsOf(part);
    config.product.outputs += rowsOf(part);
  }
  config.product.warps = cuda::streamWarps;
  // Lanes read the input once for all rows of weights that they have: of few
  // bits a weight that takes longer than the weights do.
  const bool isNarrow = cuda::hasScales(config.product.format);
  if (isNarrow && weights == 1 && config.product.maxRows <= 2)
    config.product.outputsPerWarp = 4;
  setTile(attr, "outputsPerWarp", config.product.outputsPerWarp);
  setTile(attr, "stageBytes", config.stageBytes);
  setTile(attr, "blocks", config.blocks);
  return config;
}

// Two weights halve the loads in flight: as many bytes are under way.
cuda::GemvMmaConfig gemvMmaConfig(Value weight, size_t weights,
                                  kernel::MatmulConfigAttr attr) {
  cuda::GemvMmaConfig config{.format = formatRow(weight).format,
                             .outputs = rowsOf(weight),
                             .depth = widthOf(weight),
                             .weights = static_cast<int>(weights),
                             .maxRows = static_cast<int>(attr.getRowBlock()),
                             .unroll = static_cast<int>(4 / weights)};
  setTile(attr, "warps", config.warps);
  setTile(attr, "unroll", config.unroll);
  return config;
}

cuda::GemmConfig gemmConfig(Value weight, size_t weights,
                            kernel::MatmulConfigAttr attr) {
  cuda::GemmConfig config{.format = formatRow(weight).format,
                          .outputs = rowsOf(weight),
                          .depth = widthOf(weight),
                          .weights = static_cast<int>(weights)};
  setTile(attr, "blockRows", config.blockRows);
  setTile(attr, "blockOutputs", config.blockOutputs);
  setTile(attr, "warpsAlongRows", config.warpsAlongRows);
  setTile(attr, "warpsAlongOutputs", config.warpsAlongOutputs);
  setTile(attr, "stages", config.stages);
  return config;
}

bool takesWgmma(Operation *op, const CudaTargetOptions &options) {
  const auto product = dyn_cast<kernel::MatmulOp>(op);
  const SmallVector<Value> weights =
      product ? weightsOf(product) : weightsOf(cast<kernel::QkvOp>(op));
  return options.gpu.tier == KernelTier::Sm90 &&
         llvm::all_of(weights, isPackable) && areOfOneFormat(weights);
}

/// Of matrices that share their input; `weights` of them have the first one's
/// shape.
static cuda::WgmmaConfig wgmmaConfig(ArrayRef<Value> parts, size_t weights,
                                     kernel::MatmulConfigAttr attr,
                                     const CudaTargetOptions &options) {
  SmallVector<int64_t> outputs;
  for (Value part : parts)
    outputs.push_back(rowsOf(part));
  cuda::WgmmaConfig config = chooseWgmmaTiles(
      formatRow(parts.front()).format, outputs, widthOf(parts.front()),
      static_cast<int>(weights), options.maxPrefill, options.gpu);
  setTile(attr, "panels", config.panels);
  setTile(attr, "panelOutputs", config.panelOutputs);
  setTile(attr, "cluster", config.cluster);
  dealWgmmaTiles(config, options.maxPrefill, options.gpu);
  return config;
}

cuda::WgmmaConfig wgmmaConfig(kernel::MatmulOp op,
                              const CudaTargetOptions &options) {
  return wgmmaConfig(op.getWeights()[0], op.getWeights().size(),
                     op.getConfigAttr(), options);
}

cuda::WgmmaConfig wgmmaConfig(kernel::QkvOp op,
                              const CudaTargetOptions &options) {
  return wgmmaConfig(weightsOf(op), 1, op.getConfigAttr(), options);
}

cuda::StreamConfig streamConfig(kernel::MatmulOp op,
                                const CudaTargetOptions &options) {
  return streamConfig(op.getWeights()[0], op.getWeights().size(),
                      op.getConfigAttr(), options);
}

bool streams(kernel::QkvOp op, const CudaTargetOptions &options) {
  return streams(op.getConfigAttr(), options) && areOfOneFormat(weightsOf(op));
}

cuda::StreamConfig streamConfig(kernel::QkvOp op,
                                const CudaTargetOptions &options) {
  return streamConfig(weightsOf(op), 1, op.getConfigAttr(), options);
}

cuda::QkvConfig<cuda::GemvConfig>
qkvGemvConfig(kernel::QkvOp op, const CudaTargetOptions &options) {
  auto product = [&](Value weight) {
    return gemvConfig(weight, 1, op.getConfigAttr());
  };
  return {product(op.getQueryWeight()), product(op.getKeyWeight()),
          product(op.getValueWeight()),
          kvConfig(cast<llama::KVType>(op.getKv().getType()), options)};
}

cuda::QkvConfig<cuda::GemvMmaConfig>
qkvGemvMmaConfig(kernel::QkvOp op, const CudaTargetOptions &options) {
  auto product = [&](Value weight) {
    return gemvMmaConfig(weight, 1, op.getConfigAttr());
  };
  return {product(op.getQueryWeight()), product(op.getKeyWeight()),
          product(op.getValueWeight()),
          kvConfig(cast<llama::KVType>(op.getKv().getType()), options)};
}

cuda::QkvConfig<cuda::GemmConfig>
qkvGemmConfig(kernel::QkvOp op, const CudaTargetOptions &options) {
  auto product = [&](Value weight) {
    return gemmConfig(weight, 1, op.getConfigAttr());
  };
  return {product(op.getQueryWeight()), product(op.getKeyWeight()),
          product(op.getValueWeight()),
          kvConfig(cast<llama::KVType>(op.getKv().getType()), options)};
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

cuda::AttentionConfig attentionConfigOf(kernel::AttentionOp op,
                                        const CudaTargetOptions &options) {
  const AttentionShape shape = attentionShapeOf(op);
  cuda::AttentionConfig config =
      attentionConfig(kvConfig(shape.kv, options), shape.heads, shape.scale);
  setTile(op.getConfigAttr(), "splits", config.splits);
  setTile(op.getConfigAttr(), "minSplitTokens", config.minSplitTokens);
  setTile(op.getConfigAttr(), "stages", config.stages);
  return config;
}

bool attendsByWgmma(kernel::AttentionOp op, const CudaTargetOptions &options) {
  return options.gpu.tier == KernelTier::Sm90 &&
         op.getConfigAttr().getFamily() == kernel::AttentionFamily::Unsplit &&
         cuda::takesWgmmaAttention(attentionConfigOf(op, options));
}

} // namespace llamac
