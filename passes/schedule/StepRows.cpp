//===- StepRows.cpp - What the rows of a step's values are ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/StepRows.h"

#include "ir/kernel/Kernel.h"
#include "ir/llama/Llama.h"

using namespace mlir;

namespace llamac {

using llama::StepRole, plan::RowSymbol;

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
  return op->getNumOperands() == 0 ? RowSymbol::Tokens
                                   : rows.lookup(op->getOperand(0));
}

} // namespace llamac
