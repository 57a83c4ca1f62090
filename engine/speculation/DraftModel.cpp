//===- DraftModel.cpp - Drafts of a smaller model -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/speculation/DraftModel.h"

#include "engine/speculation/EagleHead.h"
#include "engine/speculation/SmallModel.h"
#include "runtime/base/Clock.h"
#include "runtime/base/Status.h"

#include <algorithm>

namespace llamac {

void Drafter::record(int64_t drafted, int64_t accepted) {
  // Behind a wrong one nothing is known.
  const int64_t verified = std::min(accepted + 1, drafted);
  for (int64_t i = 0; i < verified; ++i)
    known.record(i < accepted);
}

absl::StatusOr<std::unique_ptr<DraftModel>>
DraftModel::create(std::shared_ptr<const Model> model, double kvMemory) {
  LLAMAC_ASSIGN_OR_RETURN(
      std::unique_ptr<Engine> engine,
      Engine::create(std::move(model), {.kvMemory = kvMemory}));
  if (engine->model().config().head)
    return std::make_unique<EagleHead>(std::move(engine));
  return std::make_unique<SmallModel>(std::move(engine));
}

absl::StatusOr<std::vector<Draft>>
DraftModel::draft(absl::Span<const DraftWanted> batch) {
  std::vector<Draft> drafts(batch.size());
  std::vector<absl::Span<const int32_t>> first;
  std::vector<Sampler> samplers;
  samplers.reserve(batch.size());
  std::vector<bool> isDone(batch.size());
  int64_t longest = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    LLAMAC_ASSIGN_OR_RETURN(first.emplace_back(), catchUp(batch[i]));
    isDone[i] = first[i].empty();
    samplers.push_back(batch[i].sampler->forDrafts());
    longest = std::max(longest, batch[i].most);
  }
  for (int64_t step = 0; step < longest; ++step) {
    std::vector<NextTokens> items;
    std::vector<size_t> numbers;
    bool isPlain = true;
    for (size_t i = 0; i < batch.size(); ++i) {
      const DraftWanted &wanted = batch[i];
      if (step >= wanted.most || isDone[i])
        continue;
      absl::Span<const int32_t> next =
          step == 0 ? first[i] : absl::MakeConstSpan(drafts[i].tokens).last(1);
      Sampler *sampler = &samplers[i];
      if (next.size() > mostPromptRows) {
        next = next.first(mostPromptRows);
        sampler = nullptr;
      }
      isPlain &= next.size() == 1;
      numbers.push_back(i);
      items.push_back({wanted.drafter, next, sampler});
    }
    if (items.empty())
      break;
    const double start = steadySeconds();
    LLAMAC_ASSIGN_OR_RETURN(const auto chosen, run(items));
    if (isPlain) {
      static constexpr double newShare = 0.1;
      const double taken = steadySeconds() - start;
      seconds += (seconds == 0 ? 1 : newShare) * (taken - seconds);
    }
    for (size_t k = 0; k < items.size(); ++k) {
      Drafter &drafter = *items[k].drafter;
      isDone[numbers[k]] = !items[k].sampler || !chosen[k].ok();
      // Its logits are of no use there; catchUp() truncates the sequence.
      if (!chosen[k].ok())
        drafter.known.record(false);
      if (isDone[numbers[k]])
        continue;
      drafts[numbers[k]].add(*chosen[k], drafter.acceptance());
    }
  }
  return drafts;
}

} // namespace llamac
