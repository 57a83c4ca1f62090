//===- CudaNumerics.h - How exact the cuda kernels are ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Also what the sim target's are, which runs the same source.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_CUDANUMERICS_H
#define LLAMAC_CODEGEN_CUDA_CUDANUMERICS_H

#include "codegen/cuda/CudaTarget.h"
#include "ir/kernel/TargetNumerics.h"

namespace llamac {

class CudaNumerics final : public kernel::TargetNumerics {
public:
  explicit CudaNumerics(const CudaTargetOptions &options)
      : targetOptions(options) {}

  double tolerance(mlir::Operation *op, unsigned result) const override;
  void readKv(llama::KVType kv, const uint8_t *page, int64_t token, float *key,
              float *value) const override;
  void writeKv(llama::KVType kv, const float *key, const float *value,
               int64_t token, uint8_t *page) const override;

private:
  CudaTargetOptions targetOptions;
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_CUDA_CUDANUMERICS_H
