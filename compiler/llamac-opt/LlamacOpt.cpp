//===- LlamacOpt.cpp - Reads, transforms and prints IR --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// mlir-opt with the dialects and passes of llamac: each pass can be run and
// tested alone on IR in its text form.
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/CpuTarget.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::tensor::TensorDialect, llamac::llama::LlamaDialect,
                  llamac::kernel::KernelDialect, llamac::plan::PlanDialect>();
  const llamac::CpuTarget target({.context = 4096});
  llamac::registerPasses(target);
  const mlir::PassPipelineRegistration<> graph(
      "llamac-graph", "All passes on the llama dialect",
      [](mlir::OpPassManager &pm) { llamac::buildGraphPipeline(pm, "keep"); });
  const mlir::PassPipelineRegistration<> schedule(
      "llamac-schedule", "All passes from the llama dialect to the plan's",
      [&](mlir::OpPassManager &pm) {
        llamac::buildSchedulePipeline(pm, target);
      });
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "llamac optimizer driver\n", registry));
}
