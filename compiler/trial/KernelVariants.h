//===- KernelVariants.h - Kernels with other tiles --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan holds for tuning, for each kernel, the configs that its target allows
// in place of the selected one, as source and geometry. Nothing of it is
// compiled until it is tried or run.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_COMPILER_TRIAL_KERNELVARIANTS_H
#define LLAMAC_COMPILER_TRIAL_KERNELVARIANTS_H

#include "codegen/Backend.h"
#include "runtime/tuned/TunedPlan.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace llamac {

/// The variants of the kernels of `plan`, which is to hold `contents`, best
/// first by the target's prediction, by the kernels' names; kernels in `fixed`
/// have none. Those that do not fit the device, or that need more memory than
/// the plan reserves, are left out.
llvm::StringMap<KernelTuning> listVariants(mlir::ModuleOp plan,
                                           const PlanContents &contents,
                                           const Backend &backend,
                                           llvm::ArrayRef<std::string> fixed);

/// The key of the choice of how the launches of `program` overlap: readable,
/// and exact by a hash. Empty where none can overlap.
std::string programTuning(plan::ProgramOp program);

/// The generator of plans for `target`: a hash of llamac's version and of the
/// headers that kernels include.
std::string generatorOf(llvm::StringRef target);

/// Compiles with Clang, for cpu and sim; objects are cached as those of plans
/// are.
class ClangVariantCompiler final : public VariantCompiler {
public:
  absl::Status check(const PlanReader &plan) const override;
  absl::StatusOr<std::string>
  compile(absl::Span<const schema::VariantT *const> variants,
          const std::string &target, const std::string &isa) const override;
};

} // namespace llamac

#endif // LLAMAC_COMPILER_TRIAL_KERNELVARIANTS_H
