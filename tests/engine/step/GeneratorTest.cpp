//===- GeneratorTest.cpp - From a prompt to an answer ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/step/Generator.h"

#include "runtime/base/Status.h"
#include "tests/engine/toy/ToyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llamac {
namespace {

using testing::HasSubstr;
using toy::cleanTokens;
using toy::greedyAfter;
using toy::ToyPlanFile;

absl::StatusOr<GenerateResult> generate(Engine &engine,
                                        absl::Span<const int32_t> prompt,
                                        const GenerateOptions &options,
                                        const GenerateCallbacks &callbacks) {
  LLAMAC_ASSIGN_OR_RETURN(const std::unique_ptr<Decoder> decoder,
                          newDecoder(engine));
  return llamac::generate(*decoder, prompt, options, callbacks);
}

class GeneratorTest : public testing::Test {
protected:
  void SetUp() override { load(file.path()); }

  void load(const std::string &path) {
    auto loaded = Model::load(path, {.threads = 2});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    engine = *Engine::create(*loaded);
  }

  absl::StatusOr<GenerateResult> run(const std::vector<int> &prompt,
                                     const GenerateOptions &options) {
    text.clear();
    ids.clear();
    return generate(*engine, prompt, options,
                    {.onToken =
                         [this](int32_t id) {
                           ids.push_back(id);
                           return true;
                         },
                     .onText =
                         [this](absl::string_view piece) {
                           text.append(piece.data(), piece.size());
                           return true;
                         }});
  }

  static std::string textOf(const std::vector<int> &tokens) {
    std::string out;
    for (int id : tokens)
      out += toy::tokenText(id);
    return out;
  }

  ToyPlanFile file;
  std::unique_ptr<Engine> engine;
  std::string text;
  std::vector<int> ids;
};

TEST_F(GeneratorTest, GreedyGivesTheArgmaxAndItsText) {
  const std::vector<int> prompt = cleanTokens(5, 12, 10);
  const auto result = run(prompt, {.maxTokens = 10});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->ids, greedyAfter(prompt, 10));
  EXPECT_EQ(ids, result->ids);
  EXPECT_EQ(text, textOf(result->ids));
  EXPECT_EQ(result->reason, StopReason::Length);
  EXPECT_EQ(result->times.promptTokens, 5);
  EXPECT_EQ(result->times.decodeSteps, 9);
}

TEST_F(GeneratorTest, NoneWereAskedFor) {
  const auto result = run(cleanTokens(5, 12), {.maxTokens = 0});
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->ids.empty());
  EXPECT_EQ(text, "");
}

TEST_F(GeneratorTest, WithoutALimitTheContextIsFilled) {
  const std::vector<int> prompt = cleanTokens(20, 8, 11);
  const auto result = run(prompt, {});
  ASSERT_TRUE(result.ok()) << result.status();
  // The last token needs no place of its own.
  EXPECT_EQ(result->ids, greedyAfter(prompt, 11));
  EXPECT_EQ(result->reason, StopReason::Context);
}

TEST_F(GeneratorTest, APromptThatFillsTheContextGivesOneToken) {
  const std::vector<int> prompt = cleanTokens(30, 17, 1);
  const auto result = run(prompt, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->ids, greedyAfter(prompt, 1));
}

TEST_F(GeneratorTest, AStopIdEndsTheAnswerAndIsNoPartOfIt) {
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
  EXPECT_EQ(result->reason, StopReason::StopId);
  EXPECT_EQ(result->ids, before);
  EXPECT_EQ(ids, before);
  EXPECT_EQ(text, textOf(before));

  const auto ignoring = run(prompt, {.maxTokens = 9, .stopAtStopIds = false});
  ASSERT_TRUE(ignoring.ok());
  EXPECT_EQ(ignoring->ids, answer);
}

TEST_F(GeneratorTest, AStopStringAcrossTokensEndsTheAnswerBeforeIt) {
  const std::vector<int> prompt = cleanTokens(4, 3, 9);
  const std::vector<int> answer = greedyAfter(prompt, 9);
  const std::string whole = textOf(answer);
  // The last bytes of one token and the first of the next.
  const size_t boundary = textOf({answer.begin(), answer.begin() + 5}).size();
  const std::string stop = whole.substr(boundary - 1, 2);
  const auto result = run(prompt, {.maxTokens = 9, .stopStrings = {stop}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->reason, StopReason::StopString);
  EXPECT_EQ(text, whole.substr(0, whole.find(stop)));
}

TEST_F(GeneratorTest, PiecesOfTextAreWholeCharacters) {
  for (int first = 0; first < 90; ++first) {
    std::vector<int> prompt;
    for (int i = 0; i < 3; ++i)
      prompt.push_back(2 + (first + 5 * i) % 90);
    std::vector<std::string> pieces;
    const auto result = generate(*engine, prompt, {.maxTokens = 20},
                                 {.onText = [&](absl::string_view piece) {
                                   pieces.emplace_back(piece);
                                   return true;
                                 }});
    if (!result.ok())
      continue; // Poisoned.
    // A byte that begins a character may stand alone, but is never cut off
    // from one that continues it.
    for (size_t i = 0; i + 1 < pieces.size(); ++i)
      if (static_cast<unsigned char>(pieces[i].back()) >= 0xc0)
        EXPECT_NE(pieces[i + 1][0] & 0xc0, 0x80);
  }
}

TEST_F(GeneratorTest, ACallbackCancels) {
  const std::vector<int> prompt = cleanTokens(5, 12, 10);
  int left = 3;
  const auto result =
      generate(*engine, prompt, {.maxTokens = 10},
               {.onToken = [&](int32_t) { return --left > 0; }});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->reason, StopReason::Cancelled);
  EXPECT_EQ(result->ids.size(), 3u);
}

TEST_F(GeneratorTest, NoTextComesAfterTheCallbackEndedTheAnswer) {
  const std::vector<int> prompt = cleanTokens(5, 12, 10);
  const std::string whole = textOf(greedyAfter(prompt, 10));
  // With each stop string another piece of the text is held back at the end.
  for (size_t i = 0; i < whole.size(); ++i)
    for (const int last : {1, 2, 3}) {
      int calls = 0;
      const auto result = generate(
          *engine, prompt,
          {.maxTokens = 10, .stopStrings = {whole.substr(i, 1) + "\n"}},
          {.onText = [&](absl::string_view) { return ++calls < last; }});
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(result->reason, StopReason::Cancelled);
      EXPECT_EQ(calls, last);
    }
}

TEST_F(GeneratorTest, ASeedRepeatsAnAnswerAndIsReported) {
  const std::vector<int> prompt = cleanTokens(5, 12);
  GenerateOptions options{.sampling = {.temperature = 0.1}, .maxTokens = 3};
  auto first = run(prompt, options);
  // A poisoned continuation is drawn now and then.
  for (int i = 0; i < 10 && !first.ok(); ++i)
    first = run(prompt, options);
  ASSERT_TRUE(first.ok()) << first.status();
  options.sampling.seed = first->seed;
  const auto again = run(prompt, options);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(first->ids, again->ids);
}

TEST_F(GeneratorTest, APlanThatSamplesGetsTheDrawsOfTheSeed) {
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
      expected.push_back(toy::drawnToken(draw.uniform, 20));
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

TEST_F(GeneratorTest, WrongRequestsAreUsageErrors) {
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

TEST_F(GeneratorTest, APlanWithoutATokenizerGivesIdsOnly) {
  ToyPlanFile bare([](toy::ToyPlan &toy) { toy.plan.tokenizer.reset(); });
  load(bare.path());
  const std::vector<int> prompt = cleanTokens(5, 12, 4);
  EXPECT_EQ(exitCode(run(prompt, {.maxTokens = 4}).status()), ExitCode::Usage);
  const auto result = generate(*engine, prompt, {.maxTokens = 4}, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->ids, greedyAfter(prompt, 4));
  EXPECT_EQ(exitCode(engine->model().encode("abc").status()), ExitCode::Usage);
}

} // namespace
} // namespace llamac
