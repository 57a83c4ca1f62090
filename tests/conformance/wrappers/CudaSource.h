//===- CudaSource.h - CUDA source on a GPU -------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_WRAPPERS_CUDASOURCE_H
#define LLAMAC_TESTS_CONFORMANCE_WRAPPERS_CUDASOURCE_H

#include "runtime/cuda/CudaDevice.h"
#include "tests/conformance/wrappers/SourceDevice.h"

namespace llamac::conformance {

/// A GPU; NVRTC compiles for it.
SourceDeviceRow cudaSourceRow(const std::shared_ptr<CudaDevice> &device);

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_WRAPPERS_CUDASOURCE_H
