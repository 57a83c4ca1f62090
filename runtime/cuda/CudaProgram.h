//===- CudaProgram.h - A plan bound to a GPU --------------------*- C++ -*-===//
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

  /// The device has been entered.
  virtual absl::Status enqueue(const StepShape &shape) = 0;
};

/// Loads `images`, the machine code of the plan's kernels by number, for
/// `architecture`. `device` outlives the result.
absl::StatusOr<std::unique_ptr<LoadedCode>>
loadCudaCode(CudaDevice &device, std::shared_ptr<const PlanReader> plan,
             const std::vector<std::string> &images,
             const std::string &architecture);

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_CUDAPROGRAM_H
