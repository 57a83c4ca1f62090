//===- FuseEpilogue.cpp - Element-wise work into the product before -------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Works on kernel ops, from the first to the last, until nothing changes: a
// pointwise op looks at the ops that make its operands, and takes the first
// that it may join. Joining moves the producer's work to the pointwise op's
// place, which is always later, so no value is used before it is made.
//
//===----------------------------------------------------------------------===//

#include "passes/Explain.h"
#include "passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_FUSEEPILOGUE
#include "passes/Passes.h.inc"

namespace {

using kernel::MatmulOp;
using kernel::PointwiseOp;
using kernel::YieldOp;

/// Copies the ops of a scalar region with its arguments replaced by `args`;
/// gives the value it yields.
static Value inlineScalars(OpBuilder &builder, Region &region,
                           ValueRange args) {
  IRMapping mapping;
  mapping.map(region.front().getArguments(), args);
  for (Operation &op : region.front().without_terminator())
    builder.clone(op, mapping);
  auto yield = cast<YieldOp>(region.front().getTerminator());
  return mapping.lookup(yield.getValue());
}

/// Adds one f32 argument for each of `count` scalars to a new block of
/// `region`.
static Block *createScalarBlock(OpBuilder &builder, Region &region,
                                size_t count, Location loc) {
  SmallVector<Type> types(count, builder.getF32Type());
  SmallVector<Location> locs(count, loc);
  return builder.createBlock(&region, region.end(), types, locs);
}

/// The operation that makes `value` when nothing but `user` reads it, and
/// that only once.
template <typename Op> static Op soleProducer(Value value, Operation *user) {
  auto producer = value.getDefiningOp<Op>();
  return producer && value.hasOneUse() && *value.getUsers().begin() == user
             ? producer
             : Op();
}

/// pointwise(…, pointwise(…), …) becomes one pointwise.
struct FusePointwiseChain : OpRewritePattern<PointwiseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PointwiseOp op,
                                PatternRewriter &rewriter) const override {
    for (OpOperand &operand : op->getOpOperands())
      if (auto producer = soleProducer<PointwiseOp>(operand.get(), op)) {
        fuse(rewriter, producer, op, operand.getOperandNumber());
        return success();
      }
    return rewriter.notifyMatchFailure(
        op, "no operand is made by a pointwise op for this op alone");
  }

  static void fuse(PatternRewriter &rewriter, PointwiseOp producer,
                   PointwiseOp op, unsigned position) {
    // Operands: the producer's, then op's others; each value once.
    llvm::SetVector<Value> inputs;
    inputs.insert(producer.getInputs().begin(), producer.getInputs().end());
    for (auto [i, input] : llvm::enumerate(op.getInputs()))
      if (i != position)
        inputs.insert(input);

    Location loc = rewriter.getFusedLoc({producer.getLoc(), op.getLoc()});
    auto fused =
        rewriter.create<PointwiseOp>(loc, op.getType(), inputs.getArrayRef());
    OpBuilder::InsertionGuard guard(rewriter);
    Block *block =
        createScalarBlock(rewriter, fused.getBody(), inputs.size(), loc);
    auto scalarOf = [&](Value input) {
      auto *it = llvm::find(inputs, input);
      return block->getArgument(it - inputs.begin());
    };
    SmallVector<Value> producerArgs(
        llvm::map_range(producer.getInputs(), scalarOf));
    Value inner = inlineScalars(rewriter, producer.getBody(), producerArgs);
    SmallVector<Value> args;
    for (auto [i, input] : llvm::enumerate(op.getInputs()))
      args.push_back(i == position ? inner : scalarOf(input));
    Value result = inlineScalars(rewriter, op.getBody(), args);
    rewriter.create<YieldOp>(loc, result);
    rewriter.replaceOp(op, fused);
    rewriter.eraseOp(producer);
  }
};

/// True when `a` and `b` may share one walk over their weights.
static bool mayShareInput(MatmulOp a, MatmulOp b) {
  return a.getInput() == b.getInput() &&
         a.getNormWeight() == b.getNormWeight() && a.getEps() == b.getEps() &&
         a.getWeights().size() == 1 && b.getWeights().size() == 1 &&
         a.getWeights()[0].getType() == b.getWeights()[0].getType() &&
         a.getExtras().empty() && b.getExtras().empty();
}

/// pointwise(…, matmul(…), …) becomes a product with an epilogue; when two
/// operands are products of the same input, one product of two weights.
struct FuseIntoMatmul : OpRewritePattern<PointwiseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PointwiseOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<MatmulOp, 2> products;
    for (Value input : op.getInputs()) {
      auto product = soleProducer<MatmulOp>(input, op);
      if (product &&
          (products.empty() ||
           (products.size() == 1 && mayShareInput(products[0], product))))
        products.push_back(product);
    }
    if (products.empty())
      return rewriter.notifyMatchFailure(
          op, "no operand is made by a product for this op alone");

    SmallVector<Value> weights;
    SmallVector<Location> locs;
    for (MatmulOp product : products) {
      llvm::append_range(weights, product.getWeights());
      locs.push_back(product.getLoc());
    }
    locs.push_back(op.getLoc());
    llvm::SetVector<Value> extras;
    if (products.size() == 1)
      extras.insert(products[0].getExtras().begin(),
                    products[0].getExtras().end());
    for (Value input : op.getInputs())
      if (!llvm::is_contained(products, input.getDefiningOp()))
        extras.insert(input);

    Location loc = rewriter.getFusedLoc(locs);
    auto fused = rewriter.create<MatmulOp>(
        loc, op.getType(), products[0].getInput(), weights,
        products[0].getNormWeight(), extras.getArrayRef(),
        products[0].getEpsAttr(), products[0].getConfigAttr());
    OpBuilder::InsertionGuard guard(rewriter);
    Block *block = createScalarBlock(rewriter, fused.getEpilogue(),
                                     weights.size() + extras.size(), loc);
    auto extraScalar = [&](Value input) -> Value {
      auto *it = llvm::find(extras, input);
      return block->getArgument(weights.size() + (it - extras.begin()));
    };
    // What each product yielded, from its accumulators and extras.
    llvm::SmallDenseMap<Value, Value> yielded;
    unsigned accumulator = 0;
    for (MatmulOp product : products) {
      SmallVector<Value> args;
      for (size_t i = 0; i < product.getWeights().size(); ++i)
        args.push_back(block->getArgument(accumulator++));
      llvm::append_range(args,
                         llvm::map_range(product.getExtras(), extraScalar));
      yielded[product.getResult()] =
          inlineScalars(rewriter, product.getEpilogue(), args);
    }
    SmallVector<Value> args;
    for (Value input : op.getInputs())
      args.push_back(yielded.count(input) ? yielded[input]
                                          : extraScalar(input));
    Value result = inlineScalars(rewriter, op.getBody(), args);
    rewriter.create<YieldOp>(loc, result);
    rewriter.replaceOp(op, fused);
    for (MatmulOp product : products)
      rewriter.eraseOp(product);
    return success();
  }
};

struct FuseEpilogue : impl::FuseEpilogueBase<FuseEpilogue> {
  using FuseEpilogueBase::FuseEpilogueBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FusePointwiseChain, FuseIntoMatmul>(&getContext());
    GreedyRewriteConfig config;
    config.useTopDownTraversal = true;
    if (failed(applyAndExplain(getOperation(), std::move(patterns), explain,
                               config)))
      signalPassFailure();
  }
};

} // namespace

} // namespace llamac
