//===- PlanJson.h - Programs and their memory as JSON -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_DRIVER_PLANJSON_H
#define LLAMAC_COMPILER_DRIVER_PLANJSON_H

#include "ir/plan/Plan.h"

#include "mlir/IR/BuiltinOps.h"
#include <nlohmann/json.hpp>

#include <string>

namespace llamac {

/// The arena of `program`, memory placed: `arena`, its bytes; `without_reuse`,
/// the sum of its buffers; `lower_bound`, the most bytes live in one barrier
/// interval; and `buffers` in the order of first use, each with the launch that
/// makes it, its place, its bytes (rounded up to whole cache lines) and the
/// first and last interval in which it is live.
nlohmann::ordered_json arenaJson(plan::ProgramOp program);

/// Name, family and roles of every plan.kernel of `module`.
nlohmann::ordered_json kernelsJson(mlir::ModuleOp module);

/// All that a plan says of `module`, in the plan dialect with memory placed:
/// `kernels`, and `programs` with their launches in order.
nlohmann::ordered_json planJson(mlir::ModuleOp module);

} // namespace llamac

#endif // LLAMAC_COMPILER_DRIVER_PLANJSON_H
