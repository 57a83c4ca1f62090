//===- FuseNorm.cpp - RMSNorm into the products that read it --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_FUSENORM
#include "passes/Passes.h.inc"

namespace {

/// True when every user of `norm` is a product that reads it as its input and
/// has no norm of its own.
static bool onlyFeedsProducts(kernel::RmsNormOp norm) {
  return llvm::all_of(norm->getUses(), [](OpOperand &use) {
    auto product = dyn_cast<kernel::MatmulOp>(use.getOwner());
    return product && use.getOperandNumber() == 0 && !product.getNormWeight();
  });
}

struct FuseNorm : impl::FuseNormBase<FuseNorm> {
  using FuseNormBase::FuseNormBase;

  void runOnOperation() override {
    SmallVector<kernel::RmsNormOp> norms;
    getOperation().walk([&](kernel::RmsNormOp norm) {
      if (!norm->use_empty() && onlyFeedsProducts(norm))
        norms.push_back(norm);
      else if (explain)
        norm.emitRemark("not fused: not every reader is a product whose input "
                        "this is and that has no norm yet");
    });
    for (kernel::RmsNormOp norm : norms) {
      for (Operation *user : llvm::make_early_inc_range(norm->getUsers())) {
        auto product = cast<kernel::MatmulOp>(user);
        product.getInputMutable().assign(norm.getInput());
        product.getNormWeightMutable().assign(norm.getWeight());
        product.setEpsAttr(norm.getEpsAttr());
      }
      norm->erase();
    }
  }
};

} // namespace

} // namespace llamac
