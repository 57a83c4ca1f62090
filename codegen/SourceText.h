//===- SourceText.h - What emitters write alike -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_SOURCETEXT_H
#define LLAMAC_CODEGEN_SOURCETEXT_H

#include "ir/plan/Plan.h"

#include "llvm/ADT/StringRef.h"

#include <string>

namespace llamac {

/// `text` as people read it, in LLVM's format.
std::string formatSource(const std::string &text);

/// "kernel.matmul for layers.*.attention.wo; 30 launches in decode".
std::string describeKernel(plan::KernelOp kernel);

/// The shortest decimal that reads back as `value`: "1.0", "1e-05".
std::string literal(double value);

/// Succeeds when every region of scalars of `op` can be written down; fails,
/// with a diagnostic that names `target`, at the first op that cannot.
mlir::LogicalResult checkScalars(mlir::Operation &op, llvm::StringRef target);

} // namespace llamac

#endif // LLAMAC_CODEGEN_SOURCETEXT_H
