//===- KernelOpsTest.cpp - The mathematics of launches --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each kernel op against the plain double-precision form of its formula.
//
//===----------------------------------------------------------------------===//

#include "ir/kernel/Kernel.h"
#include "runtime/base/Status.h"
#include "runtime/formats/Dequantize.h"
#include "tests/compiler/reference/InterpreterFixture.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <string>

namespace llamac::reference {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class KernelOpsTest : public InterpreterFixture {
protected:
  KernelOpsTest() : InterpreterFixture(23) {
    context.loadDialect<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                        mlir::math::MathDialect, llama::LlamaDialect,
                        kernel::KernelDialect>();
  }

  absl::Status readWeight(const Weight &weight, int64_t first, int64_t count,
                          float *out) override {
    const Tensor &data = weights.at(weight.name);
    std::copy_n(data.data.data() + first * weight.cols, count * weight.cols,
                out);
    std::vector<uint8_t> stored(
        dataTypeBytes(weight.type, count * weight.cols));
    quantizeRow(weight.type, out, count * weight.cols, stored.data());
    dequantizeRow(weight.type, stored.data(), count * weight.cols, out);
    return absl::OkStatus();
  }

  std::map<std::string, Tensor> weights;
};

double silu(double x) { return x / (1 + std::exp(-x)); }

/// Element [n, m] of x times the transpose of w, with RMSNorm by `gains` when
/// there are any.
double product(const Tensor &x, const Tensor &w, int64_t n, int64_t m,
               const Tensor *gains = nullptr, double eps = 0) {
  const int64_t width = x.shape[1];
  double squares = 0, sum = 0;
  for (int64_t k = 0; k < width; ++k) {
    const double a = x.data[n * width + k];
    squares += a * a;
    sum += a * w.data[m * width + k] * (gains ? gains->data[k] : 1.0);
  }
  return gains ? sum / std::sqrt(squares / static_cast<double>(width) + eps)
               : sum;
}

TEST_F(KernelOpsTest, EmbedAndGatherRowsPickRows) {
  weights["tok_embeddings"] = Tensor({3, 2});
  weights["tok_embeddings"].data = {0, 1, 10, 11, 20, 21};
  Tensor x = run("(%t: tensor<?xi32>, %r: tensor<?xi32>) -> tensor<?x2xf32>",
                 "%w = llama.weight \"tok_embeddings\" : tensor<3x2xf32>\n"
                 "%x = kernel.embed %t, %w : (tensor<?xi32>, tensor<3x2xf32>) "
                 "-> tensor<?x2xf32>\n"
                 "%y = kernel.gather_rows %x, %r : (tensor<?x2xf32>, "
                 "tensor<?xi32>) -> tensor<?x2xf32>\n"
                 "return %y : tensor<?x2xf32>",
                 {Indices{2, 0, 1}, Indices{2, 0}});
  EXPECT_THAT(x.shape, ElementsAre(2, 2));
  EXPECT_THAT(x.data, ElementsAre(10, 11, 20, 21));
}

/// The words of `rows` draws, each of a key of its own.
Indices draws(float temperature, int32_t topK, float topP, int64_t rows) {
  Indices words;
  for (int64_t row = 0; row < rows; ++row)
    words.insert(words.end(), {std::bit_cast<int32_t>(temperature), topK,
                               std::bit_cast<int32_t>(topP),
                               static_cast<int32_t>(row * 7919)});
  return words;
}

TEST_F(KernelOpsTest, SampleDrawsByTheWeightsOfTheFirstTokens) {
  // Tokens 2, 1, 3 and 0, in this order, weigh 5, 2, 2 and 1 of 10.
  constexpr int64_t rows = 4000;
  auto sample = [&](const Indices &words, float last = std::log(2.0f)) {
    const auto count = static_cast<int64_t>(words.size()) / 4;
    Tensor logits({count, 4});
    for (int64_t row = 0; row < count; ++row)
      std::ranges::copy(std::array{0.0F, std::log(2.0F), std::log(5.0F), last},
                        logits.data.begin() + row * 4);
    auto results = tryRun("(%l: tensor<?x4xf32>, %d: tensor<?x4xi32>) -> "
                          "tensor<?xi32>",
                          "%t = kernel.sample %l by %d : (tensor<?x4xf32>, "
                          "tensor<?x4xi32>) -> tensor<?xi32>\n"
                          "return %t : tensor<?xi32>",
                          {std::move(logits), words});
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? std::get<Indices>(*results->front()) : Indices();
  };
  // Each token is drawn by its share, within five standard deviations.
  auto expectShares = [&](const Indices &words, std::array<double, 4> weights) {
    const double total = weights[0] + weights[1] + weights[2] + weights[3];
    const Indices tokens = sample(words);
    for (int32_t token = 0; token < 4; ++token) {
      const double share = weights[static_cast<size_t>(token)] / total;
      EXPECT_NEAR(static_cast<double>(std::ranges::count(tokens, token)),
                  share * rows, 5 * std::sqrt(share * (1 - share) * rows))
          << token;
    }
  };
  expectShares(draws(1, 0, 1, rows), {1, 2, 5, 2});
  expectShares(draws(0.5F, 0, 1, rows), {1, 4, 25, 4});
  // The draws are among the first two; the fewest that weigh 8 of 10; those
  // that weigh 5.2 of the first three's 9.
  expectShares(draws(1, 2, 1, rows), {0, 2, 5, 0});
  expectShares(draws(1, 0, 0.8F, rows), {0, 2, 5, 2});
  expectShares(draws(1, 3, 0.58F, rows), {0, 2, 5, 0});
  expectShares(draws(0, 0, 1, rows), {0, 0, 1, 0});
  // A row that is not finite has no token.
  EXPECT_THAT(sample(draws(1, 0, 1, 1), NAN), ElementsAre(-1));
  EXPECT_THAT(sample(draws(0, 0, 1, 1), -INFINITY), ElementsAre(-1));
}

TEST_F(KernelOpsTest, RopeTableHoldsCosineAndSine) {
  Tensor table = run("(%p: tensor<?xi32>) -> tensor<?x2x2xf32>",
                     "%t = kernel.rope_table %p {frequencies = "
                     "dense<[1.0, 0.25]> : tensor<2xf64>} : (tensor<?xi32>) -> "
                     "tensor<?x2x2xf32>\nreturn %t : tensor<?x2x2xf32>",
                     {Indices{3, 1000}});
  std::vector<double> expected;
  for (double position : {3.0, 1000.0})
    for (double frequency : {1.0, 0.25}) {
      expected.push_back(std::cos(position * frequency));
      expected.push_back(std::sin(position * frequency));
    }
  expectNear(table.data, expected, 1e-7);
}

TEST_F(KernelOpsTest, RmsNormDividesByTheRootMeanSquare) {
  weights["norm"] = random({1, 5});
  const Tensor x = random({3, 5});
  Tensor y = run("(%x: tensor<?x5xf32>) -> tensor<?x5xf32>",
                 "%w = llama.weight \"norm\" : tensor<5xf32>\n"
                 "%y = kernel.rms_norm %x, %w {eps = 1.0e-3 : f64} : "
                 "(tensor<?x5xf32>, tensor<5xf32>) -> tensor<?x5xf32>\n"
                 "return %y : tensor<?x5xf32>",
                 {x});
  std::vector<double> expected;
  for (int64_t n = 0; n < 3; ++n) {
    double squares = 0;
    for (int64_t i = 0; i < 5; ++i)
      squares += double{x.data[n * 5 + i]} * x.data[n * 5 + i];
    for (int64_t i = 0; i < 5; ++i)
      expected.push_back(x.data[n * 5 + i] / std::sqrt(squares / 5 + 1e-3) *
                         weights["norm"].data[i]);
  }
  expectNear(y.data, expected, 1e-6);
}

TEST_F(KernelOpsTest, MatmulAddsItsExtrasInTheEpilogue) {
  weights["w"] = random({70, 33});
  const Tensor x = random({3, 33}), residual = random({3, 70});
  Tensor y =
      run("(%x: tensor<?x33xf32>, %r: tensor<?x70xf32>) -> tensor<?x70xf32>",
          "%w = llama.weight \"w\" : tensor<70x33xf32>\n"
          "%y = kernel.matmul %x, %w extras(%r) epilogue {\n"
          "^bb0(%acc: f32, %old: f32):\n"
          "  %0 = arith.subf %old, %acc : f32\n"
          "  %1 = arith.divf %0, %old : f32\n"
          "  %2 = arith.addf %1, %acc : f32\n"
          "  kernel.yield %2\n"
          "} : (tensor<?x33xf32>, tensor<70x33xf32>, tensor<?x70xf32>) -> "
          "tensor<?x70xf32>\n"
          "return %y : tensor<?x70xf32>",
          {x, residual});
  std::vector<double> expected;
  for (int64_t n = 0; n < 3; ++n)
    for (int64_t m = 0; m < 70; ++m) {
      const double acc = product(x, weights["w"], n, m);
      const double old = residual.data[n * 70 + m];
      expected.push_back((old - acc) / old + acc);
    }
  expectNear(y.data, expected, 1e-6);
}

TEST_F(KernelOpsTest, MatmulOfTwoWeightsNormalisesItsInput) {
  weights["w1"] = random({9, 16});
  weights["w3"] = random({9, 16});
  weights["norm"] = random({1, 16});
  const Tensor x = random({4, 16});
  Tensor y = run("(%x: tensor<?x16xf32>) -> tensor<?x9xf32>",
                 "%w1 = llama.weight \"w1\" : tensor<9x16xf32>\n"
                 "%w3 = llama.weight \"w3\" : tensor<9x16xf32>\n"
                 "%n = llama.weight \"norm\" : tensor<16xf32>\n"
                 "%y = kernel.matmul %x, %w1, %w3 norm(%n) epilogue {\n"
                 "^bb0(%gate: f32, %up: f32):\n"
                 "  %0 = kernel.silu %gate\n"
                 "  %1 = arith.mulf %0, %up : f32\n"
                 "  kernel.yield %1\n"
                 "} {eps = 1.0e-5 : f64} : (tensor<?x16xf32>, "
                 "tensor<9x16xf32>, tensor<9x16xf32>, tensor<16xf32>) -> "
                 "tensor<?x9xf32>\n"
                 "return %y : tensor<?x9xf32>",
                 {x});
  std::vector<double> expected;
  for (int64_t n = 0; n < 4; ++n)
    for (int64_t m = 0; m < 9; ++m)
      expected.push_back(
          silu(product(x, weights["w1"], n, m, &weights["norm"], 1e-5)) *
          product(x, weights["w3"], n, m, &weights["norm"], 1e-5));
  expectNear(y.data, expected, 1e-6);
}

TEST_F(KernelOpsTest, PointwiseMapsMoreElementsThanAThreadTakes) {
  const Tensor x = random({100, 97}), y = random({100, 97});
  Tensor z = run("(%x: tensor<?x97xf32>, %y: tensor<?x97xf32>) -> "
                 "tensor<?x97xf32>",
                 "%z = kernel.pointwise %x, %y body {\n"
                 "^bb0(%a: f32, %b: f32):\n"
                 "  %0 = kernel.silu %b\n"
                 "  %1 = arith.subf %a, %0 : f32\n"
                 "  kernel.yield %1\n"
                 "} : (tensor<?x97xf32>, tensor<?x97xf32>) -> "
                 "tensor<?x97xf32>\n"
                 "return %z : tensor<?x97xf32>",
                 {x, y});
  std::vector<double> expected;
  for (size_t i = 0; i < x.data.size(); ++i)
    expected.push_back(x.data[i] - silu(y.data[i]));
  expectNear(z.data, expected, 1e-6);
}

TEST_F(KernelOpsTest, AnUnknownScalarOpIsRefused) {
  auto results = tryRun("(%x: tensor<?x2xf32>) -> tensor<?x2xf32>",
                        "%z = kernel.pointwise %x body {\n"
                        "^bb0(%a: f32):\n"
                        "  %0 = math.sin %a : f32\n"
                        "  kernel.yield %0\n"
                        "} : (tensor<?x2xf32>) -> tensor<?x2xf32>\n"
                        "return %z : tensor<?x2xf32>",
                        {random({1, 2})});
  EXPECT_EQ(exitCode(results.status()), ExitCode::Unsupported);
  EXPECT_THAT(std::string(results.status().message()), HasSubstr("math.sin"));
}

TEST_F(KernelOpsTest, WeightsAreRoundedToTheTypeThatTheIrSays) {
  weights["w"] = Tensor({1, 32});
  for (int i = 0; i < 32; ++i)
    weights["w"].data[i] = static_cast<float>(i) - 8.3f;
  Tensor x({1, 32});
  x.data[1] = 1; // Selects weight 1.
  auto weightOne = [&](const std::string &element) {
    const std::string type = "tensor<1x32x" + element + ">";
    return run("(%x: tensor<?x32xf32>) -> tensor<?x1xf32>",
               "%w = llama.weight \"w\" : " + type +
                   "\n%y = kernel.matmul %x, %w epilogue {\n"
                   "^bb0(%acc: f32):\n  kernel.yield %acc\n"
                   "} : (tensor<?x32xf32>, " +
                   type + ") -> tensor<?x1xf32>\nreturn %y : tensor<?x1xf32>",
               {x})
        .data;
  };
  EXPECT_THAT(weightOne("f32"), ElementsAre(1 - 8.3f));
  // -7.3 lies between the bf16 numbers -7.3125 and -7.28125.
  EXPECT_THAT(weightOne("bf16"), ElementsAre(-7.3125f));
  // The largest magnitude is 22.7: a step of 22.7 / 127, as fp16.
  const float step = 0.1787109375f;
  EXPECT_THAT(weightOne("!llama.quant<q8_0>"), ElementsAre(-41 * step));
}

//===----------------------------------------------------------------------===//
// The cache
//===----------------------------------------------------------------------===//

/// One head of keys and values for two query heads of size 2; the second step
/// reads what the first appended.
class KernelAttentionTest : public KernelOpsTest {
protected:
  static constexpr double scale = 0.7;

  /// The result of attention over the rows of one sequence, and what it is in
  /// double precision.
  void runAndCompare(const std::string &config, const std::string &partialType,
                     const std::string &merge) {
    const int64_t rows = 5;
    const Tensor q = random({rows, 4}), k = random({rows, 2}),
                 v = random({rows, 2});
    const std::string resultType =
        merge.empty() ? "tensor<?x4xf32>" : partialType;
    const std::string body =
        "%t = kernel.rope_table %p {frequencies = dense<0.5> : tensor<1xf64>} "
        ": (tensor<?xi32>) -> tensor<?x1x2xf32>\n"
        "%rotated, %new = kernel.rope_append %q, %k, %v, %t into %kv at %p, %s "
        ": (tensor<?x4xf32>, tensor<?x2xf32>, "
        "tensor<?x2xf32>, tensor<?x1x2xf32>, !kv, tensor<?xi32>, "
        "tensor<?xi32>) -> (tensor<?x4xf32>, !kv)\n"
        "%o = kernel.attention %rotated over %new at %p, %s {" +
        config +
        "scale = 0.7 : f64} : (tensor<?x4xf32>, !kv, "
        "tensor<?xi32>, tensor<?xi32>) -> " +
        resultType + "\n" + merge + "return " + (merge.empty() ? "%o" : "%m") +
        ", %new : tensor<?x4xf32>, !kv";
    std::vector<float> got;
    KvState state(1, 2);
    for (auto [first, last] : {std::pair<int64_t, int64_t>{0, 3}, {3, rows}}) {
      Indices positions, sequences;
      for (int64_t n = first; n < last; ++n) {
        positions.push_back(static_cast<int32_t>(n));
        sequences.push_back(6);
      }
      auto results = tryRun(
          "(%q: tensor<?x4xf32>, %k: tensor<?x2xf32>, %v: tensor<?x2xf32>, "
          "%kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) -> "
          "(tensor<?x4xf32>, !kv)",
          body,
          {part(q, first, last), part(k, first, last), part(v, first, last),
           state, positions, sequences});
      ASSERT_TRUE(results.ok()) << results.status().ToString();
      const Tensor &out = std::get<Tensor>(*results->at(0));
      got.insert(got.end(), out.data.begin(), out.data.end());
      state = std::get<KvState>(*results->at(1));
    }
    EXPECT_EQ(state.length(6), rows);
    expectNear(got, expected(q, k, v), 1e-6);
  }

  static Tensor part(const Tensor &x, int64_t first, int64_t last) {
    const int64_t width = x.shape[1];
    Tensor rows({last - first, width});
    std::copy_n(x.data.begin() + first * width, (last - first) * width,
                rows.data.begin());
    return rows;
  }

  /// Rotated scores depend on the distance of the positions alone: q and k are
  /// complex numbers, and rotating both by their positions' angles multiplies
  /// the conjugate product by that of the difference.
  static std::vector<double> expected(const Tensor &q, const Tensor &k,
                                      const Tensor &v) {
    std::vector<double> result;
    for (int64_t n = 0; n < q.shape[0]; ++n)
      for (int64_t head = 0; head < 2; ++head) {
        const double a = q.data[n * 4 + head * 2];
        const double b = q.data[n * 4 + head * 2 + 1];
        double sum = 0, first = 0, second = 0;
        for (int64_t t = 0; t <= n; ++t) {
          const double c = k.data[t * 2], d = k.data[t * 2 + 1];
          const double angle = 0.5 * static_cast<double>(n - t);
          const double score = (a * c + b * d) * std::cos(angle) +
                               (a * d - b * c) * std::sin(angle);
          const double e = std::exp(scale * score);
          sum += e;
          first += e * v.data[t * 2];
          second += e * v.data[t * 2 + 1];
        }
        result.push_back(first / sum);
        result.push_back(second / sum);
      }
    return result;
  }
};

TEST_F(KernelAttentionTest, WholeAttentionReadsWhatRopeAppendWrote) {
  runAndCompare("", "", "");
}

TEST_F(KernelAttentionTest, QkvTurnsAndAppendsTheProductsOfTheNormedRows) {
  weights["norm"] = random({1, 3});
  weights["wq"] = random({4, 3});
  weights["wk"] = random({2, 3});
  weights["wv"] = random({2, 3});
  const int64_t rows = 5;
  const Tensor x = random({rows, 3});
  auto product = [&](const std::string &name) {
    const Tensor &w = weights[name];
    Tensor result({rows, w.shape[0]});
    for (int64_t n = 0; n < rows; ++n) {
      double squares = 0;
      for (int64_t i = 0; i < 3; ++i)
        squares += double{x.data[n * 3 + i]} * x.data[n * 3 + i];
      for (int64_t j = 0; j < w.shape[0]; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < 3; ++i)
          sum += double{x.data[n * 3 + i]} / std::sqrt(squares / 3 + 1e-3) *
                 weights["norm"].data[i] * w.data[j * 3 + i];
        result.data[n * w.shape[0] + j] = static_cast<float>(sum);
      }
    }
    return result;
  };
  Indices positions, sequences;
  for (int64_t n = 0; n < rows; ++n) {
    positions.push_back(static_cast<int32_t>(n));
    sequences.push_back(6);
  }
  auto results = tryRun(
      "(%x: tensor<?x3xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) "
      "-> (tensor<?x4xf32>, !kv)",
      "%n = llama.weight \"norm\" : tensor<3xf32>\n"
      "%wq = llama.weight \"wq\" : tensor<4x3xf32>\n"
      "%wk = llama.weight \"wk\" : tensor<2x3xf32>\n"
      "%wv = llama.weight \"wv\" : tensor<2x3xf32>\n"
      "%t = kernel.rope_table %p {frequencies = dense<0.5> : tensor<1xf64>} "
      ": (tensor<?xi32>) -> tensor<?x1x2xf32>\n"
      "%rotated, %new = kernel.qkv %x, %wq, %wk, %wv norm(%n) rotated by %t "
      "into %kv at %p, %s {eps = 1.0e-3 : f64} : "
      "(tensor<?x3xf32>, tensor<4x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, "
      "tensor<3xf32>, tensor<?x1x2xf32>, !kv, tensor<?xi32>, tensor<?xi32>) "
      "-> (tensor<?x4xf32>, !kv)\n"
      "%o = kernel.attention %rotated over %new at %p, %s "
      "{scale = 0.7 : f64} : (tensor<?x4xf32>, !kv, "
      "tensor<?xi32>, tensor<?xi32>) -> tensor<?x4xf32>\n"
      "return %o, %new : tensor<?x4xf32>, !kv",
      {x, KvState(1, 2), positions, sequences});
  ASSERT_TRUE(results.ok()) << results.status().ToString();
  EXPECT_EQ(std::get<KvState>(*results->at(1)).length(6), rows);
  expectNear(std::get<Tensor>(*results->at(0)).data,
             expected(product("wq"), product("wk"), product("wv")), 1e-6);
}

TEST_F(KernelAttentionTest, SplitAttentionIsItsMergedResult) {
  const std::string config =
      "config = #kernel.attention_config<family = split_kv, "
      "splits = 3, partial = 4>, ";
  runAndCompare(config, "tensor<?x2x3x4xf32>",
                "%m = kernel.attention_merge %o at %p {" + config +
                    "kvHeads = 1 : i64, scale = 0.7 : f64} : "
                    "(tensor<?x2x3x4xf32>, tensor<?xi32>) -> "
                    "tensor<?x4xf32>\n");
}

} // namespace
} // namespace llamac::reference
