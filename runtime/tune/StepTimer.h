//===- StepTimer.h - Times steps of a program -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_STEPTIMER_H
#define LLAMAC_RUNTIME_TUNE_STEPTIMER_H

#include "runtime/device/Device.h"
#include "runtime/plan/PlanReader.h"
#include "runtime/plan/plan_generated.h"

#include "absl/status/statusor.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

namespace llamac {

/// The launches of `program` that `layers` layers take, from where the first
/// layer touches its cache to where the layer behind the last one does: the
/// same work in every schedule. All launches where there are no more layers.
std::pair<size_t, size_t> launchesOfLayers(const schema::ProgramT &program,
                                           int64_t layers);

/// A program of a plan that is loaded for it, bound to an engine's memory.
struct BoundProgram {
  /// Program number `number` of `plan`. Errors: the device's.
  static absl::StatusOr<BoundProgram>
  load(Device &device, const std::shared_ptr<const PlanReader> &plan,
       size_t number, const ProgramBindings &bindings);

  std::unique_ptr<LoadedCode> code;
  std::unique_ptr<PreparedProgram> program;
};

/// Times one step of a program as different plans run it: all of a short step,
/// of one that takes long whole layers, as many as can be told apart.
class StepTimer {
public:
  /// For a step of `shape`, by how long `run` takes, which runs `program` of a
  /// model of `numLayers` layers. Errors: those of the device.
  static absl::StatusOr<StepTimer> create(PreparedProgram &run,
                                          const schema::ProgramT &program,
                                          int64_t numLayers,
                                          const StepShape &shape);

  /// The launches of `program` that are timed: from the first to before the
  /// second.
  std::pair<size_t, size_t> span(const schema::ProgramT &program) const;

  /// Runs what is timed; its seconds. `run` runs `program`.
  absl::StatusOr<double> time(PreparedProgram &run,
                              const schema::ProgramT &program) const;

  /// What create() saw time() take.
  double seconds() const { return took; }

private:
  explicit StepTimer(const StepShape &shape) : shape(shape) {}

  StepShape shape;
  std::optional<int64_t> layers = 1; ///< None: whole steps.
  double took = 0;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_STEPTIMER_H
