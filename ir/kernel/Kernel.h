//===- Kernel.h - Launches as typed ops -------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_IR_KERNEL_KERNEL_H
#define LLAMAC_IR_KERNEL_KERNEL_H

#include "ir/kernel/Cost.h"
#include "ir/llama/Llama.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/kernel/KernelDialect.h.inc"
#include "ir/kernel/KernelEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/kernel/KernelAttrs.h.inc"

#include "ir/kernel/KernelInterfaces.h.inc"

namespace llamac::kernel {

/// Checks that all sizes of the operands and results of `op` but the rows are
/// known, and that none is 0 or past llama::largestSize.
llvm::LogicalResult checkSized(mlir::Operation *op);

} // namespace llamac::kernel

#define GET_OP_CLASSES
#include "ir/kernel/KernelOps.h.inc"

namespace llamac::kernel {

/// In Scalars.def: no op of the graph is this one for each element.
struct NoOp {
  static llvm::StringRef getOperationName() { return ""; }
};

/// The operands of `op` whose element [r, n] goes into element [r, n] of its
/// result and into no other: what a pointwise op reads, and the extras of a
/// matmul.
llvm::MutableArrayRef<mlir::OpOperand> elementwiseOperands(mlir::Operation *op);

/// True when `operand` is one of its op's elementwiseOperands.
bool isElementwise(mlir::OpOperand &operand);

/// Whether the operand is read as it is on every rank: the input of a
/// collective.
bool readsOfAllRanks(mlir::OpOperand &operand);

} // namespace llamac::kernel

#endif // LLAMAC_IR_KERNEL_KERNEL_H
