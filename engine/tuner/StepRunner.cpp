//===- StepRunner.cpp - Steps that run a given program --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/tuner/StepRunner.h"

#include "engine/tuner/ModelRun.h"
#include "runtime/base/Status.h"

#include <algorithm>

namespace llamac {

std::vector<StepPlan> stepsOf(const schema::PlanT &plan, size_t program) {
  const schema::ProgramT &of = *plan.programs[program];
  const int64_t most = of.maxRows;
  // Rows of prompts pass programs of decode alone by.
  size_t smaller = program;
  while (smaller > 0 && plan.programs[smaller - 1]->decodeOnly &&
         !of.decodeOnly)
    --smaller;
  const int64_t least =
      smaller == 0 ? 1 : plan.programs[smaller - 1]->maxRows + 1;
  // The one before holds as many rows: none comes here.
  if (least > most)
    return {};
  // Prefill is of prompts, from the longest past to none, and decode appends to
  // the tokens it has: so no token is computed twice. A program for more rows
  // than there are sequences is for prompts.
  const bool isLast = program != 0 && program + 1 == plan.programs.size();
  const bool isPrefill =
      !of.decodeOnly && (isLast || least > plan.kv->maxSequences);
  std::vector<std::pair<int64_t, int64_t>> shapes = {
      {most, 0},
      {37, 70},
      {std::min(most - 1, int64_t{139}), 300},
      {most, 512}};
  if (isPrefill)
    shapes = {shapes[2], shapes[1], shapes[0]};
  std::vector<StepPlan> steps;
  for (const auto &[asked, before] : shapes) {
    const int64_t rows = std::clamp(asked, least, most);
    const int64_t tokens = isPrefill ? std::min(rows, plan.context) : 1;
    // One prompt, or as many as make a step of the program.
    const int64_t wanted = isPrefill ? (least - 1) / tokens + 1 : rows;
    const int64_t sequences =
        std::min({wanted, plan.kv->maxSequences, of.maxOutputRows});
    if (sequences * tokens >= least && sequences * tokens <= most)
      steps.push_back(
          {sequences, std::min(before, plan.context - tokens), tokens});
  }
  return steps;
}

absl::StatusOr<std::unique_ptr<StepRunner>>
StepRunner::create(const std::shared_ptr<const Model> &model) {
  const schema::PlanT &plan = model->plan();
  std::vector<int64_t> longest; // By sequence, of all steps.
  for (size_t program = 0; program < plan.programs.size(); ++program)
    for (const StepPlan &step : stepsOf(plan, program)) {
      const auto count = static_cast<size_t>(step.sequences);
      longest.resize(std::max(longest.size(), count));
      for (size_t i = 0; i < count; ++i)
        longest[i] = std::max(longest[i], step.before + step.tokens);
    }
  int64_t pages = 0;
  for (const int64_t tokens : longest)
    pages += (tokens - 1) / plan.kv->pageTokens + 1;
  std::unique_ptr<StepRunner> runner(new StepRunner);
  LLAMAC_ASSIGN_OR_RETURN(
      runner->engine,
      Engine::create(model, {.kvPages = pages, .observer = runner.get()}));
  for (size_t i = 0; i < longest.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, runner->engine->newSequence());
    runner->sequences.push_back(std::move(sequence));
  }
  return runner;
}

absl::Status StepRunner::run(StepPlan &step, absl::FunctionRef<bool()> isOver,
                             Work work) {
  constexpr int64_t piece = 128;
  // Each sequence begins so many ids further.
  constexpr int64_t apart = 31;
  const std::vector<int32_t> tokens =
      spreadTokens(step.before + step.tokens + apart * step.sequences,
                   engine->model().config().vocabSize);
  std::vector<SequenceTokens> batch;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < static_cast<size_t>(step.sequences); ++i) {
    Sequence &sequence = sequences[i];
    engine->truncate(sequence, std::min(sequence.length(), step.before));
    const auto next = [&](int64_t most) {
      return absl::MakeConstSpan(tokens).subspan(
          i * apart + static_cast<size_t>(sequence.length()),
          static_cast<size_t>(most));
    };
    while (sequence.length() < step.before && !isOver())
      LLAMAC_RETURN_IF_ERROR(engine->step(
          {{&sequence, next(std::min(piece, step.before - sequence.length())),
            OutputRows::None}},
          ignoreLogits));
    lengths.push_back(sequence.length());
    batch.push_back({&sequence, next(step.tokens), OutputRows::Last});
  }
  step.before = lengths.front();
  pending = &work;
  const absl::Status status = engine->step(batch, ignoreLogits);
  pending = nullptr;
  for (size_t i = 0; i < batch.size(); ++i)
    engine->truncate(*batch[i].sequence, lengths[i]);
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

/// Runs the work alone: the step itself ends before its first launch.
absl::Status StepRunner::before(const LaunchSite &site, StepMemory &memory) {
  if (!pending)
    return absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR((*pending)(site.shape, memory));
  return absl::CancelledError("the work of the step is done");
}

} // namespace llamac
