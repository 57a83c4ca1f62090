//===- TunedPlan.cpp - A plan with what was tuned for it ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tuned/TunedPlan.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <vector>

namespace llamac {

VariantCompiler::~VariantCompiler() = default;

bool needsCompiler(const schema::PlanT &plan) { return plan.target != "cuda"; }

std::string overlapConfig(schema::Overlap overlap) {
  static constexpr const char *names[] = {"", "overlap=after-wait",
                                          "overlap=at-end", "overlap=none"};
  return names[static_cast<size_t>(overlap)];
}

absl::StatusOr<TunedEntries> tunedEntries(const schema::PlanT &plan,
                                          const std::string &identity,
                                          const TuningStore &store) {
  LLAMAC_ASSIGN_OR_RETURN(std::vector<TuningEntry> entries, store.entries());
  TunedEntries byKernel;
  for (TuningEntry &entry : entries)
    if (entry.device == identity && entry.generator == plan.generator)
      byKernel[entry.kernel] = std::move(entry);
  return byKernel;
}

absl::StatusOr<std::shared_ptr<const PlanReader>>
tunedPlan(const std::shared_ptr<const PlanReader> &plan, Device &device,
          const std::string &identity, const TuningStore &store,
          const VariantCompiler *compiler) {
  const schema::PlanT &manifest = plan->plan();
  LLAMAC_ASSIGN_OR_RETURN(const TunedEntries tuned,
                          tunedEntries(manifest, identity, store));
  const auto configOf = [&](const std::string &tuning) {
    const auto entry = tuned.find(tuning);
    return entry == tuned.end() ? std::string() : entry->second.config;
  };
  // A config that the plan does not have is ignored.
  SelectedConfigs selected;
  std::vector<const schema::VariantT *> variants;
  for (const auto &kernel : manifest.kernels) {
    KernelConfig &config = selected.kernels.emplace_back();
    for (size_t i = 0; i < kernel->variants.size(); ++i)
      if (kernel->variants[i]->tiles == configOf(kernel->tuning)) {
        config.variant = i;
        variants.push_back(kernel->variants[i].get());
      }
  }
  bool overlaps = false;
  for (const auto &program : manifest.programs) {
    schema::Overlap &used = selected.overlaps.emplace_back();
    for (const schema::Overlap overlap : schema::EnumValuesOverlap())
      if (overlapConfig(overlap) == configOf(program->tuning))
        used = overlap;
    overlaps |= used != schema::Overlap::FromStart;
  }
  if (variants.empty() && !overlaps)
    return nullptr;
  if (!variants.empty() && needsCompiler(manifest)) {
    if (!compiler)
      return unsupportedError(absl::StrCat(
          plan->path(), ": tuned configs of ", variants.size(),
          " kernels need a compiler, which llamac has and llamac-run has not"));
    LLAMAC_RETURN_IF_ERROR(compiler->check(*plan));
    LLAMAC_ASSIGN_OR_RETURN(const auto code, device.loadCode(plan));
    LLAMAC_ASSIGN_OR_RETURN(
        std::string object,
        compiler->compile(variants, manifest.target, code->isa()));
    const auto shared = std::make_shared<const std::string>(std::move(object));
    for (KernelConfig &config : selected.kernels)
      if (config.variant)
        config.code = shared;
  }
  return plan->withConfigs(selected);
}

} // namespace llamac
