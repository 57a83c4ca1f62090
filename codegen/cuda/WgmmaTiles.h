//===- WgmmaTiles.h - Tiles of products on sm_90a ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_WGMMATILES_H
#define LLAMAC_CODEGEN_CUDA_WGMMATILES_H

#include "runtime/cuda/GpuSpec.h"

#include "llamac/config.h"

#include "llvm/ADT/ArrayRef.h"

namespace llamac {

/// The tiles, stages and blocks of a launch for at most `rows` rows that makes
/// the products of `outputs`, one number for each of at most three; each has
/// `weights` weights of `depth` in `format`.
cuda::WgmmaConfig chooseWgmmaTiles(cuda::WeightFormat format,
                                   llvm::ArrayRef<int64_t> outputs,
                                   int64_t depth, int weights, int64_t rows,
                                   const GpuSpec &gpu);

/// Gives `config` the stages that its panels leave room for, and the blocks
/// that its tiles of at most `rows` rows are dealt to.
void dealWgmmaTiles(cuda::WgmmaConfig &config, int64_t rows,
                    const GpuSpec &gpu);

/// Whether the kernel takes such tiles: stages enough for a ring, and a
/// neighbour for each block of a cluster.
bool isLegalWgmma(const cuda::WgmmaConfig &config);

} // namespace llamac

#endif // LLAMAC_CODEGEN_CUDA_WGMMATILES_H
