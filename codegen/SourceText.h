//===- SourceText.h - Text that emitters share ------------------*- C++ -*-===//
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

/// "kernel.matmul for layers.*.attention.wo". Not how often it is launched:
/// models of other depths have the same source, and share what is compiled.
std::string describeKernel(plan::KernelOp kernel);

/// The shortest decimal that reads back as `value`: "1.0", "1e-05".
std::string literal(double value);

/// An array of RoPE's frequencies called `frequencies`: those of one cos/sin
/// cache behind those of another.
std::string frequenciesText(llvm::ArrayRef<mlir::ElementsAttr> tables,
                            llvm::StringRef qualifiers = "");

/// Succeeds when every scalar region of `op` can be rendered; fails, with a
/// diagnostic that names `target`, at the first op that cannot.
mlir::LogicalResult checkScalars(mlir::Operation &op, llvm::StringRef target);

/// How a target writes a functor that works on vectors of columns of a row.
struct FunctorStyle {
  const char *qualifiers; ///< Qualifiers of the functor's operator.
  const char *vector;     ///< The type.
  const char *result;     ///< The operator's return type.
  const char *parameters; ///< The operator's parameters after the first ones.
  // Patterns: {0} is the pointer, {1} the width of its rows, {2} the value.
  const char *prologue;
  const char *load;
  const char *loadVector; ///< Loads the one row that stands for all.
  const char *store;
  /// Whether an epilogue loads by a function of its own, `load`, and takes what
  /// that gives as the last parameter.
  bool loadsApart = false;
};

/// The functor `name` of a scalar region: its first arguments, accumulators,
/// are parameters, the others are loaded, of `inputs`, from members called
/// `input` and a number, of type `rows` where they are rows, and the result
/// goes to `out`, of type `result`; all have rows of `width`.
std::string functorText(llvm::StringRef name, mlir::Region &region,
                        mlir::ValueRange inputs, llvm::StringRef input,
                        llvm::StringRef width, const FunctorStyle &style,
                        llvm::StringRef result = "float *",
                        llvm::StringRef rows = "const float *");

} // namespace llamac

#endif // LLAMAC_CODEGEN_SOURCETEXT_H
