//===- Driver.h - The CUDA driver -------------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// libcuda is opened at run time, so that one binary runs with a GPU and
// without.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_DRIVER_H
#define LLAMAC_RUNTIME_CUDA_DRIVER_H

#include "runtime/cuda/GpuSpec.h"

#include "absl/status/statusor.h"

#include <string>

namespace llamac {

/// The capability of the first GPU that the driver at `library` shows. An error
/// of kind Device says why there is none.
absl::StatusOr<ComputeCapability>
firstGpu(const std::string &library = "libcuda.so.1");

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_DRIVER_H
