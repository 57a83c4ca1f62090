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
#include "codegen/cpu/CpuTarget.h"
#include "runtime/cpu/IsaLevel.h"

namespace llamac {

llvm::ArrayRef<KernelHeader> kernelHeaders();

/// Compiles freestanding C++ units for `level`, in parallel, and links them to
/// one ELF shared object, whose bytes are the result. A unit may include the
/// kernel headers and nothing else. Errors are internal: what the emitter
/// writes must compile; the message holds Clang's first error.
absl::StatusOr<std::string> compileForCpu(llvm::ArrayRef<std::string> units,
                                          IsaLevel level);

/// Writes the C++ unit that defines `kernels`: the headers of their families,
/// then each kernel under a comment with its role. Fails, with a diagnostic,
/// when an epilogue holds an op with no rendering.
mlir::FailureOr<std::string> emitCpuUnit(llvm::ArrayRef<plan::KernelOp> kernels,
                                         const CpuTargetOptions &options);

/// One unit, kernels.cpp, compiled in process by Clang for each level.
class CpuBackend : public TargetBackend<CpuTarget> {
public:
  CpuBackend(const CpuTargetOptions &options, std::vector<IsaLevel> levels)
      : TargetBackend(CpuTarget(options)), levels(std::move(levels)) {}

  absl::Status checkModel(const ModelConfig &config) const override;
  schema::WeightLayout matrixLayout() const override {
    return schema::WeightLayout::Panel16;
  }
  mlir::FailureOr<std::vector<SourceFile>>
  emit(llvm::ArrayRef<plan::KernelOp> kernels, const SourceEdit &edit,
       SourceLayout layout) const override;
  llvm::ArrayRef<KernelHeader> headers() const override {
    return kernelHeaders();
  }
  SourceFile kernelSource(llvm::StringRef source,
                          llvm::StringRef symbol) const override;
  absl::StatusOr<std::vector<PlanCode>>
  compile(llvm::ArrayRef<plan::KernelOp> kernels,
          const SourceEdit &edit) const override;

private:
  mlir::FailureOr<std::string> emitUnit(llvm::ArrayRef<plan::KernelOp> kernels,
                                        const SourceEdit &edit) const;

  std::vector<IsaLevel> levels;
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_CPU_CPUBACKEND_H
