//===- ChooseKernels.cpp - Family and tile config of every launch ---------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/schedule/StepRows.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_CHOOSEKERNELS
#include "passes/Passes.h.inc"

namespace {

using kernel::AttentionConfigAttr;
using kernel::AttentionFamily;
using kernel::AttentionOp;

struct ChooseKernels : impl::ChooseKernelsBase<ChooseKernels> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    const FailureOr<RowBounds> bounds = rowBoundsOf(func);
    if (failed(bounds) || failed(checkOneBlock(func)))
      return signalPassFailure();
    const std::unique_ptr<kernel::Target> target = kernel::targetOf(func);
    if (!target)
      return signalPassFailure();
    const StepRows rows(func);
    for (Operation &op : func.getBody().front()) {
      if (!isa_and_nonnull<kernel::KernelDialect>(op.getDialect()))
        continue;
      if (Attribute config =
              target->chooseConfig(&op, bounds->of(rows.of(&op))))
        op.setAttr("config", config);
    }
    func.walk([](AttentionOp op) {
      auto config = op.getConfigAttr();
      const bool isSplit = op.getType() != op.getQuery().getType();
      if (config && config.getFamily() == AttentionFamily::SplitKv && !isSplit)
        splitAttention(op, config);
    });
  }

  /// Gives `op` partial results and puts the merge after it.
  static void splitAttention(AttentionOp op, AttentionConfigAttr config) {
    OpBuilder builder(op);
    auto type = cast<RankedTensorType>(op.getType());
    auto kv = cast<llama::KVType>(op.getKv().getType());
    const int64_t heads = type.getDimSize(1) / kv.getSize();
    auto partialType = RankedTensorType::get(
        {type.getDimSize(0), heads, config.getSplits(), config.getPartial()},
        type.getElementType());
    op.getResult().setType(partialType);
    builder.setInsertionPointAfter(op);
    auto merge = builder.create<kernel::AttentionMergeOp>(
        op.getLoc(), type, op.getResult(), op.getPositions(), op.getScaleAttr(),
        builder.getI64IntegerAttr(kv.getHeads()), op.getWindowAttr(), config);
    op.getResult().replaceAllUsesExcept(merge.getResult(), merge);
  }
};

} // namespace

} // namespace llamac
