//===- CompiledPlans.h - Plans that the compiler makes -------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_COMPILEDPLANS_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_COMPILEDPLANS_H

#include "compiler/driver/Compiler.h"
#include "tests/TemporaryFolder.h"
#include "tests/conformance/ops/PlanLibrary.h"

namespace llamac::conformance {

/// Plans compiled as users' plans are, by the target's passes, its backend and
/// the writer of plan files, each when it is first asked for.
class CompiledPlans final : public PlanLibrary {
public:
  /// The models decide the context and the format of the cache.
  explicit CompiledPlans(CompileOptions options)
      : options(std::move(options)) {}

  absl::StatusOr<const MadePlan *>
  get(const Model &model, const std::vector<ProgramUse> &programs) override;

private:
  CompileOptions options;
  TemporaryFolder folder;
  std::map<std::string, absl::StatusOr<std::unique_ptr<MadePlan>>> plans;
};

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_COMPILEDPLANS_H
