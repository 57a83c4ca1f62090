//===- FuseEpilogue.cpp - Element-wise work into the launch before --------===//
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

using kernel::AllReduceOp;
using kernel::MatmulOp;
using kernel::PointwiseOp;
using kernel::RmsNormOp;
using kernel::YieldOp;

/// The operation that makes `value` alone, when nothing but `reader` reads it.
template <typename Op>
static Op producerOnlyFor(Value value, Operation *reader) {
  auto producer = value.getDefiningOp<Op>();
  const bool alone = producer && producer->getNumResults() == 1 &&
                     llvm::all_of(value.getUsers(), [&](Operation *user) {
                       return user == reader;
                     });
  return alone ? producer : Op();
}

/// The reason that keeps `a` and `b` from sharing one walk over their input;
/// empty when nothing does. Their results are of one type.
static std::string whyApart(MatmulOp a, MatmulOp b) {
  if (a.getInput() != b.getInput())
    return "different inputs";
  if (a.getNorm() != b.getNorm() || a.getEps() != b.getEps())
    return "different norms";
  if (a.getLeaves() != b.getLeaves())
    return "different leaves";
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
    if (auto product = producerOnlyFor<MatmulOp>(input, op))
      if (!llvm::is_contained(products, product))
        products.push_back(product);
  for (auto [i, a] : llvm::enumerate(products))
    for (MatmulOp b : llvm::drop_begin(products, i + 1))
      if (whyApart(a, b).empty())
        return {a, b};
  products.truncate(std::min<size_t>(products.size(), 1));
  return products;
}

/// The scalar region of a product, norm, sum or pointwise op, which takes
/// accumulators and then the elements of `inputs`. That of a norm or of a sum
/// over ranks may be empty.
struct ScalarRegion {
  Operation *op;
  Region &region;
  size_t accumulators;
  OperandRange inputs;
};

ScalarRegion regionOf(MatmulOp op) {
  return {op, op.getEpilogue(), op.getWeights().size(), op.getExtras()};
}
ScalarRegion regionOf(RmsNormOp op) {
  return {op, op.getEpilogue(), 1, op.getExtras()};
}
ScalarRegion regionOf(AllReduceOp op) {
  return {op, op.getEpilogue(), 1, op.getExtras()};
}
ScalarRegion regionOf(PointwiseOp op) {
  return {op, op.getBody(), 0, op.getInputs()};
}

/// Copies the ops of a scalar region with its arguments replaced by `args`;
/// gives the value it yields.
Value inlineScalars(OpBuilder &builder, Region &region, ValueRange args) {
  if (region.empty())
    return args.front();
  IRMapping mapping;
  mapping.map(region.front().getArguments(), args);
  for (Operation &op : region.front().without_terminator())
    builder.clone(op, mapping);
  auto yield = cast<YieldOp>(region.front().getTerminator());
  return mapping.lookup(yield.getValue());
}

/// The values that `producers` and `op`, which reads their results, take: each
/// once.
llvm::SetVector<Value> inputsOf(ArrayRef<ScalarRegion> producers,
                                PointwiseOp op) {
  llvm::SetVector<Value> inputs;
  for (const ScalarRegion &producer : producers)
    inputs.insert(producer.inputs.begin(), producer.inputs.end());
  inputs.insert(op.getInputs().begin(), op.getInputs().end());
  for (const ScalarRegion &producer : producers)
    inputs.remove(producer.op->getResult(0));
  return inputs;
}

/// Puts `fused`, whose region is still empty and which takes `inputs`, in the
/// place of `op` and of `producers`, whose results only `op` reads.
void replace(PatternRewriter &rewriter, PointwiseOp op,
             ArrayRef<ScalarRegion> producers, const ScalarRegion &fused,
             const llvm::SetVector<Value> &inputs) {
  const Location loc = fused.op->getLoc();
  const size_t count = fused.accumulators + inputs.size();
  SmallVector<Type> types(count, rewriter.getF32Type());
  SmallVector<Location> locs(count, loc);
  OpBuilder::InsertionGuard guard(rewriter);
  Block *block = rewriter.createBlock(&fused.region, {}, types, locs);
  // The value that each producer yields, from its accumulators and inputs.
  llvm::SmallDenseMap<Value, Value> yielded;
  auto scalarOf = [&](Value input) -> Value {
    if (Value inner = yielded.lookup(input))
      return inner;
    const auto *it = llvm::find(inputs, input);
    return block->getArgument(fused.accumulators + (it - inputs.begin()));
  };
  unsigned accumulator = 0;
  for (const ScalarRegion &producer : producers) {
    SmallVector<Value> args;
    for (size_t i = 0; i < producer.accumulators; ++i)
      args.push_back(block->getArgument(accumulator++));
    llvm::append_range(args, llvm::map_range(producer.inputs, scalarOf));
    yielded[producer.op->getResult(0)] =
        inlineScalars(rewriter, producer.region, args);
  }
  SmallVector<Value> args(llvm::map_range(op.getInputs(), scalarOf));
  rewriter.create<YieldOp>(loc, inlineScalars(rewriter, op.getBody(), args));
  rewriter.replaceOp(op, fused.op);
  for (const ScalarRegion &producer : producers)
    rewriter.eraseOp(producer.op);
}

/// pointwise(…, pointwise(…), …) becomes one pointwise.
struct FusePointwiseChain : OpRewritePattern<PointwiseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PointwiseOp op,
                                PatternRewriter &rewriter) const override {
    for (Value input : op.getInputs())
      if (auto producer = producerOnlyFor<PointwiseOp>(input, op)) {
        const llvm::SetVector<Value> inputs = inputsOf(regionOf(producer), op);
        auto fused = rewriter.create<PointwiseOp>(
            rewriter.getFusedLoc({producer.getLoc(), op.getLoc()}),
            op.getType(), inputs.getArrayRef());
        replace(rewriter, op, regionOf(producer), regionOf(fused), inputs);
        return success();
      }
    return failure();
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
    SmallVector<ScalarRegion> regions;
    for (MatmulOp product : products) {
      llvm::append_range(weights, product.getWeights());
      locs.push_back(product.getLoc());
      regions.push_back(regionOf(product));
    }
    locs.push_back(op.getLoc());
    const llvm::SetVector<Value> extras = inputsOf(regions, op);
    MatmulOp first = products.front();
    auto fused = rewriter.create<MatmulOp>(
        rewriter.getFusedLoc(locs), op.getType(), /*forNextNorm=*/TypeRange(),
        first.getInput(), weights, first.getNorm(),
        /*nextNorm=*/Value(), extras.getArrayRef(), first.getEpsAttr(),
        first.getLeavesAttr(), first.getConfigAttr());
    replace(rewriter, op, regions, regionOf(fused), extras);
    return success();
  }
};

/// pointwise(…, rms_norm(…), …) becomes a norm with an epilogue, and so does
/// kernel.all_reduce: what is added behind them needs no launch.
template <typename Op> struct FuseIntoRows : OpRewritePattern<PointwiseOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(PointwiseOp op,
                                PatternRewriter &rewriter) const override {
    for (Value input : op.getInputs())
      if (auto producer = producerOnlyFor<Op>(input, op)) {
        const llvm::SetVector<Value> extras = inputsOf(regionOf(producer), op);
        const Location loc =
            rewriter.getFusedLoc({producer.getLoc(), op.getLoc()});
        Op fused = create(rewriter, loc, producer, extras.getArrayRef());
        replace(rewriter, op, regionOf(producer), regionOf(fused), extras);
        return success();
      }
    return failure();
  }

private:
  static RmsNormOp create(OpBuilder &builder, Location loc, RmsNormOp norm,
                          ValueRange extras) {
    return builder.create<RmsNormOp>(
        loc, norm.getResult().getType(), /*forNextNorm=*/TypeRange(),
        norm.getInput(), norm.getWeight(), /*nextNorm=*/Value(), extras,
        norm.getEpsAttr());
  }
  static AllReduceOp create(OpBuilder &builder, Location loc, AllReduceOp sum,
                            ValueRange extras) {
    return builder.create<AllReduceOp>(
        loc, sum.getResult().getType(), /*forNextNorm=*/TypeRange(),
        sum.getInput(), /*nextNorm=*/Value(), extras, sum.getRanksAttr(),
        sum.getTreeAttr());
  }
};

/// Says why `op` is left.
static void explainLeft(PointwiseOp op) {
  auto *shared = llvm::find_if(op->getOpOperands(), [](OpOperand &operand) {
    return isa_and_nonnull<AllReduceOp, MatmulOp, PointwiseOp, RmsNormOp>(
        operand.get().getDefiningOp());
  });
  InFlightDiagnostic remark = remarkNotFused(op.getLoc());
  if (shared == op->getOpOperands().end()) {
    remark << "no operand is made by a product or a norm";
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
    if (auto other = producerOnlyFor<MatmulOp>(extra, product))
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
    patterns.add<FusePointwiseChain, FuseIntoMatmul>(&getContext(),
                                                     /*benefit=*/2);
    patterns.add<FuseIntoRows<RmsNormOp>, FuseIntoRows<AllReduceOp>>(
        &getContext());
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
