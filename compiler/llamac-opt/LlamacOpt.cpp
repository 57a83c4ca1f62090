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

#include "codegen/targets/Targets.h"
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

using namespace mlir;

// Descriptions are kept by reference.
static const std::string weightsHelp =
    "Format of the matrices: " + llamac::weightOptionNames();

namespace {

struct GraphOptions : PassPipelineOptions<GraphOptions> {
  Option<std::string> weights{*this, "weights", llvm::cl::desc(weightsHelp),
                              llvm::cl::init("keep")};
};

struct FuseOptions : PassPipelineOptions<FuseOptions> {
  Option<bool> explain{*this, "explain",
                       llvm::cl::desc("Say in remarks why ops were not fused"),
                       llvm::cl::init(false)};
};

/// The phase schedule, whose passes the module's target decides.
struct SchedulePhase : PassWrapper<SchedulePhase, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SchedulePhase)

  StringRef getArgument() const override { return "llamac-schedule"; }
  StringRef getDescription() const override {
    return "The phase schedule: from kernel ops to the plan";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<llamac::kernel::KernelDialect, llamac::plan::PlanDialect>();
  }
  void runOnOperation() override {
    const auto target = llamac::kernel::targetOf(getOperation());
    if (!target)
      return signalPassFailure();
    OpPassManager steps(ModuleOp::getOperationName());
    llamac::addSteps(steps, llamac::scheduleSteps(*target));
    if (failed(runPipeline(steps, getOperation())))
      signalPassFailure();
  }
};

} // namespace

int main(int argc, char **argv) {
  llamac::claimStandardStreams();
  llamac::installLlvmErrorHandlers();
  llamac::installFatalHandlers("llamac-opt");
  // Options that are registered by now are flags of LLVM's code generators.
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (name != "help" && name != "version")
      option->setHiddenFlag(llvm::cl::ReallyHidden);
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, func::FuncDialect, tensor::TensorDialect,
                  llamac::llama::LlamaDialect, llamac::kernel::KernelDialect,
                  llamac::plan::PlanDialect>();
  llamac::registerTargets(registry);
  llamac::registerPasses();
  PassRegistration<SchedulePhase>();
  const PassPipelineRegistration<GraphOptions> graph(
      "llamac-graph", "The phase graph: all passes before fusion",
      [](OpPassManager &pm, const GraphOptions &options) {
        llamac::addSteps(pm, llamac::graphSteps(options.weights.getValue()));
      });
  const PassPipelineRegistration<FuseOptions> fuse(
      "llamac-fuse", "The phase fuse: from the graph to kernel ops",
      [](OpPassManager &pm, const FuseOptions &options) {
        llamac::addSteps(pm, llamac::fuseSteps(options.explain));
      });
  return asMainReturnCode(
      MlirOptMain(argc, argv, "llamac optimizer driver\n", registry));
}
