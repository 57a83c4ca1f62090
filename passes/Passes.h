//===- Passes.h - Every pass of the pipeline --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_PASSES_PASSES_H
#define LLAMAC_PASSES_PASSES_H

#include "ir/kernel/Kernel.h"
#include "ir/kernel/Target.h"
#include "ir/llama/Llama.h"
#include "ir/plan/Plan.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

#include <functional>
#include <memory>
#include <vector>

namespace llamac {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

// Passes that ask a target keep a reference to it.
std::unique_ptr<mlir::Pass>
createSpecialiseRowsPass(const kernel::Target &target);
std::unique_ptr<mlir::Pass>
createChooseKernelsPass(const kernel::Target &target);
std::unique_ptr<mlir::Pass> createLowerToPlanPass(const kernel::Target &target);

/// Registers every pass by name for command lines; `target`, which must outlive
/// the use of the passes, is what the schedule passes ask.
void registerPasses(const kernel::Target &target);

/// One pass of the pipeline.
struct PipelineStep {
  llvm::StringRef name; ///< As on command lines.
  std::function<void(mlir::OpPassManager &)> addTo;
  bool optional = false; ///< Whether a plan can be made without it.
};

/// From the graph as a frontend builds it to one without duplicates whose
/// weights have their formats; `weightFormat` is keep, bf16, mxfp8, q8_0 or
/// q4_0.
std::vector<PipelineStep> graphSteps(llvm::StringRef weightFormat);

/// From there to a short list of kernel ops for each range of row counts of
/// `target`, which outlives the steps; with `explain`, remarks say which ops
/// were not fused and why.
std::vector<PipelineStep> fuseSteps(const kernel::Target &target, bool explain);

/// From kernel ops to the plan dialect, for `target`, which outlives the steps.
std::vector<PipelineStep> scheduleSteps(const kernel::Target &target);

/// Adds the passes of `steps` to `pm` in their order.
void addSteps(mlir::OpPassManager &pm, llvm::ArrayRef<PipelineStep> steps);

} // namespace llamac

#endif // LLAMAC_PASSES_PASSES_H
