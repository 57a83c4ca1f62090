//===- FuseNorm.cpp - RMSNorm into the products that read it --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Explain.h"
#include "passes/Passes.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_FUSENORM
#include "passes/Passes.h.inc"

/// Why the norm that `use` reads cannot be the prologue of its reader; null
/// when it can.
static const char *whyNotPrologue(OpOperand &use) {
  auto product = dyn_cast<kernel::MatmulOp>(use.getOwner());
  if (!product)
    return "a reader is no product";
  if (use.getOperandNumber() != 0)
    return "a product reads it in its epilogue";
  if (product.getNormWeight())
    return "a product that reads it has a norm";
  return nullptr;
}

namespace {

struct FuseNorm : impl::FuseNormBase<FuseNorm> {
  using FuseNormBase::FuseNormBase;

  void runOnOperation() override {
    SmallVector<kernel::RmsNormOp> norms;
    getOperation().walk([&](kernel::RmsNormOp norm) {
      // What has an epilogue is no norm alone: its result is stored.
      if (!norm.getEpilogue().empty())
        return;
      auto apart = llvm::find_if(norm->getUses(), whyNotPrologue);
      if (apart == norm->use_end())
        norms.push_back(norm);
      else if (explain)
        remarkNotFused(norm.getLoc())
                .append(whyNotPrologue(*apart))
                .attachNote(apart->getOwner()->getLoc())
            << "read by " << apart->getOwner()->getName();
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
