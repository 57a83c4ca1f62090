//===- LlvmErrors.h - LLVM's fatal errors in one line -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_LLAMAC_LLVMERRORS_H
#define LLAMAC_COMPILER_LLAMAC_LLVMERRORS_H

#include "runtime/base/FatalEvents.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/ErrorHandling.h"

namespace llamac {

/// For main(): what LLVM would abort for ends the tool as all else does.
inline void installLlvmErrorHandlers() {
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { endOutOfMemory(); });
  llvm::install_fatal_error_handler([](void *, const char *reason, bool) {
    // LLVM's streams end the process when they cannot be written.
    endProcess(llvm::StringRef(reason).starts_with("IO failure")
                   ? ExitCode::Memory
                   : ExitCode::Internal,
               reason);
  });
}

} // namespace llamac

#endif // LLAMAC_COMPILER_LLAMAC_LLVMERRORS_H
