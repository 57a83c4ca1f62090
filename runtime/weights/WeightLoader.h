//===- WeightLoader.h - Weights to where kernels read them ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_WEIGHTS_WEIGHTLOADER_H
#define LLAMAC_RUNTIME_WEIGHTS_WEIGHTLOADER_H

#include "runtime/base/Progress.h"
#include "runtime/device/Device.h"

#include <memory>
#include <optional>
#include <vector>

namespace llamac {

/// Whether `plan` has weights, in itself or in a checkpoint.
bool hasWeights(const schema::PlanT &plan);

struct WeightOptions {
  /// Random weights by this seed (runtime/weights/RandomWeights.h) in place of
  /// the plan's.
  std::optional<uint64_t> randomSeed = {};
  Progress *progress = nullptr; ///< May be null.
  int64_t rank = 0;             ///< Whose parts the device takes.
};

/// The weights of `plan` by number: embedded ones are used from the plan's map
/// where the device can, which must outlive them, else copied; others are read
/// from the checkpoint, converted and packed. Host threads, as many as the
/// device's, fill one piece while others are copied. Errors: usage for a plan
/// without weights and no seed; badPlan for a size that does not fit its layout
/// or a source file that has changed; unsupported for a format without random
/// weights; memory; the device's.
absl::StatusOr<std::vector<std::unique_ptr<Buffer>>>
loadWeights(const PlanReader &plan, Device &device,
            const WeightOptions &options = {});

} // namespace llamac

#endif // LLAMAC_RUNTIME_WEIGHTS_WEIGHTLOADER_H
