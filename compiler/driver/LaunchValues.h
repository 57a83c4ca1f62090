//===- LaunchValues.h - The numbers of a launch -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the reference has for operands and results of a kernel op, as rows of
// numbers that a launch's can be compared with.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_LAUNCHVALUES_H
#define LLAMAC_COMPILER_DRIVER_LAUNCHVALUES_H

#include "compiler/reference/Value.h"

#include "mlir/IR/Operation.h"

#include <cstdint>
#include <vector>

namespace llamac {

bool isCache(mlir::Value value);

/// The layer of the cache that `op` reads or appends to.
int64_t layerAttr(mlir::Operation *op);

/// The numbers of `value` as result or operand of `op`.
std::vector<float> numbersOf(const reference::Value &value,
                             mlir::Operation *op);

/// The length of a row of the numbers of `value`.
int64_t widthOf(const reference::Value &value);

/// What of result number 0 was an operand: that of an epilogue which adds one
/// to a product. Null when there is none.
mlir::Value residualOf(mlir::Operation *op);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_LAUNCHVALUES_H
