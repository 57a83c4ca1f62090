//===- ModelRun.cpp - Models at work, to be timed -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/tuner/ModelRun.h"

#include <algorithm>

namespace llamac {

std::vector<int32_t> spreadTokens(int64_t count, int64_t vocab) {
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>((7919 * i + 11) % vocab));
  return ids;
}

absl::Status ModelRun::give(absl::Span<const int32_t> tokens) {
  std::vector<SequenceTokens> items;
  items.reserve(sequences.size());
  for (Sequence &sequence : sequences)
    items.push_back({&sequence, tokens, OutputRows::Last});
  return engine.step(items, ignoreLogits);
}

absl::Status ModelRun::prefill(absl::Span<const int32_t> prompt) {
  for (int64_t i = 0; i < batch; ++i) {
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine.newSequence());
    sequences.push_back(std::move(sequence));
    LLAMAC_ASSIGN_OR_RETURN(Sampler greedy, Sampler::create({}));
    samplers.push_back(std::move(greedy));
  }
  if (!engine.model().samples())
    return give(prompt);
  std::vector<SampledTokens> items;
  items.reserve(sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i)
    items.push_back({&sequences[i], prompt, &samplers[i]});
  LLAMAC_ASSIGN_OR_RETURN(const auto chosen, engine.sample(items));
  for (const absl::StatusOr<int32_t> &token : chosen) {
    LLAMAC_ASSIGN_OR_RETURN(next.emplace_back(), token);
  }
  return absl::OkStatus();
}

absl::Status ModelRun::decode(absl::Span<const int32_t> tokens) {
  if (!engine.model().samples()) {
    for (const int32_t &token : tokens)
      LLAMAC_RETURN_IF_ERROR(give({&token, 1}));
    return absl::OkStatus();
  }
  std::vector<DecodeItem> items;
  items.reserve(sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i)
    items.push_back({&sequences[i], next[i], &samplers[i]});
  return engine.decode(items, static_cast<int64_t>(tokens.size()),
                       [](absl::Span<const int32_t>) { return true; });
}

//===----------------------------------------------------------------------===//
// Steps of one program
//===----------------------------------------------------------------------===//

std::vector<StepPlan> stepsOf(const schema::PlanT &plan, size_t program) {
  const schema::ProgramT &of = *plan.programs[program];
  const int64_t most = of.maxRows;
  int64_t least = 1;
  for (size_t i = 0; i < program; ++i) // In ascending order of their rows.
    // Rows of prompts pass programs of decode alone by.
    if (of.decodeOnly || !plan.programs[i]->decodeOnly)
      least = plan.programs[i]->maxRows + 1;
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
  int64_t sequences = 0, pages = 0; // The most of any step.
  for (size_t program = 0; program < plan.programs.size(); ++program)
    for (const StepPlan &step : stepsOf(plan, program)) {
      const int64_t last = step.before + step.tokens - 1;
      sequences = std::max(sequences, step.sequences);
      pages =
          std::max(pages, step.sequences * (last / plan.kv->pageTokens + 1));
    }
  std::unique_ptr<StepRunner> runner(new StepRunner);
  LLAMAC_ASSIGN_OR_RETURN(
      runner->engine,
      Engine::create(model, {.kvPages = pages, .observer = runner.get()}));
  for (int64_t i = 0; i < sequences; ++i) {
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, runner->engine->newSequence());
    runner->sequences.push_back(std::move(sequence));
  }
  return runner;
}

absl::Status StepRunner::run(StepPlan &step, Deadline until, Work work) {
  constexpr int64_t piece = 128;
  // Each sequence begins so many ids further.
  constexpr int64_t apart = 31;
  const std::vector<int32_t> tokens =
      spreadTokens(step.before + step.tokens + apart * step.sequences,
                   engine->model().config().vocabSize);
  std::vector<SequenceTokens> batch;
  std::vector<int64_t> lengths;
  // Ahead of all that needs their pages.
  for (size_t i = 0; i < sequences.size(); ++i) {
    const int64_t kept = std::cmp_less(i, step.sequences) ? step.before : 0;
    engine->truncate(sequences[i], std::min(sequences[i].length(), kept));
  }
  for (size_t i = 0; std::cmp_less(i, step.sequences); ++i) {
    Sequence &sequence = sequences[i];
    const auto next = [&](int64_t most) {
      return absl::MakeConstSpan(tokens).subspan(
          i * apart + static_cast<size_t>(sequence.length()),
          static_cast<size_t>(most));
    };
    while (sequence.length() < step.before && !until.isOver())
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
