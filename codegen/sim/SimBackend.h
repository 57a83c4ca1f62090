//===- SimBackend.h - The sim target for the driver -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cuda target's kernels, text for text, compiled for the simulator.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_SIM_SIMBACKEND_H
#define LLAMAC_CODEGEN_SIM_SIMBACKEND_H

#include "codegen/cuda/CudaBackend.h"
#include "codegen/sim/SimCompiler.h"

namespace llamac {

class SimBackend final : public CudaBackend {
public:
  SimBackend(const CudaTargetOptions &options, SimFlavour flavour)
      : CudaBackend(options), flavour(flavour) {}

  /// One code object, of the flavour.
  absl::StatusOr<std::vector<PlanCode>>
  compile(llvm::ArrayRef<plan::KernelOp> kernels,
          const SourceEdit &edit) const override;

private:
  SimFlavour flavour;
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_SIM_SIMBACKEND_H
