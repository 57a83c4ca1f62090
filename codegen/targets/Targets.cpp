//===- Targets.cpp - The targets that kernels are made for ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/targets/Targets.h"

#include "codegen/cpu/CpuTarget.h"
#include "codegen/cuda/CudaTarget.h"

using namespace mlir;

namespace llamac {

template <typename T, typename Options>
static std::unique_ptr<kernel::Target> make(FailureOr<Options> options) {
  return succeeded(options) ? std::make_unique<T>(*options) : nullptr;
}

std::unique_ptr<kernel::Target> createTarget(kernel::TargetAttr attr,
                                             kernel::EmitError emitError) {
  if (attr.getName() == "cpu")
    return make<CpuTarget>(cpuTargetOptions(attr, emitError));
  if (attr.getName() == "cuda" || attr.getName() == "sim")
    return make<CudaTarget>(cudaTargetOptions(attr, emitError));
  emitError() << "target: expected cpu, cuda or sim, got " << attr.getName();
  return nullptr;
}

namespace {

struct Factory : kernel::TargetFactory {
  using TargetFactory::TargetFactory;

  std::unique_ptr<kernel::Target>
  create(kernel::TargetAttr attr, kernel::EmitError emitError) const override {
    return createTarget(attr, emitError);
  }
};

} // namespace

void registerTargets(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, kernel::KernelDialect *dialect) {
    dialect->addInterfaces<Factory>();
  });
}

} // namespace llamac
