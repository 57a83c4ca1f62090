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
    getOperation()->setAttr(
        kernel::KernelDialect::getTargetAttrName(),
        kernel::TargetAttr::get(&getContext(), name, context, kvType, gpu,
                                tuneCpu, /*isa=*/"", exact));
    if (!kernel::targetOf(getOperation()))
      signalPassFailure();
  }
};

} // namespace

} // namespace llamac
