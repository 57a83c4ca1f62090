//===- Cases.cpp - The list of cases --------------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/conformance/ops/Cases.h"

#include "absl/strings/str_format.h"

#include <algorithm>
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
