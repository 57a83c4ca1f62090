//===- SimBackend.cpp - The sim target for the driver ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/sim/SimBackend.h"

#include "runtime/base/Status.h"
#include "simulator/SimCode.h"

using namespace mlir;

namespace llamac {

absl::StatusOr<std::vector<PlanCode>>
SimBackend::compile(ArrayRef<plan::KernelOp> kernels,
                    const SourceEdit &edit) const {
  // Checks of a kernel name lines of the source as people see it.
  FailureOr<std::vector<SourceFile>> files =
      emit(kernels, edit, SourceLayout::Formatted);
  if (failed(files))
    return internalError("a kernel that was emitted is so no more");
  LLAMAC_ASSIGN_OR_RETURN(
      std::string object,
      compileForSim(files.value_or(std::vector<SourceFile>()), flavour));
  return std::vector<PlanCode>{
      {std::string(simCodeName(flavour)), std::move(object)}};
}

} // namespace llamac
