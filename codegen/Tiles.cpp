//===- Tiles.cpp - Sizes that a config names ------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/Tiles.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace llamac {

Attribute withTiles(Operation *op, const Tiles &tiles) {
  Builder builder(op->getContext());
  SmallVector<NamedAttribute> sizes;
  for (const auto &[name, size] : tiles)
    sizes.push_back(
        builder.getNamedAttr(name, builder.getI64IntegerAttr(size)));
  const DictionaryAttr all = builder.getDictionaryAttr(sizes);
  const Attribute config = op->getAttr("config");
  if (auto matmul = dyn_cast<kernel::MatmulConfigAttr>(config))
    return kernel::MatmulConfigAttr::get(op->getContext(), matmul.getFamily(),
                                         matmul.getRowBlock(), all);
  auto attention = cast<kernel::AttentionConfigAttr>(config);
  return kernel::AttentionConfigAttr::get(
      op->getContext(), attention.getFamily(), attention.getSplits(),
      attention.getPartial(), all);
}

} // namespace llamac
