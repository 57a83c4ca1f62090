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
//  1. The variants that the compiler put first are compiled.
//  2. Each runs beside the default config of its kernel, from the same memory
//     (Gate.h): one with another result is rejected.
//  3. Whole steps run, round by round (Trials.h), each with another candidate
//     of every kernel, so that caches are as in a step. A config is selected
//     that is faster than the default by more than noise.
//  4. Steps with all selected configs are compared with default ones, and on a
//     GPU with other overlaps of launches, in fresh rounds.
//  5. The result is kept, with defaults where the program is no faster.
//
// Set number k has candidate k of every kernel: a plan with these variants,
// loaded and bound to the engine's memory.
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Tuner.h"

#include "runtime/base/Clock.h"
#include "runtime/base/ParallelFor.h"
#include "runtime/base/Status.h"
#include "runtime/engine/Engine.h"
#include "runtime/tune/Gate.h"

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace llamac {

static constexpr const char *outOfTime = "not tried: no time was left";

namespace {

/// A step that makes the engine run one program: some sequences that have
/// `before` tokens each get `tokens` more.
struct StepPlan {
  int64_t sequences = 1;
  int64_t before = 0;
  int64_t tokens = 1;
};

/// Brings an engine to where a step would run its program.
class StepRunner final : public LaunchObserver {
public:
  /// For the steps of all programs of `model`.
  static absl::StatusOr<std::unique_ptr<StepRunner>>
  create(const std::shared_ptr<const Model> &model);

  /// Gives `work` the shape and memory of a step whose inputs, pages and
  /// earlier tokens are in place; tokens stay for the next step. When `isOver`,
  /// fewer tokens come before, which `step` then says.
  using Work = absl::FunctionRef<absl::Status(const StepShape &, StepMemory &)>;
  absl::Status run(StepPlan &step, absl::FunctionRef<bool()> isOver, Work work);

  const Engine &of() const { return *engine; }

  absl::Status before(const LaunchSite &site, StepMemory &memory) override;

private:
  std::unique_ptr<Engine> engine;
  std::vector<Sequence> sequences; ///< Go before the engine does.
  Work *pending = nullptr;         ///< For the step that runs.
};

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
    findCandidates();
  }

  absl::StatusOr<ProgramResult> run();

  /// For the store, after a run that was decided.
  std::vector<TuningEntry> entries() const;

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
  void compileCandidates();
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
  double deadline;
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
// Steps
//===----------------------------------------------------------------------===//

/// Steps of program number `program`: whole tiles and ragged ones, with and
/// without a past, to compare variants; the last, of as many rows as the
/// program takes, to time them. None when the plan keeps too few sequences.
static std::vector<StepPlan> stepsOf(const schema::PlanT &plan,
                                     size_t program) {
  const schema::ProgramT &of = *plan.programs[program];
  const int64_t most = of.maxRows;
  const int64_t least =
      program == 0 ? 1 : plan.programs[program - 1]->maxRows + 1;
  // Prefill is of one prompt, from the longest past to none, and decode appends
  // to the tokens it has: so no token is computed twice.
  const bool isPrefill = program != 0 && program + 1 == plan.programs.size();
  std::vector<std::pair<int64_t, int64_t>> shapes = {
      {most, 0},
      {37, 70},
      {std::min(most - 1, int64_t{139}), 300},
      {most, 512}};
  if (isPrefill)
    shapes = {shapes[2], shapes[1], shapes[0]};
  std::vector<StepPlan> steps;
  for (const auto &[asked, before] : shapes) {
    const int64_t rows =
        std::min(std::clamp(asked, least, most),
                 isPrefill ? plan.context
                           : std::min(plan.kv->maxSequences, of.maxOutputRows));
    const int64_t tokens = isPrefill ? rows : 1;
    if (rows >= least)
      steps.push_back(
          {rows / tokens, std::min(before, plan.context - tokens), tokens});
  }
  return steps;
}

absl::StatusOr<std::unique_ptr<StepRunner>>
StepRunner::create(const std::shared_ptr<const Model> &model) {
  const schema::PlanT &plan = model->plan();
  std::vector<int64_t> longest; // By sequence, of all steps.
  for (size_t program = 0; program < plan.programs.size(); ++program)
    for (const StepPlan &step : stepsOf(plan, program)) {
      const auto count = static_cast<size_t>(step.sequences);
      longest.resize(std::max(longest.size(), count));
      for (size_t i = 0; i < count; ++i)
        longest[i] = std::max(longest[i], step.before + step.tokens);
    }
  int64_t pages = 0;
  for (const int64_t tokens : longest)
    pages += (tokens - 1) / plan.kv->pageTokens + 1;
  std::unique_ptr<StepRunner> runner(new StepRunner);
  LLAMAC_ASSIGN_OR_RETURN(
      runner->engine,
      Engine::create(model, {.kvPages = pages, .observer = runner.get()}));
  for (size_t i = 0; i < longest.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, runner->engine->newSequence());
    runner->sequences.push_back(std::move(sequence));
  }
  return runner;
}

static absl::Status ignoreLogits(const LogitsRow &) { return absl::OkStatus(); }

absl::Status StepRunner::run(StepPlan &step, absl::FunctionRef<bool()> isOver,
                             Work work) {
  constexpr int64_t piece = 128;
  const int64_t vocab = engine->model().config().vocabSize;
  // Ids spread over the vocabulary; each sequence begins `apart` ids further.
  constexpr int64_t apart = 31;
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < step.before + step.tokens + apart * step.sequences;
       ++i)
    tokens.push_back(static_cast<int32_t>((7919 * i + 11) % vocab));
  std::vector<SequenceTokens> batch;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < static_cast<size_t>(step.sequences); ++i) {
    Sequence &sequence = sequences[i];
    engine->truncate(sequence, std::min(sequence.length(), step.before));
    const auto next = [&](int64_t most) {
      return absl::MakeConstSpan(tokens).subspan(
          i * apart + static_cast<size_t>(sequence.length()),
          static_cast<size_t>(most));
    };
    while (sequence.length() < step.before && !isOver())
      LLAMAC_RETURN_IF_ERROR(engine->step(
          {{&sequence, next(std::min(piece, step.before - sequence.length())),
            OutputRows::None}},
          ignoreLogits));
    lengths.push_back(sequence.length());
    batch.push_back({&sequence, next(step.tokens), OutputRows::Last});
  }
  step.before = lengths.front();
  pending = &work;
  const absl::Status status = engine->step(batch, ignoreLogits);
  pending = nullptr;
  for (size_t i = 0; i < batch.size(); ++i)
    engine->truncate(*batch[i].sequence, lengths[i]);
  return absl::IsCancelled(status) ? absl::OkStatus() : status;
}

/// Runs the work alone: the step itself ends before its first launch.
absl::Status StepRunner::before(const LaunchSite &site, StepMemory &memory) {
  if (!pending)
    return absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR((*pending)(site.shape, memory));
  return absl::CancelledError("the work of the step is done");
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

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
}

void ProgramTuner::compileCandidates() {
  // The best of every kernel come first, in case time runs out.
  std::vector<std::pair<size_t, Choice *>> jobs;
  for (size_t k = 1; std::cmp_less_equal(k, options.candidates); ++k)
    for (Choice &kernel : kernels)
      if (k < kernel.candidates.size())
        jobs.emplace_back(k, &kernel);
  tell(absl::StrCat("compiling ", jobs.size(), " candidates"));
  const double until = shareOfTime(0.4);
  parallelFor(model.device().threads(), jobs.size(), [&](size_t i) {
    const auto &[k, kernel] = jobs[i];
    auto &[config, of, rejected] = kernel->candidates[k];
    if (isOver(until))
      rejected = outOfTime;
    else if (auto code = options.compiler->compile(
                 {plan.kernels[kernel->number]->variants[*of.variant].get()},
                 plan.target, model.code().isa());
             code.ok())
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
  return result;
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
  // Programs that have steps share the time that those before them left. The
  // last one's, of many rows, take longest: it has two shares.
  std::vector<int> shares;
  for (size_t i = 0; i < plan.programs.size(); ++i)
    shares.push_back(stepsOf(plan, i).empty() ? 0 : 1);
  shares.back() *= 2;
  std::vector<ProgramResult> results;
  for (size_t number = 0; number < shares.size(); ++number) {
    if (options.stop && *options.stop)
      break;
    const double now = steadySeconds();
    const int left = std::accumulate(shares.begin() + number, shares.end(), 0);
    const double deadline =
        now + (end - now) * shares[number] / std::max(1, left);
    ProgramTuner tuner(*model, number, options, *steps, deadline);
    LLAMAC_ASSIGN_OR_RETURN(results.emplace_back(), tuner.run());
    if (results.back().isDecided)
      LLAMAC_RETURN_IF_ERROR(store.keep(tuner.entries()).status());
  }
  return results;
}

} // namespace llamac
