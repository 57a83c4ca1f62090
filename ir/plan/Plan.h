//===- Plan.h - Programs of launches on memory ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_IR_PLAN_PLAN_H
#define LLAMAC_IR_PLAN_PLAN_H

#include "ir/kernel/Target.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/plan/PlanDialect.h.inc"
#include "ir/plan/PlanEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/plan/PlanAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/plan/PlanTypes.h.inc"

#define GET_OP_CLASSES
#include "ir/plan/PlanOps.h.inc"

#endif // LLAMAC_IR_PLAN_PLAN_H
