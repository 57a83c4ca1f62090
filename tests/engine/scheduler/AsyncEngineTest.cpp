//===- AsyncEngineTest.cpp - Requests of many threads ---------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/scheduler/AsyncEngine.h"

#include "runtime/base/Status.h"
#include "tests/engine/toy/ToyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <unistd.h>

namespace llamac {
namespace {

using testing::HasSubstr;
using toy::cleanTokens;
using toy::greedyAfter;
using toy::ToyPlanFile;

class AsyncEngineTest : public testing::Test {
protected:
  void SetUp() override { start(); }

  void start(const AsyncEngineOptions &options = {}, int64_t sequences = 3) {
    auto loaded =
        Model::load(file.path(), {.threads = 2, .sequences = sequences});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    auto created = AsyncEngine::create(*loaded, options);
    ASSERT_TRUE(created.ok()) << created.status();
    engine = *std::move(created);
  }

  std::unique_ptr<AnswerStream> submit(Request request) {
    auto stream = engine->submit(std::move(request));
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *std::move(stream);
  }

  /// Answer 0 to its end.
  static AnswerPart allOf(AnswerStream &stream) {
    AnswerPart all;
    while (const std::optional<AnswerPart> part = stream.next()) {
      all.tokens.insert(all.tokens.end(), part->tokens.begin(),
                        part->tokens.end());
      all.text += part->text;
      all.end = part->end;
    }
    EXPECT_TRUE(stream.done());
    return all;
  }

  void waitUntilFree() {
    while (engine->counts().running + engine->counts().waiting > 0)
      std::this_thread::yield();
    EXPECT_EQ(engine->counts().freePages, engine->counts().pages);
  }

  static Request greedy(std::vector<int32_t> prompt, int64_t maxTokens) {
    return {.prompt = std::move(prompt), .options = {.maxTokens = maxTokens}};
  }

  ToyPlanFile file;
  std::unique_ptr<AsyncEngine> engine;
};

TEST_F(AsyncEngineTest, ThreadsGetTheAnswersToTheirRequests) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 20; ++i) {
        const std::vector<int> prompt = cleanTokens(6, 5 + 4 * i + thread, 5);
        const auto stream = submit(greedy(prompt, 5));
        EXPECT_EQ(allOf(*stream).tokens, greedyAfter(prompt, 5));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  waitUntilFree();
  EXPECT_EQ(engine->counts().finished, 80);
}

TEST_F(AsyncEngineTest, PartsGatherUntilTheyAreTaken) {
  const std::vector<int> prompt = cleanTokens(6, 5, 8);
  std::atomic<int> parts = 0;
  auto stream =
      engine->submit(greedy(prompt, 8), [&](const AnswerPart &) { ++parts; });
  ASSERT_TRUE(stream.ok());
  while (parts < 8)
    std::this_thread::yield();
  const std::optional<AnswerPart> all = (*stream)->next();
  ASSERT_TRUE(all && all->end);
  EXPECT_EQ(all->tokens, greedyAfter(prompt, 8));
  EXPECT_TRUE((*stream)->done());
  EXPECT_FALSE((*stream)->next());
}

TEST_F(AsyncEngineTest, TheAnswersOfARequestComeByTheirNumbers) {
  Request request{.prompt = cleanTokens(6, 5),
                  .options = {.sampling = {.temperature = 3, .seed = 1},
                              .maxTokens = 4,
                              .stopAtStopIds = false},
                  .answers = 3};
  const auto stream = submit(request);
  std::vector<size_t> tokens(3);
  int ends = 0;
  while (const auto part = stream->next()) {
    tokens.at(part->answer) += part->tokens.size();
    ends += part->end.has_value();
  }
  EXPECT_EQ(ends, 3);
  EXPECT_THAT(tokens, testing::Each(4u));
}

TEST_F(AsyncEngineTest, AWaitEndsWhenNothingComes) {
  start({}, 1);
  const auto first = submit(greedy(cleanTokens(4, 5, 20), -1));
  const auto second = submit(greedy(cleanTokens(4, 6), 1));
  while (const auto part = second->next(0.0001)) {
  }
  allOf(*first);
  allOf(*second);
}

TEST_F(AsyncEngineTest, AStreamThatGoesCancels) {
  start({}, 1);
  {
    const auto running = submit(greedy(cleanTokens(4, 5, 25), -1));
    const auto waiting = submit(greedy(cleanTokens(4, 6, 25), -1));
    running->next();
  }
  waitUntilFree();
  EXPECT_EQ(engine->counts().finished, 2);
  const std::vector<int> prompt = cleanTokens(6, 5, 5);
  const auto stream = submit(greedy(prompt, 5));
  EXPECT_EQ(allOf(*stream).tokens, greedyAfter(prompt, 5));
}

TEST_F(AsyncEngineTest, WhatIsCancelledSaysSo) {
  start({.maxWaiting = 0}, 1);
  const auto first = submit(greedy(cleanTokens(4, 5, 25), 20));
  const auto second = submit(greedy(cleanTokens(4, 6, 25), 20));
  second->cancel();
  second->cancel();
  const AnswerPart all = allOf(*second);
  // It may have been faster.
  if (all.tokens.size() < 20)
    EXPECT_EQ(all.end->reason, StopReason::Cancelled);
  EXPECT_EQ(allOf(*first).tokens, greedyAfter(cleanTokens(4, 5, 25), 20));
}

TEST_F(AsyncEngineTest, WrongRequestsAreRefusedAtOnce) {
  const auto refused = engine->submit(greedy(cleanTokens(31, 5), 1));
  EXPECT_EQ(exitCode(refused.status()), ExitCode::Usage);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("31"));
}

TEST_F(AsyncEngineTest, AFullQueueRefusesAndGoesOn) {
  start({.maxWaiting = 2}, 1);
  Request four = greedy(cleanTokens(4, 5, 3), 3);
  four.answers = 4;
  const auto refused = engine->submit(four);
  EXPECT_EQ(exitCode(refused.status()), ExitCode::Memory);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("at most 3 answers that run or wait, 0 do"));
  const auto stream = submit(greedy(cleanTokens(4, 7, 3), 3));
  EXPECT_EQ(allOf(*stream).tokens, greedyAfter(cleanTokens(4, 7, 3), 3));
}

TEST_F(AsyncEngineTest, AnAnswerHasLeftItsPlaceWhenItsCallerIsToldOfItsEnd) {
  start({.maxWaiting = 1}, 1);
  const std::vector<int> prompt = cleanTokens(6, 5, 5);
  std::atomic<bool> isTold = false, isChecked = false;
  auto stream = engine->submit(greedy(prompt, 5), [&](const AnswerPart &part) {
    isTold = part.end.has_value();
    while (isTold && !isChecked)
      std::this_thread::yield();
  });
  ASSERT_TRUE(stream.ok());
  while (!isTold)
    std::this_thread::yield();
  EXPECT_EQ(engine->counts().running + engine->counts().waiting, 0);
  EXPECT_EQ(engine->counts().finished, 1);
  // All that may run and wait are taken, though the step has not ended.
  const auto next = submit(greedy(prompt, 5)), last = submit(greedy(prompt, 5));
  isChecked = true;
  EXPECT_EQ(allOf(*next).tokens, greedyAfter(prompt, 5));
  EXPECT_EQ(allOf(*last).tokens, greedyAfter(prompt, 5));
}

TEST_F(AsyncEngineTest, AnEngineThatGoesEndsItsRequestsWithAnError) {
  std::vector<std::unique_ptr<AnswerStream>> streams;
  for (int i = 0; i < 200; ++i)
    streams.push_back(submit(greedy(cleanTokens(4, 5 + i % 40, 27), -1)));
  engine.reset();
  int unfinished = 0;
  for (const auto &stream : streams) {
    const AnswerPart all = allOf(*stream);
    ASSERT_TRUE(all.end);
    if (all.end->status.ok())
      continue;
    ++unfinished;
    EXPECT_THAT(std::string(all.end->status.message()),
                HasSubstr("destroyed before the answer ended"));
  }
  EXPECT_GT(unfinished, 0);
  streams[0]->cancel();
}

TEST_F(AsyncEngineTest, AForkedChildIsToldSo) {
  const auto stream = submit(greedy(cleanTokens(4, 5, 25), -1));
  EXPECT_EXIT(
      {
        const auto refused = engine->submit(greedy({2}, 1));
        const auto part = stream->next();
        const bool isRight = exitCode(refused.status()) == ExitCode::Device &&
                             exitCode(part->end->status) == ExitCode::Device &&
                             !stream->next();
        engine.reset();
        // Not exit(): what the thread was in the middle of is lost.
        std::_Exit(isRight ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  allOf(*stream);
}

TEST_F(AsyncEngineTest, AForkedChildMayDropWhatThreadsOfItsParentWaitFor) {
  auto stream = submit(greedy(cleanTokens(4, 5, 3), 3));
  allOf(*stream);
  waitUntilFree();
  // The engine's thread waits for a request by now.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EXIT(
      {
        alarm(20);
        stream.reset();
        engine.reset();
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace llamac
