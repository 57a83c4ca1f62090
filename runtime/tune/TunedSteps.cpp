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

absl::Status seenEnough() { return absl::CancelledError("seen enough"); }

static absl::Status ignoreLogits(const LogitsRow &) { return absl::OkStatus(); }

/// Opens sequences until there are `count`.
absl::Status StepRunner::open(int64_t count) {
  while (static_cast<int64_t>(sequences.size()) < count) {
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine.newSequence());
    sequences.push_back(std::move(sequence));
  }
  return absl::OkStatus();
}

/// Makes sequence number `number` one of `tokens`.
absl::Status StepRunner::begin(size_t number,
                               absl::Span<const int32_t> tokens) {
  Sequence &sequence = sequences[number];
  const auto count = static_cast<int64_t>(tokens.size());
  if (sequence.length() > count)
    engine.truncate(sequence, count);
  const int64_t kept = number == 0 ? std::min(first.tokens, count) : 0;
  if (sequence.length() < kept) {
    engine.truncate(sequence, 0);
    LLAMAC_RETURN_IF_ERROR(engine.restore(sequence, first, kept));
  }
  if (sequence.length() == count)
    return absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR(engine.step(
      {{&sequence, tokens.subspan(static_cast<size_t>(sequence.length())),
        Wanted::None}},
      ignoreLogits));
  if (number == 0) {
    LLAMAC_ASSIGN_OR_RETURN(first, engine.copyOf(sequence));
  }
  return absl::OkStatus();
}

absl::Status StepRunner::begin(int64_t tokens) {
  LLAMAC_RETURN_IF_ERROR(open(1));
  return begin(0, tokensOf(tokens, engine.model().config().vocabSize, 0));
}

absl::Status StepRunner::run(const StepPlan &step,
                             absl::FunctionRef<void()> atLast) {
  const int64_t vocab = engine.model().config().vocabSize;
  std::vector<std::vector<int32_t>> tokens; ///< Those before, then its own.
  std::vector<SequenceTokens> batch;
  tokens.reserve(static_cast<size_t>(step.sequences));
  LLAMAC_RETURN_IF_ERROR(open(step.sequences));
  for (int64_t i = 0; i < step.sequences; ++i) {
    const absl::Span<const int32_t> all =
        tokens.emplace_back(tokensOf(step.before + step.tokens, vocab, i));
    const auto number = static_cast<size_t>(i);
    const auto before = static_cast<size_t>(step.before);
    LLAMAC_RETURN_IF_ERROR(begin(number, all.first(before)));
    batch.push_back({&sequences[number], all.subspan(before), Wanted::Last});
  }
  atLast();
  const absl::Status status = engine.step(batch, ignoreLogits);
  if (status.ok())
    return status;
  for (const SequenceTokens &item : batch)
    engine.truncate(*item.sequence, step.before);
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

absl::StatusOr<CachedTokens>
computeFirst(const std::shared_ptr<const Model> &model, int64_t tokens,
             absl::FunctionRef<bool()> isOver) {
  constexpr int64_t chunk = 128;
  CachedTokens first;
  LLAMAC_ASSIGN_OR_RETURN(
      const std::unique_ptr<Engine> engine,
      Engine::create(
          model, {.kvPages = pagesFor(model->plan(), {{.before = tokens}})}));
  StepRunner steps(*engine, first);
  while (first.tokens < tokens && !isOver())
    LLAMAC_RETURN_IF_ERROR(steps.begin(std::min(first.tokens + chunk, tokens)));
  return first;
}

int64_t pagesFor(const schema::PlanT &plan, absl::Span<const StepPlan> steps) {
  int64_t sequences = 0, tokens = 0;
  for (const StepPlan &each : steps) {
    sequences = std::max(sequences, each.sequences);
    tokens = std::max(tokens, each.before + each.tokens);
  }
  return std::min(sequences * (tokens / plan.kv->pageTokens + 2),
                  plan.kv->pagesPerSequence * plan.kv->maxSequences);
}

std::vector<int32_t> tokensOf(int64_t count, int64_t vocab, int64_t salt) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    ids[static_cast<size_t>(i)] =
        static_cast<int32_t>((7919 * (i + 31 * salt) + 11) % vocab);
  return ids;
}

} // namespace llamac
