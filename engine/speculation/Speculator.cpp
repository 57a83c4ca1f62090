//===- Speculator.cpp - The drafts of each step ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/speculation/Speculator.h"

#include "runtime/base/Clock.h"
#include "runtime/base/Terminal.h"
#include "text/request/Request.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>

namespace llamac {

Speculator::Speculator(const std::shared_ptr<const Model> &draftModel,
                       double kvMemory) {
  if (!draftModel)
    return;
  auto made = DraftModel::create(draftModel, kvMemory);
  if (made.ok())
    model = *std::move(made);
  else
    leaveOutModel(made.status());
  hasModel = model != nullptr;
}

/// Sequences of answers stay with the model, which is not used any more.
void Speculator::leaveOutModel(const absl::Status &status) {
  hasModel = false;
  printWarning(absl::StrCat("the draft model is left out, and answers go on "
                            "without it: ",
                            status.message()));
}

/// The drafts that `asked` asks for: a number of tokens, or -1 for those that
/// pay.
int Speculator::speculationOf(int asked) const {
  return asked >= -1 ? asked : hasModel ? -1 : 0;
}

/// The most tokens that a step with `room` more rows may verify for `answer`.
int64_t Speculator::mostOf(const DraftedAnswer &answer, int64_t room) const {
  const int asked = speculationOf(answer.asked);
  return std::clamp<int64_t>(std::min(answer.most, room), 0,
                             asked < 0 ? mostDrafts : asked);
}

/// The draft of look-up for `answer`, of at most `most` tokens.
Draft Speculator::lookUp(const DraftedAnswer &answer, int64_t most) {
  if (most == 0)
    return {};
  PromptLookup &lookup = answer.drafts->lookup;
  for (int64_t i = lookup.size(); i < std::ssize(answer.tokens); ++i)
    lookup.append(answer.tokens[static_cast<size_t>(i)],
                  /*isOfAnswer=*/i >= answer.promptTokens);
  return lookup.draft(most);
}

/// The tokens that the draft model should draft for each of `answers`, which
/// ask for what pays.
int64_t Speculator::payingDraft(absl::Span<const DraftedAnswer *const> answers,
                                int64_t rows, int64_t mostRows) const {
  const double plain = costs.seconds(rows);
  if (!hasModel || answers.empty() || plain == 0)
    return 0;
  const std::ptrdiff_t count = std::ssize(answers);
  const int64_t most = std::min<int64_t>((mostRows - rows) / count, mostDrafts);
  double bestRate = leastDraftGain * static_cast<double>(rows) / plain;
  int64_t best = 0;
  auto expected = static_cast<double>(rows);
  for (int64_t i = 1; i <= most; ++i) {
    for (const DraftedAnswer *answer : answers)
      expected += std::pow(answer->drafts->drafter.acceptance(),
                           static_cast<double>(i));
    const double rate =
        expected / (costs.seconds(rows + i * count) +
                    static_cast<double>(i) * model->stepSeconds());
    if (rate <= bestRate)
      continue;
    bestRate = rate;
    best = i;
  }
  return best;
}

bool Speculator::wantsDraft(const DraftedAnswer &answer, int64_t rows,
                            int64_t mostRows) const {
  const int64_t most = mostOf(answer, mostRows - rows);
  if (most == 0)
    return false;
  const Draft draft = lookUp(answer, most);
  if (speculationOf(answer.asked) > 0)
    return hasModel || !draft.tokens.empty();
  const DraftedAnswer *const self = &answer;
  return payingDraft({&self, 1}, rows, mostRows) > 0 ||
         draftsThatPay(costs, rows, {&draft, 1}, mostRows)[0] > 0;
}

/// Replaces those of `drafts`, by look-up, for which the draft model is more
/// often right. It has none while it still runs a long prompt.
void Speculator::draftByModel(absl::Span<const DraftedAnswer> answers,
                              int64_t rows, int64_t mostRows,
                              absl::Span<Draft> drafts) {
  const int64_t room = mostRows - rows;
  std::vector<const DraftedAnswer *> paying;
  for (size_t i = 0; i < answers.size(); ++i) {
    const DraftedAnswer &answer = answers[i];
    const Draft &found = drafts[i];
    answer.drafts->isOfModel =
        hasModel && mostOf(answer, room) > 0 &&
        (found.tokens.empty() ||
         found.survival.front() < answer.drafts->drafter.acceptance());
    if (answer.drafts->isOfModel && speculationOf(answer.asked) < 0)
      paying.push_back(&answer);
  }
  const int64_t count = payingDraft(paying, rows, mostRows);
  std::vector<DraftWanted> wanted;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < answers.size(); ++i) {
    const DraftedAnswer &answer = answers[i];
    AnswerDrafts &of = *answer.drafts;
    if (!of.isOfModel)
      continue;
    int64_t most = mostOf(answer, room);
    if (speculationOf(answer.asked) < 0)
      most = std::min(most, count);
    if (most == 0) {
      of.drafter.forget();
      of.isOfModel = false;
      continue;
    }
    numbers.push_back(i);
    wanted.push_back({&of.drafter, answer.tokens, answer.sampler, most});
  }
  if (wanted.empty())
    return;
  auto made = model->draft(wanted);
  if (!made.ok())
    leaveOutModel(made.status());
  for (size_t i = 0; i < numbers.size(); ++i) {
    bool &isOfModel = answers[numbers[i]].drafts->isOfModel;
    isOfModel = made.ok() && !(*made)[i].tokens.empty();
    if (isOfModel)
      drafts[numbers[i]] = std::move((*made)[i]);
  }
}

std::vector<std::vector<int32_t>>
Speculator::draft(absl::Span<const DraftedAnswer> answers, int64_t rows,
                  int64_t mostRows) {
  const double start = steadySeconds();
  std::vector<Draft> drafts;
  for (const DraftedAnswer &answer : answers)
    drafts.push_back(lookUp(answer, mostOf(answer, mostRows - rows)));
  draftByModel(answers, rows, mostRows, absl::MakeSpan(drafts));
  // Numbers that requests say come before what pays.
  std::vector<Draft> optional(drafts.size());
  for (size_t i = 0; i < drafts.size(); ++i) {
    Draft &draft = drafts[i];
    // Without the draft model that has just failed, fewer may be asked for.
    if (!isOn(answers[i].asked))
      draft.cut(0);
    // Nothing follows the end of an answer.
    draft.cut(std::ranges::find_first_of(draft.tokens, answers[i].stopIds) -
              draft.tokens.begin());
    if (speculationOf(answers[i].asked) < 0) {
      optional[i] = draft;
      continue;
    }
    draft.cut(
        std::clamp<int64_t>(mostRows - rows, 0, std::ssize(draft.tokens)));
    rows += std::ssize(draft.tokens);
  }
  const std::vector<int64_t> paying =
      draftsThatPay(costs, rows, optional, mostRows);
  std::vector<std::vector<int32_t>> tokens;
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (speculationOf(answers[i].asked) < 0)
      drafts[i].cut(paying[i]);
    tokens.push_back(std::move(drafts[i].tokens));
  }
  seconds += steadySeconds() - start;
  return tokens;
}

void Speculator::readFeatures(AnswerDrafts &drafts,
                              absl::Span<const int32_t> tokens,
                              int64_t position,
                              absl::Span<const float> features) {
  if (!hasModel)
    return;
  const double start = steadySeconds();
  const absl::Status status =
      model->read(drafts.drafter, tokens, position, features);
  if (!status.ok())
    leaveOutModel(status);
  seconds += steadySeconds() - start;
}

void Speculator::record(AnswerDrafts &drafts, int64_t drafted,
                        int64_t accepted) {
  if (drafts.isOfModel)
    drafts.drafter.record(drafted, accepted);
}

} // namespace llamac
