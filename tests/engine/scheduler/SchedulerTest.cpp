//===- SchedulerTest.cpp - Many requests on one engine --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/scheduler/Scheduler.h"

#include "runtime/base/Status.h"
#include "tests/TemporaryFolder.h"
#include "tests/engine/toy/ToyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>

namespace llamac {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using toy::cleanTokens;
using toy::greedyAfter;
using toy::ToyPlanFile;

/// An answer, put together from its parts.
struct Got {
  std::vector<int32_t> tokens;
  std::string text;
  std::optional<AnswerEnd> end;
};

class SchedulerTest : public testing::Test {
protected:
  void SetUp() override { start(); }

  void start(const SchedulerOptions &options = {}, int64_t sequences = 3,
             int threads = 2) {
    auto loaded =
        Model::load(file.path(), {.threads = threads, .sequences = sequences});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    auto created = Scheduler::create(*loaded, options);
    ASSERT_TRUE(created.ok()) << created.status();
    scheduler = *std::move(created);
  }

  /// Submits `request`; its answers are in `got` by its index there.
  absl::StatusOr<Scheduler::RequestId> submit(Request request) {
    const size_t index = got.size();
    got.emplace_back(static_cast<size_t>(std::max(request.answers, 1)));
    return scheduler->submit(
        std::move(request), [this, index](const AnswerPart &part) {
          Got &answer = got[index].at(static_cast<size_t>(part.answer));
          EXPECT_FALSE(answer.end) << "a part behind the end";
          answer.tokens.insert(answer.tokens.end(), part.tokens.begin(),
                               part.tokens.end());
          answer.text += part.text;
          answer.end = part.end;
        });
  }

  void runAll() {
    for (int steps = 0; !scheduler->isIdle(); ++steps) {
      ASSERT_LT(steps, 100000);
      scheduler->step();
    }
  }

  /// Nothing of a request is left.
  void expectAllFree() {
    const SchedulerCounts counts = scheduler->counts();
    EXPECT_TRUE(scheduler->isIdle());
    EXPECT_EQ(counts.running, 0);
    EXPECT_EQ(counts.waiting, 0);
    EXPECT_EQ(counts.freePages, counts.pages);
  }

  static Request greedy(std::vector<int32_t> prompt, int64_t maxTokens) {
    return {.prompt = std::move(prompt), .options = {.maxTokens = maxTokens}};
  }

  ToyPlanFile file;
  std::unique_ptr<Scheduler> scheduler;
  std::deque<std::vector<Got>> got; ///< Parts by request and answer.
};

TEST_F(SchedulerTest, RequestsAreAnsweredTogether) {
  for (int first : {5, 20, 40, 60})
    ASSERT_TRUE(submit(greedy(cleanTokens(6, first, 5), 5)).ok());
  scheduler->step();
  EXPECT_EQ(scheduler->counts().running, 3);
  EXPECT_EQ(scheduler->counts().waiting, 1);
  runAll();
  size_t i = 0;
  for (int first : {5, 20, 40, 60}) {
    const Got &answer = got[i++][0];
    EXPECT_EQ(answer.tokens, greedyAfter(cleanTokens(6, first, 5), 5));
    std::string text;
    for (int id : answer.tokens)
      text += toy::tokenText(id);
    EXPECT_EQ(answer.text, text);
    ASSERT_TRUE(answer.end);
    EXPECT_EQ(answer.end->reason, StopReason::Length);
    EXPECT_EQ(answer.end->promptTokens, 6);
    EXPECT_EQ(answer.end->answerTokens, 5);
    EXPECT_GE(answer.end->seconds, answer.end->firstTokenSeconds);
  }
  EXPECT_EQ(scheduler->counts().answerTokens, 20);
  EXPECT_EQ(scheduler->counts().finished, 4);
  expectAllFree();
}

TEST_F(SchedulerTest, RequestsJoinAndLeaveBetweenAnyTwoSteps) {
  ASSERT_TRUE(submit(greedy(cleanTokens(4, 5, 12), 12)).ok());
  scheduler->step();
  scheduler->step();
  EXPECT_EQ(got[0][0].tokens.size(), 2u);
  ASSERT_TRUE(submit(greedy(cleanTokens(4, 30, 2), 2)).ok());
  scheduler->step();
  // The prompt ran beside the one that decodes.
  EXPECT_EQ(got[0][0].tokens.size(), 3u);
  EXPECT_EQ(got[1][0].tokens.size(), 1u);
  scheduler->step();
  EXPECT_TRUE(got[1][0].end);
  EXPECT_EQ(scheduler->counts().running, 1);
  runAll();
  EXPECT_EQ(got[0][0].tokens, greedyAfter(cleanTokens(4, 5, 12), 12));
}

TEST_F(SchedulerTest, PromptsTakeTheRowsThatTheyMayBesideOthers) {
  start({.promptRows = 2});
  ASSERT_TRUE(submit(greedy(cleanTokens(2, 5, 12), 12)).ok());
  scheduler->step();
  ASSERT_TRUE(submit(greedy(cleanTokens(7, 30, 3), 3)).ok());
  for (int step = 0; step < 3; ++step)
    scheduler->step();
  EXPECT_THAT(got[1][0].tokens, IsEmpty());
  scheduler->step();
  EXPECT_EQ(got[1][0].tokens.size(), 1u);
  EXPECT_EQ(got[0][0].tokens.size(), 5u);
  runAll();
  EXPECT_EQ(got[1][0].tokens, greedyAfter(cleanTokens(7, 30, 3), 3));
}

TEST_F(SchedulerTest, AStepHasAtMostTheRowsOfTheLargestProgram) {
  const int64_t most = scheduler->model().plan().programs.back()->maxRows;
  start({.promptRows = 100});
  ASSERT_TRUE(submit(greedy(cleanTokens(2, 5, 12), 12)).ok());
  ASSERT_TRUE(submit(greedy(cleanTokens(3, 60, 12), 12)).ok());
  scheduler->step();
  const std::vector<int32_t> prompt = cleanTokens(20, 30, 3);
  ASSERT_TRUE(submit(greedy(prompt, 3)).ok());
  for (const int64_t left : {20, 14, 8}) {
    const int64_t before = scheduler->counts().rows;
    scheduler->step();
    EXPECT_EQ(scheduler->counts().rows - before, std::min(most, left + 2));
  }
  runAll();
  EXPECT_EQ(got[2][0].tokens, greedyAfter(prompt, 3));
}

TEST_F(SchedulerTest, HigherPrioritiesGoFirstEqualOnesInTheirOrder) {
  start({}, 1);
  std::vector<int> order;
  for (const auto &[number, priority] :
       {std::pair(0, 0), {1, 0}, {2, 5}, {3, 5}, {4, -1}}) {
    Request request = greedy(cleanTokens(3, 10 + number, 2), 2);
    request.priority = priority;
    ASSERT_TRUE(scheduler
                    ->submit(std::move(request),
                             [&order, number](const AnswerPart &part) {
                               if (part.end)
                                 order.push_back(number);
                             })
                    .ok());
  }
  runAll();
  EXPECT_THAT(order, ElementsAre(2, 3, 0, 1, 4));
}

TEST_F(SchedulerTest, AHigherPriorityTakesThePlaceOfALowerOne) {
  start({}, 1);
  ASSERT_TRUE(submit(greedy(cleanTokens(5, 5, 8), 8)).ok());
  scheduler->step();
  scheduler->step();
  Request request = greedy(cleanTokens(5, 40, 3), 3);
  request.priority = 1;
  ASSERT_TRUE(submit(std::move(request)).ok());
  scheduler->step();
  EXPECT_EQ(got[0][0].tokens.size(), 2u);
  EXPECT_EQ(got[1][0].tokens.size(), 1u);
  runAll();
  EXPECT_EQ(got[0][0].tokens, greedyAfter(cleanTokens(5, 5, 8), 8));
  EXPECT_EQ(got[0][0].end->preemptions, 1);
  EXPECT_EQ(got[1][0].end->preemptions, 0);
  expectAllFree();
}

TEST_F(SchedulerTest, WhatIsShortOfPagesGoesOnLaterAsIfNothingHadBeen) {
  // 36 tokens for three answers of up to 28.
  start({.kvPages = 9});
  for (int first : {5, 20, 40})
    ASSERT_TRUE(submit(greedy(cleanTokens(4, first, 24), 24)).ok());
  runAll();
  EXPECT_GT(scheduler->counts().preemptions, 0);
  size_t i = 0;
  for (int first : {5, 20, 40})
    EXPECT_EQ(got[i++][0].tokens, greedyAfter(cleanTokens(4, first, 24), 24));
  // The first one is never the one that gives way.
  EXPECT_EQ(got[0][0].end->preemptions, 0);
  expectAllFree();
}

TEST_F(SchedulerTest, AnswersOfOneRequestShareItsPrompt) {
  const std::vector<int> prompt = cleanTokens(11, 7, 4);
  Request request{
      .prompt = prompt,
      .options = {.sampling = {.temperature = 2, .seed = 30}, .maxTokens = 4},
      .answers = 3};
  ASSERT_TRUE(submit(request).ok());
  runAll();
  EXPECT_EQ(got[0][0].end->cachedTokens, 0);
  EXPECT_EQ(got[0][1].end->cachedTokens, 8);
  EXPECT_EQ(got[0][2].end->cachedTokens, 8);
  // Number i is what the seed plus i gives alone.
  for (uint64_t number : {0, 1, 2}) {
    Request alone = request;
    alone.answers = 1;
    alone.options.sampling.seed = 30 + number;
    ASSERT_TRUE(submit(alone).ok());
    runAll();
    EXPECT_EQ(got.back()[0].tokens, got[0][number].tokens);
    EXPECT_EQ(got[0][number].end->seed, 30 + number);
  }
  expectAllFree();
}

TEST_F(SchedulerTest, WhatWasSaidBeforeIsNotRunAgain) {
  const std::vector<int> prompt = cleanTokens(9, 5, 14);
  ASSERT_TRUE(submit(greedy(prompt, 6)).ok());
  runAll();
  std::vector<int> longer = prompt;
  const std::vector<int> answer = greedyAfter(prompt, 14);
  longer.insert(longer.end(), answer.begin(), answer.begin() + 6);
  ASSERT_TRUE(submit(greedy(longer, 3)).ok());
  runAll();
  // 14 of 15 tokens were run, three full pages of them.
  EXPECT_EQ(got[1][0].end->cachedTokens, 12);
  EXPECT_EQ(got[1][0].tokens, greedyAfter(longer, 3));
  EXPECT_EQ(scheduler->counts().cachedTokens, 12);
  EXPECT_EQ(scheduler->counts().promptTokens, 24);

  start({.cachesPrefixes = false});
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(submit(greedy(prompt, 3)).ok());
    runAll();
    EXPECT_EQ(got.back()[0].end->cachedTokens, 0);
  }
}

TEST_F(SchedulerTest, WhatAnotherProcessSaidIsReadFromAFile) {
  const TemporaryFolder folder;
  const SchedulerOptions options{.prefixFile = folder.file("prefixes")};
  const std::vector<int> prompt = cleanTokens(14, 5, 6);
  start(options, 3, 1);
  ASSERT_TRUE(submit(greedy(prompt, 6)).ok());
  runAll();
  ASSERT_TRUE(scheduler->savePrefixes().ok());

  start(options, 2, 2);
  EXPECT_EQ(scheduler->counts().freePages, scheduler->counts().pages);
  for (int64_t loaded : {12, 0}) {
    const int64_t before = scheduler->counts().loadedTokens;
    ASSERT_TRUE(submit(greedy(prompt, 6)).ok());
    runAll();
    EXPECT_EQ(got.back()[0].tokens, greedyAfter(prompt, 6));
    EXPECT_EQ(got.back()[0].end->cachedTokens, 12);
    EXPECT_EQ(scheduler->counts().loadedTokens - before, loaded);
  }
  expectAllFree();
}

TEST_F(SchedulerTest, WhatWaitsForRoomBringsNothingFromAFileUntilThen) {
  const TemporaryFolder folder;
  SchedulerOptions options{.prefixFile = folder.file("prefixes")};
  const std::vector<int> known = cleanTokens(14, 5, 6);
  start(options);
  ASSERT_TRUE(submit(greedy(known, 6)).ok());
  runAll();
  ASSERT_TRUE(scheduler->savePrefixes().ok());

  options.kvPages = 8;
  start(options);
  const std::vector<int> other = cleanTokens(16, 40, 12);
  ASSERT_TRUE(submit(greedy(other, 12)).ok());
  ASSERT_TRUE(submit(greedy(known, 6)).ok());
  while (!got[1][0].end) {
    EXPECT_EQ(scheduler->counts().loadedTokens, 0);
    scheduler->step();
  }
  runAll();
  EXPECT_EQ(scheduler->counts().preemptions, 0);
  EXPECT_EQ(scheduler->counts().loadedTokens, 12);
  EXPECT_EQ(got[2][0].end->cachedTokens, 12);
  EXPECT_EQ(got[1][0].tokens, greedyAfter(other, 12));
  EXPECT_EQ(got[2][0].tokens, greedyAfter(known, 6));
  expectAllFree();
}

TEST_F(SchedulerTest, AFileOfPrefixesThatCannotBeUsedIsAnError) {
  const TemporaryFolder folder;
  const auto create = [&](const ModelOptions &model,
                          const SchedulerOptions &options) {
    auto loaded = Model::load(file.path(), model);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return Scheduler::create(*loaded, options).status();
  };
  const SchedulerOptions options{.prefixFile = folder.file("prefixes")};
  start(options);
  ASSERT_TRUE(submit(greedy(cleanTokens(9, 5, 2), 2)).ok());
  runAll();
  ASSERT_TRUE(scheduler->savePrefixes().ok());
  // Other weights have other keys.
  absl::Status status = create({.randomWeights = 3}, options);
  EXPECT_EQ(exitCode(status), ExitCode::Usage);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("random weights 3, got"));

  status = create({}, {.cachesPrefixes = false, .prefixFile = "prefixes"});
  EXPECT_EQ(exitCode(status), ExitCode::Usage);
  EXPECT_THAT(std::string(status.message()), HasSubstr("which is off"));
  status = create({}, {.prefixFile = folder.file("no/prefixes")});
  EXPECT_EQ(exitCode(status), ExitCode::Usage);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot be written"));
  status = create({}, {.prefixFile = file.path()});
  EXPECT_EQ(exitCode(status), ExitCode::BadFile);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another kind of file"));
}

TEST_F(SchedulerTest, HundredsThatAreCancelledAtOnceEndWithinAStep) {
  start({.promptRows = 2});
  std::vector<Scheduler::RequestId> ids;
  for (int number = 0; number < 256; ++number) {
    auto id =
        submit(greedy(cleanTokens(4 + number % 5, 5 + number % 40, 8), 8));
    ASSERT_TRUE(id.ok()) << id.status();
    ids.push_back(*id);
    if (number % 100 == 0)
      scheduler->step();
  }
  EXPECT_EQ(scheduler->counts().running, 3);
  for (const auto id : ids)
    scheduler->cancel(id);
  scheduler->step();
  for (const auto &answers : got) {
    ASSERT_TRUE(answers[0].end);
    EXPECT_EQ(answers[0].end->reason, StopReason::Cancelled);
  }
  expectAllFree();
  // And what comes next is answered.
  ASSERT_TRUE(submit(greedy(cleanTokens(6, 5, 5), 5)).ok());
  runAll();
  EXPECT_EQ(got.back()[0].tokens, greedyAfter(cleanTokens(6, 5, 5), 5));
}

TEST_F(SchedulerTest, WhatIsCancelledEndsWithinAStep) {
  start({.promptRows = 2}, 2);
  std::vector<Scheduler::RequestId> ids;
  for (int first : {5, 20, 40}) {
    auto id = submit(greedy(cleanTokens(8, first, 10), 10));
    ASSERT_TRUE(id.ok()) << id.status();
    ids.push_back(*id);
    if (first == 5)
      scheduler->step();
  }
  scheduler->step();
  // One decodes, one is in its prompt, and one waits.
  EXPECT_FALSE(got[0][0].tokens.empty());
  EXPECT_EQ(scheduler->counts().running, 2);
  for (const auto id : ids)
    scheduler->cancel(id);
  scheduler->step();
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(got[i][0].end) << i;
    EXPECT_EQ(got[i][0].end->reason, StopReason::Cancelled);
  }
  EXPECT_EQ(got[0][0].tokens.size(), 2u);
  expectAllFree();
  scheduler->cancel(ids[0]);
  scheduler->cancel(1234);
}

TEST_F(SchedulerTest, AllAnswersOfARequestAreCancelled) {
  Request request = greedy(cleanTokens(8, 5, 5), 5);
  request.answers = 4;
  const auto id = submit(request);
  ASSERT_TRUE(id.ok());
  scheduler->cancel(*id);
  runAll();
  for (const Got &answer : got[0]) {
    ASSERT_TRUE(answer.end);
    EXPECT_EQ(answer.end->reason, StopReason::Cancelled);
  }
  expectAllFree();
}

TEST_F(SchedulerTest, ATimeLimitEndsAnAnswerWithWhatItHas) {
  start({}, 1);
  Request request = greedy(cleanTokens(4, 5, 20), 20);
  request.timeLimit = 1e-9;
  ASSERT_TRUE(submit(request).ok());
  scheduler->step();
  ASSERT_TRUE(got[0][0].end);
  EXPECT_TRUE(got[0][0].end->status.ok());
  EXPECT_EQ(got[0][0].end->reason, StopReason::Deadline);
  expectAllFree();
}

TEST_F(SchedulerTest, AStopIdEndsAnAnswerAndIsNoPartOfIt) {
  const std::vector<int> prompt = cleanTokens(5, 12, 6);
  const std::vector<int> answer = greedyAfter(prompt, 6);
  Request request = greedy(prompt, 10);
  request.options.stopIds = {answer[3]};
  ASSERT_TRUE(submit(request).ok());
  runAll();
  EXPECT_EQ(got[0][0].end->reason, StopReason::StopId);
  const auto first = std::find(answer.begin(), answer.end(), answer[3]);
  EXPECT_EQ(got[0][0].tokens, std::vector<int>(answer.begin(), first));
}

TEST_F(SchedulerTest, NothingIsAskedForNothingIsRun) {
  ASSERT_TRUE(submit(greedy(cleanTokens(4, 5), 0)).ok());
  runAll();
  EXPECT_EQ(got[0][0].end->reason, StopReason::Length);
  EXPECT_EQ(scheduler->counts().steps, 0);
}

TEST_F(SchedulerTest, WhatCanNeverRunIsRefusedWithBothNumbers) {
  const auto refusal = [&](Request request) {
    const absl::Status status = submit(std::move(request)).status();
    EXPECT_EQ(exitCode(status), ExitCode::Usage);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(greedy(cleanTokens(31, 5), 1)),
              HasSubstr("at most 30 tokens, the context of the plan, got a "
                        "prompt of 31 and 1 to generate"));
  EXPECT_THAT(refusal(greedy(cleanTokens(20, 5), 12)),
              HasSubstr("a prompt of 20 and 12 to generate"));
  EXPECT_THAT(refusal(greedy(cleanTokens(31, 5), -1)),
              HasSubstr("a prompt of 31 and an answer"));
  for (const int tokens : {12, 400}) {
    Request fitted = greedy(cleanTokens(31, 5), tokens);
    fitAnswer(fitted, 30);
    EXPECT_THAT(refusal(std::move(fitted)),
                HasSubstr(absl::StrCat("of 31 and ", tokens, " to generate")));
  }
  EXPECT_THAT(refusal(greedy({}, 1)), HasSubstr("at least one token"));
  EXPECT_THAT(refusal(greedy({2, toy::vocab}, 1)), HasSubstr("token 1"));
  Request none = greedy({2}, 1);
  none.answers = 0;
  EXPECT_THAT(refusal(none), HasSubstr("n: expected 1 to 1024, got 0"));
  Request late = greedy({2}, 1);
  late.timeLimit = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refusal(late), HasSubstr("time_limit: expected"));
  EXPECT_THAT(refusal(greedy({2}, -5)),
              HasSubstr("max_tokens: expected -1 or more, got -5"));
  for (const int32_t id : {-1, toy::vocab}) {
    Request stops = greedy({2}, 1);
    stops.options.stopIds = {1, id};
    EXPECT_THAT(refusal(stops), HasSubstr("stop_token_ids: expected ids"));
  }
  start({.kvPages = 3});
  EXPECT_THAT(
      refusal(greedy(cleanTokens(10, 5), 4)),
      HasSubstr("at most 12 tokens, for which there are KV pages, got a "
                "prompt of 10 and 4"));
  // A request that fits exactly runs, and one without a number as far as it
  // fits.
  ASSERT_TRUE(submit(greedy(cleanTokens(10, 5, 3), 3)).ok());
  ASSERT_TRUE(submit(greedy(cleanTokens(10, 7, 3), -1)).ok());
  runAll();
  EXPECT_EQ(got.back()[0].tokens, greedyAfter(cleanTokens(10, 7, 3), 3));
  EXPECT_EQ(got.back()[0].end->reason, StopReason::Context);
}

TEST_F(SchedulerTest, LogitsThatAreNoNumbersEndTheirAnswerAlone) {
  std::vector<int> poisoned = {2, 2};
  while (!toy::isPoisoned(poisoned))
    poisoned = poisoned[1] + 1 < toy::vocab
                   ? std::vector<int>{poisoned[0], poisoned[1] + 1}
                   : std::vector<int>{poisoned[0] + 1, 2};
  ASSERT_TRUE(submit(greedy(cleanTokens(6, 5, 5), 5)).ok());
  ASSERT_TRUE(submit(greedy(poisoned, 5)).ok());
  runAll();
  EXPECT_EQ(got[0][0].tokens, greedyAfter(cleanTokens(6, 5, 5), 5));
  EXPECT_EQ(exitCode(got[1][0].end->status), ExitCode::Accuracy);
  EXPECT_EQ(scheduler->counts().failed, 1);
  expectAllFree();
}

TEST_F(SchedulerTest, AFailedStepEndsWhatItConcernsAndNothingElse) {
  ASSERT_TRUE(submit(greedy(cleanTokens(6, 5, 5), 5)).ok());
  scheduler->step();
  ASSERT_TRUE(submit(greedy(cleanTokens(6, 20, 5), 5)).ok());
  // A child has none of the device's threads.
  EXPECT_EXIT(
      {
        runAll();
        for (size_t i : {0, 1})
          if (exitCode(got[i][0].end->status) != ExitCode::Device)
            std::exit(1);
        expectAllFree();
        std::exit(HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
  runAll();
  EXPECT_EQ(got[0][0].tokens, greedyAfter(cleanTokens(6, 5, 5), 5));
}

TEST_F(SchedulerTest, ASchedulerThatGoesTakesItsRequestsWithIt) {
  for (int first : {5, 20, 40, 60})
    ASSERT_TRUE(submit(greedy(cleanTokens(6, first, 5), 5)).ok());
  scheduler->step();
  scheduler.reset();
  EXPECT_FALSE(got[0][0].end);
}

TEST_F(SchedulerTest, StepsThatAreTimedGiveTheSameAnswers) {
  start({.profileInterval = 1e-9});
  EXPECT_EQ(scheduler->kernelTimes(), nullptr);
  ASSERT_TRUE(submit(greedy(cleanTokens(6, 5, 5), 5)).ok());
  ASSERT_TRUE(submit(greedy(cleanTokens(6, 20, 5), 5)).ok());
  runAll();
  EXPECT_EQ(got[0][0].tokens, greedyAfter(cleanTokens(6, 5, 5), 5));
  EXPECT_EQ(got[1][0].tokens, greedyAfter(cleanTokens(6, 20, 5), 5));
  const auto times = scheduler->kernelTimes();
  ASSERT_NE(times, nullptr);
  EXPECT_GT(times->back().launches, 0);
  EXPECT_GT(times->back().seconds, 0);
}

TEST_F(SchedulerTest, StepsShowTheirCostsOnceAnAnswerAsksForWhatPays) {
  const auto repeating = [](int speculative) {
    Request request = greedy({7, 7, 7, 7}, 12);
    request.options.sampling.logitBias = {{7, 90}};
    request.speculative = speculative;
    return request;
  };
  for (const int speculative : {0, -2, 3}) {
    ASSERT_TRUE(submit(repeating(speculative)).ok());
    runAll();
  }
  const int64_t before = scheduler->counts().drafts;
  EXPECT_GT(before, 0);
  ASSERT_TRUE(submit(repeating(-1)).ok());
  // The prompt, and a step whose costs nobody knows yet.
  scheduler->step();
  scheduler->step();
  EXPECT_EQ(got.back()[0].tokens.size(), 2u);
  EXPECT_EQ(scheduler->counts().drafts, before);
  runAll();
  EXPECT_GT(scheduler->counts().drafts, before);
  for (const auto &answers : got)
    EXPECT_EQ(answers[0].tokens, std::vector<int32_t>(12, 7));
}

TEST_F(SchedulerTest, StepsAreCountedByTheirRows) {
  ASSERT_TRUE(submit(greedy(cleanTokens(6, 5, 5), 3)).ok());
  runAll();
  const SchedulerCounts counts = scheduler->counts();
  // A prompt of 6 rows in the bucket of 5 to 8, and two single ones.
  EXPECT_EQ(counts.steps, 3);
  EXPECT_EQ(counts.rows, 8);
  EXPECT_EQ(counts.stepRows[0], 2);
  EXPECT_EQ(counts.stepRows[3], 1);
}

} // namespace
} // namespace llamac
