//===- FuseNorm.cpp - RMSNorm into the launches that read it --------------===//
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
  auto norm = use.get().getDefiningOp<kernel::RmsNormOp>();
  if (norm.getWeight().getType().getDimSize(0) !=
      norm.getInput().getType().getDimSize(1))
    return "it is one of parts of rows";
  if (use.getOperandNumber() != 0)
    return "a product reads it in its epilogue";
  if (product.getNorm())
    return "a product that reads it has a norm";
  return nullptr;
}

/// Why the norms of query and key that `append` reads cannot be its own; null
/// when they can.
static const char *whyNotOfAppend(kernel::RopeAppendOp append,
                                  kernel::RmsNormOp query,
                                  kernel::RmsNormOp key, bool roundsHeads) {
  const int64_t headSize = append.getKv().getType().getSize();
  if (!query || !key)
    return "query and key are not both normalised";
  if (!query->hasOneUse() || !key->hasOneUse())
    return "the norm of query or key has another reader";
  if (query.getEps() != key.getEps())
    return "the norms of query and key differ in eps";
  for (kernel::RmsNormOp norm : {query, key})
    if (!norm.getEpilogue().empty() ||
        norm.getWeight().getType().getDimSize(0) % headSize != 0)
      return "the norm of query or key is not one of whole heads alone";
    else if (roundsHeads &&
             norm.getWeight().getType().getDimSize(0) != headSize)
      return "the norm of query or key is of more than a head, and the cache "
             "rounds whole heads";
  return nullptr;
}

/// Moves the norms of query and key into `append`; `roundsHeads` says whether
/// the target appends whole heads.
static void fuseIntoAppend(kernel::RopeAppendOp append, bool roundsHeads,
                           bool explain) {
  auto query = append.getQuery().getDefiningOp<kernel::RmsNormOp>();
  auto key = append.getKey().getDefiningOp<kernel::RmsNormOp>();
  if (!query && !key)
    return;
  if (const char *why = whyNotOfAppend(append, query, key, roundsHeads)) {
    if (explain)
      remarkNotFused(append.getLoc()) << why;
    return;
  }
  append.getQueryMutable().assign(query.getInput());
  append.getKeyMutable().assign(key.getInput());
  append.getNormsMutable().assign({query.getWeight(), key.getWeight()});
  append.setEpsAttr(query.getEpsAttr());
  query->erase();
  key->erase();
}

namespace {

struct FuseNorm : impl::FuseNormBase<FuseNorm> {
  using FuseNormBase::FuseNormBase;

  void runOnOperation() override {
    const FailureOr<bool> roundsHeads =
        kernel::appendsWholeHeads(getOperation());
    if (failed(roundsHeads))
      return signalPassFailure();
    getOperation().walk([&](kernel::RopeAppendOp append) {
      fuseIntoAppend(append, *roundsHeads, explain);
    });
    SmallVector<kernel::RmsNormOp> norms;
    getOperation().walk([&](kernel::RmsNormOp norm) {
      // A norm with an epilogue stores its result.
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
        product.getNormMutable().assign(norm.getWeight());
        product.setEpsAttr(norm.getEpsAttr());
      }
      norm->erase();
    }
  }
};

} // namespace

} // namespace llamac
