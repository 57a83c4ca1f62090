//===- EngineTest.cpp - Steps, chunks and batches -------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/step/Engine.h"

#include "runtime/base/Status.h"
#include "tests/engine/toy/ToyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>

namespace llamac {
namespace {

using testing::HasSubstr;
using toy::cleanTokens;
using toy::ToyPlanFile;

/// The result of one call of step(): the row and the program that made it.
struct Given {
  size_t item;
  int64_t token;
  std::vector<float> logits;
};

class EngineTest : public testing::TestWithParam<int> {
protected:
  void SetUp() override { start(GetParam()); }

  void start(int threads, EngineOptions options = {}) {
    start(file, threads, options);
  }

  void start(const ToyPlanFile &plan, int threads, EngineOptions options = {},
             int64_t sequences = 0) {
    auto loaded =
        Model::load(plan.path(), {.threads = threads, .sequences = sequences});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    auto created = Engine::create(*loaded, options);
    ASSERT_TRUE(created.ok()) << created.status();
    engine = *std::move(created);
  }

  Sequence sequence() {
    auto made = engine->newSequence();
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }

  /// A sequence that has run `tokens`, whose pages are kept.
  Sequence keptSequence(const std::vector<int> &tokens) {
    Sequence made = sequence();
    const absl::Status status = step({{&made, tokens}});
    EXPECT_TRUE(status.ok()) << status;
    engine->keep(made, tokens);
    return made;
  }

  absl::Status step(absl::Span<const SequenceTokens> batch) {
    given.clear();
    return engine->step(batch, [&](const LogitsRow &row) {
      given.push_back(
          {row.item, row.token, {row.values.begin(), row.values.end()}});
      return absl::OkStatus();
    });
  }

  /// Checks the logits of `row` against the formula, given all tokens of the
  /// sequence up to it.
  static void expectLogits(const Given &row, const std::vector<int> &tokens,
                           float program) {
    const unsigned hash = toy::hashOf(tokens);
    for (int id = 0; id < toy::vocab; ++id)
      ASSERT_EQ(row.logits[id], toy::logitOf(hash, id, program))
          << "id " << id << " after " << tokens.size() << " tokens";
  }

  static std::vector<int> firstOf(const std::vector<int> &tokens,
                                  size_t count) {
    return {tokens.begin(), tokens.begin() + count};
  }

  ToyPlanFile file;
  std::unique_ptr<Engine> engine;
  std::vector<Given> given;
};

TEST_P(EngineTest, LastLogitsOfAPrompt) {
  const std::vector<int> prompt = cleanTokens(7, 5);
  Sequence one = sequence();
  ASSERT_TRUE(step({{&one, prompt}}).ok());
  ASSERT_EQ(given.size(), 1u);
  EXPECT_EQ(given[0].token, 6);
  EXPECT_EQ(one.length(), 7);
  expectLogits(given[0], prompt, 2);
}

TEST_P(EngineTest, PromptLongerThanTheLargestProgramIsCut) {
  const std::vector<int> prompt = cleanTokens(27, 3);
  Sequence one = sequence();
  ASSERT_TRUE(step({{&one, prompt}}).ok());
  ASSERT_EQ(given.size(), 1u);
  // 8 + 8 + 8, and 3 rows by the program of 4.
  expectLogits(given[0], prompt, 1);
}

TEST_P(EngineTest, AllLogitsComeInOrderHoweverFewAreWantedAtOnce) {
  const std::vector<int> prompt = cleanTokens(20, 9);
  Sequence one = sequence();
  ASSERT_TRUE(step({{&one, prompt, OutputRows::All}}).ok());
  ASSERT_EQ(given.size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(given[i].token, static_cast<int64_t>(i));
    expectLogits(given[i], firstOf(prompt, i + 1), 2);
  }
}

TEST_P(EngineTest, TokenByTokenIsTheSame) {
  const std::vector<int> prompt = cleanTokens(30, 40);
  Sequence one = sequence();
  for (size_t i = 0; i < prompt.size(); ++i) {
    ASSERT_TRUE(step({{&one, {&prompt[i], 1}}}).ok());
    ASSERT_EQ(given.size(), 1u);
    expectLogits(given[0], firstOf(prompt, i + 1), 0);
  }
}

TEST_P(EngineTest, NoLogitsWhereNoneAreWanted) {
  const std::vector<int> prompt = cleanTokens(9, 2);
  Sequence one = sequence();
  ASSERT_TRUE(
      step({{&one, absl::MakeConstSpan(prompt).first(8), OutputRows::None}})
          .ok());
  EXPECT_TRUE(given.empty());
  ASSERT_TRUE(step({{&one, {&prompt[8], 1}}}).ok());
  expectLogits(given.at(0), prompt, 0);
}

TEST_P(EngineTest, SequencesOfABatchKeepApart) {
  const std::vector<int> a = cleanTokens(11, 1);
  const std::vector<int> b = cleanTokens(11, 30);
  const std::vector<int> c = cleanTokens(11, 60);
  Sequence sa = sequence();
  Sequence sb = sequence();
  Sequence sc = sequence();
  // They grow in turn, so that their pages lie mixed in the pool.
  for (size_t i = 0; i < 10; ++i)
    ASSERT_TRUE(step({{&sa, {&a[i], 1}, OutputRows::None},
                      {&sb, {&b[i], 1}, OutputRows::None},
                      {&sc, {&c[i], 1}, OutputRows::None}})
                    .ok());
  ASSERT_TRUE(
      step({{&sc, {&c[10], 1}}, {&sa, {&a[10], 1}}, {&sb, {&b[10], 1}}}).ok());
  ASSERT_EQ(given.size(), 3u);
  EXPECT_EQ(given[0].item, 0u);
  EXPECT_EQ(given[2].item, 2u);
  expectLogits(given[0], c, 2);
  expectLogits(given[1], a, 2);
  expectLogits(given[2], b, 2);
}

TEST_P(EngineTest, PromptsAndSingleTokensShareAStep) {
  const std::vector<int> a = cleanTokens(13, 1);
  const std::vector<int> b = cleanTokens(6, 30);
  Sequence sa = sequence();
  Sequence sb = sequence();
  ASSERT_TRUE(
      step({{&sb, absl::MakeConstSpan(b).first(5), OutputRows::None}}).ok());
  ASSERT_TRUE(step({{&sa, a, OutputRows::All}, {&sb, {&b[5], 1}}}).ok());
  ASSERT_EQ(given.size(), 14u);
  for (size_t i = 0; i < 13; ++i)
    expectLogits(given[i], firstOf(a, i + 1), 2);
  EXPECT_EQ(given[13].item, 1u);
  expectLogits(given[13], b, 2);
}

TEST_P(EngineTest, EveryItemOfABatchGetsTheTokenOfItsSampler) {
  for (const bool device : {false, true}) {
    const ToyPlanFile plan([&](toy::ToyPlan &toy) {
      if (device)
        addSampling(toy);
    });
    start(plan, GetParam());
    EXPECT_EQ(engine->model().samples(), device);
    auto greedy = Sampler::create({});
    auto drawing = Sampler::create({.temperature = 2, .topK = 5, .seed = 4});
    auto same = Sampler::create({.temperature = 2, .topK = 5, .seed = 4});
    ASSERT_TRUE(greedy.ok() && drawing.ok() && same.ok());
    // Eleven rows, of which the largest program takes eight.
    const std::vector<int> one = cleanTokens(6, 12), two = cleanTokens(5, 20);
    Sequence first = sequence(), second = sequence();
    const auto next =
        engine->sample({{&first, one, &*greedy}, {&second, two, &*drawing}});
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(*(*next)[0], toy::argmaxAfter(one));
    if (device) {
      EXPECT_EQ(*(*next)[1], toy::drawnToken(same->nextParams().noiseKey, 5));
    } else {
      std::vector<float> logits(toy::vocab);
      for (int id = 0; id < toy::vocab; ++id)
        logits[id] = toy::logitOf(toy::hashOf(two), id, 1);
      EXPECT_EQ(*(*next)[1], *same->sample(logits));
    }
    // Logits are there as before.
    Sequence third = sequence();
    ASSERT_TRUE(step({{&third, two}}).ok());
    expectLogits(given.at(0), two, 2);
  }
}

TEST_P(EngineTest, PagesComeBackWhenASequenceGoes) {
  for (int round = 0; round < 10; ++round) {
    const std::vector<int> prompt = cleanTokens(30, round);
    Sequence one = sequence();
    Sequence two = sequence();
    Sequence three = sequence();
    ASSERT_TRUE(step({{&three, prompt}, {&one, prompt}, {&two, prompt}}).ok());
    ASSERT_EQ(given.size(), 3u);
    for (const Given &row : given)
      EXPECT_EQ(row.logits[toy::argmaxAfter(prompt)], 0);
  }
}

TEST_P(EngineTest, ATruncatedSequenceGoesOnAsIfTheRestHadNotBeen) {
  start(GetParam(), {.kvPages = 6}); // 24 tokens in all.
  std::vector<int> prompt = cleanTokens(16, 4);
  Sequence one = sequence();
  ASSERT_TRUE(step({{&one, prompt}}).ok());
  engine->truncate(one, 6);
  EXPECT_EQ(one.length(), 6);
  prompt = firstOf(prompt, 6);
  while (prompt.size() < 10)
    prompt.push_back(toy::argmaxAfter(prompt));
  ASSERT_FALSE(toy::isPoisoned(prompt));
  ASSERT_TRUE(step({{&one, {&prompt[6], 4}}}).ok());
  expectLogits(given.at(0), prompt, 1);
  // The pages behind are free again.
  const std::vector<int> other = cleanTokens(12, 50);
  Sequence two = sequence();
  ASSERT_TRUE(step({{&two, other}}).ok());
  expectLogits(given.at(0), other, 1);
  engine->truncate(one, 0);
  ASSERT_TRUE(step({{&one, firstOf(other, 8)}}).ok());
  expectLogits(given.at(0), firstOf(other, 8), 2);
}

TEST_P(EngineTest, ASequenceBeginsWithTheKeysThatWereKept) {
  start(GetParam(), {.keepsPrefixes = true});
  const std::vector<int> prompt = cleanTokens(16, 9);
  Sequence one = keptSequence(prompt);
  Sequence two = sequence();
  EXPECT_EQ(*engine->reuse(two, prompt), 12);
  EXPECT_EQ(two.length(), 12);
  ASSERT_TRUE(step({{&two, {&prompt[12], 4}}}).ok());
  expectLogits(given.at(0), prompt, 1);
  EXPECT_EQ(engine->prefixes()->counts().found, 12);
  EXPECT_FALSE(engine->reuse(two, prompt).ok());
}

TEST_P(EngineTest, WhatOthersHoldIsNotWrittenBehindACut) {
  start(GetParam(), {.keepsPrefixes = true});
  const std::vector<int> prompt = cleanTokens(12, 9);
  Sequence one = keptSequence(prompt);
  // The page of token 6 is kept, so the cut is before it.
  EXPECT_EQ(engine->truncate(one, 6), 4);
  std::vector<int> other = firstOf(prompt, 4);
  while (other.size() < 12) {
    other.push_back(2);
    while (toy::isPoisoned(other))
      ++other.back();
  }
  ASSERT_TRUE(step({{&one, {&other[4], 8}}}).ok());
  Sequence two = sequence();
  EXPECT_EQ(*engine->reuse(two, prompt), 8);
  ASSERT_TRUE(step({{&two, {&prompt[8], 4}}}).ok());
  expectLogits(given.at(0), prompt, 1);
}

TEST_P(EngineTest, KeptPagesAreGivenUpForSequencesThatNeedThem) {
  start(GetParam(), {.kvPages = 4, .keepsPrefixes = true});
  const std::vector<int> prompt = cleanTokens(12, 9), next = cleanTokens(16, 4);
  keptSequence(prompt);
  EXPECT_EQ(engine->prefixes()->size(), 3u);
  Sequence two = sequence();
  ASSERT_TRUE(step({{&two, next}}).ok());
  expectLogits(given.at(0), next, 2);
  EXPECT_EQ(engine->prefixes()->size(), 0u);
}

/// Tokens whose beginnings all have logits that are numbers where the second
/// layer has a window.
static std::vector<int> cleanWindowTokens(size_t size, int first) {
  std::vector<int> tokens;
  while (tokens.size() < size) {
    tokens.push_back(first);
    while (toy::windowHashOf(tokens) % toy::poison == 0)
      ++tokens.back();
    first = 2 + (tokens.back() + 5) % 80;
  }
  return tokens;
}

class WindowTest : public EngineTest {
protected:
  void SetUp() override { start(plan, GetParam()); }

  /// Runs `tokens` in steps of these sizes and checks the logits of each row.
  void run(Sequence &sequence, const std::vector<int> &tokens,
           std::initializer_list<size_t> sizes) {
    for (const size_t size : sizes) {
      const auto first = static_cast<size_t>(sequence.length());
      ASSERT_TRUE(
          step({{&sequence, {&tokens[first], size}, OutputRows::All}}).ok());
      for (size_t row = 0; row < size; ++row) {
        const size_t count = first + row + 1;
        const unsigned hash = toy::windowHashOf(firstOf(tokens, count));
        for (int id = 0; id < toy::vocab - 1; ++id)
          ASSERT_EQ(given.at(row).logits[id], toy::logitOf(hash, id, 0))
              << "id " << id << " after " << count << " tokens";
      }
    }
  }

  ToyPlanFile plan{toy::addWindow};
};

TEST_P(WindowTest, TheMemoryOfALayerWithAWindowIsThatOfItsRing) {
  const uint64_t sequences = toy::maxSequences * toy::pageBytes;
  EXPECT_EQ(engine->stepMemory().pool(0).size(),
            toy::pagesPerSequence * sequences);
  EXPECT_EQ(engine->stepMemory().pool(1).size(), toy::ringPages * sequences);
}

TEST_P(WindowTest, StepsFarPastTheRingSeeTheKeysOfTheirWindow) {
  const std::vector<int> tokens = cleanWindowTokens(30, 7);
  Sequence chunks = sequence(), single = sequence(), mixed = sequence();
  run(chunks, tokens, {30});
  run(single, tokens, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  run(mixed, tokens, {3, 8, 1, 8, 2, 8});
}

TEST_P(WindowTest, PagesOfARingComeBackWhenASequenceGoes) {
  const std::vector<int> tokens = cleanWindowTokens(30, 11);
  for (int round = 0; round < 4; ++round) {
    Sequence one = sequence(), two = sequence(), three = sequence();
    run(one, tokens, {30});
    run(three, tokens, {14});
    run(two, tokens, {8, 8});
    run(three, tokens, {16});
  }
}

TEST_P(WindowTest, ASequenceGoesOnFromWhatTheRingStillHas) {
  const std::vector<int> tokens = cleanWindowTokens(30, 5);
  Sequence one = sequence();
  run(one, tokens, {22});
  // The largest step has as many rows as are dropped.
  EXPECT_EQ(engine->truncate(one, 14), 14);
  EXPECT_EQ(one.length(), 14);
  run(one, tokens, {8, 2});
  // The rows written first took the place of keys that these tokens see.
  EXPECT_EQ(engine->truncate(one, 11), 0);
  EXPECT_EQ(one.length(), 0);
  run(one, tokens, {9, 1, 8});
}

TEST_P(WindowTest, SequencesAreAsManyAsAModelIsLoadedFor) {
  const std::vector<int> tokens = cleanWindowTokens(30, 5);
  for (const int64_t count : {1, 5}) {
    start(plan, GetParam(), {}, count);
    std::vector<Sequence> open;
    for (int64_t i = 0; i < count; ++i)
      open.push_back(sequence());
    EXPECT_EQ(exitCode(engine->newSequence().status()), ExitCode::Memory);
    for (Sequence &one : open)
      run(one, tokens, {8, 8, 1});
  }
}

TEST_P(WindowTest, ASequenceBeginsWithWhatOfAWindowWasKept) {
  start(plan, GetParam(), {.keepsPrefixes = true});
  const std::vector<int> tokens = cleanWindowTokens(30, 5);
  Sequence one = sequence();
  run(one, tokens, {16});
  engine->keep(one, tokens);
  run(one, tokens, {8, 6}); // Its ring goes on beside the pages that are kept.
  Sequence two = sequence();
  EXPECT_EQ(*engine->reuse(two, tokens), 16);
  run(two, tokens, {1, 8, 5});
}

TEST_P(WindowTest, ALongStepSeesTheWindowThatAnotherSequenceHolds) {
  const std::vector<int> tokens = cleanWindowTokens(30, 5);
  // The step begins everywhere in a page, and begins others, whose places those
  // of the window have that the two sequences share.
  for (const size_t before : {1, 2, 3, 4}) {
    start(plan, GetParam(), {.keepsPrefixes = true});
    Sequence one = sequence();
    run(one, tokens, {8, 1});
    engine->keep(one, tokens);
    Sequence two = sequence();
    EXPECT_EQ(*engine->reuse(two, tokens), 8);
    run(two, tokens, {before, 8});
  }
}

/// Notes what it sees, and calls `change` after each launch.
class Watcher : public LaunchObserver {
public:
  absl::Status before(const LaunchSite &site, StepMemory &) override {
    seen.push_back(
        {site.program, site.launch, static_cast<size_t>(site.shape.rows)});
    return absl::OkStatus();
  }
  absl::Status after(const LaunchSite &site, StepMemory &memory) override {
    return change ? change(site, memory) : absl::OkStatus();
  }

  /// Program, launch and rows of each.
  std::vector<std::array<size_t, 3>> seen;
  std::function<absl::Status(const LaunchSite &, StepMemory &)> change;
};

TEST_P(EngineTest, LaunchByLaunchIsTheSame) {
  Watcher watcher;
  start(GetParam(), {.observer = &watcher});
  const std::vector<int> prompt = cleanTokens(12, 9);
  Sequence one = sequence();
  ASSERT_TRUE(step({{&one, prompt, OutputRows::All}}).ok());
  ASSERT_EQ(given.size(), 12u);
  for (size_t i = 0; i < 12; ++i)
    expectLogits(given[i], firstOf(prompt, i + 1), 2);
  // Steps of 8 and 4 rows, of which a run gives at most three the logits; what
  // is left has no rows of its own.
  const size_t launches = engine->model().plan().programs[2]->launches.size();
  const std::vector<size_t> rows = {8, 0, 0, 4, 0};
  ASSERT_EQ(watcher.seen.size(), rows.size() * launches);
  for (size_t i = 0; i < watcher.seen.size(); ++i)
    EXPECT_EQ(watcher.seen[i],
              (std::array<size_t, 3>{2, i % launches, rows[i / launches]}));
}

TEST_P(EngineTest, AnObserverChangesWhatLaunchesRead) {
  Watcher watcher;
  start(GetParam(), {.observer = &watcher});
  const std::vector<int> prompt = cleanTokens(5, 3);
  const std::vector<int> other = cleanTokens(5, 41);
  const size_t last = engine->model().plan().programs[2]->launches.size() - 1;
  watcher.change = [&](const LaunchSite &site, StepMemory &memory) {
    if (site.launch + 1 != last)
      return absl::OkStatus();
    // The hashes, which the launch of the logits reads next.
    const schema::Operand &hashes =
        engine->model().plan().programs[2]->launches[last]->operands[0];
    std::vector<uint8_t> staging;
    auto bytes =
        memory.read(hashes, 4 * sizeof(unsigned), sizeof(unsigned), staging);
    if (!bytes.ok())
      return bytes.status();
    unsigned hash = 0;
    std::memcpy(&hash, bytes->data(), sizeof hash);
    EXPECT_EQ(hash, toy::hashOf(prompt));
    hash = toy::hashOf(other);
    return memory.write(
        hashes, 4 * sizeof hash,
        {reinterpret_cast<const uint8_t *>(&hash), sizeof hash});
  };
  Sequence one = sequence();
  ASSERT_TRUE(step({{&one, prompt}}).ok());
  expectLogits(given.at(0), other, 2);
}

INSTANTIATE_TEST_SUITE_P(Threads, EngineTest, testing::Values(1, 2, 3, 5));
INSTANTIATE_TEST_SUITE_P(Threads, WindowTest, testing::Values(2));

/// Errors do not depend on the threads.
class EngineErrors : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Threads, EngineErrors, testing::Values(2));

TEST_P(EngineErrors, PromptLongerThanTheContextNamesBothNumbers) {
  const std::vector<int> prompt(31, 5);
  Sequence one = sequence();
  const absl::Status status = step({{&one, prompt}});
  EXPECT_EQ(exitCode(status), ExitCode::Usage);
  EXPECT_THAT(std::string(status.message()), HasSubstr("31"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("30"));
  EXPECT_EQ(one.length(), 0);
}

TEST_P(EngineErrors, AFullContextTakesNoMore) {
  const std::vector<int> prompt = cleanTokens(30, 4);
  Sequence one = sequence();
  ASSERT_TRUE(step({{&one, prompt}}).ok());
  EXPECT_EQ(exitCode(step({{&one, {&prompt[0], 1}}})), ExitCode::Usage);
}

TEST_P(EngineErrors, TokensOutsideTheVocabularyAreRefused) {
  Sequence one = sequence();
  for (int bad : {-1, toy::vocab, 1 << 30}) {
    const std::vector<int> prompt = {5, bad};
    const absl::Status status = step({{&one, prompt}});
    EXPECT_EQ(exitCode(status), ExitCode::Usage);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("0 to 95, got " + std::to_string(bad)));
  }
  EXPECT_EQ(exitCode(step({{&one, {}}})), ExitCode::Usage);
  EXPECT_EQ(one.length(), 0);
}

TEST_P(EngineErrors, TheSameSequenceTwiceInABatchIsABug) {
  const int token = 5;
  Sequence one = sequence();
  EXPECT_EQ(exitCode(step({{&one, {&token, 1}}, {&one, {&token, 1}}})),
            ExitCode::Internal);
}

TEST_P(EngineErrors, AShareOfMemoryIsOfADeviceThatHasItsOwn) {
  const auto refuse = [&](const EngineOptions &options, const char *message) {
    const absl::Status status =
        Engine::create(engine->sharedModel(), options).status();
    EXPECT_EQ(exitCode(status), ExitCode::Usage);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  };
  refuse({.kvMemory = 0.5},
         "KV memory: expected a device with memory of its own, got cpu");
  refuse({.kvPages = 4, .kvMemory = 0.5},
         "KV memory: expected it without a number of KV pages, got both");
  refuse({.kvMemory = 1.5}, "KV memory: expected a share from 0 to 1, got 1.5");
  refuse({.kvMemory = -1}, "KV memory: expected a share from 0 to 1, got -1");
}

TEST_P(EngineErrors, NoMoreSequencesThanThePlanWasMadeFor) {
  Sequence one = sequence();
  Sequence two = sequence();
  {
    Sequence three = sequence();
    const auto four = engine->newSequence();
    EXPECT_EQ(exitCode(four.status()), ExitCode::Memory);
    EXPECT_THAT(std::string(four.status().message()), HasSubstr("at most 3"));
  }
  EXPECT_TRUE(engine->newSequence().ok());
}

TEST_P(EngineErrors, AnEmptyPoolIsAMemoryErrorAndOthersGoOn) {
  start(2, {.kvPages = 6}); // 24 tokens in all.
  const std::vector<int> prompt = cleanTokens(17, 4);
  const std::vector<int> other = cleanTokens(8, 50);
  Sequence one = sequence();
  ASSERT_TRUE(
      step({{&one, absl::MakeConstSpan(prompt).first(16)}}).ok()); // 4 pages.
  {
    Sequence two = sequence();
    const absl::Status status = step({{&two, cleanTokens(12, 4)}});
    EXPECT_EQ(exitCode(status), ExitCode::Memory);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("12 tokens need 3 more pages of 4 tokens, 2 of 6"));
    EXPECT_EQ(two.length(), 0);
    ASSERT_TRUE(step({{&two, other}}).ok());
    expectLogits(given.at(0), other, 2);
    EXPECT_EQ(exitCode(step({{&one, {&prompt[16], 1}}})), ExitCode::Memory);
  }
  ASSERT_TRUE(step({{&one, {&prompt[16], 1}}}).ok());
  expectLogits(given.at(0), prompt, 0);
}

TEST_P(EngineErrors, ABatchThatDoesNotFitLeavesAllPagesFree) {
  start(2, {.kvPages = 6}); // 24 tokens in all.
  const std::vector<int> prompt = cleanTokens(24, 4);
  Sequence one = sequence();
  Sequence two = sequence();
  ASSERT_EQ(exitCode(step(
                {{&one, firstOf(prompt, 16)}, {&two, firstOf(prompt, 12)}})),
            ExitCode::Memory);
  EXPECT_EQ(one.length(), 0);
  ASSERT_TRUE(step({{&two, prompt}}).ok());
  expectLogits(given.at(0), prompt, 2);
}

TEST_P(EngineErrors, ARefusedBatchDrawsNothing) {
  const ToyPlanFile plan(toy::addSampling);
  start(plan, 2);
  const SamplingOptions options{.temperature = 2, .topK = 5, .seed = 4};
  auto sampler = Sampler::create(options), same = Sampler::create(options);
  ASSERT_TRUE(sampler.ok() && same.ok());
  const std::vector<int> prompt = cleanTokens(6, 12), wrong = {toy::vocab};
  Sequence one = sequence();
  ASSERT_EQ(exitCode(engine->sample({{&one, wrong, &*sampler}}).status()),
            ExitCode::Usage);
  const auto next = engine->sample({{&one, prompt, &*sampler}});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(*(*next)[0], toy::drawnToken(same->nextParams().noiseKey, 5));
}

/// Two tokens, of which the second has logits of NaN.
static std::vector<int> poisonedPrompt() {
  for (int token = 2; token < toy::vocab; ++token)
    for (int other = 2; other < toy::vocab; ++other)
      if (!toy::isPoisoned({token}) && toy::isPoisoned({token, other}))
        return {token, other};
  return {};
}

TEST_P(EngineErrors, LogitsThatAreNoNumbersEndTheStep) {
  const std::vector<int> prompt = poisonedPrompt();
  ASSERT_EQ(prompt.size(), 2u);
  Sequence one = sequence();
  const absl::Status status = step({{&one, prompt, OutputRows::All}});
  EXPECT_EQ(exitCode(status), ExitCode::Accuracy);
  EXPECT_THAT(std::string(status.message()), HasSubstr("position 1"));
  EXPECT_EQ(given.size(), 1u);
  Sequence two = sequence();
  const std::vector<int> clean = cleanTokens(5, 5);
  ASSERT_TRUE(step({{&two, clean}}).ok());
  expectLogits(given.at(0), clean, 2);
}

TEST_P(EngineErrors, LogitsThatAreNoNumbersAreTheErrorOfTheirItemAlone) {
  for (const bool device : {false, true}) {
    const ToyPlanFile plan([&](toy::ToyPlan &toy) {
      if (device)
        addSampling(toy);
    });
    start(plan, GetParam());
    auto sampler = Sampler::create({});
    ASSERT_TRUE(sampler.ok());
    Sequence one = sequence(), two = sequence();
    const std::vector<int> clean = cleanTokens(3, 5);
    const auto next = engine->sample(
        {{&one, poisonedPrompt(), &*sampler}, {&two, clean, &*sampler}});
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(exitCode((*next)[0].status()), ExitCode::Accuracy);
    EXPECT_THAT(std::string((*next)[0].status().message()),
                HasSubstr("position 1"));
    EXPECT_EQ(*(*next)[1], toy::argmaxAfter(clean));
  }
}

TEST_P(EngineTest, NothingIsSampledBehindAPartOfAPrompt) {
  const ToyPlanFile plan(toy::addSampling);
  start(plan, GetParam());
  auto greedy = Sampler::create({});
  const std::vector<int> one = cleanTokens(6, 12), two = cleanTokens(5, 20);
  Sequence first = sequence(), second = sequence();
  auto next = engine->sample(
      {{&first, firstOf(one, 4), nullptr}, {&second, two, &*greedy}});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(*(*next)[0], -1);
  EXPECT_EQ(*(*next)[1], toy::argmaxAfter(two));
  next = engine->sample({{&first, {one.data() + 4, 2}, &*greedy}});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(*(*next)[0], toy::argmaxAfter(one));
}

TEST_P(EngineErrors, AnObserverReachesNoWeightsAndNothingOutside) {
  Watcher watcher;
  start(2, {.observer = &watcher});
  std::vector<uint8_t> staging;
  const schema::Operand weight(schema::OperandKind::Weight, 0, 0);
  const schema::Operand arena(schema::OperandKind::Arena, 0, 0);
  const schema::Operand tokens(schema::OperandKind::Input,
                               static_cast<uint32_t>(schema::InputRole::Tokens),
                               0);
  watcher.change = [&](const LaunchSite &, StepMemory &memory) {
    EXPECT_THAT(
        std::string(memory.read(weight, 0, 4, staging).status().message()),
        HasSubstr("got a Weight"));
    // Other inputs lie behind it.
    const uint64_t bytes =
        engine->model().plan().programs.back()->maxRows * sizeof(int32_t);
    EXPECT_TRUE(memory.read(tokens, bytes - 4, 4, staging).ok());
    EXPECT_EQ(exitCode(memory.read(tokens, bytes, 4, staging).status()),
              ExitCode::Internal);
    EXPECT_EQ(exitCode(memory.write(weight, 0, {})), ExitCode::Internal);
    return memory.read(arena, uint64_t{1} << 40, 4, staging).status();
  };
  const std::vector<int> prompt = cleanTokens(5, 3);
  Sequence one = sequence();
  const absl::Status status = step({{&one, prompt}});
  EXPECT_EQ(exitCode(status), ExitCode::Internal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("stay within"));
  EXPECT_EQ(watcher.seen.size(), 1u);
}

TEST_P(EngineErrors, ATruncatedSequenceIsOfUseAfterAStepThatFailed) {
  Watcher watcher;
  start(GetParam(), {.observer = &watcher});
  const std::vector<int> prompt = cleanTokens(17, 4);
  Sequence one = sequence();
  ASSERT_TRUE(step({{&one, firstOf(prompt, 5)}}).ok());
  // The first 8 rows of the step run, the rest does not.
  watcher.change = [&](const LaunchSite &site, StepMemory &) {
    return site.shape.rows == 8 ? absl::OkStatus() : memoryError("enough");
  };
  const absl::Status failed = step({{&one, {&prompt[5], 12}}});
  EXPECT_EQ(exitCode(failed), ExitCode::Memory) << failed;
  watcher.change = nullptr;
  engine->truncate(one, 5);
  ASSERT_TRUE(step({{&one, {&prompt[5], 12}}}).ok());
  expectLogits(given.at(0), prompt, 1);
}

TEST_P(EngineErrors, AnErrorOfTheSinkIsPassedOn) {
  const std::vector<int> prompt = cleanTokens(5, 5);
  Sequence one = sequence();
  int calls = 0;
  const absl::Status status =
      engine->step({{&one, prompt, OutputRows::All}}, [&](const LogitsRow &) {
        return ++calls == 2 ? memoryError("full") : absl::OkStatus();
      });
  EXPECT_EQ(exitCode(status), ExitCode::Memory);
  EXPECT_EQ(calls, 2);
}

} // namespace
} // namespace llamac
