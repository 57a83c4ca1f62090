//===- AppendSampling.cpp - Steps sample the tokens that follow -----------===//
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

#define GEN_PASS_DEF_APPENDSAMPLING
#include "passes/Passes.h.inc"

namespace {

struct AppendSampling : impl::AppendSamplingBase<AppendSampling> {
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (failed(checkOneBlock(func)))
      return signalPassFailure();
    const FunctionType type = func.getFunctionType();
    if (type.getNumResults() < 2 ||
        !isa<llama::KVType>(type.getResults().back())) {
      func.emitError() << "expected a step that gives logits and caches, got "
                       << type;
      return signalPassFailure();
    }
    // The tokens of a draft head are not those of its target, for which a
    // sampler is made: the host samples.
    if (llvm::any_of(func.getArguments(), [](BlockArgument argument) {
          const llama::StepRoleAttr role = llama::roleOf(argument);
          return role && role.getValue() == llama::StepRole::Features;
        }))
      return;
    Operation *end = func.getBody().front().getTerminator();
    OpBuilder builder(end);
    const Location loc = NameLoc::get(builder.getStringAttr("tokens"));
    const Type i32 = builder.getI32Type();
    auto paramsType = RankedTensorType::get({ShapedType::kDynamic, 4}, i32);
    auto tokensType = RankedTensorType::get({ShapedType::kDynamic}, i32);
    const auto role = llama::StepRoleAttr::get(
        func.getContext(), llama::StepRole::SamplingParams, std::nullopt);
    func.insertArgument(type.getNumInputs(), paramsType,
                        builder.getDictionaryAttr(builder.getNamedAttr(
                            llama::LlamaDialect::getRoleAttrName(), role)),
                        loc);
    func.insertResult(type.getNumResults(), tokensType, {});
    auto sample = builder.create<kernel::SampleOp>(
        loc, tokensType, end->getOperand(0), func.getArguments().back());
    end->insertOperands(end->getNumOperands(), sample.getResult());
  }
};

} // namespace

} // namespace llamac
