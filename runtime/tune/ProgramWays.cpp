//===- ProgramWays.cpp - The ways to run a program ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/ProgramWays.h"

#include "runtime/base/Status.h"
#include "runtime/tune/Candidates.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include <algorithm>

namespace llamac {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static absl::string_view overlapName(schema::Overlap overlap) {
  switch (overlap) {
  case schema::Overlap::FromStart:
    return "";
  case schema::Overlap::AfterWait:
    return "overlap=after-wait";
  case schema::Overlap::AtEnd:
    return "overlap=at-end";
  case schema::Overlap::None:
    return "overlap=none";
  }
  return "";
}

std::string wayName(const schema::PlanT &plan, const ProgramPick &way) {
  const std::string schedule =
      way.schedule ? plan.schedules[*way.schedule]->name : "";
  const absl::string_view overlap = overlapName(way.overlap);
  return absl::StrCat(schedule, schedule.empty() || overlap.empty() ? "" : " ",
                      overlap);
}

static const schema::ProgramT *programOf(const schema::ScheduleT &schedule,
                                         const std::string &name) {
  const auto program =
      std::find_if(schedule.programs.begin(), schedule.programs.end(),
                   [&](const auto &program) { return program->name == name; });
  return program == schedule.programs.end() ? nullptr : program->get();
}

std::vector<ProgramPick> schedulesOf(const schema::PlanT &plan, size_t program,
                                     schema::Overlap overlap) {
  std::vector<ProgramPick> ways = {{std::nullopt, overlap}};
  for (size_t i = 0; i < plan.schedules.size(); ++i)
    if (programOf(*plan.schedules[i], plan.programs[program]->name))
      ways.push_back({i, overlap});
  return ways;
}

std::vector<ProgramPick> overlapsOf(const schema::PlanT &plan, size_t program,
                                    const ProgramPick &way) {
  const auto &launches = plan.programs[program]->launches;
  std::vector<ProgramPick> ways = {way};
  // The simulator has no times to choose by.
  if (plan.target == "cuda" &&
      std::any_of(launches.begin(), launches.end(),
                  [](const auto &launch) { return launch->dependent; }))
    for (const schema::Overlap overlap : schema::EnumValuesOverlap())
      if (overlap != way.overlap)
        ways.push_back({way.schedule, overlap});
  return ways;
}

std::optional<ProgramPick> findWay(const schema::PlanT &plan, size_t program,
                                   const std::string &name) {
  for (const ProgramPick &schedule :
       schedulesOf(plan, program, schema::Overlap::FromStart))
    for (const ProgramPick &way : overlapsOf(plan, program, schedule))
      if (wayName(plan, way) == name)
        return way;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Choices that are kept
//===----------------------------------------------------------------------===//

TuningKey wayKey(const schema::PlanT &plan, size_t program,
                 const std::string &device) {
  return {device, plan.generator, plan.programs[program]->tuning};
}

void addScheduleCode(const schema::PlanT &plan, size_t schedule,
                     std::shared_ptr<const std::string> code,
                     ScheduleCode &all) {
  for (const auto &kernel : plan.schedules[schedule]->kernels)
    all[kernel->symbol] = code;
}

bool scheduleNeedsCode(const schema::PlanT &plan, size_t schedule) {
  return needsCode(plan.target) && !plan.schedules[schedule]->kernels.empty();
}

StoredWay storedWay(const schema::PlanT &plan, size_t program,
                    const std::string &device, TuningStore &store) {
  if (plan.programs[program]->tuning.empty())
    return {};
  std::optional<TuningEntry> entry = store.find(wayKey(plan, program, device));
  const auto way = entry ? findWay(plan, program, entry->tiles) : std::nullopt;
  if (!way)
    return {};
  if (!way->schedule || !scheduleNeedsCode(plan, *way->schedule))
    return {*way, nullptr};
  if (entry->code.empty())
    return {};
  return {*way, std::make_shared<const std::string>(std::move(entry->code))};
}

StoredWays storedWays(const schema::PlanT &plan, const std::string &device,
                      TuningStore &store) {
  StoredWays stored;
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    const StoredWay one = storedWay(plan, i, device, store);
    stored.programs.push_back(one.way);
    if (one.code)
      addScheduleCode(plan, *one.way.schedule, one.code, stored.code);
  }
  return stored;
}

/// Whether all programs run as the plan has them.
static bool isOwn(absl::Span<const ProgramPick> ways) {
  return std::all_of(ways.begin(), ways.end(), [](const ProgramPick &way) {
    return way == ProgramPick{};
  });
}

absl::StatusOr<std::shared_ptr<const PlanReader>>
applyWays(const PlanReader &plan, absl::Span<const ProgramPick> ways,
          const ScheduleCode &code, const std::string &device,
          TuningStore *store) {
  std::shared_ptr<const PlanReader> scheduled;
  if (!isOwn(ways)) {
    LLAMAC_ASSIGN_OR_RETURN(scheduled, plan.withSchedules(ways));
  }
  const PlanReader &run = scheduled ? *scheduled : plan;
  const auto &kernels = run.plan().kernels;
  std::vector<KernelPick> picks(kernels.size());
  if (store)
    picks = storedPicks(run.plan(), device, *store);
  for (size_t i = plan.plan().kernels.size(); i < picks.size(); ++i)
    if (const auto known = code.find(kernels[i]->symbol);
        known != code.end() && !picks[i].variant)
      picks[i].code = known->second;
  return run.withPicks(picks);
}

absl::StatusOr<std::shared_ptr<const PlanReader>>
tunedPlan(const PlanReader &plan, const std::string &device,
          TuningStore &store) {
  const StoredWays ways = storedWays(plan.plan(), device, store);
  if (!isOwn(ways.programs))
    return applyWays(plan, ways.programs, ways.code, device, &store);
  const std::vector<KernelPick> picks = storedPicks(plan.plan(), device, store);
  if (std::none_of(picks.begin(), picks.end(),
                   [](const KernelPick &pick) { return pick.variant; }))
    return nullptr;
  return plan.withPicks(picks);
}

} // namespace llamac
