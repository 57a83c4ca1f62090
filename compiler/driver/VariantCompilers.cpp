//===- VariantCompilers.cpp - Machine code for the tuner ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/VariantCompilers.h"

#include "codegen/cpu/CpuCompiler.h"
#include "codegen/cuda/CudaBackend.h"
#include "codegen/sim/SimCode.h"
#include "codegen/sim/SimCompiler.h"
#include "compiler/driver/KernelVariants.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

namespace llamac {

absl::StatusOr<std::string>
ClangVariantCompiler::compile(absl::Span<const KernelSource> kernels,
                              const std::string &target,
                              const std::string &isa) {
  if (target == "sim") {
    std::vector<SourceFile> files;
    for (const KernelSource &kernel : kernels)
      files.push_back({kernel.symbol + ".cu", kernel.text});
    return compileForSim(files, isa == simCheckedCode ? SimFlavour::Checked
                                                      : SimFlavour::Fast);
  }
  const std::optional<IsaLevel> level = parseIsaLevel(isa);
  if (!level)
    return internalError(absl::StrCat("code of the level ", isa, " runs"));
  std::vector<std::string> units;
  for (const KernelSource &kernel : kernels)
    units.push_back(kernel.text);
  return compileForCpu(units, *level);
}

std::string generatorOf(llvm::StringRef target) {
  if (target == "cpu")
    return generatorHash(kernelHeaders());
  if (target == "sim")
    return generatorHash(simHeaders());
  return generatorHash(CudaBackend({}).headers());
}

absl::Status checkGenerator(const std::string &path,
                            const schema::PlanT &plan) {
  const std::string own = generatorOf(plan.target);
  if (plan.generator == own)
    return absl::OkStatus();
  return badPlanError(
      absl::StrCat(path, ": generator: expected ", own, ", got ",
                   plan.generator.empty() ? "none" : plan.generator,
                   "; another llamac compiled the plan: compile it again"));
}

} // namespace llamac
