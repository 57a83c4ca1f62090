//===- KernelOps.h - What targets ask of kernel ops -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_KERNELOPS_H
#define LLAMAC_CODEGEN_KERNELOPS_H

#include "codegen/ExpKind.h"
#include "ir/kernel/Kernel.h"

#include <string>
#include <utility>
#include <vector>

namespace llamac {

int64_t widthOf(mlir::Value value);

/// Whether `op` is a product, or those of query, key and value: its input is
/// operand 0, and weights follow.
bool hasProducts(mlir::Operation *op);

/// The squares by which `op`, which has products, takes the norm of its input;
/// null where it has no norm, or the norm's weights.
mlir::Value squaresOf(mlir::Operation *op);

template <typename Op> bool isOp(mlir::Operation *op) {
  return mlir::isa<Op>(op);
}

/// True of an `Op` whose config is of the family `family`.
template <typename Op, auto family> bool hasFamily(mlir::Operation *op) {
  auto typed = mlir::dyn_cast<Op>(op);
  return typed && typed.getConfigAttr() &&
         typed.getConfigAttr().getFamily() == family;
}

/// The numbers of an attention: of the op, or of the merge behind a split one.
struct AttentionShape {
  llama::KVType kv;
  int64_t heads; ///< Heads of the query.
  float scale;
  int64_t window; ///< Keys that a row sees; 0: all up to its own.
  ExpKind exp = ExpKind::Exact;
  int64_t topK = 0; ///< Scores that are kept; 0: all.
};
AttentionShape attentionShapeOf(kernel::AttentionOp op);
AttentionShape attentionShapeOf(kernel::AttentionMergeOp op);

/// The first of `families` that implements `op`; null when none does.
template <typename Family>
const Family *findFamily(llvm::ArrayRef<Family> families, mlir::Operation *op) {
  for (const Family &family : families)
    if (family.implements(op))
      return &family;
  return nullptr;
}

/// Tile sizes by the names of the members of a target's config structs: the
/// `tiles` of a kernel op's config, in the place of the target's own.
using Tiles = std::vector<std::pair<llvm::StringRef, int64_t>>;

/// The size that `config` has for `name`; `otherwise` when it leaves it open.
template <typename Config>
int64_t tileOf(Config config, llvm::StringRef name, int64_t otherwise = 0) {
  const mlir::DictionaryAttr tiles = config.getTiles();
  auto size = tiles ? tiles.template getAs<mlir::IntegerAttr>(name)
                    : mlir::IntegerAttr();
  return size ? size.getInt() : otherwise;
}

/// `tiles` as an attribute.
mlir::DictionaryAttr tilesAttr(mlir::MLIRContext *context, const Tiles &tiles);

/// The config of `op`, which has one, with `tiles` in the place of its own.
mlir::Attribute withTiles(mlir::Operation *op, const Tiles &tiles);

} // namespace llamac

#endif // LLAMAC_CODEGEN_KERNELOPS_H
