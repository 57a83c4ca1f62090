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
#include "runtime/tuned/Trials.h"

#include <array>
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
  absl::Status decodeGiven(absl::Span<const int32_t> tokens);

  Engine &engine;
  int64_t batch;
  std::vector<Sequence> sequences;
  std::vector<Sampler> samplers;
  std::vector<int32_t> next; ///< By sequence.
};

/// Seconds that `work` takes.
template <typename Work> absl::StatusOr<double> timed(Work work) {
  const double start = steadySeconds();
  LLAMAC_RETURN_IF_ERROR(work());
  return steadySeconds() - start;
}

/// Adds a round to `trials`, of two: the seconds of `work(0)` and `work(1)`, of
/// which `work(first)` goes ahead.
template <typename Work>
absl::Status timeBoth(size_t first, Trials &trials, Work work) {
  std::array<std::optional<double>, 2> seconds;
  for (const size_t which : {first, 1 - first}) {
    LLAMAC_ASSIGN_OR_RETURN(seconds[which], timed([&] { return work(which); }));
  }
  trials.addRound(seconds);
  return absl::OkStatus();
}

/// Steps that are timed as one: where a device queues steps, enough to fill the
/// queue.
inline int64_t stepsOfTurn(const Model &model) {
  return model.samples() ? 16 : 1;
}

} // namespace llamac

#endif // LLAMAC_ENGINE_TUNER_MODELRUN_H
