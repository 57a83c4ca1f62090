//===- DryRun.h - What a plan would need, before there is one ---*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whether a model fits a device, and how fast it would be there. The model is
// compiled as far as its launches and its memory, without weights and kernels,
// so that the bytes are those that the runtime takes.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_DRYRUN_H
#define LLAMAC_COMPILER_DRIVER_DRYRUN_H

#include "compiler/driver/Compiler.h"
#include "runtime/load/MemoryNeeds.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// The memory of a device.
struct DeviceFacts {
  std::string name;
  uint64_t memoryBytes = 0;
  double bandwidth = 0; ///< Bytes a second.
  std::string bandwidthFrom;
  double decodeShare = 0; ///< The share of the bandwidth that decode reaches.
  std::string shareFrom;
  double collectiveSeconds = 0; ///< Seconds of a collective of a decoding
                                ///< step's size.
  std::string collectiveFrom;
};

/// The GPU that `name`, a product's or an architecture's, says; null for
/// another name.
std::optional<DeviceFacts> gpuFacts(const std::string &name);

/// This machine, whose bandwidth is measured, which takes half a second.
/// Errors: those of readBandwidth().
absl::StatusOr<DeviceFacts> hostFacts();

/// A step that decodes one token for each of some sequences, all of which have
/// as many tokens as the context allows.
struct DecodeStep {
  int64_t sequences = 0;
  LaunchTotals totals;     ///< Totals of all launches of a rank.
  int64_t collectives = 0; ///< Launches for which the ranks wait.
};

/// A model, which may be a configuration alone, and its options, which are
/// resolved.
struct DryRunModel {
  Checkpoint checkpoint;
  CompileOptions options;
};

struct DryRun {
  MemoryNeeds memory; ///< Memory of a rank.
  MemoryNeeds draft;  ///< Memory of the draft model, if there is one.
  std::vector<DecodeStep> decode; ///< Decode of one sequence and of all.
  /// The most tokens of a sequence, up to the model's own, for which the device
  /// has the memory, in whole pages; 0 where the plan does not fit.
  int64_t largestContext = 0;
  /// Advice where it does not fit: "compile with -c 4096, which would fit". On
  /// a GPU also the smallest number of ranks that would too, of those that are
  /// a power of two times what was asked for.
  std::string advice;

  uint64_t total() const { return memory.total() + draft.total(); }
  bool fits(const DeviceFacts &device) const {
    return total() <= device.memoryBytes;
  }
};

/// Estimates a run on `device` of the first of `models`, for which the second,
/// if there is one, drafts; options for one of them are for both. Errors: those
/// of Compilation.
absl::StatusOr<DryRun> dryRun(absl::Span<const DryRunModel> models,
                              const DeviceFacts &device);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_DRYRUN_H
