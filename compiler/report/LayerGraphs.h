//===- LayerGraphs.h - The operations of one layer --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REPORT_LAYERGRAPHS_H
#define LLAMAC_COMPILER_REPORT_LAYERGRAPHS_H

#include "compiler/report/Report.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace llamac {

/// A tensor's type for people, "rows x 576 f32"; "KV cache" for the cache.
std::string typeText(mlir::Type type);

/// The operations of `func` whose location names layer `layer` first, with
/// nodes for the values that enter and leave the layer. Weights are no nodes
/// but stand with the operations that read them.
LayerGraph layerGraph(mlir::func::FuncOp func, int64_t layer);

} // namespace llamac

#endif // LLAMAC_COMPILER_REPORT_LAYERGRAPHS_H
