//===- Target.cpp - What the schedule passes ask of a target --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/kernel/Target.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace llamac::kernel {

std::unique_ptr<Target> targetOf(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto attr =
      module->getAttrOfType<TargetAttr>(KernelDialect::getTargetAttrName());
  if (!attr) {
    module.emitError() << "has no " << KernelDialect::getTargetAttrName()
                       << ": attach-target must come first";
    return nullptr;
  }
  auto *dialect = op->getContext()->getLoadedDialect<KernelDialect>();
  const auto *factory = dialect->getRegisteredInterface<TargetFactory>();
  assert(factory && "registerTargets() is called ahead of passes");
  return factory->create(attr, [&] { return module.emitError(); });
}

} // namespace llamac::kernel
