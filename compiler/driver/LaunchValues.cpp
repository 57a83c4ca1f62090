//===- LaunchValues.cpp - The numbers of a launch -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/LaunchValues.h"

#include "compiler/driver/LaunchReference.h"
#include "ir/kernel/Kernel.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace llamac {

bool isCache(Value value) { return isa<llama::KVType>(value.getType()); }

int64_t layerAttr(Operation *op) {
  return op->getAttrOfType<IntegerAttr>("layer").getInt();
}

std::vector<float> numbersOf(const reference::Value &value, Operation *op) {
  if (const auto *tensor = std::get_if<reference::Tensor>(&value))
    return tensor->data;
  if (const auto *indices = std::get_if<reference::Indices>(&value))
    return {indices->begin(), indices->end()};
  if (const auto *state = std::get_if<reference::KvState>(&value))
    return cachedNumbers(*state, layerAttr(op));
  return {};
}

int64_t widthOf(const reference::Value &value) {
  if (const auto *state = std::get_if<reference::KvState>(&value))
    return state->rowSize();
  const auto *tensor = std::get_if<reference::Tensor>(&value);
  return tensor ? static_cast<int64_t>(tensor->data.size()) / tensor->shape[0]
                : 1;
}

Value residualOf(Operation *op) {
  auto product = dyn_cast<kernel::MatmulOp>(op);
  if (!product)
    return {};
  Block &epilogue = product.getEpilogue().front();
  auto sum =
      epilogue.getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  if (!sum)
    return {};
  const unsigned products = product.getWeights().size();
  for (Value term : sum->getOperands())
    if (auto arg = dyn_cast<BlockArgument>(term);
        arg && arg.getArgNumber() >= products)
      return product.getExtras()[arg.getArgNumber() - products];
  return {};
}

} // namespace llamac
