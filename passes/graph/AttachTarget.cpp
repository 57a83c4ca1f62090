//===- AttachTarget.cpp - What the module is compiled for -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_ATTACHTARGET
#include "passes/Passes.h.inc"

namespace {

struct AttachTarget : impl::AttachTargetBase<AttachTarget> {
  using AttachTargetBase::AttachTargetBase;

  void runOnOperation() override {
    auto emitError = [&] { return getOperation().emitError(); };
    const auto resident = kernel::symbolizeResidentSteps(residentStep);
    if (!resident) {
      emitError() << "expected resident-step " << kernel::residentStepsNames()
                  << ", got " << residentStep;
      return signalPassFailure();
    }
    const auto target = kernel::TargetAttr::getChecked(
        llvm::function_ref<InFlightDiagnostic()>(emitError), &getContext(),
        StringRef(name.getValue()), context.getValue(),
        StringRef(kvType.getValue()), StringRef(gpu.getValue()),
        StringRef(tuneCpu.getValue()), /*isa=*/StringRef(), exact.getValue(),
        *resident);
    if (!target)
      return signalPassFailure();
    getOperation()->setAttr(kernel::KernelDialect::getTargetAttrName(), target);
    if (!kernel::targetOf(getOperation()))
      signalPassFailure();
  }
};

} // namespace

} // namespace llamac
