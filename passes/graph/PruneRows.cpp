//===- PruneRows.cpp - Only the logits rows are computed ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One walk from the last op to the first. An op whose result is read by
// gathers of the same rows alone is made again from gathered operands; these
// gathers are looked at in their turn, where the walk reaches the ops that make
// the operands. A value has one gather of the same rows, and an op is looked
// at once.
//
// The walk ends at ops that are no llama::RowWiseOpInterface, such as
// llama.rope; each op of the dialect says which it is.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_PRUNEROWS
#include "passes/Passes.h.inc"

namespace {

using llama::GatherRowsOp;

/// The rows that every reader of `value` gathers; null when there is none or
/// some reader reads others.
static Value rowsGatheredOf(Value value) {
  Value rows;
  for (OpOperand &use : value.getUses()) {
    auto gather = dyn_cast<GatherRowsOp>(use.getOwner());
    if (!gather || use.getOperandNumber() != 0 ||
        (rows && gather.getRows() != rows))
      return {};
    rows = gather.getRows();
  }
  return rows;
}

/// True when `value` is there before `op` runs.
static bool isBefore(Value value, Operation *op) {
  Operation *producer = value.getDefiningOp();
  return !producer || producer->isBeforeInBlock(op);
}

class Pruning {
public:
  explicit Pruning(Block &block)
      : block(block), builder(block.getParentOp()->getContext()) {}

  void run() {
    SmallVector<Operation *> ops(llvm::make_pointer_range(block));
    for (Operation *op : llvm::reverse(ops))
      if (auto gather = dyn_cast<GatherRowsOp>(op))
        merge(gather);
      else
        prune(op);
  }

private:
  /// Lets `gather` stand for the gather of the same that comes after it.
  void merge(GatherRowsOp gather) {
    GatherRowsOp &known = gathers[{gather.getX(), gather.getRows()}];
    if (known) {
      known.getResult().replaceAllUsesWith(gather.getResult());
      known.erase();
    }
    known = gather;
  }

  /// The gather of `rows` of `value`, in front of `op`.
  Value gathered(Location loc, Value value, Value rows, Operation *op) {
    GatherRowsOp &known = gathers[{value, rows}];
    if (known) {
      known->moveBefore(op);
    } else {
      builder.setInsertionPoint(op);
      known = builder.create<GatherRowsOp>(loc, value, rows);
    }
    return known.getResult();
  }

  void prune(Operation *op) {
    auto rowWise = dyn_cast<llama::RowWiseOpInterface>(op);
    Value rows = rowWise ? rowsGatheredOf(op->getResult(0)) : Value();
    if (!rows || !isBefore(rows, op))
      return;
    GatherRowsOp gather = gathers.lookup({op->getResult(0), rows});
    IRMapping mapping;
    for (Value operand : rowWise.getRowOperands())
      if (!mapping.contains(operand))
        mapping.map(operand, gathered(gather.getLoc(), operand, rows, op));
    builder.setInsertionPoint(op);
    Operation *pruned = builder.clone(*op, mapping);
    pruned->getResult(0).setType(gather.getType());
    gather.getResult().replaceAllUsesWith(pruned->getResult(0));
    gathers.erase({op->getResult(0), rows});
    gather.erase();
    op->erase();
  }

  Block &block;
  OpBuilder builder;
  /// The gathers met or made so far, by what they gather and which rows.
  llvm::DenseMap<std::pair<Value, Value>, GatherRowsOp> gathers;
};

struct PruneRows : impl::PruneRowsBase<PruneRows> {
  void runOnOperation() override {
    if (failed(checkOneBlock(getOperation())))
      return signalPassFailure();
    Pruning(getOperation().getBody().front()).run();
  }
};

} // namespace

} // namespace llamac
