//===- OneAnswerTest.cpp - Answers of requests that are alone -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/scheduler/Scheduler.h"

#include "runtime/base/Status.h"
#include "tests/engine/toy/ToyModel.h"

#include "absl/strings/str_join.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llamac {
namespace {

using testing::HasSubstr;
using toy::cleanTokens;
using toy::greedyAfter;
using toy::ToyPlanFile;

/// The answer to a request that is alone.
struct Result {
  std::vector<int32_t> ids;
  std::vector<std::string> pieces; ///< Pieces of its text.
  AnswerEnd end;

  std::string text() const { return absl::StrJoin(pieces, ""); }
};

class OneAnswerTest : public testing::Test {
protected:
  void SetUp() override { load(file.path()); }

  void load(const std::string &path) {
    auto loaded = Model::load(path, {.threads = 2});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    scheduler = *Scheduler::create(*loaded);
  }

  absl::StatusOr<Result> run(const std::vector<int> &prompt,
                             const GenerateOptions &options,
                             bool wantsText = true) {
    Result result;
    LLAMAC_RETURN_IF_ERROR(
        scheduler
            ->submit(
                {.prompt = prompt, .options = options, .wantsText = wantsText},
                [&](const AnswerPart &part) {
                  result.ids.insert(result.ids.end(), part.tokens.begin(),
                                    part.tokens.end());
                  if (!part.text.empty())
                    result.pieces.push_back(part.text);
                  if (part.end)
                    result.end = *part.end;
                })
            .status());
    while (!scheduler->isIdle())
      scheduler->step();
    LLAMAC_RETURN_IF_ERROR(result.end.status);
    return result;
  }

  static std::string textOf(const std::vector<int> &tokens) {
    std::string out;
    for (int id : tokens)
      out += toy::tokenText(id);
    return out;
  }

  ToyPlanFile file;
  std::unique_ptr<Scheduler> scheduler;
};

TEST_F(OneAnswerTest, GreedyGivesTheArgmaxAndItsText) {
  const std::vector<int> prompt = cleanTokens(5, 12, 10);
  const auto result = run(prompt, {.maxTokens = 10});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->ids, greedyAfter(prompt, 10));
  EXPECT_EQ(result->text(), textOf(result->ids));
  EXPECT_EQ(result->end.reason, StopReason::Length);
  EXPECT_EQ(result->end.promptTokens, 5);
  EXPECT_EQ(result->end.answerTokens, 10);
}

TEST_F(OneAnswerTest, NoneWereAskedFor) {
  const auto result = run(cleanTokens(5, 12), {.maxTokens = 0});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->ids.empty());
  EXPECT_EQ(result->text(), "");
}

TEST_F(OneAnswerTest, WithoutALimitTheContextIsFilled) {
  const std::vector<int> prompt = cleanTokens(20, 8, 11);
  const auto result = run(prompt, {});
  ASSERT_TRUE(result.ok()) << result.status();
  // The last token needs no place of its own.
  EXPECT_EQ(result->ids, greedyAfter(prompt, 11));
  EXPECT_EQ(result->end.reason, StopReason::Context);
}

TEST_F(OneAnswerTest, APromptThatFillsTheContextGivesOneToken) {
  const std::vector<int> prompt = cleanTokens(30, 17, 1);
  const auto result = run(prompt, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->ids, greedyAfter(prompt, 1));
}

TEST_F(OneAnswerTest, AStopIdEndsTheAnswerAndIsNoPartOfIt) {
  const std::vector<int> prompt = cleanTokens(4, 3, 9);
  const std::vector<int> answer = greedyAfter(prompt, 9);
  size_t place = 6;
  while (std::find(answer.begin(), answer.begin() + place, answer[place]) !=
         answer.begin() + place)
    ++place;
  ToyPlanFile stopping([&](toy::ToyPlan &toy) {
    toy.plan.tokenizer->stopIds = {1, answer[place]};
  });
  load(stopping.path());
  const auto result = run(prompt, {.maxTokens = 20});
  ASSERT_TRUE(result.ok()) << result.status();
  const std::vector<int> before(answer.begin(), answer.begin() + place);
  EXPECT_EQ(result->end.reason, StopReason::StopId);
  EXPECT_EQ(result->ids, before);
  EXPECT_EQ(result->text(), textOf(before));

  const auto ignoring = run(prompt, {.maxTokens = 9, .stopAtStopIds = false});
  ASSERT_TRUE(ignoring.ok());
  EXPECT_EQ(ignoring->ids, answer);
}

TEST_F(OneAnswerTest, AStopStringAcrossTokensEndsTheAnswerBeforeIt) {
  const std::vector<int> prompt = cleanTokens(4, 3, 9);
  const std::vector<int> answer = greedyAfter(prompt, 9);
  const std::string whole = textOf(answer);
  // The last bytes of one token and the first of the next.
  const size_t boundary = textOf({answer.begin(), answer.begin() + 5}).size();
  const std::string stop = whole.substr(boundary - 1, 2);
  const auto result = run(prompt, {.maxTokens = 9, .stopStrings = {stop}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->end.reason, StopReason::StopString);
  EXPECT_EQ(result->text(), whole.substr(0, whole.find(stop)));
}

TEST_F(OneAnswerTest, PiecesOfTextAreWholeCharacters) {
  for (int first = 0; first < 90; ++first) {
    std::vector<int> prompt;
    for (int i = 0; i < 3; ++i)
      prompt.push_back(2 + (first + 5 * i) % 90);
    const auto result = run(prompt, {.maxTokens = 20});
    if (!result.ok())
      continue; // Poisoned.
    const std::vector<std::string> &pieces = result->pieces;
    // A byte that begins a character may stand alone, but is never cut off
    // from one that continues it.
    for (size_t i = 0; i + 1 < pieces.size(); ++i)
      if (static_cast<unsigned char>(pieces[i].back()) >= 0xc0)
        EXPECT_NE(pieces[i + 1][0] & 0xc0, 0x80);
  }
}

TEST_F(OneAnswerTest, ASeedRepeatsAnAnswerAndIsReported) {
  const std::vector<int> prompt = cleanTokens(5, 12);
  GenerateOptions options{.sampling = {.temperature = 0.1}, .maxTokens = 3};
  auto first = run(prompt, options);
  // A poisoned continuation is drawn now and then.
  for (int i = 0; i < 10 && !first.ok(); ++i)
    first = run(prompt, options);
  ASSERT_TRUE(first.ok()) << first.status();
  options.sampling.seed = first->end.seed;
  const auto again = run(prompt, options);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(first->ids, again->ids);
}

TEST_F(OneAnswerTest, APlanThatSamplesGetsTheDrawsOfTheSeed) {
  ToyPlanFile sampling(toy::addSampling);
  load(sampling.path());
  const std::vector<int> prompt = cleanTokens(5, 12, 10);
  const auto greedy = run(prompt, {.maxTokens = 10});
  ASSERT_TRUE(greedy.ok()) << greedy.status();
  EXPECT_EQ(greedy->ids, greedyAfter(prompt, 10));

  // Seeds whose answer stays clear of what is poisoned.
  int answers = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const SamplingOptions options{
        .temperature = 0.8, .topK = 20, .topP = 0.9, .seed = seed};
    auto sampler = Sampler::create(options);
    ASSERT_TRUE(sampler.ok());
    std::vector<int> expected, all = prompt;
    for (int i = 0; i < 6; ++i) {
      const SamplingParams draw = sampler->nextParams();
      EXPECT_EQ(draw.temperature, 0.8f);
      EXPECT_EQ(draw.topP, 0.9f);
      expected.push_back(toy::drawnToken(draw.noiseKey, 20));
      all.push_back(expected.back());
    }
    if (toy::isPoisoned(all))
      continue;
    const auto drawn = run(prompt, {.sampling = options, .maxTokens = 6});
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    EXPECT_EQ(drawn->ids, expected);
    ++answers;
  }
  EXPECT_GT(answers, 5);
}

TEST_F(OneAnswerTest, WrongRequestsAreUsageErrors) {
  const std::vector<int> prompt = cleanTokens(5, 12);
  auto code = [&](const std::vector<int> &tokens, GenerateOptions options) {
    return exitCode(run(tokens, options).status());
  };
  EXPECT_EQ(code({}, {}), ExitCode::Usage);
  EXPECT_EQ(code({5, 96}, {}), ExitCode::Usage);
  EXPECT_EQ(code(prompt, {.maxTokens = -2}), ExitCode::Usage);
  EXPECT_EQ(code(prompt, {.sampling = {.temperature = -1}}), ExitCode::Usage);
  const std::vector<int> tooLong(31, 5);
  const auto refused = run(tooLong, {});
  EXPECT_EQ(exitCode(refused.status()), ExitCode::Usage);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("31"));
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("30"));
}

TEST_F(OneAnswerTest, APlanWithoutATokenizerGivesIdsOnly) {
  ToyPlanFile bare([](toy::ToyPlan &toy) { toy.plan.tokenizer.reset(); });
  load(bare.path());
  const std::vector<int> prompt = cleanTokens(5, 12, 4);
  EXPECT_EQ(exitCode(run(prompt, {.maxTokens = 4}).status()), ExitCode::Usage);
  const auto result = run(prompt, {.maxTokens = 4}, /*wantsText=*/false);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->ids, greedyAfter(prompt, 4));
  EXPECT_EQ(exitCode(scheduler->model().encode("abc").status()),
            ExitCode::Usage);
}

} // namespace
} // namespace llamac
