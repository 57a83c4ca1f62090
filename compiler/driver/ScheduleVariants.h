//===- ScheduleVariants.h - Other ways to run a step ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a plan holds for the tuner beside other tiles: the same programs, made
// without one of the passes that fuse. Kernels that the plan has as well are
// shared; nothing of the others is compiled until somebody tunes.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_SCHEDULEVARIANTS_H
#define LLAMAC_COMPILER_DRIVER_SCHEDULEVARIANTS_H

#include "codegen/Backend.h"
#include "compiler/driver/Compiler.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace llamac {

/// The other schedules of `plan`, which is to hold `contents` and was made with
/// `options` from `unfused`, the graph as Phase::Graph leaves it. Programs that
/// come out as in the plan are left out, and schedules that have no other. A
/// schedule is left out, too, when a pass fails or the target has no kernel for
/// one of its ops.
std::vector<PlanSchedule> listSchedules(mlir::ModuleOp unfused,
                                        mlir::ModuleOp plan,
                                        const PlanContents &contents,
                                        const CompileOptions &options,
                                        const Backend &backend);

/// By program of `plan`: what it computes and in which ways, readable, and by a
/// hash of all of it, exact.
llvm::StringMap<std::string>
programTuning(mlir::ModuleOp plan, const std::vector<PlanSchedule> &schedules);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_SCHEDULEVARIANTS_H
