//===- OpShapes.h - What emitters ask of kernel ops -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_OPSHAPES_H
#define LLAMAC_CODEGEN_OPSHAPES_H

#include "ir/kernel/Kernel.h"

namespace llamac {

/// Columns of a tensor.
int64_t widthOf(mlir::Value value);

template <typename Op> bool isOp(mlir::Operation *op) {
  return mlir::isa<Op>(op);
}

/// True of an `Op` whose config is of the family `family`.
template <typename Op, auto family> bool hasFamily(mlir::Operation *op) {
  auto typed = mlir::dyn_cast<Op>(op);
  return typed && typed.getConfigAttr() &&
         typed.getConfigAttr().getFamily() == family;
}

/// The numbers of an attention: of the op, or of the merge behind a split one,
/// whose cache has one layer here.
struct AttentionShape {
  llama::KVType kv;
  int64_t heads; ///< Of the query.
  float scale;
};
AttentionShape attentionShapeOf(kernel::AttentionOp op);
AttentionShape attentionShapeOf(kernel::AttentionMergeOp op);

} // namespace llamac

#endif // LLAMAC_CODEGEN_OPSHAPES_H
