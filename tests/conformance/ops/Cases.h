//===- Cases.h - The cases of the suite -------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_CASES_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_CASES_H

#include "tests/conformance/ops/Expected.h"

#include <set>

namespace llamac::conformance {

/// A program, the steps it is run for one after the other, and what each gives.
struct OpCase {
  std::string name; ///< Letters, digits and underscores.
  std::shared_ptr<const Program> program;
  std::vector<Step> steps;
  /// The expected rows by step and row.
  std::function<std::vector<std::vector<ExpectedRow>>(const Numerics &)>
      expected;
  /// Whether another case differs from it in values alone: all accesses to
  /// memory are the same.
  bool isVariant = false;
  /// Whether it takes gigabytes of a device, of which few are written: it is
  /// skipped where the device has not as many.
  bool isLarge = false;
};

/// The cases of each kind of op. They are added to a list.
void addRowwiseCases(std::vector<OpCase> &cases);
void addMatmulCases(std::vector<OpCase> &cases);
void addAttentionCases(std::vector<OpCase> &cases);
void addSamplingCases(std::vector<OpCase> &cases);

/// Every case.
const std::vector<OpCase> &opCases();

/// The one called `name`; ends the process when there is none.
const OpCase &caseNamed(const std::string &name);

/// A test of the rows of case `many` by themselves is called "rowsPrefix many".
inline constexpr char rowsPrefix[] = "rows_by_themselves_";

/// The programs of the cases of one model, each with the rows of its steps:
/// of all cases, or, where `chosen` has any, of those that it names.
std::vector<ProgramUse> programsOf(const std::string &model,
                                   const std::set<std::string> &chosen = {});

/// A case of one step.
OpCase oneStep(const std::string &name, std::shared_ptr<const Program> program,
               Step step,
               std::function<std::vector<ExpectedRow>(const Numerics &)> rows);

/// Adds `firsts`, cases of one program and of one step, as cases of a program
/// that goes on: their result, normalised, times a matrix in `type`. A norm may
/// be shared by the two launches.
void addBehindNorm(std::vector<OpCase> &cases,
                   const std::vector<OpCase> &firsts, DataType type);

/// The cache that programs without attention are compiled with.
Model plainModel();

/// "dense<[1.0e+00, ...]> : tensor<8xf64>", with all digits.
std::string frequenciesText(const std::vector<double> &frequencies);

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_CASES_H
