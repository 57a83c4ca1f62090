//===- KernelAbi.h - How the runtime calls a cpu kernel ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled by both sides: the runtime, and the freestanding unit that holds a
// plan's kernels. No header may be included here.
//
// A launch has a number of independent work items, by the kernel's geometry and
// the step's row count. The runtime partitions [0, items) into ranges and calls
// the kernel for each, on any thread and in any order; a kernel gives the same
// bits for any partition. A thread's calls for one launch are consecutive, so
// the scratch keeps its contents between them.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CPU_KERNELABI_H
#define LLAMAC_RUNTIME_CPU_KERNELABI_H

namespace llamac {

/// The arguments of one call of a kernel.
struct CpuLaunch {
  void *const *args; ///< One pointer per operand of the launch, in its order.
  long rows;         ///< Rows of the launch in this step (M).
  long begin, end;   ///< The work items of this call.
  void *scratch;     ///< This thread's own memory, 64-byte aligned.
  /// The last row block of this thread's last call for the launch; -1 in the
  /// first.
  long lastBlock;
};

using CpuKernel = void (*)(const CpuLaunch *);

} // namespace llamac

#endif // LLAMAC_RUNTIME_CPU_KERNELABI_H
