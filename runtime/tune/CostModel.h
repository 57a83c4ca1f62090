//===- CostModel.h - Seconds of a launch by its tiles -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A launch takes as long as the slowest of what it does: bringing its bytes
// from memory, reading from a shared cache what does not stay in a core's own,
// and computing. Tiles decide how often weights are read, how much of the input
// must stay in the core's cache, and how much is under way at a time.
//
// On a GPU blocks hide latency for each other: what is under way is that of all
// blocks at work, which by Little's law is bandwidth times latency or leaves
// bandwidth unused. Blocks that do not fill the last round of all
// multiprocessors leave some of them idle.
//
// The compiler ranks the tiles of a kernel by a machine of its kind, the tuner
// by what the machine at hand was measured to do. The model need not be right
// about seconds: it must put the best among the first few.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_COSTMODEL_H
#define LLAMAC_RUNTIME_TUNE_COSTMODEL_H

#include "runtime/plan/plan_generated.h"

#include "absl/strings/string_view.h"

#include <cstdint>

namespace llamac {

/// What decides how fast kernels run. A unit is a core, or a multiprocessor.
struct MachineSpec {
  double bandwidth = 0;       ///< Bytes a second from memory, all units.
  double operations = 0;      ///< In f32 a second, all units.
  double sharedBandwidth = 0; ///< Bytes a second from the cache they share.
  double latency = 0;         ///< Seconds until memory answers.
  int64_t unitBytes = 0;      ///< Of a unit's own cache.
  int64_t units = 1;
  double launchSeconds = 0; ///< That a launch takes at least.
  /// Of cpus: streams that a unit reads side by side without slowing down,
  /// which it fetches by itself where they are fewer than mostStreams, and the
  /// independent sums that keep it busy.
  static constexpr double mostStreams = 4;
  double readStreams = mostStreams;
  double busyChains = 2;
  /// Of GPUs: in bf16 a second on tensor cores, and bytes a second from shared
  /// memory, all units.
  double matrixOperations = 0;
  double localBandwidth = 0;
};

/// A machine as plans for `target` run on them, before any was measured.
MachineSpec nominalMachine(absl::string_view target, absl::string_view gpu);

/// A launch of a kernel with some tiles.
struct TiledLaunch {
  const schema::LaunchCost &cost;
  const schema::TileModel &model;
  int64_t items = 1;
};

/// The step that it is of: see LaunchCost in plan.fbs.
struct TunedStep {
  int64_t rows = 1;
  int64_t context = 1; ///< At least `rows`.
};

/// Which limit a launch is predicted to run into.
enum class Limit { Memory, SharedCache, Arithmetic, Launch };
absl::string_view limitName(Limit limit);

struct Prediction {
  double seconds = 0;
  Limit limit = Limit::Memory;
};

Prediction predict(const TiledLaunch &launch, const TunedStep &step,
                   const MachineSpec &machine);

/// Bytes that every launch of the step moves at least.
double leastBytes(const schema::LaunchCost &cost, const TunedStep &step);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_COSTMODEL_H
