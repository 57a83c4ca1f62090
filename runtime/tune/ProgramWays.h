//===- ProgramWays.h - The ways to run a program ----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A way is one of the plan's schedules, or the plan's own launches, and how the
// launches overlap. By name: "norm-apart", "overlap=none", "norm-apart
// overlap=at-end"; the empty name is the plan's own way.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_TUNE_PROGRAMWAYS_H
#define LLAMAC_RUNTIME_TUNE_PROGRAMWAYS_H

#include "runtime/plan/PlanReader.h"
#include "runtime/tune/TuningStore.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

std::string wayName(const schema::PlanT &plan, const ProgramPick &way);

/// The way to run program number `program` of `plan` that is called `name`;
/// none for one that it does not have.
std::optional<ProgramPick> findWay(const schema::PlanT &plan, size_t program,
                                   const std::string &name);

/// The plan's own launches, then those of its schedules that have the program,
/// each with `overlap`.
std::vector<ProgramPick> schedulesOf(const schema::PlanT &plan, size_t program,
                                     schema::Overlap overlap);

/// `way`, then the same launches with each other overlap; alone where no launch
/// depends on the one before it.
std::vector<ProgramPick> overlapsOf(const schema::PlanT &plan, size_t program,
                                    const ProgramPick &way);

/// Under which the way to run program number `program` of `plan` is kept.
TuningKey wayKey(const schema::PlanT &plan, size_t program,
                 const std::string &device);

/// Machine code of the kernels that schedules bring, by their symbols. One
/// object has the code of all kernels of a schedule.
using ScheduleCode = std::map<std::string, std::shared_ptr<const std::string>>;

/// Gives `code`, which has the kernels of schedule number `schedule`, to them.
void addScheduleCode(const schema::PlanT &plan, size_t schedule,
                     std::shared_ptr<const std::string> code,
                     ScheduleCode &all);

/// Whether kernels of schedule number `schedule` run only by machine code that
/// the tuner brings.
bool scheduleNeedsCode(const schema::PlanT &plan, size_t schedule);

/// What `store` has for program number `program` of `plan` on the device called
/// `device`: the plan's own way when it has nothing, or no code that is needed.
struct StoredWay {
  ProgramPick way;
  std::shared_ptr<const std::string> code; ///< Null where none is needed.
};
StoredWay storedWay(const schema::PlanT &plan, size_t program,
                    const std::string &device, TuningStore &store);

/// The same for all programs.
struct StoredWays {
  std::vector<ProgramPick> programs;
  ScheduleCode code;
};
StoredWays storedWays(const schema::PlanT &plan, const std::string &device,
                      TuningStore &store);

/// `plan` with its programs run as `ways` says, and its kernels as they are or,
/// where there is a store, as `store` has them on `device`; what the devices of
/// plans that need code then miss, `code` has. Errors: those of withSchedules()
/// and withPicks().
absl::StatusOr<std::shared_ptr<const PlanReader>>
applyWays(const PlanReader &plan, absl::Span<const ProgramPick> ways,
          const ScheduleCode &code, const std::string &device,
          TuningStore *store);

/// `plan` with all that `store` has for it on `device`; null when that is
/// nothing. Errors: badPlan for what makes no sense.
absl::StatusOr<std::shared_ptr<const PlanReader>>
tunedPlan(const PlanReader &plan, const std::string &device,
          TuningStore &store);

} // namespace llamac

#endif // LLAMAC_RUNTIME_TUNE_PROGRAMWAYS_H
