//===- CpuProgram.h - A plan's launches on the host -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All threads walk the list of a program's launches together: each takes its
// share of a launch's work items, with a barrier where a launch depends on
// those before.
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
