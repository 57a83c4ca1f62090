//===- GemmTiles.cpp - Tiles of products by mma ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cost model chooses, of the tiles that a GPU has room for, those that it
// expects the least time of, for the most rows of the program.
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/ConfigFields.h"
#include "codegen/cuda/Configs.h"

#include <algorithm>

using namespace mlir;

namespace llamac {

/// While one stage of a ring is multiplied, the next is on its way, better two;
/// more than `mostGemmStages` are more than memory delivers within its latency.
static constexpr int fewestGemmStages = 2, mostGemmStages = 6;

/// Shared memory beside the stages, up to their alignment: whether a block is
/// the last of a tile's, and the scales of a norm that is shared.
static int besideStages(const cuda::GemmConfig &config) {
  constexpr int flagBytes = 16;
  return static_cast<int>(cuda::roundUp(flagBytes + config.tileRows * 4, 1024));
}

/// Warps that a multiprocessor needs: of two on each scheduler one multiplies
/// while the other unpacks, or waits for its operands.
static constexpr int busyWarps = 8;

/// How many blocks may share the depth of a tile.
static constexpr int gemmSplitCounts[] = {1, 2, 3, 4, 6, 8, 12, 16};

/// Sums of splits of at most so many bytes stay in L2 until they are read.
static constexpr int64_t mostSplitBytes = int64_t{16} << 20;

/// Blocks that count themselves add so many seconds to a launch: the last one
/// waits for its own count, and then for the sums.
static constexpr double countSeconds = 1.5e-6;

/// All products of a launch, which have their tiles in common.
using Configs = SmallVector<cuda::GemmConfig, 3>;

static cuda::LaunchShape shapeOf(const Configs &configs) {
  return configs.size() == 1
             ? cuda::launchShape(configs[0])
             : cuda::launchShape(cuda::QkvConfig<cuda::GemmConfig>{
                   configs[0], configs[1], configs[2]});
}

/// Registers of a thread, which ptxas seldom needs more of: sums, operands and
/// addresses, and what unpacks weights, whose results it makes ahead for more
/// rows.
static int registersOf(const cuda::GemmConfig &config) {
  const int rows = cuda::gemmWarpRows(config);
  return cuda::hasScales(config.format) ? 72 + 2 * rows : 96 + rows;
}
static int registersOf(const Configs &configs) {
  int most = 0;
  for (const cuda::GemmConfig &config : configs)
    most = std::max(most, registersOf(config));
  return most;
}

/// Gives `configs` as many blocks on a multiprocessor as registers suffice for,
/// with three stages each, or if there is no room for them two.
static void setStages(Configs &configs, const GpuSpec &gpu) {
  int bytes = 0;
  for (const cuda::GemmConfig &config : configs)
    bytes = std::max(bytes, cuda::gemmStageBytes(config));
  auto stagesOf = [&](int blocks) {
    const int shared =
        std::min(gpu.blockSharedBytes,
                 gpu.smSharedBytes / blocks - GpuSpec::blockReservedBytes) -
        besideStages(configs[0]);
    return std::min(mostGemmStages, shared / bytes);
  };
  const int most =
      gpu.smRegisters / (cuda::gemmThreads(configs[0]) * registersOf(configs));
  int best = 1;
  for (int blocks = 2; blocks <= most; ++blocks)
    if (stagesOf(blocks) >= std::min(stagesOf(best), fewestGemmStages + 1))
      best = blocks;
  for (cuda::GemmConfig &each : configs) {
    each.minBlocks = best;
    each.stages = stagesOf(best);
  }
}

bool isLegalGemm(const cuda::GemmConfig &config, const GpuSpec &gpu) {
  return config.stages >= fewestGemmStages &&
         cuda::gemmWarpRows(config) >= 16 &&
         config.splits <= cuda::mostSplits(config.format, config.depth) &&
         cuda::gemmThreads(config) * registersOf(config) <= gpu.smRegisters &&
         registersOf(config) <= 255;
}

static TileModel modelOf(const Configs &configs, const GpuSpec &gpu) {
  const cuda::GemmConfig &config = configs[0];
  const int64_t rows = cuda::gemmWarpRows(config);
  const int64_t outputs =
      int64_t{config.warpsAlongOutputs} * cuda::gemmWarpOutputs;
  const int64_t bits =
      cuda::chunkBytes(config.format) * 8 / cuda::chunkElements(config.format);
  // A warp reads its rows and its outputs of each 16 of the depth, for 1024
  // operations a row, and a share of what comes into shared memory. Sums of
  // several splits are stored and read once more.
  return {.weightRows = config.tileRows,
          .rowBytes = config.depth * 2 / config.splits +
                      (config.splits > 1 ? 2 * 4 * outputs : 0),
          .bytesInFlight =
              int64_t{config.stages - 1} * cuda::gemmWeightBytes(config),
          .occupancy = occupancyOf(shapeOf(configs), registersOf(configs), gpu),
          .localBytes = 32 + 2 * 16 * 16 * bits / 8 / rows +
                        cuda::gemmStageBytes(config) /
                            (cuda::gemmThreads(config) / 32 * 4 * rows),
          .usesMatrixUnits = true};
}

/// Seconds of a step of `rows` rows.
static double secondsOf(const Configs &configs, int64_t rows,
                        const GpuSpec &gpu) {
  kernel::Cost cost;
  for (const cuda::GemmConfig &config : configs) {
    cost.weightBytes +=
        config.weights *
        cuda::packedWeightBytes(config.format, config.outputs, config.depth);
    cost.outputBytes += rows * config.outputs * 4;
    cost.flops += 2 * rows * config.weights * config.outputs * config.depth;
  }
  return predictedSeconds(modelOf(configs, gpu), shapeOf(configs).gridSize,
                          cost, {.rows = rows, .context = rows}, gpu.name) +
         (configs[0].splits > 1 ? countSeconds : 0);
}

static Configs chooseTiles(Configs configs, int64_t rows, const GpuSpec &gpu) {
  struct Warps {
    int alongRows, alongOutputs;
  };
  Configs best;
  double bestSeconds = 0;
  auto set = [&](int tileRows, const Warps &warps, int splits) {
    for (cuda::GemmConfig &config : configs) {
      config.tileRows = tileRows;
      config.warpsAlongRows = warps.alongRows;
      config.warpsAlongOutputs = warps.alongOutputs;
      config.splits = splits;
    }
    setStages(configs, gpu);
  };
  // Larger tiles come first: of equals they read the least.
  const int64_t mostRows = std::max<int64_t>(16, llvm::PowerOf2Ceil(rows));
  for (const int splits : gemmSplitCounts)
    for (const int tileRows : {128, 64, 32, 16})
      for (const Warps &warps : {Warps{1, 4}, Warps{2, 4}, Warps{1, 8}}) {
        if (tileRows > mostRows)
          continue;
        set(tileRows, warps, splits);
        if (rows * shapeOf(configs).workspaceBytes > mostSplitBytes ||
            !llvm::all_of(configs, [&](const cuda::GemmConfig &config) {
              return isLegalGemm(config, gpu);
            }))
          continue;
        const int residentWarps =
            configs[0].minBlocks * cuda::gemmThreads(configs[0]) / 32;
        const double seconds = secondsOf(configs, rows, gpu) *
                               (residentWarps < busyWarps ? 1.25 : 1);
        if (best.empty() || seconds < bestSeconds) {
          best = configs;
          bestSeconds = seconds;
        }
      }
  return best;
}

Configs gemmConfigs(Operation *op, const CudaTargetOptions &options) {
  const auto [parts, weights] = partsOf(op);
  const kernel::MatmulConfigAttr attr = matmulAttr(op);
  const bool isPacked = llvm::any_of(parts, [](Value weight) {
    return cuda::hasScales(deviceWeightOf(weight).format);
  });
  Configs configs;
  for (const Value part : parts)
    configs.push_back({.format = deviceWeightOf(part).format,
                       .outputs = rowsOf(part),
                       .depth = widthOf(part),
                       .weights = weights,
                       .input = isPacked ? cuda::RowFormat::LaneBF16
                                         : cuda::RowFormat::BF16});
  configs = chooseTiles(std::move(configs), attr.getRowBlock(), options.gpu);
  for (cuda::GemmConfig &config : configs)
    setTiles(config, attr);
  setStages(configs, options.gpu);
  return configs;
}

cuda::LaunchShape gemmShape(Operation *op, const CudaTargetOptions &options) {
  return shapeOf(gemmConfigs(op, options));
}

TileModel gemmModel(Operation *op, const CudaTargetOptions &options) {
  return modelOf(gemmConfigs(op, options), options.gpu);
}

} // namespace llamac
