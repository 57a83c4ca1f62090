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

/// Gives the reasons of patterns that do not match as remarks.
class Explanations : public mlir::RewriterBase::Listener {
public:
  void notifyMatchFailure(
      mlir::Location loc,
      mlir::function_ref<void(mlir::Diagnostic &)> reason) override {
    mlir::InFlightDiagnostic remark = mlir::emitRemark(loc, "not fused: ");
    reason(*remark.getUnderlyingDiagnostic());
  }
};

/// Applies `patterns` to `op` until none fires; then, with `explain`, looks at
/// every op once more to say why.
inline mlir::LogicalResult
applyAndExplain(mlir::Operation *op, mlir::RewritePatternSet &&patterns,
                bool explain, mlir::GreedyRewriteConfig config = {}) {
  mlir::FrozenRewritePatternSet frozen(std::move(patterns));
  mlir::LogicalResult result =
      mlir::applyPatternsAndFoldGreedily(op, frozen, config);
  if (failed(result) || !explain)
    return result;
  Explanations explanations;
  config.listener = &explanations;
  return mlir::applyPatternsAndFoldGreedily(op, frozen, config);
}

} // namespace llamac

#endif // LLAMAC_PASSES_EXPLAIN_H
