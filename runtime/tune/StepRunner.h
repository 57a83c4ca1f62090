//===- StepRunner.h - Steps by which a program is tuned ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_STEPRUNNER_H
#define LLAMAC_RUNTIME_TUNE_STEPRUNNER_H

#include "runtime/engine/Engine.h"

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
/// without a past, to show what variants compute; the last, with as many rows
/// as the program takes, to time them. None when the plan keeps too few
/// sequences.
std::vector<StepPlan> stepsOf(const schema::PlanT &plan, size_t program);

/// Brings an engine to where a step would run its program.
class StepRunner final : public LaunchObserver {
public:
  /// For the steps of all programs of `model`.
  static absl::StatusOr<std::unique_ptr<StepRunner>>
  create(const std::shared_ptr<const Model> &model);

  /// Gives `work` the step's shape and memory: inputs, pages and the tokens
  /// before are in place. Tokens stay for the next step. Those before that
  /// there is no time for until `isOver` are left out of `step`.
  using Work = absl::FunctionRef<absl::Status(const StepShape &, StepMemory &)>;
  absl::Status run(StepPlan &step, absl::FunctionRef<bool()> isOver, Work work);

  const Engine &of() const { return *engine; }

  absl::Status before(const LaunchSite &site, StepMemory &memory) override;
  absl::Status after(const LaunchSite &, StepMemory &) override {
    return absl::OkStatus();
  }

private:
  std::unique_ptr<Engine> engine;
  std::vector<Sequence> sequences; ///< Go before the engine does.
  Work *pending = nullptr;         ///< For the step that runs.
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_STEPRUNNER_H
