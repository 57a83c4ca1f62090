//===- arrivals.cuh - The last of several blocks ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks that share a result store their parts, and the last one to finish
// merges them. No block waits for another.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_ARRIVALS_CUH
#define LLAMAC_CODEGEN_DEVICE_ARRIVALS_CUH

#include "llamac/ptx.cuh"

namespace llamac::cuda {

/// Whether the block is the last of `arrivals` that count themselves at
/// `counter`: its threads then see what all of these stored before. No block
/// waits, so they need not be resident together. The counter is 0 before the
/// first and after the last. Called by all threads that sync() is a barrier of;
/// one of them `counts`.
template <class Sync>
LLAMAC_DEVICE bool arrivesLast(uint32_t *counter, uint32_t arrivals,
                               bool counts, const Sync &sync) {
  LLAMAC_SHARED(isLast, bool[1]);
  // The barrier puts the block's stores before the one thread's release, and
  // the second one its acquire before the block's loads.
  sync();
  if (counts) {
    isLast[0] = atomicAddAcqRel(counter, 1) == arrivals - 1;
    if (isLast[0])
      storeRelease(counter, 0);
  }
  sync();
  return isLast[0];
}

/// arrivesLast() called by all threads of the block.
LLAMAC_DEVICE bool arrivesLast(uint32_t *counter, uint32_t arrivals) {
  return arrivesLast(counter, arrivals, threadIdx.x == 0,
                     [] { syncThreads(); });
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_ARRIVALS_CUH
