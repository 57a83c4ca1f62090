//===- Candidates.h - Tiles that a kernel may have --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_CANDIDATES_H
#define LLAMAC_CODEGEN_CUDA_CANDIDATES_H

#include "codegen/Tiles.h"
#include "codegen/cuda/CostModel.h"
#include "codegen/cuda/CudaTarget.h"

namespace llamac {

/// The tiles that `op` may have in the place of its own, each of which makes a
/// kernel of its own: members of the structs of config.h, and `stream`, 0 for
/// gemv without a ring. They fit the GPU and its registers. None for an op
/// without a config.
std::vector<Tiles> candidatesOf(mlir::Operation *op,
                                const CudaTargetOptions &options);

/// What decides the time of `op` with the tiles that it has.
TileModel tileModelOf(mlir::Operation *op, const CudaTargetOptions &options);

} // namespace llamac

#endif // LLAMAC_CODEGEN_CUDA_CANDIDATES_H
