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

/// The step of a pass over the module, or over all functions or programs in it,
/// as the pass says. An optional step only makes the plan faster.
static PipelineStep step(const std::function<std::unique_ptr<Pass>()> &create,
                         bool optional = false) {
  const std::unique_ptr<Pass> pass = create();
  // Passes over any op, such as cse, run on functions.
  const StringRef op =
      pass->getOpName().value_or(func::FuncOp::getOperationName());
  return {pass->getArgument(),
          [create, op = op.str()](OpPassManager &pm) {
            (op == ModuleOp::getOperationName() ? pm : pm.nest(op))
                .addPass(create());
          },
          optional};
}

static std::unique_ptr<Pass> canonicalizer() {
  return createCanonicalizerPass();
}

static constexpr bool optional = true;

std::vector<PipelineStep> graphSteps(StringRef weightFormat, int64_t ranks,
                                     bool reproducible) {
  AssignWeightFormatsOptions formats;
  formats.format = weightFormat.str();
  std::vector<PipelineStep> steps = {
      step(canonicalizer), step(createCSEPass, optional),
      step([formats] { return createAssignWeightFormats(formats); })};
  if (ranks > 1 || reproducible) {
    steps.push_back(step([=] { return createShard({ranks, reproducible}); }));
    steps.back().refuses = true;
  }
  return steps;
}

std::vector<PipelineStep> fuseSteps(bool explain, llama::ExpKind exp,
                                    int64_t rows) {
  std::vector<PipelineStep> steps = {
      step([=] { return createFuseAttention({explain}); }),
      step(createPruneRows, optional),
      step(canonicalizer),
      step(createLowerToKernels),
      step([=] { return createFuseEpilogue({explain}); }, optional),
      step([=] { return createFuseNorm({explain}); }, optional),
      step([=] { return createFuseQkv({explain}); }, optional),
      step([=] { return createSpecialiseRows({rows}); })};
  if (exp != llama::ExpKind::Exact)
    steps.insert(steps.begin() + 1, step([=] {
                   return createApproximateExp(
                       {exp == llama::ExpKind::Poly3 ? 3 : 0,
                        exp == llama::ExpKind::Table256 ? 256 : 0});
                 }));
  return steps;
}

std::vector<PipelineStep> scheduleSteps(const kernel::Target &target,
                                        bool explain, int64_t topK) {
  std::vector<PipelineStep> steps;
  if (topK)
    steps.push_back(step([=] { return createSparsifyAttention({topK}); }));
  if (target.samples())
    steps.push_back(step(createAppendSampling, optional));
  if (target.embedsWithCosSin())
    steps.push_back(step([=] { return createFuseEmbed({explain}); }, optional));
  steps.push_back(step(createChooseKernels));
  if (target.residentSteps() != kernel::ResidentSteps::Off) {
    steps.push_back(step([=] { return createFormResident({explain}); }));
    steps.back().refuses = true;
  }
  if (target.roundsInputs()) {
    steps.push_back(step(createRoundInputs));
    steps.back().rounds = true;
  }
  for (auto *create : {createLowerToPlan, createPlanMemory})
    steps.push_back(step(create));
  return steps;
}

LogicalResult checkOneBlock(func::FuncOp func) {
  if (llvm::hasSingleElement(func.getBody()))
    return success();
  return func.emitError("expected a body of one block, got ")
         << llvm::range_size(func.getBody()) << " blocks";
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
