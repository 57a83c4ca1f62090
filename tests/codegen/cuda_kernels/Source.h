//===- Source.h - Kernels.cu for a model ------------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_DEVICE_SOURCE_H
#define LLAMAC_TESTS_CODEGEN_DEVICE_SOURCE_H

#include "Cases.h"

#include <string>

namespace llamac::cuda {

/// The text of a file of this folder.
std::string readFile(const std::string &name);

/// The members of `model`, as LLAMAC_MODEL wants them.
std::string modelLiteral(const ModelCase &model);

} // namespace llamac::cuda

#endif // LLAMAC_TESTS_CODEGEN_DEVICE_SOURCE_H
