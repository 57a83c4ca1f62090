//===- PlanLibrary.h - Plans of programs ---------------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_PLANLIBRARY_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_PLANLIBRARY_H

#include "tests/conformance/ops/OpDevice.h"

namespace llamac::conformance {

/// A plan file and where its parts are.
struct MadePlan {
  /// Where the inputs of a program lie in its arena, by name.
  using Places = std::map<std::string, uint64_t>;

  std::string path;
  std::map<std::string, Places> inputs;        ///< Inputs by the plan's
                                               ///< program.
  std::map<std::string, std::string> programs; ///< The one it was made from.
};

/// The plans of a target, one for each model.
class PlanLibrary {
public:
  virtual ~PlanLibrary() = default;

  /// The plan of `programs`, all of `model`; the error is the compiler's.
  virtual absl::StatusOr<const MadePlan *>
  get(const Model &model, const std::vector<ProgramUse> &programs) = 0;
};

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_PLANLIBRARY_H
