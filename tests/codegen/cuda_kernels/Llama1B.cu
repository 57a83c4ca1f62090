//===- Llama1B.cu - The kernels of Llama 3.2 1B, for nvcc -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#define LLAMAC_MODEL                                                           \
  WeightFormat::Q4_1, KvFormat::F16, 2048, 32, 8, 64, 8192, 128256, 1, 16384, 64

#include "Kernels.cu"
