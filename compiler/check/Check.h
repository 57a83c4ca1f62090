//===- Check.h - Every pass and target against the reference ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The reference interpreter runs the graph as it was imported and again after
// every pass; the logits of a short list of tokens must not change. A compiled
// plan is compared with the same logits. The first pass that changes them is
// bisected: values on both sides of it are compared where their ops share a
// name.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_CHECK_CHECK_H
#define LLAMAC_COMPILER_CHECK_CHECK_H

#include "compiler/check/CheckReport.h"
#include "compiler/driver/Compiler.h"
#include "passes/Passes.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <vector>

namespace llamac {

/// The passes that the reference can check: all before lower-to-plan.
std::vector<PipelineStep> checkableSteps(const CompileOptions &options,
                                         const kernel::Target &target);

/// Runs `passes` one by one on the graph of `checkpoint`, to be compiled with
/// `compileOptions`, which are resolved. assign-weight-formats may round to
/// another format: its result has a tolerance of the format, and what follows
/// is compared with its result. A pass that rounds activations has the
/// target's.
absl::StatusOr<CheckReport> checkPasses(const Checkpoint &checkpoint,
                                        const CompileOptions &compileOptions,
                                        llvm::ArrayRef<PipelineStep> passes,
                                        const CheckOptions &options);

/// checkPasses of the whole pipeline, and the target's logits.
absl::StatusOr<CheckReport> checkModel(const Checkpoint &checkpoint,
                                       const CompileOptions &compileOptions,
                                       const CheckOptions &options);

} // namespace llamac

#endif // LLAMAC_COMPILER_CHECK_CHECK_H
