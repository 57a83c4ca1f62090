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

/// Whether this lane is the one that was chosen of the warp, all of whose lanes
/// come. The assembler knows that it is one alone, as it does not of a lane
/// that is found by its number: bulk copies then need no loop over lanes.
LLAMAC_DEVICE bool electLane() {
#ifdef LLAMAC_SIM
  syncWarp();
  return laneIndex() == 0;
#else
  LLAMAC_PTX_WARP(uint32_t, "r", ,
                  "{ .reg .pred p;\n"
                  "  elect.sync _|p, 0xffffffff;\n"
                  "  selp.u32 %0, 1, 0, p; }");
#endif
}

/// A barrier of `arrivals` arrivals a phase, in 8 aligned bytes of shared
/// memory. One thread sets it up; mbarrierInitFence() and a barrier of those
/// who use it follow.
LLAMAC_DEVICE void mbarrierInit(uint64_t *shared, uint32_t arrivals) {
  LLAMAC_PTX(llamacSim->mbarrierInit(shared, arrivals),
             "mbarrier.init.shared::cta.b64 [%0], %1;",
             "r"(sharedAddress(shared)), "r"(arrivals));
}

/// Makes mbarrierInit visible to the cluster and to bulk copies, which the same
/// thread may start without a barrier in between.
LLAMAC_DEVICE void mbarrierInitFence() {
  LLAMAC_PTX(, "fence.mbarrier_init.release.cluster;\n"
               "fence.proxy.async.shared::cta;");
}

LLAMAC_DEVICE void mbarrierArrive(uint64_t *shared) {
  LLAMAC_PTX(llamacSim->mbarrierArrive(shared, 0),
             "mbarrier.arrive.shared::cta.b64 _, [%0];",
             "r"(sharedAddress(shared)));
}

/// Arrives, and lets the phase last until `bytes` more bytes were copied.
LLAMAC_DEVICE void mbarrierArriveExpect(uint64_t *shared, uint32_t bytes) {
  LLAMAC_PTX(llamacSim->mbarrierArrive(shared, bytes),
             "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;",
             "r"(sharedAddress(shared)), "r"(bytes));
}

/// Whether the phase of parity `parity` is over: the first phase has parity 0,
/// and a new barrier counts as if the phase before it, of parity 1, were over.
LLAMAC_DEVICE bool mbarrierTryWait(uint64_t *shared, uint32_t parity) {
  LLAMAC_PTX_READ(uint32_t, "r", llamacSim->mbarrierTryWait(shared, parity),
                  "{ .reg .pred p;\n"
                  "  mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                  "  selp.u32 %0, 1, 0, p; }",
                  "r"(sharedAddress(shared)), "r"(parity));
}

LLAMAC_DEVICE void mbarrierWait(uint64_t *shared, uint32_t parity) {
  while (!mbarrierTryWait(shared, parity)) {
  }
}

/// Starts copying `bytes` bytes, a multiple of 16, both ends 16-byte aligned,
/// to shared memory; they count at `barrier` when they are there.
LLAMAC_DEVICE void bulkCopy(void *shared, const void *global, uint32_t bytes,
                            uint64_t *barrier) {
  LLAMAC_PTX(
      llamacSim->bulkCopy(shared, global, bytes, barrier),
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1], %2, [%3];",
      "r"(sharedAddress(shared)), "l"(global), "r"(bytes),
      "r"(sharedAddress(barrier)));
}

/// Asks L2 for `bytes` bytes, a multiple of 16, 16-byte aligned. A hint: reads
/// nothing, so it may come before waits.
LLAMAC_DEVICE void bulkPrefetch(const void *global, uint32_t bytes) {
  LLAMAC_PTX(llamacSim->bulkPrefetch(global, bytes),
             "cp.async.bulk.prefetch.L2.global [%0], %1;", "l"(global),
             "r"(bytes));
}

/// Orders the thread's ordinary writes to shared memory before bulk copies
/// there and products that read it, by threads that a later barrier orders
/// after it.
LLAMAC_DEVICE void fenceProxyAsync() {
  LLAMAC_PTX(llamacSim->fenceProxyAsync(), "fence.proxy.async.shared::cta;");
}

/// Programmatic dependent launch: waits for the launch before this one to be
/// complete and visible. Every thread of every kernel does so before it touches
/// what an earlier launch writes or writes anything.
LLAMAC_DEVICE void gridDependencyWait() {
  LLAMAC_PTX(llamacSim->gridDependencyWait(), "griddepcontrol.wait;");
}

LLAMAC_DEVICE void gridDependencyTrigger() {
  LLAMAC_PTX(, "griddepcontrol.launch_dependents;");
}

} // namespace llamac

#endif // LLAMAC_HAS_SM90

#endif // LLAMAC_CODEGEN_DEVICE_PTX_SM90_CUH
