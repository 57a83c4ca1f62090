//===- PlanMemory.cpp - Buffers get offsets in one arena ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"

namespace {

/// Buffers start on cache lines.
constexpr int64_t alignment = 64;

struct PlacedBuffer {
  plan::BufferOp op;
  int64_t bytes = 0;
  int64_t firstPhase = 0, lastPhase = 0;
  int64_t offset = 0;

  bool meets(const PlacedBuffer &other) const {
    return firstPhase <= other.lastPhase && other.firstPhase <= lastPhase;
  }
};

/// The phases in which each buffer of `program` is touched.
static std::vector<PlacedBuffer> findLives(plan::ProgramOp program) {
  std::vector<PlacedBuffer> buffers;
  llvm::DenseMap<Value, size_t> index;
  int64_t phase = 0;
  auto touch = [&](Value value) {
    auto it = index.find(value);
    if (it != index.end())
      buffers[it->second].lastPhase = phase;
  };
  auto begin = [&](Value value) {
    auto op = value.getDefiningOp<plan::BufferOp>();
    if (!op || index.contains(value))
      return;
    index[value] = buffers.size();
    const int64_t bytes =
        llvm::alignTo(static_cast<uint64_t>(op.getBytes()), alignment);
    buffers.push_back({op, bytes, phase, phase, 0});
  };
  for (Operation &op : program.getBody().front()) {
    if (auto launch = dyn_cast<plan::LaunchOp>(op)) {
      phase += launch.getBarrier();
      for (Value arg : launch.getArgs()) {
        begin(arg);
        touch(arg);
      }
    } else if (auto logits = dyn_cast<plan::LogitsOp>(op)) {
      // Read after the program's end.
      ++phase;
      touch(logits.getMemory());
    }
  }
  return buffers;
}

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
    std::vector<PlacedBuffer> buffers = findLives(program);
    OpBuilder builder(&getContext());
    program.setArenaBytesAttr(builder.getI64IntegerAttr(place(buffers)));
    for (PlacedBuffer &buffer : buffers)
      buffer.op.setOffsetAttr(builder.getI64IntegerAttr(buffer.offset));
  }
};

} // namespace

} // namespace llamac
