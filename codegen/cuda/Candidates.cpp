//===- Candidates.cpp - Tiles that a kernel may have ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each family has a grid of sizes. Those stay that its skeleton takes, that
// make another kernel, that fit into the GPU's shared memory, and whose sums
// and loads in flight fit into registers. The limits of these are careful
// guesses, which tests/codegen/cuda/CandidateGateTest.cpp checks by compiling.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Configs.h"

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

/// `op` with other tiles; it stands in no block.
static OwningOpRef<Operation *> copyWith(Operation *op, const Tiles &tiles) {
  OwningOpRef<Operation *> copy = op->clone();
  (*copy)->setAttr("config", withTiles(op, tiles));
  return copy;
}

//===----------------------------------------------------------------------===//
// Legality
//===----------------------------------------------------------------------===//

/// How many chunks the lanes read of a row.
static int64_t chunksOf(const auto &config) {
  return cuda::chunksOfRow(config.format, config.depth);
}

/// Sums, and loads in flight, stay in registers: what one row saves in sums is
/// no room for more loads than two rows have. And there is a row long enough to
/// have so many of them in flight.
static bool isLegal(const cuda::GemvConfig &config) {
  const int loads = config.weights * config.outputsPerWarp * config.unroll;
  // Four outputs of block formats spill on some GPU.
  return (config.outputsPerWarp == 2 || !cuda::hasScales(config.format)) &&
         config.maxRows * config.outputsPerWarp / 2 <= 32 &&
         std::max(config.maxRows, 2) * loads <=
             2 * maxUnrolledSums(config.format) &&
         (config.unroll == 1 ||
          int64_t{32} * config.unroll <= chunksOf(config));
}

static bool isLegal(const cuda::StreamConfig &config) {
  if (cuda::streamsByMma(config))
    return cuda::halvesStages(config) >= 2;
  const cuda::GemvConfig &product = config.product;
  return cuda::streamStages(config) >= 2 &&
         product.maxRows * product.weights * product.outputsPerWarp <= 16;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static std::vector<Tiles> gemvCandidates(Operation *op,
                                         const CudaTargetOptions &options) {
  const bool isStream = streams(op, options);
  // Beside a ring, registers as by default, with the sizes around it.
  const Tiles fixed = isStream ? Tiles{{"stream", 0}} : Tiles{};
  std::vector<Tiles> sizes = grid(
      {{"outputsPerWarp", {2, 4}}, {"unroll", {1, 2, 4, 8}}, {"warps", {4, 8}}},
      fixed);
  // About as many bytes in flight as by default, half of it and twice.
  llvm::erase_if(sizes, [&](const Tiles &tiles) {
    const auto *own = &tiles[fixed.size()];
    const int64_t loads = own[0].second * own[1].second;
    return loads < 4 || loads > 16;
  });
  llvm::erase_if(sizes, [&](const Tiles &tiles) {
    const auto attr = cast<kernel::MatmulConfigAttr>(withTiles(op, tiles));
    return llvm::any_of(weightsOf(op), [&](Value weight) {
      return !isLegal(gemvConfig(weight, partsOf(op).second, attr));
    });
  });
  std::vector<Tiles> all = std::move(sizes);
  const Tiles streamed = isStream ? Tiles{} : Tiles{{"stream", 1}};
  if (!streams(*copyWith(op, streamed), options))
    return all;
  const bool byMma = cuda::streamsByMma(streamConfig(op, options));
  // A block more on each multiprocessor leaves no room for the next launch.
  const int64_t blocks = options.gpu.multiprocessors;
  std::vector<Knob> knobs = {{"stageBytes", {2048, 4096, 8192}},
                             {"blocks", {blocks, 2 * blocks}}};
  if (!byMma)
    knobs.push_back({"outputsPerWarp", {2, 4}});
  for (const Tiles &tiles : grid(knobs, streamed)) {
    const cuda::StreamConfig config =
        streamConfig(*copyWith(op, tiles), options);
    if (cuda::streamsByMma(config) == byMma && isLegal(config))
      all.push_back(tiles);
  }
  return all;
}

/// How many blocks may share a tile: workspace is that of the op's own splits.
static std::vector<int64_t> splitsUpTo(int own) {
  return own > 1 ? std::vector<int64_t>{std::max(2, own / 2), own}
                 : std::vector<int64_t>{1};
}

static std::vector<Tiles> gemmCandidates(Operation *op,
                                         const CudaTargetOptions &options) {
  const cuda::GemmConfig own = gemmConfigs(op, options)[0];
  std::vector<int64_t> rows;
  for (const int64_t count : {16, 32, 64, 128})
    if (count >= own.tileRows / 2 && count <= 2 * own.tileRows)
      rows.push_back(count);
  std::vector<Tiles> all = grid({{"tileRows", rows},
                                 {"warpsAlongRows", {1, 2}},
                                 {"warpsAlongOutputs", {2, 4, 8}},
                                 {"splits", splitsUpTo(own.splits)}});
  llvm::erase_if(all, [&](const Tiles &tiles) {
    return !llvm::all_of(gemmConfigs(*copyWith(op, tiles), options),
                         [&](const cuda::GemmConfig &config) {
                           return isLegalGemm(config, options.gpu);
                         });
  });
  return all;
}

static std::vector<Tiles> wgmmaCandidates(Operation *op,
                                          const CudaTargetOptions &options) {
  // A panel for each weight at least.
  std::vector<int64_t> panels = {1, 2};
  if (partsOf(op).second == 2)
    panels = {2};
  std::vector<Knob> knobs = {{"panels", panels}, {"cluster", {1, 2}}};
  const cuda::WgmmaConfig own = wgmmaConfig(op, options);
  if (own.batchRows == 0)
    knobs.push_back({"panelOutputs", {64, 128}});
  if (own.splits > 1)
    knobs.push_back({"splits", splitsUpTo(own.splits)});
  std::vector<Tiles> all = grid(knobs);
  llvm::erase_if(all, [&](const Tiles &tiles) {
    return !isLegalWgmma(wgmmaConfig(*copyWith(op, tiles), options));
  });
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
  if (op.getConfigAttr().getFamily() == kernel::AttentionFamily::Unsplit)
    return grid({{"stages", {2, 3, 4}}});
  const int64_t splits = attentionConfigOf(op, options).splits;
  const std::vector<int64_t> counts =
      splits == 1 ? std::vector<int64_t>{1} : std::vector{splits / 2, splits};
  return grid({{"splits", counts},
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
  case kernel::MatmulFamily::Gemm:
    return gemmCandidates(op, options);
  case kernel::MatmulFamily::Wgmma:
    return wgmmaCandidates(op, options);
  }
  llvm_unreachable("no other family");
}

/// Tiles are members of the structs of config.h, and `stream`, 0 for gemv
/// without a ring. Each choice makes a kernel of its own.
std::vector<Attribute> CudaTarget::otherConfigs(Operation *op) const {
  const CudaFamily *family = findFamily(cudaFamilies(), op);
  if (!family || !op->hasAttr("config"))
    return {};
  std::vector<Attribute> all;
  std::vector<std::string> known = {family->text(op, targetOptions).parts};
  for (const Tiles &tiles : legalTiles(op, targetOptions)) {
    const OwningOpRef<Operation *> copy = copyWith(op, tiles);
    std::string parts = family->text(*copy, targetOptions).parts;
    if (llvm::is_contained(known, parts) ||
        !exceededLimit(family->shape(*copy, targetOptions), targetOptions.gpu)
             .empty())
      continue;
    known.push_back(std::move(parts));
    all.push_back((*copy)->getAttr("config"));
  }
  return all;
}

//===----------------------------------------------------------------------===//
// The queries of the cost model
//===----------------------------------------------------------------------===//

/// Registers for addresses, counters and the input.
static constexpr int plainRegisters = 32;

/// Registers that hold a chunk of weights and its scales.
static constexpr int chunkRegisters = 5;

static TileModel gemvModel(const cuda::GemvConfig &config,
                           const cuda::LaunchShape &shape, const GpuSpec &gpu) {
  const int64_t unroll =
      std::clamp<int64_t>(chunksOf(config) / 32, 1, config.unroll);
  const int64_t loads = unroll * config.weights * config.outputsPerWarp;
  const int sums = config.maxRows * config.weights * config.outputsPerWarp;
  const int held = static_cast<int>(loads) * chunkRegisters;
  return {.rowBytes = config.depth * 4,
          .bytesInFlight = int64_t{config.warps} * 32 *
                           cuda::chunkBytes(config.format) * loads,
          .occupancy = occupancyOf(shape, plainRegisters + sums + held, gpu)};
}

/// A block reads its input once for all of its tiles.
static TileModel streamModel(const cuda::StreamConfig &config,
                             const cuda::LaunchShape &shape,
                             const GpuSpec &gpu) {
  const bool byMma = cuda::streamsByMma(config);
  const int64_t units = cuda::streamUnits(config);
  const int64_t tiles =
      byMma ? units : cuda::divideUp(units, cuda::streamWarps);
  const int64_t stage =
      byMma ? cuda::halvesStages(config) * cuda::halvesStageBytes(config)
            : cuda::streamWarps * cuda::streamStages(config) *
                  cuda::streamStageBytes(config);
  return {.rowBytes = config.product.depth * 4 *
                      std::min<int64_t>(shape.gridSize, tiles) / tiles,
          .bytesInFlight = stage,
          .occupancy = occupancyOf(shape, 128, gpu),
          .tiles = tiles,
          .usesMatrixUnits = byMma};
}

static TileModel wgmmaModel(const cuda::WgmmaConfig &config) {
  const int64_t outputs = int64_t{config.panels} * config.panelOutputs;
  // A warpgroup reads 64 rows and all outputs; a cluster's blocks copy the rows
  // or the weights together.
  return {.weightRows = cuda::wgmmaTileRows(config),
          .rowBytes = config.depth * 2 / (config.cluster * config.splits),
          .bytesInFlight =
              int64_t{config.stages - 1} * cuda::wgmmaStageBytes(config),
          .occupancy = cuda::wgmmaMinBlocks(config),
          .tiles = config.splits * cuda::wgmmaTiles(config),
          .localBytes =
              1024 * (int64_t{32} * 64 + 32 * outputs) / (2048 * outputs),
          .usesMatrixUnits = true};
}

static TileModel attentionModel(kernel::AttentionOp op,
                                const CudaTargetOptions &options) {
  const cuda::AttentionConfig config = attentionConfigOf(op, options);
  const cuda::LaunchShape shape = attentionLaunch(op, options);
  const bool isSplit =
      op.getConfigAttr().getFamily() == kernel::AttentionFamily::Merged;
  const bool byWgmma = attendsByWgmma(op, options);
  const int64_t tiles =
      isSplit ? cuda::attentionTiles(config) : config.kv.kvHeads;
  const int64_t bytesInFlight =
      byWgmma ? (cuda::wgmmaAttentionStages - 1) *
                    int64_t{cuda::wgmmaAttentionStageBytes(config)}
              : std::max<int64_t>(1, config.stages - 1) *
                    cuda::attentionStageBytes(config);
  return {.weightRows = isSplit   ? 1
                        : byWgmma ? cuda::wgmmaAttentionTileRows(config)
                                  : cuda::attentionTileRows(config),
          .rowBytes = config.heads * config.kv.headSize * 4 / tiles,
          .bytesInFlight = bytesInFlight,
          .occupancy = attentionOccupancy(shape, options.gpu),
          .tiles = tiles,
          .itemKeys = isSplit ? config.minSplitTokens : 0,
          .splits = isSplit ? config.splits : 0,
          .usesMatrixUnits = true};
}

TileModel tileModelOf(Operation *op, const CudaTargetOptions &options) {
  const CudaFamily *family = findFamily(cudaFamilies(), op);
  if (!family || !op->hasAttr("config"))
    return {};
  if (auto attention = dyn_cast<kernel::AttentionOp>(op))
    return attentionModel(attention, options);
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
  const cuda::LaunchShape shape = family->shape(op, options);
  const auto [parts, weights] = partsOf(op);
  switch (attr.getFamily()) {
  case kernel::MatmulFamily::Gemv:
    return streams(op, options)
               ? streamModel(streamConfig(op, options), shape, options.gpu)
               : gemvModel(gemvConfig(parts.front(), weights, attr), shape,
                           options.gpu);
  case kernel::MatmulFamily::Gemm:
    return gemmModel(op, options);
  case kernel::MatmulFamily::Wgmma:
    return wgmmaModel(wgmmaConfig(op, options));
  }
  llvm_unreachable("no other family");
}

} // namespace llamac
