//===- ProgramTuner.h - Tiles and way of one program ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_PROGRAMTUNER_H
#define LLAMAC_RUNTIME_TUNE_PROGRAMTUNER_H

#include "runtime/engine/Engine.h"
#include "runtime/engine/Model.h"
#include "runtime/tune/Gate.h"
#include "runtime/tune/StepTimer.h"
#include "runtime/tune/Trials.h"
#include "runtime/tune/TunedSteps.h"
#include "runtime/tune/Tuner.h"
#include "runtime/tune/WayChooser.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// Tunes one program: first its schedule, then the tiles of its kernels, then
/// how its launches overlap.
class ProgramTuner final : public LaunchObserver {
public:
  /// Of program number `program` of `model`, which was loaded without tunings,
  /// on `machine`. `first` is a StepRunner's; `deadline` is on
  /// steadySeconds()'s clock. The others are as in TuneOptions; all outlive the
  /// tuner.
  ProgramTuner(std::shared_ptr<const Model> model, size_t program,
               const TuneOptions &options, const MachineSpec &machine,
               ScheduleCompiler &schedules, CachedTokens &first,
               double deadline);

  /// Tunes, and keeps what is found in the options' store. Errors: those of the
  /// device with the plan's own kernels.
  absl::StatusOr<ProgramTuningResult> run();

  absl::Status before(const LaunchSite &site, StepMemory &memory) override;
  absl::Status after(const LaunchSite &, StepMemory &) override {
    return absl::OkStatus();
  }

private:
  enum class Phase { Idle, Gate, Trials };

  /// As the program runs, in the way that is chosen.
  const schema::PlanT &plan() const { return scheduled->plan(); }
  const schema::ProgramT &launches() const { return *plan().programs[program]; }

  /// For each kernel, by candidate, the seconds of a launch.
  using RoundTimes = std::vector<std::vector<std::optional<double>>>;

  bool isOver() const;
  void tell(const std::string &what) const;
  absl::Status takeSchedule();
  absl::Status chooseOverlap();
  absl::Status compileCandidates();
  absl::StatusOr<BoundProgram> makeSlate(absl::Span<const size_t> choice);
  absl::StatusOr<BoundProgram> makeSoundSlate(std::vector<size_t> &choice);
  absl::Status makeGateSlates();
  absl::Status gateCandidates();
  void takeCandidates();
  bool takeNeighbours();
  absl::Status runStep(const StepPlan &step, Phase during);
  std::optional<size_t> kernelOf(size_t launch) const;
  bool isGated(size_t launch) const;
  std::pair<size_t, size_t> launchesLeftOut() const;
  absl::Status gateStep(const StepShape &shape, StepMemory &memory);
  absl::Status gateLaunch(size_t number, const StepShape &shape,
                          StepMemory &memory);
  absl::Status measure(const StepShape &shape);
  absl::StatusOr<std::vector<double>> timeStep(const BoundProgram &slate,
                                               const StepShape &shape);
  absl::Status chooseTimedLaunches(const StepShape &shape);
  std::vector<std::vector<size_t>> roundCandidates() const;
  absl::StatusOr<std::optional<RoundTimes>>
  timeSlates(const StepShape &shape,
             const std::vector<std::vector<size_t>> &choices);
  absl::Status measureRound(const StepShape &shape);
  absl::Status confirm(const StepShape &shape);
  absl::Status measureWhole();
  void keep() const;

  std::shared_ptr<const Model> model; ///< Runs the program in its way.
  std::shared_ptr<const PlanReader>
      scheduled;      ///< The same, of no tiles chosen.
  std::string device; ///< What the choices are kept for.
  size_t program;
  const TuneOptions &options;
  MachineSpec machine;
  ScheduleCompiler &schedules;
  CachedTokens &first; ///< See StepRunner.
  std::unique_ptr<WayChooser> ways;
  double begin;    ///< On steadySeconds()'s clock.
  double deadline; ///< The same.
  StepPlan timed;
  std::vector<TunedKernel> kernels;
  // By kernel:
  std::vector<std::vector<Candidate>> further; ///< What may yet be tried.
  std::vector<size_t> ungated; ///< The first candidate not yet compared.
  std::vector<Trials> trials;
  std::mt19937 order; ///< Of candidates in a round.
  std::vector<size_t> picks;
  std::vector<size_t> earlier; ///< The picks of an earlier run.
  size_t turn = 0;
  bool hasMore = false; ///< Whether there are candidates yet to be compared.
  ProgramTuningResult result;

  std::unique_ptr<Engine> engine;
  std::optional<StepRunner> steps; ///< Of `engine`.
  Phase phase = Phase::Idle;
  /// For the gate; each of a plan with one candidate of every kernel.
  std::vector<BoundProgram> slates;
  std::optional<StepTimer> timer;
  std::vector<size_t> timedLaunches;
  /// While a launch is gated: the memory before it, behind the plan's own
  /// kernel, and behind a variant.
  LaunchMemory start, expected, got;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_PROGRAMTUNER_H
