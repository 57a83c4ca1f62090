//===- Bandwidth.h - What the memory of a GPU gives ----------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_GPU_BANDWIDTH_H
#define LLAMAC_TESTS_CONFORMANCE_GPU_BANDWIDTH_H

#include "runtime/cuda/CudaDevice.h"

namespace llamac::conformance {

struct Bandwidth {
  double readBytes = 0; ///< Each second.
  double copyBytes = 0; ///< Each second, read and written.
};

/// Reads and copies a buffer of `mebibytes`, many times the L2 cache if the
/// figures are to mean something: the median of five rounds of `passes`.
/// Accuracy error when what was read or copied is not what was there.
absl::StatusOr<Bandwidth>
measureBandwidth(const std::shared_ptr<CudaDevice> &device, int mebibytes,
                 int passes);

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_GPU_BANDWIDTH_H
