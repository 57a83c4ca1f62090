//===- Tuner.h - Finds the fastest configs for a machine --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_TUNER_TUNER_H
#define LLAMAC_ENGINE_TUNER_TUNER_H

#include "engine/step/Model.h"
#include "runtime/tuned/Trials.h"
#include "runtime/tuned/TunedPlan.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace llamac {

struct TuneOptions {
  double budget = 60;     ///< Seconds, for all programs together.
  int64_t candidates = 8; ///< Candidates of a kernel beside its default, best
                          ///< first.
  const VariantCompiler *compiler = nullptr; ///< Null where none is needed.
  std::function<bool()> stop = nullptr; ///< Whether to end early; may be null.
  /// Told the current task; may be empty.
  std::function<void(const std::string &what)> progress = {};
};

/// Why a candidate was rejected that nobody looked at.
inline constexpr char outOfTime[] = "not tried: no time was left";

/// A config that was tried.
struct Candidate {
  std::string config = {};                              ///< Empty: default.
  KernelConfig kernel = {};                             ///< The config of a
                                                        ///< kernel.
  schema::Overlap overlap = schema::Overlap::FromStart; ///< The overlap of a
                                                        ///< program.
  std::string rejected = {}; ///< Why; empty: it is not.
};

/// The candidates of a kernel, or of a program as a whole.
struct Choice {
  std::string name = {};
  std::string tuning = {}; ///< See schema::Kernel and schema::Program.
  size_t number = 0;       ///< In the plan.
  std::vector<Candidate> candidates = {}; ///< The first is the default.
  size_t selected = 0;
  Trials trials = Trials(0); ///< Trials of launches, or steps.

  bool has(size_t candidate) const {
    return candidate < candidates.size() &&
           candidates[candidate].rejected.empty();
  }
};

struct ProgramResult {
  std::string skipped = {}; ///< Why nothing was tried; empty: it was.
  int64_t rows = 0;         ///< Rows of the timed steps.
  int64_t context = 0;      ///< Tokens of each sequence after them.
  /// Candidates for whole steps: the default, "tuned" with the selected configs
  /// of kernels, and these with other overlaps of launches.
  Choice step;
  std::vector<Choice> kernels = {}; ///< Kernels that have variants.
  /// Where a device queues steps: answers or prompts with the default configs
  /// and as tuned. A program that they do not show to be as fast as tuned has
  /// its defaults back.
  Choice asUsed = {};
  /// Else there was no time, and the store is unchanged.
  bool isDecided = false;
};

/// Tunes the programs of `model`, which was loaded without tunings, and keeps
/// each result in `store` once it is decided. A simulator's times are no GPU's:
/// variants for sim are compared and not timed. Errors: usage when a compiler
/// is needed and there is none; those of the device with the default configs,
/// and of the store.
absl::StatusOr<std::vector<ProgramResult>>
tuneModel(const std::shared_ptr<const Model> &model, const TuningStore &store,
          const TuneOptions &options);

} // namespace llamac

#endif // LLAMAC_ENGINE_TUNER_TUNER_H
