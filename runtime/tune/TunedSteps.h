//===- TunedSteps.h - Steps by which a program is tuned ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_TUNEDSTEPS_H
#define LLAMAC_RUNTIME_TUNE_TUNEDSTEPS_H

#include "runtime/engine/Engine.h"
#include "runtime/plan/plan_generated.h"
#include "runtime/tune/CostModel.h"

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace llamac {

/// Tokens before a step of decode that is timed.
inline constexpr int64_t timedContext = 512;

/// A step that makes the engine run one program: some sequences that have
/// `before` tokens each get `tokens` more.
struct StepPlan {
  int64_t sequences = 1;
  int64_t before = 0;
  int64_t tokens = 1;

  TunedStep tuned() const { return {sequences * tokens, before + tokens}; }
};

/// A step of about `rows` rows, each with `before` tokens ahead of it, that
/// runs program number `program`; none when the plan keeps too few sequences.
std::optional<StepPlan> stepOf(const schema::PlanT &plan, size_t program,
                               int64_t rows, int64_t before);

/// Steps that show what variants compute: whole tiles and ragged ones, with and
/// without a past.
std::vector<StepPlan> gateSteps(const schema::PlanT &plan, size_t program);

/// What an observer ends a step with that has seen all it wants of it.
absl::Status seenEnough();

/// Runs steps on an engine. Each sequence has the same tokens in all of them,
/// so what a step finds before it is what earlier ones have left, as far as
/// that goes, and computed otherwise.
class StepRunner {
public:
  /// `first` is what the first sequence begins with: what is longer is put
  /// there, for the engines that follow.
  StepRunner(Engine &engine, CachedTokens &first)
      : engine(engine), first(first) {}

  /// Makes the first sequence one of `tokens` tokens.
  absl::Status begin(int64_t tokens);

  /// `atLast` is called before the last part of `step`, which runs the program.
  absl::Status run(const StepPlan &step, absl::FunctionRef<void()> atLast);

private:
  absl::Status open(int64_t count);
  absl::Status begin(size_t number, absl::Span<const int32_t> tokens);

  Engine &engine;
  CachedTokens &first;
  std::vector<Sequence> sequences;
};

/// What a StepRunner's first sequence begins with, `tokens` or, once `isOver`,
/// fewer: for programs that are tuned one after the other. Errors: the
/// device's, with the model.
absl::StatusOr<CachedTokens>
computeFirst(const std::shared_ptr<const Model> &model, int64_t tokens,
             absl::FunctionRef<bool()> isOver);

/// Pages of the cache that a StepRunner takes for all of `steps`.
int64_t pagesFor(const schema::PlanT &plan, absl::Span<const StepPlan> steps);

/// Ids spread over the vocabulary, the same in every run; others by `salt`.
std::vector<int32_t> tokensOf(int64_t count, int64_t vocab, int64_t salt);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_TUNEDSTEPS_H
