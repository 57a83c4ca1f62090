//===- OpsTest.cpp - The mathematics of each op ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each op against the plain double-precision form of its formula.
//
//===----------------------------------------------------------------------===//

#include "ir/llama/Llama.h"
#include "tests/compiler/reference/InterpreterFixture.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>

namespace llamac::reference {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr float inf = std::numeric_limits<float>::infinity();

class OpsTest : public InterpreterFixture {
protected:
  OpsTest() : InterpreterFixture(17) {
    context.loadDialect<mlir::arith::ArithDialect, mlir::func::FuncDialect,
                        llama::LlamaDialect>();
  }

  absl::Status readWeight(const Weight &weight, int64_t first, int64_t count,
                          float *out) override {
    const std::vector<float> &data = weights.at(weight.name);
    std::copy_n(data.data() + first * weightWidth, count * weightWidth, out);
    return absl::OkStatus();
  }

  std::map<std::string, std::vector<float>> weights;
  int64_t weightWidth = 0;
};

TEST_F(OpsTest, ConstantsHaveTheirValues) {
  auto results =
      tryRun("() -> (tensor<2x1xf32>, tensor<3xi32>)",
             "%0 = arith.constant dense<[[1.5], [-2.0]]> : tensor<2x1xf32>\n"
             "%1 = arith.constant dense<[7, 8, 9]> : tensor<3xi32>\n"
             "return %0, %1 : tensor<2x1xf32>, tensor<3xi32>",
             {});
  ASSERT_TRUE(results.ok());
  EXPECT_THAT(std::get<Tensor>(*results->at(0)).data, ElementsAre(1.5f, -2.0f));
  EXPECT_THAT(std::get<Tensor>(*results->at(0)).shape, ElementsAre(2, 1));
  EXPECT_THAT(std::get<Indices>(*results->at(1)), ElementsAre(7, 8, 9));
}

TEST_F(OpsTest, AnOpWithoutAValueForEachResultIsAnError) {
  // The generic form is read without the verifier, which knows better.
  const mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
  auto parsed = mlir::parseSourceString<mlir::ModuleOp>(
      "func.func @f(%x: tensor<1x2xf32>) -> tensor<1x2xf32> {\n"
      "%y:2 = \"llama.silu\"(%x) : (tensor<1x2xf32>) -> "
      "(tensor<1x2xf32>, tensor<1x2xf32>)\n"
      "return %y#1 : tensor<1x2xf32>\n}",
      config);
  ASSERT_TRUE(parsed);
  const auto interpreter =
      Interpreter::create(parsed->lookupSymbol<mlir::func::FuncOp>("f"));
  ASSERT_TRUE(interpreter.ok()) << interpreter.status();
  WeightStore store({}, 0);
  Parallel parallel(1);
  const auto results = interpreter->run(
      {std::make_shared<Value>(Tensor({1, 2}))}, store, parallel);
  EXPECT_THAT(std::string(results.status().message()),
              HasSubstr("expected 2 results, got 1"));
}

TEST_F(OpsTest, EmbeddingPicksTheRowsOfTheTokens) {
  weights["tok_embeddings"] = {0, 1, 10, 11, 20, 21};
  weightWidth = 2;
  Tensor x = run("(%t: tensor<?xi32>) -> tensor<?x2xf32>",
                 "%w = llama.weight \"tok_embeddings\" : tensor<3x2xf32>\n"
                 "%x = llama.embedding %t, %w : (tensor<?xi32>, "
                 "tensor<3x2xf32>) -> tensor<?x2xf32>\n"
                 "return %x : tensor<?x2xf32>",
                 {Indices{2, 0, 2}});
  EXPECT_THAT(x.shape, ElementsAre(3, 2));
  EXPECT_THAT(x.data, ElementsAre(20, 21, 0, 1, 20, 21));
}

TEST_F(OpsTest, EmbeddingRefusesATokenOutsideTheTable) {
  weights["tok_embeddings"] = {0, 1, 10, 11, 20, 21};
  weightWidth = 2;
  auto result =
      tryRun("(%t: tensor<?xi32>) -> tensor<?x2xf32>",
             "%w = llama.weight \"tok_embeddings\" : tensor<3x2xf32>\n"
             "%x = llama.embedding %t, %w : (tensor<?xi32>, tensor<3x2xf32>) "
             "-> tensor<?x2xf32>\n"
             "return %x : tensor<?x2xf32>",
             {Indices{2, 3}});
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("row 1: expected a token in [0, 3), got 3"));
}

TEST_F(OpsTest, GatherRowsPicksRows) {
  Tensor x({3, 2});
  x.data = {0, 1, 10, 11, 20, 21};
  Tensor y = run("(%x: tensor<?x2xf32>, %r: tensor<?xi32>) -> tensor<?x2xf32>",
                 "%y = llama.gather_rows %x, %r : (tensor<?x2xf32>, "
                 "tensor<?xi32>) -> tensor<?x2xf32>\n"
                 "return %y : tensor<?x2xf32>",
                 {x, Indices{1, 1, 0}});
  EXPECT_THAT(y.shape, ElementsAre(3, 2));
  EXPECT_THAT(y.data, ElementsAre(10, 11, 10, 11, 0, 1));
}

TEST_F(OpsTest, GatherRowsKeepsHeads) {
  Tensor x({2, 2, 2});
  x.data = {0, 1, 2, 3, 10, 11, 12, 13};
  Tensor y =
      run("(%x: tensor<?x2x2xf32>, %r: tensor<?xi32>) -> tensor<?x2x2xf32>",
          "%y = llama.gather_rows %x, %r : (tensor<?x2x2xf32>, "
          "tensor<?xi32>) -> tensor<?x2x2xf32>\n"
          "return %y : tensor<?x2x2xf32>",
          {x, Indices{1}});
  EXPECT_THAT(y.shape, ElementsAre(1, 2, 2));
  EXPECT_THAT(y.data, ElementsAre(10, 11, 12, 13));
}

TEST_F(OpsTest, GatherRowsPicksIndices) {
  weights["tok_embeddings"] = {0, 1, 10, 11, 20, 21};
  weightWidth = 2;
  Tensor y =
      run("(%t: tensor<?xi32>, %r: tensor<?xi32>) -> tensor<?x2xf32>",
          "%g = llama.gather_rows %t, %r : (tensor<?xi32>, tensor<?xi32>) "
          "-> tensor<?xi32>\n"
          "%w = llama.weight \"tok_embeddings\" : tensor<3x2xf32>\n"
          "%x = llama.embedding %g, %w : (tensor<?xi32>, tensor<3x2xf32>) "
          "-> tensor<?x2xf32>\n"
          "return %x : tensor<?x2xf32>",
          {Indices{2, 0, 1}, Indices{2, 0}});
  EXPECT_THAT(y.data, ElementsAre(10, 11, 20, 21));
}

TEST_F(OpsTest, GatherRowsRefusesARowOutside) {
  auto result =
      tryRun("(%x: tensor<?x2xf32>, %r: tensor<?xi32>) -> tensor<?x2xf32>",
             "%y = llama.gather_rows %x, %r : (tensor<?x2xf32>, tensor<?xi32>) "
             "-> tensor<?x2xf32>\n"
             "return %y : tensor<?x2xf32>",
             {random({3, 2}), Indices{0, -1}});
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("logits row 1: expected a row in [0, 3), got -1"));
}

TEST_F(OpsTest, RmsNormDividesByTheRootMeanSquare) {
  Tensor x = random({3, 50});
  weights["norm"] = random({50}).data;
  weightWidth = 50;
  std::vector<double> expected;
  for (int n = 0; n < 3; ++n) {
    double squares = 0;
    for (int i = 0; i < 50; ++i)
      squares += double{x.data[n * 50 + i]} * x.data[n * 50 + i];
    for (int i = 0; i < 50; ++i)
      expected.push_back(x.data[n * 50 + i] / std::sqrt(squares / 50 + 0.25) *
                         weights["norm"][i]);
  }
  Tensor y = run("(%x: tensor<?x50xf32>) -> tensor<?x50xf32>",
                 "%w = llama.weight \"norm\" : tensor<50xf32>\n"
                 "%y = llama.rms_norm %x, %w eps = 0.25 : (tensor<?x50xf32>, "
                 "tensor<50xf32>) -> tensor<?x50xf32>\n"
                 "return %y : tensor<?x50xf32>",
                 {x});
  expectNear(y.data, expected, 1e-7);
}

/// Products of all sizes that tiles, vectors and threads divide unevenly.
class LinearTest : public OpsTest,
                   public testing::WithParamInterface<std::array<int64_t, 3>> {
};

TEST_P(LinearTest, MultipliesRowsWithTheTransposedWeight) {
  auto [rows, outs, ins] = GetParam();
  Tensor x = random({rows, ins});
  weights["w"] = random({outs, ins}).data;
  weightWidth = ins;
  std::vector<double> expected;
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t m = 0; m < outs; ++m) {
      double sum = 0;
      for (int64_t k = 0; k < ins; ++k)
        sum += double{x.data[n * ins + k]} * weights["w"][m * ins + k];
      expected.push_back(sum);
    }
  std::string w =
      "tensor<" + std::to_string(outs) + "x" + std::to_string(ins) + "xf32>";
  std::string in = "tensor<?x" + std::to_string(ins) + "xf32>";
  std::string out = "tensor<?x" + std::to_string(outs) + "xf32>";
  Tensor y =
      run("(%x: " + in + ") -> " + out,
          "%w = llama.weight \"w\" : " + w + "\n%y = llama.linear %x, %w : (" +
              in + ", " + w + ") -> " + out + "\nreturn %y : " + out,
          {x});
  EXPECT_THAT(y.shape, ElementsAre(rows, outs));
  expectNear(y.data, expected, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Sizes, LinearTest,
                         testing::Values(std::array<int64_t, 3>{1, 1, 1},
                                         std::array<int64_t, 3>{1, 33, 7},
                                         std::array<int64_t, 3>{3, 5, 16},
                                         std::array<int64_t, 3>{5, 70, 100},
                                         std::array<int64_t, 3>{66, 9, 40},
                                         std::array<int64_t, 3>{130, 129, 1100},
                                         std::array<int64_t, 3>{2, 3, 20011}));

TEST_F(OpsTest, SplitAndMergeKeepTheOrderOfElements) {
  Tensor x = random({2, 6});
  auto results = tryRun(
      "(%x: tensor<?x6xf32>) -> (tensor<?x3x2xf32>, tensor<?x6xf32>)",
      "%0 = llama.split_heads %x heads = 3 : (tensor<?x6xf32>) -> "
      "tensor<?x3x2xf32>\n"
      "%1 = llama.merge_heads %0 : (tensor<?x3x2xf32>) -> tensor<?x6xf32>\n"
      "return %0, %1 : tensor<?x3x2xf32>, tensor<?x6xf32>",
      {x});
  ASSERT_TRUE(results.ok()) << results.status().ToString();
  const auto &split = std::get<Tensor>(*results->at(0));
  const auto &merged = std::get<Tensor>(*results->at(1));
  EXPECT_THAT(split.shape, ElementsAre(2, 3, 2));
  EXPECT_EQ(split.data, x.data);
  EXPECT_THAT(merged.shape, ElementsAre(2, 6));
  EXPECT_EQ(merged.data, x.data);
}

TEST_F(OpsTest, ElementWiseOpsFollowTheirFormulas) {
  Tensor x = random({5, 7}), y = random({5, 7});
  x.data[0] = -200, x.data[1] = 200;
  struct {
    std::string op;
    std::function<double(double, double)> formula;
  } cases[] = {
      {"llama.add %x, %y : (tensor<?x7xf32>, tensor<?x7xf32>)",
       [](double a, double b) { return a + b; }},
      {"llama.mul %x, %y : (tensor<?x7xf32>, tensor<?x7xf32>)",
       [](double a, double b) { return a * b; }},
      {"llama.silu %y : (tensor<?x7xf32>)",
       [](double, double b) { return b / (1 + std::exp(-b)); }},
      {"llama.silu %x : (tensor<?x7xf32>)",
       [](double a, double) { return a / (1 + std::exp(-a)); }},
      {"llama.scale %x by 0.3 : (tensor<?x7xf32>)",
       [](double a, double) { return a * 0.3; }},
  };
  for (const auto &[op, formula] : cases) {
    SCOPED_TRACE(op);
    std::vector<double> expected;
    for (size_t i = 0; i < x.data.size(); ++i)
      expected.push_back(formula(x.data[i], y.data[i]));
    Tensor z =
        run("(%x: tensor<?x7xf32>, %y: tensor<?x7xf32>) -> tensor<?x7xf32>",
            "%z = " + op + " -> tensor<?x7xf32>\nreturn %z : tensor<?x7xf32>",
            {x, y});
    expectNear(z.data, expected, 1e-7);
  }
}

TEST_F(OpsTest, AnOpThatTakesOneValueTwiceLeavesItWhole) {
  Tensor x({1, 2});
  x.data = {3, 5};
  Tensor y = run("(%x: tensor<?x2xf32>) -> tensor<?x2xf32>",
                 "%0 = llama.mul %x, %x : (tensor<?x2xf32>, tensor<?x2xf32>) "
                 "-> tensor<?x2xf32>\n"
                 "%1 = llama.add %x, %0 : (tensor<?x2xf32>, tensor<?x2xf32>) "
                 "-> tensor<?x2xf32>\n"
                 "return %1 : tensor<?x2xf32>",
                 {x});
  EXPECT_THAT(y.data, ElementsAre(12, 30));
}

TEST_F(OpsTest, RopeRotatesNeighboursByTheirAngles) {
  Tensor x = random({3, 2, 4});
  const int32_t positions[] = {0, 1, 100000};
  const double frequencies[] = {1.0, 0.00056234132519034911};
  std::vector<double> expected;
  for (int n = 0; n < 3; ++n)
    for (int j = 0; j < 2; ++j)
      for (int i = 0; i < 2; ++i) {
        double angle = positions[n] * frequencies[i];
        double a = x.data[n * 8 + j * 4 + 2 * i];
        double b = x.data[n * 8 + j * 4 + 2 * i + 1];
        expected.push_back(a * std::cos(angle) - b * std::sin(angle));
        expected.push_back(a * std::sin(angle) + b * std::cos(angle));
      }
  Tensor y =
      run("(%x: tensor<?x2x4xf32>, %p: tensor<?xi32>) -> tensor<?x2x4xf32>",
          "%t = llama.rope_table %p frequencies = dense<[1.0, "
          "0.00056234132519034911]> : tensor<2xf64> : (tensor<?xi32>) -> "
          "tensor<?x2x2xf32>\n"
          "%y = llama.rope %x, %t : (tensor<?x2x4xf32>, tensor<?x2x2xf32>) -> "
          "tensor<?x2x4xf32>\n"
          "return %y : tensor<?x2x4xf32>",
          {x, Indices{0, 1, 100000}});
  expectNear(y.data, expected, 2e-7);
}

constexpr char appendAndRead[] =
    "%kp, %ks = llama.cache_index %kv, %p, %s : (!kv, tensor<?xi32>, "
    "tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)\n"
    "%0 = llama.cache_append %kv, %k, %v, %p, %s : (!kv, "
    "tensor<?x1x2xf32>, tensor<?x1x2xf32>, tensor<?xi32>, tensor<?xi32>) -> "
    "!kv\n"
    "%1, %2 = llama.cache_read %0 : (!kv) -> (tensor<?x1x2xf32>, "
    "tensor<?x1x2xf32>)\n"
    "return %1, %2, %kp, %ks, %0 : tensor<?x1x2xf32>, tensor<?x1x2xf32>, "
    "tensor<?xi32>, tensor<?xi32>, !kv";
constexpr char appendSignature[] =
    "(%k: tensor<?x1x2xf32>, %v: tensor<?x1x2xf32>, %p: tensor<?xi32>, %s: "
    "tensor<?xi32>, %kv: !kv) -> "
    "(tensor<?x1x2xf32>, tensor<?x1x2xf32>, tensor<?xi32>, tensor<?xi32>, !kv)";

TEST_F(OpsTest, AReadGivesRowsInTheOrderOfTheIndex) {
  Tensor k({3, 1, 2}), v({3, 1, 2});
  k.data = {70, 71, 40, 41, 42, 43};
  v.data = {170, 171, 140, 141, 142, 143};
  auto results =
      tryRun(appendSignature, appendAndRead,
             {k, v, Indices{0, 0, 1}, Indices{7, 4, 4}, KvState(1, 2)});
  ASSERT_TRUE(results.ok()) << results.status().ToString();
  EXPECT_THAT(std::get<Tensor>(*results->at(0)).data,
              ElementsAre(40, 41, 42, 43, 70, 71));
  EXPECT_THAT(std::get<Tensor>(*results->at(1)).data,
              ElementsAre(140, 141, 142, 143, 170, 171));
  EXPECT_THAT(std::get<Indices>(*results->at(2)), ElementsAre(0, 1, 0));
  EXPECT_THAT(std::get<Indices>(*results->at(3)), ElementsAre(4, 4, 7));
}

TEST_F(OpsTest, AnAppendReplacesAPositionThatIsThere) {
  const float first[] = {1, 2, 3, 4, 5, 6};
  KvState kv(1, 2);
  kv.append(first, first, {0, 1, 2}, {0, 0, 0});
  Tensor k({1, 1, 2});
  k.data = {30, 40};
  auto results = tryRun(appendSignature, appendAndRead,
                        {k, k, Indices{1}, Indices{0}, kv});
  ASSERT_TRUE(results.ok()) << results.status().ToString();
  EXPECT_THAT(std::get<Tensor>(*results->at(0)).data,
              ElementsAre(1, 2, 30, 40, 5, 6));
  EXPECT_THAT(std::get<Indices>(*results->at(2)), ElementsAre(0, 1, 2));
  // The state that went in is a value of its own.
  EXPECT_THAT(kv.rows().at(0).keys, ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(OpsTest, AnAppendRefusesHolesAndRepeatedRows) {
  Tensor k({2, 1, 2});
  auto hole = tryRun(appendSignature, appendAndRead,
                     {k, k, Indices{0, 2}, Indices{5, 5}, KvState(1, 2)});
  EXPECT_THAT(
      std::string(hole.status().message()),
      HasSubstr("row 1: expected a position in [0, 1] of sequence 5, got 2"));
  auto twice = tryRun(appendSignature, appendAndRead,
                      {k, k, Indices{0, 0}, Indices{5, 5}, KvState(1, 2)});
  EXPECT_THAT(
      std::string(twice.status().message()),
      HasSubstr("row 1: position 0 of sequence 5 occurs twice in one step"));
}

TEST_F(OpsTest, TheMaskHidesOtherSequencesAndTheFuture) {
  Tensor mask =
      run("(%p: tensor<?xi32>, %s: tensor<?xi32>, %kp: tensor<?xi32>, %ks: "
          "tensor<?xi32>) -> tensor<?x?xf32>",
          "%m = llama.causal_mask %p, %s, %kp, %ks : (tensor<?xi32>, "
          "tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>\n"
          "return %m : tensor<?x?xf32>",
          {Indices{1, 0}, Indices{4, 7}, Indices{0, 1, 2, 0, 1},
           Indices{4, 4, 4, 7, 7}});
  EXPECT_THAT(mask.shape, ElementsAre(2, 5));
  EXPECT_THAT(mask.data,
              ElementsAre(0, 0, -inf, -inf, -inf, -inf, -inf, -inf, 0, -inf));
}

TEST_F(OpsTest, ScoresAndValuesShareHeadsInGroups) {
  const int64_t N = 3, T = 5, H = 6, G = 2, h = 8;
  Tensor q = random({N, H, h}), k = random({T, G, h}), p = random({H, N, T});
  std::vector<double> scores, values;
  for (int64_t j = 0; j < H; ++j)
    for (int64_t n = 0; n < N; ++n)
      for (int64_t t = 0; t < T; ++t) {
        double sum = 0;
        for (int64_t i = 0; i < h; ++i)
          sum += double{q.data[(n * H + j) * h + i]} *
                 k.data[(t * G + j / 3) * h + i];
        scores.push_back(sum);
      }
  for (int64_t n = 0; n < N; ++n)
    for (int64_t j = 0; j < H; ++j)
      for (int64_t i = 0; i < h; ++i) {
        double sum = 0;
        for (int64_t t = 0; t < T; ++t)
          sum += double{p.data[(j * N + n) * T + t]} *
                 k.data[(t * G + j / 3) * h + i];
        values.push_back(sum);
      }
  Tensor s =
      run("(%q: tensor<?x6x8xf32>, %k: tensor<?x2x8xf32>) -> tensor<6x?x?xf32>",
          "%s = llama.attention_scores %q, %k : (tensor<?x6x8xf32>, "
          "tensor<?x2x8xf32>) -> tensor<6x?x?xf32>\n"
          "return %s : tensor<6x?x?xf32>",
          {q, k});
  EXPECT_THAT(s.shape, ElementsAre(H, N, T));
  expectNear(s.data, scores, 1e-6);
  Tensor o =
      run("(%p: tensor<6x?x?xf32>, %v: tensor<?x2x8xf32>) -> tensor<?x6x8xf32>",
          "%o = llama.attention_values %p, %v : (tensor<6x?x?xf32>, "
          "tensor<?x2x8xf32>) -> tensor<?x6x8xf32>\n"
          "return %o : tensor<?x6x8xf32>",
          {p, k});
  EXPECT_THAT(o.shape, ElementsAre(N, H, h));
  expectNear(o.data, values, 1e-7);
}

TEST_F(OpsTest, HiddenScoresAndValuesDoNotMatterWhateverTheyAre) {
  Tensor scores({1, 1, 2}), mask({1, 2}), values({2, 1, 8});
  scores.data = {1, std::nanf("")};
  mask.data = {0, -inf};
  for (int i = 0; i < 8; ++i) {
    values.data[i] = static_cast<float>(i);
    values.data[8 + i] = std::nanf("");
  }
  Tensor o =
      run("(%s: tensor<1x?x?xf32>, %m: tensor<?x?xf32>, %v: tensor<?x1x8xf32>) "
          "-> tensor<?x1x8xf32>",
          "%0 = llama.add_mask %s, %m : (tensor<1x?x?xf32>, tensor<?x?xf32>) "
          "-> tensor<1x?x?xf32>\n"
          "%1 = llama.softmax %0 : (tensor<1x?x?xf32>) -> tensor<1x?x?xf32>\n"
          "%2 = llama.attention_values %1, %v : (tensor<1x?x?xf32>, "
          "tensor<?x1x8xf32>) -> tensor<?x1x8xf32>\n"
          "return %2 : tensor<?x1x8xf32>",
          {scores, mask, values});
  EXPECT_THAT(o.data, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(OpsTest, SoftmaxSumsToOneForScoresOfAnySize) {
  Tensor s({1, 3, 4});
  s.data = {1, 2, 3, 4, 1e30f, 0, -inf, -1e30f, -500, -501, -502, -503};
  std::vector<double> expected;
  for (int n : {0, 2}) {
    double maximum = n == 0 ? 4 : -500, sum = 0;
    for (int t = 0; t < 4; ++t)
      sum += std::exp(s.data[n * 4 + t] - maximum);
    for (int t = 0; t < 4; ++t)
      expected.push_back(std::exp(s.data[n * 4 + t] - maximum) / sum);
    if (n == 0)
      expected.insert(expected.end(), {1, 0, 0, 0});
  }
  Tensor p =
      run("(%s: tensor<1x?x?xf32>) -> tensor<1x?x?xf32>",
          "%p = llama.softmax %s : (tensor<1x?x?xf32>) -> tensor<1x?x?xf32>\n"
          "return %p : tensor<1x?x?xf32>",
          {s});
  expectNear(p.data, expected, 1e-7);
}

TEST_F(OpsTest, FusedAttentionEqualsItsStepsBitForBit) {
  constexpr char signature[] =
      "(%q: tensor<?x3x2xf32>, %kv: !kv, %p: tensor<?xi32>, %s: tensor<?xi32>) "
      "-> tensor<?x3x2xf32>";
  KvState kv(1, 2);
  std::vector<int32_t> positions, sequences;
  for (int32_t sequence : {3, 1})
    for (int32_t position = 0; position < 20; ++position) {
      positions.push_back(position);
      sequences.push_back(sequence);
    }
  Tensor k = random({40, 1, 2}), v = random({40, 1, 2});
  kv.append(k.data.data(), v.data.data(), positions, sequences);
  Tensor q = random({4, 3, 2});
  Indices p{19, 4, 0, 19}, s{1, 3, 1, 3};
  Tensor fused = run(signature,
                     "%o = llama.attention %q, %kv, %p, %s scale = "
                     "0.70710678118654757 : (tensor<?x3x2xf32>, !kv, "
                     "tensor<?xi32>, tensor<?xi32>) -> tensor<?x3x2xf32>\n"
                     "return %o : tensor<?x3x2xf32>",
                     {q, kv, p, s});
  Tensor steps =
      run(signature,
          "%kp, %ks = llama.cache_index %kv, %p, %s : (!kv, tensor<?xi32>, "
          "tensor<?xi32>) -> (tensor<?xi32>, tensor<?xi32>)\n"
          "%m = llama.causal_mask %p, %s, %kp, %ks : (tensor<?xi32>, "
          "tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?xf32>\n"
          "%k, %v = llama.cache_read %kv : (!kv) -> "
          "(tensor<?x1x2xf32>, tensor<?x1x2xf32>)\n"
          "%0 = llama.attention_scores %q, %k : (tensor<?x3x2xf32>, "
          "tensor<?x1x2xf32>) -> tensor<3x?x?xf32>\n"
          "%1 = llama.scale %0 by 0.70710678118654757 : (tensor<3x?x?xf32>) -> "
          "tensor<3x?x?xf32>\n"
          "%2 = llama.add_mask %1, %m : (tensor<3x?x?xf32>, tensor<?x?xf32>) "
          "-> tensor<3x?x?xf32>\n"
          "%3 = llama.softmax %2 : (tensor<3x?x?xf32>) -> tensor<3x?x?xf32>\n"
          "%o = llama.attention_values %3, %v : (tensor<3x?x?xf32>, "
          "tensor<?x1x2xf32>) -> tensor<?x3x2xf32>\n"
          "return %o : tensor<?x3x2xf32>",
          {q, kv, p, s});
  EXPECT_EQ(fused.data, steps.data);
  EXPECT_EQ(fused.shape, steps.shape);
}

TEST_F(OpsTest, FusedAttentionNeedsTheStepsRows) {
  auto result = tryRun("(%q: tensor<?x3x2xf32>, %kv: !kv, %p: tensor<?xi32>) "
                       "-> tensor<?x3x2xf32>",
                       "%o = llama.attention %q, %kv, %p, %p scale = "
                       "1.0 : (tensor<?x3x2xf32>, !kv, tensor<?xi32>, "
                       "tensor<?xi32>) -> tensor<?x3x2xf32>\n"
                       "return %o : tensor<?x3x2xf32>",
                       {random({1, 3, 2}), KvState(1, 2), Indices{0}});
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("reads a state without the step's own rows"));
}

TEST_F(OpsTest, ErrorsNameTheOpAndItsLocation) {
  auto result =
      tryRun("(%x: tensor<?x2xf32>, %r: tensor<?xi32>) -> tensor<?x2xf32>",
             "%y = llama.gather_rows %x, %r : (tensor<?x2xf32>, tensor<?xi32>) "
             "-> tensor<?x2xf32> loc(\"wanted\")\n"
             "return %y : tensor<?x2xf32>",
             {random({3, 2}), Indices{3}});
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("llama.gather_rows at \"wanted\": "));
}

TEST_F(OpsTest, AnUnknownOpIsRefusedBeforeAnythingRuns) {
  auto result = tryRun("(%x: f32) -> f32",
                       "%y = arith.addf %x, %x : f32\nreturn %y : f32", {});
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("arith.addf"));
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("the reference does not know this op"));
}

TEST_F(OpsTest, ArgumentsOfAnotherShapeAreRefused) {
  auto result = tryRun("(%x: tensor<?x2xf32>) -> tensor<?x2xf32>",
                       "return %x : tensor<?x2xf32>", {random({3, 4})});
  EXPECT_THAT(std::string(result.status().message()),
              HasSubstr("type tensor<?x2xf32>, got the shape 3x4"));
}

} // namespace
} // namespace llamac::reference
