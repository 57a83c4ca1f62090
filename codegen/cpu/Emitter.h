//===- Emitter.h - The unit that holds a plan's cpu kernels -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CPU_EMITTER_H
#define LLAMAC_CODEGEN_CPU_EMITTER_H

#include "codegen/cpu/CpuTarget.h"
#include "ir/plan/Plan.h"

#include "mlir/Support/LogicalResult.h"

#include <string>

namespace llamac {

/// Writes the C++ unit that defines `kernels`: the headers of their families,
/// then each kernel under a comment that says what it serves. Fails, with a
/// diagnostic, when an epilogue holds an op with no rendering.
mlir::FailureOr<std::string> emitCpuUnit(llvm::ArrayRef<plan::KernelOp> kernels,
                                         const CpuTargetOptions &options);

/// The part of `unit`, which emitCpuUnit gave, that defines `symbol`, with the
/// unit's head: a unit again. Empty when there is none.
std::string cutKernel(llvm::StringRef unit, llvm::StringRef symbol);

} // namespace llamac

#endif // LLAMAC_CODEGEN_CPU_EMITTER_H
