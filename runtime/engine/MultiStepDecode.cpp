//===- MultiStepDecode.cpp - Decode steps in flight -----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When sequences decode one token a step, the host knows the inputs of a step
// before the one before it is done, except for the tokens, which are copied on
// the device. So the host queues steps ahead of the tokens it has seen. Steps
// past the last one that is used wrote keys and values behind the end of their
// sequences, where nothing reads before it is written again.
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Engine.h"

#include "runtime/base/Status.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

namespace llamac {

// The host may be late by three steps.
static constexpr int maxStepsInFlight = 4;

/// Steps of one batch in the queue of an engine.
class Engine::InFlightSteps {
public:
  InFlightSteps(Engine &engine, absl::Span<const DecodeItem> batch);
  InFlightSteps(const InFlightSteps &) = delete;
  InFlightSteps &operator=(const InFlightSteps &) = delete;

  /// Queues steps until enough are in flight, or `steps` are queued in all.
  /// Memory error when there are no pages for a step and none is in flight.
  absl::Status fill(int64_t steps);

  /// Takes the first step in flight: gives its tokens and makes it part of the
  /// sequences.
  absl::StatusOr<absl::Span<const int32_t>> take();

  /// Waits for all steps and frees the pages of those that were not taken.
  absl::Status finish();

private:
  absl::Status reservePages();
  absl::Status enqueue();
  absl::Status write(schema::InputRole role, absl::Span<const int32_t> values,
                     uint64_t offset = 0);

  Buffer &input(schema::InputRole role) const {
    return *engine.inputs[static_cast<size_t>(role)];
  }

  Engine &engine;
  absl::Span<const DecodeItem> batch;
  StepShape shape;
  size_t program;
  std::vector<int64_t> starts; ///< Lengths before the first step, by item.
  /// As of the queued steps; the batch's samplers are as of the taken ones.
  std::vector<Sampler> samplers;
  bool isGreedy = true;
  int64_t queued = 0, taken = 0;
  std::vector<int32_t> staging, tokens;
};

Engine::InFlightSteps::InFlightSteps(Engine &engine,
                                     absl::Span<const DecodeItem> batch)
    : engine(engine), batch(batch),
      shape{static_cast<int64_t>(batch.size()),
            static_cast<int64_t>(batch.size()), /*samples=*/true},
      program(engine.programFor(shape)), tokens(batch.size()) {
  for (const DecodeItem &item : batch) {
    starts.push_back(item.sequence->length());
    samplers.push_back(*item.sampler);
    isGreedy &= item.sampler->greedy();
  }
}

absl::Status Engine::InFlightSteps::fill(int64_t steps) {
  while (queued < steps && queued - taken < maxStepsInFlight) {
    const absl::Status status = reservePages();
    // Those in flight may end the sequences.
    if (exitCode(status) == ExitCode::Memory && queued != taken)
      return absl::OkStatus();
    LLAMAC_RETURN_IF_ERROR(status);
    LLAMAC_RETURN_IF_ERROR(enqueue());
  }
  return absl::OkStatus();
}

absl::Status Engine::InFlightSteps::reservePages() {
  for (size_t i = 0; i < batch.size(); ++i) {
    const int32_t slot = batch[i].sequence->slot;
    LLAMAC_ASSIGN_OR_RETURN(
        const bool changed,
        engine.cache->reserve(slot, starts[i] + queued + 1));
    if (!changed)
      continue;
    const absl::Span<const int32_t> row = engine.cache->row(slot);
    LLAMAC_RETURN_IF_ERROR(write(schema::InputRole::PageTable, row,
                                 slot * row.size() * sizeof(int32_t)));
  }
  return absl::OkStatus();
}

absl::Status Engine::InFlightSteps::write(schema::InputRole role,
                                          absl::Span<const int32_t> values,
                                          uint64_t offset) {
  return engine.queue->write(input(role), offset,
                             {reinterpret_cast<const uint8_t *>(values.data()),
                              values.size() * sizeof(int32_t)});
}

absl::Status Engine::InFlightSteps::enqueue() {
  auto writeEach = [&](schema::InputRole role, auto value) {
    staging.clear();
    for (size_t i = 0; i < batch.size(); ++i)
      staging.push_back(static_cast<int32_t>(value(i)));
    return write(role, staging);
  };
  StepQueue &queue = *engine.queue;
  const auto place = static_cast<uint64_t>(
      engine.shared->plan().programs[program]->tokensOffset);
  const uint64_t bytes = batch.size() * sizeof(int32_t);
  if (queued == 0) {
    LLAMAC_RETURN_IF_ERROR(writeEach(schema::InputRole::Tokens,
                                     [&](size_t i) { return batch[i].token; }));
    LLAMAC_RETURN_IF_ERROR(
        writeEach(schema::InputRole::Sequences,
                  [&](size_t i) { return batch[i].sequence->slot; }));
    LLAMAC_RETURN_IF_ERROR(
        writeEach(schema::InputRole::OutputRows, [](size_t i) { return i; }));
  } else {
    LLAMAC_RETURN_IF_ERROR(queue.copy(input(schema::InputRole::Tokens), 0,
                                      *engine.arena, place, bytes));
  }
  LLAMAC_RETURN_IF_ERROR(writeEach(schema::InputRole::Positions, [&](size_t i) {
    return starts[i] + queued;
  }));
  // The params of greedy steps are all the same.
  if (queued == 0 || !isGreedy) {
    std::vector<SamplingParams> &params = engine.paramsStaging;
    params.clear();
    for (Sampler &sampler : samplers)
      params.push_back(sampler.nextParams());
    LLAMAC_RETURN_IF_ERROR(
        queue.write(input(schema::InputRole::SamplingParams), 0,
                    {reinterpret_cast<const uint8_t *>(params.data()),
                     params.size() * sizeof(SamplingParams)}));
  }
  LLAMAC_RETURN_IF_ERROR(queue.run(*engine.programs[program], shape));
  LLAMAC_RETURN_IF_ERROR(queue.fetch(*engine.arena, place, bytes));
  ++queued;
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const int32_t>> Engine::InFlightSteps::take() {
  LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                          engine.queue->take());
  std::memcpy(tokens.data(), bytes.data(), bytes.size());
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
    for (size_t i = 0; i < batch.size(); ++i)
      items.push_back({batch[i].sequence, {&tokens[i], 1}, batch[i].sampler});
    LLAMAC_ASSIGN_OR_RETURN(tokens, sample(items));
    LLAMAC_ASSIGN_OR_RETURN(const bool goesOn, callback(tokens));
    if (!goesOn)
      break;
  }
  return absl::OkStatus();
}

absl::Status Engine::decode(absl::Span<const DecodeItem> batch, int64_t steps,
                            TokenCallback callback) {
  std::vector<SequenceTokens> items;
  for (const DecodeItem &item : batch) {
    items.push_back({item.sequence, {&item.token, 1}, OutputRows::Last});
    if (item.sequence->length() + steps > shared->context())
      return usageError(absl::StrCat(
          "context: ", item.sequence->length(), " tokens and ", steps,
          " steps were asked for, the plan was compiled for ",
          shared->context(), "; ask for fewer or compile with a larger -c"));
  }
  LLAMAC_RETURN_IF_ERROR(checkBatch(items));
  LLAMAC_ASSIGN_OR_RETURN(const bool isQueued, canQueue(batch.size()));
  if (!isQueued)
    return decodeOneByOne(batch, steps, callback);

  InFlightSteps inFlight(*this, batch);
  auto run = [&]() -> absl::Status {
    for (int64_t step = 0; step < steps; ++step) {
      LLAMAC_RETURN_IF_ERROR(inFlight.fill(steps));
      LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const int32_t> tokens,
                              inFlight.take());
      LLAMAC_ASSIGN_OR_RETURN(const bool goesOn, callback(tokens));
      if (!goesOn)
        break;
    }
    return absl::OkStatus();
  };
  absl::Status status = run();
  status.Update(inFlight.finish());
  return status;
}

absl::StatusOr<bool> Engine::canQueue(size_t rows) {
  const schema::PlanT &plan = shared->plan();
  const schema::ProgramT &largest = *plan.programs.back();
  if (observer || profile || !shared->samples() || rows == 0 ||
      static_cast<int64_t>(rows) > largest.maxOutputRows)
    return false;
  if (!queue) {
    // Of each sequence: token, number, row, position, params, page table,
    // result.
    const uint64_t bytes =
        static_cast<uint64_t>(plan.kv->maxSequences) *
        (5 * sizeof(int32_t) + sizeof(SamplingParams) +
         static_cast<uint64_t>(plan.kv->pagesPerSequence) * sizeof(int32_t));
    LLAMAC_ASSIGN_OR_RETURN(
        queue, shared->device().newStepQueue(maxStepsInFlight, bytes));
  }
  return queue != nullptr;
}

} // namespace llamac
