//===- Tuner.cpp - Finds the fastest configs for a machine ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For each program of a plan, from that of one row on:
//
//  1. the variants of its kernels that the compiler put first are compiled;
//  2. each runs beside the default config of its kernel, from the same memory,
//     in steps of several shapes: one that gives something else is out
//     (Gate.h);
//  3. whole steps run, in each of which every kernel has another of its
//     candidates, round by round (Trials.h): launches are timed where they
//     stand, with caches as the launches before them leave them and the weights
//     of all layers going by. A config is selected that is faster than the
//     default by more than noise;
//  4. steps with all that is selected are compared with steps without, and on a
//     GPU with other overlaps of launches, in fresh rounds: the fastest of many
//     is so by chance, too, but not twice. A program that is not faster as a
//     whole keeps its defaults;
//  5. what was found is kept.
//
// Candidate number k of all kernels together make slate k: the plan with these
// variants, loaded and bound to the engine's memory.
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Tuner.h"

#include "runtime/base/ParallelFor.h"
#include "runtime/base/Status.h"
#include "runtime/tune/Gate.h"
#include "runtime/tune/StepRunner.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

namespace llamac {

static constexpr const char *outOfTime = "not tried: no time was left";

namespace {

/// One program of loaded code, bound to an engine's memory.
struct BoundProgram {
  std::unique_ptr<LoadedCode> code;
  std::unique_ptr<PreparedProgram> program;
};

/// A candidate of each kernel, by its number, and how launches overlap.
struct StepConfig {
  std::vector<size_t> kernels;
  schema::Overlap overlap = schema::Overlap::FromStart;

  friend bool operator==(const StepConfig &, const StepConfig &) = default;
};

/// Tunes one program.
class ProgramTuner {
public:
  /// `deadline` is on steadySeconds()'s clock.
  ProgramTuner(const Model &model, size_t number, const TuneOptions &options,
               StepRunner &steps, double deadline)
      : model(model), plan(model.plan()), program(*plan.programs[number]),
        launches(program.launches), options(options), steps(steps),
        deadline(deadline),
        result{.step = {program.name, program.tuning, number}} {
    takeCandidates();
  }

  absl::StatusOr<ProgramResult> run();

  /// What is to be kept of a run that was decided.
  std::vector<TuningEntry> entries() const;

private:
  void takeCandidates();
  bool isOver(double until) const {
    return (options.stop && *options.stop) ||
           steadySeconds() + timedSeconds > until;
  }
  bool isOver() const { return isOver(deadline); }
  /// When this share of the time that is left will be over.
  double shareOfTime(double share) const {
    const double now = steadySeconds();
    return now + share * (deadline - now);
  }
  void tell(const std::string &what) const {
    if (options.progress)
      options.progress(absl::StrCat(program.name, ": ", what));
  }
  StepConfig defaults() const {
    return {.kernels = std::vector<size_t>(kernels.size())};
  }
  void compileCandidates();
  absl::StatusOr<BoundProgram> bind(const StepConfig &config) const;
  absl::Status bindSlates();
  absl::Status gateCandidates();
  absl::Status gateStep(const StepShape &shape, StepMemory &memory);
  absl::Status chooseTimedLaunches(const StepShape &shape);
  /// Of a short step a round takes the least of some times: what comes on top
  /// is not the kernels'.
  size_t passes() const { return timedSeconds < 0.1 ? 4 : 1; }
  absl::StatusOr<std::vector<double>> time(const BoundProgram &bound,
                                           const StepShape &shape, bool each);
  absl::Status timeCandidates(const StepShape &shape);
  absl::StatusOr<std::vector<uint8_t>> logitsOf(const BoundProgram &bound,
                                                const StepShape &shape,
                                                StepMemory &memory) const;
  absl::Status compareSteps(const StepShape &shape, StepMemory &memory);

  const Model &model;
  const schema::PlanT &plan;
  const schema::ProgramT &program;
  const std::vector<std::unique_ptr<schema::LaunchT>> &launches;
  const TuneOptions &options;
  StepRunner &steps;
  double deadline;
  ProgramResult result;
  std::vector<Choice> &kernels = result.kernels;
  bool overlaps = false; ///< Whether launches do, and times tell how.
  std::vector<BoundProgram> slates;
  std::vector<StepConfig> stepConfigs; ///< By candidate of the step.
  std::vector<size_t> timedLaunches;
  double timedSeconds = 0; ///< That these took.
  std::mt19937 random;
};

} // namespace

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// The default of each kernel that has variants, and the first of these.
void ProgramTuner::takeCandidates() {
  std::set<size_t> numbers;
  for (const auto &launch : launches) {
    if (!plan.kernels[launch->kernel]->variants.empty())
      numbers.insert(launch->kernel);
    overlaps |= launch->dependent && plan.target == "cuda";
  }
  for (const size_t number : numbers) {
    const schema::KernelT &of = *plan.kernels[number];
    Choice &kernel = kernels.emplace_back(of.symbol, of.tuning, number);
    kernel.candidates.emplace_back();
    for (size_t i = 0; i < of.variants.size() && i < options.candidates; ++i)
      kernel.candidates.push_back(
          {.config = of.variants[i]->tiles, .kernel = {.variant = i}});
    kernel.trials = Trials(kernel.candidates.size());
  }
}

void ProgramTuner::compileCandidates() {
  // The best of every kernel come first, in case that time runs out.
  std::vector<std::pair<size_t, Choice *>> jobs;
  for (Choice &kernel : kernels)
    for (size_t k = 1; k < kernel.candidates.size(); ++k)
      jobs.emplace_back(k, &kernel);
  std::sort(jobs.begin(), jobs.end());
  tell(absl::StrCat("compiling ", jobs.size(), " candidates"));
  const double until = shareOfTime(0.4);
  parallelFor(model.device().threads(), jobs.size(), [&](size_t i) {
    const auto &[k, kernel] = jobs[i];
    auto &[config, of, rejected] = kernel->candidates[k];
    if (isOver(until)) {
      rejected = outOfTime;
      return;
    }
    auto code = options.compiler->compile(
        {plan.kernels[kernel->number]->variants[*of.variant].get()},
        plan.target, model.code().isa());
    if (code.ok())
      of.code = std::make_shared<const std::string>(*std::move(code));
    else
      rejected = std::string(code.status().message());
  });
}

absl::StatusOr<BoundProgram>
ProgramTuner::bind(const StepConfig &config) const {
  SelectedConfigs selected;
  selected.kernels.resize(plan.kernels.size());
  selected.overlaps.resize(plan.programs.size());
  for (size_t i = 0; i < kernels.size(); ++i)
    selected.kernels[kernels[i].number] =
        kernels[i].candidates[config.kernels[i]].kernel;
  selected.overlaps[result.step.number] = config.overlap;
  LLAMAC_ASSIGN_OR_RETURN(auto reader,
                          model.planReader()->withConfigs(selected));
  BoundProgram bound;
  LLAMAC_ASSIGN_OR_RETURN(bound.code, model.device().loadCode(reader));
  LLAMAC_ASSIGN_OR_RETURN(
      bound.program,
      bound.code->prepare(result.step.number, steps.of().bindings()));
  return bound;
}

/// Binds a slate for each number of candidates, with the default of a kernel
/// that has not so many or whose candidate is rejected. One that cannot be
/// loaded is rejected now.
absl::Status ProgramTuner::bindSlates() {
  size_t count = 1;
  for (const Choice &kernel : kernels)
    count = std::max(count, kernel.candidates.size());
  slates.clear();
  for (size_t k = 0; k < count; ++k) {
    StepConfig all = defaults();
    for (size_t i = 0; i < kernels.size(); ++i)
      if (k < kernels[i].candidates.size() &&
          kernels[i].candidates[k].rejected.empty())
        all.kernels[i] = k;
    absl::StatusOr<BoundProgram> slate = bind(all);
    for (size_t i = 0; i < kernels.size() && k != 0 && !slate.ok(); ++i) {
      StepConfig alone = defaults();
      alone.kernels[i] = std::exchange(all.kernels[i], 0);
      if (const absl::Status status = bind(alone).status(); !status.ok())
        kernels[i].candidates[k].rejected = std::string(status.message());
      else
        all.kernels[i] = alone.kernels[i];
    }
    if (!slate.ok())
      slate = bind(all);
    LLAMAC_ASSIGN_OR_RETURN(slates.emplace_back(), std::move(slate));
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The gate
//===----------------------------------------------------------------------===//

absl::Status ProgramTuner::gateCandidates() {
  LLAMAC_RETURN_IF_ERROR(bindSlates());
  for (StepPlan step : stepsOf(plan, result.step.number)) {
    tell(absl::StrCat("comparing candidates with the defaults, ",
                      step.sequences * step.tokens, " rows"));
    LLAMAC_RETURN_IF_ERROR(steps.run(
        step, [&] { return isOver(); },
        [&](const StepShape &shape, StepMemory &memory) {
          return gateStep(shape, memory);
        }));
  }
  bool isAny = false;
  for (Choice &kernel : kernels)
    for (size_t k = 1; k < kernel.candidates.size(); ++k) {
      std::string &rejected = kernel.candidates[k].rejected;
      if (isOver() && rejected.empty())
        rejected = outOfTime;
      isAny |= !rejected.empty();
    }
  // What is rejected runs no more.
  return isAny ? bindSlates() : absl::OkStatus();
}

/// Runs a step with the default configs. On the way it compares what candidates
/// leave in memory with what the defaults do, at the first and the last launch
/// of each kernel: those between differ only in where their operands lie. Ends
/// early when time is up.
absl::Status ProgramTuner::gateStep(const StepShape &shape,
                                    StepMemory &memory) {
  const auto read = [&](size_t launch, LaunchMemory &copy) {
    return readLaunch(program, *launches[launch], steps.of().poolBytes(),
                      memory, copy);
  };
  std::map<uint32_t, std::pair<size_t, size_t>> ends; // By kernel.
  for (size_t i = 0; i < launches.size(); ++i)
    ends.try_emplace(launches[i]->kernel, i, i).first->second.second = i;
  LaunchMemory start, expected, got;
  for (size_t i = 0; i < launches.size() && !isOver(); ++i) {
    const schema::LaunchT &launch = *launches[i];
    const auto [first, last] = ends[launch.kernel];
    const auto kernel =
        std::find_if(kernels.begin(), kernels.end(), [&](const Choice &other) {
          return other.number == launch.kernel;
        });
    const bool isGated = kernel != kernels.end() && (i == first || i == last) &&
                         rowsOf(launch, shape) != 0;
    if (isGated)
      LLAMAC_RETURN_IF_ERROR(read(i, start));
    LLAMAC_RETURN_IF_ERROR(slates[0].program->runLaunch(i, shape));
    if (!isGated)
      continue;
    LLAMAC_RETURN_IF_ERROR(read(i, expected));
    for (size_t k = 1; k < kernel->candidates.size() && !isOver(); ++k) {
      std::string &rejected = kernel->candidates[k].rejected;
      if (!rejected.empty())
        continue;
      LLAMAC_RETURN_IF_ERROR(writeLaunch(launch, start, memory));
      const absl::Status status = slates[k].program->runLaunch(i, shape);
      LLAMAC_RETURN_IF_ERROR(read(i, got));
      rejected = status.ok()
                     ? compareLaunches(start, expected, got, plan.kv->type,
                                       plan.kernels[launch.kernel]->tolerance)
                     : std::string(status.message());
    }
    LLAMAC_RETURN_IF_ERROR(writeLaunch(launch, expected, memory));
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

/// Of a step that takes long the first launches are timed, and one at least of
/// each kernel.
absl::Status ProgramTuner::chooseTimedLaunches(const StepShape &shape) {
  constexpr double longEnough = 0.25;
  std::set<uint32_t> seen;
  double sum = 0;
  for (size_t i = 0; i < launches.size(); ++i) {
    if (!seen.insert(launches[i]->kernel).second && sum > longEnough)
      continue;
    const double start = steadySeconds();
    LLAMAC_RETURN_IF_ERROR(slates[0].program->runLaunch(i, shape));
    sum += steadySeconds() - start;
    timedLaunches.push_back(i);
  }
  timedSeconds = sum;
  return absl::OkStatus();
}

/// Seconds of the launches that are timed: where `each`, of one after the other
/// by kernel, in the mean; else of all together, as they run where nobody
/// looks.
absl::StatusOr<std::vector<double>>
ProgramTuner::time(const BoundProgram &bound, const StepShape &shape,
                   bool each) {
  const bool isWhole = timedLaunches.size() == launches.size();
  const double begin = steadySeconds();
  std::vector<double> seconds(launches.size());
  if (isWhole && each) {
    LLAMAC_ASSIGN_OR_RETURN(seconds, bound.program->runTimed(shape));
  } else if (isWhole) {
    LLAMAC_RETURN_IF_ERROR(bound.program->run(shape));
  } else {
    for (const size_t launch : timedLaunches) {
      const double start = steadySeconds();
      LLAMAC_RETURN_IF_ERROR(bound.program->runLaunch(launch, shape));
      seconds[launch] = steadySeconds() - start;
    }
  }
  if (!each)
    return std::vector<double>{steadySeconds() - begin};
  std::vector<double> means(plan.kernels.size()), counts(plan.kernels.size());
  for (const size_t launch : timedLaunches) {
    const uint32_t kernel = launches[launch]->kernel;
    means[kernel] += (seconds[launch] - means[kernel]) / ++counts[kernel];
  }
  return means;
}

/// Takes rounds until all kernels are decided, or this share of time is up.
absl::Status ProgramTuner::timeCandidates(const StepShape &shape) {
  constexpr size_t mostRounds = 100;
  const double until = shareOfTime(0.6);
  for (size_t round = 0; round < mostRounds; ++round) {
    // The default, and the slates by which a kernel is decided that is not.
    std::set<size_t> open = {0};
    for (const auto &[name, tuning, number, candidates, selected, trials] :
         kernels)
      for (size_t k = 0; k < candidates.size(); ++k)
        if (k != selected && candidates[k].rejected.empty() &&
            trials.isOpen(k, selected))
          open.insert({k, selected});
    if (open.size() == 1 && round >= Trials::leastRounds)
      break;
    tell(absl::StrCat("round ", round + 1, " of ", open.size(), " candidates"));
    std::vector<size_t> order(open.begin(), open.end());
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::vector<std::optional<double>>> times;
    for (const Choice &kernel : kernels)
      times.emplace_back(kernel.candidates.size());
    for (size_t pass = 0; pass < passes(); ++pass)
      for (const size_t k : order) {
        if (isOver(until))
          return absl::OkStatus();
        LLAMAC_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                                time(slates[k], shape, /*each=*/true));
        for (size_t i = 0; i < kernels.size(); ++i)
          if (k < times[i].size() && kernels[i].candidates[k].rejected.empty())
            times[i][k] = std::min(times[i][k].value_or(HUGE_VAL),
                                   seconds[kernels[i].number]);
      }
    for (size_t i = 0; i < kernels.size(); ++i) {
      kernels[i].trials.addRound(times[i]);
      kernels[i].selected = kernels[i].trials.fastest();
    }
  }
  return absl::OkStatus();
}

/// Logits of a step that finds nothing in the arena that another left: NaN.
absl::StatusOr<std::vector<uint8_t>>
ProgramTuner::logitsOf(const BoundProgram &bound, const StepShape &shape,
                       StepMemory &memory) const {
  LLAMAC_RETURN_IF_ERROR(
      memory.write({schema::OperandKind::Arena, 0, 0}, 0,
                   std::vector<uint8_t>(program.arenaBytes, 0xff)));
  LLAMAC_RETURN_IF_ERROR(bound.program->run(shape));
  std::vector<uint8_t> staging;
  LLAMAC_ASSIGN_OR_RETURN(
      const absl::Span<const uint8_t> logits,
      memory.read({schema::OperandKind::Arena, 0, program.logitsOffset}, 0,
                  static_cast<uint64_t>(shape.wanted) *
                      static_cast<uint64_t>(plan.config->vocabSize) *
                      sizeof(float),
                  staging));
  return std::vector<uint8_t>(logits.begin(), logits.end());
}

/// Compares whole steps: the default, what is selected of the kernels, and that
/// with other overlaps, which must give the same bits.
absl::Status ProgramTuner::compareSteps(const StepShape &shape,
                                        StepMemory &memory) {
  auto &[name, tuning, number, candidates, selected, trials] = result.step;
  const auto add = [&](const StepConfig &config, const std::string &text) {
    stepConfigs.push_back(config);
    candidates.push_back({.config = text});
  };
  StepConfig tuned;
  for (const Choice &kernel : kernels)
    tuned.kernels.push_back(kernel.selected);
  add(defaults(), "");
  if (tuned != defaults())
    add(tuned, "tuned");
  for (const schema::Overlap overlap : schema::EnumValuesOverlap())
    if (overlaps && overlap != schema::Overlap::FromStart)
      add({tuned.kernels, overlap}, overlapConfig(overlap));
  trials = Trials(candidates.size());

  std::vector<BoundProgram> bound;
  std::vector<size_t> order;
  std::vector<uint8_t> expected;
  for (size_t i = 0; i < candidates.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(bound.emplace_back(), bind(stepConfigs[i]));
    if (overlaps && stepConfigs[i].kernels == tuned.kernels) {
      LLAMAC_ASSIGN_OR_RETURN(const std::vector<uint8_t> logits,
                              logitsOf(bound[i], shape, memory));
      if (stepConfigs[i] == tuned)
        expected = logits;
      else if (logits != expected)
        candidates[i].rejected = "the logits differ";
    }
    if (candidates[i].rejected.empty())
      order.push_back(i);
  }

  constexpr size_t fewestRounds = 9, mostRounds = 41;
  const auto isOpen = [&](size_t i) {
    return i != selected && trials.isOpen(i, selected);
  };
  for (size_t round = 0; round < mostRounds && order.size() > 1; ++round) {
    if (round >= fewestRounds &&
        std::none_of(order.begin(), order.end(), isOpen))
      break;
    tell(absl::StrCat("whole steps, round ", round + 1));
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::optional<double>> times(candidates.size());
    for (size_t pass = 0; pass < passes() && !isOver(); ++pass)
      for (size_t k = 0; k < order.size() && !isOver(); ++k) {
        LLAMAC_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                                time(bound[order[k]], shape, /*each=*/false));
        std::optional<double> &least = times[order[k]];
        least = std::min(least.value_or(HUGE_VAL), seconds.front());
      }
    if (isOver())
      break;
    trials.addRound(times);
    selected = trials.fastest();
  }
  result.isDecided =
      order.size() == 1 || trials.rounds() >= Trials::leastRounds;
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

absl::StatusOr<ProgramResult> ProgramTuner::run() {
  std::vector<StepPlan> planned = stepsOf(plan, result.step.number);
  if (planned.empty())
    result.skipped = "the plan keeps too few sequences or tokens for its "
                     "steps (--parallel, --ctx-size)";
  else if (kernels.empty() && !overlaps)
    result.skipped = "no kernel of it has variants";
  if (!result.skipped.empty())
    return result;
  StepPlan &timed = planned.back();
  if (needsCompiler(plan))
    compileCandidates();
  LLAMAC_RETURN_IF_ERROR(gateCandidates());
  if (plan.target != "sim" && !isOver()) {
    // What the tokens before the step may take.
    const double until = shareOfTime(0.25);
    LLAMAC_RETURN_IF_ERROR(steps.run(
        timed, [&] { return isOver(until); },
        [&](const StepShape &shape, StepMemory &memory) -> absl::Status {
          LLAMAC_RETURN_IF_ERROR(chooseTimedLaunches(shape));
          LLAMAC_RETURN_IF_ERROR(timeCandidates(shape));
          for (const Choice &kernel : kernels)
            if (kernel.trials.rounds() < Trials::leastRounds)
              return absl::OkStatus();
          return compareSteps(shape, memory);
        }));
  }
  result.rows = timed.sequences * timed.tokens;
  result.context = timed.before + timed.tokens;
  for (size_t i = 0; i < kernels.size(); ++i)
    kernels[i].selected =
        result.isDecided ? stepConfigs[result.step.selected].kernels[i] : 0;
  return result;
}

std::vector<TuningEntry> ProgramTuner::entries() const {
  std::vector<TuningEntry> all;
  const auto add = [&](const Choice &choice, const std::string &config) {
    TuningEntry &entry = all.emplace_back();
    entry.device = model.device().identity(plan);
    entry.generator = plan.generator;
    entry.kernel = choice.tuning;
    entry.config = config;
    // Others by their times in the same rounds.
    const Trials &trials = choice.trials;
    entry.seconds = trials.secondsOf(choice.selected);
    for (size_t k = 0; k < choice.candidates.size(); ++k) {
      const Trials::Ratio ratio = trials.ratioOf(k, choice.selected);
      const double seconds = entry.seconds * ratio.median;
      if (k == 0)
        entry.defaultSeconds = seconds;
      if (k == choice.selected || ratio.rounds == 0 ||
          (entry.runnerUpSeconds != 0 && seconds >= entry.runnerUpSeconds))
        continue;
      entry.runnerUp = choice.candidates[k].config;
      entry.runnerUpSeconds = seconds;
    }
  };
  for (const Choice &kernel : kernels)
    add(kernel, kernel.candidates[kernel.selected].config);
  if (overlaps && result.step.trials.rounds() > 0)
    add(result.step, overlapConfig(stepConfigs[result.step.selected].overlap));
  return all;
}

absl::StatusOr<std::vector<ProgramResult>>
tuneModel(const std::shared_ptr<const Model> &model, TuningStore &store,
          const TuneOptions &options) {
  const double start = steadySeconds();
  const schema::PlanT &plan = model->plan();
  if (needsCompiler(plan)) {
    if (!options.compiler)
      return usageError(absl::StrCat(
          model->path(), ": expected a plan for cuda, got one for ",
          plan.target, ", whose kernels llamac tune compiles"));
    LLAMAC_RETURN_IF_ERROR(options.compiler->check(*model->planReader()));
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<StepRunner> steps,
                          StepRunner::create(model));
  // The rest is for the end of the last step.
  const double end = start + 0.97 * options.budget;
  // What the programs before did not take is shared by those that follow. The
  // last one's steps, of many rows, take longest, and it has two shares.
  const size_t count = plan.programs.size();
  const auto sharesOf = [&](size_t number) {
    return stepsOf(plan, number).empty() ? 0.0
           : number + 1 == count         ? 2.0
                                         : 1.0;
  };
  std::vector<ProgramResult> results;
  for (size_t number = 0; number < count; ++number) {
    if (options.stop && *options.stop)
      break;
    double shares = 0;
    for (size_t next = number; next < count; ++next)
      shares += sharesOf(next);
    const double now = steadySeconds();
    const double deadline =
        now + (end - now) * sharesOf(number) / std::max(1.0, shares);
    ProgramTuner tuner(*model, number, options, *steps, deadline);
    LLAMAC_ASSIGN_OR_RETURN(results.emplace_back(), tuner.run());
    if (results.back().isDecided)
      LLAMAC_RETURN_IF_ERROR(store.keep(tuner.entries()).status());
  }
  return results;
}

} // namespace llamac
