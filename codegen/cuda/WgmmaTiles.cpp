//===- WgmmaTiles.cpp - Tiles of products on sm_90a -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/WgmmaTiles.h"

#include <algorithm>

using namespace llvm;

namespace llamac {

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
  dealWgmmaTiles(best, rows, gpu);
  return best;
}

void dealWgmmaTiles(cuda::WgmmaConfig &config, int64_t rows,
                    const GpuSpec &gpu) {
  const int64_t tiles = cuda::roundUp(cuda::wgmmaTiles(config), config.cluster);
  config.blocks = static_cast<int>(std::min<int64_t>(
      gpu.multiprocessors, cuda::divideUp(rows, cuda::wgmmaRows) * tiles));
  config.stages = stagesOf(config, gpu);
}

bool isLegalWgmma(const cuda::WgmmaConfig &config) {
  return config.stages >= fewestStages &&
         (config.cluster == 1 || cuda::wgmmaTiles(config) > 1);
}

} // namespace llamac
