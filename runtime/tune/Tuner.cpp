//===- Tuner.cpp - Finds the tiles for the machine at hand ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Tuner.h"

#include "runtime/base/Status.h"
#include "runtime/tune/ProgramTuner.h"
#include "runtime/tune/Trials.h"
#include "runtime/tune/TunedSteps.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace llamac {

absl::StatusOr<std::vector<ProgramTuningResult>>
tuneModel(const std::shared_ptr<const Model> &model,
          const TuneOptions &options) {
  const double start = steadySeconds();
  const schema::PlanT &plan = model->plan();
  if (needsCode(plan.target) && !options.compiler)
    return usageError(absl::StrCat(
        model->path(),
        ": expected a plan for cuda, whose kernels are compiled "
        "at load, got one for ",
        plan.target, "; llamac tune, which has a compiler, tunes it"));
  const MachineSpec machine = machineOf(model->device(), plan, options.store);
  ScheduleCompiler schedules(*model, options.compiler);
  if (options.store)
    schedules.takeStored(*options.store);
  if (options.triesWays) {
    if (options.progress)
      options.progress("compiling other schedules");
    schedules.compileRest(options.stop);
  }
  // The rest is for loading the plan, and for the end of the last step.
  constexpr double shareOfTuning = 0.97;
  const double budget = shareOfTuning * options.budget;
  const size_t count = plan.programs.size();
  CachedTokens first;
  if (plan.target != "sim") { // Whose steps are not timed.
    constexpr double shareOfFirst = 0.25;
    if (options.progress)
      options.progress("computing what steps begin with");
    const double end = start + shareOfFirst * budget;
    LLAMAC_ASSIGN_OR_RETURN(
        first,
        computeFirst(model, std::min(timedContext, plan.context - 1), [&] {
          return options.isStopped() || steadySeconds() > end;
        }));
  }
  std::vector<ProgramTuningResult> results;
  for (size_t program = 0; program < count; ++program) {
    if (options.isStopped())
      break;
    // What the programs before did not take is shared by those that follow. The
    // last one's steps, of many rows, take longest.
    constexpr size_t sharesOfLast = 2;
    const double left = budget - (steadySeconds() - start);
    const double deadline =
        steadySeconds() +
        (program + 1 == count
             ? left
             : left / static_cast<double>(count - program - 1 + sharesOfLast));
    LLAMAC_ASSIGN_OR_RETURN(results.emplace_back(),
                            ProgramTuner(model, program, options, machine,
                                         schedules, first, deadline)
                                .run());
  }
  return results;
}

} // namespace llamac
