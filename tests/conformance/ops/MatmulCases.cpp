//===- MatmulCases.cpp - Products with each prologue and epilogue ---------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/Cases.h"

#include "runtime/formats/FloatBits.h"

#include "absl/strings/str_cat.h"

#include <cmath>
#include <cstring>

namespace llamac::conformance {

namespace {

/// The work of a product besides multiplying.
enum class Epilogue {
  Plain,    ///< out = W x
  Residual, ///< out = W x + residual
  Gated,    ///< out = silu(W1 x) * (W3 x)
};

struct Product {
  Epilogue epilogue;
  bool norm; ///< Whether x is normalised first.
  DataType type;
  int64_t outputs;
  int64_t depth;
  const char *suffix = ""; ///< Suffix of the name, where the rest is not
                           ///< enough.
  int64_t leaves = 1;
};

} // namespace

static const char *epilogueName(Epilogue epilogue) {
  return epilogue == Epilogue::Plain      ? "matmul"
         : epilogue == Epilogue::Residual ? "matmul_residual"
                                          : "matmul_gated";
}

/// The scalars of an epilogue and what it makes of them.
static const char *epilogueRegion(Epilogue epilogue) {
  switch (epilogue) {
  case Epilogue::Plain:
    return "  ^bb0(%a: f32):\n    kernel.yield %a\n";
  case Epilogue::Residual:
    return "  ^bb0(%a: f32, %r: f32):\n    %s = arith.addf %r, %a : f32\n"
           "    kernel.yield %s\n";
  case Epilogue::Gated:
    return "  ^bb0(%a: f32, %b: f32):\n    %s = kernel.silu %a\n"
           "    %p = arith.mulf %s, %b : f32\n    kernel.yield %p\n";
  }
  return nullptr;
}

static std::shared_ptr<Program> productProgram(const Product &product) {
  auto program = std::make_shared<Program>();
  program->name = absl::StrCat(
      epilogueName(product.epilogue), "_", product.norm ? "norm_" : "",
      dataTypeName(product.type).data(), product.suffix);
  program->model = plainModel();
  const bool hasLeaves = product.leaves != 1;
  if (hasLeaves)
    program->model.name = "leaves"; // Some devices do not take these.
  program->inputs = {{"x", product.depth}};
  program->outType = rowsText(product.outputs);
  program->outWidth = product.outputs;
  const bool gated = product.epilogue == Epilogue::Gated;
  const bool residual = product.epilogue == Epilogue::Residual;
  std::string operands = "%x, %w1", types = rowsText(product.depth);
  program->weights = {
      randomMatrix("w1", product.type, product.outputs, product.depth)};
  const std::string weightType = typeText(program->weights[0]);
  absl::StrAppend(&types, ", ", weightType);
  if (gated) {
    program->weights.push_back(
        randomMatrix("w3", product.type, product.outputs, product.depth));
    operands += ", %w3";
    absl::StrAppend(&types, ", ", weightType);
  }
  if (product.norm) {
    program->weights.push_back(
        vectorWeight("gain", normalFloats(product.depth, 21)));
    operands += " norm(%gain)";
    absl::StrAppend(&types, ", ", typeText(program->weights.back()));
  }
  if (residual) {
    program->inputs.push_back({"residual", product.outputs});
    operands += " extras(%residual)";
    absl::StrAppend(&types, ", ", program->outType);
  }
  program->body = absl::StrCat(
      "  %out = kernel.matmul ", operands, " epilogue {\n",
      epilogueRegion(product.epilogue), "  }",
      product.norm ? " {eps = 1.0e-5 : f64}" : "",
      hasLeaves ? absl::StrCat(" {leaves = ", product.leaves, " : i64}") : "",
      " : (", types, ") -> ", program->outType, " loc(\"", program->name,
      "\")");
  return program;
}

/// `x` may be uninitialised; `residual` is not read by other epilogues. Kernels
/// are those for steps of `kernelRows` rows; 0: of as many as x has.
static OpCase productCase(const std::string &name, const Product &product,
                          const std::shared_ptr<const Program> &program,
                          const std::vector<float> &x,
                          const std::vector<float> &residual,
                          Activations activations, int64_t kernelRows = 0) {
  Step step = stepOf(static_cast<int64_t>(x.size()) / product.depth);
  step.inputs["x"] = x;
  if (product.epilogue == Epilogue::Residual)
    step.inputs["residual"] = residual;
  auto expected = [=](const Numerics &numerics) {
    const int64_t count = kernelRows ? kernelRows : step.rows();
    const Matrix w1(program->weight("w1"), numerics, count);
    std::vector<ExpectedRow> rows;
    for (int64_t r = 0; r < step.rows(); ++r) {
      std::vector<double> in = rowOf(x, r, product.depth);
      if (product.norm)
        in = normalised(in, program->weight("gain").values(), normEps);
      ExpectedRow row = w1.times(in, activations);
      if (product.epilogue == Epilogue::Residual)
        for (int64_t n = 0; n < product.outputs; ++n) {
          const double added = residual[r * product.outputs + n];
          row[n].value += added;
          row[n].bound += sumError * std::abs(added);
        }
      if (product.epilogue == Epilogue::Gated) {
        const Matrix w3(program->weight("w3"), numerics, count);
        for (int64_t n = 0; n < product.outputs; ++n)
          row[n] = gated(row[n], w3.times(n, in, activations));
      }
      rows.push_back(std::move(row));
    }
    return rows;
  };
  return oneStep(name, program, step, expected);
}

/// A product of one shape for each count of rows, and with rows that are not
/// finite.
static void addProduct(std::vector<OpCase> &cases, const Product &product,
                       const std::vector<int64_t> &rowCounts) {
  const auto program = productProgram(product);
  const int64_t depth = product.depth;
  // Normalised numbers are on no grid.
  const Activations kind =
      product.norm ? Activations::Normal : Activations::Grid;
  auto inputs = [&](int64_t rows, uint32_t seed) {
    return product.norm ? normalFloats(rows * depth, seed, 3)
                        : gridFloats(rows, depth, seed);
  };
  auto residuals = [&](int64_t rows) {
    return normalFloats(rows * product.outputs, 23);
  };
  for (const int64_t rows : rowCounts)
    cases.push_back(productCase(absl::StrCat(program->name, "_r", rows),
                                product, program, inputs(rows, 31),
                                residuals(rows), kind));
  // Numbers that are on no grid say how exact the rounding is.
  if (!product.norm)
    for (const int64_t rows : {rowCounts.front(), rowCounts.back()}) {
      cases.push_back(
          productCase(absl::StrCat(program->name, "_normal_r", rows), product,
                      program, normalFloats(rows * depth, 37), residuals(rows),
                      Activations::Normal));
      cases.back().isVariant = true;
    }
  // Each by itself: a row that is not finite, among others or alone.
  for (const float bad : {NAN, INFINITY, -INFINITY})
    for (const int64_t rows : rowCounts) {
      std::vector<float> x = inputs(rows, 41);
      x[(rows / 2) * depth + depth - 1] = bad;
      const char *kindOf = std::isnan(bad) ? "nan"
                           : bad > 0       ? "inf"
                                           : "minus_inf";
      cases.push_back(
          productCase(absl::StrCat(program->name, "_", kindOf, "_r", rows),
                      product, program, x, residuals(rows), kind));
      cases.back().isVariant = true;
    }
}

/// A weight, or the scale of a block of weights, that is a NaN shows in its own
/// output, of every row.
static void addNanWeight(std::vector<OpCase> &cases, DataType type) {
  constexpr int64_t depth = 96, outputs = 66;
  const Product product{Epilogue::Plain, false, type, outputs, depth};
  const auto program = productProgram(product);
  program->name += "_nan_weight";
  std::vector<uint8_t> &bytes = program->weights[0].bytes;
  const size_t rowBytes = bytes.size() / outputs;
  uint8_t *first = &bytes[16 * rowBytes];
  uint8_t *last = &bytes[66 * rowBytes - dataTypeInfo(type).blockBytes];
  if (type == DataType::MXFP8) {
    *first = 0xff;   // A scale.
    last[17] = 0x7f; // An element.
  } else if (type == DataType::FP8) {
    first[1] = 0x7e; // A scale.
    last[17] = 0xff; // An element.
  } else {
    // A block of these begins with its scale, in fp16.
    const uint16_t nan =
        type == DataType::BF16 ? f32ToBf16(NAN) : f32ToF16(NAN);
    std::memcpy(first, &nan, 2);
    std::memcpy(last, &nan, 2);
  }
  for (const int64_t rows : {1, 66})
    cases.push_back(productCase(absl::StrCat(program->name, "_r", rows),
                                product, program, gridFloats(rows, depth, 43),
                                {}, Activations::Grid));
}

/// The head: the logits rows, gathered, normalised and multiplied.
static void addHead(std::vector<OpCase> &cases) {
  constexpr int64_t depth = 72;
  const Product product{Epilogue::Plain, true, DataType::BF16, 130, depth};
  const auto program = productProgram(product);
  program->name = "head";
  program->wanted = true;
  std::string &body = program->body;
  body.replace(body.find("kernel.matmul %x"), 16, "kernel.matmul %last");
  body = "  %last = kernel.gather_rows %x, %wanted : (tensor<?x72xf32>, "
         "tensor<?xi32>) -> tensor<?x72xf32> loc(\"last\")\n" +
         body;
  const std::vector<float> x = normalFloats(70 * depth, 47, 3);
  const std::vector<std::vector<int32_t>> lists = {{69}, {0, 1, 2, 33, 68}};
  for (const std::vector<int32_t> &wanted : lists) {
    std::vector<float> rows;
    for (const int32_t row : wanted)
      rows.insert(rows.end(), x.begin() + row * depth,
                  x.begin() + (row + 1) * depth);
    OpCase head =
        productCase(absl::StrCat("head_wants_", wanted.size()), product,
                    program, rows, {}, Activations::Normal, /*kernelRows=*/70);
    head.steps = {stepOf(70)};
    head.steps[0].inputs["x"] = x;
    head.steps[0].wanted = wanted;
    cases.push_back(std::move(head));
  }
}

/// A product whose result another one reads under a norm.
static void addProductBehindNorm(std::vector<OpCase> &cases, DataType type,
                                 int64_t width) {
  const Product product{Epilogue::Residual, false, type, width, 96,
                        "_behind_norm"};
  const auto program = productProgram(product);
  std::vector<OpCase> firsts;
  for (const int64_t rows : {4, 5, 40, 100, 130})
    firsts.push_back(
        productCase(absl::StrCat(program->name, "_r", rows), product, program,
                    gridFloats(rows, product.depth, 51),
                    normalFloats(rows * width, 53, 3), Activations::Grid));
  addBehindNorm(cases, firsts, type);
}

void addMatmulCases(std::vector<OpCase> &cases) {
  using enum Epilogue;
  using enum DataType;
  // Counts that are one, powers of two, none of these, a block and one more.
  const std::vector<int64_t> every = {1, 2, 4, 5, 16, 17, 64, 65, 130, 512};
  const std::vector<int64_t> few = {1, 3, 9, 20, 65, 100}, two = {1, 67};
  // Outputs and depths that no tile divides.
  addProduct(cases, {Plain, false, BF16, 66, 72}, every);
  addProduct(cases, {Plain, false, BF16, 131, 8, "_odd"}, few);
  addProduct(cases, {Plain, false, BF16, 1, 72, "_one"}, two);
  addProduct(cases, {Plain, false, F16, 34, 200}, few);
  addProduct(cases, {Plain, false, F32, 18, 40}, few);
  addProduct(cases, {Plain, false, Q8_0, 130, 96}, few);
  addProduct(cases, {Plain, false, Q4_0, 50, 352}, few);
  addProduct(cases, {Plain, false, Q4_1, 100, 64}, few);
  addProduct(cases, {Plain, false, Q5_0, 20, 96}, two);
  addProduct(cases, {Plain, false, Q5_1, 20, 96}, two);
  addProduct(cases, {Plain, false, Q4_K, 20, 256}, two);
  addProduct(cases, {Plain, false, Q5_K, 20, 256}, two);
  addProduct(cases, {Plain, false, Q6_K, 20, 512}, two);
  addProduct(cases, {Plain, false, Q2_K, 20, 512}, two);
  addProduct(cases, {Plain, false, Q3_K, 20, 256}, two);
  addProduct(cases, {Plain, false, IQ4_NL, 20, 96}, two);
  addProduct(cases, {Plain, false, IQ4_XS, 20, 256}, two);
  addProduct(cases, {Plain, false, MXFP4, 20, 96}, two);
  addProduct(cases, {Plain, false, MXFP8, 130, 96}, few);
  addProduct(cases, {Plain, false, FP8, 50, 352}, few);
  // A row of scales of a multiple of 16 bytes.
  addProduct(cases, {Plain, true, MXFP8, 34, 512, "_deep"}, two);
  for (const DataType type : {BF16, Q8_0, Q4_0, MXFP8}) {
    addProduct(cases, {Residual, false, type, 66, 96}, two);
    addProduct(cases, {Gated, true, type, 66, 96}, few);
  }
  addProduct(cases, {Plain, true, Q4_1, 66, 96}, two);
  addProduct(cases, {Plain, false, BF16, 66, 192, "_leaves8", 8}, few);
  addProduct(cases, {Residual, false, F32, 18, 48, "_leaves2", 2}, two);
  addProduct(cases, {Residual, false, Q8_0, 66, 384, "_leaves4", 4}, few);
  addProduct(cases, {Plain, false, Q4_K, 20, 2048, "_leaves8", 8}, two);
  addProduct(cases, {Gated, false, F16, 34, 72}, two);
  for (const DataType type : {BF16, Q8_0, Q4_0, Q4_1, MXFP8, FP8})
    addNanWeight(cases, type);
  addHead(cases);
  addProductBehindNorm(cases, BF16, 192);
  addProductBehindNorm(cases, Q4_0, 640);
  addProductBehindNorm(cases, MXFP8, 64);
}

} // namespace llamac::conformance
