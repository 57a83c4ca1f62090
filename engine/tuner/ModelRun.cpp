//===- ModelRun.cpp - Models at work, to be timed -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/tuner/ModelRun.h"

namespace llamac {

std::vector<int32_t> spreadTokens(int64_t count, int64_t vocab) {
  std::vector<int32_t> ids;
  ids.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<int32_t>((7919 * i + 11) % vocab));
  return ids;
}

absl::Status ModelRun::prefill(absl::Span<const int32_t> prompt) {
  for (int64_t i = 0; i < batch; ++i) {
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine.newSequence());
    sequences.push_back(std::move(sequence));
    LLAMAC_ASSIGN_OR_RETURN(Sampler greedy, Sampler::create({}));
    samplers.push_back(std::move(greedy));
  }
  if (!engine.model().samples()) {
    std::vector<SequenceTokens> items;
    items.reserve(sequences.size());
    for (Sequence &sequence : sequences)
      items.push_back({&sequence, prompt, OutputRows::Last});
    return engine.step(items, ignoreLogits);
  }
  std::vector<SampledTokens> items;
  items.reserve(sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i)
    items.push_back({&sequences[i], prompt, &samplers[i]});
  LLAMAC_ASSIGN_OR_RETURN(const auto chosen, engine.sample(items));
  for (const absl::StatusOr<int32_t> &token : chosen) {
    LLAMAC_ASSIGN_OR_RETURN(next.emplace_back(), token);
  }
  return absl::OkStatus();
}

absl::Status ModelRun::decode(absl::Span<const int32_t> tokens) {
  if (!engine.model().samples())
    return decodeGiven(tokens);
  std::vector<DecodeItem> items;
  items.reserve(sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i)
    items.push_back({&sequences[i], next[i], &samplers[i]});
  return engine.decode(items, static_cast<int64_t>(tokens.size()),
                       [](absl::Span<const int32_t>) { return true; });
}

absl::Status ModelRun::decodeGiven(absl::Span<const int32_t> tokens) {
  for (const int32_t &token : tokens) {
    std::vector<SequenceTokens> items;
    items.reserve(sequences.size());
    for (Sequence &sequence : sequences)
      items.push_back({&sequence, {&token, 1}, OutputRows::Last});
    LLAMAC_RETURN_IF_ERROR(engine.step(items, ignoreLogits));
  }
  return absl::OkStatus();
}

} // namespace llamac
