//===- WeightSections.h - Weights as sections of a plan ---------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_PLAN_WEIGHTSECTIONS_H
#define LLAMAC_CODEGEN_PLAN_WEIGHTSECTIONS_H

#include "codegen/plan/PlanBuilder.h"
#include "codegen/plan/PlanWriter.h"

namespace llamac {

/// Adds a section with `weight` in its type and layout, converted from
/// `source` by all cores; `onBytes` gets the size of every piece written.
absl::StatusOr<uint32_t>
addWeightSection(PlanWriter &writer, const schema::WeightT &weight,
                 const WeightMap &weights, const WeightSource &source,
                 const std::function<void(uint64_t)> &onBytes);

} // namespace llamac

#endif // LLAMAC_CODEGEN_PLAN_WEIGHTSECTIONS_H
