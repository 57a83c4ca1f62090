//===- Speculator.h - The drafts of each step -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An answer is drafted by look-up or by the draft model, whichever was right
// more often in it. How many tokens a step verifies its request says, or what
// they were measured to bring and to cost.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_SPECULATION_SPECULATOR_H
#define LLAMAC_ENGINE_SPECULATION_SPECULATOR_H

#include "engine/speculation/DraftModel.h"
#include "engine/speculation/PromptLookup.h"
#include "engine/speculation/StepCosts.h"

#include <memory>
#include <vector>

namespace llamac {

/// The state of the drafts of one answer.
class AnswerDrafts {
public:
  /// Gives up the draft model's sequence while the answer waits.
  void release() { drafter.release(); }

private:
  friend class Speculator;
  PromptLookup lookup; ///< All tokens when a draft was last wanted.
  Drafter drafter;
  bool isOfModel = false; ///< Whether the draft model made the last draft.
};

/// An answer that decodes, and has yet to run its last token.
struct DraftedAnswer {
  AnswerDrafts *drafts;
  absl::Span<const int32_t> tokens; ///< Prompt and answer.
  int64_t promptTokens;
  const Sampler *sampler;            ///< Chooses the next token.
  absl::Span<const int32_t> stopIds; ///< The ids that end it.
  int asked;                         ///< See Request::speculative.
  int64_t most; ///< Draft tokens that the answer has room for.
};

/// Drafts for the answers of one engine; used by one thread at a time.
class Speculator {
public:
  /// Drafts by look-up, and by `draftModel` where it is not null. One that
  /// cannot be made or that fails is left out, with a warning.
  /// Its KV cache takes the share `kvMemory` (EngineOptions).
  explicit Speculator(const std::shared_ptr<const Model> &draftModel,
                      double kvMemory = 0);

  /// Whether `asked` (Request::speculative) asks for drafts.
  bool isOn(int asked) const { return speculationOf(asked) != 0; }

  /// Whether it asks for those that pay, which takes the costs of steps.
  bool needsCosts(int asked) const { return speculationOf(asked) < 0; }

  /// The draft tokens of each of `answers` that a step should verify, which has
  /// `rows` rows besides and at most `mostRows` in all.
  std::vector<std::vector<int32_t>>
  draft(absl::Span<const DraftedAnswer> answers, int64_t rows,
        int64_t mostRows);

  /// Whether a step like that, of `rows` answers, would have a draft for
  /// `answer`.
  bool wantsDraft(const DraftedAnswer &answer, int64_t rows,
                  int64_t mostRows) const;

  /// Numbers of each token that an answer that asks for `asked` has to
  /// readFeatures() of; 0: none.
  int64_t featureDim(int asked) const {
    return hasModel && isOn(asked) ? model->featureDim() : 0;
  }

  /// Takes what the answer's model made of the tokens from `position` on;
  /// `tokens` are those of the answer that are known.
  void readFeatures(AnswerDrafts &drafts, absl::Span<const int32_t> tokens,
                    int64_t position, absl::Span<const float> features);

  /// Learns from a draft of `drafted` tokens, of which `accepted` were.
  void record(AnswerDrafts &drafts, int64_t drafted, int64_t accepted);

  /// Learns from a step of `rows` rows, all of which decoded; without the time
  /// that drafts took.
  void recordStep(int64_t rows, double seconds) { costs.record(rows, seconds); }

  /// Whether drafts wait for the time of a step of `rows` rows.
  bool needsCostOf(int64_t rows) const { return costs.seconds(rows) == 0; }

  /// Seconds that draft() and readFeatures() took, in all.
  double draftSeconds() const { return seconds; }

  /// Seconds of them in which the host ran the draft model's programs or waited
  /// for them.
  double programSeconds() const { return model ? model->programSeconds() : 0; }

private:
  int speculationOf(int asked) const;
  int64_t mostOf(const DraftedAnswer &answer, int64_t room) const;
  static Draft lookUp(const DraftedAnswer &answer, int64_t most);
  int64_t payingDraft(absl::Span<const DraftedAnswer *const> answers,
                      int64_t rows, int64_t mostRows) const;
  void draftByModel(absl::Span<const DraftedAnswer> answers, int64_t rows,
                    int64_t mostRows, absl::Span<Draft> drafts);
  void leaveOutModel(const absl::Status &status);

  std::unique_ptr<DraftModel> model; ///< Null where there is none.
  bool hasModel = false;             ///< Whether it is used (still).
  StepCosts costs;
  double seconds = 0; ///< See draftSeconds().
};

} // namespace llamac

#endif // LLAMAC_ENGINE_SPECULATION_SPECULATOR_H
