//===- SmallModel.cpp - A draft model of its own --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/speculation/SmallModel.h"

#include "runtime/base/Status.h"

#include <algorithm>

namespace llamac {

/// Keeps the last token of the answer at least, behind which a step draws.
absl::StatusOr<absl::Span<const int32_t>>
SmallModel::catchUp(const DraftWanted &wanted) {
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
  return wanted.tokens.subspan(drafter.tokens.size());
}

absl::StatusOr<std::vector<absl::StatusOr<int32_t>>>
SmallModel::run(absl::Span<const NextTokens> batch) {
  std::vector<SampledTokens> items;
  for (const NextTokens &next : batch)
    items.push_back(
        {&*next.drafter->sequence, next.tokens, next.sampler,
         next.tokens.size() == 1 ? RowKind::Decode : RowKind::Prompt});
  LLAMAC_ASSIGN_OR_RETURN(auto chosen, engine->sample(items));
  for (const NextTokens &next : batch)
    next.drafter->tokens.insert(next.drafter->tokens.end(), next.tokens.begin(),
                                next.tokens.end());
  return chosen;
}

} // namespace llamac
