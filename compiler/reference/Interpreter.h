//===- Interpreter.h - Executes a graph op by op ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_INTERPRETER_H
#define LLAMAC_COMPILER_REFERENCE_INTERPRETER_H

#include "compiler/reference/Ops.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <vector>

namespace llamac::reference {

/// Called after every op with its results, in program order.
using OpHook =
    std::function<void(mlir::Operation &op, llvm::ArrayRef<ValuePtr> results)>;

/// Executes one function of llama or kernel ops in fp32, before or after any
/// pass up to lower-to-plan. Values are freed after their last use.
class Interpreter {
public:
  /// Prepares `function`, or another body of such ops, which must outlive the
  /// interpreter. Errors: several blocks, or an op that the table does not
  /// hold.
  static absl::StatusOr<Interpreter> create(mlir::func::FuncOp function) {
    return create(function.getBody());
  }
  static absl::StatusOr<Interpreter> create(mlir::Region &region);

  /// Runs the function. `arguments` are consumed: what they hold is modified
  /// in place where nothing else refers to it. An error names the op at which
  /// it happened by its location.
  absl::StatusOr<std::vector<ValuePtr>> run(std::vector<ValuePtr> arguments,
                                            WeightStore &weights,
                                            Parallel &parallel,
                                            const OpHook &hook = {}) const;

  /// Interprets on several ranks at a time, each op on all of them before the
  /// next: arguments and results of each. `hook` is shown what rank 0 has.
  absl::StatusOr<std::vector<std::vector<ValuePtr>>>
  runRanks(std::vector<std::vector<ValuePtr>> arguments, WeightStore &weights,
           Parallel &parallel, const OpHook &hook = {}) const;

private:
  using Environment = llvm::DenseMap<mlir::Value, ValuePtr>;

  struct Step {
    mlir::Operation *op;
    OpFn compute;
    /// Values that no later op uses.
    llvm::SmallVector<mlir::Value, 4> dead;
  };

  absl::StatusOr<llvm::SmallVector<ValuePtr>> compute(const Step &step,
                                                      OpCall &call) const;

  mlir::Block *body = nullptr;
  std::vector<Step> steps;
};

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_INTERPRETER_H
