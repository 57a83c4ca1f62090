//===- BufferLives.cpp - When the buffers of a program are alive ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/BufferLives.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace llamac {

/// Buffers start on cache lines.
static constexpr int64_t alignment = 64;

std::vector<BufferLife> bufferLives(plan::ProgramOp program) {
  std::vector<BufferLife> buffers;
  llvm::DenseMap<Value, size_t> index;
  int64_t phase = 0;
  for (Operation &op : program.getBody().front()) {
    if (auto launch = dyn_cast<plan::LaunchOp>(op)) {
      phase += launch.getBarrier();
      for (Value arg : launch.getArgs()) {
        auto buffer = arg.getDefiningOp<plan::BufferOp>();
        if (!buffer)
          continue;
        if (index.try_emplace(arg, buffers.size()).second) {
          const int64_t bytes = static_cast<int64_t>(llvm::alignTo(
              static_cast<uint64_t>(buffer.getBytes()), alignment));
          buffers.push_back({buffer, launch, bytes, phase, phase});
        }
        buffers[index[arg]].lastPhase = phase;
      }
    } else if (isa<plan::LogitsOp, plan::TokensOp>(op)) {
      ++phase;
      if (auto it = index.find(op.getOperand(0)); it != index.end())
        buffers[it->second].lastPhase = phase;
    }
  }
  return buffers;
}

int64_t mostAlive(ArrayRef<BufferLife> buffers) {
  // What is born less what died, by the phase in which it counts.
  std::map<int64_t, int64_t> changes;
  for (const BufferLife &buffer : buffers) {
    changes[buffer.firstPhase] += buffer.bytes;
    changes[buffer.lastPhase + 1] -= buffer.bytes;
  }
  int64_t alive = 0, most = 0;
  for (const auto &[phase, change] : changes) {
    alive += change;
    most = std::max(most, alive);
  }
  return most;
}

} // namespace llamac
