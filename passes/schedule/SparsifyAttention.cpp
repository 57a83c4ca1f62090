//===- SparsifyAttention.cpp - Attention over the largest scores ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"
#include "passes/schedule/StepRows.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_SPARSIFYATTENTION
#include "passes/Passes.h.inc"

namespace {

struct SparsifyAttention : impl::SparsifyAttentionBase<SparsifyAttention> {
  using SparsifyAttentionBase::SparsifyAttentionBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    const std::unique_ptr<kernel::Target> target = kernel::targetOf(func);
    if (!target)
      return signalPassFailure();
    const int64_t most = target->mostTopK();
    if (most == 0 || topK < 1 || topK > most) {
      auto error = func.emitError() << "sparsify-attention: ";
      if (most == 0)
        error << "target " << target->name() << " drops no scores";
      else
        error << "expected a top-k of 1 to " << most << " for target "
              << target->name() << ", got " << topK.getValue();
      return signalPassFailure();
    }
    const FailureOr<RowBounds> bounds = rowBoundsOf(func);
    if (failed(bounds))
      return signalPassFailure();
    if (bounds->rows != 1)
      return;
    func.walk([&](kernel::AttentionOp op) {
      const llama::ApproximationAttr known = op.getApproximationAttr();
      op.setApproximationAttr(llama::ApproximationAttr::get(
          &getContext(), known ? known.getExp() : llama::ExpKind::Exact, topK));
    });
  }
};

} // namespace

} // namespace llamac
