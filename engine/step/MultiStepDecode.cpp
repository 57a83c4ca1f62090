//===- MultiStepDecode.cpp - Decode steps in flight -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When sequences decode one token a step, the host knows the inputs of a step
// before the one before it is done, except for the tokens, which stay on the
// device. So the host queues runs of several steps, which a device does without
// a copy in between, ahead of the tokens it has seen. Steps past the last one
// that is used wrote keys and values behind the end of their sequences, where
// nothing reads before it is written again.
//
//===----------------------------------------------------------------------===//

#include "engine/step/Engine.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

namespace llamac {

using schema::InputRole;

/// Steps of a run, where as many are left: what lies between two runs, a few
/// copies, takes some microseconds, and a token comes up to a run late.
static constexpr int64_t stepsOfRun = 4;

/// The host may be late by a run while another is done.
static constexpr int maxRunsInFlight = 3;

/// Runs of steps of one batch in the queue of an engine.
class Engine::InFlightSteps {
public:
  InFlightSteps(Engine &engine, absl::Span<const DecodeItem> batch);
  InFlightSteps(const InFlightSteps &) = delete;
  InFlightSteps &operator=(const InFlightSteps &) = delete;

  /// Queues runs until enough are in flight, or `steps` steps are queued in
  /// all. Memory error when there are no pages for a step and none is in
  /// flight.
  absl::Status fill(int64_t steps);

  /// Whether steps are in flight.
  bool hasMore() const { return taken < queued; }

  /// Takes the first step in flight: gives its tokens and makes it part of the
  /// sequences.
  absl::StatusOr<absl::Span<const int32_t>> take();

  /// Waits for all steps and frees the pages of those that were not taken.
  absl::Status finish();

private:
  /// For `count` more steps.
  absl::Status reservePages(int64_t count);
  absl::Status enqueue(int64_t count);

  Engine &engine;
  absl::Span<const DecodeItem> batch;
  StepShape shape;
  size_t program;
  std::vector<int64_t> starts; ///< Lengths before the first step, by item.
  /// The samplers' streams after the queued steps; the batch's samplers
  /// themselves are where the taken ones left them.
  std::vector<ParamStream> streams;
  bool isGreedy = true;
  int64_t queued = 0, taken = 0; ///< Steps.
  int64_t paramSteps = 0;        ///< Steps whose params are on the device.
  int64_t lastRunSteps = 0;      ///< Steps of the run queued last.
  size_t runs = 0;               ///< In flight.
  std::vector<int32_t> fetched;  ///< Tokens of a run, step by step.
  size_t given = 0;              ///< Tokens of `fetched` that were taken.
  std::vector<int32_t> tokens;
};

Engine::InFlightSteps::InFlightSteps(Engine &engine,
                                     absl::Span<const DecodeItem> batch)
    : engine(engine), batch(batch),
      shape{static_cast<int64_t>(batch.size()),
            static_cast<int64_t>(batch.size()), /*samples=*/true},
      program(engine.programFor(shape, RowKind::Decode)), tokens(batch.size()) {
  for (const DecodeItem &item : batch) {
    starts.push_back(item.sequence->length());
    streams.push_back(item.sampler->params());
    isGreedy &= item.sampler->greedy();
  }
}

absl::Status Engine::InFlightSteps::fill(int64_t steps) {
  // The inputs hold the rows of a run and of the tokens behind it, and the ring
  // of a window holds the keys that the next token sees and as many tokens as
  // the largest step has rows.
  const int64_t maxRows = engine.shared->plan().programs.back()->maxRows;
  const bool fits = (stepsOfRun + 1) * shape.rows <= maxRows;
  while (queued < steps && runs < maxRunsInFlight) {
    int64_t count = fits && steps - queued >= stepsOfRun ? stepsOfRun : 1;
    if (queued - taken + count > maxRows)
      return absl::OkStatus();
    absl::Status status = reservePages(count);
    if (exitCode(status) == ExitCode::Memory && count > 1)
      status = reservePages(count = 1);
    // Steps in flight may end the sequences.
    if (exitCode(status) == ExitCode::Memory && queued != taken)
      return absl::OkStatus();
    LLAMAC_RETURN_IF_ERROR(status);
    LLAMAC_RETURN_IF_ERROR(enqueue(count));
  }
  return absl::OkStatus();
}

absl::Status Engine::InFlightSteps::reservePages(int64_t count) {
  std::vector<Growth> growths;
  growths.reserve(batch.size());
  for (size_t i = 0; i < batch.size(); ++i)
    growths.push_back({batch[i].sequence->slot, starts[i] + queued + count});
  LLAMAC_RETURN_IF_ERROR(engine.cache->checkRoom(growths));
  PlanMemory &memory = *engine.memory;
  const uint64_t table = memory.inputs().layout().offset(InputRole::PageTable);
  for (const Growth &growth : growths) {
    LLAMAC_ASSIGN_OR_RETURN(const bool changed, engine.cache->reserve(growth));
    if (!changed)
      continue;
    LLAMAC_RETURN_IF_ERROR(
        engine.cache->writeRows(growth.slot, [&](uint64_t offset, auto bytes) {
          return engine.queue->write(memory.inputBuffer(), table + offset,
                                     bytes);
        }));
  }
  return absl::OkStatus();
}

absl::Status Engine::InFlightSteps::enqueue(int64_t count) {
  StepQueue &queue = *engine.queue;
  StepInputs &inputs = engine.memory->inputs();
  Buffer &buffer = engine.memory->inputBuffer();
  const size_t rows = batch.size();
  const uint64_t tokensAt = inputs.layout().offset(InputRole::Tokens);
  const uint64_t stepBytes = rows * sizeof(int32_t);
  if (queued == 0) {
    const auto first = inputs.rows<int32_t>(InputRole::Tokens, rows);
    const auto sequences = inputs.rows<int32_t>(InputRole::Sequences, rows);
    const auto outputs = inputs.rows<int32_t>(InputRole::OutputRows, rows);
    for (size_t i = 0; i < rows; ++i) {
      first[i] = batch[i].token;
      sequences[i] = batch[i].sequence->slot;
      outputs[i] = static_cast<int32_t>(i);
    }
  } else {
    LLAMAC_RETURN_IF_ERROR(queue.copy(buffer, tokensAt, buffer,
                                      tokensAt + lastRunSteps * stepBytes,
                                      stepBytes));
  }
  const auto positions =
      inputs.rows<int32_t>(InputRole::Positions, count * rows);
  for (int64_t step = 0; step < count; ++step)
    for (size_t i = 0; i < rows; ++i)
      positions[step * rows + i] =
          static_cast<int32_t>(starts[i] + queued + step);
  // The params of greedy steps are all the same.
  if (!isGreedy || paramSteps < count) {
    const auto params =
        inputs.rows<SamplingParams>(InputRole::SamplingParams, count * rows);
    for (size_t i = 0; i < params.size(); ++i)
      params[i] = streams[i % rows].next();
    paramSteps = count;
  }
  LLAMAC_RETURN_IF_ERROR(inputs.send([&](uint64_t offset, auto bytes) {
    return queue.write(buffer, offset, bytes);
  }));
  LLAMAC_RETURN_IF_ERROR(queue.run(engine.memory->program(program), shape,
                                   static_cast<int>(count)));
  LLAMAC_RETURN_IF_ERROR(
      queue.fetch(buffer, tokensAt + stepBytes, count * stepBytes));
  queued += count;
  for (size_t i = 0; i < batch.size(); ++i)
    batch[i].sequence->written =
        std::max(batch[i].sequence->written, starts[i] + queued);
  lastRunSteps = count;
  ++runs;
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const int32_t>> Engine::InFlightSteps::take() {
  if (given == fetched.size()) {
    const double start = steadySeconds();
    LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                            engine.queue->take());
    engine.secondsInPrograms += steadySeconds() - start;
    --runs;
    fetched.resize(bytes.size() / sizeof(int32_t));
    std::memcpy(fetched.data(), bytes.data(), bytes.size());
    given = 0;
  }
  std::copy_n(&fetched[given], tokens.size(), tokens.begin());
  given += tokens.size();
  for (size_t i = 0; i < batch.size(); ++i)
    if (tokens[i] < 0)
      return notFiniteError(starts[i] + taken);
  ++taken;
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i].sequence->tokens = starts[i] + taken;
    batch[i].sampler->nextParams();
  }
  return absl::MakeConstSpan(tokens);
}

absl::Status Engine::InFlightSteps::finish() {
  const absl::Status status = engine.queue->finish();
  for (const DecodeItem &item : batch)
    engine.cache->trim(item.sequence->slot, item.sequence->length());
  return status;
}

absl::Status Engine::decodeOneByOne(absl::Span<const DecodeItem> batch,
                                    int64_t steps, TokenCallback callback) {
  std::vector<int32_t> tokens;
  tokens.reserve(batch.size());
  for (const DecodeItem &item : batch)
    tokens.push_back(item.token);
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<SampledTokens> items;
    items.reserve(batch.size());
    for (size_t i = 0; i < batch.size(); ++i)
      items.push_back({batch[i].sequence,
                       {&tokens[i], 1},
                       batch[i].sampler,
                       RowKind::Decode});
    LLAMAC_ASSIGN_OR_RETURN(const auto chosen, sample(items));
    for (size_t i = 0; i < batch.size(); ++i) {
      LLAMAC_ASSIGN_OR_RETURN(tokens[i], chosen[i]);
    }
    LLAMAC_ASSIGN_OR_RETURN(const bool goesOn, callback(tokens));
    if (!goesOn)
      break;
  }
  return absl::OkStatus();
}

absl::Status Engine::decode(absl::Span<const DecodeItem> batch, int64_t steps,
                            TokenCallback callback, StepsAhead ahead) {
  std::vector<SequenceTokens> items;
  for (const DecodeItem &item : batch) {
    items.push_back(
        {item.sequence, {&item.token, 1}, OutputRows::Last, RowKind::Decode});
    if (item.sequence->length() + steps > shared->context())
      return usageError(absl::StrCat(
          "context: ", item.sequence->length(), " tokens and ", steps,
          " steps were asked for, the plan was compiled for ",
          shared->context(), "; ask for fewer or compile with a larger -c"));
  }
  LLAMAC_RETURN_IF_ERROR(checkBatch(items));
  LLAMAC_ASSIGN_OR_RETURN(const bool isQueued, canQueue(batch));
  if (!isQueued)
    return decodeOneByOne(batch, steps, callback);

  InFlightSteps inFlight(*this, batch);
  auto run = [&]() -> absl::Status {
    bool goesOn = true;
    for (int64_t step = 0; step < steps; ++step) {
      if (goesOn)
        LLAMAC_RETURN_IF_ERROR(inFlight.fill(steps));
      else if (!inFlight.hasMore())
        break;
      LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const int32_t> tokens,
                              inFlight.take());
      LLAMAC_ASSIGN_OR_RETURN(const bool wantsMore, callback(tokens));
      goesOn &= wantsMore;
      if (!goesOn && ahead == StepsAhead::Undone)
        break;
    }
    return absl::OkStatus();
  };
  absl::Status status = run();
  status.Update(inFlight.finish());
  return status;
}

absl::StatusOr<bool> Engine::canQueue(absl::Span<const DecodeItem> batch) {
  const size_t rows = batch.size();
  const schema::PlanT &plan = shared->plan();
  const schema::ProgramT &largest = *plan.programs.back();
  const schema::ProgramT &chosen = *plan.programs[programFor(
      {static_cast<int64_t>(rows), static_cast<int64_t>(rows)},
      RowKind::Decode)];
  // The inputs hold a step's tokens and those behind it. A queue is of one
  // device.
  if (plan.ranks > 1 || observer || profile || !shared->samples() ||
      rows == 0 ||
      !std::ranges::all_of(batch,
                           [](const DecodeItem &item) {
                             return item.sampler->samplesOnDevice();
                           }) ||
      static_cast<int64_t>(rows) > chosen.maxOutputRows ||
      2 * static_cast<int64_t>(rows) > largest.maxRows)
    return false;
  if (!queue) {
    // All inputs, and the tokens of each sequence.
    const uint64_t bytes = memory->inputs().layout().totalBytes() +
                           static_cast<uint64_t>(plan.kv->maxSequences) *
                               stepsOfRun * sizeof(int32_t);
    LLAMAC_ASSIGN_OR_RETURN(
        queue, shared->device().newStepQueue(maxRunsInFlight, bytes));
  }
  return queue != nullptr;
}

} // namespace llamac
