//===- CompileLogs.h - What NVRTC says of kernels, cached -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The compile gates ask NVRTC for registers, spills and warnings of kernels
// that rarely change, and nvdisasm for their machine code: both texts of a
// kernel that compiled are cached beside objects (runtime/io/DiskCache.h).
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CODEGEN_COMPILELOGS_H
#define LLAMAC_TESTS_CODEGEN_COMPILELOGS_H

#include "runtime/cuda/Nvrtc.h"

namespace llamac {

/// The resources that ptxas reports for one kernel.
struct KernelResources {
  std::string name;
  int registers = 0;   ///< Registers of a thread.
  int sharedBytes = 0; ///< Declared in the source; dynamic memory not counted.
  int stackBytes = 0;
  int spillStoreBytes = 0;
  int spillLoadBytes = 0;
};

struct CompileLog {
  std::vector<KernelResources> kernels;
  /// Lines with a warning: NVRTC's own, and ptxas's, such as C7510.
  std::vector<std::string> warnings;
  std::string text; ///< All of it.
  std::string sass; ///< The machine code's text, where it was asked for.
};

/// Reads what NVRTC and, with `-v`, ptxas print.
CompileLog parseCompileLog(absl::string_view text);

enum class WantsSass : bool { No, Yes };

class CompileLogs {
public:
  /// The error is that of Nvrtc::open().
  static absl::StatusOr<CompileLogs> open();

  /// Errors: those of Nvrtc::compile() and disassemble().
  absl::StatusOr<CompileLog>
  compile(const CudaSource &source, const std::string &architecture,
          const std::vector<std::string> &options = {},
          WantsSass wantsSass = WantsSass::No) const;

private:
  explicit CompileLogs(Nvrtc nvrtc) : nvrtc(std::move(nvrtc)) {}

  Nvrtc nvrtc;
};

/// The fault of a kernel that compiled: warnings, and registers that are
/// spilled; empty when nothing is.
std::string complaintOf(const CompileLog &log);

} // namespace llamac

#endif // LLAMAC_TESTS_CODEGEN_COMPILELOGS_H
