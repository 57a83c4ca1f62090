//===- KernelOverride.h - Kernels that the user has edited ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A .cu file may replace one that was emitted when it computes the same:
// launched as the emitted one is, with random operands and a few rows, it gives
// what the reference gives, on the simulator. The whole grid runs, and then
// some blocks, the first and the last among them, with every access to memory
// checked, in two orders of threads.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_TRIAL_KERNELOVERRIDE_H
#define LLAMAC_COMPILER_TRIAL_KERNELOVERRIDE_H

#include "codegen/Backend.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace llamac {

/// The file `path`, of contents `text`, in the place of kernel `kernel`.
struct KernelOverride {
  std::string kernel;
  std::string path;
  std::string text;
};

/// Reads the file of a flag NAME=FILE. Usage error for another form, or when
/// the file cannot be read.
absl::StatusOr<KernelOverride> readOverride(const std::string &flag);

/// Puts `overrides` in the place of files of `sources`, which `backend` emitted
/// for the kernels of `plan` in a context of `context` tokens, and checks each.
/// Errors: usage for a kernel that the plan does not have, and for a file that
/// does not compile or does not define the kernel with its signature; accuracy
/// for one that faults or gives other results.
absl::Status applyOverrides(llvm::ArrayRef<KernelOverride> overrides,
                            mlir::ModuleOp plan, int64_t context,
                            const Backend &backend,
                            std::vector<SourceFile> &sources);

} // namespace llamac

#endif // LLAMAC_COMPILER_TRIAL_KERNELOVERRIDE_H
