//===- Occupancy.cpp - What fits on a multiprocessor together -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Occupancy.h"

#include <vector>

namespace llamac {

static constexpr int warpThreads = 32;
static constexpr int parts = 4;
static constexpr int registerUnit = 256;
static constexpr int sharedUnit = 128;

static int roundedUp(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

bool fitTogether(const GpuSpec &gpu, absl::Span<const BlockResources> blocks) {
  int registers = 0, warps = 0, shared = 0;
  for (const BlockResources &block : blocks) {
    const int ofBlock = roundedUp(block.threads, warpThreads) / warpThreads;
    // The fullest part gets its share, rounded up.
    const int ofPart = roundedUp(ofBlock, parts) / parts;
    registers +=
        ofPart * roundedUp(block.registers * warpThreads, registerUnit);
    warps += ofBlock;
    shared +=
        roundedUp(block.sharedBytes + GpuSpec::blockReservedBytes, sharedUnit);
  }
  return registers <= gpu.smRegisters / parts &&
         warps * warpThreads <= gpu.smThreads && shared <= gpu.smSharedBytes &&
         static_cast<int>(blocks.size()) <= gpu.smBlocks;
}

int residentBlocks(const GpuSpec &gpu, const BlockResources &block) {
  std::vector<BlockResources> blocks;
  do
    blocks.push_back(block);
  while (fitTogether(gpu, blocks));
  return static_cast<int>(blocks.size()) - 1;
}

} // namespace llamac
