//===- Tuner.cpp - Finds the tiles for the machine at hand ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/Tuner.h"

#include "runtime/base/Status.h"
#include "runtime/engine/Engine.h"
#include "runtime/tune/Gate.h"
#include "runtime/tune/Trials.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

namespace llamac {

VariantCompiler::~VariantCompiler() = default;

static double seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {

/// A step that makes the engine run one program: some sequences that have
/// `before` tokens each get `tokens` more.
struct StepPlan {
  int64_t sequences = 1;
  int64_t before = 0;
  int64_t tokens = 1;

  TunedStep tuned() const { return {sequences * tokens, before + tokens}; }
};

/// A plan with one candidate of each kernel, bound to the engine's memory.
struct Slate {
  std::unique_ptr<LoadedCode> code;
  std::unique_ptr<PreparedProgram> program;
};

/// Tunes one program.
class ProgramTuner final : public LaunchObserver {
public:
  ProgramTuner(std::shared_ptr<const Model> model, size_t program,
               const TuneOptions &options, const MachineSpec &machine,
               double deadline);

  absl::StatusOr<ProgramTuningResult> run();

  absl::Status before(const LaunchSite &site, StepMemory &memory) override;
  absl::Status after(const LaunchSite &site, StepMemory &memory) override;

private:
  enum class Phase { Idle, Gate, Trials };

  const schema::PlanT &plan() const { return model->plan(); }
  const schema::ProgramT &launches() const { return *plan().programs[program]; }

  bool isStopped() const;
  bool isOver() const;
  void tell(const std::string &what) const;
  std::vector<StepPlan> gateSteps() const;
  absl::Status compileCandidates();
  absl::StatusOr<Slate> makeSlate(absl::Span<const size_t> choice);
  absl::StatusOr<Slate> makeSoundSlate(std::vector<size_t> &choice);
  absl::Status makeGateSlates();
  absl::Status runStep(const StepPlan &step, Phase during);
  absl::StatusOr<LaunchMemory> readMemory(const schema::LaunchT &launch,
                                          StepMemory &memory) const;
  absl::Status writeMemory(const schema::LaunchT &launch,
                           const LaunchMemory &from, StepMemory &memory) const;
  TunedKernel *kernelOf(size_t launch);
  bool isGated(size_t launch) const;
  absl::Status measure(const StepShape &shape);
  std::vector<std::vector<size_t>> roundCandidates() const;
  absl::Status measureRound(const StepShape &shape, size_t round);
  absl::Status measureWhole(const StepShape &shape);
  void keep() const;

  std::shared_ptr<const Model> model;
  size_t program;
  const TuneOptions &options;
  MachineSpec machine;
  double begin;    ///< On seconds()'s clock.
  double deadline; ///< The same.
  StepPlan timed;
  std::vector<TunedKernel> kernels;
  std::vector<Trials> trials; ///< By kernel.
  std::vector<size_t> picks;  ///< By kernel.
  ProgramTuningResult result;

  std::unique_ptr<Engine> engine;
  Phase phase = Phase::Idle;
  std::vector<Slate> slates; ///< For the gate.
  bool isShortStep = false;  ///< Of those that are timed.
  /// While a launch is gated: the memory before it, and what each slate's
  /// variant made of it.
  LaunchMemory start;
  std::vector<std::pair<Candidate *, LaunchMemory>> outcomes;
};

} // namespace

/// What compiling may take of a program's time.
static constexpr double compileShare = 0.4;
static constexpr const char *outOfTime = "not tried: no time was left";

/// Tokens before a step of decode that is timed.
static constexpr int64_t timedContext = 512;

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// The most rows of the program before number `program`.
static int64_t fewerRows(const schema::PlanT &plan, size_t program) {
  return program == 0 ? 0 : plan.programs[program - 1]->maxRows;
}

/// A step of about `rows` rows, each with `before` tokens ahead of it, that
/// runs program number `program`; none when the plan keeps too few sequences.
static std::optional<StepPlan> stepOf(const schema::PlanT &plan, size_t program,
                                      int64_t rows, int64_t before) {
  const int64_t least = fewerRows(plan, program) + 1;
  const int64_t most = plan.programs[program]->maxRows;
  rows = std::clamp(rows, least, most);
  // The last program's rows are tokens of one prompt.
  if (program + 1 == plan.programs.size() && program != 0) {
    rows = std::min(rows, plan.context);
    if (rows < least)
      return std::nullopt;
    return StepPlan{1, std::min(before, plan.context - rows), rows};
  }
  rows = std::min(rows, plan.kv->maxSequences);
  if (rows < least)
    return std::nullopt;
  return StepPlan{rows, std::min(before, plan.context - 1), 1};
}

ProgramTuner::ProgramTuner(std::shared_ptr<const Model> model, size_t program,
                           const TuneOptions &options,
                           const MachineSpec &machine, double deadline)
    : model(std::move(model)), program(program), options(options),
      machine(machine), begin(seconds()), deadline(deadline) {}

bool ProgramTuner::isStopped() const { return options.stop && *options.stop; }

bool ProgramTuner::isOver() const {
  return isStopped() || seconds() > deadline;
}

void ProgramTuner::tell(const std::string &what) const {
  if (options.progress)
    options.progress(absl::StrCat(launches().name, ": ", what));
}

/// Whole tiles and ragged ones, with and without a past.
std::vector<StepPlan> ProgramTuner::gateSteps() const {
  std::vector<StepPlan> steps;
  const int64_t most = launches().maxRows;
  const std::pair<int64_t, int64_t> shapes[] = {
      {most, 0}, {std::min<int64_t>(most, 37), 70}, {most - 1, 300}};
  for (const auto &[rows, before] : shapes)
    if (const auto step = stepOf(plan(), program, rows, before))
      steps.push_back(*step);
  return steps;
}

/// Ids spread over the vocabulary, the same in every run.
static std::vector<int32_t> tokensOf(int64_t count, int64_t vocab,
                                     int64_t salt) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    ids[static_cast<size_t>(i)] =
        static_cast<int32_t>((7919 * (i + 31 * salt) + 11) % vocab);
  return ids;
}

/// Runs `step`; its last part, which runs the program, with `during`.
absl::Status ProgramTuner::runStep(const StepPlan &step, Phase during) {
  const auto ignore = [](const LogitsRow &) { return absl::OkStatus(); };
  const int64_t vocab = model->config().vocabSize;
  std::vector<Sequence> sequences;
  std::vector<std::vector<int32_t>> tokens;
  for (int64_t i = 0; i < step.sequences; ++i) {
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine->newSequence());
    sequences.push_back(std::move(sequence));
    const std::vector<int32_t> past = tokensOf(step.before, vocab, i);
    if (!past.empty())
      LLAMAC_RETURN_IF_ERROR(
          engine->step({{&sequences.back(), past, Wanted::None}}, ignore));
    tokens.push_back(tokensOf(step.tokens, vocab, i + step.sequences));
  }
  std::vector<SequenceTokens> batch;
  for (size_t i = 0; i < sequences.size(); ++i)
    batch.push_back({&sequences[i], tokens[i], Wanted::Last});
  phase = during;
  const absl::Status status = engine->step(batch, ignore);
  phase = Phase::Idle;
  return status;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

absl::Status ProgramTuner::compileCandidates() {
  if (!needsCode(plan().target))
    return absl::OkStatus();
  if (!options.compiler)
    return usageError(absl::StrCat(
        model->path(),
        ": expected a plan for cuda, whose kernels are compiled "
        "at load, got one for ",
        plan().target, "; llamac tune, which has a compiler, tunes it"));
  struct Job {
    size_t rank; ///< Among the candidates of its kernel.
    Candidate *candidate;
    const schema::VariantT *variant;
  };
  std::vector<Job> jobs;
  for (TunedKernel &kernel : kernels) {
    const auto &variants = plan().kernels[kernel.number]->variants;
    for (size_t i = 1; i < kernel.candidates.size(); ++i)
      jobs.push_back({i, &kernel.candidates[i],
                      variants[*kernel.candidates[i].variant].get()});
  }
  // The best of every kernel come first, in case that time runs out.
  std::sort(jobs.begin(), jobs.end(), [](const Job &a, const Job &b) {
    return std::pair(a.rank, a.candidate) < std::pair(b.rank, b.candidate);
  });
  std::atomic<size_t> next{0};
  const std::string isa = model->code().isa();
  const double end = begin + compileShare * (deadline - begin);
  auto work = [&] {
    for (size_t i = next++; i < jobs.size(); i = next++) {
      if (isStopped() || seconds() > end) {
        jobs[i].candidate->rejected = outOfTime;
        continue;
      }
      auto code =
          options.compiler->compile(*jobs[i].variant, plan().target, isa);
      if (code.ok())
        jobs[i].candidate->code =
            std::make_shared<const std::string>(*std::move(code));
      else
        jobs[i].candidate->rejected = std::string(code.status().message());
    }
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < model->device().threads(); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
  return absl::OkStatus();
}

/// The slate of candidate `choice[i]` of kernel number i of the program.
absl::StatusOr<Slate> ProgramTuner::makeSlate(absl::Span<const size_t> choice) {
  std::vector<KernelPick> chosen(plan().kernels.size());
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Candidate &candidate = kernels[i].candidates[choice[i]];
    chosen[kernels[i].number] = {candidate.variant, candidate.code};
  }
  LLAMAC_ASSIGN_OR_RETURN(auto reader, model->planReader()->withPicks(chosen));
  Slate slate;
  LLAMAC_ASSIGN_OR_RETURN(slate.code, model->device().loadCode(reader));
  LLAMAC_ASSIGN_OR_RETURN(slate.program,
                          slate.code->prepare(program, engine->bindings()));
  return slate;
}

/// The same. A candidate that cannot be loaded is rejected, and its kernel's
/// own takes its place in `choice`.
absl::StatusOr<Slate>
ProgramTuner::makeSoundSlate(std::vector<size_t> &choice) {
  absl::StatusOr<Slate> whole = makeSlate(choice);
  if (whole.ok())
    return whole;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (choice[i] == 0)
      continue;
    std::vector<size_t> alone(kernels.size());
    alone[i] = choice[i];
    if (const absl::Status status = makeSlate(alone).status(); !status.ok()) {
      kernels[i].candidates[choice[i]].rejected = std::string(status.message());
      choice[i] = 0;
    }
  }
  return makeSlate(choice);
}

//===----------------------------------------------------------------------===//
// The gate
//===----------------------------------------------------------------------===//

/// Slate k has candidate k + 1 of every kernel that has so many.
absl::Status ProgramTuner::makeGateSlates() {
  size_t most = 0;
  for (const TunedKernel &kernel : kernels)
    most = std::max(most, kernel.candidates.size());
  slates.clear();
  for (size_t number = 1; number < most; ++number) {
    std::vector<size_t> choice;
    for (const TunedKernel &kernel : kernels)
      choice.push_back(number < kernel.candidates.size() &&
                               kernel.candidates[number].rejected.empty()
                           ? number
                           : 0);
    LLAMAC_ASSIGN_OR_RETURN(slates.emplace_back(), makeSoundSlate(choice));
  }
  return absl::OkStatus();
}

TunedKernel *ProgramTuner::kernelOf(size_t launch) {
  const size_t number = launches().launches[launch]->kernel;
  auto known = std::find_if(
      kernels.begin(), kernels.end(),
      [&](const TunedKernel &kernel) { return kernel.number == number; });
  return known == kernels.end() ? nullptr : &*known;
}

/// The first and the last launch of a kernel are compared: those between differ
/// only in where their operands lie.
bool ProgramTuner::isGated(size_t launch) const {
  const auto &all = launches().launches;
  const auto isSame = [&](const auto &other) {
    return other->kernel == all[launch]->kernel;
  };
  const auto at = all.begin() + static_cast<ptrdiff_t>(launch);
  return std::none_of(all.begin(), at, isSame) ||
         std::none_of(at + 1, all.end(), isSame);
}

/// The layer whose cache `launch` has as an operand; none when it has none.
static const schema::Operand *poolOf(const schema::LaunchT &launch) {
  auto pool = std::find_if(launch.operands.begin(), launch.operands.end(),
                           [](const schema::Operand &operand) {
                             return operand.kind() == schema::OperandKind::Kv;
                           });
  return pool == launch.operands.end() ? nullptr : &*pool;
}

static schema::Operand arenaStart() {
  return {schema::OperandKind::Arena, 0, 0};
}

absl::StatusOr<LaunchMemory>
ProgramTuner::readMemory(const schema::LaunchT &launch,
                         StepMemory &memory) const {
  LaunchMemory copy;
  std::vector<uint8_t> staging;
  LLAMAC_ASSIGN_OR_RETURN(
      absl::Span<const uint8_t> bytes,
      memory.read(arenaStart(), 0, launches().arenaBytes, staging));
  copy.arena.assign(bytes.begin(), bytes.end());
  // What blocks leave each other is theirs.
  std::fill_n(copy.arena.begin() +
                  static_cast<ptrdiff_t>(launch.workspaceOffset),
              launch.workspaceBytes, uint8_t{0});
  if (const schema::Operand *pool = poolOf(launch)) {
    LLAMAC_ASSIGN_OR_RETURN(
        bytes, memory.read(*pool, 0, engine->poolBytes(), staging));
    copy.pool.assign(bytes.begin(), bytes.end());
  }
  return copy;
}

absl::Status ProgramTuner::writeMemory(const schema::LaunchT &launch,
                                       const LaunchMemory &from,
                                       StepMemory &memory) const {
  LLAMAC_RETURN_IF_ERROR(memory.write(arenaStart(), 0, from.arena));
  if (const schema::Operand *pool = poolOf(launch))
    LLAMAC_RETURN_IF_ERROR(memory.write(*pool, 0, from.pool));
  return absl::OkStatus();
}

absl::Status ProgramTuner::before(const LaunchSite &site, StepMemory &memory) {
  if (site.program != program)
    return absl::OkStatus();
  if (phase == Phase::Trials && site.launch == 0)
    return measure(site.shape);
  if (phase != Phase::Gate)
    return absl::OkStatus();
  outcomes.clear();
  TunedKernel *kernel = kernelOf(site.launch);
  const schema::LaunchT &launch = *launches().launches[site.launch];
  if (!kernel || !isGated(site.launch) || rowsOf(launch, site.shape) == 0)
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(start, readMemory(launch, memory));
  for (size_t i = 1; i < kernel->candidates.size(); ++i) {
    Candidate &candidate = kernel->candidates[i];
    if (!candidate.rejected.empty())
      continue;
    const absl::Status status =
        slates[i - 1].program->runLaunch(site.launch, site.shape);
    if (status.ok()) {
      LLAMAC_ASSIGN_OR_RETURN(LaunchMemory made, readMemory(launch, memory));
      outcomes.emplace_back(&candidate, std::move(made));
    } else {
      candidate.rejected = std::string(status.message());
    }
    LLAMAC_RETURN_IF_ERROR(writeMemory(launch, start, memory));
  }
  return absl::OkStatus();
}

absl::Status ProgramTuner::after(const LaunchSite &site, StepMemory &memory) {
  if (outcomes.empty())
    return absl::OkStatus();
  const schema::LaunchT &launch = *launches().launches[site.launch];
  LLAMAC_ASSIGN_OR_RETURN(const LaunchMemory expected,
                          readMemory(launch, memory));
  for (auto &[candidate, got] : outcomes)
    candidate->rejected =
        compareLaunches(start, expected, got, plan().kv->type,
                        plan().kernels[launch.kernel]->tolerance);
  outcomes.clear();
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

/// The candidates of each kernel that the next round measures, the own last.
std::vector<std::vector<size_t>> ProgramTuner::roundCandidates() const {
  std::vector<std::vector<size_t>> all;
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::vector<size_t> of;
    if (trials[i].rounds() == 0) {
      for (size_t c = 1; c < kernels[i].candidates.size(); ++c)
        of.push_back(c);
    } else {
      of = trials[i].contenders();
    }
    std::erase_if(of, [&](size_t c) {
      return !kernels[i].candidates[c].rejected.empty();
    });
    of.push_back(0);
    all.push_back(std::move(of));
  }
  return all;
}

/// Times some steps of every slate. As many slates as the kernel with most
/// candidates has are made anew for each round, so that it is chance where
/// their code and scratch lie; which candidates of two kernels meet in one, and
/// which slate comes first, is another in each round.
absl::Status ProgramTuner::measureRound(const StepShape &shape, size_t round) {
  const std::vector<std::vector<size_t>> candidates = roundCandidates();
  size_t count = 1;
  for (const std::vector<size_t> &of : candidates)
    count = std::max(count, of.size());
  std::vector<Slate> timed;
  std::vector<std::vector<size_t>> choices;
  for (size_t number = 0; number < count; ++number) {
    std::vector<size_t> &choice = choices.emplace_back();
    for (size_t i = 0; i < kernels.size(); ++i)
      choice.push_back(
          candidates[i][(number + round * (i + 1)) % candidates[i].size()]);
    LLAMAC_ASSIGN_OR_RETURN(timed.emplace_back(), makeSoundSlate(choice));
  }

  // Of a candidate's times in the round, of all the kernel's launches together,
  // the least: what comes on top is not the kernel's. Short steps are timed
  // more often, after one that brings code and scratch to where they are used.
  constexpr size_t passesOfShort = 4;
  std::vector<std::vector<std::optional<double>>> times;
  for (const TunedKernel &kernel : kernels)
    times.emplace_back(kernel.candidates.size());
  if (isShortStep)
    for (const Slate &slate : timed)
      LLAMAC_RETURN_IF_ERROR(slate.program->run(shape));
  for (size_t pass = 0; pass < (isShortStep ? passesOfShort : 1); ++pass)
    for (size_t number = 0; number < count; ++number) {
      LLAMAC_ASSIGN_OR_RETURN(const std::vector<double> launchSeconds,
                              timed[number].program->runTimed(shape));
      for (size_t i = 0; i < kernels.size(); ++i) {
        double sum = 0;
        for (size_t launch = 0; launch < launchSeconds.size(); ++launch)
          if (launches().launches[launch]->kernel == kernels[i].number)
            sum += launchSeconds[launch];
        std::optional<double> &least = times[i][choices[number][i]];
        least = std::min(least.value_or(sum), sum);
      }
    }
  for (size_t i = 0; i < kernels.size(); ++i)
    trials[i].addRound(times[i]);
  return absl::OkStatus();
}

/// Takes rounds until all kernels are decided, or time is up.
absl::Status ProgramTuner::measure(const StepShape &shape) {
  constexpr size_t leastRounds = 5, mostRounds = 100;
  // The last part of the time is for comparing whole steps.
  const double start = seconds();
  const double end = start + 0.75 * (deadline - start);
  constexpr double mostOfShort = 0.1;
  LLAMAC_ASSIGN_OR_RETURN(const Slate own,
                          makeSlate(std::vector<size_t>(kernels.size())));
  LLAMAC_RETURN_IF_ERROR(own.program->run(shape));
  isShortStep = seconds() - start < mostOfShort;
  for (size_t round = 0; round < mostRounds; ++round) {
    if (isStopped() || (round >= leastRounds && seconds() > end) ||
        (round >= 2 && seconds() > deadline))
      break;
    LLAMAC_RETURN_IF_ERROR(measureRound(shape, round));
    size_t open = 0;
    for (size_t i = 0; i < kernels.size(); ++i)
      open += trials[i].isDecided(trials[i].pick(picks[i])) ? 0 : 1;
    tell(absl::StrCat("round ", round + 1, ", ", open, " of ", kernels.size(),
                      " kernels undecided"));
    if (open == 0)
      break;
  }
  if (trials.empty() || trials.front().rounds() < 3)
    return absl::OkStatus(); // Too little to choose by.
  for (size_t i = 0; i < kernels.size(); ++i)
    picks[i] = trials[i].pick(picks[i]);
  return measureWhole(shape);
}

/// Compares whole steps with the picks and without.
absl::Status ProgramTuner::measureWhole(const StepShape &shape) {
  std::vector<size_t> chosen = picks, own(kernels.size());
  if (chosen == own) {
    result.wholeRatio = 1;
    result.kept = true;
    return absl::OkStatus();
  }
  LLAMAC_ASSIGN_OR_RETURN(const Slate tuned, makeSoundSlate(chosen));
  LLAMAC_ASSIGN_OR_RETURN(const Slate untuned, makeSlate(own));
  Trials whole(2);
  constexpr size_t leastRounds = 5, mostRounds = 41;
  for (size_t round = 0; round < mostRounds; ++round) {
    if (round >= leastRounds && isOver())
      break;
    tell(absl::StrCat("all picks together, round ", round + 1));
    std::optional<double> times[2];
    // Whichever comes second finds the caches warmer.
    for (size_t k = 0; k < 2; ++k) {
      const size_t which = (round + k) % 2;
      const double start = seconds();
      LLAMAC_RETURN_IF_ERROR(
          (which == 0 ? untuned : tuned).program->run(shape));
      times[which] = seconds() - start;
    }
    whole.addRound(times);
  }
  result.wholeRatio = whole.ratioOf(1).median;
  result.kept = result.wholeRatio <= 1;
  if (!result.kept)
    picks = own;
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

void ProgramTuner::keep() const {
  const std::string device = model->device().identity(plan());
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::vector<Candidate> &candidates = kernels[i].candidates;
    const Candidate &pick = candidates[picks[i]];
    const schema::KernelT &kernel = *plan().kernels[kernels[i].number];
    TuningEntry entry;
    entry.tiles = pick.tiles;
    const auto count = static_cast<double>(
        std::count_if(launches().launches.begin(), launches().launches.end(),
                      [&](const auto &launch) {
                        return launch->kernel == kernels[i].number;
                      }));
    entry.seconds = trials[i].secondsOf(picks[i]) / count;
    entry.firstSeconds = trials[i].secondsOf(0) / count;
    entry.predicted = pick.prediction.seconds;
    if (const auto second = trials[i].runnerUp(picks[i])) {
      entry.runnerUp = candidates[*second].tiles;
      entry.runnerUpSeconds = trials[i].secondsOf(*second) / count;
    }
    entry.origin = TuningOrigin::Measured;
    entry.time = std::time(nullptr);
    if (pick.variant && pick.code) {
      entry.symbol = kernel.variants[*pick.variant]->symbol;
      entry.code = *pick.code;
    }
    options.store->keep(tuningKey(plan(), kernels[i].number, device), entry);
  }
}

absl::StatusOr<ProgramTuningResult> ProgramTuner::run() {
  result.program = launches().name;
  const std::optional<StepPlan> step =
      stepOf(plan(), program, launches().maxRows, timedContext);
  if (!step) {
    result.skipped = absl::StrCat("its steps take more sequences than the ",
                                  plan().kv->maxSequences,
                                  " that the plan keeps (--parallel)");
    return result;
  }
  timed = *step;
  result.step = timed.tuned();
  kernels =
      candidatesOf(plan(), program, result.step, machine, options.candidates);
  if (kernels.empty()) {
    result.skipped = "no kernel of it has variants";
    return result;
  }
  // What was chosen before is only given up for more than noise.
  const std::string device = model->device().identity(plan());
  for (const TunedKernel &kernel : kernels) {
    trials.emplace_back(kernel.candidates.size());
    picks.push_back(0);
    const auto known =
        options.store
            ? options.store->find(tuningKey(plan(), kernel.number, device))
            : std::nullopt;
    for (size_t i = 1; known && i < kernel.candidates.size(); ++i)
      if (kernel.candidates[i].tiles == known->tiles)
        picks.back() = i;
  }

  tell("compiling candidates");
  LLAMAC_RETURN_IF_ERROR(compileCandidates());
  // Pages for the longest of the steps.
  int64_t pages = 0;
  std::vector<StepPlan> steps = gateSteps();
  steps.push_back(timed);
  for (const StepPlan &each : steps)
    pages = std::max(
        pages, each.sequences *
                   ((each.before + each.tokens) / plan().kv->pageTokens + 2));
  pages =
      std::min(pages, plan().kv->pagesPerSequence * plan().kv->maxSequences);
  LLAMAC_ASSIGN_OR_RETURN(
      engine, Engine::create(model, {.kvPages = pages, .observer = this}));
  LLAMAC_RETURN_IF_ERROR(makeGateSlates());
  for (const StepPlan &each : gateSteps()) {
    if (isOver()) {
      for (TunedKernel &kernel : kernels)
        for (size_t i = 1; i < kernel.candidates.size(); ++i)
          kernel.candidates[i].rejected = outOfTime;
      break;
    }
    tell(absl::StrCat("comparing candidates with the plan's own kernels, ",
                      each.sequences * each.tokens, " rows"));
    LLAMAC_RETURN_IF_ERROR(runStep(each, Phase::Gate));
  }
  slates.clear();
  for (size_t i = 0; i < kernels.size(); ++i)
    if (!kernels[i].candidates[picks[i]].rejected.empty())
      picks[i] = 0;

  if (plan().target != "sim") {
    LLAMAC_RETURN_IF_ERROR(runStep(timed, Phase::Trials));
    if (options.store && trials.front().rounds() >= 3)
      keep();
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    KernelTuningResult of;
    of.kernel = plan().kernels[kernels[i].number]->symbol;
    of.candidates = kernels[i].candidates;
    of.pick = picks[i];
    if (trials[i].rounds() > 0) {
      of.runnerUp = trials[i].runnerUp(picks[i]);
      of.ratio = trials[i].ratioOf(picks[i]).median;
      of.noise = trials[i].ratioOf(picks[i]).noise;
    }
    for (size_t c = 0; c < of.candidates.size(); ++c)
      of.seconds.push_back(trials[i].secondsOf(c));
    result.kernels.push_back(std::move(of));
  }
  return result;
}

absl::StatusOr<int> compileStored(const Model &model, TuningStore &store,
                                  VariantCompiler &compiler) {
  const schema::PlanT &plan = model.plan();
  int count = 0;
  if (!needsCode(plan.target))
    return count;
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    const schema::KernelT &kernel = *plan.kernels[i];
    const TuningKey key = tuningKey(plan, i, model.device().identity(plan));
    if (kernel.variants.empty())
      continue;
    std::optional<TuningEntry> entry = store.find(key);
    const auto variant =
        entry ? findVariant(kernel, entry->tiles) : std::nullopt;
    if (!variant || !entry->code.empty())
      continue;
    LLAMAC_ASSIGN_OR_RETURN(entry->code,
                            compiler.compile(*kernel.variants[*variant],
                                             plan.target, model.code().isa()));
    entry->symbol = kernel.variants[*variant]->symbol;
    count += store.keep(key, *entry) ? 1 : 0;
  }
  return count;
}

absl::StatusOr<std::vector<ProgramTuningResult>>
tuneModel(const std::shared_ptr<const Model> &model,
          const TuneOptions &options) {
  const double start = seconds();
  const MachineSpec machine =
      machineOf(model->device(), model->plan(), options.store);
  const size_t count = model->plan().programs.size();
  std::vector<ProgramTuningResult> results;
  for (size_t program = 0; program < count; ++program) {
    if (options.stop && *options.stop)
      break;
    // What the programs before did not take is shared by those that follow.
    const double left = options.budget - (seconds() - start);
    const double deadline =
        seconds() + left / static_cast<double>(count - program);
    LLAMAC_ASSIGN_OR_RETURN(
        results.emplace_back(),
        ProgramTuner(model, program, options, machine, deadline).run());
  }
  return results;
}

} // namespace llamac
