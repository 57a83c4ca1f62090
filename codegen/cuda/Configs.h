//===- Configs.h - What the kernels of an op are made with ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The config structs of codegen/cuda/kernels for an op: its shapes and formats,
// the sizes that the target chooses, and in their place those that the op's
// tiles name, by the names of the members.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_CONFIGS_H
#define LLAMAC_CODEGEN_CUDA_CONFIGS_H

#include "codegen/KernelOps.h"
#include "codegen/cuda/CostModel.h"
#include "codegen/cuda/CudaTarget.h"
#include "runtime/packing/TilePacking.h"

namespace llamac {

/// The format and the element type that GPUs read `weight` in.
cuda::DeviceWeight deviceWeightOf(mlir::Value weight);

/// How rows of numbers, of a result or of the input of a product, are kept.
cuda::RowFormat rowFormatOf(mlir::Value rows);

/// Whether the kernels take a matrix of the width of `weight`.
bool isPackable(mlir::Value weight);

int64_t rowsOf(mlir::Value weight);

/// The matrices that `op`, a product or those of query, key and value,
/// multiplies its input by.
llvm::SmallVector<mlir::Value> weightsOf(mlir::Operation *op);

/// The config of `op`, a product or those of query, key and value.
kernel::MatmulConfigAttr matmulAttr(mlir::Operation *op);

/// Whether the kernel of `op` takes the squares of its input's rows: it has
/// products in bf16, all rows in one tile where blocks go from tile to tile,
/// and takes so little time that the launch of a norm counts.
bool takesSquares(mlir::Operation *op);

/// The parts of each row of its result of which the kernel of `op` gives the
/// squares for a norm that comes next; 0: it gives none.
int64_t squarePartsOf(mlir::Operation *op);

/// Rows x weights x chunks in flight of a warp with two outputs that no GPU
/// spills (the compile gate).
constexpr int maxUnrolledSums(cuda::WeightFormat format) {
  return cuda::groupScaleBytes(format) != 0 ? 8
         : cuda::hasScales(format)          ? 16
                                            : 32;
}

/// The config for the product with `weight`, or with `weights` of its shape.
cuda::GemvConfig gemvConfig(mlir::Value weight, size_t weights,
                            kernel::MatmulConfigAttr attr);

/// The configs of all parts of `op` (partsOf), which have their tiles in
/// common: the cost model chooses these for the most rows of the program.
llvm::SmallVector<cuda::GemmConfig, 3>
gemmConfigs(mlir::Operation *op, const CudaTargetOptions &options);

/// Whether a kernel has room for such tiles, and a slice for each split.
bool isLegalGemm(const cuda::GemmConfig &config, const GpuSpec &gpu);

/// The launch of the products of `op` by gemm(), and what decides its time.
cuda::LaunchShape gemmShape(mlir::Operation *op,
                            const CudaTargetOptions &options);
TileModel gemmModel(mlir::Operation *op, const CudaTargetOptions &options);

/// Matrices of `op`, a product or those of query, key and value, that share
/// its input: several that lie apart, or so many of the first one's shape.
std::pair<llvm::SmallVector<mlir::Value>, int> partsOf(mlir::Operation *op);

/// Why products of many rows with the weights of `op`, a product or those of
/// query, key and value, are not for wgmma; empty when they are: weights of one
/// format on a GPU that has it.
std::string whyNotWgmma(mlir::Operation *op, const CudaTargetOptions &options);

/// Why the gemv of `op` does not stream its weights through shared memory;
/// empty when it does: on sm_90a, those of query, key and value when they are
/// of one format, unless the tiles have `stream` 0.
std::string whyNotStreams(mlir::Operation *op,
                          const CudaTargetOptions &options);
bool streams(mlir::Operation *op, const CudaTargetOptions &options);
cuda::StreamConfig streamConfig(mlir::Operation *op,
                                const CudaTargetOptions &options);

/// Whether a launch of `op` lets the next one begin when those before it are
/// done, not as it begins itself. Products of few rows that do not stream have
/// nothing to do before then, so that launches of them in a row would fill a
/// GPU with blocks that wait: a tuner on an H100 found steps of two and four
/// rows 4.5 and 10 % faster so.
bool nextBeginsLate(mlir::Operation *op, const CudaTargetOptions &options);

cuda::WgmmaConfig wgmmaConfig(mlir::Operation *op,
                              const CudaTargetOptions &options);

/// The tiles, stages and blocks of a launch for at most `rows` rows that makes
/// the products of `outputs`, one number for each of at most three; each has
/// `weights` weights of `depth` in `format`.
cuda::WgmmaConfig chooseWgmmaTiles(cuda::WeightFormat format,
                                   llvm::ArrayRef<int64_t> outputs,
                                   int64_t depth, int weights, int64_t rows,
                                   const GpuSpec &gpu);

/// Whether the kernel takes such tiles: stages enough for a ring, and a
/// neighbour for each block of a cluster.
bool isLegalWgmma(const cuda::WgmmaConfig &config);

cuda::AttentionConfig attentionConfigOf(kernel::AttentionOp op,
                                        const CudaTargetOptions &options);

/// The config of split attention for at most `rows` rows has as many splits as
/// keep the GPU busy.
cuda::AttentionConfig splitAttentionConfig(kernel::AttentionOp op, int64_t rows,
                                           const CudaTargetOptions &options);

/// How many blocks of `shape` a multiprocessor has at a time, at least one,
/// where a thread wants `registers`, as far as the kernel's bounds leave it so
/// many.
int64_t occupancyOf(const cuda::LaunchShape &shape, int registers,
                    const GpuSpec &gpu);

/// Blocks of attention of `shape` that a multiprocessor has at a time, at least
/// one.
int64_t attentionOccupancy(const cuda::LaunchShape &shape, const GpuSpec &gpu);

/// The launch of `op`. Its blocks share the splits or the runs of all rows: as
/// many blocks as there are of these at most, or as run at a time.
cuda::LaunchShape attentionLaunch(kernel::AttentionOp op,
                                  const CudaTargetOptions &options);

/// On sm_90a, attention of many rows by wgmma.
bool attendsByWgmma(kernel::AttentionOp op, const CudaTargetOptions &options);

/// The model's view of `op` with the tiles that it has, which decides its time.
TileModel tileModelOf(mlir::Operation *op, const CudaTargetOptions &options);

} // namespace llamac

#endif // LLAMAC_CODEGEN_CUDA_CONFIGS_H
