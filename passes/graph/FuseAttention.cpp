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

/// The op that makes what `use` reads, when it is an `Op` and nothing else
/// reads it; otherwise null, and the reason why `op` is not fused. `what` names
/// the value. The op's location goes to the front of `locs`.
template <typename Op>
static Op soleProducer(OpOperand &use, StringRef what, Operation *op,
                       PatternRewriter &rewriter, SmallVector<Location> &locs) {
  auto producer = use.get().getDefiningOp<Op>();
  if (producer && use.get().hasOneUse()) {
    locs.insert(locs.begin(), producer.getLoc());
    return producer;
  }
  (void)rewriter.notifyMatchFailure(op, [&](Diagnostic &why) {
    if (!producer) {
      why << "the " << what << " are not made by " << Op::getOperationName();
      return;
    }
    why << "the " << what << " have another reader";
    noteOtherReaders(why, use);
  });
  return {};
}

/// True when the rows of `mask` are the step's, which `index` has, or some of
/// them.
static bool masksRowsOf(llama::CausalMaskOp mask, llama::CacheIndexOp index) {
  if (mask.getPositions() == index.getPositions() &&
      mask.getSequences() == index.getSequences())
    return true;
  auto positions = mask.getPositions().getDefiningOp<llama::GatherRowsOp>();
  auto sequences = mask.getSequences().getDefiningOp<llama::GatherRowsOp>();
  return positions && sequences && positions.getX() == index.getPositions() &&
         sequences.getX() == index.getSequences() &&
         positions.getRows() == sequences.getRows();
}

/// Why `mask` is not over the keys that `read` gives in this step; null when it
/// is: its key index is of a layer's cache before the step, which all layers'
/// are alike, for the same rows that the layer's append wrote.
static const char *whyNotOfStep(llama::CausalMaskOp mask,
                                llama::CacheReadOp read) {
  auto index = mask.getKeyPositions().getDefiningOp<llama::CacheIndexOp>();
  if (!index || mask.getKeyPositions() != index.getKeyPositions() ||
      mask.getKeySequences() != index.getKeySequences())
    return "the mask's keys are not those of an index of the cache";
  if (!masksRowsOf(mask, index))
    return "the mask is of other rows than the index of the cache";
  auto append = read.getKv().getDefiningOp<llama::CacheAppendOp>();
  if (!append)
    return "the step's rows are not appended to the layer before it is read";
  if (append.getPositions() != index.getPositions() ||
      append.getSequences() != index.getSequences())
    return "the mask is of other rows than those appended to the cache";
  if (!isa<BlockArgument>(append.getKv()) || !isa<BlockArgument>(index.getKv()))
    return "the mask is of another state of the cache";
  return nullptr;
}

namespace {

/// Matches softmax(add_mask(scale(scores(q, k)), mask)) values v from its last
/// op upwards; the scale may be missing.
struct FuseAttentionPattern : OpRewritePattern<llama::AttentionValuesOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(llama::AttentionValuesOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<Location> locs = {op.getLoc()};
    auto softmax = soleProducer<llama::SoftmaxOp>(
        op.getProbabilitiesMutable(), "probabilities", op, rewriter, locs);
    if (!softmax)
      return failure();
    auto masked = soleProducer<llama::AddMaskOp>(softmax.getScoresMutable(),
                                                 "scores of the softmax", op,
                                                 rewriter, locs);
    if (!masked)
      return failure();
    OpOperand *use = &masked.getScoresMutable();
    FloatAttr factor = rewriter.getF64FloatAttr(1.0);
    if (use->get().getDefiningOp<llama::ScaleOp>()) {
      auto scaled = soleProducer<llama::ScaleOp>(*use, "scaled scores", op,
                                                 rewriter, locs);
      if (!scaled)
        return failure();
      use = &scaled.getXMutable();
      factor = scaled.getFactorAttr();
    }
    auto scores = soleProducer<llama::AttentionScoresOp>(*use, "scores", op,
                                                         rewriter, locs);
    if (!scores)
      return failure();

    auto keys = scores.getKeys().getDefiningOp<llama::CacheReadOp>();
    if (!keys || scores.getKeys() != keys.getKeys())
      return rewriter.notifyMatchFailure(op, "the keys are not the cache's");
    auto values = op.getValues().getDefiningOp<llama::CacheReadOp>();
    if (!values || op.getValues() != values.getValues())
      return rewriter.notifyMatchFailure(op, "the values are not the cache's");
    if (keys.getKv() != values.getKv())
      return rewriter.notifyMatchFailure(
          op, "keys and values are of different caches");
    auto mask = masked.getMask().getDefiningOp<llama::CausalMaskOp>();
    if (!mask)
      return rewriter.notifyMatchFailure(op, "the mask is not a causal mask");
    if (const char *why = whyNotOfStep(mask, keys))
      return rewriter.notifyMatchFailure(op, why);

    auto fused = rewriter.create<llama::AttentionOp>(
        rewriter.getFusedLoc(locs), op.getType(), scores.getQuery(),
        keys.getKv(), mask.getPositions(), mask.getSequences(), factor,
        mask.getWindowAttr(), llama::ApproximationAttr());
    rewriter.replaceOp(op, fused);
    return success();
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
