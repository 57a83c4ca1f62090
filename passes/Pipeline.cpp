//===- Pipeline.cpp - The order of the passes -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// The step of a pass over the ops of type `Op` in the module.
template <typename Op>
static PipelineStep nested(StringRef name,
                           std::function<std::unique_ptr<Pass>()> create) {
  return {name, [create = std::move(create)](OpPassManager &pm) {
            pm.addNestedPass<Op>(create());
          }};
}

/// The step of a pass over the module.
static PipelineStep whole(StringRef name,
                          std::function<std::unique_ptr<Pass>()> create) {
  return {name, [create = std::move(create)](OpPassManager &pm) {
            pm.addPass(create());
          }};
}

/// A step that makes the plan faster and may be left out.
static PipelineStep optional(PipelineStep step) {
  step.optional = true;
  return step;
}

std::vector<PipelineStep> graphSteps(StringRef weightFormat) {
  AssignWeightFormatsOptions formats;
  formats.format = weightFormat.str();
  return {
      nested<func::FuncOp>("canonicalize",
                           [] { return createCanonicalizerPass(); }),
      optional(nested<func::FuncOp>("cse", [] { return createCSEPass(); })),
      nested<func::FuncOp>(
          "assign-weight-formats",
          [formats] { return createAssignWeightFormats(formats); }),
  };
}

std::vector<PipelineStep> fuseSteps(bool explain) {
  return {
      nested<func::FuncOp>("fuse-attention",
                           [=] { return createFuseAttention({explain}); }),
      optional(
          nested<func::FuncOp>("prune-rows", [] { return createPruneRows(); })),
      nested<func::FuncOp>("canonicalize",
                           [] { return createCanonicalizerPass(); }),
      nested<func::FuncOp>("lower-to-kernels",
                           [] { return createLowerToKernels(); }),
      optional(nested<func::FuncOp>(
          "fuse-epilogue", [=] { return createFuseEpilogue({explain}); })),
      optional(nested<func::FuncOp>("fuse-norm",
                                    [=] { return createFuseNorm({explain}); })),
      optional(nested<func::FuncOp>("fuse-qkv",
                                    [=] { return createFuseQkv({explain}); })),
      whole("specialise-rows", [] { return createSpecialiseRows(); }),
  };
}

std::vector<PipelineStep> scheduleSteps(const kernel::Target &target) {
  std::vector<PipelineStep> steps = {
      nested<func::FuncOp>("choose-kernels",
                           [] { return createChooseKernels(); }),
      whole("lower-to-plan", [] { return createLowerToPlan(); }),
      nested<plan::ProgramOp>("plan-memory", [] { return createPlanMemory(); }),
  };
  if (target.embedsWithAngles())
    steps.insert(steps.begin(), optional(nested<func::FuncOp>("fuse-embed", [] {
                   return createFuseEmbed();
                 })));
  if (target.samples())
    steps.insert(steps.begin(),
                 optional(nested<func::FuncOp>("append-sampling", [] {
                   return createAppendSampling();
                 })));
  return steps;
}

void addSteps(OpPassManager &pm, ArrayRef<PipelineStep> steps) {
  for (const PipelineStep &step : steps)
    step.addTo(pm);
}

void registerPasses() {
  registerCanonicalizerPass();
  registerCSEPass();
  registerLlamacPasses();
}

} // namespace llamac
