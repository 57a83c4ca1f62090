//===- Resident.h - The kernel of a whole step ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The family of kernel.resident, on codegen/cuda/kernels/resident.cuh: each
// phase is a call of its skeleton, with the configs and functors that the same
// op has as a launch of its own.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_RESIDENT_H
#define LLAMAC_CODEGEN_CUDA_RESIDENT_H

#include "codegen/cuda/CudaTarget.h"

namespace llamac {

/// Products and attentions of `op`, one after the other.
int64_t residentPhases(kernel::ResidentOp op);

/// The members of its row in the list of families. Passes ask whyNotResident()
/// before they make such an op.
bool isResident(mlir::Operation *op);
cuda::LaunchShape residentShape(mlir::Operation *op,
                                const CudaTargetOptions &options);
CudaKernelText residentText(mlir::Operation *op,
                            const CudaTargetOptions &options);

} // namespace llamac

#endif // LLAMAC_CODEGEN_CUDA_RESIDENT_H
