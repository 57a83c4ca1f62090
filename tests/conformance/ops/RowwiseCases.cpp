//===- RowwiseCases.cpp - Embedding, norm and other row-wise ops ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/Cases.h"

#include "runtime/formats/FloatBits.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

namespace llamac::conformance {

static std::shared_ptr<Program> programOf(const std::string &name,
                                          int64_t outWidth) {
  auto program = std::make_shared<Program>();
  program->name = name;
  program->model = plainModel();
  program->outType = rowsText(outWidth);
  program->outWidth = outWidth;
  return program;
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

static std::shared_ptr<Program> embedProgram(const std::string &name,
                                             StoredWeight table) {
  auto program = programOf(name, table.cols);
  program->body = absl::StrCat(
      "  %out = kernel.embed %tokens, %table : (tensor<?xi32>, ",
      typeText(table), ") -> ", program->outType, " loc(\"", name, "\")");
  program->weights = {std::move(table)};
  return program;
}

/// Looks `tokens` up; a row of the table is exact but for the errors that the
/// device's format has.
static OpCase embedCase(const std::string &name,
                        const std::shared_ptr<Program> &program,
                        const std::vector<int32_t> &tokens) {
  Step step = stepOf(static_cast<int64_t>(tokens.size()));
  step.tokens = tokens;
  return oneStep(name, program, step, [=](const Numerics &numerics) {
    const StoredWeight &table = program->weights.front();
    const std::vector<double> values = table.values();
    const double error = numerics.weightError(table.type, 1) + roundError;
    std::vector<ExpectedRow> rows;
    for (const int32_t token : tokens) {
      ExpectedRow &row = rows.emplace_back();
      for (int64_t i = 0; i < table.cols; ++i) {
        const double value = values[token * table.cols + i];
        row.push_back({value, error * std::abs(value)});
      }
    }
    return rows;
  });
}

static void addEmbedCases(std::vector<OpCase> &cases) {
  static constexpr struct {
    DataType type;
    int64_t width;
  } tables[] = {
      {DataType::F32, 40},     {DataType::F16, 72},   {DataType::BF16, 72},
      {DataType::Q8_0, 96},    {DataType::Q4_0, 96},  {DataType::Q4_1, 96},
      {DataType::Q5_0, 96},    {DataType::Q5_1, 96},  {DataType::Q4_K, 256},
      {DataType::Q5_K, 256},   {DataType::Q6_K, 256}, {DataType::MXFP8, 96},
      {DataType::Q2_K, 256},   {DataType::Q3_K, 256}, {DataType::IQ4_NL, 96},
      {DataType::IQ4_XS, 256}, {DataType::MXFP4, 96}, {DataType::FP8, 96},
  };
  for (const auto &[type, width] : tables) {
    const std::string name = absl::StrCat("embed_", dataTypeName(type).data());
    const auto program =
        embedProgram(name, randomMatrix("table", type, 37, width));
    cases.push_back(embedCase(name + "_r1", program, {36}));
    cases.push_back(embedCase(name + "_r7", program, {0, 36, 1, 1, 0, 15, 16}));
  }
  // A NaN in the table shows in the token that has it, and there alone.
  constexpr int64_t width = 72;
  StoredWeight table = randomMatrix("table", DataType::BF16, 37, width);
  const uint16_t nan = f32ToBf16(NAN);
  std::memcpy(&table.bytes[(5 * width + 71) * 2], &nan, 2);
  cases.push_back(embedCase("embed_nan_in_table",
                            embedProgram("embed_nan", std::move(table)),
                            {4, 5, 6}));
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// Rows that each rank looks up in its part of a table, zeros where another has
/// the token, and then what all ranks have: their sum, added to a residual
/// where `adds` says so, by a tree where `isTree` does, or, where `gathers`
/// does, the columns of all.
static std::shared_ptr<Program> rankProgram(DataType type, int64_t width,
                                            int64_t ranks, bool adds,
                                            bool gathers, bool isTree) {
  const std::string name = absl::StrCat(
      gathers ? "all_gather_" : "all_reduce_", dataTypeName(type), "_w", width,
      "_over", ranks, adds ? "_added" : "", isTree ? "_tree" : "");
  auto program = programOf(name, gathers ? ranks * width : width);
  program->model.name = absl::StrCat(isTree ? "tree_over" : "over", ranks);
  program->model.ranks = ranks;
  StoredWeight table = randomMatrix("table", type, 9 * ranks, width);
  table.parts = ranks;
  const std::string rows = rowsText(width);
  program->body = absl::StrCat(
      "  %part = kernel.embed %tokens, %table rank(%rank) : (tensor<?xi32>, ",
      typeText(table), ", tensor<1xi32>) -> ", rows, " loc(\"part\")\n");
  program->weights = {std::move(table)};
  std::string extras, types;
  if (adds) {
    program->inputs = {{"residual", width}};
    extras = " extras(%residual) epilogue {\n  ^bb0(%p: f32, %q: f32):\n"
             "    %y = arith.addf %q, %p : f32\n    kernel.yield %y\n  }";
    types = ", " + rows;
  }
  absl::StrAppend(&program->body, "  %out = kernel.",
                  gathers ? "all_gather" : "all_reduce", " %part over ", ranks,
                  extras, isTree ? " {tree}" : "", " : (", rows, types, ") -> ",
                  program->outType, " loc(\"", name, "\")");
  return program;
}

static OpCase rankCase(const std::shared_ptr<Program> &program,
                       const std::vector<int32_t> &tokens) {
  Step step = stepOf(static_cast<int64_t>(tokens.size()));
  step.tokens = tokens;
  const StoredWeight &table = program->weights.front();
  const int64_t width = table.cols, part = table.rows / table.parts;
  const bool gathers = program->outWidth != width;
  std::vector<float> residual(step.rows() * width);
  if (!program->inputs.empty())
    step.inputs["residual"] = residual =
        normalFloats(step.rows() * width, 8, 2);
  return oneStep(absl::StrCat(program->name, "_r", tokens.size()), program,
                 step, [=](const Numerics &numerics) {
                   const StoredWeight &table = program->weights.front();
                   const std::vector<double> values = table.values();
                   const double error =
                       numerics.weightError(table.type, 1) + roundError;
                   std::vector<ExpectedRow> rows;
                   for (size_t r = 0; r < tokens.size(); ++r) {
                     ExpectedRow &row = rows.emplace_back();
                     row.resize(program->outWidth);
                     const int64_t first =
                         gathers ? tokens[r] / part * width : 0;
                     for (int64_t i = 0; i < width; ++i) {
                       const double value = values[tokens[r] * width + i];
                       const double sum = value + residual[r * width + i];
                       row[first + i] = {sum, error * std::abs(value) +
                                                  roundError * std::abs(sum)};
                     }
                   }
                   return rows;
                 });
}

static void addRankCases(std::vector<OpCase> &cases) {
  static constexpr struct {
    DataType type;
    int64_t width, ranks;
    bool adds, gathers, isTree = false;
  } shapes[] = {
      {DataType::BF16, 72, 2, false, false},
      {DataType::BF16, 72, 2, true, false},
      {DataType::Q8_0, 96, 2, true, false},
      {DataType::Q4_K, 256, 3, true, false},
      {DataType::F32, 40, 3, false, false},
      {DataType::BF16, 72, 2, false, true},
      {DataType::F32, 40, 3, false, true},
      {DataType::BF16, 72, 4, true, false, true},
      {DataType::F32, 40, 8, false, false, true},
  };
  for (const auto &[type, width, ranks, adds, gathers, isTree] : shapes) {
    const auto program = rankProgram(type, width, ranks, adds, gathers, isTree);
    const auto last = static_cast<int32_t>(9 * ranks - 1);
    cases.push_back(rankCase(program, {last}));
    cases.push_back(rankCase(program, {0, last, 8, 9, 0, 1, 10}));
    std::vector<int32_t> many(67);
    for (int i = 0; i < 67; ++i)
      many[i] = i * 5 % (last + 1);
    cases.push_back(rankCase(program, many));
  }
  const auto program =
      rankProgram(DataType::BF16, 320, 2, /*adds=*/true, false, false);
  addBehindNorm(cases,
                {rankCase(program, {0, 17, 8, 9, 3}),
                 rankCase(program, std::vector<int32_t>(67, 12))},
                DataType::BF16);
}

//===----------------------------------------------------------------------===//
// Norm
//===----------------------------------------------------------------------===//

/// RMSNorm of rows, or of their parts of `size`; `adds`: to a residual.
static std::shared_ptr<Program> normProgram(int64_t width, int64_t size,
                                            bool adds) {
  const std::string name = absl::StrCat(
      "rms_norm_w", width, size < width ? "_by_" : "",
      size < width ? absl::StrCat(size) : "", adds ? "_added" : "");
  auto program = programOf(name, width);
  program->inputs = {{"x", width}};
  program->weights = {vectorWeight("gain", normalFloats(size, 3))};
  std::string extras, types;
  if (adds) {
    program->inputs.push_back({"residual", width});
    extras = " extras(%residual) epilogue {\n  ^bb0(%p: f32, %q: f32):\n"
             "    %y = arith.addf %q, %p : f32\n    kernel.yield %y\n  }";
    types = ", " + program->outType;
  }
  program->body = absl::StrCat(
      "  %out = kernel.rms_norm %x, %gain", extras, " {eps = 1.0e-5 : f64} : (",
      program->outType, ", ", typeText(program->weights[0]), types, ") -> ",
      program->outType, " loc(\"", name, "\")");
  return program;
}

static OpCase normCase(const std::string &name,
                       const std::shared_ptr<Program> &program,
                       const std::vector<float> &x) {
  const int64_t width = program->outWidth;
  Step step = stepOf(static_cast<int64_t>(x.size()) / width);
  step.inputs["x"] = x;
  const bool adds = program->inputs.size() > 1;
  const std::vector<float> residual =
      normalFloats(static_cast<int64_t>(x.size()), 8, 2);
  if (adds)
    step.inputs["residual"] = residual;
  return oneStep(name, program, step, [=](const Numerics &) {
    const std::vector<double> gain = program->weights[0].values();
    std::vector<ExpectedRow> rows;
    rows.reserve(step.rows());
    const auto size = static_cast<int64_t>(gain.size());
    for (int64_t r = 0; r < step.rows(); ++r) {
      ExpectedRow &row = rows.emplace_back();
      for (int64_t part = 0; part < width / size; ++part)
        for (const Expected &number : roundedOnce(normalised(
                 rowOf(x, r * (width / size) + part, size), gain, normEps)))
          row.push_back(number);
    }
    for (size_t i = 0; i < x.size(); ++i) {
      Expected &number = rows[i / width][i % width];
      number.bound = sumError * std::abs(number.value);
      if (adds) {
        number.value += residual[i];
        number.bound += roundError * std::abs(number.value);
      }
    }
    return rows;
  });
}

static void addNormCases(std::vector<OpCase> &cases) {
  static constexpr struct {
    int64_t width, size;
    bool adds;
  } sizes[] = {{8, 8, false},   {72, 72, false},   {576, 576, false},
               {72, 24, false}, {512, 128, false}, {576, 576, true},
               {72, 24, true}};
  for (const auto &[width, size, adds] : sizes) {
    const auto program = normProgram(width, size, adds);
    for (const int64_t rows : {1, 5, 67})
      cases.push_back(normCase(absl::StrCat(program->name, "_r", rows), program,
                               normalFloats(rows * width, 5, 3)));
    // Rows of zeros and of very small numbers are what eps is for.
    std::vector<float> small = normalFloats(3 * width, 6, 1e-4f);
    std::fill_n(small.begin(), width, 0.0f);
    cases.push_back(normCase(program->name + "_small", program, small));
    for (const float bad : {NAN, INFINITY}) {
      std::vector<float> x = normalFloats(5 * width, 7);
      x[3 * width + width - 1] = bad;
      cases.push_back(
          normCase(program->name + (std::isnan(bad) ? "_nan_row" : "_inf_row"),
                   program, x));
    }
  }
  const auto program = normProgram(576, 576, true);
  std::vector<OpCase> firsts;
  for (const int64_t rows : {5, 67})
    firsts.push_back(normCase(absl::StrCat(program->name, "_r", rows), program,
                              normalFloats(rows * 576, 5, 3)));
  addBehindNorm(cases, firsts, DataType::Q8_0);
}

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

/// The exponent of e, which is up to 90, is rounded a few times.
constexpr double geluError = 0x1p-14;

/// A function of two operands: its region and what it computes.
struct Pointwise {
  const char *name;
  const char *region;
  double (*compute)(double a, double b);
  double error;          ///< Error of the result, relative to its magnitude.
  bool isVector = false; ///< Whether the second operand is one row for all.
};

static OpCase pointwiseCase(const std::string &name,
                            const std::shared_ptr<Program> &program,
                            const Pointwise &function,
                            const std::vector<float> &a,
                            const std::vector<float> &b) {
  const int64_t width = program->outWidth;
  Step step = stepOf(static_cast<int64_t>(a.size()) / width);
  step.inputs = {{"a", a}};
  if (!function.isVector)
    step.inputs["b"] = b;
  return oneStep(name, program, step, [=](const Numerics &) {
    std::vector<ExpectedRow> rows(step.rows());
    const std::vector<double> vector = function.isVector
                                           ? program->weights[0].values()
                                           : std::vector<double>();
    for (size_t i = 0; i < a.size(); ++i) {
      const double x = a[i], y = function.isVector ? vector[i % width] : b[i];
      const double value = function.compute(x, y);
      // Products of the operands may be flushed.
      rows[i / width].push_back({value, function.error * std::abs(value) +
                                            flushError * std::abs(x * y)});
    }
    return rows;
  });
}

static void addPointwiseCases(std::vector<OpCase> &cases) {
  static constexpr Pointwise functions[] = {
      {"gated",
       "    %s = kernel.silu %p\n"
       "    %y = arith.mulf %s, %q : f32\n",
       [](double a, double b) { return a / (1 + std::exp(-a)) * b; }, sumError},
      {"arithmetic",
       "    %s = arith.mulf %p, %p : f32\n"
       "    %t = arith.addf %s, %s : f32\n"
       "    %u = arith.divf %t, %q : f32\n"
       "    %y = arith.mulf %u, %u : f32\n",
       [](double a, double b) {
         return (a * a + a * a) / b * ((a * a + a * a) / b);
       },
       sumError},
      {"difference", "    %y = arith.subf %p, %q : f32\n",
       [](double a, double b) { return a - b; }, sumError},
      {"gelu",
       "    %s = kernel.gelu_tanh %p\n"
       "    %y = arith.mulf %s, %q : f32\n",
       [](double a, double b) {
         // (1 + tanh u) / 2 would cancel where it is small.
         const double u =
             std::sqrt(2 / std::numbers::pi) * (a + 0.044715 * a * a * a);
         return a / (1 + std::exp(-2 * u)) * b;
       },
       geluError},
      {"scaled_by_vector",
       "    %c = arith.constant -3.5 : f32\n"
       "    %s = arith.mulf %p, %c : f32\n"
       "    %y = arith.mulf %s, %q : f32\n",
       [](double a, double b) { return a * -3.5 * b; }, sumError, true},
  };
  for (const Pointwise &function : functions)
    for (const int64_t width : {int64_t{8}, int64_t{202}}) {
      const std::string name =
          absl::StrCat("pointwise_", function.name, "_w", width);
      auto program = programOf(name, width);
      program->inputs = {{"a", width}};
      std::string typeOfB = program->outType;
      if (function.isVector) {
        program->weights = {vectorWeight("b", normalFloats(width, 12))};
        typeOfB = typeText(program->weights[0]);
      } else {
        program->inputs.push_back({"b", width});
      }
      program->body = absl::StrCat(
          "  %out = kernel.pointwise %a, %b body {\n  ^bb0(%p: f32, %q: "
          "f32):\n",
          function.region, "    kernel.yield %y\n  } : (", program->outType,
          ", ", typeOfB, ") -> ", program->outType, " loc(\"", name, "\")");
      for (const int64_t rows : {1, 5, 66}) {
        std::vector<float> a = normalFloats(rows * width, 11, 3);
        const std::vector<float> b = normalFloats(rows * width, 12);
        // Where the exponential of silu overflows, where it vanishes, and where
        // its reciprocal has fewer digits.
        a[0] = -120;
        a[1] = 120;
        a[2] = -87.6F;
        cases.push_back(pointwiseCase(absl::StrCat(name, "_r", rows), program,
                                      function, a, b));
      }
      std::vector<float> a = normalFloats(3 * width, 13);
      std::vector<float> b = normalFloats(3 * width, 14);
      a[width + 1] = NAN;
      b[width + 4] = INFINITY;
      if (std::string(function.name) != "arithmetic") // x / inf is 0.
        cases.push_back(
            pointwiseCase(name + "_not_finite", program, function, a, b));
    }
}

//===----------------------------------------------------------------------===//
// Logits rows
//===----------------------------------------------------------------------===//

static void addGatherCases(std::vector<OpCase> &cases) {
  for (const int64_t width : {int64_t{8}, int64_t{202}}) {
    auto program = programOf(absl::StrCat("gather_rows_w", width), width);
    program->inputs = {{"x", width}};
    program->wanted = true;
    program->body =
        absl::StrCat("  %out = kernel.gather_rows %x, %wanted : (",
                     program->outType, ", tensor<?xi32>) -> ", program->outType,
                     " loc(\"", program->name, "\")");
    const std::vector<std::vector<int32_t>> lists = {
        {}, {0}, {69}, {0, 1, 33, 69}};
    for (const std::vector<int32_t> &wanted : lists) {
      std::vector<float> x = normalFloats(70 * width, 17);
      // Rows that nobody wants do not matter.
      x[2 * width] = NAN;
      Step step = stepOf(70);
      step.inputs["x"] = x;
      step.wanted = wanted;
      std::string name = absl::StrCat(program->name, "_wants");
      for (const int32_t row : wanted)
        absl::StrAppend(&name, "_", row);
      cases.push_back(oneStep(wanted.empty() ? name + "_none" : name, program,
                              step, [=](const Numerics &) {
                                std::vector<ExpectedRow> rows;
                                for (const int32_t row : wanted) {
                                  ExpectedRow &expected = rows.emplace_back();
                                  for (const double value :
                                       rowOf(x, row, width))
                                    expected.push_back({value, 0});
                                }
                                return rows;
                              }));
    }
  }
}

//===----------------------------------------------------------------------===//
// Cos/sin cache
//===----------------------------------------------------------------------===//

/// Radians a position, of a head of 16 and theta = 10000.
static std::vector<double> angleFrequencies() {
  std::vector<double> frequencies;
  frequencies.reserve(8);
  for (int i = 0; i < 8; ++i)
    frequencies.push_back(std::pow(10000.0, -i / 8.0));
  return frequencies;
}

/// The cos/sin cache of all rows, or of the logits rows.
static std::shared_ptr<Program> angleProgram(bool ofWanted) {
  auto program = programOf(ofWanted ? "rope_table_wanted" : "rope_table", 16);
  program->outType = "tensor<?x8x2xf32>";
  program->wanted = ofWanted;
  if (ofWanted)
    program->body = "  %at = kernel.gather_rows %positions, %wanted : "
                    "(tensor<?xi32>, tensor<?xi32>) -> tensor<?xi32> "
                    "loc(\"positions\")\n";
  absl::StrAppend(&program->body, "  %out = kernel.rope_table %",
                  ofWanted ? "at" : "positions",
                  " {frequencies = ", frequenciesText(angleFrequencies()),
                  "} : (tensor<?xi32>) -> ", program->outType, " loc(\"",
                  program->name, "\")");
  return program;
}

static OpCase angleCase(const std::string &name,
                        const std::shared_ptr<Program> &program,
                        const std::vector<int32_t> &positions,
                        const std::vector<int32_t> &wanted) {
  Step step = stepOf(static_cast<int64_t>(positions.size()));
  step.positions = positions;
  step.wanted = wanted;
  return oneStep(name, program, step, [=](const Numerics &) {
    std::vector<ExpectedRow> rows;
    std::vector<int32_t> of = positions;
    if (program->wanted) {
      of.clear();
      for (const int32_t row : wanted)
        of.push_back(positions[row]);
    }
    for (const int32_t position : of) {
      ExpectedRow &row = rows.emplace_back();
      for (const double frequency : angleFrequencies()) {
        row.push_back({std::cos(position * frequency), roundError});
        row.push_back({std::sin(position * frequency), roundError});
      }
    }
    return rows;
  });
}

static void addAngleCases(std::vector<OpCase> &cases) {
  const auto all = angleProgram(false), wanted = angleProgram(true);
  cases.push_back(angleCase("rope_table_r1", all, {0}, {}));
  std::vector<int32_t> positions(70);
  for (int i = 0; i < 70; ++i)
    positions[i] = i * 1873; // Up to 129237, longer than any context.
  cases.push_back(angleCase("rope_table_r70", all, positions, {}));
  cases.push_back(angleCase("rope_table_of_wanted_rows", wanted, positions,
                            {0, 1, 64, 69}));
}

void addRowwiseCases(std::vector<OpCase> &cases) {
  addEmbedCases(cases);
  addRankCases(cases);
  addNormCases(cases);
  addPointwiseCases(cases);
  addGatherCases(cases);
  addAngleCases(cases);
}

} // namespace llamac::conformance
