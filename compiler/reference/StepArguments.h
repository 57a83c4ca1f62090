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

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cstdint>
#include <vector>

namespace llamac::reference {

/// The rows of a step.
struct StepInputs {
  absl::Span<const int32_t> tokens, positions, sequences, logitsRows;
};

/// The role of each argument of `step`. Error: an argument has none, or none is
/// the cache.
absl::StatusOr<std::vector<llama::StepRole>> stepRoles(mlir::func::FuncOp step);

/// The cache among the arguments of `step`, which has one.
llama::KVType cacheOf(mlir::func::FuncOp step);

/// The arguments with these roles. Sampling params are zero, which stands for
/// argmax.
std::vector<ValuePtr> stepArguments(const std::vector<llama::StepRole> &roles,
                                    const StepInputs &inputs, ValuePtr cache);

} // namespace llamac::reference

#endif // LLAMAC_COMPILER_REFERENCE_STEPARGUMENTS_H
