//===- chain.cuh - Launches that overlap ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From sm_90 on a launch may begin while the launches ahead of it are at work.
// It may then read weights, which nothing writes, and nothing else; and it may
// write nothing, since a launch ahead may still read what lies there. Behind
// waitForLaunches() all of them are done and what they wrote is visible.
//
// The wait is for the one launch ahead. That is enough: this one had to wait as
// well before it ended, and so on to the first. It is why every kernel of a
// chain waits, in every thread, even one that reads nothing of the others'.
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

/// Lets the next launch begin, once all blocks of this one have come here or
/// are done: then none of its blocks takes the place of one of these. The first
/// statement of a kernel; it may be compiled to let it begin later.
LLAMAC_DEVICE void letNextLaunchBegin() {
#if LLAMAC_HAS_SM90 && LLAMAC_OVERLAP == LLAMAC_FROM_START
  gridDependencyTrigger();
#endif
}

/// Waits until the launches ahead are done. Every thread comes here before it
/// touches activations or writes anything to global memory.
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
