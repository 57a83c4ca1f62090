//===- LiveRanges.cpp - When the buffers of a program are live ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/LiveRanges.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <map>

using namespace mlir;

namespace llamac {

/// Buffers start on cache lines.
static constexpr uint64_t alignment = 64;

std::vector<LiveRange> liveRanges(plan::ProgramOp program) {
  std::vector<LiveRange> ranges;
  llvm::DenseMap<Value, size_t> index;
  // Made of all rows and read by the launches of logits rows.
  std::vector<size_t> ofLogits;
  int64_t interval = 0;
  for (Operation &op : program.getBody().front()) {
    if (auto launch = dyn_cast<plan::LaunchOp>(op)) {
      interval += launch.getBarrier();
      for (Value arg : launch.getArgs()) {
        auto buffer = arg.getDefiningOp<plan::BufferOp>();
        if (!buffer)
          continue;
        if (index.try_emplace(arg, ranges.size()).second) {
          const auto bytes =
              static_cast<int64_t>(llvm::alignTo(buffer.getBytes(), alignment));
          ranges.push_back({buffer, launch, bytes, interval, interval});
        }
        ranges[index[arg]].last = interval;
        if (launch.getRows() == plan::RowSymbol::LogitsRows &&
            ranges[index[arg]].maker.getRows() == plan::RowSymbol::Tokens)
          ofLogits.push_back(index[arg]);
      }
    } else if (isa<plan::LogitsOp, plan::FeaturesOp, plan::TokensOp>(op)) {
      ++interval;
      if (auto it = index.find(op.getOperand(0)); it != index.end())
        ranges[it->second].last = interval;
    }
  }
  for (size_t range : ofLogits)
    ranges[range].last = interval;
  return ranges;
}

int64_t mostLive(ArrayRef<LiveRange> ranges) {
  // Bytes born less bytes that died, by the interval in which they count.
  std::map<int64_t, int64_t> changes;
  for (const LiveRange &range : ranges) {
    changes[range.first] += range.bytes;
    changes[range.last + 1] -= range.bytes;
  }
  int64_t live = 0, most = 0;
  for (const auto &[interval, change] : changes) {
    live += change;
    most = std::max(most, live);
  }
  return most;
}

} // namespace llamac
