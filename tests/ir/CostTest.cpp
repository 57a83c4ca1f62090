//===- CostTest.cpp - Bytes and arithmetic of launches --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The figures are worked out by hand from shapes, next to each.
//
//===----------------------------------------------------------------------===//

#include "ir/kernel/Cost.h"
#include "ir/kernel/Kernel.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

#include <string>

namespace llamac::kernel {
namespace {

/// Parses functions of which the first op is measured.
class CostTest : public testing::Test {
protected:
  CostTest() {
    context.loadDialect<KernelDialect, llama::LlamaDialect,
                        mlir::arith::ArithDialect, mlir::func::FuncDialect>();
  }

  /// The cost of the op `text`, which reads the arguments `arguments`.
  Cost cost(const std::string &arguments, const std::string &text,
            const CostStep &step) {
    module = mlir::parseSourceString<mlir::ModuleOp>(
        "func.func @f(" + arguments + ") {\n" + text + "\nreturn\n}", &context);
    if (!module) {
      ADD_FAILURE() << "the test's IR does not parse";
      return {};
    }
    auto func = *module->getOps<mlir::func::FuncOp>().begin();
    return mlir::cast<AnchorOpInterface>(func.getBody().front().front())
        .cost(step);
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

TEST_F(CostTest, BytesOfWeightsFollowTheirFormat) {
  auto bytes = [&](const std::string &type) {
    return weightBytes(mlir::parseType(type, &context));
  };
  EXPECT_EQ(bytes("tensor<64xf32>"), 256);
  EXPECT_EQ(bytes("tensor<3x64xbf16>"), 384);
  // Six blocks of 32 elements in 34, 18 and 20 bytes.
  EXPECT_EQ(bytes("tensor<3x64x!llama.quant<q8_0>>"), 204);
  EXPECT_EQ(bytes("tensor<3x64x!llama.quant<q4_0>>"), 108);
  EXPECT_EQ(bytes("tensor<3x64x!llama.quant<q4_1>>"), 120);
  // Three blocks of 256 elements in 210 bytes.
  EXPECT_EQ(bytes("tensor<3x256x!llama.quant<q6_k>>"), 630);
}

TEST_F(CostTest, ProductsReadTheirWeightsOnceForAllRows) {
  const std::string arguments = "%x: tensor<?x64xf32>, %w: tensor<96x64xbf16>";
  const std::string text =
      "%0 = kernel.matmul %x, %w epilogue {\n^bb0(%a: f32):\nkernel.yield %a\n}"
      " : (tensor<?x64xf32>, tensor<96x64xbf16>) -> tensor<?x96xf32>";
  Cost one = cost(arguments, text, {.rows = 1});
  EXPECT_EQ(one, (Cost{.weightBytes = 96L * 64 * 2,
                       .inputBytes = 64L * 4,
                       .outputBytes = 96L * 4,
                       .flops = 2L * 96 * 64}));
  Cost ten = cost(arguments, text, {.rows = 10});
  EXPECT_EQ(ten.weightBytes, one.weightBytes);
  EXPECT_EQ(ten.flops, 10 * one.flops);
  EXPECT_EQ(ten.bytes(), 12288 + 10L * (256 + 384));
  EXPECT_DOUBLE_EQ(ten.intensity(), 122880.0 / 18688.0);
}

TEST_F(CostTest, EpiloguesExtrasAndNormsOfProductsCount) {
  Cost found =
      cost("%x: tensor<?x64xf32>, %w: tensor<96x64xf16>, %n: tensor<64xf32>, "
           "%r: tensor<?x96xf32>",
           "%0 = kernel.matmul %x, %w, %w norm(%n) extras(%r) epilogue {\n"
           "^bb0(%a: f32, %b: f32, %c: f32):\n"
           "%1 = kernel.silu %a\n%2 = arith.mulf %1, %b : f32\n"
           "%3 = arith.addf %2, %c : f32\nkernel.yield %3\n} "
           "{eps = 1.0e-5 : f64} : (tensor<?x64xf32>, tensor<96x64xf16>, "
           "tensor<96x64xf16>, tensor<64xf32>, tensor<?x96xf32>) -> "
           "tensor<?x96xf32>",
           {.rows = 2});
  // Two weights of 12288 bytes and a norm of 256; for each row two products of
  // 12288 operations, 96 epilogues of 4 + 1 + 1, a norm of 4 * 64 + 3.
  EXPECT_EQ(found, (Cost{.weightBytes = 2L * 12288 + 256,
                         .inputBytes = 2L * (256 + 384),
                         .outputBytes = 2L * 384,
                         .flops = 2L * (2L * 12288 + 96L * 6 + 259)}));
}

TEST_F(CostTest, EmbeddingReadsItsRowsOnly) {
  EXPECT_EQ(cost("%t: tensor<?xi32>, %e: tensor<1000x64x!llama.quant<q8_0>>",
                 "%0 = kernel.embed %t, %e : (tensor<?xi32>, "
                 "tensor<1000x64x!llama.quant<q8_0>>) -> tensor<?x64xf32>",
                 {.rows = 3}),
            (Cost{.weightBytes = 3L * 68, // two blocks of 34 bytes a row
                  .inputBytes = 3L * 4,
                  .outputBytes = 3L * 256}));
}

TEST_F(CostTest, RowWiseOps) {
  EXPECT_EQ(cost("%x: tensor<?x64xf32>, %w: tensor<64xf32>",
                 "%0 = kernel.rms_norm %x, %w {eps = 1.0e-5 : f64} : "
                 "(tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>",
                 {.rows = 5}),
            (Cost{.weightBytes = 256,
                  .inputBytes = 5L * 256,
                  .outputBytes = 5L * 256,
                  .flops = 5L * (4L * 64 + 3)}));
  EXPECT_EQ(cost("%x: tensor<?x64xf32>, %w: tensor<64xf32>",
                 "%0 = kernel.rms_norm %x, %w extras(%x) epilogue {\n"
                 "^bb0(%a: f32, %b: f32):\n"
                 "  %s = arith.addf %a, %b : f32\n  kernel.yield %s\n"
                 "} {eps = 1.0e-5 : f64} : (tensor<?x64xf32>, tensor<64xf32>, "
                 "tensor<?x64xf32>) -> tensor<?x64xf32>",
                 {.rows = 5}),
            (Cost{.weightBytes = 256,
                  .inputBytes = 2L * 5 * 256,
                  .outputBytes = 5L * 256,
                  .flops = 5L * (4L * 64 + 3 + 64)}));
  EXPECT_EQ(cost("%x: tensor<?x64xf32>, %r: tensor<?xi32>",
                 "%0 = kernel.gather_rows %x, %r : (tensor<?x64xf32>, "
                 "tensor<?xi32>) -> tensor<?x64xf32>",
                 {.rows = 5}),
            (Cost{.inputBytes = 5L * (4 + 256), .outputBytes = 5L * 256}));
  EXPECT_EQ(cost("%x: tensor<?x64xf32>",
                 "%0 = kernel.pointwise %x, %x body {\n^bb0(%a: f32, %b: f32):"
                 "\n%1 = kernel.silu %a\n%2 = arith.mulf %1, %b : f32\n"
                 "kernel.yield %2\n} : (tensor<?x64xf32>, tensor<?x64xf32>) -> "
                 "tensor<?x64xf32>",
                 {.rows = 5}),
            (Cost{.inputBytes = 5L * 512,
                  .outputBytes = 5L * 256,
                  .flops = 5L * 64 * 5}));
  EXPECT_EQ(cost("%p: tensor<?xi32>",
                 "%0 = kernel.rope_table %p {frequencies = dense<[1.0, 0.1]> : "
                 "tensor<2xf64>} : (tensor<?xi32>) -> tensor<?x2x2xf32>",
                 {.rows = 5}),
            (Cost{.inputBytes = 5L * 4,
                  .outputBytes = 5L * 16,
                  .flops = 5L * 2 * 3}));
}

const std::string kv = "!llama.kv<heads = 2, size = 8>";
const std::string cacheArguments =
    "%q: tensor<?x32xf32>, %k: tensor<?x16xf32>, %t: tensor<?x4x2xf32>, %kv: " +
    kv + ", %p: tensor<?xi32>, %s: tensor<?xi32>, %m: tensor<?x4x5x24xf32>";

TEST_F(CostTest, RopeTurnsQueriesAndKeysAndAppends) {
  EXPECT_EQ(cost(cacheArguments,
                 "%0, %1 = kernel.rope_append %q, %k, %k, %t into %kv at %p, "
                 "%s : (tensor<?x32xf32>, tensor<?x16xf32>, "
                 "tensor<?x16xf32>, tensor<?x4x2xf32>, " +
                     kv +
                     ", tensor<?xi32>, tensor<?xi32>) -> "
                     "(tensor<?x32xf32>, " +
                     kv + ")",
                 {.rows = 3, .context = 3, .kvTokenBytes = 64}),
            // q 128, k and v 64 each, table 32, two indices.
            (Cost{.inputBytes = 3L * (128 + 64 + 64 + 32 + 8),
                  .outputBytes = 3L * 128,
                  .kvWrittenBytes = 3L * 64,
                  .flops = 3L * 6 * (16 + 8)})); // pairs of q and of k
}

TEST_F(CostTest, NormsOfHeadsCostWhatNormsOfRowsDo) {
  EXPECT_EQ(cost(cacheArguments + ", %n: tensor<8xf32>",
                 "%0, %1 = kernel.rope_append %q, %k, %k, %t into %kv at %p, "
                 "%s norms(%n, %n) {eps = 1.0e-5 : f64} : "
                 "(tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>, "
                 "tensor<?x4x2xf32>, " +
                     kv +
                     ", tensor<?xi32>, tensor<?xi32>, tensor<8xf32>, "
                     "tensor<8xf32>) -> (tensor<?x32xf32>, " +
                     kv + ")",
                 {.rows = 3, .context = 3, .kvTokenBytes = 64}),
            (Cost{.weightBytes = 2L * 32,
                  .inputBytes = 3L * (128 + 64 + 64 + 32 + 8),
                  .outputBytes = 3L * 128,
                  .kvWrittenBytes = 3L * 64,
                  .flops = 3L * (6 * (16 + 8) + (4 * 32 + 3) + (4 * 16 + 3))}));
}

TEST_F(CostTest, QkvProductsAreThreeProducts) {
  EXPECT_EQ(cost("%x: tensor<?x64xf32>, %wq: tensor<32x64xbf16>, "
                 "%wk: tensor<16x64x!llama.quant<q8_0>>, %n: tensor<64xf32>",
                 "%0:3 = kernel.qkv_products %x, %wq, %wk, %wk norm(%n) {eps = "
                 "1.0e-5 : f64} : (tensor<?x64xf32>, tensor<32x64xbf16>, "
                 "tensor<16x64x!llama.quant<q8_0>>, "
                 "tensor<16x64x!llama.quant<q8_0>>, tensor<64xf32>) -> "
                 "(tensor<?x32xf32>, tensor<?x16xf32>, tensor<?x16xf32>)",
                 {.rows = 3}),
            (Cost{.weightBytes = 32L * 128 + 2L * 16 * 68 + 256,
                  .inputBytes = 3L * 256,
                  .outputBytes = 3L * (128 + 64 + 64),
                  .flops = 3L * (2 * 64 * 64 + (4 * 64 + 3))}));
}

TEST_F(CostTest, QkvIsThreeProductsTurnedAndAppended) {
  EXPECT_EQ(
      cost("%x: tensor<?x64xf32>, %wq: tensor<32x64xbf16>, "
           "%wk: tensor<16x64x!llama.quant<q8_0>>, %n: tensor<64xf32>, "
           "%t: tensor<?x4x2xf32>, %kv: " +
               kv + ", %p: tensor<?xi32>, %s: tensor<?xi32>",
           "%0, %1 = kernel.qkv %x, %wq, %wk, %wk norm(%n) rotated by %t into "
           "%kv at %p, %s {eps = 1.0e-5 : f64} : "
           "(tensor<?x64xf32>, tensor<32x64xbf16>, "
           "tensor<16x64x!llama.quant<q8_0>>, "
           "tensor<16x64x!llama.quant<q8_0>>, tensor<64xf32>, "
           "tensor<?x4x2xf32>, " +
               kv + ", tensor<?xi32>, tensor<?xi32>) -> (tensor<?x32xf32>, " +
               kv + ")",
           {.rows = 3, .context = 3, .kvTokenBytes = 64}),
      // 32 rows of 64 bf16, twice 16 rows of two blocks of 34 bytes, the norm.
      (Cost{.weightBytes = 32L * 128 + 2L * 16 * 68 + 256,
            .inputBytes = 3L * (256 + 32 + 8),
            .outputBytes = 3L * 128,
            .kvWrittenBytes = 3L * 64,
            // Products of 64 outputs, pairs of q and k, the norm.
            .flops = 3L * (2L * 64 * 64 + 6L * (16 + 8) + 259)}));
}

TEST_F(CostTest, AttentionReadsTheCacheOnceAndComputesItsCausalHalf) {
  const std::string text =
      "%0 = kernel.attention %q over %kv at %p, %s {scale = "
      "0.5 : f64} : (tensor<?x32xf32>, " +
      kv + ", tensor<?xi32>, tensor<?xi32>) -> tensor<?x32xf32>";
  // Rows attend to 8, 9 and 10 keys: 27, with 4 heads of 4 * 8 + 5.
  EXPECT_EQ(cost(cacheArguments, text,
                 {.rows = 3, .context = 10, .kvTokenBytes = 64}),
            (Cost{.inputBytes = 3L * (128 + 8),
                  .outputBytes = 3L * 128,
                  .kvReadBytes = 10L * 64,
                  .flops = 27L * 4 * 37 + 3L * 32}));
}

TEST_F(CostTest, SplitAttentionTouchesTheSplitsThatItsKeysFill) {
  const std::string config =
      "config = #kernel.attention_config<family = split_kv,"
      " splits = 5, partial = 24>";
  const std::string text =
      "%0 = kernel.attention %q over %kv at %p, %s {scale = "
      "0.5 : f64, " +
      config + "} : (tensor<?x32xf32>, " + kv +
      ", tensor<?xi32>, tensor<?xi32>) -> tensor<?x4x5x24xf32>";
  const std::string merge =
      "%0 = kernel.attention_merge %m at %p {scale = 0.5 : f64, kvHeads = 2 : "
      "i64, " +
      config + "} : (tensor<?x4x5x24xf32>, tensor<?xi32>) -> tensor<?x32xf32>";
  CostStep step = {
      .rows = 1, .context = 30, .splitContext = 100, .kvTokenBytes = 64};
  // Splits of 20 keys: 30 keys fill two, of 4 heads and 96 bytes.
  EXPECT_EQ(cost(cacheArguments, text, step), (Cost{.inputBytes = 128 + 8,
                                                    .outputBytes = 2L * 4 * 96,
                                                    .kvReadBytes = 30L * 64,
                                                    .flops = 30L * 4 * 37}));
  EXPECT_EQ(cost(cacheArguments, merge, step),
            (Cost{.inputBytes = 2L * 4 * 96 + 4,
                  .outputBytes = 128,
                  .flops = 2L * 4 * (2L * 8 + 5) + 32}));
  step.splitContext = 0;
  EXPECT_EQ(cost(cacheArguments, text, step).outputBytes, 5 * 4 * 96);
}

/// The names of the ops of `dialect` for which `isOne` holds.
std::vector<std::string> opsOf(mlir::MLIRContext &context,
                               llvm::StringRef dialect,
                               bool (*isOne)(mlir::RegisteredOperationName)) {
  std::vector<std::string> names;
  for (mlir::RegisteredOperationName name : context.getRegisteredOperations())
    if (name.getDialectNamespace() == dialect && isOne(name))
      names.push_back(name.getStringRef().str());
  llvm::sort(names);
  return names;
}

TEST_F(CostTest, EveryOpOfTheDialectSaysWhatItCosts) {
  EXPECT_EQ(opsOf(context, "kernel",
                  [](mlir::RegisteredOperationName name) {
                    return !name.hasInterface<AnchorOpInterface>() &&
                           !name.hasInterface<ScalarOpInterface>();
                  }),
            (std::vector<std::string>{"kernel.layers", "kernel.return",
                                      "kernel.yield"}));
}

// llama.rope is, but the launch that turns queries appends keys of every row.
TEST_F(CostTest, OpsThatCanBeComputedForSomeRowsSaySo) {
  EXPECT_EQ(
      opsOf(context, "llama",
            [](mlir::RegisteredOperationName name) {
              return name.hasInterface<llama::RowWiseOpInterface>();
            }),
      (std::vector<std::string>{
          "llama.add", "llama.all_gather", "llama.all_reduce",
          "llama.attention", "llama.bias", "llama.gelu_tanh", "llama.linear",
          "llama.merge_heads", "llama.mul", "llama.rms_norm", "llama.scale",
          "llama.silu", "llama.split_heads"}));
}

TEST_F(CostTest, SamplingReadsItsLogitsOnce) {
  EXPECT_EQ(cost("%l: tensor<?x100xf32>, %d: tensor<?x4xi32>",
                 "%0 = kernel.sample %l by %d : (tensor<?x100xf32>, "
                 "tensor<?x4xi32>) -> tensor<?xi32>",
                 {.rows = 3, .context = 3}),
            (Cost{.inputBytes = 3L * (400 + 16),
                  .outputBytes = 3L * 4,
                  .flops = 3L * 100}));
}

TEST_F(CostTest, AResidentStepCostsWhatItsPhasesDoInEveryLayer) {
  const std::string product =
      "kernel.pointwise %h, %v body {\n"
      "^bb0(%a: f32, %b: f32):\n"
      "%s = arith.addf %a, %b : f32\n"
      "kernel.yield %s\n"
      "} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>\n";
  const Cost one = cost("%h: tensor<?x8xf32>, %v: tensor<8xf32>",
                        "%0 = " + product, {.rows = 1, .context = 1});
  EXPECT_EQ(one.flops, 8);
  const Cost step =
      cost("%x: tensor<?x8xf32>, %w: tensor<8xf32>",
           "%0 = kernel.resident %x, %w phases {\n"
           "^bb0(%y: tensor<?x8xf32>, %u: tensor<8xf32>):\n"
           "%z = kernel.layers 3 shared() carried(%y) each(%u, %u, %u) {\n"
           "^bb0(%h: tensor<?x8xf32>, %v: tensor<8xf32>):\n"
           "%n = " +
               product +
               "kernel.return %n : tensor<?x8xf32>\n"
               "} : (tensor<?x8xf32>, tensor<8xf32>, tensor<8xf32>, "
               "tensor<8xf32>) -> tensor<?x8xf32>\n"
               "kernel.return %z : tensor<?x8xf32>\n"
               "} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>",
           {.rows = 1, .context = 1});
  EXPECT_EQ(step, (Cost{.weightBytes = 3 * one.weightBytes,
                        .inputBytes = 3 * one.inputBytes,
                        .outputBytes = 3 * one.outputBytes,
                        .flops = 3 * one.flops}));
}

} // namespace
} // namespace llamac::kernel
