//===- ptx_sm90.cuh - Instructions of sm_90 and later -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Barriers in shared memory that count bytes, bulk copies that arrive at them,
// and dependent launches. A kernel asks LLAMAC_HAS_SM90 before it uses them.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_PTX_SM90_CUH
#define LLAMAC_CODEGEN_DEVICE_PTX_SM90_CUH

#include "llamac/ptx.cuh"

#if LLAMAC_HAS_SM90

namespace llamac {

/// A barrier of `arrivals` arrivals a phase, in 8 aligned bytes of shared
/// memory. One thread sets it up; a fence and a barrier of the block follow.
LLAMAC_DEVICE void mbarrierInit(uint64_t *shared, uint32_t arrivals) {
#ifdef LLAMAC_SIM
  llamacSim->mbarrierInit(shared, arrivals);
#else
  asm volatile(
      "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sharedAddress(shared)),
      "r"(arrivals)
      : "memory");
#endif
}

/// Makes mbarrierInit visible to bulk copies.
LLAMAC_DEVICE void mbarrierInitFence() {
#ifndef LLAMAC_SIM
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

LLAMAC_DEVICE void mbarrierArrive(uint64_t *shared) {
#ifdef LLAMAC_SIM
  llamacSim->mbarrierArrive(shared, 0);
#else
  asm volatile(
      "mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(sharedAddress(shared))
      : "memory");
#endif
}

/// Arrives, and lets the phase last until `bytes` more bytes were copied.
LLAMAC_DEVICE void mbarrierArriveExpect(uint64_t *shared, uint32_t bytes) {
#ifdef LLAMAC_SIM
  llamacSim->mbarrierArrive(shared, bytes);
#else
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   sharedAddress(shared)),
               "r"(bytes)
               : "memory");
#endif
}

/// Whether the phase of parity `parity` is over: the first phase has parity 0,
/// and a new barrier counts as if the phase before it, of parity 1, were over.
LLAMAC_DEVICE bool mbarrierTryWait(uint64_t *shared, uint32_t parity) {
#ifdef LLAMAC_SIM
  return llamacSim->mbarrierTryWait(shared, parity);
#else
  uint32_t done;
  asm volatile("{ .reg .pred p;\n"
               "  mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
               "  selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(sharedAddress(shared)), "r"(parity)
               : "memory");
  return done != 0;
#endif
}

/// Waits until the phase of parity `parity` is over.
LLAMAC_DEVICE void mbarrierWait(uint64_t *shared, uint32_t parity) {
  while (!mbarrierTryWait(shared, parity)) {
  }
}

/// Starts copying `bytes` bytes, a multiple of 16, both ends 16-byte aligned,
/// to shared memory; they count at `barrier` when they are there.
LLAMAC_DEVICE void bulkCopy(void *shared, const void *global, uint32_t bytes,
                            uint64_t *barrier) {
#ifdef LLAMAC_SIM
  llamacSim->bulkCopy(shared, global, bytes, barrier);
#else
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];" ::"r"(sharedAddress(shared)),
      "l"(global), "r"(bytes), "r"(sharedAddress(barrier))
      : "memory");
#endif
}

/// Orders the thread's ordinary writes to shared memory before later bulk
/// copies there and products that read it, of whatever threads a barrier orders
/// behind the fence.
LLAMAC_DEVICE void fenceProxyAsync() {
#ifdef LLAMAC_SIM
  llamacSim->fenceProxyAsync();
#else
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/// Waits for the launch before this one to be complete and visible. Every
/// kernel of a chain of dependent launches does so, in every thread, before it
/// touches what an earlier launch writes or writes anything.
LLAMAC_DEVICE void gridDependencyWait() {
#ifdef LLAMAC_SIM
  llamacSim->gridDependencyWait();
#else
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets the next launch of the chain begin.
LLAMAC_DEVICE void gridDependencyTrigger() {
#ifndef LLAMAC_SIM
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

} // namespace llamac

#endif // LLAMAC_HAS_SM90

#endif // LLAMAC_CODEGEN_DEVICE_PTX_SM90_CUH
