//===- WayTrials.h - Which way to run a program is fastest ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ways are compared in whole steps, in turn, round by round: what a launch
// gains by beginning early, or loses to the work of the one before it, no
// launch shows alone. Of steps that take long whole layers do (StepTimer.h).
//
// A way is out when it gives other logits than the plan's own, or leaves
// something else in the cache, in steps of several shapes.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_WAYTRIALS_H
#define LLAMAC_RUNTIME_TUNE_WAYTRIALS_H

#include "runtime/engine/Model.h"
#include "runtime/tune/Trials.h"
#include "runtime/tune/TunedSteps.h"

#include "absl/functional/function_ref.h"

#include <memory>
#include <string>
#include <vector>

namespace llamac {

/// A way to run a program.
struct Way {
  std::string name = {};
  std::shared_ptr<const PlanReader> plan = {}; ///< That runs it so.
  double tolerance = 0;                        ///< See schema::Schedule.
  std::string rejected = {}; ///< Why it is out; empty: it is not.
};

struct WayTrialOptions {
  std::vector<StepPlan> gateSteps;
  StepPlan timed;
  size_t kept = 0;      ///< The way that was chosen before.
  bool measures = true; ///< Whether times mean anything on the device.
  CachedTokens &first;  ///< See StepRunner.
  absl::FunctionRef<bool()> isOver;
  absl::FunctionRef<void(const std::string &what)> tell;
};

struct WayTrialResult {
  Trials trials;
  size_t pick = 0;
};

/// Compares `ways` to run program number `program` of `model`, of which the
/// first is the plan's own. One that is out says why. Errors: those of the
/// device with the first.
absl::StatusOr<WayTrialResult>
tryWays(const std::shared_ptr<const Model> &model, size_t program,
        std::vector<Way> &ways, const WayTrialOptions &options);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_WAYTRIALS_H
