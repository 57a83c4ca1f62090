//===- LlamaCanonicalize.cpp - One form for equal graphs ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes that look for attention know one form of it: one scale, directly on
// the scores, and reads of the state that the layer's own append made. Other
// ways to write the same are brought into this form here. A product of two
// scales is rounded once where it was rounded twice.
//
//===----------------------------------------------------------------------===//

#include "ir/llama/Llama.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace llamac::llama;

/// a * b. Null when f32, in which scaled values are kept, has no normal number
/// for it: one scale by it would lose what two scales keep.
static FloatAttr productOf(FloatAttr a, FloatAttr b) {
  APFloat product = a.getValue() * b.getValue();
  APFloat single = product;
  bool losesInfo = false;
  single.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
  return single.isNormal() ? FloatAttr::get(a.getType(), product) : FloatAttr();
}

namespace {

/// scale(scale(x)) becomes one scale.
struct ScaleOfScale : OpRewritePattern<ScaleOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScaleOp op,
                                PatternRewriter &rewriter) const override {
    auto inner = op.getX().getDefiningOp<ScaleOp>();
    FloatAttr factor =
        inner ? productOf(inner.getFactorAttr(), op.getFactorAttr())
              : FloatAttr();
    if (!factor)
      return failure();
    Location loc = rewriter.getFusedLoc({inner.getLoc(), op.getLoc()});
    rewriter.replaceOp(op, rewriter.create<ScaleOp>(loc, inner.getX(), factor));
    return success();
  }
};

/// scale(add_mask(x, causal)) becomes add_mask(scale(x), causal): zeros stay
/// zero and minus infinity stays, as factors are positive.
struct ScaleBeforeMask : OpRewritePattern<ScaleOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(ScaleOp op,
                                PatternRewriter &rewriter) const override {
    auto masked = op.getX().getDefiningOp<AddMaskOp>();
    if (!masked || !masked->hasOneUse() ||
        !masked.getMask().getDefiningOp<CausalMaskOp>())
      return failure();
    auto scaled = rewriter.create<ScaleOp>(op.getLoc(), masked.getScores(),
                                           op.getFactorAttr());
    rewriter.replaceOp(op, rewriter.create<AddMaskOp>(masked.getLoc(), scaled,
                                                      masked.getMask()));
    return success();
  }
};

/// op(scale(x)) becomes scale(op(x)) for an op that is linear in each operand.
template <typename Op> struct ScaleAfter : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    for (OpOperand &operand : op->getOpOperands()) {
      auto scale = operand.get().template getDefiningOp<ScaleOp>();
      if (!scale)
        continue;
      Operation *unscaled = rewriter.clone(*op);
      rewriter.modifyOpInPlace(unscaled, [&] {
        unscaled->setOperand(operand.getOperandNumber(), scale.getX());
      });
      rewriter.replaceOp(op, rewriter.create<ScaleOp>(scale.getLoc(),
                                                      unscaled->getResult(0),
                                                      scale.getFactorAttr()));
      return success();
    }
    return failure();
  }
};

/// The factor of a scaled query becomes part of attention's.
struct ScaleIntoAttention : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    auto scaled = op.getQuery().getDefiningOp<ScaleOp>();
    FloatAttr factor =
        scaled ? productOf(scaled.getFactorAttr(), op.getScaleAttr())
               : FloatAttr();
    if (!factor)
      return failure();
    rewriter.modifyOpInPlace(op, [&] {
      op.getQueryMutable().assign(scaled.getX());
      op.setScaleAttr(factor);
    });
    return success();
  }
};

/// What reads one layer reads the same before an append to another.
template <typename Op> struct ReadBeforeAppend : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto append = op.getKv().template getDefiningOp<CacheAppendOp>();
    if (!append || append.getLayer() == op.getLayer())
      return failure();
    rewriter.modifyOpInPlace(op,
                             [&] { op.getKvMutable().assign(append.getKv()); });
    return success();
  }
};

} // namespace

void ScaleOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                          MLIRContext *context) {
  patterns.add<ScaleOfScale, ScaleBeforeMask>(context);
}

void SplitHeadsOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *context) {
  patterns.add<ScaleAfter<SplitHeadsOp>>(context);
}

void MergeHeadsOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *context) {
  patterns.add<ScaleAfter<MergeHeadsOp>>(context);
}

void RopeOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                         MLIRContext *context) {
  patterns.add<ScaleAfter<RopeOp>>(context);
}

void GatherRowsOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                               MLIRContext *context) {
  patterns.add<ScaleAfter<GatherRowsOp>>(context);
}

void AttentionScoresOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                                    MLIRContext *context) {
  patterns.add<ScaleAfter<AttentionScoresOp>>(context);
}

void AttentionOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<ScaleIntoAttention, ReadBeforeAppend<AttentionOp>>(context);
}

void CacheReadOp::getCanonicalizationPatterns(RewritePatternSet &patterns,
                                              MLIRContext *context) {
  patterns.add<ReadBeforeAppend<CacheReadOp>>(context);
}
