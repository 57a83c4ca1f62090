//===- CpuBackend.h - The cpu target for the driver -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CPU_CPUBACKEND_H
#define LLAMAC_CODEGEN_CPU_CPUBACKEND_H

#include "codegen/Backend.h"
#include "codegen/cpu/CpuNumerics.h"
#include "codegen/cpu/CpuTarget.h"
#include "runtime/cpu/IsaLevel.h"

namespace llamac {

/// One unit, kernels.cpp, compiled in process by Clang for each level.
class CpuBackend : public Backend {
public:
  CpuBackend(const CpuTargetOptions &options, std::vector<IsaLevel> levels)
      : cpuTarget(options), cpuNumerics(options), levels(std::move(levels)) {}

  const kernel::Target &target() const override { return cpuTarget; }
  const kernel::TargetNumerics &numerics() const override {
    return cpuNumerics;
  }
  absl::Status checkModel(const ModelConfig &config) const override;
  schema::WeightLayout matrixLayout() const override {
    return schema::WeightLayout::Panel16;
  }
  schema::KvLayoutT kvLayout(llama::KVType kv) const override;
  mlir::FailureOr<std::vector<SourceFile>>
  emit(llvm::ArrayRef<plan::KernelOp> kernels, const SourceEdit &edit,
       SourceLayout layout) const override;
  llvm::ArrayRef<KernelHeader> headers() const override;
  SourceFile kernelSource(llvm::StringRef source,
                          llvm::StringRef symbol) const override;
  absl::StatusOr<std::vector<PlanCode>>
  compile(llvm::ArrayRef<plan::KernelOp> kernels,
          const SourceEdit &edit) const override;

private:
  mlir::FailureOr<std::string> emitUnit(llvm::ArrayRef<plan::KernelOp> kernels,
                                        const SourceEdit &edit) const;

  CpuTarget cpuTarget;
  CpuNumerics cpuNumerics;
  std::vector<IsaLevel> levels;
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_CPU_CPUBACKEND_H
