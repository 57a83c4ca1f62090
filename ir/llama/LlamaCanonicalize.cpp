//===- LlamaCanonicalize.cpp - One form for equal graphs ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes that look for attention know one form of it: one scale, directly on
// the scores. Equivalent forms are rewritten to this one here. A product of two
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

/// scale(scale(x)) becomes one scale. scale(add_mask(x, causal)) becomes
/// add_mask(scale(x), causal): zeros stay zero and minus infinity stays, as
/// factors are positive.
LogicalResult ScaleOp::canonicalize(ScaleOp op, PatternRewriter &rewriter) {
  if (auto inner = op.getX().getDefiningOp<ScaleOp>()) {
    FloatAttr factor = productOf(inner.getFactorAttr(), op.getFactorAttr());
    if (!factor)
      return failure();
    Location loc = rewriter.getFusedLoc({inner.getLoc(), op.getLoc()});
    rewriter.replaceOp(op, rewriter.create<ScaleOp>(loc, inner.getX(), factor));
    return success();
  }
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

/// op(scale(x)) becomes scale(op(x)) for an op that is linear in each operand.
static LogicalResult moveScaleAfter(Operation *op, PatternRewriter &rewriter) {
  for (OpOperand &operand : op->getOpOperands()) {
    auto scale = operand.get().getDefiningOp<ScaleOp>();
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

LogicalResult SplitHeadsOp::canonicalize(SplitHeadsOp op,
                                         PatternRewriter &rewriter) {
  return moveScaleAfter(op, rewriter);
}

LogicalResult MergeHeadsOp::canonicalize(MergeHeadsOp op,
                                         PatternRewriter &rewriter) {
  return moveScaleAfter(op, rewriter);
}

LogicalResult RopeOp::canonicalize(RopeOp op, PatternRewriter &rewriter) {
  return moveScaleAfter(op, rewriter);
}

LogicalResult GatherRowsOp::canonicalize(GatherRowsOp op,
                                         PatternRewriter &rewriter) {
  return moveScaleAfter(op, rewriter);
}

LogicalResult AttentionScoresOp::canonicalize(AttentionScoresOp op,
                                              PatternRewriter &rewriter) {
  return moveScaleAfter(op, rewriter);
}

/// The factor of a scaled query becomes part of attention's.
LogicalResult AttentionOp::canonicalize(AttentionOp op,
                                        PatternRewriter &rewriter) {
  auto scaled = op.getQuery().getDefiningOp<ScaleOp>();
  FloatAttr factor = scaled
                         ? productOf(scaled.getFactorAttr(), op.getScaleAttr())
                         : FloatAttr();
  if (!factor)
    return failure();
  rewriter.modifyOpInPlace(op, [&] {
    op.getQueryMutable().assign(scaled.getX());
    op.setScaleAttr(factor);
  });
  return success();
}
