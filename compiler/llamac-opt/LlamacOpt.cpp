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
#include "compiler/llamac/LlvmErrors.h"
#include "passes/Passes.h"
#include "runtime/base/Terminal.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

namespace {

struct GraphOptions : mlir::PassPipelineOptions<GraphOptions> {
  Option<std::string> weights{
      *this, "weights",
      llvm::cl::desc("Format of the matrices: keep, bf16, mxfp8, q8_0 or q4_0"),
      llvm::cl::init("keep")};
};

struct FuseOptions : mlir::PassPipelineOptions<FuseOptions> {
  Option<bool> explain{*this, "explain",
                       llvm::cl::desc("Say in remarks why ops were not fused"),
                       llvm::cl::init(false)};
};

} // namespace

int main(int argc, char **argv) {
  llamac::claimStandardStreams();
  llamac::installLlvmErrorHandlers();
  llamac::installFatalHandlers("llamac-opt");
  mlir::DialectRegistry registry;
  registry.insert<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::tensor::TensorDialect, llamac::llama::LlamaDialect,
                  llamac::kernel::KernelDialect, llamac::plan::PlanDialect>();
  const llamac::CpuTarget target({.context = 4096});
  llamac::registerPasses(target);
  const mlir::PassPipelineRegistration<GraphOptions> graph(
      "llamac-graph", "The phase graph: all passes before fusion",
      [](mlir::OpPassManager &pm, const GraphOptions &options) {
        llamac::addSteps(pm, llamac::graphSteps(options.weights.getValue()));
      });
  const mlir::PassPipelineRegistration<FuseOptions> fuse(
      "llamac-fuse", "The phase fuse: from the graph to kernel ops",
      [&](mlir::OpPassManager &pm, const FuseOptions &options) {
        llamac::addSteps(pm, llamac::fuseSteps(target, options.explain));
      });
  const mlir::PassPipelineRegistration<> schedule(
      "llamac-schedule", "The phase schedule: from kernel ops to the plan",
      [&](mlir::OpPassManager &pm) {
        llamac::addSteps(pm, llamac::scheduleSteps(target));
      });
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "llamac optimizer driver\n", registry));
}
