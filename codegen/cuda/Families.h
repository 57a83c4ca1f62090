//===- Families.h - What the families share ------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CUDA_FAMILIES_H
#define LLAMAC_CODEGEN_CUDA_FAMILIES_H

#include "codegen/cuda/Configs.h"
#include "codegen/cuda/CudaTarget.h"

namespace llamac {

// Types of parameters.
inline constexpr const char *floats = "const float *";
inline constexpr const char *packed = "const void *";
inline constexpr const char *numbers = "const int *";
inline constexpr const char *results = "float *";

/// The kernels that take a row by itself: a part of cudaFamilies().
llvm::ArrayRef<CudaFamily> rowwiseFamilies();

} // namespace llamac

#endif // LLAMAC_CODEGEN_CUDA_FAMILIES_H
