//===- RoundInputs.cpp - Inputs of tensor cores come in bf16 --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Goes through the products from the first to the last. What several of them
// read is rounded once, where the first of them stands.
//
// First, ops whose kernels can share a norm do: the one that makes the rows
// stores them in bf16 too, times the norm's weights, and the squares that the
// product needs which reads them, and no launch stands between the two.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_ROUNDINPUTS
#include "passes/Passes.h.inc"

namespace {

/// Whether `product` normalises its input with the norm's weights.
template <typename Op> static bool ownsNorm(Op product) {
  return product.getNorm() &&
         cast<RankedTensorType>(product.getNorm().getType()).getRank() == 1;
}

class NormSharing {
public:
  NormSharing(const kernel::Target &target, MLIRContext *context)
      : target(target), builder(context) {}

  /// Lets `product` share the norm of its input, if it has one, with the op
  /// that makes it, if both can.
  void run(Operation *product) {
    if (!target.takesSquares(product))
      return;
    llvm::TypeSwitch<Operation *>(product)
        .Case<kernel::MatmulOp, kernel::QkvOp, kernel::QkvProductsOp>(
            [&](auto op) { share(op); });
  }

private:
  template <typename Op> void share(Op product) {
    auto maker = dyn_cast_if_present<kernel::NextNormOpInterface>(
        product.getInput().getDefiningOp());
    if (!maker || !ownsNorm(product) ||
        product.getInput() != maker->getResult(0) ||
        !isKnownBefore(product.getNorm(), maker) ||
        !getElementTypeOrSelf(product.getInput()).isF32())
      return;
    const auto rounded = RankedTensorType::get(
        cast<RankedTensorType>(product.getInput().getType()).getShape(),
        builder.getBF16Type(), target.inputEncoding(product));
    if (!maker.getNextNorm()) {
      const int64_t parts = target.givesSquares(maker);
      if (parts == 0)
        return;
      maker = withNextNorm(maker, product.getNorm(), rounded, parts);
    }
    if (maker.getNextNorm() != product.getNorm() ||
        maker.getRounded().getType() != rounded)
      return; // It has another one.
    product.getInputMutable().assign(maker.getRounded());
    product.getNormMutable().assign(maker.getSquares());
  }

  /// Whether `value` is a weight, or is there at `op`.
  static bool isKnownBefore(Value value, Operation *op) {
    Operation *maker = value.getDefiningOp();
    return !maker || isa<llama::WeightOp>(maker) || maker->isBeforeInBlock(op);
  }

  /// Puts an op in the place of `maker` that gives the norm by `gain` its input
  /// in the type `rounded`, and the squares of `parts` parts of each row.
  kernel::NextNormOpInterface withNextNorm(kernel::NextNormOpInterface maker,
                                           Value gain, RankedTensorType rounded,
                                           int64_t parts) {
    // A weight may stand behind it.
    if (Operation *weight = gain.getDefiningOp();
        weight && maker->isBeforeInBlock(weight))
      weight->moveBefore(maker);
    const auto squares = RankedTensorType::get({rounded.getDimSize(0), parts},
                                               builder.getF32Type());
    OperationState state(
        maker->getLoc(), maker->getName(), maker->getOperands(),
        {maker->getResult(0).getType(), rounded, squares}, maker->getAttrs());
    state.addRegion()->takeBody(maker->getRegion(0));
    builder.setInsertionPoint(maker);
    auto sharing = cast<kernel::NextNormOpInterface>(builder.create(state));
    sharing.getNextNormMutable().assign(gain);
    maker->getResult(0).replaceAllUsesWith(sharing->getResult(0));
    maker->erase();
    return sharing;
  }

  const kernel::Target &target;
  OpBuilder builder;
};

class Rounding {
public:
  Rounding(const kernel::Target &target, MLIRContext *context)
      : target(target), builder(context) {}

  /// Gives `product` its input in bf16.
  void run(Operation *product) {
    builder.setInsertionPoint(product);
    encoding = target.inputEncoding(product);
    llvm::TypeSwitch<Operation *>(product)
        .Case<kernel::MatmulOp, kernel::QkvOp, kernel::QkvProductsOp>(
            [&](auto op) { round(op); });
  }

private:
  template <typename Op> void round(Op product) {
    if (product.getNorm() && !ownsNorm(product))
      return; // It shares one.
    if (!product.getNorm()) {
      product.getInputMutable().assign(
          rounded(product.getInput(), product.getLoc()));
      return;
    }
    product.getInputMutable().assign(
        normalised(product.getInput(), product.getNorm(), product.getEpsAttr(),
                   product.getLoc()));
    product.getNormMutable().clear();
    product.removeEpsAttr();
  }

  /// The type of `value` in bf16, as the product reads it.
  Type inBf16(Value value) {
    return RankedTensorType::get(
        cast<RankedTensorType>(value.getType()).getShape(),
        builder.getBF16Type(), encoding);
  }

  /// `input` normalised, in bf16.
  Value normalised(Value input, Value gain, FloatAttr eps, Location loc) {
    Value &known = norms[{{input, gain}, {eps, encoding}}];
    if (!known)
      known = builder
                  .create<kernel::RmsNormOp>(
                      loc, inBf16(input), /*forNextNorm=*/TypeRange(), input,
                      gain, /*nextNorm=*/Value(), ValueRange(), eps)
                  .getResult();
    return known;
  }

  /// `input` in bf16: its maker rounds it, if it is one that can and products
  /// alone read it, or a launch of its own does, at `loc`.
  Value rounded(Value input, Location loc) {
    if (input.getType() == inBf16(input))
      return input;
    Operation *maker = input.getDefiningOp();
    const bool canRound = maker && maker->getNumResults() == 1 &&
                          isa<kernel::AttentionOp, kernel::MatmulOp,
                              kernel::PointwiseOp, kernel::RmsNormOp>(maker);
    if (canRound && llvm::all_of(input.getUses(), [&](OpOperand &use) {
          return use.getOperandNumber() == 0 &&
                 target.roundsInput(use.getOwner()) &&
                 target.inputEncoding(use.getOwner()) == encoding &&
                 !hasNorm(use.getOwner());
        })) {
      input.setType(inBf16(input));
      return input;
    }
    Value &known = copies[{input, encoding}];
    if (!known)
      known = copyOf(input, loc);
    return known;
  }

  static bool hasNorm(Operation *product) { return product->hasAttr("eps"); }

  /// A launch that rounds `input`.
  Value copyOf(Value input, Location loc) {
    auto copy = builder.create<kernel::PointwiseOp>(loc, inBf16(input), input);
    OpBuilder::InsertionGuard guard(builder);
    Block *body =
        builder.createBlock(&copy.getBody(), {}, {builder.getF32Type()}, {loc});
    builder.create<kernel::YieldOp>(loc, body->getArgument(0));
    return copy;
  }

  const kernel::Target &target;
  OpBuilder builder;
  Attribute encoding; ///< The product at hand has its input so.
  llvm::DenseMap<
      std::pair<std::pair<Value, Value>, std::pair<Attribute, Attribute>>,
      Value>
      norms;
  llvm::DenseMap<std::pair<Value, Attribute>, Value> copies;
};

struct RoundInputs : impl::RoundInputsBase<RoundInputs> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (failed(checkOneBlock(func)))
      return signalPassFailure();
    const std::unique_ptr<kernel::Target> target = kernel::targetOf(func);
    if (!target)
      return signalPassFailure();
    NormSharing sharing(*target, &getContext());
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front()))
      sharing.run(&op);
    Rounding rounding(*target, &getContext());
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front()))
      if (target->roundsInput(&op))
        rounding.run(&op);
  }
};

} // namespace

} // namespace llamac
