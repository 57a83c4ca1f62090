//===- SassRules.h - What kernels' machine code keeps to --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_CUDA_SASSRULES_H
#define LLAMAC_TESTS_CODEGEN_CUDA_SASSRULES_H

#include "tests/codegen/Sass.h"

namespace llamac {

/// The rules that `kernel` breaks, a line for each; empty when nothing. Its
/// family is read off its name, the rows of a product off its source.
std::string brokenSassRules(const std::string &kernel,
                            const std::string &source, const Sass &sass);

/// Instructions for each weight that a lane multiplies, in the loop that
/// multiplies; 0 where the kernel has none, or is not of a family with a bound.
double instructionsPerWeight(const std::string &kernel,
                             const std::string &source, const Sass &sass);

} // namespace llamac

#endif // LLAMAC_TESTS_CODEGEN_CUDA_SASSRULES_H
