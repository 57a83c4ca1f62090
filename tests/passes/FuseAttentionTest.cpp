//===- FuseAttentionTest.cpp - The time that fuse-attention takes ---------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Builders.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>

using namespace mlir;

namespace llamac {
namespace {

/// Builds functions of `layers` caches, each with its append, in which `reads`
/// attentions read the last, and fuses them.
class FuseAttentionTest : public testing::Test {
protected:
  FuseAttentionTest() : builder(&context) {
    context.disableMultithreading();
    context.loadDialect<func::FuncDialect, llama::LlamaDialect>();
  }

  OwningOpRef<ModuleOp> build(int64_t layers, int reads) {
    const Location loc = builder.getUnknownLoc();
    const Type indices =
        RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
    const Type heads = RankedTensorType::get({ShapedType::kDynamic, 1, 8},
                                             builder.getF32Type());
    const Type kv = llama::KVType::get(&context, 1, 8);
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    builder.setInsertionPointToEnd(module->getBody());
    SmallVector<Type> inputs = {heads, indices, indices};
    inputs.append(layers, kv);
    auto func = builder.create<func::FuncOp>(
        loc, "step", builder.getFunctionType(inputs, {heads, kv}));
    Block *body = func.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    Value x = body->getArgument(0), positions = body->getArgument(1),
          sequences = body->getArgument(2), cache;
    auto index = builder.create<llama::CacheIndexOp>(loc, body->getArgument(3),
                                                     positions, sequences);
    Value mask = builder.create<llama::CausalMaskOp>(
        loc, positions, sequences, index.getKeyPositions(),
        index.getKeySequences(), /*window=*/IntegerAttr());
    for (Value before : body->getArguments().drop_front(3))
      cache = builder.create<llama::CacheAppendOp>(loc, before, x, x, positions,
                                                   sequences);
    for (int i = 0; i < reads; ++i) {
      auto cached = builder.create<llama::CacheReadOp>(loc, cache);
      Value scores =
          builder.create<llama::AttentionScoresOp>(loc, x, cached.getKeys());
      scores = builder.create<llama::AddMaskOp>(loc, scores, mask);
      scores = builder.create<llama::SoftmaxOp>(loc, scores);
      x = builder.create<llama::AttentionValuesOp>(loc, scores,
                                                   cached.getValues());
    }
    builder.create<func::ReturnOp>(loc, ValueRange{x, cache});
    return module;
  }

  /// Processor time, which other programs change little; the least of three
  /// runs.
  double secondsFor(int64_t layers, int reads) {
    double best = std::numeric_limits<double>::max();
    for (int run = 0; run < 3; ++run) {
      OwningOpRef<ModuleOp> module = build(layers, reads);
      PassManager pm(&context);
      pm.enableVerifier(false);
      pm.addNestedPass<func::FuncOp>(createFuseAttention());
      const std::clock_t start = std::clock();
      EXPECT_TRUE(succeeded(pm.run(*module)));
      best = std::min(best, double(std::clock() - start) / CLOCKS_PER_SEC);
      int left = 0;
      module->walk([&](llama::AttentionValuesOp) { ++left; });
      EXPECT_EQ(left, 0);
    }
    return best;
  }

  MLIRContext context;
  OpBuilder builder;
};

// A walk over every append for each read would take 90 million steps. The sum
// has the cost of each op, with caches as full as they are then.
TEST_F(FuseAttentionTest, TimeIsLinearInLayersAndReads) {
  const double layers = secondsFor(30000, 30), reads = secondsFor(30, 3000);
  EXPECT_LT(secondsFor(30000, 3000), 2 * (layers + reads));
}

} // namespace
} // namespace llamac
