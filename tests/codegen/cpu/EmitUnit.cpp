//===- EmitUnit.cpp - Prints the C++ of the kernels of a module -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cpu emitter for lit tests: a module of plan.kernel ops on stdin, the unit
// on stdout.
//
//===----------------------------------------------------------------------===//

#include "codegen/SourceText.h"
#include "codegen/cpu/CpuBackend.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

int main() {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, llamac::kernel::KernelDialect,
                  llamac::llama::LlamaDialect, llamac::plan::PlanDialect>();
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>("-", &context);
  if (!module)
    return 1;
  SmallVector<llamac::plan::KernelOp> kernels(
      module->getOps<llamac::plan::KernelOp>());
  FailureOr<std::string> unit = llamac::emitCpuUnit(kernels, {.context = 4096});
  if (failed(unit))
    return 1;
  llvm::outs() << llamac::formatSource(*unit);
  return 0;
}
