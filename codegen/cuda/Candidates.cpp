//===- Candidates.cpp - Tiles that a kernel may have ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of each family a grid of sizes, of which those stay that its skeleton takes,
// that make another kernel, that fit into the GPU's shared memory, and whose
// sums and loads in flight fit into registers. The limits of these are careful
// guesses, which tests/codegen/cuda/CandidateGateTest.cpp checks by compiling.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Candidates.h"
#include "codegen/OpShapes.h"
#include "codegen/cuda/Configs.h"
#include "codegen/cuda/Occupancy.h"
#include "codegen/cuda/WgmmaTiles.h"

#include "mlir/IR/OwningOpRef.h"

#include <algorithm>

using namespace mlir;

namespace llamac {

//===----------------------------------------------------------------------===//
// Grids
//===----------------------------------------------------------------------===//

namespace {

/// A size, and what it may be.
struct Knob {
  StringRef name;
  std::vector<int64_t> sizes;
};

} // namespace

/// Every choice of a size for each knob, behind `fixed`.
static std::vector<Tiles> grid(ArrayRef<Knob> knobs, const Tiles &fixed = {}) {
  std::vector<Tiles> all = {fixed};
  for (const Knob &knob : knobs) {
    std::vector<Tiles> longer;
    for (const Tiles &tiles : all)
      for (const int64_t size : knob.sizes) {
        longer.push_back(tiles);
        longer.back().emplace_back(knob.name, size);
      }
    all = std::move(longer);
  }
  return all;
}

/// The config that `op` would have with `tiles`.
static kernel::MatmulConfigAttr matmulAttr(Operation *op, const Tiles &tiles) {
  return cast<kernel::MatmulConfigAttr>(withTiles(op, tiles));
}

static kernel::MatmulConfigAttr matmulAttr(Operation *op) {
  return cast<kernel::MatmulConfigAttr>(op->getAttr("config"));
}

/// `op` with other tiles; it stands in no block.
static OwningOpRef<Operation *> copyWith(Operation *op, const Tiles &tiles) {
  OwningOpRef<Operation *> copy = op->clone();
  (*copy)->setAttr("config", withTiles(op, tiles));
  return copy;
}

/// The products of a launch that share its tiles: first weights, and how many
/// of the shape.
static SmallVector<std::pair<Value, size_t>> productsOf(Operation *op) {
  if (auto product = dyn_cast<kernel::MatmulOp>(op))
    return {{product.getWeights()[0], product.getWeights().size()}};
  SmallVector<std::pair<Value, size_t>> products;
  for (Value weight : weightsOf(cast<kernel::QkvOp>(op)))
    products.emplace_back(weight, 1);
  return products;
}

/// Whether all products of `op` with `attr`, as `configOf` gives them, are what
/// `isLegal` takes.
template <typename ConfigOf, typename IsLegal>
static bool allOf(Operation *op, kernel::MatmulConfigAttr attr,
                  ConfigOf configOf, IsLegal isLegal) {
  return llvm::all_of(productsOf(op), [&](const auto &product) {
    return isLegal(configOf(product.first, product.second, attr));
  });
}

static bool streamsWeights(Operation *op, const CudaTargetOptions &options) {
  if (auto product = dyn_cast<kernel::MatmulOp>(op))
    return streams(product, options);
  return streams(cast<kernel::QkvOp>(op), options);
}

static cuda::StreamConfig streamOf(Operation *op,
                                   const CudaTargetOptions &options) {
  if (auto product = dyn_cast<kernel::MatmulOp>(op))
    return streamConfig(product, options);
  return streamConfig(cast<kernel::QkvOp>(op), options);
}

static cuda::WgmmaConfig wgmmaOf(Operation *op,
                                 const CudaTargetOptions &options) {
  if (auto product = dyn_cast<kernel::MatmulOp>(op))
    return wgmmaConfig(product, options);
  return wgmmaConfig(cast<kernel::QkvOp>(op), options);
}

//===----------------------------------------------------------------------===//
// What is legal
//===----------------------------------------------------------------------===//

/// 16-byte reads of a row.
static int64_t chunksOf(const auto &config) {
  return config.depth / cuda::chunkElements(config.format);
}

/// Sums, and loads in flight, stay in registers; and there is a row long enough
/// to have so many of them in flight.
static bool isLegal(const cuda::GemvConfig &config) {
  const int loads = config.weights * config.outputsPerWarp * config.unroll;
  return config.maxRows * config.outputsPerWarp / 2 <= 32 &&
         config.maxRows * loads <= 2 * maxUnrolledSums && loads <= 32 &&
         (config.unroll == 1 ||
          int64_t{32} * config.unroll <= chunksOf(config));
}

static bool isLegal(const cuda::GemvMmaConfig &config) {
  const int loads = config.weights * config.unroll;
  return loads <= 8 && (config.warps <= 8 || loads <= 4) &&
         (config.unroll == 1 ||
          int64_t{4} * config.warps * config.unroll <= chunksOf(config));
}

/// A warp's sums leave registers for the fragments and, of weights that are not
/// bf16, for what is on its way to be unpacked.
static bool isLegal(const cuda::GemmConfig &config) {
  const int rows = config.blockRows / config.warpsAlongRows;
  const int outputs = config.blockOutputs / config.warpsAlongOutputs;
  return rows % 16 == 0 && outputs % 16 == 0 &&
         rows * outputs * config.weights / 32 <= 128;
}

static bool isLegal(const cuda::StreamConfig &config) {
  if (cuda::streamsByMma(config))
    return true;
  const cuda::GemvConfig &product = config.product;
  return cuda::streamStages(config) >= 2 &&
         product.maxRows * product.weights * product.outputsPerWarp <= 16;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// About as many bytes in flight as by default, half of it and twice.
static std::vector<Tiles> gemvGrid(const Tiles &fixed) {
  std::vector<Tiles> all;
  for (const Tiles &tiles : grid({{"outputsPerWarp", {2, 4}},
                                  {"unroll", {1, 2, 4, 8}},
                                  {"warps", {4, 8}}},
                                 fixed)) {
    const auto *sizes = &tiles[fixed.size()];
    const int64_t loads = sizes[0].second * sizes[1].second;
    if (loads >= 4 && loads <= 16)
      all.push_back(tiles);
  }
  return all;
}

static std::vector<Tiles> gemvCandidates(Operation *op,
                                         const CudaTargetOptions &options) {
  std::vector<Tiles> all;
  const bool streams = streamsWeights(op, options);
  // Beside a ring, registers as by default, with the sizes around it.
  const Tiles fixed = streams ? Tiles{{"stream", 0}} : Tiles{};
  for (const Tiles &tiles : gemvGrid(fixed))
    if (allOf(op, matmulAttr(op, tiles), gemvConfig,
              [](const cuda::GemvConfig &config) { return isLegal(config); }))
      all.push_back(tiles);
  if (!streams)
    return all;
  const cuda::StreamConfig own = streamOf(op, options);
  const bool byMma = cuda::streamsByMma(own);
  // A block more on each multiprocessor leaves no room for the next launch.
  const int64_t blocks = options.gpu.multiprocessors;
  std::vector<Knob> knobs = {{"stageBytes", {1024, 2048, 4096}},
                             {"blocks", {blocks, 2 * blocks}}};
  if (!byMma)
    knobs.push_back({"outputsPerWarp", {2, 4}});
  for (const Tiles &tiles : grid(knobs)) {
    const cuda::StreamConfig config = streamOf(*copyWith(op, tiles), options);
    if (cuda::streamsByMma(config) == byMma && isLegal(config))
      all.push_back(tiles);
  }
  return all;
}

static std::vector<Tiles> gemvMmaCandidates(Operation *op) {
  std::vector<Tiles> all;
  for (const Tiles &tiles :
       grid({{"unroll", {1, 2, 4, 8}}, {"warps", {4, 8, 16}}}))
    if (allOf(
            op, matmulAttr(op, tiles), gemvMmaConfig,
            [](const cuda::GemvMmaConfig &config) { return isLegal(config); }))
      all.push_back(tiles);
  return all;
}

static std::vector<Tiles> gemmCandidates(Operation *op) {
  static constexpr struct {
    int64_t rows, outputs, alongRows, alongOutputs;
  } blocks[] = {{32, 64, 1, 2},  {32, 128, 1, 4},  {64, 64, 2, 2},
                {64, 128, 2, 4}, {128, 64, 4, 2},  {128, 64, 2, 2},
                {64, 128, 2, 2}, {128, 128, 4, 2}, {128, 128, 2, 4}};
  std::vector<Tiles> all;
  for (const auto &block : blocks)
    for (const Tiles &tiles : grid({{"stages", {3, 4}}},
                                   {{"blockRows", block.rows},
                                    {"blockOutputs", block.outputs},
                                    {"warpsAlongRows", block.alongRows},
                                    {"warpsAlongOutputs", block.alongOutputs}}))
      if (allOf(op, matmulAttr(op, tiles), gemmConfig,
                [](const cuda::GemmConfig &config) { return isLegal(config); }))
        all.push_back(tiles);
  return all;
}

static std::vector<Tiles> wgmmaCandidates(Operation *op,
                                          const CudaTargetOptions &options) {
  std::vector<Tiles> all;
  // A panel for each weight at least.
  const std::vector<int64_t> panels = wgmmaOf(op, options).weights == 2
                                          ? std::vector<int64_t>{2}
                                          : std::vector<int64_t>{1, 2};
  for (const Tiles &tiles : grid({{"panels", panels},
                                  {"panelOutputs", {64, 128}},
                                  {"cluster", {1, 2}}}))
    if (isLegalWgmma(wgmmaOf(*copyWith(op, tiles), options)))
      all.push_back(tiles);
  return all;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// More splits than by default would need more memory for partial results.
static std::vector<Tiles>
attentionCandidates(kernel::AttentionOp op, const CudaTargetOptions &options) {
  if (attendsByWgmma(op, options))
    return {};
  if (op.getConfigAttr().getFamily() == kernel::AttentionFamily::Whole)
    return grid({{"stages", {2, 3, 4}}});
  const int64_t splits = attentionConfigOf(op, options).splits;
  return grid({{"splits", {splits / 2, splits}},
               {"minSplitTokens", {64, 128, 256, 512}},
               {"stages", {2, 3}}});
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

/// All that fit the skeletons, the one that `op` has among them.
static std::vector<Tiles> legalTiles(Operation *op,
                                     const CudaTargetOptions &options) {
  if (auto attention = dyn_cast<kernel::AttentionOp>(op))
    return attentionCandidates(attention, options);
  switch (matmulAttr(op).getFamily()) {
  case kernel::MatmulFamily::Gemv:
    return gemvCandidates(op, options);
  case kernel::MatmulFamily::GemvMma:
    return gemvMmaCandidates(op);
  case kernel::MatmulFamily::Gemm:
    return gemmCandidates(op);
  case kernel::MatmulFamily::Wgmma:
    return wgmmaCandidates(op, options);
  }
  llvm_unreachable("no other family");
}

std::vector<Tiles> candidatesOf(Operation *op,
                                const CudaTargetOptions &options) {
  const CudaFamily *family = cudaFamilyOf(op);
  if (!family || !op->hasAttr("config"))
    return {};
  std::vector<Tiles> all;
  std::vector<std::string> known = {family->text(op, options).parts};
  for (const Tiles &tiles : legalTiles(op, options)) {
    const OwningOpRef<Operation *> copy = copyWith(op, tiles);
    std::string parts = family->text(*copy, options).parts;
    if (llvm::is_contained(known, parts) ||
        !excessOf(family->shape(*copy, options), options.gpu).empty())
      continue;
    known.push_back(std::move(parts));
    all.push_back(tiles);
  }
  return all;
}

//===----------------------------------------------------------------------===//
// What the cost model asks
//===----------------------------------------------------------------------===//

/// Blocks that a multiprocessor has at a time, of threads that take about
/// `registers`.
static int64_t residentOf(const cuda::LaunchShape &shape, int registers,
                          const GpuSpec &gpu) {
  const int most = gpu.smRegisters / (shape.threads * shape.minBlocks);
  return std::max(
      1, residentBlocks(gpu, {.registers = std::clamp(registers, 32, most),
                              .threads = shape.threads,
                              .sharedBytes = shape.sharedBytes}));
}

/// Registers for addresses, counters and the input.
static constexpr int plainRegisters = 32;

/// Of 16 bytes of weights and their scales.
static constexpr int chunkRegisters = 5;

static TileModel gemvModel(const cuda::GemvConfig &config,
                           const cuda::LaunchShape &shape, const GpuSpec &gpu) {
  const int64_t unroll =
      std::clamp<int64_t>(chunksOf(config) / 32, 1, config.unroll);
  const int64_t loads = unroll * config.weights * config.outputsPerWarp;
  const int sums = config.maxRows * config.weights * config.outputsPerWarp;
  const int held = static_cast<int>(loads) * chunkRegisters;
  return {.rowBytes = config.depth * 4,
          .flightBytes = int64_t{config.warps} * 32 * 16 * loads,
          .resident = residentOf(shape, plainRegisters + sums + held, gpu)};
}

/// A block reads its input once for all of its tiles.
static TileModel streamModel(const cuda::StreamConfig &config,
                             const cuda::LaunchShape &shape,
                             const GpuSpec &gpu) {
  const bool byMma = cuda::streamsByMma(config);
  const int64_t units = cuda::streamUnits(config, 0) +
                        cuda::streamUnits(config, 1) +
                        cuda::streamUnits(config, 2);
  const int64_t tiles =
      byMma ? units : cuda::divideUp(units, cuda::streamWarps);
  const int64_t stage =
      byMma ? cuda::splitStages(config) *
                  cuda::splitStageBytes(config.product,
                                        cuda::splitSegment(config))
            : cuda::streamWarps * cuda::streamStages(config) *
                  cuda::streamStageBytes(config);
  return {.rowBytes = config.product.depth * 4 *
                      std::min<int64_t>(shape.items, tiles) / tiles,
          .flightBytes = stage,
          .resident = residentOf(shape, 128, gpu),
          .tiles = tiles,
          .usesMatrixUnits = byMma};
}

static TileModel gemvMmaModel(const cuda::GemvMmaConfig &config,
                              const cuda::LaunchShape &shape,
                              const GpuSpec &gpu) {
  const int loads = 2 * config.unroll * config.weights;
  const int sums = config.weights * config.maxRows / 2;
  return {.rowBytes = config.depth * 4,
          .flightBytes = int64_t{config.warps} * 32 * 16 * loads,
          .resident = residentOf(
              shape, plainRegisters + sums + loads * chunkRegisters, gpu),
          .usesMatrixUnits = true};
}

static TileModel gemmModel(const cuda::GemmConfig &config,
                           const cuda::LaunchShape &shape, const GpuSpec &gpu) {
  const int64_t rows = config.blockRows / config.warpsAlongRows;
  const int64_t outputs =
      config.weights * config.blockOutputs / config.warpsAlongOutputs;
  const int sums = static_cast<int>(rows * outputs / 32);
  // Of each 16 of the depth a warp reads its rows as f32 and its outputs as
  // bf16.
  return {
      .weightRows = config.blockRows,
      .rowBytes = config.depth * 4,
      .flightBytes = int64_t{config.stages - 1} * cuda::gemmStageBytes(config),
      .resident = residentOf(shape, 2 * plainRegisters + sums, gpu),
      .localBytes = 1024 * (64 * rows + 32 * outputs) / (32 * rows * outputs),
      .usesMatrixUnits = true};
}

static TileModel wgmmaModel(const cuda::WgmmaConfig &config) {
  const int64_t outputs = int64_t{config.panels} * config.panelOutputs;
  // A warpgroup reads 64 rows of f32 and all outputs; a cluster's blocks copy
  // the rows together.
  return {
      .weightRows = cuda::wgmmaRows,
      .rowBytes = config.depth * 4 / config.cluster,
      .flightBytes = int64_t{config.stages - 1} * cuda::wgmmaStageBytes(config),
      .resident = 1,
      .tiles = cuda::wgmmaTiles(config),
      .localBytes = 1024 * (int64_t{64} * 64 + 32 * outputs) / (2048 * outputs),
      .usesMatrixUnits = true};
}

static TileModel attentionModel(kernel::AttentionOp op,
                                const CudaTargetOptions &options) {
  if (attendsByWgmma(op, options))
    return {};
  const cuda::AttentionConfig config = attentionConfigOf(op, options);
  const cuda::LaunchShape shape = cudaFamilyOf(op)->shape(op, options);
  const bool isWhole =
      op.getConfigAttr().getFamily() == kernel::AttentionFamily::Whole;
  return {.weightRows = shape.rowBlock,
          .rowBytes = config.heads * config.kv.headSize * 4 / shape.items,
          .flightBytes =
              int64_t{config.stages - 1} * cuda::attentionStageBytes(config),
          .resident = residentOf(shape, 168, options.gpu),
          .tiles = isWhole ? 0 : shape.items / config.splits,
          .itemKeys = isWhole ? 0 : config.minSplitTokens,
          .usesMatrixUnits = true};
}

TileModel tileModelOf(Operation *op, const CudaTargetOptions &options) {
  const CudaFamily *family = cudaFamilyOf(op);
  if (!family || !op->hasAttr("config"))
    return {};
  if (auto attention = dyn_cast<kernel::AttentionOp>(op))
    return attentionModel(attention, options);
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
  const cuda::LaunchShape shape = family->shape(op, options);
  const auto [weight, weights] = productsOf(op).front();
  switch (attr.getFamily()) {
  case kernel::MatmulFamily::Gemv:
    return streamsWeights(op, options)
               ? streamModel(streamOf(op, options), shape, options.gpu)
               : gemvModel(gemvConfig(weight, weights, attr), shape,
                           options.gpu);
  case kernel::MatmulFamily::GemvMma:
    return gemvMmaModel(gemvMmaConfig(weight, weights, attr), shape,
                        options.gpu);
  case kernel::MatmulFamily::Gemm:
    return gemmModel(gemmConfig(weight, weights, attr), shape, options.gpu);
  case kernel::MatmulFamily::Wgmma:
    return wgmmaModel(wgmmaOf(op, options));
  }
  llvm_unreachable("no other family");
}

} // namespace llamac
