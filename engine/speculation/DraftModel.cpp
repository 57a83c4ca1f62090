//===- DraftModel.cpp - Drafts of a smaller model -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/speculation/DraftModel.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"

#include <algorithm>

namespace llamac {

/// Tokens of a prompt that a step of drafts runs at most, as others wait for
/// it: until all are run, a long prompt has no draft.
static constexpr size_t mostPromptRows = 512;

void Drafter::record(int64_t drafted, int64_t accepted) {
  // Behind a wrong one nothing is known.
  const int64_t verified = std::min(accepted + 1, drafted);
  for (int64_t i = 0; i < verified; ++i)
    known.record(i < accepted);
}

absl::StatusOr<std::unique_ptr<DraftModel>>
DraftModel::create(std::shared_ptr<const Model> model) {
  LLAMAC_ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                          Engine::create(std::move(model)));
  return std::unique_ptr<DraftModel>(new DraftModel(std::move(engine)));
}

/// Drops what the sequence of `wanted` has seen and the answer has not, and its
/// last token at least, behind which a step is to draw.
absl::Status DraftModel::catchUp(const DraftWanted &wanted) {
  Drafter &drafter = *wanted.drafter;
  if (!drafter.sequence) {
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine->newSequence());
    drafter.sequence.emplace(std::move(sequence));
    drafter.tokens.clear();
  }
  const auto known =
      std::ranges::mismatch(drafter.tokens,
                            wanted.tokens.first(wanted.tokens.size() - 1))
          .in1 -
      drafter.tokens.begin();
  drafter.tokens.resize(static_cast<size_t>(
      engine->truncate(*drafter.sequence, static_cast<int64_t>(known))));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Draft>>
DraftModel::draft(absl::Span<const DraftWanted> batch) {
  std::vector<Draft> drafts(batch.size());
  std::vector<Sampler> samplers;
  samplers.reserve(batch.size());
  std::vector<bool> isDone(batch.size());
  int64_t longest = 0;
  for (const DraftWanted &wanted : batch) {
    LLAMAC_RETURN_IF_ERROR(catchUp(wanted));
    samplers.push_back(wanted.sampler->forDrafts());
    longest = std::max(longest, wanted.most);
  }
  for (int64_t step = 0; step < longest; ++step) {
    std::vector<SampledTokens> items;
    std::vector<size_t> numbers;
    bool isPlain = true;
    for (size_t i = 0; i < batch.size(); ++i) {
      const DraftWanted &wanted = batch[i];
      if (step >= wanted.most || isDone[i])
        continue;
      Drafter &drafter = *wanted.drafter;
      absl::Span<const int32_t> next =
          step == 0 ? wanted.tokens.subspan(drafter.tokens.size())
                    : absl::MakeConstSpan(drafts[i].tokens).last(1);
      Sampler *sampler = &samplers[i];
      if (next.size() > mostPromptRows) {
        next = next.first(mostPromptRows);
        sampler = nullptr;
      }
      isPlain &= next.size() == 1;
      numbers.push_back(i);
      items.push_back({&*drafter.sequence, next, sampler,
                       next.size() == 1 ? RowKind::Decode : RowKind::Prompt});
    }
    const double start = steadySeconds();
    LLAMAC_ASSIGN_OR_RETURN(const auto chosen, engine->sample(items));
    if (isPlain) {
      static constexpr double newShare = 0.1;
      const double taken = steadySeconds() - start;
      seconds += (seconds == 0 ? 1 : newShare) * (taken - seconds);
    }
    for (size_t k = 0; k < items.size(); ++k) {
      const DraftWanted &wanted = batch[numbers[k]];
      Drafter &drafter = *wanted.drafter;
      drafter.tokens.insert(drafter.tokens.end(), items[k].tokens.begin(),
                            items[k].tokens.end());
      isDone[numbers[k]] = !items[k].sampler || !chosen[k].ok();
      if (!chosen[k].ok())
        drafter.release();
      if (isDone[numbers[k]])
        continue;
      drafts[numbers[k]].add(*chosen[k], drafter.acceptance());
    }
  }
  return drafts;
}

} // namespace llamac
