//===- CudaBackend.h - The cuda target for the driver -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_CUDABACKEND_H
#define LLAMAC_CODEGEN_CUDA_CUDABACKEND_H

#include "codegen/Backend.h"
#include "codegen/cuda/CudaTarget.h"

namespace llamac {

/// One .cu for each kernel, named after it.
class CudaBackend : public TargetBackend<CudaTarget> {
public:
  explicit CudaBackend(const CudaTargetOptions &options)
      : TargetBackend(CudaTarget(options)) {}

  absl::Status checkModel(const ModelConfig &config) const override;
  schema::WeightLayout matrixLayout() const override {
    return schema::WeightLayout::Tiles;
  }
  mlir::FailureOr<std::vector<SourceFile>>
  emit(llvm::ArrayRef<plan::KernelOp> kernels, const SourceEdit &edit,
       SourceLayout layout) const override;
  llvm::ArrayRef<KernelHeader> headers() const override;
  std::string planSource(const std::vector<SourceFile> &files) const override;
  SourceFile kernelSource(llvm::StringRef source,
                          llvm::StringRef symbol) const override;
  /// None: the runtime compiles the plan's source for the GPU that it finds.
  absl::StatusOr<std::vector<PlanCode>>
  compile(llvm::ArrayRef<plan::KernelOp> kernels,
          const SourceEdit &edit) const override;
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_CUDA_CUDABACKEND_H
