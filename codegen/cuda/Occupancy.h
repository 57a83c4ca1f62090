//===- Occupancy.h - What fits on a multiprocessor together -----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A multiprocessor has four parts, each with a quarter of the registers, and
// a block's warps go to them in turn. It gives registers to a warp in units of
// 256, and shared memory to a block in units of 128 bytes, 1,024 more than the
// block asked for. So it is from sm_80 on, by the tables of the CUDA
// programming guide.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_OCCUPANCY_H
#define LLAMAC_CODEGEN_CUDA_OCCUPANCY_H

#include "runtime/cuda/GpuSpec.h"

#include "absl/types/span.h"

namespace llamac {

/// The resources that a block of a kernel takes.
struct BlockResources {
  int registers = 0; ///< Registers of a thread.
  int threads = 0;
  int sharedBytes = 0; ///< Static and dynamic.
};

/// Whether one block of each kernel, all at once, has room on a multiprocessor.
bool fitTogether(const GpuSpec &gpu, absl::Span<const BlockResources> blocks);

/// How many blocks of one kernel have; 0 when not even one has.
int residentBlocks(const GpuSpec &gpu, const BlockResources &block);

} // namespace llamac

#endif // LLAMAC_CODEGEN_CUDA_OCCUPANCY_H
