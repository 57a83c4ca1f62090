//===- WayChooser.cpp - Chooses the way to run a program ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/WayChooser.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <ctime>

namespace llamac {

WayChooser::WayChooser(std::shared_ptr<const Model> model, size_t program,
                       const StepPlan &timed, const TuneOptions &options,
                       ScheduleCompiler &schedules, CachedTokens &first)
    : model(std::move(model)), program(program), timed(timed), options(options),
      schedules(schedules), first(first),
      device(this->model->device().identity(made())) {}

/// How each program of the plan runs: this one in `of`, others as made.
std::vector<ProgramPick> WayChooser::all(const ProgramPick &of) const {
  std::vector<ProgramPick> ways(made().programs.size());
  ways[program] = of;
  return ways;
}

std::vector<KernelPick>
WayChooser::kernelCode(const schema::PlanT &plan) const {
  std::vector<KernelPick> picks(plan.kernels.size());
  if (!way.schedule)
    return picks;
  const auto code = schedules.codeOf(*way.schedule);
  for (size_t i = made().kernels.size(); i < picks.size(); ++i)
    picks[i].code = code.ok() ? *code : nullptr;
  return picks;
}

/// The way of `pick`, with the tiles that are known.
absl::StatusOr<Way> WayChooser::wayOf(const ProgramPick &pick) const {
  Way tried = {.name = wayName(made(), pick)};
  ScheduleCode code;
  if (pick.schedule) {
    tried.tolerance = made().schedules[*pick.schedule]->tolerance;
    const auto compiled = schedules.codeOf(*pick.schedule);
    if (!compiled.ok())
      tried.rejected = std::string(compiled.status().message());
    else if (!*compiled && scheduleNeedsCode(made(), *pick.schedule))
      tried.rejected = outOfTime;
    else
      addScheduleCode(made(), *pick.schedule, *compiled, code);
  }
  LLAMAC_ASSIGN_OR_RETURN(tried.plan, applyWays(*model->planReader(), all(pick),
                                                code, device, options.store));
  return tried;
}

/// Compares `ways`, which are those of `picks`, and takes one.
absl::Status WayChooser::choose(const std::vector<ProgramPick> &picks,
                                std::vector<Way> &ways, double end) {
  const auto isOver = [&] {
    return options.isStopped() || steadySeconds() > end;
  };
  const auto tell = [&](const std::string &what) {
    if (options.progress)
      options.progress(
          absl::StrCat(made().programs[program]->name, ": ", what));
  };
  const auto before = std::find(picks.begin(), picks.end(), way);
  // All ways run whole, so not the step of the most rows, which takes longest.
  std::vector<StepPlan> compare = gateSteps(made(), program);
  if (compare.size() > 1)
    compare.erase(compare.begin());
  LLAMAC_ASSIGN_OR_RETURN(
      const WayTrialResult found,
      tryWays(model, program, ways,
              {.gateSteps = compare,
               .timed = timed,
               .kept = static_cast<size_t>(before - picks.begin()),
               .measures = made().target != "sim",
               .first = first,
               .isOver = isOver,
               .tell = tell}));
  const Trials &trials = found.trials;
  for (size_t i = 0; i < ways.size(); ++i) {
    const Trials::Ratio ratio = trials.ratioOf(i);
    compared.push_back({ways[i].name, trials.secondsOf(i),
                        ratio.rounds > 0 ? ratio.median : 0, ways[i].rejected});
  }
  way = picks[found.pick];
  if (trials.rounds() < Trials::leastRounds)
    return absl::OkStatus();
  entry.emplace();
  entry->tiles = ways[found.pick].name;
  entry->seconds = trials.secondsOf(found.pick);
  entry->firstSeconds = trials.secondsOf(0);
  if (const auto second = trials.runnerUp(found.pick)) {
    entry->runnerUp = ways[*second].name;
    entry->runnerUpSeconds = trials.secondsOf(*second);
  }
  entry->time = std::time(nullptr);
  if (way.schedule && scheduleNeedsCode(made(), *way.schedule)) {
    LLAMAC_ASSIGN_OR_RETURN(const auto code, schedules.codeOf(*way.schedule));
    entry->symbol = made().schedules[*way.schedule]->name;
    entry->code = *code;
  }
  return absl::OkStatus();
}

absl::Status WayChooser::chooseSchedule(double end) {
  if (options.store)
    way = storedWay(made(), program, device, *options.store).way;
  const std::vector<ProgramPick> picks =
      schedulesOf(made(), program, way.overlap);
  if (picks.size() == 1 || !options.triesWays)
    return absl::OkStatus();
  std::vector<Way> ways;
  for (const ProgramPick &pick : picks) {
    LLAMAC_ASSIGN_OR_RETURN(ways.emplace_back(), wayOf(pick));
  }
  return choose(picks, ways, end);
}

absl::Status
WayChooser::chooseOverlap(const std::map<std::string, KernelPick> &tiles,
                          double end) {
  const std::vector<ProgramPick> picks =
      overlapsOf(made(), program, {way.schedule, schema::Overlap::FromStart});
  if (picks.size() == 1 || !options.triesWays)
    return absl::OkStatus();
  std::vector<Way> ways;
  for (const ProgramPick &pick : picks) {
    Way &tried = ways.emplace_back();
    tried.name = wayName(made(), pick);
    LLAMAC_ASSIGN_OR_RETURN(const std::shared_ptr<const PlanReader> run,
                            model->planReader()->withSchedules(all(pick)));
    // Copies of kernels, which let launches begin elsewhere, have their
    // symbols.
    const auto &kernels = run->plan().kernels;
    std::vector<KernelPick> chosen(kernels.size());
    for (size_t i = 0; i < kernels.size(); ++i)
      if (const auto known = tiles.find(kernels[i]->symbol);
          known != tiles.end())
        chosen[i] = known->second;
    LLAMAC_ASSIGN_OR_RETURN(tried.plan, run->withPicks(chosen));
  }
  return choose(picks, ways, end);
}

void WayChooser::keep() const {
  if (entry)
    options.store->keep(wayKey(made(), program, device), *entry);
}

} // namespace llamac
