//===- OpShapes.cpp - What emitters ask of kernel ops ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/OpShapes.h"

using namespace mlir;

namespace llamac {

int64_t widthOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

AttentionShape attentionShapeOf(kernel::AttentionOp op) {
  auto kv = cast<llama::KVType>(op.getKv().getType());
  return {kv, widthOf(op.getQuery()) / kv.getSize(),
          static_cast<float>(op.getScale().convertToDouble())};
}

AttentionShape attentionShapeOf(kernel::AttentionMergeOp op) {
  const int64_t heads =
      cast<RankedTensorType>(op.getPartials().getType()).getDimSize(1);
  return {llama::KVType::get(op.getContext(), 1, op.getKvHeadsAttr().getInt(),
                             widthOf(op.getResult()) / heads),
          heads, static_cast<float>(op.getScale().convertToDouble())};
}

} // namespace llamac
