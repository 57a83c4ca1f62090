//===- BuildId.h - Which build of the compiler this is ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_BUILDID_H
#define LLAMAC_COMPILER_DRIVER_BUILDID_H

#include <string>

namespace llamac {

/// The id (runtime/base/BuildId.h) of the program or library which holds the
/// compiler, with the kernel headers that it embeds.
const std::string &compilerBuildId();

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_BUILDID_H
