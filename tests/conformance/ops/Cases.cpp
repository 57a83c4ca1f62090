//===- Cases.cpp - The list of cases --------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/Cases.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace llamac::conformance {

OpCase oneStep(const std::string &name, std::shared_ptr<const Program> program,
               Step step,
               std::function<std::vector<ExpectedRow>(const Numerics &)> rows) {
  return {name,
          std::move(program),
          {std::move(step)},
          [rows = std::move(rows)](const Numerics &numerics) {
            return std::vector<std::vector<ExpectedRow>>{rows(numerics)};
          }};
}

/// The product of `row`, normalised by `gain`, with `matrix`.
static ExpectedRow productBehindNorm(const ExpectedRow &row,
                                     const std::vector<double> &gain,
                                     const StoredWeight &matrix,
                                     const Numerics &numerics, int64_t rows) {
  std::vector<double> values;
  double squares = 0;
  for (const Expected &number : row) {
    values.push_back(number.value);
    squares += number.value * number.value;
  }
  const auto width = static_cast<double>(row.size());
  ExpectedRow result =
      Matrix(matrix, numerics, rows)
          .times(normalised(values, gain, normEps), Activations::Normal);
  // The bounds of the row go through the norm and the product.
  const double scale = 1 / std::sqrt(squares / width + normEps);
  const std::vector<double> weights = matrix.values();
  for (size_t n = 0; n < result.size(); ++n) {
    double sum = 0;
    for (size_t k = 0; k < row.size(); ++k)
      sum += std::pow(
          weights[n * row.size() + k] * gain[k] * scale * row[k].bound, 2);
    result[n].bound += std::sqrt(sum);
  }
  return result;
}

void addBehindNorm(std::vector<OpCase> &cases,
                   const std::vector<OpCase> &firsts, DataType type) {
  constexpr int64_t outputs = 70;
  const Program &first = *firsts.front().program;
  auto program = std::make_shared<Program>(first);
  program->name = "multiplied_" + first.name;
  program->weights.push_back(randomMatrix("v", type, outputs, first.outWidth));
  program->weights.push_back(
      vectorWeight("nextGain", normalFloats(first.outWidth, 21)));
  program->outType = rowsText(outputs);
  program->outWidth = outputs;
  const StoredWeight &v = program->weight("v");
  const StoredWeight &gain = program->weight("nextGain");
  program->body = absl::StrCat(
      absl::StrReplaceAll(first.body, {{"%out", "%y"}}),
      "\n  %out = kernel.matmul %y, %v norm(%nextGain) epilogue {\n"
      "  ^bb0(%a: f32):\n    kernel.yield %a\n  } {eps = 1.0e-5 : f64} : (",
      first.outType, ", ", typeText(v), ", ", typeText(gain), ") -> ",
      program->outType, " loc(\"", program->name, "\")");
  for (const OpCase &one : firsts)
    cases.push_back(oneStep(
        "multiplied_" + one.name, program, one.steps.front(),
        [=, expected = one.expected](const Numerics &numerics) {
          std::vector<ExpectedRow> rows = expected(numerics).front();
          for (ExpectedRow &row : rows)
            row = productBehindNorm(row, program->weight("nextGain").values(),
                                    program->weight("v"), numerics,
                                    static_cast<int64_t>(rows.size()));
          return rows;
        }));
}

Model plainModel() { return {"plain", 4, 2, 16, 64}; }

std::string frequenciesText(const std::vector<double> &frequencies) {
  std::string list;
  for (const double frequency : frequencies)
    absl::StrAppendFormat(&list, "%s%.17e", list.empty() ? "" : ", ",
                          frequency);
  return absl::StrFormat("dense<[%s]> : tensor<%dxf64>", list,
                         frequencies.size());
}

const std::vector<OpCase> &opCases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> list;
    addRowwiseCases(list);
    addMatmulCases(list);
    addAttentionCases(list);
    addSamplingCases(list);
    return list;
  }();
  return cases;
}

std::vector<ProgramUse> programsOf(const std::string &model,
                                   const std::set<std::string> &chosen) {
  std::vector<ProgramUse> uses;
  for (const OpCase &test : opCases()) {
    if (test.program->model.name != model ||
        (!chosen.empty() && !chosen.contains(test.name)))
      continue;
    auto use = std::find_if(uses.begin(), uses.end(), [&](const auto &known) {
      return known.program == test.program;
    });
    if (use == uses.end())
      use = uses.insert(uses.end(), {test.program, {}});
    for (const Step &step : test.steps)
      use->rows.push_back(step.rows());
  }
  return uses;
}

const OpCase &caseNamed(const std::string &name) {
  const auto test =
      std::find_if(opCases().begin(), opCases().end(),
                   [&](const OpCase &known) { return known.name == name; });
  if (test == opCases().end()) {
    std::fprintf(stderr, "no case is called %s\n", name.c_str());
    std::abort();
  }
  return *test;
}

} // namespace llamac::conformance
