//===- TunedSteps.cpp - Steps by which a program is tuned -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/TunedSteps.h"

#include <algorithm>

namespace llamac {

/// The most rows of the program before number `program`.
static int64_t fewerRows(const schema::PlanT &plan, size_t program) {
  return program == 0 ? 0 : plan.programs[program - 1]->maxRows;
}

std::optional<StepPlan> stepOf(const schema::PlanT &plan, size_t program,
                               int64_t rows, int64_t before) {
  const int64_t least = fewerRows(plan, program) + 1;
  const int64_t most = plan.programs[program]->maxRows;
  rows = std::clamp(rows, least, most);
  // The last program's rows are tokens of one prompt.
  if (program + 1 == plan.programs.size() && program != 0) {
    rows = std::min(rows, plan.context);
    if (rows < least)
      return std::nullopt;
    return StepPlan{1, std::min(before, plan.context - rows), rows};
  }
  rows = std::min(rows, plan.kv->maxSequences);
  if (rows < least)
    return std::nullopt;
  return StepPlan{rows, std::min(before, plan.context - 1), 1};
}

std::vector<StepPlan> gateSteps(const schema::PlanT &plan, size_t program) {
  std::vector<StepPlan> steps;
  const int64_t most = plan.programs[program]->maxRows;
  const std::pair<int64_t, int64_t> shapes[] = {
      {most, 0},
      {std::min<int64_t>(most, 37), 70},
      {std::min<int64_t>(most - 1, 139), 300}};
  for (const auto &[rows, before] : shapes)
    if (const auto step = stepOf(plan, program, rows, before))
      steps.push_back(*step);
  return steps;
}

std::vector<int32_t> tokensOf(int64_t count, int64_t vocab, int64_t salt) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    ids[static_cast<size_t>(i)] =
        static_cast<int32_t>((7919 * (i + 31 * salt) + 11) % vocab);
  return ids;
}

} // namespace llamac
