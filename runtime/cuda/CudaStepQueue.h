//===- CudaStepQueue.h - Steps in flight on a GPU ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_CUDASTEPQUEUE_H
#define LLAMAC_RUNTIME_CUDA_CUDASTEPQUEUE_H

#include "runtime/cuda/CudaDevice.h"

namespace llamac {

/// A ring of `depth` places in pinned memory, `stepBytes` each: what a step
/// writes and fetches lies in its place until the step is taken, so that no
/// copy makes the host wait. An event behind each fetch tells when it is there.
/// All is ordered by the device's stream. `device` outlives the result.
absl::StatusOr<std::unique_ptr<StepQueue>>
newCudaStepQueue(const CudaDevice &device, int depth, uint64_t stepBytes);

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_CUDASTEPQUEUE_H
