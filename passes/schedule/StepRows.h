//===- StepRows.h - What the rows of a step's values are --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first dimension of a step's value counts the step's tokens or its logits
// rows. The roles of the arguments say which it is for them; a gather of rows
// has those that it takes, and every other op those of its first operand that
// has rows, which weights have not.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_PASSES_SCHEDULE_STEPROWS_H
#define LLAMAC_PASSES_SCHEDULE_STEPROWS_H

#include "ir/plan/Plan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace llamac {

/// The most rows of a step, and of those that reach lm_head.
struct RowBounds {
  int64_t rows = 0, logitsRows = 0;

  int64_t of(plan::RowSymbol symbol) const {
    return symbol == plan::RowSymbol::LogitsRows ? logitsRows : rows;
  }
};

/// The bounds that specialise-rows gave `func`; failure, with an error, where
/// it gave none.
mlir::FailureOr<RowBounds> rowBoundsOf(mlir::func::FuncOp func);

class StepRows {
public:
  /// The rows of `step`, whose ops are those of the kernel dialect and weights.
  explicit StepRows(mlir::func::FuncOp step);

  /// The rows of the results of `op`.
  plan::RowSymbol of(mlir::Operation *op) const;

private:
  llvm::DenseMap<mlir::Value, plan::RowSymbol> rows;
};

} // namespace llamac

#endif // LLAMAC_PASSES_SCHEDULE_STEPROWS_H
