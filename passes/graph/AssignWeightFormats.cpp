//===- AssignWeightFormats.cpp - The element type of each weight ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace llamac {

#define GEN_PASS_DEF_ASSIGNWEIGHTFORMATS
#include "passes/Passes.h.inc"

namespace {

struct AssignWeightFormats
    : impl::AssignWeightFormatsBase<AssignWeightFormats> {
  using AssignWeightFormatsBase::AssignWeightFormatsBase;

  void runOnOperation() override {
    Type matrixElement;
    if (const WeightRounding *rounding = findWeightRounding(format)) {
      matrixElement = llama::elementTypeOf(getContext(), rounding->type);
    } else if (format != "keep") {
      getOperation().emitError() << "weight format is '" << format
                                 << "', expected " << weightOptionNames();
      return signalPassFailure();
    }
    Type f32 = Float32Type::get(&getContext());
    getOperation().walk([&](llama::WeightOp weight) {
      auto type = cast<RankedTensorType>(weight.getType());
      Type element = type.getRank() == 1 ? f32 : matrixElement;
      if (!element || !fits(weight, type, element))
        return;
      weight.getResult().setType(type.clone(element));
    });
  }

  /// True when rows of `type` are whole blocks of `element`.
  static bool fits(llama::WeightOp weight, RankedTensorType type,
                   Type element) {
    auto quant = dyn_cast<llama::QuantType>(element);
    const int64_t cols = type.getShape().back();
    if (!quant || cols % quant.getBlockElements() == 0)
      return true;
    emitRemark(weight.getLoc())
        << "keeps " << llama::elementTypeName(type.getElementType())
        << ": its rows of " << cols << " elements are not whole blocks of "
        << quant.getBlockElements();
    return false;
  }
};

} // namespace

} // namespace llamac
