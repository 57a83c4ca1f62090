//===- TunedSteps.cpp - Steps by which a program is tuned -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/TunedSteps.h"

#include "runtime/base/Status.h"

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

absl::Status runStep(Engine &engine, const StepPlan &step,
                     absl::FunctionRef<void()> atLast) {
  const auto ignore = [](const LogitsRow &) { return absl::OkStatus(); };
  const int64_t vocab = engine.model().config().vocabSize;
  std::vector<Sequence> sequences;
  std::vector<std::vector<int32_t>> tokens;
  for (int64_t i = 0; i < step.sequences; ++i) {
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine.newSequence());
    sequences.push_back(std::move(sequence));
    const std::vector<int32_t> past = tokensOf(step.before, vocab, i);
    if (!past.empty())
      LLAMAC_RETURN_IF_ERROR(
          engine.step({{&sequences.back(), past, Wanted::None}}, ignore));
    tokens.push_back(tokensOf(step.tokens, vocab, i + step.sequences));
  }
  std::vector<SequenceTokens> batch;
  batch.reserve(sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i)
    batch.push_back({&sequences[i], tokens[i], Wanted::Last});
  atLast();
  return engine.step(batch, ignore);
}

int64_t pagesFor(const schema::PlanT &plan, absl::Span<const StepPlan> steps) {
  int64_t pages = 0;
  for (const StepPlan &each : steps)
    pages = std::max(
        pages, each.sequences *
                   ((each.before + each.tokens) / plan.kv->pageTokens + 2));
  return std::min(pages, plan.kv->pagesPerSequence * plan.kv->maxSequences);
}

std::vector<int32_t> tokensOf(int64_t count, int64_t vocab, int64_t salt) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    ids[static_cast<size_t>(i)] =
        static_cast<int32_t>((7919 * (i + 31 * salt) + 11) % vocab);
  return ids;
}

} // namespace llamac
