//===- ApproximateExp.cpp - Approximate exponentials in attention ---------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_APPROXIMATEEXP
#include "passes/Passes.h.inc"

namespace {

struct ApproximateExp : impl::ApproximateExpBase<ApproximateExp> {
  using ApproximateExpBase::ApproximateExpBase;

  void runOnOperation() override {
    const bool isPoly = poly == 3 && table == 0;
    if (!isPoly && !(poly == 0 && table == 256)) {
      getOperation().emitError()
          << "approximate-exp: expected poly=3 or "
             "table=256, got poly="
          << poly.getValue() << " table=" << table.getValue();
      return signalPassFailure();
    }
    const auto kind = isPoly ? llama::ExpKind::Poly3 : llama::ExpKind::Table256;
    const std::unique_ptr<kernel::Target> target =
        kernel::targetOf(getOperation());
    if (!target)
      return signalPassFailure();
    if (!target->takesExp(kind)) {
      getOperation().emitError()
          << "approximate-exp: target " << target->name()
          << " has no kernels for " << llama::stringifyExpKind(kind)
          << ", expected " << (isPoly ? "table=256" : "poly=3");
      return signalPassFailure();
    }
    getOperation().walk([&](llama::AttentionOp op) {
      op.setApproximationAttr(
          llama::ApproximationAttr::get(&getContext(), kind, /*top_k=*/0));
    });
  }
};

} // namespace

} // namespace llamac
