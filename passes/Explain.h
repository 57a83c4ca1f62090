//===- Explain.h - Why a pattern did not fire -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_PASSES_EXPLAIN_H
#define LLAMAC_PASSES_EXPLAIN_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace llamac {

/// A remark that what stands at `loc` was not fused, to be followed by why.
inline mlir::InFlightDiagnostic remarkNotFused(mlir::Location loc) {
  return mlir::emitRemark(loc, "not fused: ");
}

/// Notes, below `why`, who reads the value of `use` besides its owner.
inline void noteOtherReaders(mlir::Diagnostic &why, mlir::OpOperand &use) {
  for (mlir::OpOperand &other : use.get().getUses())
    if (other.getOwner() != use.getOwner())
      why.attachNote(other.getOwner()->getLoc())
          << "also read by " << other.getOwner()->getName();
}

/// Gives the reasons of patterns that do not match as remarks.
class Explanations : public mlir::RewriterBase::Listener {
public:
  void notifyMatchFailure(
      mlir::Location loc,
      mlir::function_ref<void(mlir::Diagnostic &)> reason) override {
    mlir::InFlightDiagnostic remark = remarkNotFused(loc);
    reason(*remark.getUnderlyingDiagnostic());
  }
};

/// Applies `patterns` to `op` until none fires; then, with `explain`, looks at
/// every op once more to say why.
inline mlir::LogicalResult applyAndExplain(mlir::Operation *op,
                                           mlir::RewritePatternSet &&patterns,
                                           bool explain) {
  mlir::FrozenRewritePatternSet frozen(std::move(patterns));
  mlir::LogicalResult result = mlir::applyPatternsAndFoldGreedily(op, frozen);
  if (failed(result) || !explain)
    return result;
  Explanations explanations;
  mlir::GreedyRewriteConfig config;
  config.listener = &explanations;
  return mlir::applyPatternsAndFoldGreedily(op, frozen, config);
}

} // namespace llamac

#endif // LLAMAC_PASSES_EXPLAIN_H
