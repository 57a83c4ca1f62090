//===- Targets.h - The targets that kernels are made for --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_TARGETS_TARGETS_H
#define LLAMAC_CODEGEN_TARGETS_TARGETS_H

#include "ir/kernel/Target.h"

#include "mlir/IR/DialectRegistry.h"

#include <memory>

namespace llamac {

/// The target that `attr` describes; null, with an error, when it describes
/// none.
std::unique_ptr<kernel::Target> createTarget(kernel::TargetAttr attr,
                                             kernel::EmitError emitError);

/// Makes createTarget the kernel dialect's TargetFactory.
void registerTargets(mlir::DialectRegistry &registry);

} // namespace llamac

#endif // LLAMAC_CODEGEN_TARGETS_TARGETS_H
