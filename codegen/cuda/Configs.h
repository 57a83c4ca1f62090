//===- Configs.h - What the kernels of an op are made with ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The config structs of codegen/device for an op: its shapes and formats, the
// sizes that the target chooses, and in their place those that the op's tiles
// name, by the names of the members.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_CONFIGS_H
#define LLAMAC_CODEGEN_CUDA_CONFIGS_H

#include "codegen/cuda/CudaTarget.h"

namespace llamac {

/// How a weight of an element type is packed; see config.h.
struct FormatRow {
  llvm::StringRef element;
  cuda::WeightFormat format;
  llvm::StringRef enumerator;
};

/// Of the element type of `weight`.
const FormatRow &formatRow(mlir::Value weight);

/// Whether the kernels take a matrix of the width of `weight`.
bool isPackable(mlir::Value weight);

/// Of a matrix.
int64_t rowsOf(mlir::Value weight);

/// Of a product, all of one shape; of query, key and value.
llvm::SmallVector<mlir::Value> weightsOf(kernel::MatmulOp op);
llvm::SmallVector<mlir::Value> weightsOf(kernel::QkvOp op);

/// Rows x weights x loads in flight of a warp with two outputs that no GPU
/// spills (the compile gate).
constexpr int maxUnrolledSums = 32;

/// Of the product with `weight`, or with `weights` of its shape.
cuda::GemvConfig gemvConfig(mlir::Value weight, size_t weights,
                            kernel::MatmulConfigAttr attr);
cuda::GemvMmaConfig gemvMmaConfig(mlir::Value weight, size_t weights,
                                  kernel::MatmulConfigAttr attr);
cuda::GemmConfig gemmConfig(mlir::Value weight, size_t weights,
                            kernel::MatmulConfigAttr attr);

/// The three as one launch.
cuda::QkvConfig<cuda::GemvConfig>
qkvGemvConfig(kernel::QkvOp op, const CudaTargetOptions &options);
cuda::QkvConfig<cuda::GemvMmaConfig>
qkvGemvMmaConfig(kernel::QkvOp op, const CudaTargetOptions &options);
cuda::QkvConfig<cuda::GemmConfig>
qkvGemmConfig(kernel::QkvOp op, const CudaTargetOptions &options);

/// Whether gemv's weights stream through shared memory: on sm_90a, those of
/// query, key and value when they are of one format, but where the tiles have
/// `stream` 0.
bool streams(kernel::MatmulOp op, const CudaTargetOptions &options);
bool streams(kernel::QkvOp op, const CudaTargetOptions &options);
cuda::StreamConfig streamConfig(kernel::MatmulOp op,
                                const CudaTargetOptions &options);
cuda::StreamConfig streamConfig(kernel::QkvOp op,
                                const CudaTargetOptions &options);

cuda::WgmmaConfig wgmmaConfig(kernel::MatmulOp op,
                              const CudaTargetOptions &options);
cuda::WgmmaConfig wgmmaConfig(kernel::QkvOp op,
                              const CudaTargetOptions &options);

cuda::AttentionConfig attentionConfigOf(kernel::AttentionOp op,
                                        const CudaTargetOptions &options);

/// On sm_90a, attention of many rows by wgmma.
bool attendsByWgmma(kernel::AttentionOp op, const CudaTargetOptions &options);

} // namespace llamac

#endif // LLAMAC_CODEGEN_CUDA_CONFIGS_H
