//===- Llama.h - The llama dialect ------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The graph of a Llama model: one op for each step of the mathematics. Ops,
// types and attributes are described in LlamaOps.td and LlamaDialect.td.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_IR_LLAMA_LLAMA_H
#define LLAMAC_IR_LLAMA_LLAMA_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/llama/LlamaDialect.h.inc"
#include "ir/llama/LlamaEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/llama/LlamaAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/llama/LlamaTypes.h.inc"

#include "ir/llama/LlamaInterfaces.h.inc"

namespace mlir {
class PatternRewriter;
} // namespace mlir

namespace llamac::llama {
class ShapeInference;
} // namespace llamac::llama

#define GET_OP_CLASSES
#include "ir/llama/LlamaOps.h.inc"

namespace llamac::llama {

/// The name by which users know the element type of a weight: "f32", "f16",
/// "bf16" or a block format such as "q4_1". `type` is one of those types.
llvm::StringRef elementTypeName(mlir::Type type);

/// The element type with that name, or null when there is none. Loads the
/// dialect.
mlir::Type elementTypeNamed(mlir::MLIRContext &context, llvm::StringRef name);

/// What an argument of a step is; none where nothing says so.
std::optional<StepRole> roleOf(mlir::FunctionOpInterface step,
                               unsigned argument);

} // namespace llamac::llama

#endif // LLAMAC_IR_LLAMA_LLAMA_H
