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
    if (!product.getNormWeight()) {
      product.getInputMutable().assign(
          rounded(product.getInput(), product.getLoc()));
      return;
    }
    product.getInputMutable().assign(
        normalised(product.getInput(), product.getNormWeight(),
                   product.getEpsAttr(), product.getLoc()));
    product.getNormWeightMutable().clear();
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
      known = builder.create<kernel::RmsNormOp>(loc, inBf16(input), input, gain,
                                                ValueRange(), eps);
    return known;
  }

  /// `input` in bf16: its maker rounds it, if it is one that can and products
  /// alone read it, or a launch of its own does, at `loc`.
  Value rounded(Value input, Location loc) {
    if (input.getType() == inBf16(input))
      return input;
    const bool canRound =
        isa_and_nonnull<kernel::AttentionOp, kernel::MatmulOp,
                        kernel::PointwiseOp, kernel::RmsNormOp>(
            input.getDefiningOp());
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
    Rounding rounding(*target, &getContext());
    for (Operation &op : llvm::make_early_inc_range(func.getBody().front()))
      if (target->roundsInput(&op))
        rounding.run(&op);
  }
};

} // namespace

} // namespace llamac
