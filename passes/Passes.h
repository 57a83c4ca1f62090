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

/// Registers every pass of the pipeline by name for command lines.
void registerPasses();

/// One pass of the pipeline.
struct PipelineStep {
  llvm::StringRef name; ///< The name on command lines.
  std::function<void(mlir::OpPassManager &)> addTo;
  bool optional = false; ///< Whether a plan can be made without it.
  /// Whether its errors say that the model cannot be compiled as asked, and not
  /// that something is wrong.
  bool refuses = false;
  /// Whether it rounds activations, which is in the error that kernels of the
  /// target may make.
  bool rounds = false;
};

/// From the graph as a frontend builds it to one without duplicates whose
/// weights have their formats; `weightFormat` is keep or the name of one of
/// weightRoundings(). The step is that of one of `ranks` ranks; where it is
/// `reproducible`, it gives the same bits for any number of them.
std::vector<PipelineStep> graphSteps(llvm::StringRef weightFormat,
                                     int64_t ranks = 1,
                                     bool reproducible = false);

/// From there to a short list of kernel ops for each range of row counts of the
/// module's target; with `explain`, remarks say which ops were not fused and
/// why. Attention takes exponentials by `exp`. `rows`, unless it is 0, is that
/// of specialise-rows.
std::vector<PipelineStep> fuseSteps(bool explain,
                                    llama::ExpKind exp = llama::ExpKind::Exact,
                                    int64_t rows = 0);

/// From kernel ops to the plan dialect, for `target`, the module's; `explain`
/// as that of fuseSteps(). `topK`, unless it is 0, is that of
/// sparsify-attention.
std::vector<PipelineStep> scheduleSteps(const kernel::Target &target,
                                        bool explain = false, int64_t topK = 0);

/// Success of a function with a body of one block, as every step has; else an
/// error.
llvm::LogicalResult checkOneBlock(mlir::func::FuncOp func);

/// Adds the passes of `steps` to `pm` in their order.
void addSteps(mlir::OpPassManager &pm, llvm::ArrayRef<PipelineStep> steps);

} // namespace llamac

#endif // LLAMAC_PASSES_PASSES_H
