//===- DraftModel.h - Drafts of a smaller model -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A small model that shares the vocabulary reads along with each answer and
// goes on with it by some tokens (Leviathan et al. 2023; Chen et al. 2023). It
// draws with the random numbers that the answer's own tokens take, so that two
// models that agree draw the same.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SPECULATION_DRAFTMODEL_H
#define LLAMAC_ENGINE_SPECULATION_DRAFTMODEL_H

#include "engine/speculation/Draft.h"
#include "engine/step/Engine.h"

#include <memory>
#include <optional>
#include <vector>

namespace llamac {

/// An answer as the draft model has it.
class Drafter {
public:
  /// Counts a draft of which `accepted` tokens were accepted.
  void record(int64_t drafted, int64_t accepted);

  /// Lets what is known of drafts count less, so that one is tried again.
  void forget() { known.forget(); }

  /// The probability that a token that is drafted next is accepted.
  double acceptance() const { return known.rate(/*prior=*/0.7, /*weight=*/4); }

  /// Gives the memory back; tokens are run anew when a draft is next wanted.
  void release() {
    sequence.reset();
    tokens.clear();
  }

private:
  friend class DraftModel;
  std::optional<Sequence> sequence;
  std::vector<int32_t> tokens; ///< The tokens that the sequence has seen.
  Acceptance known;
};

/// An answer that wants a draft.
struct DraftWanted {
  Drafter *drafter;
  absl::Span<const int32_t> tokens; ///< All tokens of prompt and answer.
  const Sampler *sampler;           ///< Chooses the answer's next token.
  int64_t most;                     ///< Tokens of the draft.
};

/// A model and the memory for its sequences; used by one thread at a time.
class DraftModel {
public:
  /// Errors: those of Engine::create().
  static absl::StatusOr<std::unique_ptr<DraftModel>>
  create(std::shared_ptr<const Model> model);

  /// A draft for each of `batch`, in steps that all of them share; it ends
  /// before a token that the model has no finite logits for. Errors: those of
  /// Engine::sample(); the sequences then are of no use any more.
  absl::StatusOr<std::vector<Draft>> draft(absl::Span<const DraftWanted> batch);

  /// The seconds of a step of one token for each answer, lately; 0 where none
  /// was run.
  double stepSeconds() const { return seconds; }

private:
  explicit DraftModel(std::unique_ptr<Engine> engine)
      : engine(std::move(engine)) {}

  absl::Status catchUp(const DraftWanted &wanted);

  std::unique_ptr<Engine> engine;
  double seconds = 0;
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SPECULATION_DRAFTMODEL_H
