//===- TunedPlan.h - A plan with what was tuned for it ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNED_TUNEDPLAN_H
#define LLAMAC_RUNTIME_TUNED_TUNEDPLAN_H

#include "runtime/device/Device.h"
#include "runtime/plan/PlanReader.h"
#include "runtime/tuned/TuningStore.h"

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

  /// One ELF shared object with the symbols of `variants`, of a plan for
  /// `target`, for the level `isa` of the plan's code. Called by several
  /// threads.
  virtual absl::StatusOr<std::string>
  compile(absl::Span<const schema::VariantT *const> variants,
          const std::string &target, const std::string &isa) const = 0;
};

/// Whether the device of `plan` is one.
bool needsCompiler(const schema::PlanT &plan);

/// The text of an overlap in a config: "overlap=at-end"; empty for the default.
std::string overlapConfig(schema::Overlap overlap);

/// The entries of a store for `plan` on a device of that identity (Device), by
/// the text `tuning` of kernels and programs.
using TunedEntries = std::map<std::string, TuningEntry>;
absl::StatusOr<TunedEntries> tunedEntries(const schema::PlanT &plan,
                                          const std::string &identity,
                                          const TuningStore &store);

/// `plan` with the configs that `store` has for it on `device` by `identity`;
/// null when there are none. Errors: those of the store and of
/// `compiler`; unsupported where one is needed and it is null.
absl::StatusOr<std::shared_ptr<const PlanReader>>
tunedPlan(const std::shared_ptr<const PlanReader> &plan, Device &device,
          const std::string &identity, const TuningStore &store,
          const VariantCompiler *compiler);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNED_TUNEDPLAN_H
