//===- BuildId.cpp - Which build of the compiler this is ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/BuildId.h"

#include "runtime/base/BuildId.h"

namespace llamac {

const std::string &compilerBuildId() {
  static const std::string id =
      buildIdAt(reinterpret_cast<const void *>(&compilerBuildId));
  return id;
}

} // namespace llamac
