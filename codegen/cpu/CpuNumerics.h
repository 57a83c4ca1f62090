//===- CpuNumerics.h - How exact the cpu target's kernels are ---*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CPU_CPUNUMERICS_H
#define LLAMAC_CODEGEN_CPU_CPUNUMERICS_H

#include "codegen/cpu/CpuTarget.h"
#include "ir/kernel/TargetNumerics.h"

namespace llamac {

class CpuNumerics final : public kernel::TargetNumerics {
public:
  explicit CpuNumerics(const CpuTargetOptions &options)
      : targetOptions(options) {}

  double tolerance(mlir::Operation *op, unsigned result) const override;
  void readKv(llama::KVType kv, const uint8_t *page, int64_t token, float *key,
              float *value) const override;
  void writeKv(llama::KVType kv, const float *key, const float *value,
               int64_t token, uint8_t *page) const override;

private:
  CpuTargetOptions targetOptions;
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_CPU_CPUNUMERICS_H
