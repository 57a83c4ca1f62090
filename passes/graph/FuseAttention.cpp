//===- FuseAttention.cpp - Scores, mask, softmax and values into one op ---===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Explain.h"
#include "passes/Passes.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_FUSEATTENTION
#include "passes/Passes.h.inc"

namespace {

/// Matches softmax(add_mask(scale(scores(q, k)), mask)) values v from its last
/// op upwards.
struct FuseAttentionPattern : OpRewritePattern<llama::AttentionValuesOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(llama::AttentionValuesOp op,
                                PatternRewriter &rewriter) const override {
    auto softmax = soleProducer<llama::SoftmaxOp>(op.getProbabilities());
    if (!softmax)
      return rewriter.notifyMatchFailure(op, "not the values of one softmax");
    auto masked = soleProducer<llama::AddMaskOp>(softmax.getScores());
    if (!masked)
      return rewriter.notifyMatchFailure(op,
                                         "the softmax is not of masked scores");
    auto scaled = soleProducer<llama::ScaleOp>(masked.getScores());
    if (!scaled)
      return rewriter.notifyMatchFailure(op, "the scores are not scaled");
    auto scores = soleProducer<llama::AttentionScoresOp>(scaled.getX());
    if (!scores)
      return rewriter.notifyMatchFailure(op, "the scores are not q k^T");

    auto read = scores.getKeys().getDefiningOp<llama::CacheReadOp>();
    if (!read || scores.getKeys() != read.getKeys() ||
        op.getValues() != read.getValues())
      return rewriter.notifyMatchFailure(
          op, "keys and values are not one layer of the cache");
    auto mask = masked.getMask().getDefiningOp<llama::CausalMaskOp>();
    if (!mask || !masksStepOf(mask, read))
      return rewriter.notifyMatchFailure(
          op, "the mask is not the causal mask of this step");

    Location loc =
        rewriter.getFusedLoc({scores.getLoc(), scaled.getLoc(), masked.getLoc(),
                              softmax.getLoc(), op.getLoc()});
    auto fused = rewriter.create<llama::AttentionOp>(
        loc, op.getType(), scores.getQuery(), read.getKv(), mask.getPositions(),
        mask.getSequences(), read.getLayerAttr(), scaled.getFactorAttr());
    rewriter.replaceOp(op, fused);
    return success();
  }

private:
  template <typename Op> static Op soleProducer(Value value) {
    auto producer = value.getDefiningOp<Op>();
    return producer && value.hasOneUse() ? producer : Op();
  }

  /// True when `mask` is over the rows that `read` gives in this step: its key
  /// index is of the state before the step's appends, for the same rows that
  /// the layer's append wrote.
  static bool masksStepOf(llama::CausalMaskOp mask, llama::CacheReadOp read) {
    auto index = mask.getKeyPositions().getDefiningOp<llama::CacheIndexOp>();
    if (!index || mask.getKeyPositions() != index.getKeyPositions() ||
        mask.getKeySequences() != index.getKeySequences() ||
        index.getPositions() != mask.getPositions() ||
        index.getSequences() != mask.getSequences())
      return false;
    // From the state that is read back to the function's: one append a layer.
    bool appendsLayer = false;
    Value kv = read.getKv();
    while (auto append = kv.getDefiningOp<llama::CacheAppendOp>()) {
      if (append.getPositions() != mask.getPositions() ||
          append.getSequences() != mask.getSequences())
        return false;
      appendsLayer |= append.getLayer() == read.getLayer();
      kv = append.getKv();
    }
    return appendsLayer && kv == index.getKv();
  }
};

struct FuseAttention : impl::FuseAttentionBase<FuseAttention> {
  using FuseAttentionBase::FuseAttentionBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseAttentionPattern>(&getContext());
    if (failed(applyAndExplain(getOperation(), std::move(patterns), explain)))
      signalPassFailure();
  }
};

} // namespace

} // namespace llamac
