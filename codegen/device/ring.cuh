//===- ring.cuh - Stages that are filled in turn ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_RING_CUH
#define LLAMAC_CODEGEN_DEVICE_RING_CUH

#include "llamac/types.cuh"

namespace llamac::cuda {

/// Which stage of a ring is next, and the parity of its round. Who fills a
/// stage waits for the round before, whose parity is the other.
template <int stages> struct RingPlace {
  int stage = 0;
  uint32_t phase = 0;

  LLAMAC_DEVICE void advance() {
    if (++stage == stages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_RING_CUH
