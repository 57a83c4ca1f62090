//===- OpNames.h - Which weights and layer an op stands for -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_IR_LLAMA_OPNAMES_H
#define LLAMAC_IR_LLAMA_OPNAMES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace llamac {

/// The names in `location`, each once, outermost first; an op that a pass fused
/// has several. They live as long as the context.
llvm::SmallVector<llvm::StringRef> namesOf(mlir::Location location);

/// The first of them: the layer and tensor, or step, of an op; empty when there
/// is none.
llvm::StringRef labelOf(mlir::Location location);

/// 3 of "layers.3.attention.wq".
std::optional<int64_t> layerOf(llvm::StringRef name);

} // namespace llamac

#endif // LLAMAC_IR_LLAMA_OPNAMES_H
