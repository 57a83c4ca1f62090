//===- WayChooser.h - Chooses the way to run a program ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_WAYCHOOSER_H
#define LLAMAC_RUNTIME_TUNE_WAYCHOOSER_H

#include "runtime/tune/Tuner.h"
#include "runtime/tune/WayTrials.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

/// Chooses how one program runs: first by which schedule, then, when the tiles
/// of its kernels are chosen, how its launches overlap.
class WayChooser {
public:
  /// Of program number `program` of `model`, which was loaded without tunings,
  /// by steps of `timed`. `first` is a StepRunner's.
  WayChooser(std::shared_ptr<const Model> model, size_t program,
             const StepPlan &timed, const TuneOptions &options,
             ScheduleCompiler &schedules, CachedTokens &first);

  /// What was chosen by an earlier run is given up only for a schedule that is
  /// faster by more than noise. Takes until `end`, on steadySeconds()'s
  /// clock. Errors: those of the device with the plan's own way.
  absl::Status chooseSchedule(double end);

  /// The same for overlaps. Kernels are as `tiles` says, by their
  /// own symbols.
  absl::Status chooseOverlap(const std::map<std::string, KernelPick> &tiles,
                             double end);

  bool isOwn() const { return way == ProgramPick{}; }
  std::string name() const { return wayName(made(), way); }
  const std::vector<WayTuningResult> &results() const { return compared; }

  /// The plan with the program in the way that is chosen.
  absl::StatusOr<std::shared_ptr<const PlanReader>> plan() const {
    return model->planReader()->withSchedules(all(way));
  }

  /// By kernel of `plan`, which plan() gave, the code of those that the
  /// schedule brings.
  std::vector<KernelPick> kernelCode(const schema::PlanT &plan) const;

  /// Keeps what was measured in the options' store.
  void keep() const;

private:
  const schema::PlanT &made() const { return model->plan(); }
  std::vector<ProgramPick> all(const ProgramPick &of) const;
  absl::StatusOr<Way> wayOf(const ProgramPick &pick) const;
  absl::Status choose(const std::vector<ProgramPick> &picks,
                      std::vector<Way> &ways, double end);

  std::shared_ptr<const Model> model;
  size_t program;
  StepPlan timed;
  const TuneOptions &options;
  ScheduleCompiler &schedules;
  CachedTokens &first;
  std::string device;
  ProgramPick way;
  std::vector<WayTuningResult> compared;
  std::optional<TuningEntry> entry; ///< To be kept.
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_WAYCHOOSER_H
