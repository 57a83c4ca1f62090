//===- WeightLoader.h - Weights to where kernels read them ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_WEIGHTLOADER_H
#define LLAMAC_RUNTIME_ENGINE_WEIGHTLOADER_H

#include "runtime/device/Device.h"

#include <memory>
#include <vector>

namespace llamac {

/// The weights of `plan` by number: embedded ones are used from the plan's
/// map, which must outlive them; others are read from the checkpoint, converted
/// and packed by the device's number of threads. Errors: badPlan for a size
/// that does not fit its layout or a source file that has changed; memory.
absl::StatusOr<std::vector<std::unique_ptr<Buffer>>>
loadWeights(const PlanReader &plan, Device &device);

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_WEIGHTLOADER_H
