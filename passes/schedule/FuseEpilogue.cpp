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
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SetVector.h"

#include <string>

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

/// The operation that makes `value` when nothing but `reader` reads it.
template <typename Op> static Op soleProducer(Value value, Operation *reader) {
  auto producer = value.getDefiningOp<Op>();
  const bool alone =
      producer && llvm::all_of(value.getUsers(),
                               [&](Operation *user) { return user == reader; });
  return alone ? producer : Op();
}

/// What keeps `a` and `b` from sharing one walk over their input; empty when
/// nothing does. Their results are of one type.
static std::string whyApart(MatmulOp a, MatmulOp b) {
  if (a.getInput() != b.getInput())
    return "different inputs";
  if (a.getNormWeight() != b.getNormWeight() || a.getEps() != b.getEps())
    return "different norms";
  if (a.getWeights().size() + b.getWeights().size() > 2)
    return "more than two weights";
  auto elementOf = [](MatmulOp product) {
    return llama::elementTypeName(
        cast<ShapedType>(product.getWeights()[0].getType()).getElementType());
  };
  if (elementOf(a) != elementOf(b))
    return ("weights of different types, " + elementOf(a) + " and " +
            elementOf(b))
        .str();
  return "";
}

/// The products that make operands of `op` for it alone: two that can share
/// their input where there are such, else the first.
static SmallVector<MatmulOp, 2> productsFor(PointwiseOp op) {
  SmallVector<MatmulOp, 2> products;
  for (Value input : op.getInputs())
    if (auto product = soleProducer<MatmulOp>(input, op))
      if (!llvm::is_contained(products, product))
        products.push_back(product);
  for (auto [i, a] : llvm::enumerate(products))
    for (MatmulOp b : llvm::drop_begin(products, i + 1))
      if (whyApart(a, b).empty())
        return {a, b};
  products.truncate(std::min<size_t>(products.size(), 1));
  return products;
}

/// pointwise(…, pointwise(…), …) becomes one pointwise.
struct FusePointwiseChain : OpRewritePattern<PointwiseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PointwiseOp op,
                                PatternRewriter &rewriter) const override {
    for (Value input : op.getInputs())
      if (auto producer = soleProducer<PointwiseOp>(input, op)) {
        fuse(rewriter, producer, op);
        return success();
      }
    return failure();
  }

  static void fuse(PatternRewriter &rewriter, PointwiseOp producer,
                   PointwiseOp op) {
    // Operands: the producer's, then op's others; each value once.
    llvm::SetVector<Value> inputs;
    inputs.insert(producer.getInputs().begin(), producer.getInputs().end());
    inputs.insert(op.getInputs().begin(), op.getInputs().end());
    inputs.remove(producer.getResult());

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
    for (Value input : op.getInputs())
      args.push_back(input == producer.getResult() ? inner : scalarOf(input));
    Value result = inlineScalars(rewriter, op.getBody(), args);
    rewriter.create<YieldOp>(loc, result);
    rewriter.replaceOp(op, fused);
    rewriter.eraseOp(producer);
  }
};

/// pointwise(…, matmul(…), …) becomes a product with an epilogue; when two
/// operands are products of the same input, one product of two weights.
struct FuseIntoMatmul : OpRewritePattern<PointwiseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PointwiseOp op,
                                PatternRewriter &rewriter) const override {
    SmallVector<MatmulOp, 2> products = productsFor(op);
    if (products.empty())
      return failure();

    SmallVector<Value> weights;
    SmallVector<Location> locs;
    for (MatmulOp product : products) {
      llvm::append_range(weights, product.getWeights());
      locs.push_back(product.getLoc());
    }
    locs.push_back(op.getLoc());
    llvm::SetVector<Value> extras;
    for (MatmulOp product : products)
      extras.insert(product.getExtras().begin(), product.getExtras().end());
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

/// Says why `op` is left.
static void explainLeft(PointwiseOp op) {
  auto *shared = llvm::find_if(op->getOpOperands(), [](OpOperand &operand) {
    return isa_and_nonnull<MatmulOp, PointwiseOp>(
        operand.get().getDefiningOp());
  });
  InFlightDiagnostic remark = remarkNotFused(op.getLoc());
  if (shared == op->getOpOperands().end()) {
    remark << "no operand is made by a product";
    return;
  }
  remark << "the " << shared->get().getDefiningOp()->getName()
         << " that makes operand " << shared->getOperandNumber()
         << " has another reader";
  noteOtherReaders(*remark.getUnderlyingDiagnostic(), *shared);
}

/// Says why `product` does not do the work of the products that make its
/// epilogue's operands for it alone.
static void explainApart(MatmulOp product) {
  for (Value extra : product.getExtras())
    if (auto other = soleProducer<MatmulOp>(extra, product))
      if (const std::string why = whyApart(product, other); !why.empty())
        remarkNotFused(product.getLoc())
                .append("two products with ", why)
                .attachNote(other.getLoc())
            << "the other product";
}

struct FuseEpilogue : impl::FuseEpilogueBase<FuseEpilogue> {
  using FuseEpilogueBase::FuseEpilogueBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FusePointwiseChain, FuseIntoMatmul>(&getContext());
    GreedyRewriteConfig config;
    config.useTopDownTraversal = true;
    if (failed(applyPatternsAndFoldGreedily(getOperation(), std::move(patterns),
                                            config)))
      return signalPassFailure();
    if (!explain)
      return;
    getOperation().walk([](PointwiseOp op) { explainLeft(op); });
    getOperation().walk([](MatmulOp op) { explainApart(op); });
  }
};

} // namespace

} // namespace llamac
