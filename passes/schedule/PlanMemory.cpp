//===- PlanMemory.cpp - Buffers get offsets in one arena ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/schedule/LiveRanges.h"

#include "mlir/IR/Builders.h"

#include <limits>
#include <utility>

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"

namespace {

struct PlacedBuffer : LiveRange {
  int64_t offset = 0;
};

/// Buffers are placed in ascending order of their rank.
using Rank = std::pair<int64_t, int64_t> (*)(const LiveRange &);

/// Places `buffers` in the order of `rank`, at the lowest free offset each, and
/// gives the arena's size.
static int64_t place(std::vector<PlacedBuffer> &buffers, Rank rank) {
  auto order = llvm::to_vector(llvm::make_pointer_range(buffers));
  // Among equals the first used goes first: buffers lie in order of use.
  llvm::sort(order, [&](const PlacedBuffer *a, const PlacedBuffer *b) {
    return std::pair(rank(*a), a) < std::pair(rank(*b), b);
  });
  // Buffers placed so far, by offset.
  std::vector<PlacedBuffer *> placed;
  int64_t arena = 0;
  for (PlacedBuffer *buffer : order) {
    int64_t offset = 0;
    for (PlacedBuffer *other : placed)
      if (other->overlaps(*buffer) && offset + buffer->bytes > other->offset)
        offset = std::max(offset, other->offset + other->bytes);
    buffer->offset = offset;
    arena = std::max(arena, offset + buffer->bytes);
    placed.insert(llvm::upper_bound(placed, buffer,
                                    [](PlacedBuffer *a, PlacedBuffer *b) {
                                      return a->offset < b->offset;
                                    }),
                  buffer);
  }
  return arena;
}

/// Places `buffers` in the best of a few orders, none of which is best for
/// every model, and gives the arena's size.
static int64_t placeBest(std::vector<PlacedBuffer> &buffers) {
  static constexpr Rank ranks[] = {
      // Largest first.
      [](const LiveRange &range) {
        return std::pair(-range.bytes, int64_t{0});
      },
      // Longest-lived first: the residual stream lies below all else.
      [](const LiveRange &range) {
        return std::pair(range.first - range.last, -range.bytes);
      },
      // First used first.
      [](const LiveRange &range) {
        return std::pair(range.first, -range.bytes);
      },
  };
  std::vector<PlacedBuffer> best;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (Rank rank : ranks)
    if (const int64_t arena = place(buffers, rank); arena < smallest) {
      smallest = arena;
      best = buffers;
    }
  buffers = std::move(best);
  return smallest;
}

struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    plan::ProgramOp program = getOperation();
    std::vector<PlacedBuffer> buffers;
    for (const LiveRange &range : liveRanges(program))
      buffers.push_back({range});
    OpBuilder builder(&getContext());
    program.setArenaBytesAttr(builder.getI64IntegerAttr(placeBest(buffers)));
    for (PlacedBuffer &buffer : buffers)
      buffer.op.setOffsetAttr(builder.getI64IntegerAttr(buffer.offset));
  }
};

} // namespace

} // namespace llamac
