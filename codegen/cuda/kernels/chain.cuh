//===- chain.cuh - Programmatic dependent launch ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programmatic dependent launch: from sm_90 on a launch may begin before
// earlier launches end. Until waitForLaunches() it may read weights, which
// nothing writes, and write nothing; after it all earlier launches are complete
// and visible.
//
// The wait is for the previous launch alone, which waited as well before it
// ended. So every kernel waits, in every thread, even one that reads nothing of
// others.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_CHAIN_CUH
#define LLAMAC_CODEGEN_DEVICE_CHAIN_CUH

#include "llamac/ptx_sm90.cuh"

// When a kernel lets the next launch begin: the numbers of schema::Overlap in
// runtime/plan/plan.fbs. Whoever compiles the kernel may say so.
#define LLAMAC_FROM_START 0
#define LLAMAC_AFTER_WAIT 1
#define LLAMAC_AT_END 2
#ifndef LLAMAC_OVERLAP
#define LLAMAC_OVERLAP LLAMAC_FROM_START
#endif

namespace llamac::cuda {

/// Lets the next launch begin once all blocks of this one have come here or are
/// done, so that its blocks take no place of theirs. The first statement of a
/// kernel, or the one behind its wait; it may be compiled to let the next
/// launch begin later.
LLAMAC_DEVICE void letNextLaunchBegin() {
#if LLAMAC_HAS_SM90 && LLAMAC_OVERLAP == LLAMAC_FROM_START
  gridDependencyTrigger();
#endif
}

/// Waits until earlier launches are done. Every thread comes here before it
/// touches activations or writes to global memory.
LLAMAC_DEVICE void waitForLaunches() {
#if LLAMAC_HAS_SM90
  gridDependencyWait();
#if LLAMAC_OVERLAP == LLAMAC_AFTER_WAIT
  gridDependencyTrigger();
#endif
#endif
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_CHAIN_CUH
