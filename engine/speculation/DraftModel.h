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
// It is a model of its own (SmallModel), or a head that reads what the answer's
// model made of each token (EagleHead).
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
    features.clear();
    rows = 0;
  }

private:
  friend class DraftModel;
  friend class SmallModel;
  friend class EagleHead;
  std::optional<Sequence> sequence;
  Acceptance known;
  /// The tokens that the sequence of a small model has seen.
  std::vector<int32_t> tokens;
  // The state of a head, whose row of the token at position i + 1 reads the
  // features of position i.
  int64_t first = 0;           ///< The position of the first row's features.
  int64_t rows = 0;            ///< Rows that were run with features.
  std::vector<float> features; ///< The features of the rows that follow.
  std::vector<float> state;    ///< The head's state behind the last row.
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
  virtual ~DraftModel() = default;

  /// `kvMemory` is that of EngineOptions. Errors: those of Engine::create().
  static absl::StatusOr<std::unique_ptr<DraftModel>>
  create(std::shared_ptr<const Model> model, double kvMemory = 0);

  /// A draft for each of `batch`, in steps that all of them share; it ends
  /// before a token that the model has no finite logits for. Errors: those of
  /// Engine::sample(); the sequences then are of no use any more.
  absl::StatusOr<std::vector<Draft>> draft(absl::Span<const DraftWanted> batch);

  /// The seconds of a step of one token for each answer, lately; 0 where none
  /// was run.
  double stepSeconds() const { return seconds; }

  /// Engine::programSeconds() of its engine.
  double programSeconds() const { return engine->programSeconds(); }

  /// The features that read() wants of each token; 0: none.
  int64_t featureDim() const {
    const auto &head = engine->model().config().head;
    return head ? head->featureDim() : 0;
  }

  /// Takes what the answer's model made of the tokens from `position` on of its
  /// sequence, featureDim() numbers each; `tokens` are those of the answer that
  /// are known. Errors: those of Engine::step().
  virtual absl::Status read(Drafter & /*drafter*/,
                            absl::Span<const int32_t> /*tokens*/,
                            int64_t /*position*/,
                            absl::Span<const float> /*features*/) {
    return absl::OkStatus();
  }

protected:
  explicit DraftModel(std::unique_ptr<Engine> engine)
      : engine(std::move(engine)) {}

  /// Tokens that the sequence of an answer runs next, and what chooses the
  /// token behind them; null for a part, behind which there is more.
  struct NextTokens {
    Drafter *drafter;
    absl::Span<const int32_t> tokens;
    Sampler *sampler;
  };

  /// Tokens that a step of drafts runs at most of an answer, as others wait for
  /// it: until all are run, a long prompt has no draft.
  static constexpr size_t mostPromptRows = 512;

  /// Drops what the answer does not go on from, and gives those of its tokens
  /// that are to be run first; none where there can be no draft.
  virtual absl::StatusOr<absl::Span<const int32_t>>
  catchUp(const DraftWanted &wanted) = 0;

  /// Runs a step, and gives the tokens chosen, -1 where there is no sampler.
  virtual absl::StatusOr<std::vector<absl::StatusOr<int32_t>>>
  run(absl::Span<const NextTokens> batch) = 0;

  std::unique_ptr<Engine> engine;

private:
  double seconds = 0;
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SPECULATION_DRAFTMODEL_H
