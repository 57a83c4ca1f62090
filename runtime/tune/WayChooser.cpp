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
#include <atomic>
#include <ctime>
#include <iterator>
#include <thread>

namespace llamac {

std::vector<KernelSource> sourcesOf(const schema::VariantT &variant) {
  return {{variant.symbol, variant.source}};
}

std::vector<KernelSource> sourcesOf(const schema::ScheduleT &schedule) {
  std::vector<KernelSource> sources;
  sources.reserve(schedule.kernels.size());
  for (const auto &kernel : schedule.kernels)
    sources.push_back({kernel->symbol, kernel->source});
  return sources;
}

/// Whether `schedule` launches kernels that the plan itself does not.
static bool hasKernels(const schema::ScheduleT &schedule) {
  return !schedule.kernels.empty();
}

//===----------------------------------------------------------------------===//
// Code of schedules
//===----------------------------------------------------------------------===//

void ScheduleCompiler::add(size_t schedule,
                           std::shared_ptr<const std::string> known) {
  if (known)
    codes.insert_or_assign(schedule, std::move(known));
}

void ScheduleCompiler::compile(const std::set<size_t> &numbers) {
  const schema::PlanT &plan = model.plan();
  if (!needsCode(plan.target))
    return;
  std::vector<size_t> missing;
  std::copy_if(numbers.begin(), numbers.end(), std::back_inserter(missing),
               [&](size_t number) {
                 return !codes.contains(number) &&
                        hasKernels(*plan.schedules[number]);
               });
  struct Job {
    size_t schedule;
    absl::StatusOr<std::string> code;
  };
  std::vector<Job> jobs;
  for (const size_t number : missing)
    jobs.push_back({number, std::string()});
  const std::string isa = model.code().isa();
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++)
      jobs[i].code = compiler->compile(
          sourcesOf(*plan.schedules[jobs[i].schedule]), plan.target, isa);
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < model.device().threads(); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  for (Job &job : jobs)
    if (job.code.ok())
      add(job.schedule,
          std::make_shared<const std::string>(*std::move(job.code)));
    else
      codes.insert_or_assign(job.schedule, job.code.status());
}

absl::StatusOr<std::shared_ptr<const std::string>>
ScheduleCompiler::codeOf(size_t schedule) const {
  const auto known = codes.find(schedule);
  return known == codes.end() ? nullptr : known->second;
}

//===----------------------------------------------------------------------===//
// Ways
//===----------------------------------------------------------------------===//

WayChooser::WayChooser(std::shared_ptr<const Model> model, size_t program,
                       const StepPlan &timed, const TuneOptions &options,
                       ScheduleCompiler &schedules)
    : model(std::move(model)), program(program), timed(timed), options(options),
      schedules(schedules), device(this->model->device().identity(made())) {}

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
    const schema::ScheduleT &schedule = *made().schedules[*pick.schedule];
    tried.tolerance = schedule.tolerance;
    const auto compiled = schedules.codeOf(*pick.schedule);
    if (!compiled.ok())
      tried.rejected = std::string(compiled.status().message());
    else if (!*compiled && needsCode(made().target) && hasKernels(schedule))
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
    return (options.stop && *options.stop) || steadySeconds() > end;
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
  if (way.schedule && needsCode(made().target)) {
    LLAMAC_ASSIGN_OR_RETURN(const auto code, schedules.codeOf(*way.schedule));
    entry->symbol = made().schedules[*way.schedule]->name;
    entry->code = code ? *code : "";
  }
  return absl::OkStatus();
}

absl::Status WayChooser::chooseSchedule(double share, double deadline) {
  if (options.store) {
    const StoredWays stored = storedWays(made(), device, *options.store);
    way = stored.programs[program];
    if (way.schedule)
      for (const auto &kernel : made().schedules[*way.schedule]->kernels)
        if (const auto code = stored.code.find(kernel->symbol);
            code != stored.code.end())
          schedules.add(*way.schedule, code->second);
  }
  const std::vector<ProgramPick> picks =
      schedulesOf(made(), program, way.overlap);
  if (picks.size() == 1 || !options.triesWays)
    return absl::OkStatus();
  std::set<size_t> numbers;
  for (const ProgramPick &pick : picks)
    if (pick.schedule)
      numbers.insert(*pick.schedule);
  if (options.progress)
    options.progress("compiling other schedules");
  if (steadySeconds() < deadline && !(options.stop && *options.stop))
    schedules.compile(numbers);
  std::vector<Way> ways;
  for (const ProgramPick &pick : picks) {
    LLAMAC_ASSIGN_OR_RETURN(ways.emplace_back(), wayOf(pick));
  }
  const double now = steadySeconds();
  return choose(picks, ways, now + share * (deadline - now));
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
