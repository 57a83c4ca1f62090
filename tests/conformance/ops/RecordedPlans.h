//===- RecordedPlans.h - Plans kept for where no compiler is -- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_RECORDEDPLANS_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_RECORDEDPLANS_H

#include "tests/conformance/ops/PlanLibrary.h"

namespace llamac::conformance {

/// Writes the plan of every model of the cases to `folder`: MODEL.plan, and
/// MODEL.json with where its parts are, or with the error of a model that the
/// target does not take. Where `tests` names any, only what they need.
absl::Status recordPlans(PlanLibrary &library, const std::string &folder,
                         const std::vector<std::string> &tests);

/// The plans that recordPlans() wrote.
class RecordedPlans final : public PlanLibrary {
public:
  explicit RecordedPlans(std::string folder) : folder(std::move(folder)) {}

  absl::StatusOr<const MadePlan *>
  get(const Model &model, const std::vector<ProgramUse> &programs) override;

private:
  std::string folder;
  std::map<std::string, MadePlan> plans;
};

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_RECORDEDPLANS_H
