//===- CompiledPlans.h - Plans that the compiler makes -------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CONFORMANCE_OPS_COMPILEDPLANS_H
#define LLAMAC_TESTS_CONFORMANCE_OPS_COMPILEDPLANS_H

#include "codegen/Backend.h"
#include "codegen/cuda/CudaTarget.h"
#include "tests/TemporaryFolder.h"
#include "tests/conformance/ops/PlanLibrary.h"

namespace llamac::conformance {

/// What the cuda target, and sim, compile for `model`.
CudaTargetOptions cudaOptionsOf(const Model &model);

/// Plans compiled as users' plans are, by the target's passes, its backend and
/// the writer of plan files, each when it is first asked for.
class CompiledPlans final : public PlanLibrary {
public:
  using MakeBackend =
      std::function<std::unique_ptr<Backend>(const Model &model)>;

  /// `target` is what the plans say they are for.
  CompiledPlans(std::string target, MakeBackend backend)
      : target(std::move(target)), backend(std::move(backend)) {}

  absl::StatusOr<const MadePlan *>
  get(const Model &model, const std::vector<ProgramUse> &programs) override;

private:
  std::string target;
  MakeBackend backend;
  TemporaryFolder folder;
  std::map<std::string, absl::StatusOr<std::unique_ptr<MadePlan>>> plans;
};

} // namespace llamac::conformance

#endif // LLAMAC_TESTS_CONFORMANCE_OPS_COMPILEDPLANS_H
