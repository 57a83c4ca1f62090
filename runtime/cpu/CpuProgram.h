//===- CpuProgram.h - A plan's launches on the host -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program is a list of launches in order. All threads walk the list
// together: each takes its share of a launch's work items, and they meet where
// a launch depends on what came before. The share is a fixed part of the items,
// so a thread finds the weights it read in the last step in its own cache.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_CPU_CPUPROGRAM_H
#define LLAMAC_RUNTIME_CPU_CPUPROGRAM_H

#include "runtime/cpu/CpuDevice.h"

namespace llamac {

/// Opens the best code object of `plan` for `device` and finds its kernels.
/// `device` outlives the result.
absl::StatusOr<std::unique_ptr<LoadedCode>>
loadCpuCode(CpuDevice &device, const std::shared_ptr<const PlanReader> &plan);

} // namespace llamac

#endif // LLAMAC_RUNTIME_CPU_CPUPROGRAM_H
