//===- CudaProgram.h - Programs, uploads and steps of a GPU -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_CUDAPROGRAM_H
#define LLAMAC_RUNTIME_CUDA_CUDAPROGRAM_H

#include "runtime/cuda/CudaDevice.h"

namespace llamac {

/// A program whose steps a stream is given without waiting for them.
class CudaSteps : public PreparedProgram {
public:
  using PreparedProgram::PreparedProgram;

  /// Queues the steps of a StepQueue::run(). The device has been entered.
  virtual absl::Status enqueue(const StepShape &shape, int steps) = 0;

  /// `status`, of its steps or what came after them. A fault of resident ones
  /// is told with the kernel and what to do next, and kept by the device.
  virtual absl::Status explain(absl::Status status) const = 0;
};

/// Three pieces of pinned memory in turn: the host fills one while those before
/// it are copied, on a stream of the upload's own. Memory that the device's
/// stream() still writes must not be uploaded to. `device` outlives the result.
absl::StatusOr<std::unique_ptr<Upload>> newCudaUpload(const CudaDevice &device,
                                                      uint64_t pieceBytes);

/// A ring of `depth` slots in pinned memory, `runBytes` each: what a run
/// writes and fetches lies in its slot until the run is taken, so that no copy
/// makes the host wait. An event behind each fetch tells when it is there. The
/// device's stream orders all of it. `device` outlives the result.
absl::StatusOr<std::unique_ptr<StepQueue>>
newCudaStepQueue(const CudaDevice &device, int depth, uint64_t runBytes);

/// Loads `images`, the machine code of the plan's kernels by number, for
/// `architecture`. `device` outlives the result.
absl::StatusOr<std::unique_ptr<LoadedCode>>
loadCudaCode(CudaDevice &device, std::shared_ptr<const PlanReader> plan,
             const std::vector<std::string> &images,
             const std::string &architecture);

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_CUDAPROGRAM_H
