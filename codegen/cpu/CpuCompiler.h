//===- CpuCompiler.h - Machine code of emitted cpu kernels ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CPU_CPUCOMPILER_H
#define LLAMAC_CODEGEN_CPU_CPUCOMPILER_H

#include "codegen/SourceFile.h"
#include "runtime/cpu/IsaLevel.h"

#include "absl/status/statusor.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace llamac {

/// Every header that an emitted unit can include.
llvm::ArrayRef<KernelHeader> kernelHeaders();

/// Compiles freestanding C++ units for `level`, in parallel, and links them to
/// one ELF shared object, whose bytes are the result. A unit may include the
/// kernel headers and nothing else. Errors are internal: what the emitter
/// writes must compile; the message holds Clang's first error.
absl::StatusOr<std::string> compileForCpu(llvm::ArrayRef<std::string> units,
                                          IsaLevel level);

} // namespace llamac

#endif // LLAMAC_CODEGEN_CPU_CPUCOMPILER_H
