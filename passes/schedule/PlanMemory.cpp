//===- PlanMemory.cpp - Buffers get offsets in one arena ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/schedule/BufferLives.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"

namespace {

struct PlacedBuffer : BufferLife {
  int64_t offset = 0;
};

/// Places `buffers` and gives the arena's size.
static int64_t place(std::vector<PlacedBuffer> &buffers) {
  std::vector<PlacedBuffer *> order;
  for (PlacedBuffer &buffer : buffers)
    order.push_back(&buffer);
  // Among equals the first used goes first: buffers lie in order of use.
  llvm::sort(order, [](const PlacedBuffer *a, const PlacedBuffer *b) {
    return std::make_pair(-a->bytes, a) < std::make_pair(-b->bytes, b);
  });
  // Those placed so far, by offset.
  std::vector<PlacedBuffer *> placed;
  int64_t arena = 0;
  for (PlacedBuffer *buffer : order) {
    int64_t offset = 0;
    for (PlacedBuffer *other : placed)
      if (other->meets(*buffer) && offset + buffer->bytes > other->offset)
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

struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    plan::ProgramOp program = getOperation();
    std::vector<PlacedBuffer> buffers;
    for (const BufferLife &life : bufferLives(program))
      buffers.push_back({life});
    OpBuilder builder(&getContext());
    program.setArenaBytesAttr(builder.getI64IntegerAttr(place(buffers)));
    for (PlacedBuffer &buffer : buffers)
      buffer.op.setOffsetAttr(builder.getI64IntegerAttr(buffer.offset));
  }
};

} // namespace

} // namespace llamac
