//===- CApiTest.cpp - The functions of C ----------------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/TemporaryFolder.h"
#include "tests/capi/CApiFixture.h"

#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <poll.h>
#include <string>
#include <thread>
#include <vector>

namespace llamac {
namespace {

using capi_test::CApiTest;
using capi_test::poisonedTokens;
using capi_test::Taken;
using testing::HasSubstr;
using toy::cleanTokens;
using toy::greedyAfter;
using toy::ToyPlanFile;

//===----------------------------------------------------------------------===//
// Handles
//===----------------------------------------------------------------------===//

TEST_F(CApiTest, NullHandlesAreUsageErrorsAndFreeTakesThem) {
  int done = 1;
  EXPECT_ERROR(llamac_answer_done(nullptr, &done), LLAMAC_USAGE,
               "answer: expected an open handle, got NULL");
  EXPECT_EQ(done, 0);
  llamac_engine *created = engine;
  EXPECT_ERROR(llamac_engine_new(nullptr, nullptr, &created), LLAMAC_USAGE,
               "model: expected an open handle");
  EXPECT_EQ(created, nullptr);
  EXPECT_OK(llamac_model_free(nullptr));
  EXPECT_OK(llamac_options_free(nullptr));
  EXPECT_OK(llamac_engine_free(nullptr));
  EXPECT_OK(llamac_answer_free(nullptr));
  EXPECT_OK(llamac_queue_free(nullptr));
  EXPECT_OK(llamac_sequence_free(nullptr));
  EXPECT_OK(llamac_logits_free(nullptr));
}

TEST_F(CApiTest, NullResultsAreUsageErrors) {
  EXPECT_ERROR(llamac_model_load(file.path().c_str(), nullptr, nullptr),
               LLAMAC_USAGE, "model: expected a pointer, got NULL");
  llamac_model *loaded = nullptr;
  EXPECT_ERROR(llamac_model_load(nullptr, nullptr, &loaded), LLAMAC_USAGE,
               "path: expected a pointer");
  llamac_answer *answer = nullptr;
  EXPECT_ERROR(llamac_engine_submit(engine, nullptr, 1, nullptr, &answer),
               LLAMAC_USAGE, "tokens: expected a pointer");
  EXPECT_ERROR(llamac_engine_submit(engine, nullptr, 0, nullptr, &answer),
               LLAMAC_USAGE, "at least one token");
}

TEST_F(CApiTest, AClosedHandleIsFoundOut) {
  llamac_answer *answer = submit(cleanTokens(4, 5, 3), 3);
  EXPECT_OK(llamac_answer_free(answer));
  const llamac_part *part = nullptr;
  EXPECT_ERROR(llamac_answer_next(answer, -1, &part), LLAMAC_USAGE,
               "answer: expected an open handle, got one that was closed");
  EXPECT_ERROR(llamac_answer_free(answer), LLAMAC_USAGE, "closed");
  EXPECT_ERROR(llamac_answer_cancel(answer), LLAMAC_USAGE, "closed");
}

TEST_F(CApiTest, AHandleOfAnotherTypeIsFoundOut) {
  EXPECT_ERROR(llamac_queue_free(reinterpret_cast<llamac_queue *>(engine)),
               LLAMAC_USAGE,
               "queue: expected a handle of that type, got one of type engine");
  int local = 0;
  EXPECT_ERROR(llamac_queue_free(reinterpret_cast<llamac_queue *>(&local)),
               LLAMAC_USAGE, "no function returned");
}

TEST_F(CApiTest, TheLastErrorIsTheThreads) {
  EXPECT_ERROR(llamac_model_free(reinterpret_cast<llamac_model *>(engine)),
               LLAMAC_USAGE, "engine");
  std::thread([] { EXPECT_STREQ(llamac_last_error(), ""); }).join();
  EXPECT_THAT(llamac_last_error(), HasSubstr("engine"));
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

TEST_F(CApiTest, OptionsOfEachScopeAreListedAndCanBeSet) {
  for (const llamac_scope scope :
       {LLAMAC_FOR_MODEL, LLAMAC_FOR_ENGINE, LLAMAC_FOR_REQUEST}) {
    llamac_options *options = nullptr;
    ASSERT_OK(llamac_options_new(scope, &options));
    size_t count = 0;
    while (const llamac_option *option = llamac_option_at(scope, count)) {
      SCOPED_TRACE(option->name);
      EXPECT_NE(option->help[0], '\0');
      const int32_t token = 1;
      const float weight = 1;
      const llamac_code codes[] = {
          llamac_options_set_integer(options, option->name, 1),
          llamac_options_set_number(options, option->name, 0.5),
          llamac_options_set_text(options, option->name, "x"),
          llamac_options_add_text(options, option->name, "x"),
          llamac_options_set_tokens(options, option->name, &token, 1),
          llamac_options_set_weights(options, option->name, &token, &weight,
                                     1)};
      // Setters that fit, by kind: booleans and integers, numbers, texts, ...
      static constexpr int setters[][6] = {
          {1, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0}, {1, 1, 0, 0, 0, 0},
          {0, 0, 1, 0, 0, 0}, {0, 0, 0, 1, 0, 0}, {0, 0, 0, 0, 1, 0},
          {0, 0, 0, 0, 0, 1}, {1, 0, 0, 0, 0, 0}};
      for (int i = 0; i < 6; ++i)
        EXPECT_EQ(codes[i], setters[option->kind][i] ? LLAMAC_OK : LLAMAC_USAGE)
            << i;
      ++count;
    }
    EXPECT_GT(count, 3u);
    EXPECT_OK(llamac_options_free(options));
  }
}

TEST_F(CApiTest, OneGrammarAtMostIsTaken) {
  llamac_options *options = requestOptions(4);
  EXPECT_OK(llamac_options_set_text(options, "regex", "a+"));
  EXPECT_OK(llamac_options_set_integer(options, "json_object", 1));
  const int32_t token = 5;
  llamac_answer *answer = nullptr;
  EXPECT_ERROR(llamac_engine_submit(engine, &token, 1, options, &answer),
               LLAMAC_USAGE, "the only grammar of a request");
  EXPECT_OK(llamac_options_set_integer(options, "json_object", 0));
  EXPECT_OK(llamac_options_set_text(options, "regex", "("));
  EXPECT_NE(llamac_engine_submit(engine, &token, 1, options, &answer),
            LLAMAC_OK);
  EXPECT_EQ(answer, nullptr);
  EXPECT_OK(llamac_options_free(options));
}

TEST_F(CApiTest, WrongOptionsSayWhatIsExpected) {
  llamac_options *options = requestOptions(1);
  EXPECT_ERROR(llamac_options_set_number(options, "temprature", 1),
               LLAMAC_USAGE,
               "option temprature: expected one of a request: max_tokens, "
               "temperature");
  EXPECT_ERROR(llamac_options_set_number(options, "temprature", 1),
               LLAMAC_USAGE, "; did you mean temperature?");
  EXPECT_ERROR(llamac_options_set_text(options, "top_k", "5"), LLAMAC_USAGE,
               "option top_k: expected an integer, got a text");
  EXPECT_ERROR(llamac_options_set_integer(options, "ignore_eos", 2),
               LLAMAC_USAGE, "option ignore_eos: expected 0 or 1, got 2");
  EXPECT_ERROR(llamac_options_set_integer(options, "n", int64_t{1} << 40),
               LLAMAC_USAGE, "got 1099511627776");
  EXPECT_ERROR(llamac_options_set_integer(options, nullptr, 1), LLAMAC_USAGE,
               "name of the option");
  llamac_model *loaded = nullptr;
  EXPECT_ERROR(llamac_model_load(file.path().c_str(), options, &loaded),
               LLAMAC_USAGE,
               "expected those of a model, got those of a request");
  EXPECT_OK(llamac_options_free(options));
  EXPECT_ERROR(llamac_options_new(static_cast<llamac_scope>(7), &options),
               LLAMAC_USAGE, "got 7");
}

TEST_F(CApiTest, NumbersOutOfRangeAreErrorsThatNameTheOption) {
  const int32_t token = 5;
  for (const llamac_scope scope :
       {LLAMAC_FOR_MODEL, LLAMAC_FOR_ENGINE, LLAMAC_FOR_REQUEST}) {
    for (size_t i = 0; const llamac_option *option = llamac_option_at(scope, i);
         ++i) {
      SCOPED_TRACE(option->name);
      for (const int64_t value : {INT64_MIN, INT64_MAX}) {
        // Temperatures, limits of time and top_k may be large, and any seed is
        // one.
        if (option->kind != LLAMAC_INTEGER && option->kind != LLAMAC_NUMBER)
          continue;
        if (value > 0 && (option->kind == LLAMAC_NUMBER ||
                          absl::string_view(option->name) == "top_k"))
          continue;
        llamac_options *options = nullptr;
        ASSERT_OK(llamac_options_new(scope, &options));
        llamac_code code =
            llamac_options_set_integer(options, option->name, value);
        llamac_answer *answer = nullptr;
        if (code == LLAMAC_OK && scope == LLAMAC_FOR_REQUEST)
          code = llamac_engine_submit(engine, &token, 1, options, &answer);
        EXPECT_EQ(code, LLAMAC_USAGE) << value;
        EXPECT_THAT(llamac_last_error(), testing::HasSubstr(option->name))
            << value;
        EXPECT_EQ(answer, nullptr);
        EXPECT_OK(llamac_options_free(options));
      }
    }
  }
}

TEST_F(CApiTest, OptionsCanBeUsedAgainAndChanged) {
  const std::vector<int> prompt = cleanTokens(4, 5, 6);
  llamac_options *options = requestOptions(2);
  llamac_answer *answers[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK(llamac_engine_submit(engine, prompt.data(), prompt.size(),
                                   options, &answers[i]));
    EXPECT_OK(llamac_options_set_integer(options, "max_tokens", 5));
  }
  EXPECT_OK(llamac_options_free(options));
  EXPECT_EQ(take(answers[0]).tokens, greedyAfter(prompt, 2));
  EXPECT_EQ(take(answers[1]).tokens, greedyAfter(prompt, 5));
  for (llamac_answer *answer : answers)
    EXPECT_OK(llamac_answer_free(answer));
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

TEST_F(CApiTest, AModelIsDescribed) {
  const llamac_model_description *description = nullptr;
  ASSERT_OK(llamac_model_describe(model, &description));
  EXPECT_EQ(description->path, file.path());
  EXPECT_STREQ(description->target, "cpu");
  EXPECT_THAT(description->device, HasSubstr("2 threads"));
  EXPECT_EQ(description->context, toy::context);
  EXPECT_EQ(description->sequences, 3);
  EXPECT_EQ(description->vocab_size, toy::vocab);
  EXPECT_EQ(description->tokenizer_size, toy::vocab);
  EXPECT_EQ(description->bos_id, 0);
  ASSERT_EQ(description->stop_id_count, 1u);
  EXPECT_EQ(description->stop_ids[0], 1);
}

TEST_F(CApiTest, TextBecomesTokensAndText) {
  const std::string text = "ab </s>";
  const auto encode = [&](unsigned flags) {
    const int32_t *tokens = nullptr;
    size_t count = 0;
    EXPECT_OK(llamac_model_encode(model, text.data(), text.size(), flags,
                                  &tokens, &count));
    return std::vector<int32_t>(tokens, tokens + count);
  };
  const auto decode = [&](const std::vector<int32_t> &tokens, unsigned flags) {
    const char *bytes = nullptr;
    size_t size = 0;
    EXPECT_OK(llamac_model_decode(model, tokens.data(), tokens.size(), flags,
                                  &bytes, &size));
    EXPECT_EQ(bytes[size], '\0');
    return std::string(bytes, size);
  };
  const std::vector<int32_t> special = {0, 2, 3, 28, 1};
  EXPECT_EQ(encode(LLAMAC_SPECIAL), special);
  EXPECT_EQ(decode(special, LLAMAC_SPECIAL), "<s>ab </s>");
  EXPECT_EQ(decode(special, 0), "ab ");
  EXPECT_EQ(encode(LLAMAC_SPECIAL | LLAMAC_CONTINUES).front(), 2);
  EXPECT_NE(encode(0).back(), 1);

  const char *bytes = nullptr;
  size_t size = 0;
  ASSERT_OK(llamac_model_token(model, 29, &bytes, &size));
  EXPECT_EQ(std::string(bytes, size), toy::tokenText(29));
  EXPECT_ERROR(llamac_model_token(model, 96, &bytes, &size), LLAMAC_USAGE,
               "96");
  EXPECT_EQ(bytes, nullptr);
  const int32_t *tokens = nullptr;
  size_t count = 0;
  EXPECT_ERROR(llamac_model_encode(model, "a", 1, 4, &tokens, &count),
               LLAMAC_USAGE, "flags");
}

TEST_F(CApiTest, APlanThatIsNoneIsAnError) {
  llamac_model *loaded = nullptr;
  EXPECT_ERROR(llamac_model_load("no-such.plan", nullptr, &loaded),
               LLAMAC_BAD_FILE, "no-such.plan");
  EXPECT_ERROR(llamac_model_load("/", nullptr, &loaded), LLAMAC_BAD_PLAN,
               "llamac compile");
  EXPECT_EQ(loaded, nullptr);
}

TEST_F(CApiTest, WithoutATokenizerIdsAreTaken) {
  const ToyPlanFile plain(
      [](toy::ToyPlan &toy) { toy.plan.tokenizer.reset(); });
  EXPECT_OK(llamac_engine_free(engine));
  EXPECT_OK(llamac_model_free(model));
  model = load(plain);
  ASSERT_OK(llamac_engine_new(model, nullptr, &engine));
  llamac_answer *answer = nullptr;
  EXPECT_ERROR(llamac_engine_submit_text(engine, "a", 1, nullptr, &answer),
               LLAMAC_USAGE, "tokenizer");
  const char *bytes = nullptr;
  size_t size = 0;
  EXPECT_ERROR(llamac_model_token(model, 1, &bytes, &size), LLAMAC_USAGE,
               "tokenizer");
  const std::vector<int> prompt = cleanTokens(4, 5, 3);
  llamac_options *options = requestOptions(3);
  EXPECT_OK(llamac_options_set_integer(options, "detokenize", 0));
  answer = submit(prompt, options);
  EXPECT_EQ(take(answer).tokens, greedyAfter(prompt, 3));
  EXPECT_OK(llamac_answer_free(answer));
}

//===----------------------------------------------------------------------===//
// Answers
//===----------------------------------------------------------------------===//

TEST_F(CApiTest, AnAnswerHasItsTokensItsTextAndItsEnd) {
  const std::vector<int> prompt = cleanTokens(6, 5, 5);
  llamac_answer *answer = submit(prompt, 5);
  const Taken taken = take(answer);
  EXPECT_EQ(taken.tokens, greedyAfter(prompt, 5));
  EXPECT_EQ(taken.ends, 1);
  EXPECT_EQ(taken.end.code, LLAMAC_OK);
  EXPECT_EQ(taken.end.reason, LLAMAC_LENGTH);
  EXPECT_EQ(taken.end.prompt_tokens, 6);
  EXPECT_EQ(taken.end.answer_tokens, 5);
  EXPECT_GE(taken.end.seconds, taken.end.first_token_seconds);
  EXPECT_OK(llamac_answer_free(answer));
  waitUntilFree();
  EXPECT_EQ(counts().finished, 1);
}

TEST_F(CApiTest, TheAnswersOfARequestHaveNumbersAndSeeds) {
  llamac_options *options = requestOptions(4);
  EXPECT_OK(llamac_options_set_integer(options, "n", 3));
  EXPECT_OK(llamac_options_set_integer(options, "seed", -1));
  EXPECT_OK(llamac_options_set_integer(options, "ignore_eos", 1));
  EXPECT_OK(llamac_options_set_number(options, "temperature", 3));
  llamac_answer *answer = submit(cleanTokens(6, 5), options);
  std::map<int, Taken> all = takeAll(answer);
  ASSERT_EQ(all.size(), 3u);
  for (auto &[number, taken] : all) {
    EXPECT_EQ(taken.ends, 1);
    EXPECT_EQ(taken.tokens.size(), 4u);
    EXPECT_EQ(taken.end.seed, std::numeric_limits<uint64_t>::max() +
                                  static_cast<uint64_t>(number));
  }
  EXPECT_OK(llamac_answer_free(answer));
}

TEST_F(CApiTest, TokensComeWithTheirLogprobs) {
  const std::vector<int> prompt = cleanTokens(6, 5, 4);
  llamac_options *options = requestOptions(4);
  EXPECT_OK(llamac_options_set_integer(options, "logprobs", 2));
  const int32_t biased = 20;
  const float bias = -1;
  EXPECT_OK(
      llamac_options_set_weights(options, "logit_bias", &biased, &bias, 1));
  llamac_answer *answer = submit(prompt, options);
  const llamac_part *part = nullptr;
  size_t count = 0;
  while (llamac_answer_next(answer, -1, &part) == LLAMAC_OK && part) {
    for (size_t i = 0; i < part->token_count; ++i) {
      const llamac_token_logprobs &token = part->logprobs[i];
      EXPECT_EQ(token.chosen.token, part->tokens[i]);
      EXPECT_EQ(token.rank, 1);
      ASSERT_EQ(token.alternative_count, 2u);
      EXPECT_EQ(token.alternatives[0].token, part->tokens[i]);
      // Logits fall by a quarter from one to the next.
      EXPECT_NEAR(token.alternatives[1].logprob, token.chosen.logprob - 0.25,
                  1e-5);
      ++count;
    }
  }
  EXPECT_EQ(count, 4u);
  EXPECT_OK(llamac_answer_free(answer));
}

TEST_F(CApiTest, AnEngineThatGoesLeavesItsPrefixesToTheNext) {
  const TemporaryFolder folder;
  const std::string path = folder.file("prefixes");
  llamac_options *options = nullptr;
  ASSERT_OK(llamac_options_new(LLAMAC_FOR_ENGINE, &options));
  ASSERT_OK(llamac_options_set_text(options, "prefix_file", path.c_str()));
  const std::vector<int> prompt = cleanTokens(14, 5, 3);
  for (int64_t loaded : {0, 12}) {
    ASSERT_OK(llamac_engine_free(engine));
    ASSERT_OK(llamac_engine_new(model, options, &engine));
    llamac_answer *answer = submit(prompt, 3);
    const Taken taken = take(answer);
    EXPECT_EQ(taken.tokens, greedyAfter(prompt, 3));
    EXPECT_EQ(taken.end.cached_tokens, loaded);
    EXPECT_OK(llamac_answer_free(answer));
    waitUntilFree();
    EXPECT_EQ(counts().loaded_tokens, loaded);
  }
  EXPECT_OK(llamac_options_set_integer(options, "prefix_cache", 0));
  llamac_engine *other = nullptr;
  EXPECT_ERROR(llamac_engine_new(model, options, &other), LLAMAC_USAGE,
               "prefix file: expected it with the prefix cache");
  EXPECT_OK(llamac_options_free(options));
}

TEST_F(CApiTest, WhatCannotRunIsRefusedWithItsNumbers) {
  llamac_answer *answer = nullptr;
  const std::vector<int> tooLong = cleanTokens(31, 5);
  EXPECT_ERROR(llamac_engine_submit(engine, tooLong.data(), tooLong.size(),
                                    nullptr, &answer),
               LLAMAC_USAGE, "a prompt of 31");
  EXPECT_EQ(answer, nullptr);
  const int32_t unknown = 96;
  EXPECT_ERROR(llamac_engine_submit(engine, &unknown, 1, nullptr, &answer),
               LLAMAC_USAGE, "got 96");
  llamac_options *options = requestOptions(1);
  EXPECT_OK(llamac_options_set_number(options, "temperature", -1));
  const int32_t known = 5;
  EXPECT_ERROR(llamac_engine_submit(engine, &known, 1, options, &answer),
               LLAMAC_USAGE, "temperature");
  EXPECT_OK(llamac_options_free(options));
}

TEST_F(CApiTest, AnErrorOfAnAnswerIsItsEnd) {
  const std::vector<int> other = cleanTokens(6, 5, 5);
  llamac_answer *bad = submit(poisonedTokens(6), 2);
  llamac_answer *good = submit(other, 5);
  const Taken taken = take(bad);
  EXPECT_EQ(taken.end.code, LLAMAC_ACCURACY);
  EXPECT_THAT(taken.message, HasSubstr("finite"));
  EXPECT_EQ(take(good).tokens, greedyAfter(other, 5));
  EXPECT_OK(llamac_answer_free(bad));
  EXPECT_OK(llamac_answer_free(good));
}

TEST_F(CApiTest, AWaitEndsWhenNothingComes) {
  std::vector<llamac_answer *> running;
  for (int i = 0; i < 3; ++i)
    running.push_back(submit(cleanTokens(4, 5 + i, 25), -1));
  llamac_answer *answer = submit(cleanTokens(4, 9, 25), -1);
  const llamac_part *part = nullptr;
  EXPECT_OK(llamac_answer_next(answer, 0, &part));
  EXPECT_OK(llamac_answer_next(answer, 1e-4, &part));
  running.push_back(answer);
  for (llamac_answer *each : running)
    EXPECT_OK(llamac_answer_free(each));
  waitUntilFree();
}

TEST_F(CApiTest, AnswersOutliveTheirEngineAndModel) {
  std::vector<llamac_answer *> answers;
  for (int i = 0; i < 50; ++i)
    answers.push_back(submit(cleanTokens(4, 5 + i % 40, 25), -1));
  EXPECT_OK(llamac_model_free(model));
  EXPECT_OK(llamac_engine_free(engine));
  int unfinished = 0;
  for (llamac_answer *answer : answers) {
    const Taken taken = take(answer);
    EXPECT_EQ(taken.ends, 1);
    if (taken.end.code != LLAMAC_OK) {
      ++unfinished;
      EXPECT_EQ(taken.end.code, LLAMAC_USAGE);
      EXPECT_THAT(taken.message, HasSubstr("before the answer ended"));
    }
    EXPECT_OK(llamac_answer_cancel(answer));
    EXPECT_OK(llamac_answer_free(answer));
  }
  EXPECT_GT(unfinished, 0);
  model = nullptr;
  engine = nullptr;
}

TEST_F(CApiTest, AnAnswerThatIsFreedEndsTheWaitForIt) {
  std::vector<llamac_answer *> running;
  for (int i = 0; i < 40; ++i)
    running.push_back(submit(cleanTokens(4, 5 + i % 40, 25), -1));
  llamac_answer *last = running.back();
  std::thread waiting([&] {
    const llamac_part *part = nullptr;
    llamac_code code = LLAMAC_OK;
    do
      code = llamac_answer_next(last, -1, &part);
    while (code == LLAMAC_OK && part);
    EXPECT_TRUE(code == LLAMAC_OK || code == LLAMAC_USAGE);
  });
  for (llamac_answer *answer : running)
    EXPECT_OK(llamac_answer_free(answer));
  waiting.join();
}

TEST_F(CApiTest, ThreadsShareAnEngine) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 10; ++i) {
        const std::vector<int> prompt = cleanTokens(6, 5 + 4 * i + thread, 5);
        llamac_answer *answer = submit(prompt, 5);
        EXPECT_EQ(take(answer).tokens, greedyAfter(prompt, 5));
        EXPECT_OK(llamac_answer_free(answer));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

//===----------------------------------------------------------------------===//
// Conversations
//===----------------------------------------------------------------------===//

/// An engine whose template writes what the messages say, and a space.
class CChatTest : public CApiTest {
protected:
  void SetUp() override {
    CApiTest::SetUp();
    EXPECT_OK(llamac_engine_free(engine));
    ASSERT_OK(newEngine("{% for message in messages %}{{ message.content }}"
                        "{% endfor %} "));
  }

  llamac_code newEngine(const char *chatTemplate) {
    llamac_options *options = nullptr;
    EXPECT_OK(llamac_options_new(LLAMAC_FOR_ENGINE, &options));
    EXPECT_OK(llamac_options_set_text(options, "chat_template", chatTemplate));
    const llamac_code code = llamac_engine_new(model, options, &engine);
    EXPECT_EQ(llamac_options_free(options), LLAMAC_OK);
    return code;
  }

  llamac_code submitChat(const std::string &json,
                         const llamac_options *options = nullptr) {
    return llamac_engine_submit_chat(engine, json.data(), json.size(), options,
                                     &answer);
  }

  static std::string say(const std::string &content,
                         const std::string &others = "") {
    return absl::StrCat(R"({"messages": [{"role": "user", "content": ")",
                        content, R"("}])", others, "}");
  }

  llamac_answer *answer = nullptr;
};

TEST_F(CChatTest, AConversationIsThePromptThatItsTemplateWrites) {
  int letter = 2;
  std::vector<int> prompt, expected;
  do {
    prompt = {letter++, 28};
    expected = prompt;
    for (const int token : greedyAfter(prompt, 4))
      expected.push_back(token);
  } while (toy::isPoisoned(expected));
  llamac_options *options = requestOptions(2);
  ASSERT_OK(submitChat(say(toy::tokenText(prompt[0]), R"(, "max_tokens": 4)"),
                       options));
  EXPECT_OK(llamac_options_free(options));
  const llamac_part *part = nullptr;
  std::vector<int> tokens;
  std::string reason;
  while (llamac_answer_next(answer, -1, &part) == LLAMAC_OK && part) {
    tokens.insert(tokens.end(), part->tokens, part->tokens + part->token_count);
    EXPECT_EQ(part->call_count, 0u);
    if (part->end)
      reason = part->end->finish_reason;
  }
  // The conversation's fields go before the options.
  EXPECT_EQ(tokens, greedyAfter(prompt, 4));
  EXPECT_EQ(reason, "length");
  EXPECT_OK(llamac_answer_free(answer));
}

TEST_F(CChatTest, WhatIsWrongWithAConversationIsNamed) {
  EXPECT_ERROR(submitChat(R"({"messages": [{"role": "usr"}]})"), LLAMAC_USAGE,
               "messages[0]: role: expected one of system, developer");
  EXPECT_ERROR(submitChat(R"({"messages": [{"role": "user", "contnt": ""}]})"),
               LLAMAC_USAGE, "did you mean content?");
  EXPECT_ERROR(submitChat(R"({"messages": [5]})"), LLAMAC_USAGE,
               "messages: expected an array of objects, got one with 5 in it");
  EXPECT_ERROR(submitChat(say("a", R"(, "tool_choise": "auto")")), LLAMAC_USAGE,
               "did you mean tool_choice?");
  EXPECT_ERROR(submitChat(say("a", R"(, "temperature": "hot")")), LLAMAC_USAGE,
               "temperature: expected a finite number, got \"hot\"");
  EXPECT_ERROR(submitChat(say("a", R"(, "regex": "a",
                         "response_format": {"type": "json_object"})")),
               LLAMAC_USAGE, "the only grammar of a request");
  EXPECT_ERROR(submitChat(say("a", R"(, "parse_special": true)")), LLAMAC_USAGE,
               "parse_special: expected a prompt of text beside it");
  EXPECT_ERROR(submitChat("{"), LLAMAC_USAGE,
               "JSON: expected well-formed text");
  EXPECT_ERROR(submitChat("{}"), LLAMAC_USAGE,
               "messages: expected an array of messages, got none");
  EXPECT_EQ(answer, nullptr);
  EXPECT_ERROR(llamac_engine_submit_chat(engine, nullptr, 1, nullptr, &answer),
               LLAMAC_USAGE, "json: expected a pointer");
}

TEST_F(CChatTest, AnEngineWithoutATemplateRefusesConversations) {
  EXPECT_OK(llamac_engine_free(engine));
  EXPECT_ERROR(newEngine("{% if %}"), LLAMAC_USAGE, "option chat_template: ");
  EXPECT_EQ(engine, nullptr);
  ASSERT_OK(llamac_engine_new(model, nullptr, &engine));
  EXPECT_ERROR(submitChat(say("a")), LLAMAC_USAGE, "chat template");
}

//===----------------------------------------------------------------------===//
// Queues
//===----------------------------------------------------------------------===//

bool isReadable(llamac_queue *queue) {
  pollfd ready = {.fd = -1, .events = POLLIN, .revents = 0};
  EXPECT_OK(llamac_queue_fd(queue, &ready.fd));
  return poll(&ready, 1, 0) == 1;
}

TEST_F(CApiTest, AQueueBringsTheNewsOfAllItsAnswers) {
  llamac_queue *queue = nullptr;
  ASSERT_OK(llamac_queue_new(&queue));
  EXPECT_FALSE(isReadable(queue));
  std::map<llamac_answer *, std::vector<int>> expected, taken;
  for (int i = 0; i < 20; ++i) {
    const std::vector<int> prompt = cleanTokens(6, 5 + i, 5);
    llamac_answer *answer = submit(prompt, 5);
    EXPECT_OK(llamac_queue_add(queue, answer));
    EXPECT_TRUE(isReadable(queue));
    expected[answer] = greedyAfter(prompt, 5);
  }
  for (size_t left = expected.size(); left > 0;) {
    llamac_answer *answer = nullptr;
    ASSERT_OK(llamac_queue_next(queue, -1, &answer));
    const llamac_part *part = nullptr;
    while (llamac_answer_next(answer, 0, &part) == LLAMAC_OK && part) {
      taken[answer].insert(taken[answer].end(), part->tokens,
                           part->tokens + part->token_count);
      left -= part->end != nullptr;
    }
  }
  EXPECT_EQ(taken, expected);
  llamac_answer *none = nullptr;
  while (llamac_queue_next(queue, 0, &none) == LLAMAC_OK && none) {
  }
  EXPECT_FALSE(isReadable(queue));
  EXPECT_OK(llamac_queue_free(queue));
  for (const auto &[answer, tokens] : expected)
    EXPECT_OK(llamac_answer_free(answer));
}

TEST_F(CApiTest, AQueueLeavesOutAnswersThatWereFreedOrWentToAnother) {
  llamac_queue *first = nullptr, *second = nullptr;
  ASSERT_OK(llamac_queue_new(&first));
  ASSERT_OK(llamac_queue_new(&second));
  llamac_answer *freed = submit(cleanTokens(4, 5, 3), 3);
  llamac_answer *moved = submit(cleanTokens(4, 6, 3), 3);
  take(freed);
  take(moved);
  EXPECT_OK(llamac_queue_add(first, freed));
  EXPECT_OK(llamac_queue_add(first, moved));
  EXPECT_OK(llamac_answer_free(freed));
  EXPECT_OK(llamac_queue_add(second, moved));
  llamac_answer *next = nullptr;
  EXPECT_OK(llamac_queue_next(first, 0, &next));
  EXPECT_EQ(next, nullptr);
  EXPECT_FALSE(isReadable(first));
  EXPECT_OK(llamac_queue_next(second, 0, &next));
  EXPECT_EQ(next, moved);
  EXPECT_OK(llamac_queue_free(first));
  EXPECT_OK(llamac_queue_free(second));
  EXPECT_OK(llamac_answer_free(moved));
}

TEST_F(CApiTest, AQueueThatIsFreedEndsTheWaitForIt) {
  llamac_queue *queue = nullptr;
  ASSERT_OK(llamac_queue_new(&queue));
  std::thread waiting([&] {
    llamac_answer *answer = nullptr;
    EXPECT_EQ(llamac_queue_next(queue, -1, &answer), LLAMAC_USAGE);
  });
  EXPECT_OK(llamac_queue_free(queue));
  waiting.join();
}

} // namespace
} // namespace llamac
