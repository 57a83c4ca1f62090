//===- BuildId.h - Which build of llamac this is ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_BASE_BUILDID_H
#define LLAMAC_RUNTIME_BASE_BUILDID_H

#include <string>

namespace llamac {

/// 16 hexadecimal digits of the code and constants of the program or library
/// that `address` lies in: equal for two processes exactly when they run the
/// same build, wherever its file lies. Empty outside all of them.
std::string buildIdAt(const void *address);

} // namespace llamac

#endif // LLAMAC_RUNTIME_BASE_BUILDID_H
