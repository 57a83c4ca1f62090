//===- CApiFixture.h - A model and an engine of C ---------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TESTS_CAPI_CAPIFIXTURE_H
#define LLAMAC_TESTS_CAPI_CAPIFIXTURE_H

#include "llamac/llamac.h"
#include "tests/engine/toy/ToyModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#define EXPECT_OK(CALL) EXPECT_EQ(CALL, LLAMAC_OK) << llamac_last_error()
#define ASSERT_OK(CALL) ASSERT_EQ(CALL, LLAMAC_OK) << llamac_last_error()
#define EXPECT_ERROR(CALL, CODE, WORDS)                                        \
  do {                                                                         \
    EXPECT_EQ(CALL, CODE);                                                     \
    EXPECT_THAT(llamac_last_error(), testing::HasSubstr(WORDS));               \
  } while (false)

namespace llamac::capi_test {

/// Clean tokens, and a last one after which logits are not finite.
inline std::vector<int> poisonedTokens(int size) {
  for (int first = 2; first < toy::vocab; ++first) {
    std::vector<int> tokens = toy::cleanTokens(size - 1, first);
    tokens.push_back(2);
    for (int &last = tokens.back(); last < toy::vocab; ++last)
      if (toy::hashOf(tokens) % toy::poison == 0)
        return tokens;
  }
  ADD_FAILURE() << "the toy model has no such tokens";
  return {2};
}

/// All parts of an answer.
struct Taken {
  std::vector<int32_t> tokens;
  std::string text;
  int ends = 0;
  llamac_end end = {}; ///< The last; without its texts.
  std::string message;
};

class CApiTest : public testing::Test {
protected:
  void SetUp() override {
    model = load(file);
    ASSERT_OK(llamac_engine_new(model, nullptr, &engine));
  }

  void TearDown() override {
    EXPECT_OK(llamac_engine_free(engine));
    EXPECT_OK(llamac_model_free(model));
  }

  static llamac_model *load(const toy::ToyPlanFile &plan,
                            int64_t sequences = 3) {
    llamac_options *options = nullptr;
    llamac_model *loaded = nullptr;
    EXPECT_OK(llamac_options_new(LLAMAC_FOR_MODEL, &options));
    EXPECT_OK(llamac_options_set_integer(options, "threads", 2));
    EXPECT_OK(llamac_options_set_integer(options, "sequences", sequences));
    EXPECT_OK(llamac_model_load(plan.path().c_str(), options, &loaded));
    EXPECT_OK(llamac_options_free(options));
    return loaded;
  }

  static llamac_options *requestOptions(int64_t maxTokens) {
    llamac_options *options = nullptr;
    EXPECT_OK(llamac_options_new(LLAMAC_FOR_REQUEST, &options));
    EXPECT_OK(llamac_options_set_integer(options, "max_tokens", maxTokens));
    return options;
  }

  /// Frees `options`.
  llamac_answer *submit(const std::vector<int32_t> &prompt,
                        llamac_options *options) {
    llamac_answer *answer = nullptr;
    EXPECT_OK(llamac_engine_submit(engine, prompt.data(), prompt.size(),
                                   options, &answer));
    EXPECT_OK(llamac_options_free(options));
    return answer;
  }
  llamac_answer *submit(const std::vector<int32_t> &prompt, int64_t maxTokens) {
    return submit(prompt, requestOptions(maxTokens));
  }

  /// Answers by their numbers.
  static std::map<int, Taken> takeAll(llamac_answer *answer) {
    std::map<int, Taken> all;
    const llamac_part *part = nullptr;
    while (llamac_answer_next(answer, -1, &part) == LLAMAC_OK && part) {
      Taken &taken = all[part->answer];
      taken.tokens.insert(taken.tokens.end(), part->tokens,
                          part->tokens + part->token_count);
      EXPECT_EQ(std::strlen(part->text), part->text_size);
      taken.text += part->text;
      if (!part->end)
        continue;
      ++taken.ends;
      taken.end = *part->end;
      taken.message = part->end->message;
    }
    int done = 0;
    EXPECT_OK(llamac_answer_done(answer, &done));
    EXPECT_EQ(done, 1);
    return all;
  }

  static Taken take(llamac_answer *answer) { return takeAll(answer)[0]; }

  llamac_counts counts() {
    llamac_counts now;
    EXPECT_OK(llamac_engine_count(engine, &now, sizeof(now)));
    return now;
  }

  void waitUntilFree() {
    while (counts().running + counts().waiting > 0)
      std::this_thread::yield();
    EXPECT_EQ(counts().free_pages, counts().pages);
  }

  toy::ToyPlanFile file;
  llamac_model *model = nullptr;
  llamac_engine *engine = nullptr;
};

} // namespace llamac::capi_test

#endif // LLAMAC_TESTS_CAPI_CAPIFIXTURE_H
