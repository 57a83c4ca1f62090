//===- SourceFile.h - Source text of and for kernels ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_SOURCEFILE_H
#define LLAMAC_CODEGEN_SOURCEFILE_H

#include "runtime/plan/SourceBundle.h"

#include "llvm/ADT/StringRef.h"

namespace llamac {

/// A header that emitted source includes, named as it is included.
struct KernelHeader {
  // Their lengths are known without counting, which has a limit in a constant.
  llvm::StringLiteral name;
  llvm::StringLiteral text;
};

} // namespace llamac

#endif // LLAMAC_CODEGEN_SOURCEFILE_H
