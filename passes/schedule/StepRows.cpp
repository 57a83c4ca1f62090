//===- StepRows.cpp - What the rows of a step's values are ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/StepRows.h"

#include "ir/kernel/Target.h"
#include "ir/llama/Llama.h"

using namespace mlir;

namespace llamac {

using llama::StepRole, plan::RowSymbol;

FailureOr<RowBounds> rowBoundsOf(func::FuncOp func) {
  RowBounds bounds;
  for (auto [name, bound] :
       {std::pair("llamac.max_rows", &bounds.rows),
        std::pair("llamac.max_logits_rows", &bounds.logitsRows)}) {
    const Attribute attribute = func->getAttr(name);
    if (!attribute)
      return func.emitError("has no row bounds: run specialise-rows first");
    auto rows = dyn_cast<IntegerAttr>(attribute);
    if (!rows || !rows.getType().isSignlessInteger(64) || rows.getInt() < 1 ||
        rows.getInt() > kernel::longestContext)
      return func.emitError(name)
             << ": expected 1 to " << kernel::longestContext << " in i64, got "
             << attribute;
    *bound = rows.getInt();
  }
  return bounds;
}

/// Whether the first dimension of `value` counts rows: it is no weight.
static bool hasRows(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && !value.getDefiningOp<llama::WeightOp>() &&
         !(type.getRank() == 1 && type.getElementType().isF32());
}

StepRows::StepRows(func::FuncOp step) {
  for (BlockArgument argument : step.getArguments()) {
    const llama::StepRoleAttr role = llama::roleOf(argument);
    const bool isOfLogits =
        role && (role.getValue() == StepRole::LogitsRows ||
                 role.getValue() == StepRole::SamplingParams);
    rows[argument] = isOfLogits ? RowSymbol::LogitsRows : RowSymbol::Tokens;
  }
  for (Operation &op : step.getBody().front()) {
    const RowSymbol symbol = of(&op);
    for (Value result : op.getResults())
      rows[result] = symbol;
  }
}

RowSymbol StepRows::of(Operation *op) const {
  if (auto gather = dyn_cast<kernel::GatherRowsOp>(op))
    return rows.lookup(gather.getRows());
  const auto operand = llvm::find_if(op->getOperands(), hasRows);
  return operand == op->operand_end() ? RowSymbol::Tokens
                                      : rows.lookup(*operand);
}

} // namespace llamac
