//===- ScalarRenderer.h - Scalar regions as C++ -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_SCALARRENDERER_H
#define LLAMAC_CODEGEN_SCALARRENDERER_H

#include "mlir/IR/Region.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace llamac {

/// Writes the ops of a scalar region as statements on vectors of `type`, its
/// arguments under the names given, and gives the expression that it yields.
std::string renderScalars(mlir::Region &region, llvm::StringRef type,
                          llvm::ArrayRef<std::string> arguments,
                          llvm::raw_ostream &os);

/// True when every op of `region` has a rendering; else the first that has
/// none is in `unknown`.
bool canRenderScalars(mlir::Region &region, mlir::Operation *&unknown);

} // namespace llamac

#endif // LLAMAC_CODEGEN_SCALARRENDERER_H
