//===- StepRunner.h - Steps that run a given program ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_TUNER_STEPRUNNER_H
#define LLAMAC_ENGINE_TUNER_STEPRUNNER_H

#include "engine/step/Engine.h"

#include "absl/functional/function_ref.h"

#include <memory>
#include <vector>

namespace llamac {

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
  /// earlier tokens are in place; tokens stay for the next step. When `isOver`,
  /// fewer tokens come before, which `step` then says.
  using Work = absl::FunctionRef<absl::Status(const StepShape &, StepMemory &)>;
  absl::Status run(StepPlan &step, absl::FunctionRef<bool()> isOver, Work work);

  const Engine &of() const { return *engine; }

  absl::Status before(const LaunchSite &site, StepMemory &memory) override;

private:
  std::unique_ptr<Engine> engine;
  std::vector<Sequence> sequences; ///< Go before the engine does.
  Work *pending = nullptr;         ///< For the step that runs.
};

} // namespace llamac

#endif // LLAMAC_ENGINE_TUNER_STEPRUNNER_H
