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

#include "runtime/base/DataType.h"
#include "runtime/base/ModelConfig.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/llama/LlamaDialect.h.inc"
#include "ir/llama/LlamaEnums.h.inc"

namespace llamac::llama {

/// The largest size that validateModelConfig() lets a model have: of two of
/// them the product does not overflow.
inline constexpr int64_t largestSize = (int64_t{1} << 31) - 1;

/// Whether `size`, of a dimension, is known and that of something.
inline bool isSize(int64_t size) { return size > 0 && size <= largestSize; }

/// The name of `type` as the IR spells it.
llvm::StringRef nameOf(DataType type);

/// Reads the name of a block format.
mlir::FailureOr<DataType> parseBlockFormat(mlir::AsmParser &parser);

} // namespace llamac::llama

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

/// The stored type of a weight whose elements have `type`, f32, f16, bf16 or
/// !llama.quant.
DataType dataTypeOf(mlir::Type type);

/// The stored type of the elements of `weight`, a tensor.
inline DataType dataTypeOf(mlir::Value weight) {
  return dataTypeOf(mlir::getElementTypeOrSelf(weight));
}

/// The name by which users know the element type of a weight: "f32" or "q4_1".
inline llvm::StringRef elementTypeName(mlir::Type type) {
  return nameOf(dataTypeOf(type));
}

/// The element type of a weight stored as `type`. Loads the dialect.
mlir::Type elementTypeOf(mlir::MLIRContext &context, DataType type);

/// The largest error of an element of attention, as a multiple of its largest
/// value, with exponentials by `exp` of fp32 down to e^-87 and without the
/// share `dropped` of the softmax.
double attentionBound(ExpKind exp, double dropped);

/// The role of an argument of a step; null where nothing says so.
StepRoleAttr roleOf(mlir::BlockArgument argument);

/// The number of ranks that partition the weights in `scope`; 1 where these are
/// whole.
int64_t ranksOf(mlir::Operation *scope);

} // namespace llamac::llama

#endif // LLAMAC_IR_LLAMA_LLAMA_H
