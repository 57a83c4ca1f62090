//===- WayTrials.cpp - Which way to run a program is fastest --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/tune/WayTrials.h"

#include "runtime/base/Status.h"
#include "runtime/engine/Engine.h"
#include "runtime/tune/Gate.h"
#include "runtime/tune/StepTimer.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <optional>

namespace llamac {

namespace {

/// What a step gives: logits of the wanted rows, and the cache of all layers.
struct StepResult {
  std::vector<uint8_t> logits;
  std::vector<uint8_t> cache;
};

class WayTrial final : public LaunchObserver {
public:
  WayTrial(std::shared_ptr<const Model> model, size_t program,
           std::vector<Way> &ways, const WayTrialOptions &options)
      : model(std::move(model)), program(program), ways(ways), options(options),
        trials(ways.size()) {}

  absl::StatusOr<WayTrialResult> run();

  absl::Status before(const LaunchSite &site, StepMemory &memory) override;
  absl::Status after(const LaunchSite &, StepMemory &) override {
    return absl::OkStatus();
  }

private:
  enum class Phase { Idle, Gate, Trials };

  const schema::ProgramT &launchesOf(size_t way) const {
    return *ways[way].plan->plan().programs[program];
  }

  absl::Status load();
  absl::Status runStep(const StepPlan &step, Phase during);
  absl::Status clearArena(StepMemory &memory) const;
  absl::Status readCache(StepMemory &memory, std::vector<uint8_t> &cache) const;
  absl::Status writeCache(StepMemory &memory,
                          const std::vector<uint8_t> &cache) const;
  absl::StatusOr<StepResult> resultOf(size_t way, const StepShape &shape,
                                      StepMemory &memory);
  absl::Status compare(const StepShape &shape, StepMemory &memory);
  absl::Status measure(const StepShape &shape);

  std::shared_ptr<const Model> model;
  size_t program;
  std::vector<Way> &ways;
  const WayTrialOptions &options;
  Trials trials;
  std::unique_ptr<Engine> engine;
  std::optional<StepRunner> steps;  ///< Of `engine`.
  std::vector<BoundProgram> loaded; ///< By way.
  Phase phase = Phase::Idle;
};

} // namespace

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// Loads the ways. One that cannot be is out, but for the first.
absl::Status WayTrial::load() {
  for (Way &way : ways) {
    BoundProgram &bound = loaded.emplace_back();
    if (!way.rejected.empty())
      continue;
    auto result = BoundProgram::load(model->device(), way.plan, program,
                                     engine->bindings());
    if (result.ok())
      bound = *std::move(result);
    else if (&way == &ways.front())
      return result.status();
    else
      way.rejected = std::string(result.status().message());
  }
  return absl::OkStatus();
}

absl::Status WayTrial::runStep(const StepPlan &step, Phase during) {
  const absl::Status status = steps->run(step, [&] { phase = during; });
  phase = Phase::Idle;
  return status;
}

absl::Status WayTrial::before(const LaunchSite &site, StepMemory &memory) {
  if (site.program != program || phase == Phase::Idle)
    return absl::OkStatus();
  // What runs here runs in full.
  LLAMAC_RETURN_IF_ERROR(phase == Phase::Gate ? compare(site.shape, memory)
                                              : measure(site.shape));
  return seenEnough();
}

//===----------------------------------------------------------------------===//
// The gate
//===----------------------------------------------------------------------===//

static schema::Operand arenaAt(uint64_t offset) {
  return {schema::OperandKind::Arena, 0, offset};
}

static schema::Operand poolOf(int64_t layer) {
  return {schema::OperandKind::Kv, static_cast<uint32_t>(layer), 0};
}

/// Leaves nothing in the arena that a way could find there from another: NaN.
absl::Status WayTrial::clearArena(StepMemory &memory) const {
  uint64_t most = 0;
  for (size_t i = 0; i < ways.size(); ++i)
    most = std::max(most, launchesOf(i).arenaBytes);
  return memory.write(arenaAt(0), 0, std::vector<uint8_t>(most, 0xff));
}

absl::Status WayTrial::readCache(StepMemory &memory,
                                 std::vector<uint8_t> &cache) const {
  cache.clear();
  std::vector<uint8_t> staging;
  for (int64_t layer = 0; layer < model->config().numLayers; ++layer) {
    LLAMAC_ASSIGN_OR_RETURN(
        const absl::Span<const uint8_t> bytes,
        memory.read(poolOf(layer), 0, engine->poolBytes(), staging));
    cache.insert(cache.end(), bytes.begin(), bytes.end());
  }
  return absl::OkStatus();
}

absl::Status WayTrial::writeCache(StepMemory &memory,
                                  const std::vector<uint8_t> &cache) const {
  const uint64_t bytes = engine->poolBytes();
  for (int64_t layer = 0; layer < model->config().numLayers; ++layer)
    LLAMAC_RETURN_IF_ERROR(
        memory.write(poolOf(layer), 0,
                     absl::MakeConstSpan(cache).subspan(
                         static_cast<uint64_t>(layer) * bytes, bytes)));
  return absl::OkStatus();
}

absl::StatusOr<StepResult>
WayTrial::resultOf(size_t way, const StepShape &shape, StepMemory &memory) {
  LLAMAC_RETURN_IF_ERROR(clearArena(memory));
  LLAMAC_RETURN_IF_ERROR(loaded[way].program->run(shape));
  StepResult result;
  std::vector<uint8_t> staging;
  const uint64_t bytes = static_cast<uint64_t>(shape.wanted) *
                         static_cast<uint64_t>(model->config().vocabSize) *
                         sizeof(float);
  LLAMAC_ASSIGN_OR_RETURN(
      const absl::Span<const uint8_t> logits,
      memory.read(arenaAt(launchesOf(way).logitsOffset), 0, bytes, staging));
  result.logits.assign(logits.begin(), logits.end());
  LLAMAC_RETURN_IF_ERROR(readCache(memory, result.cache));
  return result;
}

/// Compares what the ways give with what the first one does.
absl::Status WayTrial::compare(const StepShape &shape, StepMemory &memory) {
  std::vector<uint8_t> cacheBefore;
  LLAMAC_RETURN_IF_ERROR(readCache(memory, cacheBefore));
  LLAMAC_ASSIGN_OR_RETURN(const StepResult expected,
                          resultOf(0, shape, memory));
  const std::vector<uint8_t> noLogits(expected.logits.size());
  for (size_t i = 1; i < ways.size(); ++i) {
    if (!ways[i].rejected.empty())
      continue;
    LLAMAC_RETURN_IF_ERROR(writeCache(memory, cacheBefore));
    const absl::StatusOr<StepResult> got = resultOf(i, shape, memory);
    if (!got.ok()) {
      ways[i].rejected = std::string(got.status().message());
      continue;
    }
    ways[i].rejected =
        compareValues(noLogits, expected.logits, got->logits,
                      schema::DataType::F32, ways[i].tolerance, "the logits");
    if (ways[i].rejected.empty())
      ways[i].rejected =
          compareValues(cacheBefore, expected.cache, got->cache,
                        model->plan().kv->type, ways[i].tolerance, "the cache");
  }
  return writeCache(memory, cacheBefore);
}

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

absl::Status WayTrial::measure(const StepShape &shape) {
  constexpr size_t fewestRounds = 5, mostRounds = 41;
  // Of a short step a round takes the least of some times.
  constexpr double shortStep = 0.1;
  constexpr size_t passesOfShort = 4;
  LLAMAC_ASSIGN_OR_RETURN(const StepTimer timer,
                          StepTimer::create(*loaded[0].program, launchesOf(0),
                                            model->config().numLayers, shape));
  std::vector<size_t> in;
  for (size_t i = 0; i < ways.size(); ++i)
    if (ways[i].rejected.empty())
      in.push_back(i);
  const size_t passes = timer.seconds() < shortStep ? passesOfShort : 1;
  for (size_t round = 0; round < mostRounds; ++round) {
    if (options.isOver() ||
        (round >= fewestRounds && trials.isDecided(trials.pick(options.kept))))
      break;
    options.tell(
        absl::StrCat("whole steps in ", in.size(), " ways, round ", round + 1));
    std::vector<std::optional<double>> times(ways.size());
    for (size_t pass = 0; pass < passes; ++pass)
      for (size_t k = 0; k < in.size(); ++k) {
        // Whichever comes first finds other caches than the rest.
        const size_t way = in[(k + round) % in.size()];
        LLAMAC_ASSIGN_OR_RETURN(
            const double seconds,
            timer.time(*loaded[way].program, launchesOf(way)));
        times[way] = std::min(times[way].value_or(seconds), seconds);
      }
    trials.addRound(times);
  }
  return absl::OkStatus();
}

absl::StatusOr<WayTrialResult> WayTrial::run() {
  uint64_t arenaBytes = 0;
  for (size_t i = 0; i < ways.size(); ++i)
    arenaBytes = std::max(arenaBytes, launchesOf(i).arenaBytes);
  std::vector<StepPlan> run = options.gateSteps;
  run.push_back(options.timed);
  LLAMAC_ASSIGN_OR_RETURN(
      engine, Engine::create(model, {.kvPages = pagesFor(model->plan(), run),
                                     .arenaBytes = arenaBytes,
                                     .observer = this}));
  steps.emplace(*engine, options.first);
  LLAMAC_RETURN_IF_ERROR(load());
  for (const StepPlan &step : options.gateSteps) {
    if (options.isOver())
      return WayTrialResult{std::move(trials), options.kept};
    options.tell(absl::StrCat("comparing ", ways.size(),
                              " ways to run a step, ",
                              step.sequences * step.tokens, " rows"));
    LLAMAC_RETURN_IF_ERROR(runStep(step, Phase::Gate));
  }
  const size_t kept = ways[options.kept].rejected.empty() ? options.kept : 0;
  if (options.measures && !options.isOver())
    LLAMAC_RETURN_IF_ERROR(runStep(options.timed, Phase::Trials));
  const size_t pick = trials.rounds() > 0 ? trials.pick(kept) : kept;
  return WayTrialResult{std::move(trials), pick};
}

absl::StatusOr<WayTrialResult>
tryWays(const std::shared_ptr<const Model> &model, size_t program,
        std::vector<Way> &ways, const WayTrialOptions &options) {
  return WayTrial(model, program, ways, options).run();
}

} // namespace llamac
