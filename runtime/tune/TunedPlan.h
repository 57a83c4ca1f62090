//===- TunedPlan.h - A plan with what was tuned for it ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_TUNEDPLAN_H
#define LLAMAC_RUNTIME_TUNE_TUNEDPLAN_H

#include "runtime/device/Device.h"
#include "runtime/plan/PlanReader.h"
#include "runtime/tune/TuningStore.h"

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <map>
#include <memory>
#include <string>

namespace llamac {

/// Compiles variants of kernels, for devices that do not compile source.
class VariantCompiler {
public:
  virtual ~VariantCompiler();

  /// Bad-plan error when variants of `plan` may not compile or work here.
  virtual absl::Status check(const PlanReader &plan) const = 0;

  /// One ELF shared object that defines the symbols of `variants`, of a plan
  /// for `target`, for the level `isa` that the plan's code runs at. What was
  /// compiled before takes milliseconds. Called by several threads.
  virtual absl::StatusOr<std::string>
  compile(absl::Span<const schema::VariantT *const> variants,
          const std::string &target, const std::string &isa) const = 0;
};

/// Whether that is so for `plan`.
bool needsCompiler(const schema::PlanT &plan);

/// How launches overlap, as a config: "overlap=at-end"; empty for the default.
std::string overlapConfig(schema::Overlap overlap);

/// What a store has for `plan` on `device`, by what it is for: see
/// schema::Kernel::tuning and schema::Program::tuning.
using TunedEntries = std::map<std::string, TuningEntry>;
absl::StatusOr<TunedEntries> tunedEntries(const schema::PlanT &plan,
                                          const Device &device,
                                          TuningStore &store);

/// `plan` with what `store` has for it on `device`; null when that is nothing.
/// Errors: those of the store and of `compiler`; unsupported where one is
/// needed and it is null.
absl::StatusOr<std::shared_ptr<const PlanReader>>
tunedPlan(const std::shared_ptr<const PlanReader> &plan, Device &device,
          TuningStore &store, const VariantCompiler *compiler);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_TUNEDPLAN_H
