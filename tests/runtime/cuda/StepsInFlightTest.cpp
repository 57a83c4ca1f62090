//===- StepsInFlightTest.cpp - Steps ahead of the host --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Engine::decode() on a device that queues steps, against one step after the
// other, and what the host does while a step runs. Run by
// tests/e2e/test_cuda.py, which makes the plan for cuda that LLAMAC_TEST_PLAN
// names and finds the fake driver.
//
//===----------------------------------------------------------------------===//

#include "engine/step/Engine.h"
#include "runtime/base/Status.h"
#include "tests/Tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <dlfcn.h>
#include <thread>

namespace llamac {
namespace {

using testing::HasSubstr;
using Tokens = std::vector<int32_t>;

static std::shared_ptr<const Model> loadModel() {
  const char *path = std::getenv("LLAMAC_TEST_PLAN");
  auto model = Model::load(path ? path : "");
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *model : nullptr;
}

/// The number that the fake driver counts: see there.
static size_t countOf(const char *function) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto *count = driver ? reinterpret_cast<size_t (*)()>(dlsym(driver, function))
                       : nullptr;
  EXPECT_NE(count, nullptr) << function;
  return count ? count() : 0;
}

/// Objects of the GPU that live.
static size_t liveObjects() { return countOf("fakeLiveObjects"); }

/// So many that every place of the ring is used more than once.
constexpr int64_t manySteps = 20;

class StepsInFlightTest : public testing::Test {
protected:
  void SetUp() override {
    model = loadModel();
    ASSERT_NE(model, nullptr);
    ASSERT_TRUE(model->samples());
    start();
  }

  void start(const EngineOptions &options = {}) {
    auto created = Engine::create(model, options);
    ASSERT_TRUE(created.ok()) << created.status();
    engine = *std::move(created);
  }

  Tokens prompt(int64_t size, int64_t first) const {
    Tokens tokens;
    for (int64_t i = 0; i < size; ++i)
      tokens.push_back(
          static_cast<int32_t>((first + 7 * i) % model->config().vocabSize));
    return tokens;
  }

  static Sampler sampler(bool isGreedy, uint64_t seed = 3) {
    return *Sampler::create(
        isGreedy
            ? SamplingOptions{}
            : SamplingOptions{.temperature = 1.5, .topK = 50, .seed = seed});
  }

  /// A sequence that has seen `tokens`, and the token after them.
  Sequence begin(const Tokens &tokens, Sampler &sampler, int32_t &next) {
    Sequence sequence = *engine->newSequence();
    const auto chosen = engine->sample({{&sequence, tokens, &sampler}});
    EXPECT_TRUE(chosen.ok()) << chosen.status();
    next = chosen.ok() ? *(*chosen)[0] : 0;
    return sequence;
  }

  /// `steps` more, one call each.
  Tokens oneByOne(Sequence &sequence, int32_t token, Sampler &sampler,
                  int64_t steps) {
    Tokens tokens;
    for (int64_t i = 0; i < steps; ++i) {
      const auto next = engine->sample({{&sequence, {&token, 1}, &sampler}});
      EXPECT_TRUE(next.ok()) << next.status();
      token = *(*next)[0];
      tokens.push_back(token);
    }
    return tokens;
  }

  /// At most `steps` in flight, of which `wanted` are taken.
  Tokens inFlight(Sequence &sequence, int32_t token, Sampler &sampler,
                  int64_t steps, int64_t wanted) {
    Tokens tokens;
    const int64_t length = sequence.length();
    const absl::Status status = engine->decode(
        {{&sequence, token, &sampler}}, steps,
        [&](absl::Span<const int32_t> chosen) -> absl::StatusOr<bool> {
          tokens.push_back(chosen[0]);
          const auto count = static_cast<int64_t>(tokens.size());
          EXPECT_EQ(sequence.length(), length + count);
          return count < wanted;
        });
    EXPECT_TRUE(status.ok()) << status;
    return tokens;
  }

  std::shared_ptr<const Model> model;
  std::unique_ptr<Engine> engine;
};

TEST_F(StepsInFlightTest, TokensAreThoseOfOneStepAfterTheOther) {
  for (const bool isGreedy : {true, false}) {
    Sampler plain = sampler(isGreedy), ahead = sampler(isGreedy);
    int32_t token = 0, same = 0;
    Sequence one = begin(prompt(5, 9), plain, token);
    Sequence two = begin(prompt(5, 9), ahead, same);
    ASSERT_EQ(token, same);
    EXPECT_EQ(inFlight(two, token, ahead, manySteps, manySteps),
              oneByOne(one, token, plain, manySteps));
  }
}

TEST_F(StepsInFlightTest, WhatComesAfterAnEndIsAsIfNothingHadRunPastIt) {
  // Draws know how many there were before.
  for (const bool isGreedy : {false, true}) {
    if (isGreedy && !isExhaustive())
      continue;
    Sampler plain = sampler(isGreedy), ahead = sampler(isGreedy);
    int32_t token = 0, same = 0;
    Sequence one = begin(prompt(13, 4), plain, token);
    Sequence two = begin(prompt(13, 4), ahead, same);
    // Ends within a page, at its end and behind it, then goes on.
    for (const int64_t wanted : {1, 5, 16}) {
      const Tokens expected = oneByOne(one, token, plain, wanted);
      EXPECT_EQ(inFlight(two, token, ahead, 60, wanted), expected);
      ASSERT_EQ(one.length(), two.length());
      token = expected.back();
      // Another turn: a prompt of several tokens in the same sequence.
      const Tokens turn = prompt(3, token);
      const auto after = engine->sample({{&one, turn, &plain}});
      const auto afterAhead = engine->sample({{&two, turn, &ahead}});
      ASSERT_TRUE(after.ok() && afterAhead.ok());
      EXPECT_EQ(*(*after)[0], *(*afterAhead)[0]);
      token = *(*after)[0];
    }
  }
}

TEST_F(StepsInFlightTest, WhatIsInFlightMayBeGivenPastAnEnd) {
  Sampler one = sampler(false), other = sampler(false);
  int32_t token = 0, same = 0;
  Sequence alone = begin(prompt(9, 2), one, token);
  const Tokens expected = oneByOne(alone, token, one, 40);
  Sequence sequence = begin(prompt(9, 2), other, same);
  Tokens tokens;
  const auto take = [&](absl::Span<const int32_t> chosen) {
    tokens.push_back(chosen[0]);
    return tokens.size() % 20 != 3;
  };
  ASSERT_TRUE(
      engine->decode({{&sequence, same, &other}}, 20, take, StepsAhead::Given)
          .ok());
  // The run of the third step, and those behind it.
  EXPECT_GT(tokens.size(), 4u);
  EXPECT_LT(tokens.size(), 20u);
  EXPECT_EQ(sequence.length(), 9 + std::ssize(tokens));
  const Tokens rest =
      oneByOne(sequence, tokens.back(), other, 40 - std::ssize(tokens));
  tokens.insert(tokens.end(), rest.begin(), rest.end());
  EXPECT_EQ(tokens, expected);
}

TEST_F(StepsInFlightTest, SequencesGoOnTogether) {
  Tokens first(3);
  std::vector<Tokens> expected;
  std::vector<Sampler> samplers;
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < first.size(); ++i) {
    const auto size = static_cast<int64_t>(3 + 6 * i);
    Sampler plain = sampler(i == 1, i);
    Sequence alone = begin(prompt(size, 20), plain, first[i]);
    expected.push_back(oneByOne(alone, first[i], plain, manySteps));
    samplers.push_back(sampler(i == 1, i));
    sequences.push_back(begin(prompt(size, 20), samplers[i], first[i]));
  }
  std::vector<DecodeItem> batch;
  for (size_t i = 0; i < first.size(); ++i)
    batch.push_back({&sequences[i], first[i], &samplers[i]});
  size_t step = 0;
  const absl::Status status = engine->decode(
      batch, manySteps,
      [&](absl::Span<const int32_t> chosen) -> absl::StatusOr<bool> {
        for (size_t i = 0; i < first.size(); ++i)
          EXPECT_EQ(chosen[i], expected[i][step]) << "step " << step;
        ++step;
        return true;
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(step, static_cast<size_t>(manySteps));
}

TEST_F(StepsInFlightTest, TheContextIsFilledAndNotExceeded) {
  Sampler greedy = sampler(true);
  int32_t token = 0, same = 0;
  const int64_t context = model->context(), last = 9;
  Sequence one = begin(prompt(context - last, 1), greedy, token);
  Sequence two = begin(prompt(context - last, 1), greedy, same);
  const absl::Status status =
      engine->decode({{&one, token, &greedy}}, last + 1,
                     [](absl::Span<const int32_t>) { return true; });
  EXPECT_EQ(exitCode(status), ExitCode::Usage);
  EXPECT_THAT(std::string(status.message()), HasSubstr("context"));
  EXPECT_EQ(one.length(), context - last);
  EXPECT_EQ(inFlight(one, token, greedy, last, last),
            oneByOne(two, token, greedy, last));
  EXPECT_EQ(one.length(), context);
}

TEST_F(StepsInFlightTest, StepsAheadTakeNoPagesThatAnotherNeeds) {
  // Enough for what is asked for, and not for the steps ahead of it.
  const int64_t page = model->plan().kv->pageTokens;
  start({.kvPages = 3});
  Sampler greedy = sampler(true);
  int32_t token = 0, other = 0;
  Sequence one = begin(prompt(page - 2, 5), greedy, token);
  Sequence two = begin(prompt(page, 8), greedy, other);
  // The run goes to the end of the first page, while steps ahead are in the
  // third.
  const Tokens tokens = inFlight(one, token, greedy, 2 * page, 2);
  ASSERT_EQ(tokens.size(), 2u);
  // The other's second page.
  const auto filled = engine->sample({{&two, prompt(page, other), &greedy}});
  ASSERT_TRUE(filled.ok() && (*filled)[0].ok());
  // Now there is none left: all that fits comes before the error.
  int64_t given = 0;
  Sequence three = std::move(two);
  const absl::Status status =
      engine->decode({{&one, tokens.back(), &greedy}}, 5,
                     [&](absl::Span<const int32_t>) { return ++given > 0; });
  EXPECT_EQ(exitCode(status), ExitCode::Memory);
  EXPECT_EQ(given, 0);
}

TEST_F(StepsInFlightTest, AnErrorOfTheSinkEndsAll) {
  Sampler greedy = sampler(true);
  int32_t token = 0;
  Sequence one = begin(prompt(4, 2), greedy, token);
  const absl::Status status =
      engine->decode({{&one, token, &greedy}}, 20,
                     [](absl::Span<const int32_t>) -> absl::StatusOr<bool> {
                       return accuracyError("enough");
                     });
  EXPECT_EQ(exitCode(status), ExitCode::Accuracy);
}

TEST_F(StepsInFlightTest, EnginesOfOneModelRunOnThreadsOfTheirOwn) {
  Sampler greedy = sampler(true);
  int32_t first = 0;
  Sequence alone = begin(prompt(5, 9), greedy, first);
  const Tokens expected = oneByOne(alone, first, greedy, 3);
  auto run = [&] {
    // Each engine captures graphs of its own.
    for (int round = 0; round < 6; ++round) {
      const auto own = *Engine::create(model);
      Sampler sampler = *Sampler::create({});
      Sequence sequence = *own->newSequence();
      Tokens next = prompt(5, 9), tokens;
      for (int step = 0; step < 4; ++step) {
        const auto chosen = own->sample({{&sequence, next, &sampler}});
        ASSERT_TRUE(chosen.ok()) << chosen.status();
        next = {*(*chosen)[0]};
        tokens.push_back(next[0]);
      }
      EXPECT_EQ(tokens[0], first);
      EXPECT_EQ(Tokens(tokens.begin() + 1, tokens.end()), expected);
    }
  };
  std::thread other(run);
  run();
  other.join();
}

//===----------------------------------------------------------------------===//
// Steps that the host samples
//===----------------------------------------------------------------------===//

/// Allows multiples of 3, and notes what the GPU had to do whenever the tokens
/// were found.
class MultiplesOfThree final : public Grammar {
public:
  explicit MultiplesOfThree(int64_t vocabSize) : vocabSize(vocabSize) {}

  absl::StatusOr<std::unique_ptr<GrammarMatcher>> newMatcher() const override {
    return std::make_unique<Matcher>(*this);
  }
  int64_t bytes() const override { return 0; }
  absl::Span<const int32_t> stopIds() const override { return {}; }

  mutable std::vector<size_t> pendingWork;

private:
  struct Matcher final : GrammarMatcher {
    explicit Matcher(const MultiplesOfThree &grammar) : grammar(grammar) {}
    absl::Status nextTokens(TokenMask &mask) override {
      grammar.pendingWork.push_back(countOf("fakePendingWork"));
      mask.assign((grammar.vocabSize + 31) / 32, 0);
      for (int64_t id = 0; id < grammar.vocabSize; id += 3)
        mask[id / 32] |= 1U << id % 32;
      return absl::OkStatus();
    }
    absl::StatusOr<bool> accept(int32_t id) override { return id % 3 == 0; }

    const MultiplesOfThree &grammar;
  };

  int64_t vocabSize;
};

TEST_F(StepsInFlightTest, WhatAGrammarAllowsIsFoundWhileTheStepRuns) {
  const auto grammar =
      std::make_shared<MultiplesOfThree>(model->config().vocabSize);
  Sampler constrained = *Sampler::create({.grammar = grammar});
  Sampler unused = sampler(true);
  int32_t token = 0, other = 0;
  Sequence one = begin(prompt(5, 9), constrained, token);
  Sequence two = begin(prompt(5, 9), unused, other);
  constexpr int64_t steps = 3;
  for (int64_t step = 0; step < steps; ++step) {
    const auto next = engine->sample({{&one, {&token, 1}, &constrained}});
    ASSERT_TRUE(next.ok() && (*next)[0].ok());
    // The logits make the same token the best of the allowed ones.
    int32_t best = 0;
    const absl::Status status = engine->step(
        {{&two, {&token, 1}}}, [&](const LogitsRow &row) -> absl::Status {
          for (int32_t id = 0; id < std::ssize(row.values); id += 3)
            best = row.values[id] > row.values[best] ? id : best;
          return absl::OkStatus();
        });
    ASSERT_TRUE(status.ok()) << status;
    token = *(*next)[0];
    EXPECT_EQ(token, best);
  }
  // Once for each token, the one behind the prompt included.
  EXPECT_EQ(grammar->pendingWork.size(), static_cast<size_t>(steps + 1));
  EXPECT_THAT(grammar->pendingWork, testing::Each(testing::Gt(0U)));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// Sequences decode together, within a page.
class CopiesTest : public StepsInFlightTest {
protected:
  void begin(const SamplingOptions &options) {
    for (int i = 0; i < 3; ++i)
      samplers.push_back(*Sampler::create(options));
    for (int i = 0; i < 3; ++i) {
      sequences.push_back(StepsInFlightTest::begin(
          prompt(3 + i, 7), samplers[i], next.emplace_back()));
      items.push_back(
          {&sequences.back(), {&next[i], 1}, &samplers[i], RowKind::Decode});
      batch.push_back({&sequences.back(), next[i], &samplers[i]});
    }
    ASSERT_GT(model->plan().kv->pageTokens, 5 + 8);
  }

  std::vector<Sampler> samplers;
  std::deque<Sequence> sequences;
  std::deque<int32_t> next;
  std::vector<SampledTokens> items;
  std::vector<DecodeItem> batch;
};

TEST_F(CopiesTest, TheInputsOfAStepThatTheHostSamplesAreOneCopy) {
  begin({.minP = 0.1});
  const size_t before = countOf("fakeCopiesToDevice");
  ASSERT_TRUE(engine->sample(items).ok());
  EXPECT_EQ(countOf("fakeCopiesToDevice") - before, 1u);
}

TEST_F(CopiesTest, TheInputsOfAStepThatTheGpuSamplesAreOneCopy) {
  begin({.temperature = 1, .seed = 3});
  const size_t before = countOf("fakeCopiesToDevice");
  ASSERT_TRUE(engine->sample(items).ok());
  EXPECT_EQ(countOf("fakeCopiesToDevice") - before, 1u);
}

TEST_F(CopiesTest, TheInputsOfARunOfStepsAreOneCopy) {
  begin({.temperature = 1, .seed = 3});
  const size_t before = countOf("fakeCopiesToDevice");
  const absl::Status status =
      engine->decode(batch, 8, [](absl::Span<const int32_t>) { return true; });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(countOf("fakeCopiesToDevice") - before, 2u); // Both copies have
                                                         // four steps.
}

//===----------------------------------------------------------------------===//
// Leaks
//===----------------------------------------------------------------------===//

// test_cuda.py counts the objects that are left when the process ends.
TEST(LeakTest, AThousandRunsLeaveNothing) {
  for (int load = 0; load < 10; ++load) {
    const std::shared_ptr<const Model> model = loadModel();
    ASSERT_NE(model, nullptr);
    const size_t loaded = liveObjects();
    size_t running = 0;
    for (int part = 0; part < 2; ++part) {
      const auto engine = *Engine::create(model);
      for (int run = 0; run < 50; ++run) {
        Sampler greedy = *Sampler::create({});
        Sequence sequence = *engine->newSequence();
        const Tokens prompt = {1, 5, 9};
        const auto next = engine->sample({{&sequence, prompt, &greedy}});
        ASSERT_TRUE(next.ok()) << next.status();
        int steps = 0;
        ASSERT_TRUE(
            engine
                ->decode({{&sequence, *(*next)[0], &greedy}}, 8,
                         [&](absl::Span<const int32_t>) { return ++steps < 3; })
                .ok());
        if (run == 0)
          running = liveObjects();
      }
      EXPECT_EQ(liveObjects(), running);
    }
    EXPECT_EQ(liveObjects(), loaded);
  }
}

} // namespace
} // namespace llamac
