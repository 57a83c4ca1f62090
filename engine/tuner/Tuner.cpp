//===- Tuner.cpp - Finds the fastest configs for a machine ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each program of a plan is tuned on its own, from that of one row on, in the
// steps that docs/autotuning.md lists: its candidates are compiled, compared
// with the defaults, timed in whole steps, and confirmed together.
//
// Set number k has candidate k of every kernel: a plan with these variants,
// loaded and bound to the engine's memory.
//
//===----------------------------------------------------------------------===//

#include "engine/tuner/Tuner.h"

#include "engine/tuner/Gate.h"
#include "engine/tuner/ModelRun.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Progress.h"
#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"
#include "runtime/threads/ParallelFor.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace llamac {

namespace {

/// The model with some configs, and its program bound to the step's memory.
struct BoundProgram {
  std::shared_ptr<const Model> model; ///< Has the code.
  std::unique_ptr<PreparedProgram> program;
};

/// Which candidate of a kernel to take.
using CandidateOf = absl::FunctionRef<size_t(const Choice &kernel)>;

using Seconds = absl::StatusOr<std::vector<double>>;

/// Tunes one program.
class ProgramTuner {
public:
  ProgramTuner(const std::shared_ptr<const Model> &model, size_t number,
               const TuneOptions &options, StepRunner &steps)
      : result{.step = {model->plan().programs[number]->name,
                        model->plan().programs[number]->tuning, number}},
        model(model), plan(model->plan()), program(*plan.programs[number]),
        launches(program.launches), options(options), steps(steps),
        planned(stepsOf(plan, number)) {
    findCandidates();
  }

  /// Whether there is anything to tune; result.skipped says why not.
  bool hasWork() const { return result.skipped.empty(); }

  absl::Status run(Deadline until);

  /// For the store, after a run that was decided.
  std::vector<TuningEntry> entries() const;

  ProgramResult result;

private:
  void findCandidates();
  void tell(const std::string &what) const {
    if (options.progress)
      options.progress(absl::StrCat(program.name, ": ", what));
  }
  absl::StatusOr<BoundProgram>
  bind(CandidateOf candidateOf,
       schema::Overlap overlap = schema::Overlap::FromStart) const;
  /// Says of all candidates that are not rejected that there was no time.
  void leaveOut();
  absl::Status bindSets();
  absl::Status gateStep(const StepShape &shape, StepMemory &memory,
                        Deadline until);
  absl::Status chooseTimedLaunches(const StepShape &shape);
  Seconds time(const BoundProgram &bound, const StepShape &shape, bool each);
  absl::Status race(absl::Span<Choice> choices, const char *what, size_t fewest,
                    Deadline until, absl::FunctionRef<Seconds(size_t k)> run);
  absl::Status compareSteps(const StepShape &shape, StepMemory &memory,
                            Deadline until);
  absl::Status compareAsUsed(std::shared_ptr<const Model> tuned,
                             Deadline until);

  const std::shared_ptr<const Model> &model;
  const schema::PlanT &plan;
  const schema::ProgramT &program;
  const std::vector<std::unique_ptr<schema::LaunchT>> &launches;
  const TuneOptions &options;
  StepRunner &steps;
  std::vector<StepPlan> planned; ///< The last is timed.
  std::vector<Choice> &kernels = result.kernels;
  bool overlaps = false; ///< Whether launches do, on a device with a clock.
  std::vector<BoundProgram> sets;
  std::vector<size_t> timedLaunches;
  double timedSeconds = 0; ///< Seconds of the timed launches, or of what else
                           ///< is timed.
  std::mt19937 random;
};

} // namespace

static size_t defaultOf(const Choice &) { return 0; }
static size_t selectedOf(const Choice &kernel) { return kernel.selected; }

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// Finds the candidates of each kernel with variants: its default and the first
/// of them. A GPU's compiler takes seconds for one: kernels of little time have
/// none there.
void ProgramTuner::findCandidates() {
  constexpr double leastShare = 0.02;
  std::map<size_t, double> predicted;
  double all = 0;
  for (const auto &launch : launches) {
    const schema::KernelT &kernel = *plan.kernels[launch->kernel];
    if (!kernel.variants.empty())
      predicted[launch->kernel] += kernel.predicted;
    all += kernel.predicted;
    overlaps |= kernel.geometry->dependent && plan.target == "cuda";
  }
  for (const auto &[number, seconds] : predicted) {
    const schema::KernelT &of = *plan.kernels[number];
    Choice &kernel = kernels.emplace_back(of.symbol, of.tuning, number);
    kernel.candidates.emplace_back();
    for (size_t i = 0;
         i < of.variants.size() && std::cmp_less(i, options.candidates); ++i)
      kernel.candidates.push_back(
          {.config = of.variants[i]->tiles, .kernel = {.variant = i}});
    if (plan.target == "cuda" && seconds < leastShare * all)
      for (size_t k = 1; k < kernel.candidates.size(); ++k)
        kernel.candidates[k].rejected =
            absl::StrFormat("not tried: the kernel has %.1f %% of the time",
                            100 * seconds / all);
    kernel.trials = Trials(kernel.candidates.size());
  }
  const auto before =
      absl::MakeConstSpan(plan.programs).first(result.step.number);
  if (std::ranges::any_of(before, [&](const auto &other) {
        return isResident(plan, *other) && other->maxRows >= program.maxRows;
      }))
    result.skipped = "a resident step takes its rows";
  else if (planned.empty())
    result.skipped = "the plan keeps too few sequences or tokens for its "
                     "steps (--parallel, --ctx-size)";
  else if (kernels.empty() && !overlaps)
    result.skipped = "no kernel of it has variants";
}

absl::StatusOr<BoundProgram> ProgramTuner::bind(CandidateOf candidateOf,
                                                schema::Overlap overlap) const {
  SelectedConfigs selected;
  selected.kernels.resize(plan.kernels.size());
  selected.overlaps.resize(plan.programs.size());
  for (const Choice &kernel : kernels)
    selected.kernels[kernel.number] =
        kernel.candidates[candidateOf(kernel)].kernel;
  selected.overlaps[result.step.number] = overlap;
  BoundProgram bound;
  LLAMAC_ASSIGN_OR_RETURN(auto reader,
                          model->planReader()->withConfigs(selected));
  LLAMAC_ASSIGN_OR_RETURN(bound.model, model->withPlan(std::move(reader)));
  LLAMAC_ASSIGN_OR_RETURN(bound.program,
                          steps.of().stepMemory().prepare(bound.model->loaded(),
                                                          result.step.number));
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
    const auto ofSet = [&](const Choice &kernel) {
      return kernel.has(k) ? k : 0;
    };
    absl::StatusOr<BoundProgram> set = bind(ofSet);
    if (!set.ok() && k != 0) {
      for (Choice &kernel : kernels) {
        const auto alone = [&](const Choice &other) {
          return &other == &kernel ? k : 0;
        };
        if (kernel.has(k))
          kernel.candidates[k].rejected =
              std::string(bind(alone).status().message());
      }
      set = bind(ofSet);
    }
    LLAMAC_ASSIGN_OR_RETURN(sets.emplace_back(), std::move(set));
  }
  return absl::OkStatus();
}

/// Runs a step with the default configs, and compares the memory that
/// candidates write with theirs at the first and the last launch of each
/// kernel: those between differ only in the places of their operands. Ends
/// early when time is up.
absl::Status ProgramTuner::gateStep(const StepShape &shape, StepMemory &memory,
                                    Deadline until) {
  std::map<uint32_t, std::pair<size_t, size_t>> ends; // First and last launch
                                                      // by kernel.
  for (size_t i = 0; i < launches.size(); ++i)
    ends.try_emplace(launches[i]->kernel, i, i).first->second.second = i;
  for (size_t i = 0; i < launches.size() && !until.isOver(); ++i) {
    const schema::LaunchT &launch = *launches[i];
    const auto [first, last] = ends[launch.kernel];
    const auto kernel =
        std::ranges::find(kernels, launch.kernel, &Choice::number);
    if (kernel == kernels.end() || (i != first && i != last) ||
        rowsOf(launch, shape) == 0) {
      LLAMAC_RETURN_IF_ERROR(sets[0].program->runLaunch(i, shape));
      continue;
    }
    const auto read = [&] {
      return readLaunch(program, launch, steps.of(), memory);
    };
    LLAMAC_ASSIGN_OR_RETURN(const LaunchMemory start, read());
    LLAMAC_RETURN_IF_ERROR(sets[0].program->runLaunch(i, shape));
    LLAMAC_ASSIGN_OR_RETURN(const LaunchMemory expected, read());
    for (size_t k = 1; k < kernel->candidates.size() && !until.isOver(); ++k) {
      if (!kernel->has(k))
        continue;
      LLAMAC_RETURN_IF_ERROR(writeLaunch(launch, start, memory));
      const absl::Status status = sets[k].program->runLaunch(i, shape);
      LLAMAC_ASSIGN_OR_RETURN(const LaunchMemory got, read());
      kernel->candidates[k].rejected =
          status.ok() ? compareLaunches(start, expected, got, plan.kv->type,
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
  for (size_t i = 0; i < launches.size(); ++i) {
    if (!seen.insert(launches[i]->kernel).second && timedSeconds > longEnough)
      continue;
    LLAMAC_ASSIGN_OR_RETURN(const double seconds, timed([&] {
                              return sets[0].program->runLaunch(i, shape);
                            }));
    timedSeconds += seconds;
    timedLaunches.push_back(i);
  }
  return absl::OkStatus();
}

/// Seconds of the timed launches: where `each`, run one by one, the mean of
/// each kernel; else of all together, as they run without a profile.
Seconds ProgramTuner::time(const BoundProgram &bound, const StepShape &shape,
                           bool each) {
  const double begin = steadySeconds();
  std::vector<double> seconds(launches.size());
  if (timedLaunches.size() < launches.size()) {
    for (const size_t launch : timedLaunches) {
      LLAMAC_ASSIGN_OR_RETURN(seconds[launch], timed([&] {
                                return bound.program->runLaunch(launch, shape);
                              }));
    }
  } else if (each) {
    LLAMAC_ASSIGN_OR_RETURN(seconds, bound.program->runTimed(shape));
  } else {
    LLAMAC_RETURN_IF_ERROR(bound.program->run(shape));
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
absl::Status ProgramTuner::race(absl::Span<Choice> choices, const char *what,
                                size_t fewest, Deadline until,
                                absl::FunctionRef<Seconds(size_t k)> run) {
  constexpr size_t mostRounds = 100;
  // A round takes the least of several times of a short step, without noise.
  const size_t passes = timedSeconds < 0.1 ? 4 : 1;
  for (size_t round = 0; round < mostRounds; ++round) {
    std::set<size_t> open = {0};
    for (const Choice &choice : choices) {
      const size_t selected = choice.selected;
      if (round < fewest)
        open.insert(selected);
      for (size_t k = 0; k < choice.candidates.size(); ++k)
        if (k != selected && choice.has(k) && choice.trials.isOpen(k, selected))
          open.insert({k, selected});
    }
    if (open.size() == 1 && round >= fewest)
      break;
    tell(absl::StrCat(what, ", round ", round + 1, ", ", open.size(),
                      " to compare"));
    std::vector<size_t> order(open.begin(), open.end());
    std::shuffle(order.begin(), order.end(), random);
    std::vector<std::vector<std::optional<double>>> times;
    for (const Choice &choice : choices)
      times.emplace_back(choice.candidates.size());
    for (size_t pass = 0; pass < passes; ++pass)
      for (const size_t k : order) {
        if (until.isOver(timedSeconds))
          return absl::OkStatus();
        LLAMAC_ASSIGN_OR_RETURN(const std::vector<double> seconds, run(k));
        for (size_t i = 0; i < choices.size(); ++i)
          if (choices[i].has(k))
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
                                        StepMemory &memory, Deadline until) {
  std::vector<Candidate> &candidates = result.step.candidates;
  candidates.emplace_back();
  if (std::ranges::any_of(kernels, selectedOf))
    candidates.push_back({.config = "tuned"});
  const size_t tuned = candidates.size() - 1;
  for (const schema::Overlap overlap : schema::EnumValuesOverlap())
    if (overlaps && overlap != schema::Overlap::FromStart)
      candidates.push_back(
          {.config = overlapConfig(overlap), .overlap = overlap});
  result.step.trials = Trials(candidates.size());
  // In an arena of NaN: a step reads nothing that another one wrote.
  const std::vector<uint8_t> nan(overlaps ? program.arenaBytes : 0, 0xff);
  const int64_t logits = shape.outputRows * plan.config->vocabSize;
  std::vector<BoundProgram> bound;
  std::vector<uint8_t> expected;
  for (size_t i = 0; i < candidates.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(
        bound.emplace_back(),
        bind(i < tuned ? defaultOf : selectedOf, candidates[i].overlap));
    if (!overlaps || i < tuned)
      continue;
    LLAMAC_RETURN_IF_ERROR(memory.write(arenaAt(0), 0, nan));
    LLAMAC_RETURN_IF_ERROR(bound[i].program->run(shape));
    LLAMAC_ASSIGN_OR_RETURN(std::vector<uint8_t> got,
                            readMemory(memory, arenaAt(program.logitsOffset),
                                       logits * sizeof(float)));
    if (i == tuned)
      expected = std::move(got);
    else if (got != expected)
      candidates[i].rejected = "the logits differ";
  }
  result.isDecided = std::all_of(
      candidates.begin() + 1, candidates.end(),
      [](const Candidate &other) { return !other.rejected.empty(); });
  if (result.isDecided)
    return absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR(
      race(absl::MakeSpan(&result.step, 1), "whole steps", /*fewest=*/9, until,
           [&](size_t k) { return time(bound[k], shape, /*each=*/false); }));
  result.isDecided = result.step.trials.rounds() >= Trials::leastRounds;
  return absl::OkStatus();
}

/// Adds rounds of what the program is for, a prompt or a turn of an answer,
/// with defaults and as `tuned`, until it is clear whether that is slower.
absl::Status ProgramTuner::compareAsUsed(std::shared_ptr<const Model> tuned,
                                         Deadline until) {
  const StepPlan &step = planned.back();
  const bool isPrompt = step.tokens > 1;
  const int64_t prompt =
      isPrompt ? step.tokens : std::clamp<int64_t>(plan.context / 2, 1, 128);
  const int64_t turn = std::min(stepsOfTurn(*model), plan.context - prompt);
  const std::vector<int32_t> tokens =
      spreadTokens(prompt + turn, plan.config->vocabSize);
  const auto ids = absl::MakeConstSpan(tokens);
  std::array<std::unique_ptr<Engine>, 2> engines;
  LLAMAC_ASSIGN_OR_RETURN(engines[0], Engine::create(model));
  LLAMAC_ASSIGN_OR_RETURN(engines[1], Engine::create(std::move(tuned)));
  const auto use = [&](size_t k) -> Seconds {
    ModelRun run(*engines[k], step.sequences);
    LLAMAC_ASSIGN_OR_RETURN(
        double seconds, timed([&] { return run.prefill(ids.first(prompt)); }));
    if (!isPrompt) {
      LLAMAC_ASSIGN_OR_RETURN(
          seconds, timed([&] { return run.decode(ids.subspan(prompt)); }));
    }
    return std::vector<double>{seconds};
  };
  for (const size_t k : {0, 1}) { // Two steps warm up.
    LLAMAC_ASSIGN_OR_RETURN(const auto seconds, use(k));
    timedSeconds = seconds.front();
  }
  result.asUsed.candidates = {{}, {.config = "tuned"}};
  result.asUsed.trials = Trials(2);
  return race(absl::MakeSpan(&result.asUsed, 1), "as used", Trials::leastRounds,
              until, use);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

void ProgramTuner::leaveOut() {
  for (Choice &kernel : kernels)
    for (size_t k = 1; k < kernel.candidates.size(); ++k)
      if (kernel.has(k))
        kernel.candidates[k].rejected = outOfTime;
}

absl::Status ProgramTuner::run(Deadline until) {
  // Where a device queues steps, which no step alone shows, the rest of the
  // time is for the program as it is used.
  const Deadline stepsUntil = model->samples() ? until.share(0.8) : until;
  StepPlan &step = planned.back();
  result.rows = step.sequences * step.tokens;
  result.context = step.before + step.tokens;
  if (until.isStopped()) {
    leaveOut();
    return absl::OkStatus();
  }
  LLAMAC_RETURN_IF_ERROR(bindSets());
  for (StepPlan each : planned) {
    tell(absl::StrCat("comparing candidates with the defaults, ",
                      formatCount(each.sequences * each.tokens, "row")));
    LLAMAC_RETURN_IF_ERROR(steps.run(
        each, stepsUntil, [&](const StepShape &shape, StepMemory &memory) {
          return gateStep(shape, memory, stepsUntil);
        }));
  }
  if (stepsUntil.isOver())
    leaveOut();
  // A rejected candidate never runs again.
  LLAMAC_RETURN_IF_ERROR(bindSets());
  if (plan.target != "sim" && !stepsUntil.isOver()) {
    LLAMAC_RETURN_IF_ERROR(steps.run(
        step, stepsUntil.share(0.25), // For the tokens before the step.
        [&](const StepShape &shape, StepMemory &memory) -> absl::Status {
          LLAMAC_RETURN_IF_ERROR(chooseTimedLaunches(shape));
          LLAMAC_RETURN_IF_ERROR(race(
              absl::MakeSpan(kernels), "candidates", Trials::leastRounds,
              stepsUntil.share(0.6),
              [&](size_t k) { return time(sets[k], shape, /*each=*/true); }));
          for (const Choice &kernel : kernels)
            if (kernel.trials.rounds() < Trials::leastRounds)
              return absl::OkStatus();
          return compareSteps(shape, memory, stepsUntil);
        }));
  }
  sets.clear();
  result.context = step.before + step.tokens; // Fewer where time was short.
  const auto takeDefaults = [&] {
    result.step.selected = 0;
    for (Choice &kernel : kernels)
      kernel.selected = 0;
  };
  if (!result.isDecided || result.step.selected == 0) {
    takeDefaults();
  } else if (model->samples()) {
    const schema::Overlap overlap =
        result.step.candidates[result.step.selected].overlap;
    LLAMAC_ASSIGN_OR_RETURN(const BoundProgram tuned,
                            bind(selectedOf, overlap));
    LLAMAC_RETURN_IF_ERROR(compareAsUsed(tuned.model, until));
    const Trials::Ratio ratio = result.asUsed.trials.ratioOf(1);
    if (ratio.rounds < Trials::leastRounds || ratio.median > 1)
      takeDefaults();
  }
  return absl::OkStatus();
}

std::vector<TuningEntry> ProgramTuner::entries() const {
  std::vector<TuningEntry> all;
  const auto add = [&](const Choice &choice, const std::string &config) {
    TuningEntry &entry =
        all.emplace_back(TuningEntry{.device = model->loaded().identity(),
                                     .generator = plan.generator,
                                     .kernel = choice.tuning,
                                     .config = config});
    entry.seconds = choice.trials.secondsOf(choice.selected);
    // Times of others come from the ratio of times in the same rounds; 0
    // without any.
    const auto secondsOf = [&](size_t k) {
      return entry.seconds * choice.trials.ratioOf(k, choice.selected).median;
    };
    entry.defaultSeconds = secondsOf(0);
    for (size_t k = 0; k < choice.candidates.size(); ++k)
      if (const double seconds = secondsOf(k);
          k != choice.selected && seconds > 0 &&
          (entry.runnerUpSeconds == 0 || seconds < entry.runnerUpSeconds)) {
        entry.runnerUp = choice.candidates[k].config;
        entry.runnerUpSeconds = seconds;
      }
  };
  // A kernel that had no time does not replace what an earlier tune found.
  for (const Choice &kernel : kernels)
    if (std::any_of(kernel.candidates.begin() + 1, kernel.candidates.end(),
                    [](const Candidate &k) { return k.rejected != outOfTime; }))
      add(kernel, kernel.candidates[kernel.selected].config);
  const Choice &step = result.step;
  if (overlaps && step.trials.rounds() > 0)
    add(step, overlapConfig(step.candidates[step.selected].overlap));
  return all;
}

static absl::Status compileCandidate(const Model &model,
                                     const VariantCompiler *compiler,
                                     size_t kernel, KernelConfig &config) {
  const schema::PlanT &plan = model.plan();
  if (!needsCompiler(plan))
    return model.code().compileAhead(kernel, *config.variant);
  LLAMAC_ASSIGN_OR_RETURN(
      std::string code,
      compiler->compile({plan.kernels[kernel]->variants[*config.variant].get()},
                        plan.target, model.code().isa()));
  config.code = std::make_shared<const std::string>(std::move(code));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ProgramResult>>
tuneModel(const std::shared_ptr<const Model> &model, const TuningStore &store,
          const TuneOptions &options) {
  // The rest is for the end of the last step.
  const Deadline end =
      Deadline{steadySeconds() + options.budget, options.stop}.share(0.97);
  const schema::PlanT &plan = model->plan();
  if (needsCompiler(plan)) {
    if (!options.compiler)
      return usageError(absl::StrCat(
          model->name(), ": expected a plan for cuda, got one for ",
          plan.target, ", whose kernels llamac tune compiles"));
    LLAMAC_RETURN_IF_ERROR(options.compiler->check(*model->planReader()));
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<StepRunner> steps,
                          StepRunner::create(model));
  // Programs that have steps share the time that those before them left. The
  // last one's, of many rows, take longest: it has two shares.
  std::vector<std::unique_ptr<ProgramTuner>> tuners;
  std::vector<double> shares;
  std::vector<std::pair<size_t, Candidate *>> jobs; // With kernels' numbers.
  for (size_t number = 0; number < plan.programs.size(); ++number) {
    ProgramTuner &tuner = *tuners.emplace_back(
        std::make_unique<ProgramTuner>(model, number, options, *steps));
    const bool isLast = number + 1 == plan.programs.size();
    shares.push_back(!tuner.hasWork() ? 0 : isLast ? 2 : 1);
    for (Choice &kernel : tuner.result.kernels)
      for (Candidate &candidate : kernel.candidates)
        if (tuner.hasWork() && candidate.kernel.variant &&
            candidate.rejected.empty())
          jobs.emplace_back(kernel.number, &candidate);
  }
  // The first candidates of all kernels go ahead of all others.
  std::ranges::sort(jobs, {}, [](const auto &job) {
    return std::pair(job.second->kernel.variant, job.first);
  });
  if (options.progress)
    options.progress("compiling candidates");
  const Deadline compiled = end.share(0.4);
  parallelFor(model->loaded().threads(), jobs.size(), [&](size_t i) {
    const auto &[kernel, candidate] = jobs[i];
    candidate->rejected =
        compiled.isOver()
            ? outOfTime
            : std::string(compileCandidate(*model, options.compiler, kernel,
                                           candidate->kernel)
                              .message());
  });
  std::vector<ProgramResult> results;
  for (size_t i = 0; i < tuners.size(); ++i) {
    ProgramTuner &tuner = *tuners[i];
    const double left = std::accumulate(shares.begin() + i, shares.end(), 0.0);
    if (tuner.hasWork())
      LLAMAC_RETURN_IF_ERROR(tuner.run(end.share(shares[i] / left)));
    if (tuner.result.isDecided)
      LLAMAC_RETURN_IF_ERROR(store.keep(tuner.entries()).status());
    results.push_back(std::move(tuner.result));
  }
  return results;
}

} // namespace llamac
