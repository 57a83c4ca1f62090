//===- ProgramTuner.cpp - Tiles and way of one program --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/ProgramTuner.h"

#include "runtime/base/ParallelFor.h"
#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <iterator>
#include <map>
#include <set>

namespace llamac {

/// What compiling may take of the time that is left.
static constexpr double compileShare = 0.4;
/// Rounds in which whole steps are compared at least.
static constexpr size_t leastWholeRounds = 5;

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

ProgramTuner::ProgramTuner(std::shared_ptr<const Model> model, size_t program,
                           const TuneOptions &options,
                           const MachineSpec &machine,
                           ScheduleCompiler &schedules, CachedTokens &first,
                           double deadline)
    : model(std::move(model)), scheduled(this->model->planReader()),
      device(this->model->device().identity(this->model->plan())),
      program(program), options(options), machine(machine),
      schedules(schedules), first(first), begin(steadySeconds()),
      deadline(deadline) {}

bool ProgramTuner::isOver() const {
  return options.isStopped() || steadySeconds() > deadline;
}

void ProgramTuner::tell(const std::string &what) const {
  if (options.progress)
    options.progress(absl::StrCat(launches().name, ": ", what));
}

/// Runs `step`; its last part, which runs the program, with `during`.
absl::Status ProgramTuner::runStep(const StepPlan &step, Phase during) {
  const absl::Status status = steps->run(step, [&] { phase = during; });
  phase = Phase::Idle;
  return status;
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

absl::Status ProgramTuner::compileCandidates() {
  if (!needsCode(plan().target))
    return absl::OkStatus();
  struct Job {
    size_t rank; ///< Among the candidates of its kernel.
    Candidate *candidate;
    const schema::VariantT *variant;
  };
  std::vector<Job> jobs;
  for (TunedKernel &kernel : kernels) {
    const auto &variants = plan().kernels[kernel.number]->variants;
    for (size_t i = 1; i < kernel.candidates.size(); ++i)
      if (Candidate &candidate = kernel.candidates[i];
          candidate.variant && !candidate.code && candidate.rejected.empty())
        jobs.push_back({i, &candidate, variants[*candidate.variant].get()});
  }
  // The best of every kernel come first, in case that time runs out.
  std::sort(jobs.begin(), jobs.end(), [](const Job &a, const Job &b) {
    return std::pair(a.rank, a.candidate) < std::pair(b.rank, b.candidate);
  });
  const std::string isa = model->code().isa();
  const double now = steadySeconds();
  const double end = now + compileShare * (deadline - now);
  parallelFor(model->device().threads(), jobs.size(), [&](size_t i) {
    if (options.isStopped() || steadySeconds() > end) {
      jobs[i].candidate->rejected = outOfTime;
      return;
    }
    auto code = options.compiler->compile(sourcesOf(*jobs[i].variant),
                                          plan().target, isa);
    if (code.ok())
      jobs[i].candidate->code =
          std::make_shared<const std::string>(*std::move(code));
    else
      jobs[i].candidate->rejected = std::string(code.status().message());
  });
  return absl::OkStatus();
}

/// The slate of candidate `choice[i]` of kernel number i of the program.
absl::StatusOr<BoundProgram>
ProgramTuner::makeSlate(absl::Span<const size_t> choice) {
  std::vector<KernelPick> chosen = ways->kernelCode(plan());
  for (size_t i = 0; i < kernels.size(); ++i)
    if (const Candidate &candidate = kernels[i].candidates[choice[i]];
        candidate.variant)
      chosen[kernels[i].number] = {candidate.variant, candidate.code};
  LLAMAC_ASSIGN_OR_RETURN(auto reader, scheduled->withPicks(chosen));
  return BoundProgram::load(model->device(), reader, program,
                            engine->bindings());
}

/// The same. A candidate that cannot be loaded is rejected, and its kernel's
/// own takes its place in `choice`.
absl::StatusOr<BoundProgram>
ProgramTuner::makeSoundSlate(std::vector<size_t> &choice) {
  absl::StatusOr<BoundProgram> whole = makeSlate(choice);
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

/// Slate 0 has the plan's own kernels, slate k + 1 the candidates number
/// ungated + k of the kernels that have so many.
absl::Status ProgramTuner::makeGateSlates() {
  size_t most = 0;
  for (size_t i = 0; i < kernels.size(); ++i)
    most = std::max(most, kernels[i].candidates.size() - ungated[i]);
  slates.clear();
  LLAMAC_ASSIGN_OR_RETURN(slates.emplace_back(),
                          makeSlate(std::vector<size_t>(kernels.size())));
  for (size_t k = 0; k < most; ++k) {
    std::vector<size_t> choice(kernels.size());
    for (size_t i = 0; i < kernels.size(); ++i)
      if (const size_t number = ungated[i] + k;
          number < kernels[i].candidates.size() &&
          kernels[i].candidates[number].rejected.empty())
        choice[i] = number;
    LLAMAC_ASSIGN_OR_RETURN(slates.emplace_back(), makeSoundSlate(choice));
  }
  return absl::OkStatus();
}

/// The number in `kernels` of the one that `launch` runs.
std::optional<size_t> ProgramTuner::kernelOf(size_t launch) const {
  const size_t number = launches().launches[launch]->kernel;
  for (size_t i = 0; i < kernels.size(); ++i)
    if (kernels[i].number == number)
      return i;
  return std::nullopt;
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

/// Whether `a` and `b` run the same kernel on the same places of the arena.
static bool areAlike(const schema::LaunchT &a, const schema::LaunchT &b) {
  const auto isSame = [](const schema::Operand &one,
                         const schema::Operand &other) {
    return one.kind() == other.kind() &&
           (one.kind() != schema::OperandKind::Arena ||
            one.offset() == other.offset());
  };
  return a.kernel == b.kernel &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(),
                    b.operands.end(), isSame);
}

/// The launches that a step needs not run for the gate, from the first to
/// before the second: those of the layers from the second to the last but two,
/// when the last but one, whose rows are still all, finds in the arena what the
/// second would.
std::pair<size_t, size_t> ProgramTuner::launchesLeftOut() const {
  const int64_t layers = model->config().numLayers;
  if (layers < 4)
    return {0, 0};
  const auto beginOf = [&](int64_t layer) {
    return launchesOfLayers(launches(), layer).second;
  };
  const size_t second = beginOf(1), lastButOne = beginOf(layers - 2);
  for (size_t i = 0; i < beginOf(2) - second; ++i)
    if (!areAlike(*launches().launches[second + i],
                  *launches().launches[lastButOne + i]))
      return {0, 0};
  return {second, lastButOne};
}

absl::Status ProgramTuner::before(const LaunchSite &site, StepMemory &memory) {
  if (site.program != program || phase == Phase::Idle)
    return absl::OkStatus();
  // What runs here runs in full.
  LLAMAC_RETURN_IF_ERROR(phase == Phase::Gate ? gateStep(site.shape, memory)
                                              : measure(site.shape));
  return seenEnough();
}

/// Runs a step with the plan's own kernels, and compares candidates on the way.
absl::Status ProgramTuner::gateStep(const StepShape &shape,
                                    StepMemory &memory) {
  const auto [begin, end] = launchesLeftOut();
  for (size_t i = 0; i < launches().launches.size(); ++i) {
    if (i >= begin && i < end)
      continue;
    if (rowsOf(*launches().launches[i], shape) != 0 && isGated(i))
      LLAMAC_RETURN_IF_ERROR(gateLaunch(i, shape, memory));
    LLAMAC_RETURN_IF_ERROR(slates[0].program->runLaunch(i, shape));
  }
  return absl::OkStatus();
}

/// Compares what candidates of launch number `number` leave in memory with what
/// the plan's own kernel does, and leaves memory as it was.
absl::Status ProgramTuner::gateLaunch(size_t number, const StepShape &shape,
                                      StepMemory &memory) {
  const std::optional<size_t> kernel = kernelOf(number);
  if (!kernel)
    return absl::OkStatus();
  const schema::LaunchT &launch = *launches().launches[number];
  const size_t first = ungated[*kernel], poolBytes = engine->poolBytes();
  std::vector<Candidate> &candidates = kernels[*kernel].candidates;
  LLAMAC_RETURN_IF_ERROR(
      readLaunch(launches(), launch, poolBytes, memory, start));
  LLAMAC_RETURN_IF_ERROR(slates[0].program->runLaunch(number, shape));
  LLAMAC_RETURN_IF_ERROR(
      readLaunch(launches(), launch, poolBytes, memory, expected));
  for (size_t i = first; i < candidates.size(); ++i) {
    if (!candidates[i].rejected.empty())
      continue;
    LLAMAC_RETURN_IF_ERROR(writeLaunch(launch, start, memory));
    const absl::Status status =
        slates[i - first + 1].program->runLaunch(number, shape);
    if (!status.ok()) {
      candidates[i].rejected = std::string(status.message());
      continue;
    }
    LLAMAC_RETURN_IF_ERROR(
        readLaunch(launches(), launch, poolBytes, memory, got));
    candidates[i].rejected =
        compareLaunches(start, expected, got, plan().kv->type,
                        plan().kernels[launch.kernel]->tolerance);
  }
  return writeLaunch(launch, start, memory);
}

/// Compares the candidates that were not yet compared.
absl::Status ProgramTuner::gateCandidates() {
  LLAMAC_RETURN_IF_ERROR(makeGateSlates());
  for (const StepPlan &each : gateSteps(plan(), program)) {
    if (isOver()) {
      for (size_t i = 0; i < kernels.size(); ++i)
        for (size_t c = ungated[i]; c < kernels[i].candidates.size(); ++c)
          kernels[i].candidates[c].rejected = outOfTime;
      break;
    }
    tell(absl::StrCat("comparing candidates with the plan's own kernels, ",
                      each.sequences * each.tokens, " rows"));
    LLAMAC_RETURN_IF_ERROR(runStep(each, Phase::Gate));
  }
  slates.clear();
  for (size_t i = 0; i < kernels.size(); ++i) {
    ungated[i] = kernels[i].candidates.size();
    for (size_t *pick : {&picks[i], &earlier[i]})
      if (!kernels[i].candidates[*pick].rejected.empty())
        *pick = 0;
  }
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

/// The candidates of each kernel that the next round measures.
std::vector<std::vector<size_t>> ProgramTuner::roundCandidates() const {
  std::vector<std::vector<size_t>> all;
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::vector<size_t> of = trials[i].contenders();
    for (size_t c = 1; c < kernels[i].candidates.size(); ++c)
      if (trials[i].secondsOf(c) == 0)
        of.push_back(c);
    std::erase_if(of, [&](size_t c) {
      return !kernels[i].candidates[c].rejected.empty();
    });
    of.push_back(0);
    all.push_back(std::move(of));
  }
  return all;
}

/// Seconds of each of the launches that are timed.
absl::StatusOr<std::vector<double>>
ProgramTuner::timeStep(const BoundProgram &slate, const StepShape &shape) {
  if (timedLaunches.size() == launches().launches.size())
    return slate.program->runTimed(shape);
  std::vector<double> times;
  for (const size_t launch : timedLaunches) {
    const double start = steadySeconds();
    LLAMAC_RETURN_IF_ERROR(slate.program->runLaunch(launch, shape));
    times.push_back(steadySeconds() - start);
  }
  return times;
}

/// Sets which launches are timed: those of the timer's layers, and one at least
/// of each kernel.
absl::Status ProgramTuner::chooseTimedLaunches(const StepShape &shape) {
  LLAMAC_ASSIGN_OR_RETURN(const BoundProgram own,
                          makeSlate(std::vector<size_t>(kernels.size())));
  LLAMAC_ASSIGN_OR_RETURN(timer,
                          StepTimer::create(*own.program, launches(),
                                            model->config().numLayers, shape));
  const auto [begin, end] = timer->span(launches());
  std::set<uint32_t> seen;
  for (size_t launch = begin; launch < end; ++launch)
    seen.insert(launches().launches[launch]->kernel);
  for (size_t launch = 0; launch < launches().launches.size(); ++launch)
    if ((launch >= begin && launch < end) ||
        seen.insert(launches().launches[launch]->kernel).second)
      timedLaunches.push_back(launch);
  return absl::OkStatus();
}

/// Times some steps of the slates of `choices`, made anew so that it is chance
/// where their code and scratch lie. Gives for each kernel, by candidate, the
/// seconds of a launch in the mean. A candidate that cannot be loaded has no
/// time. None where time is up before the last step: a round's steps are many,
/// and no forecast of a noisy machine holds.
absl::StatusOr<std::optional<ProgramTuner::RoundTimes>>
ProgramTuner::timeSlates(const StepShape &shape,
                         const std::vector<std::vector<size_t>> &choices) {
  std::vector<BoundProgram> slates;
  std::vector<std::vector<size_t>> loaded = choices;
  for (std::vector<size_t> &choice : loaded) {
    LLAMAC_ASSIGN_OR_RETURN(slates.emplace_back(), makeSoundSlate(choice));
  }
  // Of a candidate's times the least: what comes on top is not the kernel's.
  // Short steps are timed more often, after one that brings code and scratch to
  // where they are used.
  constexpr double mostOfShort = 0.1;
  constexpr size_t passesOfShort = 4;
  RoundTimes times;
  times.reserve(kernels.size());
  for (const TunedKernel &kernel : kernels)
    times.emplace_back(kernel.candidates.size());
  const bool isShortStep = timer->seconds() < mostOfShort;
  if (isShortStep)
    for (const BoundProgram &slate : slates)
      LLAMAC_RETURN_IF_ERROR(slate.program->run(shape));
  for (size_t pass = 0; pass < (isShortStep ? passesOfShort : 1); ++pass)
    for (size_t number = 0; number < slates.size(); ++number) {
      if (isOver())
        return std::nullopt;
      LLAMAC_ASSIGN_OR_RETURN(const std::vector<double> launchSeconds,
                              timeStep(slates[number], shape));
      for (size_t i = 0; i < kernels.size(); ++i) {
        double sum = 0;
        size_t of = 0;
        for (size_t k = 0; k < timedLaunches.size(); ++k)
          if (launches().launches[timedLaunches[k]]->kernel ==
              kernels[i].number) {
            sum += launchSeconds[k];
            ++of;
          }
        const double mean = sum / static_cast<double>(of);
        std::optional<double> &least = times[i][loaded[number][i]];
        least = std::min(least.value_or(mean), mean);
      }
    }
  return times;
}

/// Times as many slates as the kernel with most candidates has. Which
/// candidates of two kernels meet in one, and which comes first, is chance: the
/// first step after a pause may be faster than the others, or slower.
absl::Status ProgramTuner::measureRound(const StepShape &shape) {
  std::vector<std::vector<size_t>> candidates = roundCandidates();
  size_t count = 1;
  for (std::vector<size_t> &of : candidates) {
    count = std::max(count, of.size());
    std::shuffle(of.begin(), of.end(), order);
  }
  std::vector<std::vector<size_t>> choices(count);
  for (size_t number = 0; number < count; ++number)
    for (size_t i = 0; i < kernels.size(); ++i)
      choices[number].push_back(candidates[i][number % candidates[i].size()]);
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<RoundTimes> times,
                          timeSlates(shape, choices));
  for (size_t i = 0; times && i < kernels.size(); ++i)
    trials[i].addRound((*times)[i]);
  return absl::OkStatus();
}

/// Measures the picks that are new once more, beside what they take the place
/// of: the fastest of many is fast by chance, too, and is so only once. Those
/// that there is no time for are given up.
absl::Status ProgramTuner::confirm(const StepShape &shape) {
  constexpr size_t fewestRounds = 15, mostRounds = 100;
  if (picks == earlier)
    return absl::OkStatus();
  // As much again is for whole steps.
  const double least = 2 * leastWholeRounds * timer->seconds();
  if (steadySeconds() + 2 * least > deadline) {
    picks = earlier;
    return absl::OkStatus();
  }
  std::vector<Trials> again;
  for (const TunedKernel &kernel : kernels)
    again.emplace_back(kernel.candidates.size());
  const auto areDecided = [&] {
    for (size_t i = 0; i < kernels.size(); ++i)
      if (picks[i] != earlier[i] && !again[i].isDecided(picks[i]))
        return false;
    return true;
  };
  const double end = deadline - least;
  for (size_t round = 0; round < mostRounds; ++round) {
    if (isOver() || (round >= leastWholeRounds && steadySeconds() > end))
      break;
    // Where noise hides what a pick gains, the next tune would find it.
    if (round >= fewestRounds && areDecided())
      break;
    tell(absl::StrCat("the picks once more, round ", round + 1));
    const bool isEven = round % 2 == 0;
    LLAMAC_ASSIGN_OR_RETURN(const std::optional<RoundTimes> times,
                            timeSlates(shape, {isEven ? earlier : picks,
                                               isEven ? picks : earlier}));
    if (!times)
      break;
    for (size_t i = 0; i < kernels.size(); ++i)
      again[i].addRound((*times)[i]);
  }
  for (size_t i = 0; i < kernels.size(); ++i)
    if (picks[i] != earlier[i]) {
      const Trials::Ratio ratio = again[i].ratioOf(picks[i], earlier[i]);
      if (ratio.rounds < Trials::leastRounds || ratio.median >= 1 - ratio.noise)
        picks[i] = earlier[i];
    }
  return absl::OkStatus();
}

/// Takes rounds until all kernels are decided, or time is up. Then, when there
/// are no more candidates to try, compares whole steps.
absl::Status ProgramTuner::measure(const StepShape &shape) {
  constexpr size_t mostRounds = 100;
  if (!timer)
    LLAMAC_RETURN_IF_ERROR(chooseTimedLaunches(shape));
  // What is left then is for the picks once more, and for whole steps.
  const double start = steadySeconds();
  const double end =
      std::min(start + 0.75 * (deadline - start),
               deadline - 4 * leastWholeRounds * timer->seconds());
  double roundSeconds = 0;
  for (size_t round = 0; round < mostRounds; ++round) {
    const double now = steadySeconds();
    if (options.isStopped() || now + roundSeconds > deadline ||
        (round >= Trials::leastRounds && now + roundSeconds > end))
      break;
    LLAMAC_RETURN_IF_ERROR(measureRound(shape));
    roundSeconds = steadySeconds() - now;
    size_t open = 0;
    for (size_t i = 0; i < kernels.size(); ++i)
      open += trials[i].isDecided(trials[i].pick(picks[i])) ? 0 : 1;
    tell(absl::StrCat("round ", round + 1, ", ", open, " of ", kernels.size(),
                      " kernels undecided"));
    if (open == 0 && round + 1 >= Trials::leastRounds)
      break;
  }
  if (trials.front().rounds() < Trials::leastRounds)
    return absl::OkStatus(); // Too little to choose by.
  for (size_t i = 0; i < kernels.size(); ++i)
    picks[i] = trials[i].pick(picks[i]);
  hasMore = takeNeighbours();
  if (hasMore)
    return absl::OkStatus();
  LLAMAC_RETURN_IF_ERROR(confirm(shape));
  return measureWhole();
}

/// Compares whole steps with the picks and without. New picks that there is no
/// time for are given up.
absl::Status ProgramTuner::measureWhole() {
  std::vector<size_t> chosen = picks, own(kernels.size());
  if (chosen == own) {
    result.wholeRatio = 1;
    result.kept = true;
    return absl::OkStatus();
  }
  LLAMAC_ASSIGN_OR_RETURN(const BoundProgram tuned, makeSoundSlate(chosen));
  LLAMAC_ASSIGN_OR_RETURN(const BoundProgram untuned, makeSlate(own));
  Trials whole(2);
  constexpr size_t mostRounds = 41;
  for (size_t round = 0; round < mostRounds; ++round) {
    if (isOver())
      break;
    tell(absl::StrCat("all picks together, round ", round + 1));
    std::optional<double> times[2];
    // Whichever comes second finds the caches warmer.
    for (size_t k = 0; k < 2; ++k) {
      const size_t which = (round + k) % 2;
      const BoundProgram &slate = which == 0 ? untuned : tuned;
      LLAMAC_ASSIGN_OR_RETURN(times[which],
                              timer->time(*slate.program, launches()));
    }
    whole.addRound(times);
  }
  if (whole.rounds() < leastWholeRounds) {
    picks = earlier;
    result.kept = true;
    return absl::OkStatus();
  }
  const Trials::Ratio ratio = whole.ratioOf(1);
  result.wholeRatio = ratio.median;
  // What an earlier run chose is given up for more than noise only.
  result.kept = ratio.median <= 1 + (picks == earlier ? ratio.noise : 0);
  if (!result.kept)
    picks = own;
  return absl::OkStatus();
}

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// Leaves of the candidates of each kernel the best by the model, and what was
/// chosen before, which is only given up for more than noise.
void ProgramTuner::takeCandidates() {
  for (TunedKernel &kernel : kernels) {
    std::vector<Candidate> &all = kernel.candidates;
    const auto known =
        options.store
            ? options.store->find(tuningKey(plan(), kernel.number, device))
            : std::nullopt;
    const auto isKnown = [&](const Candidate &candidate) {
      return known && candidate.tiles == known->tiles;
    };
    const auto mid =
        all.begin() +
        static_cast<ptrdiff_t>(std::min(all.size(), options.candidates + 1));
    further.emplace_back();
    std::copy_if(mid, all.end(), std::back_inserter(further.back()),
                 std::not_fn(isKnown));
    all.erase(std::remove_if(mid, all.end(), std::not_fn(isKnown)), all.end());
    const auto pick = std::find_if(all.begin(), all.end(), isKnown);
    picks.push_back(
        pick == all.end() ? 0 : static_cast<size_t>(pick - all.begin()));
    trials.emplace_back(all.size());
    ungated.push_back(1);
  }
  earlier = picks;
}

/// Takes what differs in one tile from a pick and was not tried. False when
/// there is none, or hardly time for it.
bool ProgramTuner::takeNeighbours() {
  if (options.isStopped() || ++turn >= options.turns ||
      steadySeconds() > begin + 0.5 * (deadline - begin))
    return false;
  bool any = false;
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::vector<Candidate> &all = kernels[i].candidates;
    const std::string pick = all[picks[i]].tiles;
    const auto isNear = [&](const Candidate &candidate) {
      return tilesApart(candidate.tiles, pick) == 1;
    };
    for (size_t taken = 0; taken < options.candidates; ++taken) {
      const auto near =
          std::find_if(further[i].begin(), further[i].end(), isNear);
      if (near == further[i].end())
        break;
      all.push_back(std::move(*near));
      further[i].erase(near);
      any = true;
    }
    trials[i].setCandidates(all.size());
  }
  return any;
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

/// Chooses the schedule; what follows is of it.
absl::Status ProgramTuner::takeSchedule() {
  // What comparing may take of the program's time.
  constexpr double share = 0.25;
  ways = std::make_unique<WayChooser>(model, program, timed, options, schedules,
                                      first);
  LLAMAC_RETURN_IF_ERROR(
      ways->chooseSchedule(begin + share * (deadline - begin)));
  if (ways->isOwn())
    return absl::OkStatus();
  LLAMAC_ASSIGN_OR_RETURN(scheduled, ways->plan());
  LLAMAC_ASSIGN_OR_RETURN(
      std::shared_ptr<const PlanReader> run,
      scheduled->withPicks(ways->kernelCode(scheduled->plan())));
  LLAMAC_ASSIGN_OR_RETURN(model, model->withPlan(std::move(run)));
  return absl::OkStatus();
}

/// Chooses how launches overlap, with the picks.
absl::Status ProgramTuner::chooseOverlap() {
  std::map<std::string, KernelPick> tiles;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Candidate &pick = kernels[i].candidates[picks[i]];
    tiles[plan().kernels[kernels[i].number]->symbol] = {pick.variant,
                                                        pick.code};
  }
  slates.clear();
  steps.reset();
  engine.reset(); // The comparison has one of its own.
  return ways->chooseOverlap(tiles, deadline);
}

void ProgramTuner::keep() const {
  for (size_t i = 0; i < kernels.size(); ++i) {
    const std::vector<Candidate> &candidates = kernels[i].candidates;
    const Candidate &pick = candidates[picks[i]];
    const schema::KernelT &kernel = *plan().kernels[kernels[i].number];
    TuningEntry entry;
    entry.tiles = pick.tiles;
    entry.seconds = trials[i].secondsOf(picks[i]);
    entry.firstSeconds = trials[i].secondsOf(0);
    entry.predicted = pick.prediction.seconds;
    if (const auto second = trials[i].runnerUp(picks[i])) {
      entry.runnerUp = candidates[*second].tiles;
      entry.runnerUpSeconds = trials[i].secondsOf(*second);
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
  LLAMAC_RETURN_IF_ERROR(takeSchedule());
  kernels = candidatesOf(plan(), program, result.step, machine);
  if (kernels.empty()) {
    result.skipped = "no kernel of it has variants";
    return result;
  }
  takeCandidates();

  std::vector<StepPlan> run = gateSteps(plan(), program);
  run.push_back(timed);
  LLAMAC_ASSIGN_OR_RETURN(
      engine, Engine::create(
                  model, {.kvPages = pagesFor(plan(), run), .observer = this}));
  steps.emplace(*engine, first);
  do {
    hasMore = false;
    tell("compiling candidates");
    LLAMAC_RETURN_IF_ERROR(compileCandidates());
    LLAMAC_RETURN_IF_ERROR(gateCandidates());
    if (plan().target != "sim")
      LLAMAC_RETURN_IF_ERROR(runStep(timed, Phase::Trials));
  } while (hasMore);
  LLAMAC_RETURN_IF_ERROR(chooseOverlap());
  result.ways = ways->results();
  result.way = ways->name();
  if (options.store) {
    ways->keep();
    if (trials.front().rounds() >= Trials::leastRounds)
      keep();
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    KernelTuningResult of;
    of.kernel = plan().kernels[kernels[i].number]->symbol;
    of.candidates = kernels[i].candidates;
    of.pick = picks[i];
    if (trials[i].rounds() > 0) {
      of.runnerUp = trials[i].runnerUp(picks[i]);
      const Trials::Ratio ratio = trials[i].ratioOf(picks[i]);
      of.ratio = ratio.median;
      of.noise = ratio.noise;
    }
    for (size_t c = 0; c < of.candidates.size(); ++c) {
      const Trials::Ratio ratio = trials[i].ratioOf(c);
      of.seconds.push_back(trials[i].secondsOf(c));
      of.ratios.push_back(ratio.rounds > 0 ? ratio : Trials::Ratio{0, 0, 0});
    }
    result.kernels.push_back(std::move(of));
  }
  return result;
}

} // namespace llamac
