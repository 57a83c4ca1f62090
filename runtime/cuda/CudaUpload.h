//===- CudaUpload.h - Bytes on their way to a GPU ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CUDA_CUDAUPLOAD_H
#define LLAMAC_RUNTIME_CUDA_CUDAUPLOAD_H

#include "runtime/cuda/CudaDevice.h"

namespace llamac {

/// Three pieces of pinned memory in turn: the host fills one while those before
/// it are copied, on a stream of the upload's own. Memory that the device's
/// stream() still writes must not be uploaded to. `device` outlives the result.
absl::StatusOr<std::unique_ptr<Upload>> newCudaUpload(const CudaDevice &device,
                                                      uint64_t pieceBytes);

} // namespace llamac

#endif // LLAMAC_RUNTIME_CUDA_CUDAUPLOAD_H
