//===- SeededCheck.cpp - Checks a pipeline with a wrong pass in it --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// llamac-seeded-check MODEL PASS FOLDER: the bisecting check with one of the
// wrong passes below in the pipeline. Prints the pass, op, layer and location
// that it finds, one a line.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuTarget.h"
#include "compiler/check/Check.h"
#include "ir/llama/OpNames.h"
#include "runtime/base/Status.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace llamac {
namespace {

/// Runs `change` on every op of type `Op`.
template <typename Op>
struct WrongPass : PassWrapper<WrongPass<Op>, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(WrongPass<Op>)

  explicit WrongPass(void (*change)(Op)) : change(change) {}
  void runOnOperation() override { this->getOperation().walk(change); }

  void (*change)(Op);
};

} // namespace

template <typename Op>
static PipelineStep wrongStep(StringRef name, void (*change)(Op)) {
  return {name, [change](OpPassManager &pm) {
            pm.addPass(std::make_unique<WrongPass<Op>>(change));
          }};
}

/// Attention of layer 1 over scores that are scaled half as much again.
static void changeScale(llama::AttentionOp op) {
  if (layerOf(labelOf(op.getLoc())) == 1)
    op.setScaleAttr(FloatAttr::get(op.getScaleAttr().getType(),
                                   op.getScale().convertToDouble() * 1.5));
}

/// The up product of layer 1 goes through SiLU, and the gate does not.
static void swapGateAndUp(kernel::MatmulOp op) {
  if (op.getWeights().size() != 2)
    return;
  auto gate = op.getWeights()[0].getDefiningOp<llama::WeightOp>();
  if (!gate.getName().starts_with("layers.1."))
    return;
  Value weights[] = {op.getWeights()[1], op.getWeights()[0]};
  op.getWeightsMutable().assign(weights);
}

/// Layer 2 appends to the cache that layer 0 has appended to.
static void mistakeLayer(kernel::QkvOp op) {
  if (layerOf(labelOf(op.getLoc())) != 2)
    return;
  auto first = *op->getBlock()->getOps<kernel::QkvOp>().begin();
  op.getKvMutable().assign(first.getNewKv());
}

static absl::Status run(const std::string &model, StringRef wrong,
                        const std::string &folder) {
  const struct {
    PipelineStep step;
    StringRef after;
  } seeded[] = {
      {wrongStep("test-wrong-scale", changeScale), "fuse-attention"},
      {wrongStep("test-swapped-gate", swapGateAndUp), "fuse-epilogue"},
      {wrongStep("test-mistaken-layer", mistakeLayer), "specialise-rows"},
  };
  LLAMAC_ASSIGN_OR_RETURN(const Checkpoint checkpoint, openCheckpoint(model));
  LLAMAC_ASSIGN_OR_RETURN(const CompileOptions compileOptions,
                          resolveOptions({}, checkpoint.config));
  const CpuTarget target({.context = 64});
  std::vector<PipelineStep> steps;
  for (PipelineStep &step : checkableSteps(compileOptions, target)) {
    steps.push_back(std::move(step));
    for (const auto &entry : seeded)
      if (entry.step.name == wrong && entry.after == steps.back().name)
        steps.push_back(entry.step);
  }
  CheckOptions options;
  options.bisect = true;
  options.reproducerFolder = folder;
  LLAMAC_ASSIGN_OR_RETURN(
      const CheckReport report,
      checkPasses(checkpoint, compileOptions, steps, options));
  if (!report.culprit)
    return accuracyError("the check found nothing wrong");
  llvm::outs() << report.culprit->pass << "\n"
               << report.culprit->op << "\n"
               << report.culprit->layer.value_or(-1) << "\n"
               << report.culprit->location << "\n";
  return absl::OkStatus();
}

} // namespace llamac

int main(int argc, char **argv) {
  if (argc != 4) {
    llvm::errs() << "usage: llamac-seeded-check MODEL PASS FOLDER\n";
    return 2;
  }
  const absl::Status status = llamac::run(argv[1], argv[2], argv[3]);
  if (!status.ok())
    llvm::errs() << std::string(status.message()) << "\n";
  return static_cast<int>(llamac::exitCode(status));
}
