//===- Follow.cpp - Steps that follow each other --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// While sequences go on by one token a step, all that a step needs is known
// before the one before it is done, but for the tokens that one chooses: those
// are copied on the device. So the host queues steps ahead of the tokens it has
// seen. Steps past the last one that is used wrote keys and values behind the
// end of their sequences, where nothing reads before it is written again.
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/Engine.h"

#include "runtime/base/Status.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cstring>

namespace llamac {

// Enough that the host may be late by three steps.
static constexpr int stepsAhead = 4;

/// Steps of one batch, in the queue of an engine.
class Engine::Chain {
public:
  Chain(Engine &engine, absl::Span<const FollowedSequence> batch);
  Chain(const Chain &) = delete;
  Chain &operator=(const Chain &) = delete;

  /// Queues steps until enough are ahead, or `steps` are queued in all. Memory
  /// error when there are no pages for a step and none is ahead.
  absl::Status fill(int64_t steps);

  /// The tokens of the first step that was not taken, which is then one of the
  /// sequences'.
  absl::StatusOr<absl::Span<const int32_t>> take();

  /// Waits for what is queued and gives back the pages of what was not taken.
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
  absl::Span<const FollowedSequence> batch;
  StepShape shape;
  size_t program;
  std::vector<int64_t> starts; ///< Lengths before the first step, by item.
  /// Of the steps that are queued; the batch's own are of those taken.
  std::vector<Sampler> samplers;
  bool isGreedy = true;
  int64_t queued = 0, taken = 0;
  std::vector<int32_t> staging, tokens;
};

Engine::Chain::Chain(Engine &engine, absl::Span<const FollowedSequence> batch)
    : engine(engine), batch(batch),
      shape{static_cast<int64_t>(batch.size()),
            static_cast<int64_t>(batch.size()), /*samples=*/true},
      program(engine.programFor(shape)), tokens(batch.size()) {
  for (const FollowedSequence &item : batch) {
    starts.push_back(item.sequence->length());
    samplers.push_back(*item.sampler);
    isGreedy &= item.sampler->greedy();
  }
}

absl::Status Engine::Chain::fill(int64_t steps) {
  while (queued < steps && queued - taken < stepsAhead) {
    const absl::Status status = reservePages();
    // Those ahead may end the sequences.
    if (exitCode(status) == ExitCode::Memory && queued != taken)
      return absl::OkStatus();
    LLAMAC_RETURN_IF_ERROR(status);
    LLAMAC_RETURN_IF_ERROR(enqueue());
  }
  return absl::OkStatus();
}

absl::Status Engine::Chain::reservePages() {
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

absl::Status Engine::Chain::write(schema::InputRole role,
                                  absl::Span<const int32_t> values,
                                  uint64_t offset) {
  return engine.queue->write(input(role), offset,
                             {reinterpret_cast<const uint8_t *>(values.data()),
                              values.size() * sizeof(int32_t)});
}

absl::Status Engine::Chain::enqueue() {
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
        writeEach(schema::InputRole::Wanted, [](size_t i) { return i; }));
  } else {
    LLAMAC_RETURN_IF_ERROR(queue.copy(input(schema::InputRole::Tokens), 0,
                                      *engine.arena, place, bytes));
  }
  LLAMAC_RETURN_IF_ERROR(writeEach(schema::InputRole::Positions, [&](size_t i) {
    return starts[i] + queued;
  }));
  // Greedy draws are all the same.
  if (queued == 0 || !isGreedy) {
    std::vector<Draw> &draws = engine.drawStaging;
    draws.clear();
    for (Sampler &sampler : samplers)
      draws.push_back(sampler.nextDraw());
    LLAMAC_RETURN_IF_ERROR(
        queue.write(input(schema::InputRole::Draws), 0,
                    {reinterpret_cast<const uint8_t *>(draws.data()),
                     draws.size() * sizeof(Draw)}));
  }
  LLAMAC_RETURN_IF_ERROR(queue.run(*engine.programs[program], shape));
  LLAMAC_RETURN_IF_ERROR(queue.fetch(*engine.arena, place, bytes));
  ++queued;
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const int32_t>> Engine::Chain::take() {
  LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                          engine.queue->take());
  std::memcpy(tokens.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < batch.size(); ++i)
    if (tokens[i] < 0)
      return notFiniteError(starts[i] + taken);
  ++taken;
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i].sequence->tokens = starts[i] + taken;
    batch[i].sampler->nextDraw();
  }
  return absl::MakeConstSpan(tokens);
}

absl::Status Engine::Chain::finish() {
  const absl::Status status = engine.queue->finish();
  for (const FollowedSequence &item : batch)
    engine.cache->trim(item.sequence->slot, item.sequence->length());
  return status;
}

absl::Status Engine::followOneByOne(absl::Span<const FollowedSequence> batch,
                                    int64_t steps, TokenSink sink) {
  std::vector<int32_t> tokens;
  tokens.reserve(batch.size());
  for (const FollowedSequence &item : batch)
    tokens.push_back(item.token);
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<SampledTokens> items;
    for (size_t i = 0; i < batch.size(); ++i)
      items.push_back({batch[i].sequence, {&tokens[i], 1}, batch[i].sampler});
    LLAMAC_ASSIGN_OR_RETURN(tokens, sample(items));
    LLAMAC_ASSIGN_OR_RETURN(const bool goesOn, sink(tokens));
    if (!goesOn)
      break;
  }
  return absl::OkStatus();
}

absl::Status Engine::follow(absl::Span<const FollowedSequence> batch,
                            int64_t steps, TokenSink sink) {
  std::vector<SequenceTokens> items;
  for (const FollowedSequence &item : batch) {
    items.push_back({item.sequence, {&item.token, 1}, Wanted::Last});
    if (item.sequence->length() + steps > shared->context())
      return usageError(absl::StrCat(
          "context: ", item.sequence->length(), " tokens and ", steps,
          " steps were asked for, the plan was compiled for ",
          shared->context(), "; ask for fewer or compile with a larger -c"));
  }
  LLAMAC_RETURN_IF_ERROR(checkBatch(items));
  LLAMAC_ASSIGN_OR_RETURN(const bool isQueued, queues(batch.size()));
  if (!isQueued)
    return followOneByOne(batch, steps, sink);

  Chain chain(*this, batch);
  auto run = [&]() -> absl::Status {
    for (int64_t step = 0; step < steps; ++step) {
      LLAMAC_RETURN_IF_ERROR(chain.fill(steps));
      LLAMAC_ASSIGN_OR_RETURN(const absl::Span<const int32_t> tokens,
                              chain.take());
      LLAMAC_ASSIGN_OR_RETURN(const bool goesOn, sink(tokens));
      if (!goesOn)
        break;
    }
    return absl::OkStatus();
  };
  absl::Status status = run();
  status.Update(chain.finish());
  return status;
}

absl::StatusOr<bool> Engine::queues(size_t rows) {
  const schema::PlanT &plan = shared->plan();
  const schema::ProgramT &largest = *plan.programs.back();
  if (observer || profile || !shared->samples() || rows == 0 ||
      static_cast<int64_t>(rows) > largest.maxWanted)
    return false;
  if (!queue) {
    // Of each sequence: token, number, row, position, draw, page table, result.
    const uint64_t bytes =
        static_cast<uint64_t>(plan.kv->maxSequences) *
        (5 * sizeof(int32_t) + sizeof(Draw) +
         static_cast<uint64_t>(plan.kv->pagesPerSequence) * sizeof(int32_t));
    LLAMAC_ASSIGN_OR_RETURN(queue,
                            shared->device().newStepQueue(stepsAhead, bytes));
  }
  return queue != nullptr;
}

} // namespace llamac
