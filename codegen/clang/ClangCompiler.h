//===- ClangCompiler.h - Clang and lld, in process --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_CLANG_CLANGCOMPILER_H
#define LLAMAC_CODEGEN_CLANG_CLANGCOMPILER_H

#include "codegen/SourceFile.h"

#include "absl/status/statusor.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace llamac {

/// A unit, and the arguments of cc1 that it has besides those of the job.
struct ClangUnit {
  SourceFile source;
  std::vector<std::string> args;
};

struct ClangJob {
  std::string what; ///< For messages: "an emitted cpu kernel".
  std::vector<KernelHeader> headers;
  std::vector<ClangUnit> units;
  std::vector<std::string> args;     ///< Arguments of cc1, for every unit.
  std::vector<std::string> linkArgs; ///< Arguments of the linker.
  /// Other things that decide the objects: options of LLVM itself.
  std::string settings = {};
};

/// Compiles C++ units for the host, in parallel, and links them to one ELF
/// shared object, whose bytes are the result. A unit sees the job's headers and
/// no other file. Errors are internal and hold Clang's messages.
///
/// Objects are cached (runtime/io/DiskCache.h) and used again for a unit that
/// would give the same.
absl::StatusOr<std::string> compileSharedObject(const ClangJob &job);

} // namespace llamac

#endif // LLAMAC_CODEGEN_CLANG_CLANGCOMPILER_H
