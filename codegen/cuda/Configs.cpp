//===- Configs.cpp - What the kernels of an op are made with --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Configs.h"

#include <algorithm>

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
  const FormatRow *row = findFormat(formatRows, weight);
  // Any other is uploaded as bf16.
  return row ? *row : formatRows[1];
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

SmallVector<Value> weightsOf(Operation *op) {
  if (auto product = dyn_cast<kernel::MatmulOp>(op))
    return llvm::to_vector(product.getWeights());
  assert((isa<kernel::QkvOp, kernel::QkvProductsOp>(op)));
  return llvm::to_vector(op->getOperands().slice(1, 3)); // Behind the input.
}

kernel::MatmulConfigAttr matmulAttr(Operation *op) {
  return cast<kernel::MatmulConfigAttr>(op->getAttr("config"));
}

/// Matrices that share their input: several that lie apart, or `weights` of the
/// first one's shape.
static std::pair<SmallVector<Value>, int> partsOf(Operation *op) {
  SmallVector<Value> weights = weightsOf(op);
  if (!isa<kernel::MatmulOp>(op))
    return {weights, 1};
  return {{weights.front()}, static_cast<int>(weights.size())};
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

bool streams(Operation *op, const CudaTargetOptions &options) {
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
  // Later GPUs have the instructions too; what is best there was not measured.
  return options.gpu.tier == KernelTier::Sm90 &&
         attr.getFamily() == kernel::MatmulFamily::Gemv &&
         attr.getRowBlock() <= cuda::streamMaxRows &&
         tileOf(attr, "stream", 1) != 0 && areOfOneFormat(weightsOf(op));
}

cuda::StreamConfig streamConfig(Operation *op,
                                const CudaTargetOptions &options) {
  const auto [parts, weights] = partsOf(op);
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
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

// Two weights halve the loads in flight, so as many bytes are.
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
  const SmallVector<Value> weights = weightsOf(op);
  return options.gpu.tier == KernelTier::Sm90 &&
         llvm::all_of(weights, isPackable) && areOfOneFormat(weights);
}

/// Shared memory besides the stages: their barriers, up to the alignment of the
/// stages.
static constexpr int barrierBytes = 1024;

/// Of a ring: while one stage is multiplied, two are on their way.
static constexpr int fewestStages = 3;

static int stagesOf(const cuda::WgmmaConfig &config, const GpuSpec &gpu) {
  const int operands =
      cuda::wgmmaOperands(config) * cuda::wgmmaOperandBytes(config);
  return (gpu.blockSharedBytes - barrierBytes - operands) /
         cuda::wgmmaStageBytes(config);
}

/// A tile takes as long as its outputs, and as copying and rounding its share
/// of the input, which is worth about 64 outputs; tiles are made in waves.
static int64_t timeOf(const cuda::WgmmaConfig &config, int64_t tiles,
                      const GpuSpec &gpu) {
  const int64_t waves = cuda::divideUp(tiles, gpu.multiprocessors);
  return waves * (int64_t{config.panels} * config.panelOutputs + 64);
}

/// Gives `config` the stages that its panels leave room for, and the blocks
/// among which its tiles of at most `rows` rows are partitioned.
static void partitionWgmmaTiles(cuda::WgmmaConfig &config, int64_t rows,
                                const GpuSpec &gpu) {
  const int64_t tiles = cuda::roundUp(cuda::wgmmaTiles(config), config.cluster);
  config.blocks = static_cast<int>(std::min<int64_t>(
      gpu.multiprocessors, cuda::divideUp(rows, cuda::wgmmaRows) * tiles));
  config.stages = stagesOf(config, gpu);
}

cuda::WgmmaConfig chooseWgmmaTiles(cuda::WeightFormat format,
                                   ArrayRef<int64_t> outputs, int64_t depth,
                                   int weights, int64_t rows,
                                   const GpuSpec &gpu) {
  cuda::WgmmaConfig best{
      .format = format, .parts = {}, .depth = depth, .weights = weights};
  std::copy(outputs.begin(), outputs.end(), best.parts);
  const int64_t rowBlocks = cuda::divideUp(rows, cuda::wgmmaRows);
  int64_t bestTime = INT64_MAX;
  // From the largest: of equals it reads the least.
  for (const auto &[panels, panelOutputs] :
       {std::pair(2, 128), std::pair(1, 128), std::pair(2, 64),
        std::pair(1, 64)}) {
    if (panels < weights)
      continue;
    cuda::WgmmaConfig config = best;
    config.panels = panels;
    config.panelOutputs = panelOutputs;
    if (stagesOf(config, gpu) < fewestStages)
      continue;
    const int64_t time =
        timeOf(config, rowBlocks * cuda::wgmmaTiles(config), gpu);
    if (time < bestTime) {
      best = config;
      bestTime = time;
    }
  }
  best.cluster = cuda::wgmmaTiles(best) > 1 ? 2 : 1;
  partitionWgmmaTiles(best, rows, gpu);
  return best;
}

bool isLegalWgmma(const cuda::WgmmaConfig &config) {
  return config.stages >= fewestStages &&
         (config.cluster == 1 || cuda::wgmmaTiles(config) > 1);
}

cuda::WgmmaConfig wgmmaConfig(Operation *op, const CudaTargetOptions &options) {
  const auto [parts, weights] = partsOf(op);
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
  cuda::WgmmaConfig config = chooseWgmmaTiles(
      formatRow(parts.front()).format,
      llvm::to_vector(llvm::map_range(parts, rowsOf)), widthOf(parts.front()),
      weights, options.maxPrefill, options.gpu);
  setTile(attr, "panels", config.panels);
  setTile(attr, "panelOutputs", config.panelOutputs);
  setTile(attr, "cluster", config.cluster);
  partitionWgmmaTiles(config, options.maxPrefill, options.gpu);
  return config;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

cuda::AttentionConfig attentionConfigOf(kernel::AttentionOp op,
                                        const CudaTargetOptions &options) {
  const AttentionShape shape = attentionShapeOf(op);
  cuda::AttentionConfig config =
      attentionConfig(kvConfig(shape.kv, options), shape.heads, shape.scale);
  config.window = static_cast<int>(shape.window);
  // Two tiles of small heads are fewer bytes than memory delivers within its
  // latency; as many blocks as split attention has fit beside them.
  if (options.gpu.tier == KernelTier::Sm90 && config.kv.headSize <= 64)
    config.stages = 4;
  // One tile of large heads is all that fits into some GPUs.
  if (op.getConfigAttr().getFamily() == kernel::AttentionFamily::Merged &&
      cuda::attentionSplitShape(config).sharedBytes >
          options.gpu.blockSharedBytes)
    config.stages = 1;
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
