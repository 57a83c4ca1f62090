//===- CudaModule.h - CUDA source compiled for a GPU ---------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_WRAPPERS_CUDAMODULE_H
#define LLAMAC_TESTS_CONFORMANCE_WRAPPERS_CUDAMODULE_H

#include "runtime/cuda/CudaDevice.h"
#include "runtime/plan/SourceBundle.h"

namespace llamac::conformance {

/// The kernels of one source, compiled by NVRTC and loaded.
class CudaModule {
public:
  /// `source` may include the device headers.
  static absl::StatusOr<std::shared_ptr<const CudaModule>>
  compile(std::shared_ptr<CudaDevice> device, const SourceFile &source);
  CudaModule(const CudaModule &) = delete;
  CudaModule &operator=(const CudaModule &) = delete;
  ~CudaModule();

  CudaDevice &device() const { return *gpu; }

  /// Null when there is none of that name.
  cuda::Function find(const std::string &kernel) const;

private:
  explicit CudaModule(std::shared_ptr<CudaDevice> device)
      : gpu(std::move(device)) {}

  std::shared_ptr<CudaDevice> gpu;
  cuda::Module module = nullptr;
};

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_WRAPPERS_CUDAMODULE_H
