//===- FuseEmbed.cpp - Tokens, cosines and sines in one launch ------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tokens and positions that are arguments of the function have the same rows;
// of others, such as those of the logits rows, nothing is known.
//
//===----------------------------------------------------------------------===//

#include "passes/Explain.h"
#include "passes/Passes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_FUSEEMBED
#include "passes/Passes.h.inc"

namespace {

struct FuseEmbed : impl::FuseEmbedBase<FuseEmbed> {
  using FuseEmbedBase::FuseEmbedBase;

  void runOnOperation() override {
    if (failed(checkOneBlock(getOperation())))
      return signalPassFailure();
    const char *why = fuse();
    if (explain)
      getOperation().walk([&](kernel::RopeTableOp table) {
        remarkNotFused(table.getLoc()) << why;
      });
  }

private:
  /// Gives what keeps those tables that are left from being fused.
  const char *fuse() {
    const char *noEmbedding =
        "no embedding of the same rows is without a table";
    kernel::EmbedOp embed;
    kernel::RopeTableOp table;
    for (Operation &op : getOperation().getBody().front()) {
      if (auto found = dyn_cast<kernel::EmbedOp>(op);
          found && !embed && !found.getCosSin() &&
          isa<BlockArgument>(found.getTokens()))
        embed = found;
      if (auto found = dyn_cast<kernel::RopeTableOp>(op);
          found && !table && isa<BlockArgument>(found.getPositions()))
        table = found;
    }
    if (!embed || !table)
      return noEmbedding;
    // At the earlier of both, or behind the last operand that comes after it;
    // what reads either has to come later still.
    Operation *place = embed->isBeforeInBlock(table) ? embed : table;
    for (Value operand : embed->getOperands())
      if (Operation *maker = operand.getDefiningOp())
        if (place->isBeforeInBlock(maker))
          place = maker;
    auto isLater = [&](Operation *reader) {
      return place->isBeforeInBlock(reader);
    };
    if (!llvm::all_of(embed->getUsers(), isLater) ||
        !llvm::all_of(table->getUsers(), isLater))
      return "a reader comes ahead of what the embedding reads";
    OpBuilder builder(embed);
    builder.setInsertionPointAfter(place);
    auto both = builder.create<kernel::EmbedOp>(
        builder.getFusedLoc({embed.getLoc(), table.getLoc()}),
        embed.getResult().getType(), table.getResult().getType(),
        embed.getTokens(), embed.getTable(), table.getPositions(),
        embed.getRank(), table.getFrequencies());
    embed.getResult().replaceAllUsesWith(both.getResult());
    table.getResult().replaceAllUsesWith(both.getCosSin());
    embed->erase();
    table->erase();
    return noEmbedding;
  }
};

} // namespace

} // namespace llamac
