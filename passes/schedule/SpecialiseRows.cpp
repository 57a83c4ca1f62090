//===- SpecialiseRows.cpp - One function for each range of rows -----------===//
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

#define GEN_PASS_DEF_SPECIALISEROWS
#include "passes/Passes.h.inc"

namespace {

struct SpecialiseRows : impl::SpecialiseRowsBase<SpecialiseRows> {
  using SpecialiseRowsBase::SpecialiseRowsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (!step) {
      module.emitError("no function @step to specialise by rows");
      return signalPassFailure();
    }
    if (failed(checkOneBlock(step)))
      return signalPassFailure();
    const std::unique_ptr<kernel::Target> target = kernel::targetOf(module);
    if (!target)
      return signalPassFailure();
    OpBuilder builder(step);
    for (const kernel::RowBucket &bucket : target->rowBuckets()) {
      auto clone = cast<func::FuncOp>(builder.clone(*step));
      clone.setName(bucket.name);
      clone->setAttr("llamac.max_rows",
                     builder.getI64IntegerAttr(bucket.maxRows));
      clone->setAttr("llamac.max_logits_rows",
                     builder.getI64IntegerAttr(bucket.maxLogitsRows));
      if (bucket.decodeOnly)
        clone->setAttr("llamac.decode_only", builder.getUnitAttr());
      // The only row of a step is its logits row.
      if (bucket.maxRows == 1)
        clone.walk([](kernel::GatherRowsOp gather) {
          gather.replaceAllUsesWith(gather.getInput());
          gather.erase();
        });
      if (rows > 0 && bucket.maxRows >= rows && !bucket.decodeOnly)
        break;
    }
    step.erase();
  }
};

} // namespace

} // namespace llamac
