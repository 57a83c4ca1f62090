//===- BuildGraph.cpp - Prints the graph of a model -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The graph builder for lit tests: hyperparameters come from flags, no
// checkpoint is needed.
//
//===----------------------------------------------------------------------===//

#include "frontends/GraphBuilder.h"
#include "runtime/base/Status.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace cl = llvm::cl;

int main(int argc, char **argv) {
  cl::opt<int64_t> dim("dim", cl::init(64));
  cl::opt<int64_t> layers("layers", cl::init(1));
  cl::opt<int64_t> heads("heads", cl::init(4));
  cl::opt<int64_t> kvHeads("kv-heads", cl::init(2));
  cl::opt<int64_t> headSize("head-size", cl::init(16));
  cl::opt<int64_t> ffn("ffn", cl::init(96));
  cl::opt<int64_t> vocab("vocab", cl::init(101));
  cl::opt<double> theta("theta", cl::init(10000.0));
  cl::opt<double> ropeScale("rope-scale", cl::init(0.0));
  cl::opt<std::string> type("type", cl::init("bf16"));
  cl::opt<bool> tied("tied");
  cl::opt<bool> locations("locations");
  cl::ParseCommandLineOptions(argc, argv);

  llamac::ModelConfig config;
  config.dim = dim;
  config.numLayers = layers;
  config.numHeads = heads;
  config.numKvHeads = kvHeads;
  config.headSize = headSize;
  config.ffnDim = ffn;
  config.vocabSize = vocab;
  config.maxContext = 2048;
  config.ropeTheta = theta;
  config.tiedEmbeddings = tied;
  if (ropeScale > 0)
    config.ropeScaling = llamac::RopeScaling{.factor = ropeScale};
  if (absl::Status status = llamac::validateModelConfig(config); !status.ok()) {
    llvm::errs() << status.ToString() << "\n";
    return static_cast<int>(llamac::exitCode(status));
  }

  // Norms are f32 in every checkpoint format that has blocks.
  auto weightType = [&](absl::string_view name) {
    bool norm = name.find("norm") != absl::string_view::npos;
    return norm ? llamac::DataType::F32
                : llamac::parseDataType(type).value_or(llamac::DataType::F32);
  };
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      llamac::buildStepGraph(context, config, weightType);
  if (mlir::failed(mlir::verify(*module)))
    return static_cast<int>(llamac::ExitCode::Internal);
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(locations);
  module->print(llvm::outs(), flags);
  return 0;
}
