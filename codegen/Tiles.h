//===- Tiles.h - Sizes that a config names ----------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The `tiles` of a kernel op's config: sizes that its target would choose
// otherwise.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_TILES_H
#define LLAMAC_CODEGEN_TILES_H

#include "ir/kernel/Kernel.h"

#include <utility>
#include <vector>

namespace llamac {

/// Sizes by the names of the members of a target's config structs.
using Tiles = std::vector<std::pair<llvm::StringRef, int64_t>>;

/// The size that `config` has for `name`; `otherwise` when it leaves it open.
template <typename Config>
int64_t tileOf(Config config, llvm::StringRef name, int64_t otherwise = 0) {
  const mlir::DictionaryAttr tiles = config.getTiles();
  auto size = tiles ? tiles.template getAs<mlir::IntegerAttr>(name)
                    : mlir::IntegerAttr();
  return size ? size.getInt() : otherwise;
}

/// The config of `op`, which has one, with `tiles` in the place of its own.
mlir::Attribute withTiles(mlir::Operation *op, const Tiles &tiles);

} // namespace llamac

#endif // LLAMAC_CODEGEN_TILES_H
