//===- PlanConfig.h - Hyperparameters in the plan's schema ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Model hyperparameters and element types, from the plan's schema to the rest
// of the program and back.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PLAN_PLANCONFIG_H
#define LLAMAC_RUNTIME_PLAN_PLANCONFIG_H

#include "runtime/base/DataType.h"
#include "runtime/base/ModelConfig.h"
#include "runtime/plan/plan_generated.h"

#include <memory>

namespace llamac {

std::unique_ptr<schema::ModelConfigT> toPlan(const ModelConfig &config);
ModelConfig fromPlan(const schema::ModelConfigT &config);

schema::DataType toPlan(DataType type);
DataType fromPlan(schema::DataType type);

/// Bytes of a weight in its layout; its shape is one that the layout packs and
/// its row-major size has been checked.
uint64_t packedBytes(const schema::WeightT &weight);

} // namespace llamac

#endif // LLAMAC_RUNTIME_PLAN_PLANCONFIG_H
