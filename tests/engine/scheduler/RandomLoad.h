//===- RandomLoad.h - Thousands of requests at random -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Requests of mixed length, sampling, limits, priority and arrival, of which
// some are cancelled: each answer is compared with the one that its request has
// alone, on another engine, and of every second request also the bits of its
// log-probabilities.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_ENGINE_SCHEDULER_RANDOMLOAD_H
#define LLAMAC_TESTS_ENGINE_SCHEDULER_RANDOMLOAD_H

#include "engine/scheduler/Scheduler.h"
#include "runtime/base/Status.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>

namespace llamac::load {

struct Load {
  const char *name;
  int requests;
  int threads;
  int64_t sequences;
  double pages; ///< Share of what all sequences can use.
  bool window = false;
  bool cachesPrefixes = true;
  int mostTokens = 40; ///< Tokens of an answer.
  bool kinds = false;  ///< Whether rows differ by their kind.
  bool drafts = false; ///< Whether the model drafts for itself.
};

inline void PrintTo(const Load &load, std::ostream *out) { *out << load.name; }

/// How often as many requests a load has without sanitizers, which are slow.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr int sanitizerCost = 5;
#else
inline constexpr int sanitizerCost = 1;
#endif

/// Requests of which many begin alike.
class RandomRequests {
public:
  RandomRequests(const Model &model, int64_t longest, int mostTokens)
      : vocab(static_cast<int>(model.config().vocabSize)),
        longest(static_cast<int>(longest)), mostTokens(mostTokens),
        hasText(model.tokenizer()) {
    for (std::vector<int32_t> &beginning : beginnings)
      for (int i = 0; i < this->longest / 2; ++i)
        beginning.push_back(below(vocab));
  }

  int below(int end) { return static_cast<int>(random() % end); }

  Request next() {
    Request request;
    request.wantsText = hasText;
    // A beginning, and a rest that two requests may share.
    const std::vector<int32_t> &beginning = beginnings[below(3)];
    request.prompt.assign(beginning.begin(),
                          beginning.begin() + 1 + below(longest / 2));
    for (int i = below(longest / 4); i > 0; --i)
      request.prompt.push_back(below(3));
    const auto size = static_cast<int>(request.prompt.size());
    GenerateOptions &options = request.options;
    const int left = longest - size + 1;
    options.maxTokens = left <= mostTokens && below(4) == 0
                            ? -1
                            : 1 + below(std::min(left, mostTokens));
    if (below(2) == 0)
      options.sampling = {
          .temperature = 0.5 + below(4), .topK = below(6), .topP = 0.95};
    options.sampling.seed = random();
    // Answers that repeat themselves, but not always.
    if (below(3) == 0)
      options.sampling.logitBias = {{0, 90}, {1, 90}};
    if (below(2) == 0)
      options.sampling.logprobs = below(3);
    if (below(4) == 0)
      options.stopIds = {below(vocab), below(vocab)};
    if (hasText && below(4) == 0)
      options.stopStrings = {"a", "w5"};
    if (below(8) == 0)
      request.answers = 1 + below(4);
    if (below(4) == 0)
      request.speculative = below(mostDrafts + 2) - 1;
    request.priority = below(3) - 1;
    return request;
  }

private:
  std::mt19937 random{17};
  int vocab, longest, mostTokens;
  bool hasText;
  std::vector<int32_t> beginnings[3];
};

/// An answer, put together from its parts or run alone.
struct Got {
  std::vector<int32_t> tokens;
  std::vector<uint32_t> logprobs; ///< The bits of all that are given.
  std::string text;
  StopReason reason = StopReason::Cancelled;
  absl::Status status;
  bool hasEnded = false;
};

inline void append(std::vector<uint32_t> &bits,
                   const std::vector<TokenLogprobs> &logprobs) {
  for (const TokenLogprobs &of : logprobs) {
    bits.push_back(std::bit_cast<uint32_t>(of.chosen.logprob));
    for (const TokenLogprob &alternative : of.alternatives)
      bits.push_back(std::bit_cast<uint32_t>(alternative.logprob));
  }
}

/// Answer number `number` of `request`, run alone, token by token.
inline absl::Status runAlone(Engine &engine, const Request &request, int number,
                             Got &got) {
  GenerateOptions options = request.options;
  *options.sampling.seed += static_cast<uint64_t>(number);
  const Model &model = engine.model();
  const std::vector<int32_t> stopIds = stopIdsOf(options, model.stopIds());
  LLAMAC_ASSIGN_OR_RETURN(
      Sampler sampler,
      Sampler::create(options.sampling, stopIds, model.config().vocabSize));
  sampler.see(request.prompt);
  Answer answer(options, stopIds,
                model.context() + 1 -
                    static_cast<int64_t>(request.prompt.size()),
                request.wantsText, model.tokenizer());
  LLAMAC_ASSIGN_OR_RETURN(Sequence sequence, engine.newSequence());
  std::vector<int32_t> next = request.prompt;
  RowKind kind = RowKind::Prompt;
  while (!answer.ended()) {
    LLAMAC_ASSIGN_OR_RETURN(auto chosen,
                            engine.sample({{&sequence, next, &sampler, kind}}));
    kind = RowKind::Decode;
    LLAMAC_ASSIGN_OR_RETURN(const int32_t token, std::move(chosen[0]));
    next = {token};
    got.text += answer.add(token);
    const std::vector<TokenLogprobs> logprobs = sampler.takeLogprobs();
    if (answer.ended() != StopReason::StopId)
      append(got.logprobs, logprobs);
  }
  got.tokens = answer.ids();
  got.reason = *answer.ended();
  return absl::OkStatus();
}

inline Got aloneOf(Engine &engine, const Request &request, int number) {
  Got got;
  got.status = runAlone(engine, request, number, got);
  return got;
}

class RandomLoad {
public:
  RandomLoad(std::shared_ptr<const Model> model, const Load &load)
      : load(load), count(load.requests / sanitizerCost),
        alone(*Engine::create(model, {.batchInvariant = true})),
        requests(*model, std::min<int64_t>(model->context(), 200),
                 load.mostTokens) {
    const schema::KvLayoutT &kv = *model->plan().kv;
    const int64_t all = kv.pagesPerSequence * kv.maxSequences;
    scheduler = *Scheduler::create(
        std::move(model),
        {.kvPages = std::max(kv.pagesPerSequence,
                             static_cast<int64_t>(load.pages * all)),
         .batchInvariant = true,
         .cachesPrefixes = load.cachesPrefixes});
  }

  void run() {
    while (submitted < count || !scheduler->isIdle()) {
      // Arrivals in bursts, and quiet times.
      if (requests.below(8) == 0 &&
          scheduler->counts().waiting < 2 * load.sequences)
        for (int i = requests.below(24); i > 0 && submitted < count; --i)
          submit();
      if (!open.empty() && requests.below(12) == 0) {
        auto which = std::next(open.begin(),
                               requests.below(static_cast<int>(open.size())));
        which->second.isCancelled = true;
        scheduler->cancel(which->first);
      }
      scheduler->step();
      for (auto next = open.begin(); next != open.end();) {
        if (!std::ranges::all_of(next->second.answers, &Got::hasEnded)) {
          ++next;
          continue;
        }
        ASSERT_NO_FATAL_FAILURE(check(next->second))
            << "request " << next->first;
        next = open.erase(next);
      }
    }
    EXPECT_TRUE(open.empty());
    const SchedulerCounts counts = scheduler->counts();
    EXPECT_EQ(counts.running + counts.waiting, 0);
    EXPECT_EQ(counts.freePages, counts.pages);
    EXPECT_EQ(counts.finished, finished + cancelled + failed);
    EXPECT_EQ(counts.failed, failed);
    if (count < 100) // Too few to say.
      return;
    EXPECT_GT(finished, count / 4);
    EXPECT_GT(cancelled, count / 100);
    if (load.sequences <= 3) { // More leave few rows for drafts.
      EXPECT_GT(counts.accepted[0], 0);
      EXPECT_GT(counts.draftTokens, counts.accepted[0]);
    }
    if (load.pages < 1)
      EXPECT_GT(counts.preemptions, count / 100);
    if (load.cachesPrefixes)
      EXPECT_GT(counts.cachedTokens, count / 10);
  }

private:
  struct Open {
    Request request;
    std::vector<Got> answers;
    bool isCancelled = false;
  };

  void submit() {
    Request request = requests.next();
    const Scheduler::RequestId next = ++submitted;
    open[next] = {request, std::vector<Got>(request.answers)};
    const auto id = scheduler->submit(
        std::move(request), [this, next](const AnswerPart &part) {
          Got &answer =
              open.at(next).answers.at(static_cast<size_t>(part.answer));
          EXPECT_FALSE(answer.hasEnded);
          answer.tokens.insert(answer.tokens.end(), part.tokens.begin(),
                               part.tokens.end());
          answer.text += part.text;
          append(answer.logprobs, part.logprobs);
          if (part.end) {
            answer.hasEnded = true;
            answer.reason = part.end->reason;
            answer.status = part.end->status;
          }
        });
    ASSERT_TRUE(id.ok()) << id.status();
    ASSERT_EQ(*id, next);
  }

  void check(const Open &of) {
    for (int number = 0; number < of.request.answers; ++number) {
      const Got &answer = of.answers[static_cast<size_t>(number)];
      const Got expected = aloneOf(*alone, of.request, number);
      if (answer.reason == StopReason::Cancelled && answer.status.ok()) {
        ASSERT_TRUE(of.isCancelled);
        ++cancelled;
        // A cancelled answer is right as far as it came.
        if (expected.status.ok()) {
          ASSERT_LE(answer.tokens.size(), expected.tokens.size());
          ASSERT_TRUE(std::equal(answer.tokens.begin(), answer.tokens.end(),
                                 expected.tokens.begin()));
        }
        continue;
      }
      ASSERT_EQ(answer.status, expected.status);
      ++(answer.status.ok() ? finished : failed);
      if (!answer.status.ok())
        continue;
      ASSERT_EQ(answer.tokens, expected.tokens);
      ASSERT_EQ(answer.text, expected.text);
      ASSERT_EQ(answer.logprobs, expected.logprobs);
      ASSERT_EQ(answer.reason, expected.reason);
    }
  }

  Load load;
  int count; ///< The number of requests.
  std::unique_ptr<Engine> alone;
  RandomRequests requests;
  std::unique_ptr<Scheduler> scheduler;
  std::map<Scheduler::RequestId, Open> open;
  int submitted = 0, cancelled = 0, failed = 0, finished = 0;
};

} // namespace llamac::load

#endif // LLAMAC_TESTS_ENGINE_SCHEDULER_RANDOMLOAD_H
