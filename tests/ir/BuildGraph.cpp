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
#include "tests/ir/ModelFlags.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace cl = llvm::cl;

int main(int argc, char **argv) {
  llamac::ModelFlags model;
  cl::opt<std::string> type("type", cl::init("bf16"));
  cl::opt<bool> locations("locations");
  cl::ParseCommandLineOptions(argc, argv);

  // Norms are f32 in every checkpoint format that has blocks.
  auto weightType = [&](absl::string_view name) {
    bool norm = name.find("norm") != absl::string_view::npos;
    return norm ? llamac::DataType::F32
                : llamac::parseDataType(type).value_or(llamac::DataType::F32);
  };
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module =
      llamac::buildStepGraph(context, model.config(), weightType);
  if (mlir::failed(mlir::verify(*module)))
    return 1;
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(locations);
  module->print(llvm::outs(), flags);
  return 0;
}
