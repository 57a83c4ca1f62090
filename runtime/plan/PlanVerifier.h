//===- PlanVerifier.h - Is a manifest fit to run? ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PLAN_PLANVERIFIER_H
#define LLAMAC_RUNTIME_PLAN_PLANVERIFIER_H

#include "runtime/plan/PlanFormat.h"
#include "runtime/plan/plan_generated.h"

#include "absl/status/status.h"

#include <vector>

namespace llamac {

/// Checks all that the runtime relies on in a manifest, given the sections
/// before it: hyperparameters, every index and extent, weights whose sizes fit
/// their shapes and sections, operands inside the arena, the constants and the
/// pool, products that do not overflow. The error, of the badPlan kind, is
/// `field: expected ..., got ...`.
absl::Status verifyPlan(const schema::PlanT &plan,
                        const std::vector<PlanSection> &sections);

} // namespace llamac

#endif // LLAMAC_RUNTIME_PLAN_PLANVERIFIER_H
