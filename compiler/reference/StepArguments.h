//===- StepArguments.h - The arguments of a step ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_REFERENCE_STEPARGUMENTS_H
#define LLAMAC_COMPILER_REFERENCE_STEPARGUMENTS_H

#include "compiler/reference/Value.h"
#include "ir/llama/Llama.h"

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>
#include <vector>

namespace llamac::reference {

/// The rows of a step.
struct StepInputs {
  absl::Span<const int32_t> tokens, positions, sequences, logitsRows;
};

/// Error: an argument of `step` has no role, or none is a cache.
absl::Status checkRoles(mlir::func::FuncOp step);

/// The caches of the layers of `step` before any step.
std::vector<ValuePtr> emptyCaches(mlir::func::FuncOp step);

/// The caches of the layers after a step with these results.
std::vector<ValuePtr> cachesOf(absl::Span<const ValuePtr> results);

/// The arguments of `step` on `rank`. Sampling params are zero, which stands
/// for argmax; so are the features and the state of a draft head.
std::vector<ValuePtr> stepArguments(mlir::func::FuncOp step,
                                    const StepInputs &inputs,
                                    std::vector<ValuePtr> caches,
                                    int64_t rank = 0);

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_STEPARGUMENTS_H
