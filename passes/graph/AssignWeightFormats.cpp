//===- AssignWeightFormats.cpp - The element type of each weight ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

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
    std::unique_ptr<kernel::Target> target;
    auto module = getOperation()->getParentOfType<ModuleOp>();
    if (module && module->hasAttr(kernel::KernelDialect::getTargetAttrName())) {
      target = kernel::targetOf(module);
      if (!target)
        return signalPassFailure();
    }
    getOperation().walk([&](llama::WeightOp weight) {
      auto type = cast<RankedTensorType>(weight.getType());
      Type element = type.getRank() == 1 ? f32 : matrixElement;
      if (element && fits(weight, type, element))
        weight.getResult().setType(type.clone(element));
      if (target && type.getRank() != 1)
        checkKernels(weight, *target);
    });
    for (auto &[what, weights] : warnings) {
      InFlightDiagnostic warning = emitWarning(weights.front().getLoc())
                                   << what;
      if (const size_t others = weights.size() - 1)
        warning << "; " << others << " more "
                << (others == 1 ? "matrix" : "matrices") << " likewise";
    }
    warnings.clear();
  }

  /// True when rows of `type` are whole blocks of `element`.
  bool fits(llama::WeightOp weight, RankedTensorType type, Type element) {
    auto quant = dyn_cast<llama::QuantType>(element);
    const int64_t cols = type.getShape().back();
    if (!quant || cols % quant.getBlockElements() == 0)
      return true;
    warnings[llvm::formatv("keeps {0}: its rows of {1} elements are not whole "
                           "blocks of {2}",
                           llama::elementTypeName(type.getElementType()), cols,
                           quant.getBlockElements())]
        .push_back(weight);
    return false;
  }

  void checkKernels(llama::WeightOp weight, const kernel::Target &target) {
    Type element = cast<RankedTensorType>(weight.getType()).getElementType();
    if (Type read = target.weightElement(element); read != element)
      warnings[llvm::formatv(
                   "{0} is read as {1}: target {2} has no kernels for {0}",
                   llama::elementTypeName(element),
                   llama::elementTypeName(read), target.name())]
          .push_back(weight);
  }

  /// The weights of each warning, which is given once for all of them.
  std::map<std::string, SmallVector<llama::WeightOp>> warnings;
};

} // namespace

} // namespace llamac
