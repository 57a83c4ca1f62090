//===- Tuner.h - Finds the tiles for the machine at hand --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each program of a plan, from that of one row on:
//
//  1. the plan's other schedules are compared with its own in whole steps
//     (WayTrials.h); what follows is of the one that is chosen;
//  2. the kernels' variants that the model ranks best are compiled;
//  3. each runs beside the plan's own kernel, from the same memory, in steps of
//     several shapes: one that gives something else is out (Gate.h);
//  4. whole steps run, in each of which every kernel has another of its
//     candidates, round by round (Trials.h): launches are timed where they
//     stand, with caches as the launches before them leave them and the weights
//     of all layers going by;
//  5. while there is time, what differs from a pick in one tile is next;
//  6. new picks are measured once more, alone, beside what they replace;
//  7. steps with all picks together, or of long ones whole layers, are compared
//     with steps without: a program that is not faster as a whole keeps its own
//     tiles;
//  8. on a GPU, how launches overlap is compared in whole steps with the picks;
//  9. the picks are kept.
//
// Candidate number k of all kernels together make a slate: the plan with these
// variants, loaded and bound to the engine's memory.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_TUNER_H
#define LLAMAC_RUNTIME_TUNE_TUNER_H

#include "runtime/engine/Model.h"
#include "runtime/tune/Candidates.h"
#include "runtime/tune/KernelCode.h"
#include "runtime/tune/ProgramWays.h"
#include "runtime/tune/Trials.h"

#include "absl/types/span.h"

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

/// Why a candidate that there was no time for is out.
inline constexpr const char *outOfTime = "not tried: no time was left";

struct TuneOptions {
  double budget = 60; ///< Seconds, for all programs together.
  /// Of a kernel, beside its own, in a turn: in the first one the best by the
  /// model, then what differs in one tile from the fastest so far.
  size_t candidates = 6;
  size_t turns = 4;
  /// Whether other ways to run a program are tried, beside other tiles.
  bool triesWays = true;
  /// May be null where none is needed.
  VariantCompiler *compiler = nullptr;
  /// Where picks are kept; may be null.
  TuningStore *store = nullptr;
  /// Set when it is to end soon with what it has; may be null.
  const std::atomic<bool> *stop = nullptr;
  bool isStopped() const { return stop && *stop; }
  /// Told what is being done; may be empty.
  std::function<void(const std::string &what)> progress;
};

/// What was found for one kernel.
struct KernelTuningResult {
  std::string kernel; ///< The plan's name of it.
  std::vector<Candidate> candidates;
  /// By candidate, of a launch in the mean; 0 for one that was not measured.
  std::vector<double> seconds;
  /// By candidate: its time by that of the plan's own in the same rounds; all 0
  /// for one that was not measured.
  std::vector<Trials::Ratio> ratios;
  size_t pick = 0;
  std::optional<size_t> runnerUp;
  double ratio = 1; ///< Time with the pick by that of the plan's own.
  double noise = 0; ///< Least difference of it from 1 that means anything.
};

/// A way to run a program that was compared with others.
struct WayTuningResult {
  std::string way;      ///< See ProgramWays.h; empty: the plan's own.
  double seconds = 0;   ///< Of what was timed; 0: it was not.
  double ratio = 0;     ///< By the plan's own in the same rounds; 0: the same.
  std::string rejected; ///< Why it is out; empty: it is not.
};

struct ProgramTuningResult {
  std::string program;
  TunedStep step;
  /// First the plan's own schedule and the others, then the overlaps of the one
  /// that was chosen.
  std::vector<WayTuningResult> ways;
  std::string way; ///< That was chosen; empty: the plan's own.
  std::vector<KernelTuningResult> kernels;
  /// Time of a step with the picks, by that of one without; 0: not measured.
  double wholeRatio = 0;
  bool kept = false;   ///< Whether the picks were kept.
  std::string skipped; ///< Why nothing was tried; empty: it was.
};

/// Tunes the kernels of `model`, which was loaded without tunings. On a
/// simulator, whose times are no GPU's, nothing is timed or kept. Errors: usage
/// when code is needed and there is no compiler; those of the device.
absl::StatusOr<std::vector<ProgramTuningResult>>
tuneModel(const std::shared_ptr<const Model> &model,
          const TuneOptions &options);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_TUNER_H
