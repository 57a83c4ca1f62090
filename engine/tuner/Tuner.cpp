//===- Tuner.cpp - Finds the fastest configs for a machine ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each program of a plan is tuned on its own, from that of one row on:
//
//  1. The variants that the compiler put first are compiled, on a GPU while
//     other programs are measured, and only of kernels that take some time.
//  2. Each runs beside the default config of its kernel, from the same memory
//     (Gate.h): one with another result is rejected.
//  3. Whole steps run, round by round (Trials.h), each with another candidate
//     of every kernel, so that caches are as in a step. A config is selected
//     that is faster than the default by more than noise.
//  4. Steps with all selected configs are compared with default ones, and on a
//     GPU with other overlaps of launches, in fresh rounds.
//  5. The result is kept, with defaults where the program is no faster.
//
// Where a device queues steps, which no step alone shows, the tuned model then
// runs beside the untuned one as answers do, and a program that is slower gets
// its defaults back.
//
// Set number k has candidate k of every kernel: a plan with these variants,
// loaded and bound to the engine's memory.
//
//===----------------------------------------------------------------------===//

#include "engine/tuner/Tuner.h"

#include "engine/step/Engine.h"
#include "engine/tuner/CandidateCompiler.h"
#include "engine/tuner/Gate.h"
#include "engine/tuner/ModelRun.h"
#include "engine/tuner/StepRunner.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/threads/ParallelFor.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace llamac {

/// Kernels with a smaller share of their program's time are not tried on a GPU.
static constexpr double leastShare = 0.02;

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
               StepRunner &steps)
      : model(model), plan(model.plan()), program(*plan.programs[number]),
        launches(program.launches), options(options), steps(steps),
        result{.step = {program.name, program.tuning, number}} {
    findCandidates();
  }

  /// Until then the program may be tuned, on steadySeconds()'s clock.
  void setDeadline(double until) { deadline = until; }

  /// Whether there is anything to tune; result.skipped says why not.
  bool hasWork() const { return result.skipped.empty(); }

  /// Rejects the candidates of kernels with less than leastShare of the time of
  /// a step with the defaults, and puts those with more first.
  absl::Status weighKernels();

  /// Lists what is to be compiled: first the first candidate of every kernel.
  std::vector<CompileJob> jobs();

  absl::Status run(CandidateCompiler &compiler);

  /// For the store, after a run that was decided.
  std::vector<TuningEntry> entries() const;

  /// Whether anything but defaults was selected.
  bool isChanged() const;
  bool sharesKernels(const ProgramTuner &other) const;
  void takeDefaults();

  /// Adds rounds of what the program is for, with defaults and as tuned, until
  /// it is clear whether that is slower, or `until`.
  absl::Status
  compareAsUsed(const std::array<std::shared_ptr<const Model>, 2> &models,
                double until);

  ProgramResult &results() { return result; }

private:
  void findCandidates();
  bool isOver(double until) const {
    return (options.stop && *options.stop) ||
           steadySeconds() + timedSeconds > until;
  }
  bool isOver() const { return isOver(deadline); }
  /// The end of this share of the time that is left.
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
  absl::StatusOr<BoundProgram> bind(const StepConfig &config) const;
  absl::Status bindSets();
  absl::Status gateCandidates();
  absl::Status gateStep(const StepShape &shape, StepMemory &memory);
  absl::Status chooseTimedLaunches(const StepShape &shape);
  /// A round takes the least of several times of a short step, without noise.
  size_t passes() const { return timedSeconds < 0.1 ? 4 : 1; }
  absl::StatusOr<std::vector<double>> time(const BoundProgram &bound,
                                           const StepShape &shape, bool each);
  absl::Status
  race(absl::Span<Choice> choices, const char *what, size_t fewest,
       double until,
       absl::FunctionRef<absl::StatusOr<std::vector<double>>(size_t k)> run);
  absl::Status compareSteps(const StepShape &shape, StepMemory &memory);

  const Model &model;
  const schema::PlanT &plan;
  const schema::ProgramT &program;
  const std::vector<std::unique_ptr<schema::LaunchT>> &launches;
  const TuneOptions &options;
  StepRunner &steps;
  double deadline = 0;
  ProgramResult result;
  std::vector<Choice> &kernels = result.kernels;
  bool overlaps = false; ///< Whether launches do, on a device with a clock.
  std::vector<BoundProgram> sets;
  std::vector<StepConfig> stepConfigs; ///< By candidate of the step.
  std::vector<size_t> timedLaunches;
  double timedSeconds = 0; ///< Of these.
  std::mt19937 random;
};

} // namespace

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// Whether a resident step of `plan` takes the steps of program `number`.
static bool isTakenByResident(const schema::PlanT &plan, size_t number) {
  const int64_t rows = plan.programs[number]->maxRows;
  return std::any_of(plan.programs.begin(), plan.programs.begin() + number,
                     [&](const auto &before) {
                       return isResident(plan, *before) &&
                              before->maxRows >= rows;
                     });
}

/// Of each kernel with variants: its default and the first of them.
void ProgramTuner::findCandidates() {
  std::set<size_t> numbers;
  for (const auto &launch : launches) {
    if (!plan.kernels[launch->kernel]->variants.empty())
      numbers.insert(launch->kernel);
    overlaps |= plan.kernels[launch->kernel]->geometry->dependent &&
                plan.target == "cuda";
  }
  for (const size_t number : numbers) {
    const schema::KernelT &of = *plan.kernels[number];
    Choice &kernel = kernels.emplace_back(of.symbol, of.tuning, number);
    kernel.candidates.emplace_back();
    for (size_t i = 0;
         i < of.variants.size() && std::cmp_less(i, options.candidates); ++i)
      kernel.candidates.push_back(
          {.config = of.variants[i]->tiles, .kernel = {.variant = i}});
    kernel.trials = Trials(kernel.candidates.size());
  }
  if (isTakenByResident(plan, result.step.number))
    result.skipped = "a resident step takes its rows";
  else if (stepsOf(plan, result.step.number).empty())
    result.skipped = "the plan keeps too few sequences or tokens for its "
                     "steps (--parallel, --ctx-size)";
  else if (kernels.empty() && !overlaps)
    result.skipped = "no kernel of it has variants";
}

absl::Status ProgramTuner::weighKernels() {
  LLAMAC_ASSIGN_OR_RETURN(const BoundProgram bound, bind(defaults()));
  constexpr int64_t enough = 128; // Tokens, for the share of attention.
  StepPlan step = stepsOf(plan, result.step.number).back();
  step.before = std::min(step.before, enough);
  std::vector<double> seconds;
  LLAMAC_RETURN_IF_ERROR(steps.run(
      step, [] { return false; },
      [&](const StepShape &shape, StepMemory &) -> absl::Status {
        LLAMAC_RETURN_IF_ERROR(bound.program->run(shape)); // To warm up.
        LLAMAC_ASSIGN_OR_RETURN(seconds, bound.program->runTimed(shape));
        return absl::OkStatus();
      }));
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  std::map<size_t, double> shares;
  for (size_t i = 0; i < launches.size(); ++i)
    shares[launches[i]->kernel] += seconds[i] / all;
  std::ranges::sort(kernels, std::greater(), [&](const Choice &kernel) {
    return std::pair(shares[kernel.number], kernel.number);
  });
  for (Choice &kernel : kernels)
    if (shares[kernel.number] < leastShare)
      for (size_t k = 1; k < kernel.candidates.size(); ++k)
        kernel.candidates[k].rejected =
            absl::StrFormat("not tried: the kernel has %.1f %% of the time",
                            100 * shares[kernel.number]);
  return absl::OkStatus();
}

std::vector<CompileJob> ProgramTuner::jobs() {
  std::vector<CompileJob> all;
  for (size_t k = 1; std::cmp_less_equal(k, options.candidates); ++k)
    for (Choice &kernel : kernels)
      if (k < kernel.candidates.size() && kernel.candidates[k].rejected.empty())
        all.push_back(
            {result.step.number, kernel.number, &kernel.candidates[k]});
  return all;
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

/// Binds all sets, with the default of a kernel that has fewer candidates or
/// whose candidate is rejected. A candidate that cannot be loaded is rejected.
absl::Status ProgramTuner::bindSets() {
  size_t count = 1;
  for (const Choice &kernel : kernels)
    count = std::max(count, kernel.candidates.size());
  sets.clear();
  for (size_t k = 0; k < count; ++k) {
    StepConfig all = defaults();
    for (size_t i = 0; i < kernels.size(); ++i)
      if (k < kernels[i].candidates.size() &&
          kernels[i].candidates[k].rejected.empty())
        all.kernels[i] = k;
    absl::StatusOr<BoundProgram> set = bind(all);
    if (!set.ok() && k != 0) {
      for (size_t i = 0; i < kernels.size(); ++i) {
        StepConfig alone = defaults();
        alone.kernels[i] = all.kernels[i];
        if (const absl::Status status = bind(alone).status(); !status.ok()) {
          kernels[i].candidates[k].rejected = std::string(status.message());
          all.kernels[i] = 0;
        }
      }
      set = bind(all);
    }
    LLAMAC_ASSIGN_OR_RETURN(sets.emplace_back(), std::move(set));
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The gate
//===----------------------------------------------------------------------===//

absl::Status ProgramTuner::gateCandidates() {
  LLAMAC_RETURN_IF_ERROR(bindSets());
  for (StepPlan step : stepsOf(plan, result.step.number)) {
    tell(absl::StrCat("comparing candidates with the defaults, ",
                      step.sequences * step.tokens, " rows"));
    LLAMAC_RETURN_IF_ERROR(steps.run(
        step, [&] { return isOver(); },
        [&](const StepShape &shape, StepMemory &memory) {
          return gateStep(shape, memory);
        }));
  }
  for (Choice &kernel : kernels)
    for (size_t k = 1; k < kernel.candidates.size(); ++k)
      if (kernel.candidates[k].rejected.empty() && isOver())
        kernel.candidates[k].rejected = outOfTime;
  // A rejected candidate never runs again.
  return bindSets();
}

/// Runs a step with the default configs, and compares the memory that
/// candidates write with theirs at the first and the last launch of each
/// kernel: those between differ only in the places of their operands. Ends
/// early when time is up.
absl::Status ProgramTuner::gateStep(const StepShape &shape,
                                    StepMemory &memory) {
  const auto read = [&](size_t launch, LaunchMemory &copy) {
    return readLaunch(plan, program, *launches[launch], steps.of(), memory,
                      copy);
  };
  std::map<uint32_t, std::pair<size_t, size_t>> ends; // By kernel.
  for (size_t i = 0; i < launches.size(); ++i)
    ends.try_emplace(launches[i]->kernel, i, i).first->second.second = i;
  LaunchMemory start, expected, got;
  for (size_t i = 0; i < launches.size() && !isOver(); ++i) {
    const schema::LaunchT &launch = *launches[i];
    const auto [first, last] = ends[launch.kernel];
    const auto kernel =
        std::ranges::find(kernels, launch.kernel, &Choice::number);
    const bool isGated = kernel != kernels.end() && (i == first || i == last) &&
                         rowsOf(launch, shape) != 0;
    if (isGated)
      LLAMAC_RETURN_IF_ERROR(read(i, start));
    LLAMAC_RETURN_IF_ERROR(sets[0].program->runLaunch(i, shape));
    if (!isGated)
      continue;
    LLAMAC_RETURN_IF_ERROR(read(i, expected));
    for (size_t k = 1; k < kernel->candidates.size() && !isOver(); ++k) {
      std::string &rejected = kernel->candidates[k].rejected;
      if (!rejected.empty())
        continue;
      LLAMAC_RETURN_IF_ERROR(writeLaunch(launch, start, memory));
      const absl::Status status = sets[k].program->runLaunch(i, shape);
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

/// The first launches of a long step, and at least one of each kernel.
absl::Status ProgramTuner::chooseTimedLaunches(const StepShape &shape) {
  constexpr double longEnough = 0.25;
  std::set<uint32_t> seen;
  double sum = 0;
  for (size_t i = 0; i < launches.size(); ++i) {
    if (!seen.insert(launches[i]->kernel).second && sum > longEnough)
      continue;
    const double start = steadySeconds();
    LLAMAC_RETURN_IF_ERROR(sets[0].program->runLaunch(i, shape));
    sum += steadySeconds() - start;
    timedLaunches.push_back(i);
  }
  timedSeconds = sum;
  return absl::OkStatus();
}

/// Seconds of the timed launches: where `each`, run one by one, the mean of
/// each kernel; else of all together, as they run without a profile.
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
  std::vector<double> means;
  for (const Choice &kernel : kernels) {
    double sum = 0, count = 0;
    for (const size_t launch : timedLaunches)
      if (launches[launch]->kernel == kernel.number) {
        sum += seconds[launch];
        ++count;
      }
    means.push_back(sum / count);
  }
  return means;
}

/// Takes rounds, in which `run` gives the seconds that each of `choices` takes
/// with candidate k, until all are decided or it is `until`.
absl::Status ProgramTuner::race(
    absl::Span<Choice> choices, const char *what, size_t fewest, double until,
    absl::FunctionRef<absl::StatusOr<std::vector<double>>(size_t k)> run) {
  constexpr size_t mostRounds = 100;
  for (size_t round = 0; round < mostRounds; ++round) {
    std::set<size_t> open = {0};
    for (const Choice &choice : choices) {
      const size_t selected = choice.selected;
      if (round < fewest)
        open.insert(selected);
      for (size_t k = 0; k < choice.candidates.size(); ++k)
        if (k != selected && choice.candidates[k].rejected.empty() &&
            choice.trials.isOpen(k, selected))
          open.insert({k, selected});
    }
    if (open.size() == 1 && round >= fewest)
      break;
    tell(absl::StrCat(what, ", round ", round + 1, " of ", open.size()));
    std::vector<size_t> order(open.begin(), open.end());
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::vector<std::optional<double>>> times;
    for (const Choice &choice : choices)
      times.emplace_back(choice.candidates.size());
    for (size_t pass = 0; pass < passes(); ++pass)
      for (const size_t k : order) {
        if (isOver(until))
          return absl::OkStatus();
        LLAMAC_ASSIGN_OR_RETURN(const std::vector<double> seconds, run(k));
        for (size_t i = 0; i < choices.size(); ++i)
          if (k < times[i].size() && choices[i].candidates[k].rejected.empty())
            times[i][k] = std::min(times[i][k].value_or(HUGE_VAL), seconds[i]);
      }
    for (size_t i = 0; i < choices.size(); ++i) {
      choices[i].trials.addRound(times[i]);
      choices[i].selected = choices[i].trials.fastest();
    }
  }
  return absl::OkStatus();
}

/// Compares whole steps: with defaults, with the selected configs, and with
/// these and other overlaps, which must give the same bits.
absl::Status ProgramTuner::compareSteps(const StepShape &shape,
                                        StepMemory &memory) {
  std::vector<Candidate> &candidates = result.step.candidates;
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
  result.step.trials = Trials(candidates.size());

  // In an arena of NaN: a step reads nothing that another one wrote.
  const std::vector<uint8_t> nan(overlaps ? program.arenaBytes : 0, 0xff);
  std::vector<BoundProgram> bound;
  std::vector<uint8_t> expected;
  for (size_t i = 0; i < candidates.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(bound.emplace_back(), bind(stepConfigs[i]));
    if (!overlaps || stepConfigs[i].kernels != tuned.kernels)
      continue;
    LLAMAC_RETURN_IF_ERROR(
        memory.write({schema::OperandKind::Arena, 0, 0}, 0, nan));
    LLAMAC_RETURN_IF_ERROR(bound[i].program->run(shape));
    LLAMAC_ASSIGN_OR_RETURN(
        const std::vector<uint8_t> logits,
        readMemory(
            memory, {schema::OperandKind::Arena, 0, program.logitsOffset},
            static_cast<uint64_t>(shape.outputRows * plan.config->vocabSize) *
                sizeof(float)));
    if (stepConfigs[i] == tuned)
      expected = logits;
    else if (logits != expected)
      candidates[i].rejected = "the logits differ";
  }
  result.isDecided = std::all_of(
      candidates.begin() + 1, candidates.end(),
      [](const Candidate &other) { return !other.rejected.empty(); });
  if (result.isDecided)
    return absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR(race(
      absl::MakeSpan(&result.step, 1), "whole steps", /*fewest=*/9, deadline,
      [&](size_t k) { return time(bound[k], shape, /*each=*/false); }));
  result.isDecided = result.step.trials.rounds() >= Trials::leastRounds;
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

absl::Status ProgramTuner::run(CandidateCompiler &compiler) {
  std::vector<StepPlan> planned = stepsOf(plan, result.step.number);
  StepPlan &timed = planned.back();
  tell("compiling candidates");
  const double compiled = shareOfTime(0.4);
  compiler.finish(result.step.number, [&] { return isOver(compiled); });
  LLAMAC_RETURN_IF_ERROR(gateCandidates());
  if (plan.target != "sim" && !isOver()) {
    // For the tokens before the step.
    const double until = shareOfTime(0.25);
    LLAMAC_RETURN_IF_ERROR(steps.run(
        timed, [&] { return isOver(until); },
        [&](const StepShape &shape, StepMemory &memory) -> absl::Status {
          LLAMAC_RETURN_IF_ERROR(chooseTimedLaunches(shape));
          LLAMAC_RETURN_IF_ERROR(race(
              absl::MakeSpan(kernels), "candidates", Trials::leastRounds,
              shareOfTime(0.6),
              [&](size_t k) { return time(sets[k], shape, /*each=*/true); }));
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
  sets.clear();
  return absl::OkStatus();
}

bool ProgramTuner::isChanged() const {
  return result.isDecided && result.step.selected != 0;
}

bool ProgramTuner::sharesKernels(const ProgramTuner &other) const {
  return std::ranges::any_of(launches, [&](const auto &launch) {
    return std::ranges::any_of(other.launches, [&](const auto &known) {
      return known->kernel == launch->kernel;
    });
  });
}

void ProgramTuner::takeDefaults() {
  result.step.selected = 0;
  for (Choice &kernel : kernels)
    kernel.selected = 0;
}

absl::Status ProgramTuner::compareAsUsed(
    const std::array<std::shared_ptr<const Model>, 2> &models, double until) {
  tell("comparing the tuned model with the untuned one");
  const StepPlan step = stepsOf(plan, result.step.number).back();
  const bool isPrompt = step.tokens > 1;
  constexpr int64_t promptTokens = 128, turns = 4;
  const int64_t prompt =
      isPrompt ? step.tokens : std::min(promptTokens, plan.context / 2);
  const int64_t turn =
      std::min(stepsOfTurn(model), (plan.context - prompt) / turns);
  const std::vector<int32_t> tokens =
      spreadTokens(prompt + turns * turn, plan.config->vocabSize);
  const auto ids = absl::MakeConstSpan(tokens);
  std::array<std::unique_ptr<Engine>, 2> engines;
  for (size_t which = 0; which < 2; ++which) {
    LLAMAC_ASSIGN_OR_RETURN(engines[which], Engine::create(models[which]));
  }
  Trials &trials = result.asUsed;
  const auto isOpen = [&] {
    return !isOver(until) &&
           (trials.rounds() < Trials::leastRounds || trials.isOpen(1, 0)) &&
           trials.rounds() < 100;
  };
  size_t first = 0;
  for (bool isWarm = false; isOpen(); isWarm = true) {
    std::array<ModelRun, 2> runs = {ModelRun(*engines[0], step.sequences),
                                    ModelRun(*engines[1], step.sequences)};
    Trials prompts(2), decode(2);
    LLAMAC_RETURN_IF_ERROR(timeBoth(first, prompts, [&](size_t which) {
      return runs[which].prefill(ids.first(prompt));
    }));
    for (int64_t i = 0; i < turns && !isPrompt && isOpen(); ++i) {
      LLAMAC_RETURN_IF_ERROR(
          timeBoth(first, isWarm ? trials : decode, [&](size_t which) {
            return runs[which].decode(ids.subspan(prompt + i * turn, turn));
          }));
      first = 1 - first;
    }
    if (isPrompt && isWarm)
      trials.addRound({{prompts.secondsOf(0), prompts.secondsOf(1)}});
    first = 1 - first;
  }
  return absl::OkStatus();
}

std::vector<TuningEntry> ProgramTuner::entries() const {
  std::vector<TuningEntry> all;
  const auto add = [&](const Choice &choice, const std::string &config) {
    TuningEntry &entry =
        all.emplace_back(TuningEntry{.device = model.device().identity(plan),
                                     .generator = plan.generator,
                                     .kernel = choice.tuning,
                                     .config = config});
    // Of others by the ratio of times in the same rounds.
    const Trials &trials = choice.trials;
    entry.seconds = trials.secondsOf(choice.selected);
    for (size_t k = 0; k < choice.candidates.size(); ++k) {
      const Trials::Ratio ratio = trials.ratioOf(k, choice.selected);
      const double seconds = entry.seconds * ratio.median;
      if (k == 0)
        entry.defaultSeconds = seconds;
      if (k != choice.selected && ratio.rounds != 0 &&
          (entry.runnerUpSeconds == 0 || seconds < entry.runnerUpSeconds)) {
        entry.runnerUp = choice.candidates[k].config;
        entry.runnerUpSeconds = seconds;
      }
    }
  };
  for (const Choice &kernel : kernels)
    add(kernel, kernel.candidates[kernel.selected].config);
  if (overlaps && result.step.trials.rounds() > 0)
    add(result.step, overlapConfig(stepConfigs[result.step.selected].overlap));
  return all;
}

/// Runs what is kept in `store` beside the defaults, as answers run, until
/// `end`, and gives programs that are not shown to be as fast their defaults
/// back, with those that share kernels with them.
static absl::Status
keepWhatIsFaster(const std::shared_ptr<const Model> &model,
                 absl::Span<const std::unique_ptr<ProgramTuner>> tuners,
                 TuningStore &store, const VariantCompiler *compiler,
                 double end) {
  LLAMAC_ASSIGN_OR_RETURN(
      auto plan,
      tunedPlan(model->planReader(), model->device(), store, compiler));
  if (!plan)
    return absl::OkStatus();
  std::array<std::shared_ptr<const Model>, 2> models = {model};
  LLAMAC_ASSIGN_OR_RETURN(models[1], model->withPlan(std::move(plan)));
  std::vector<ProgramTuner *> changed;
  for (const auto &tuner : tuners)
    if (tuner->isChanged())
      changed.push_back(tuner.get());
  std::set<ProgramTuner *> slower;
  for (size_t i = 0; i < changed.size(); ++i) {
    const double now = steadySeconds();
    LLAMAC_RETURN_IF_ERROR(changed[i]->compareAsUsed(
        models, now + (end - now) / static_cast<double>(changed.size() - i)));
    const Trials::Ratio ratio = changed[i]->results().asUsed.ratioOf(1);
    if (ratio.rounds < Trials::leastRounds || ratio.median > 1)
      slower.insert(changed[i]);
  }
  for (bool grows = true; grows;) {
    grows = false;
    for (ProgramTuner *tuner : changed)
      for (ProgramTuner *other : std::vector(slower.begin(), slower.end()))
        grows |= tuner->sharesKernels(*other) && slower.insert(tuner).second;
  }
  for (ProgramTuner *tuner : slower) {
    tuner->takeDefaults();
    LLAMAC_RETURN_IF_ERROR(store.keep(tuner->entries()).status());
  }
  return absl::OkStatus();
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
  const bool queuesSteps = model->samples();
  const double tuned = queuesSteps ? start + 0.8 * (end - start) : end;
  std::vector<std::unique_ptr<ProgramTuner>> tuners;
  for (size_t number = 0; number < plan.programs.size(); ++number)
    tuners.push_back(
        std::make_unique<ProgramTuner>(*model, number, options, *steps));

  // Where measuring leaves the host's threads idle, they compile meanwhile: the
  // first candidates of all programs ahead of all others.
  const bool compilesAhead = plan.target == "cuda";
  const int threads = model->device().threads();
  CandidateCompiler compiler(*model, options.compiler,
                             compilesAhead ? std::max(1, threads - 1)
                                           : threads);
  if (compilesAhead) {
    std::vector<CompileJob> first, others;
    for (const auto &tuner : tuners) {
      if (!tuner->hasWork())
        continue;
      LLAMAC_RETURN_IF_ERROR(tuner->weighKernels());
      std::set<size_t> seen;
      for (const CompileJob &job : tuner->jobs())
        (seen.insert(job.kernel).second ? first : others).push_back(job);
    }
    first.insert(first.end(), others.begin(), others.end());
    compiler.add(first);
  }

  // Programs that have steps share the time that those before them left. The
  // last one's, of many rows, take longest: it has two shares.
  std::vector<int> shares;
  for (const auto &tuner : tuners)
    shares.push_back(tuner->hasWork() ? 1 : 0);
  shares.back() *= 2;
  std::vector<ProgramResult> results;
  size_t count = 0;
  for (; count < tuners.size() && !(options.stop && *options.stop); ++count) {
    ProgramTuner &tuner = *tuners[count];
    if (!tuner.hasWork())
      continue;
    const double now = steadySeconds();
    const int left = std::accumulate(shares.begin() + count, shares.end(), 0);
    tuner.setDeadline(now + (tuned - now) * shares[count] / left);
    if (!compilesAhead)
      compiler.add(tuner.jobs());
    LLAMAC_RETURN_IF_ERROR(tuner.run(compiler));
    if (tuner.results().isDecided)
      LLAMAC_RETURN_IF_ERROR(store.keep(tuner.entries()).status());
  }
  // Those behind stay until the compiler has ended, which may have begun
  // candidates of theirs.
  const auto ran = absl::MakeConstSpan(tuners).first(count);
  if (queuesSteps)
    LLAMAC_RETURN_IF_ERROR(
        keepWhatIsFaster(model, ran, store, options.compiler, end));
  for (const auto &tuner : ran)
    results.push_back(std::move(tuner->results()));
  return results;
}

} // namespace llamac
