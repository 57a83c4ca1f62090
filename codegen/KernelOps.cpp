//===- KernelOps.cpp - What targets ask of kernel ops ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/KernelOps.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llamac {

int64_t widthOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

bool hasProducts(Operation *op) {
  return isa<kernel::MatmulOp, kernel::QkvOp, kernel::QkvProductsOp>(op);
}

Value squaresOf(Operation *op) {
  const Value norm =
      llvm::TypeSwitch<Operation *, Value>(op)
          .Case<kernel::MatmulOp, kernel::QkvOp, kernel::QkvProductsOp>(
              [](auto product) { return product.getNorm(); });
  return norm && cast<RankedTensorType>(norm.getType()).getRank() == 2
             ? norm
             : Value();
}

AttentionShape attentionShapeOf(kernel::AttentionOp op) {
  auto kv = cast<llama::KVType>(op.getKv().getType());
  AttentionShape shape{kv, widthOf(op.getQuery()) / kv.getSize(),
                       static_cast<float>(op.getScale().convertToDouble()),
                       static_cast<int64_t>(op.getWindow().value_or(0))};
  if (const llama::ApproximationAttr approximation =
          op.getApproximationAttr()) {
    shape.exp = static_cast<ExpKind>(approximation.getExp());
    shape.topK = approximation.getTopK();
  }
  return shape;
}

static_assert(static_cast<int>(llama::ExpKind::Table256) ==
              static_cast<int>(ExpKind::Table256));

AttentionShape attentionShapeOf(kernel::AttentionMergeOp op) {
  const int64_t heads =
      cast<RankedTensorType>(op.getPartials().getType()).getDimSize(1);
  return {llama::KVType::get(op.getContext(), op.getKvHeadsAttr().getInt(),
                             widthOf(op.getResult()) / heads),
          heads, static_cast<float>(op.getScale().convertToDouble()),
          static_cast<int64_t>(op.getWindow().value_or(0))};
}

DictionaryAttr tilesAttr(MLIRContext *context, const Tiles &tiles) {
  Builder builder(context);
  SmallVector<NamedAttribute> sizes;
  for (const auto &[name, size] : tiles)
    sizes.push_back(
        builder.getNamedAttr(name, builder.getI64IntegerAttr(size)));
  return builder.getDictionaryAttr(sizes);
}

Attribute withTiles(Operation *op, const Tiles &tiles) {
  const DictionaryAttr all = tilesAttr(op->getContext(), tiles);
  const Attribute config = op->getAttr("config");
  if (auto matmul = dyn_cast<kernel::MatmulConfigAttr>(config))
    return kernel::MatmulConfigAttr::get(op->getContext(), matmul.getFamily(),
                                         matmul.getRowBlock(), all);
  auto attention = cast<kernel::AttentionConfigAttr>(config);
  return kernel::AttentionConfigAttr::get(
      op->getContext(), attention.getFamily(), attention.getSplits(),
      attention.getPartial(), attention.getRows(), all);
}

} // namespace llamac
