//===- ModelOptions.h - How a plan is loaded --------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_LOAD_MODELOPTIONS_H
#define LLAMAC_RUNTIME_LOAD_MODELOPTIONS_H

#include "runtime/load/Devices.h"

#include "absl/types/span.h"

#include <cstdint>
#include <optional>
#include <string>

namespace llamac {

class RankWorld;
class VariantCompiler;

struct ModelOptions {
  int threads = 0;      ///< 0: one on each physical core the process may use.
  std::string isa = {}; ///< See CpuDeviceOptions.
  int gpuIndex = 0;     ///< Which GPU runs a plan for cuda.
  /// The compiler's tools have more.
  absl::Span<const DeviceKind> devices = runtimeDevices();
  /// See parseSimSchedule(); empty for forward. For plans for sim only.
  std::string simSchedule = {};
  bool verify = true; ///< Whether all checksums of the plan are verified.
  /// Random weights by this seed in place of the plan's.
  std::optional<uint64_t> randomWeights = {};
  /// Sequences that the cache shall hold; 0 for as many as the plan was
  /// compiled for. With `fillsGpu`, of a plan for cuda as many as its largest
  /// program of decode takes.
  int64_t sequences = 0;
  bool fillsGpu = false;
  /// Whether sequences share as many pages of the cache as an engine decides
  /// (EngineOptions); else memory for all that they can use is reserved, and
  /// loading fails where it is not there.
  bool sharesPages = false;
  /// The plan of a smaller model that drafts answers; empty: none.
  std::string draft = {};
  bool isDraft = false; ///< Whether the plan is to draft for another one.
  bool quiet = false;   ///< Whether a terminal is shown no progress.
  /// Whether kernels have the configs of the tuning store, and the compiler of
  /// their variants for devices that compile no source; may be null.
  bool tuned = true;
  const VariantCompiler *compiler = nullptr;
  /// Where each rank is a process, that of this one; else null.
  RankWorld *ranks = nullptr;
  double rankTimeout = 60; ///< Seconds to wait for another process.
  /// Whether processes exchange by MPI even where they share memory.
  bool rankCopies = false;
  /// The model's name in messages; empty: the path of its plan.
  std::string name = {};
};

/// Has a model loaded for `parallel` sequences that share pages; 0 for
/// `hostParallel`, or on a GPU for as many as fill it.
void loadForSharing(int64_t parallel, int64_t hostParallel,
                    ModelOptions &loading);

} // namespace llamac

#endif // LLAMAC_RUNTIME_LOAD_MODELOPTIONS_H
