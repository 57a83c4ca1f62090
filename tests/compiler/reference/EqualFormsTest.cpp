//===- EqualFormsTest.cpp - Canonical and fused forms mean the same -------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Graphs run as they are written and again after canonicalize, cse and
// fuse-attention: the numbers are the same, and the ops are those expected.
//
//===----------------------------------------------------------------------===//

#include "ir/llama/Llama.h"
#include "passes/Passes.h"
#include "tests/compiler/reference/InterpreterFixture.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace llamac::reference {
namespace {

class EqualFormsTest : public InterpreterFixture {
protected:
  EqualFormsTest() : InterpreterFixture(29) {
    context.loadDialect<mlir::func::FuncDialect, llama::LlamaDialect>();
  }

  absl::Status readWeight(const Weight &, int64_t, int64_t, float *) override {
    return absl::InternalError("no weights here");
  }

  void prepare(mlir::ModuleOp parsed) override {
    if (!canonical)
      return;
    mlir::PassManager pm(&context, mlir::ModuleOp::getOperationName());
    pm.addNestedPass<mlir::func::FuncOp>(mlir::createCanonicalizerPass());
    pm.addNestedPass<mlir::func::FuncOp>(mlir::createCSEPass());
    pm.addNestedPass<mlir::func::FuncOp>(createFuseAttention());
    ASSERT_TRUE(succeeded(pm.run(parsed)));
  }

  /// Runs `body` in both forms. Expects equal results, and `scales` scales and
  /// `fused` attentions in the second.
  void expectSame(const std::string &signature, const std::string &body,
                  const std::vector<Value> &arguments, int scales, int fused) {
    canonical = false;
    const Tensor written = run(signature, body, arguments);
    canonical = true;
    const Tensor other = run(signature, body, arguments);
    EXPECT_EQ(written.shape, other.shape);
    expectNear(other.data, {written.data.begin(), written.data.end()}, 1e-6);
    EXPECT_EQ(count<llama::ScaleOp>(), scales);
    EXPECT_EQ(count<llama::AttentionOp>(), fused);
  }

  template <typename Op> int count() {
    int ops = 0;
    module->walk([&](Op) { ++ops; });
    return ops;
  }

  bool canonical = false;
};

TEST_F(EqualFormsTest, ScalesOfScales) {
  expectSame("(%x: tensor<?x4xf32>) -> tensor<?x4xf32>",
             "%0 = llama.scale %x by 0.3 : (tensor<?x4xf32>) -> "
             "tensor<?x4xf32>\n"
             "%1 = llama.scale %0 by 7.0 : (tensor<?x4xf32>) -> "
             "tensor<?x4xf32>\n"
             "return %1 : tensor<?x4xf32>",
             {random({3, 4})}, 1, 0);
}

TEST_F(EqualFormsTest, ScalesBehindLinearOps) {
  const std::string q = "tensor<?x4x6xf32>", k = "tensor<?x2x6xf32>";
  expectSame(
      "(%x: tensor<?x24xf32>, %k: " + k +
          ", %t: tensor<?x3x2xf32>, %r: tensor<?xi32>)"
          " -> tensor<4x?x?xf32>",
      "%0 = llama.scale %x by 0.3 : (tensor<?x24xf32>)"
      " -> tensor<?x24xf32>\n"
      "%1 = llama.split_heads %0 heads = 4 : (tensor<?x24xf32>) -> " +
          q + "\n%2 = llama.scale %t by 0.7 : (tensor<?x3x2xf32>)" +
          " -> tensor<?x3x2xf32>\n%3 = llama.rope %1, %2 : (" + q +
          ", tensor<?x3x2xf32>) -> " + q +
          "\n%4 = llama.gather_rows %3, %r : (" + q + ", tensor<?xi32>) -> " +
          q + "\n%5 = llama.scale %k by 1.9 : (" + k + ") -> " + k +
          "\n%6 = llama.attention_scores %4, %5 : (" + q + ", " + k +
          ") -> tensor<4x?x?xf32>\n" + "return %6 : tensor<4x?x?xf32>",
      {random({3, 24}), random({5, 2, 6}), random({3, 3, 2}), Indices{2, 0}}, 1,
      0);
}

/// Attention of two query heads over the fixture's cache, each written in
/// another way: `between` stands between the read of the
/// cache and the softmax of `%masked`.
class AttentionForms : public EqualFormsTest {
protected:
  void expectFused(const std::string &between) {
    const std::string heads = "tensor<?x1x2xf32>";
    KvState past(1, 2);
    const Tensor keys = random({3, 1, 2}), values = random({3, 1, 2});
    past.append(keys.data.data(), values.data.data(), {0, 1, 0}, {4, 4, 7});
    expectSame(
        "(%q: tensor<?x2x2xf32>, %k: " + heads + ", %v: " + heads +
            ", %p: tensor<?xi32>, %s: tensor<?xi32>, %kv: !kv)"
            " -> tensor<?x2x2xf32>",
        "%kp, %ks = llama.cache_index %kv, %p, %s : (!kv, tensor<?xi32>, "
        "tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)\n"
        "%mask = llama.causal_mask %p, %s, %kp, %ks : (tensor<?xi32>, "
        "tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>\n"
        "%kv1 = llama.cache_append %kv, %k, %v, %p, %s : (!kv, " +
            heads + ", " + heads +
            ", tensor<?xi32>, tensor<?xi32>) -> !kv\n"
            "%keys, %values = llama.cache_read %kv1 : (!kv) -> (" +
            heads + ", " + heads + ")\n" + between +
            "%prob = llama.softmax %masked : (tensor<2x?x?xf32>) -> "
            "tensor<2x?x?xf32>\n"
            "%o = llama.attention_values %prob, %values : "
            "(tensor<2x?x?xf32>, " +
            heads +
            ") -> tensor<?x2x2xf32>\n"
            "return %o : tensor<?x2x2xf32>",
        {random({3, 2, 2}), random({3, 1, 2}), random({3, 1, 2}),
         Indices{2, 3, 1}, Indices{4, 4, 7}, past},
        0, 1);
  }

  static std::string scale(const std::string &result, const std::string &x,
                           const std::string &factor, const std::string &type) {
    return result + " = llama.scale " + x + " by " + factor + " : (" + type +
           ") -> " + type + "\n";
  }
  static std::string scores(const std::string &result, const std::string &q,
                            const std::string &k) {
    return result + " = llama.attention_scores " + q + ", " + k +
           " : (tensor<?x2x2xf32>, tensor<?x1x2xf32>) -> tensor<2x?x?xf32>\n";
  }
  static std::string mask(const std::string &result, const std::string &x) {
    return result + " = llama.add_mask " + x +
           ", %mask : (tensor<2x?x?xf32>, tensor<?x?xf32>) -> "
           "tensor<2x?x?xf32>\n";
  }
  const std::string all = "tensor<2x?x?xf32>";
};

TEST_F(AttentionForms, WithoutAScale) {
  expectFused(scores("%0", "%q", "%keys") + mask("%masked", "%0"));
}

TEST_F(AttentionForms, ScaledQueryKeysAndScores) {
  expectFused(scale("%0", "%q", "0.3", "tensor<?x2x2xf32>") +
              scale("%1", "%keys", "2.5", "tensor<?x1x2xf32>") +
              scores("%2", "%0", "%1") + scale("%3", "%2", "0.7", all) +
              mask("%masked", "%3"));
}

TEST_F(AttentionForms, ScaledAfterTheMask) {
  expectFused(scores("%0", "%q", "%keys") + mask("%1", "%0") +
              scale("%masked", "%1", "0.7", all));
}

TEST_F(AttentionForms, MaskedTwice) {
  expectFused(scores("%0", "%q", "%keys") + mask("%1", "%0") +
              scale("%2", "%1", "0.7", all) + mask("%masked", "%2"));
}

} // namespace
} // namespace llamac::reference
