//===- FuseQkv.cpp - Query, key and value in one launch -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Starts at the append: what it rotates and stores must be made for it alone,
// by three plain products of one input. An append that needs whole heads, to
// normalise them or to round them in blocks, stays a launch behind the
// products, which have no head as a whole.
//
//===----------------------------------------------------------------------===//

#include "ir/kernel/Target.h"
#include "passes/Explain.h"
#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_FUSEQKV
#include "passes/Passes.h.inc"

namespace {

using kernel::MatmulOp;
using kernel::RopeAppendOp;

/// True when `product` stores its one accumulator as it is.
static bool isPlain(MatmulOp product) {
  Block &epilogue = product.getEpilogue().front();
  return product.getWeights().size() == 1 && product.getExtras().empty() &&
         !product.getNextNorm() && !product.getLeaves() &&
         llvm::hasSingleElement(epilogue);
}

/// The vector that `product` adds to its one accumulator before it stores that;
/// null when it does anything else.
static Value biasOf(MatmulOp product) {
  Block &epilogue = product.getEpilogue().front();
  if (product.getWeights().size() != 1 || product.getExtras().size() != 1 ||
      product.getNextNorm() || product.getLeaves() ||
      epilogue.getOperations().size() != 2)
    return {};
  Value bias = product.getExtras().front();
  auto sum = dyn_cast<arith::AddFOp>(epilogue.front());
  const bool isSum = sum && sum.getLhs() != sum.getRhs() &&
                     epilogue.getTerminator()->getOperand(0) == sum;
  return isSum && cast<RankedTensorType>(bias.getType()).getRank() == 1
             ? bias
             : Value();
}

struct FuseProductsIntoAppend : OpRewritePattern<RopeAppendOp> {
  bool roundsHeads; ///< Whether the target appends whole heads.

  FuseProductsIntoAppend(MLIRContext *context, bool roundsHeads)
      : OpRewritePattern(context), roundsHeads(roundsHeads) {}

  LogicalResult matchAndRewrite(RopeAppendOp append,
                                PatternRewriter &rewriter) const override {
    if (append.getQuery().getDefiningOp<kernel::QkvProductsOp>())
      return failure(); // Fused before.
    const bool needsHeads = roundsHeads || !append.getNorms().empty();
    MatmulOp products[3];
    SmallVector<Value> biases;
    const std::pair<StringRef, Value> parts[] = {{"query", append.getQuery()},
                                                 {"key", append.getKey()},
                                                 {"value", append.getValue()}};
    for (auto [part, product] : llvm::zip(parts, products)) {
      product = part.second.getDefiningOp<MatmulOp>();
      const char *why = nullptr;
      Value bias = product ? biasOf(product) : Value();
      if (!product || (!bias && !isPlain(product)))
        why = " is not a plain product";
      else if (product != products[0] && !bias != biases.empty())
        why = " has a bias, or the query has one, and not both";
      else if (!part.second.hasOneUse())
        why = " has another reader";
      else if (product.getInput() != products[0].getInput() ||
               product.getNorm() != products[0].getNorm() ||
               product.getEps() != products[0].getEps())
        why = " is a product of another input than the query";
      else if (bias && needsHeads)
        why = roundsHeads ? " has a bias, and the cache rounds whole heads"
                          : " has a bias and a norm of heads";
      if (why)
        return rewriter.notifyMatchFailure(append, [&](Diagnostic &diagnostic) {
          diagnostic << "the " << part.first << why;
        });
      if (bias)
        biases.push_back(bias);
    }
    auto [query, key, value] = products;
    if (needsHeads) {
      Location loc =
          rewriter.getFusedLoc({query.getLoc(), key.getLoc(), value.getLoc()});
      auto fused = rewriter.create<kernel::QkvProductsOp>(
          loc,
          TypeRange{append.getQuery().getType(), append.getKey().getType(),
                    append.getValue().getType()},
          query.getInput(), query.getWeights()[0], key.getWeights()[0],
          value.getWeights()[0], query.getNorm(), query.getEpsAttr(),
          kernel::MatmulConfigAttr());
      for (auto [product, result] : llvm::zip(products, fused.getResults()))
        rewriter.replaceOp(product, result);
      return success();
    }
    Location loc = rewriter.getFusedLoc(
        {query.getLoc(), key.getLoc(), value.getLoc(), append.getLoc()});
    rewriter
        .replaceOpWithNewOp<kernel::QkvOp>(
            append, append.getResultTypes(), query.getInput(),
            query.getWeights()[0], key.getWeights()[0], value.getWeights()[0],
            query.getNorm(), biases, append.getTable(), append.getKv(),
            append.getPositions(), append.getSequences(), query.getEpsAttr(),
            kernel::MatmulConfigAttr())
        ->setLoc(loc);
    for (MatmulOp product : products)
      rewriter.eraseOp(product);
    return success();
  }
};

struct FuseQkv : impl::FuseQkvBase<FuseQkv> {
  using FuseQkvBase::FuseQkvBase;

  void runOnOperation() override {
    const FailureOr<bool> roundsHeads =
        kernel::appendsWholeHeads(getOperation());
    if (failed(roundsHeads))
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseProductsIntoAppend>(&getContext(), *roundsHeads);
    if (failed(applyAndExplain(getOperation(), std::move(patterns), explain)))
      signalPassFailure();
  }
};

} // namespace

} // namespace llamac
