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

void buildGraphPipeline(OpPassManager &pm, StringRef weightFormat) {
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  pm.addNestedPass<func::FuncOp>(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createFuseAttention());
  pm.addNestedPass<func::FuncOp>(createCanonicalizerPass());
  AssignWeightFormatsOptions formats;
  formats.format = weightFormat.str();
  pm.addNestedPass<func::FuncOp>(createAssignWeightFormats(formats));
}

void buildSchedulePipeline(OpPassManager &pm, const kernel::Target &target) {
  pm.addNestedPass<func::FuncOp>(createLowerToKernels());
  pm.addNestedPass<func::FuncOp>(createFuseEpilogue());
  pm.addNestedPass<func::FuncOp>(createFuseNorm());
  pm.addPass(createSpecialiseRowsPass(target));
  pm.addNestedPass<func::FuncOp>(createChooseKernelsPass(target));
  pm.addPass(createLowerToPlanPass(target));
  pm.addNestedPass<plan::ProgramOp>(createPlanMemory());
}

void registerPasses(const kernel::Target &target) {
  registerTransformsPasses();
  registerPass([] { return createFuseAttention(); });
  registerPass([] { return createAssignWeightFormats(); });
  registerPass([] { return createLowerToKernels(); });
  registerPass([] { return createFuseEpilogue(); });
  registerPass([] { return createFuseNorm(); });
  registerPass([&target] { return createSpecialiseRowsPass(target); });
  registerPass([&target] { return createChooseKernelsPass(target); });
  registerPass([&target] { return createLowerToPlanPass(target); });
  registerPass([] { return createPlanMemory(); });
}

} // namespace llamac
