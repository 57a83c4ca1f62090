//===- EagleHead.cpp - Drafts of a head on the answer's model -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/speculation/EagleHead.h"

#include "runtime/base/Status.h"

namespace llamac {

/// Rows of features that are run as soon as so many wait.
static constexpr int64_t rowsAtOnce = 128;

EagleHead::EagleHead(std::unique_ptr<Engine> engine)
    : DraftModel(std::move(engine)), head(*this->engine->model().config().head),
      logitsOfAll(static_cast<size_t>(this->engine->model().config().vocabSize),
                  -1e30F) {}

/// Rows whose features were read and that have yet to be run.
int64_t EagleHead::waitingRows(const Drafter &drafter) const {
  return std::ssize(drafter.features) / featureDim();
}

/// Sees to it that the sequence ends with the rows of features.
absl::Status EagleHead::openRows(Drafter &drafter) {
  if (!drafter.sequence) {
    LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine->newSequence());
    drafter.sequence.emplace(std::move(sequence));
  }
  const int64_t rows = engine->truncate(*drafter.sequence, drafter.rows);
  return rows == drafter.rows
             ? absl::OkStatus()
             : internalError("a draft head shares no pages with others");
}

absl::Status EagleHead::read(Drafter &drafter, absl::Span<const int32_t> tokens,
                             int64_t position,
                             absl::Span<const float> features) {
  if (position != drafter.first + drafter.rows + waitingRows(drafter)) {
    drafter.release();
    drafter.first = position;
  }
  drafter.features.insert(drafter.features.end(), features.begin(),
                          features.end());
  // Waiting features take memory, and a draft would wait for their rows.
  while (waitingRows(drafter) >= rowsAtOnce) {
    const auto next = static_cast<size_t>(drafter.first + drafter.rows + 1);
    if (tokens.size() < next + rowsAtOnce)
      break;
    LLAMAC_RETURN_IF_ERROR(openRows(drafter));
    const NextTokens piece = {&drafter, tokens.subspan(next, rowsAtOnce),
                              nullptr};
    LLAMAC_RETURN_IF_ERROR(run({&piece, 1}).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<const int32_t>>
EagleHead::catchUp(const DraftWanted &wanted) {
  Drafter &drafter = *wanted.drafter;
  const int64_t waiting = waitingRows(drafter);
  // The last token has yet to be run by the answer's model.
  const int64_t next = drafter.first + drafter.rows + 1;
  if (waiting == 0 || next + waiting != std::ssize(wanted.tokens))
    return absl::Span<const int32_t>();
  LLAMAC_RETURN_IF_ERROR(openRows(drafter));
  return wanted.tokens.subspan(static_cast<size_t>(next));
}

absl::StatusOr<std::vector<absl::StatusOr<int32_t>>>
EagleHead::run(absl::Span<const NextTokens> batch) {
  std::vector<SequenceTokens> items;
  for (const NextTokens &next : batch) {
    const Drafter &drafter = *next.drafter;
    const bool hasFeatures = !drafter.features.empty();
    items.push_back(
        {&*next.drafter->sequence, next.tokens,
         next.sampler ? OutputRows::Last : OutputRows::None,
         next.tokens.size() == 1 ? RowKind::Decode : RowKind::Prompt,
         hasFeatures ? HeadRows{drafter.features.data(), nullptr}
                     : HeadRows{nullptr, drafter.state.data()}});
  }
  std::vector<absl::StatusOr<int32_t>> chosen(batch.size(), -1);
  LLAMAC_RETURN_IF_ERROR(
      engine->step(items, [&](const LogitsRow &row) -> absl::Status {
        const NextTokens &next = batch[row.item];
        next.drafter->state.assign(row.state.begin(), row.state.end());
        chosen[row.item] = choose(row.values, *next.sampler);
        return absl::OkStatus();
      }));
  for (const NextTokens &next : batch) {
    Drafter &drafter = *next.drafter;
    if (drafter.features.empty())
      continue;
    const int64_t rows = std::ssize(next.tokens);
    drafter.rows += rows;
    drafter.features.erase(drafter.features.begin(),
                           drafter.features.begin() + rows * featureDim());
  }
  return chosen;
}

absl::StatusOr<int32_t> EagleHead::choose(absl::Span<const float> logits,
                                          Sampler &sampler) {
  if (head.tokens.empty())
    return sampler.sample(logits);
  for (size_t i = 0; i < logits.size(); ++i)
    logitsOfAll[static_cast<size_t>(head.tokens[i])] = logits[i];
  return sampler.sample(logitsOfAll);
}

} // namespace llamac
