//===- ModelRun.h - Models at work, to be timed -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_TUNER_MODELRUN_H
#define LLAMAC_ENGINE_TUNER_MODELRUN_H

#include "engine/step/Engine.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"

#include "absl/functional/function_ref.h"

#include <functional>
#include <memory>
#include <vector>

namespace llamac {

/// For a step of which the time alone matters.
inline absl::Status ignoreLogits(const LogitsRow &) { return absl::OkStatus(); }

/// Ids spread over a vocabulary, the same in every run.
std::vector<int32_t> spreadTokens(int64_t count, int64_t vocab);

/// A prompt in each sequence of a batch, and steps after it, as answers run.
class ModelRun {
public:
  ModelRun(Engine &engine, int64_t batch) : engine(engine), batch(batch) {}

  /// Once, before decode(). Errors: those of Engine::sample().
  absl::Status prefill(absl::Span<const int32_t> prompt);

  /// Runs as many steps as there are tokens: with tokens of its own where the
  /// plan chooses some, else with these.
  absl::Status decode(absl::Span<const int32_t> tokens);

private:
  /// A step of these tokens in each sequence, without sampling.
  absl::Status give(absl::Span<const int32_t> tokens);

  Engine &engine;
  int64_t batch;
  std::vector<Sequence> sequences;
  std::vector<Sampler> samplers;
  std::vector<int32_t> next; ///< The next token by sequence.
};

/// Seconds that `work` takes.
template <typename Work> absl::StatusOr<double> timed(Work work) {
  const double start = steadySeconds();
  LLAMAC_RETURN_IF_ERROR(work());
  return steadySeconds() - start;
}

/// Steps that are timed as one: where a device queues steps, enough to fill the
/// queue.
inline int64_t stepsOfTurn(const Model &model) {
  return model.samples() ? 16 : 1;
}

/// The end of some work, and whether its user wants one at once.
struct Deadline {
  double end;                        ///< On steadySeconds()'s clock.
  const std::function<bool()> &stop; ///< May be null; outlives it.

  bool isStopped() const { return stop && stop(); }
  /// Whether `needed` more seconds are too many.
  bool isOver(double needed = 0) const {
    return isStopped() || steadySeconds() + needed > end;
  }
  /// A deadline for a part of the time that is left.
  Deadline share(double part) const {
    const double now = steadySeconds();
    return {now + part * (end - now), stop};
  }
};

/// A step that makes the engine run one program: some sequences that have
/// `before` tokens each get `tokens` more.
struct StepPlan {
  int64_t sequences = 1;
  int64_t before = 0;
  int64_t tokens = 1;
};

/// Steps of program number `program`: whole tiles and ragged ones, with and
/// without a past, to compare variants; the last, of as many rows as the
/// program takes, to time them. None when the plan keeps too few sequences, or
/// has as many rows in the program before.
std::vector<StepPlan> stepsOf(const schema::PlanT &plan, size_t program);

/// Brings an engine to where a step would run its program.
class StepRunner final : public LaunchObserver {
public:
  /// For the steps of all programs of `model`.
  static absl::StatusOr<std::unique_ptr<StepRunner>>
  create(const std::shared_ptr<const Model> &model);

  /// Gives `work` the shape and memory of a step whose inputs, pages and
  /// earlier tokens are in place; tokens stay for the next step. At `until`,
  /// fewer tokens come before, which `step` then says.
  using Work = absl::FunctionRef<absl::Status(const StepShape &, StepMemory &)>;
  absl::Status run(StepPlan &step, Deadline until, Work work);

  const Engine &of() const { return *engine; }

  absl::Status before(const LaunchSite &site, StepMemory &memory) override;

private:
  std::unique_ptr<Engine> engine;
  std::vector<Sequence> sequences; ///< Go before the engine does.
  Work *pending = nullptr;         ///< For the step that runs.
};

} // namespace llamac

#endif // LLAMAC_ENGINE_TUNER_MODELRUN_H
