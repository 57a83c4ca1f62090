//===- CSequenceTest.cpp - Sequences and children of C --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/capi/CApiFixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace llamac {
namespace {

using capi_test::CApiTest;
using capi_test::poisonedTokens;
using toy::cleanTokens;

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

class CSequenceTest : public CApiTest {
protected:
  void SetUp() override {
    CApiTest::SetUp();
    ASSERT_OK(llamac_sequence_new(model, &sequence));
  }

  void TearDown() override {
    EXPECT_OK(llamac_sequence_free(sequence));
    CApiTest::TearDown();
  }

  llamac_code step(const std::vector<int> &tokens, llamac_rows rows,
                   llamac_logits **logits) {
    return llamac_sequence_step(sequence, tokens.data(), tokens.size(), rows,
                                logits);
  }

  int64_t length() {
    int64_t tokens = -1;
    EXPECT_OK(llamac_sequence_length(sequence, &tokens));
    return tokens;
  }

  /// Expects the logits after tokens [first, first + rows) of `tokens`, and
  /// frees them.
  static void expectLogits(llamac_logits *logits,
                           const std::vector<int> &tokens, size_t first,
                           size_t rows) {
    const float *data = nullptr;
    size_t count = 0, columns = 0;
    ASSERT_OK(llamac_logits_data(logits, &data, &count, &columns));
    ASSERT_EQ(count, rows);
    ASSERT_EQ(columns, static_cast<size_t>(toy::vocab));
    for (size_t row = 0; row < rows; ++row) {
      const auto end = tokens.begin() + static_cast<int64_t>(first + row) + 1;
      const unsigned hash = toy::hashOf({tokens.begin(), end});
      for (int id = 0; id < toy::vocab - 1; ++id)
        EXPECT_EQ(data[row * columns + id], toy::logitOf(hash, id, 0)) << id;
    }
    EXPECT_OK(llamac_logits_free(logits));
  }

  llamac_sequence *sequence = nullptr;
};

TEST_F(CSequenceTest, StepsGiveTheRowsThatAreAskedFor) {
  const std::vector<int> tokens = cleanTokens(20, 5);
  const auto part = [&](int first, int last) {
    return std::vector<int>(tokens.begin() + first, tokens.begin() + last);
  };
  llamac_logits *logits = nullptr;
  ASSERT_OK(step(part(0, 12), LLAMAC_ALL_ROWS, &logits));
  expectLogits(logits, tokens, 0, 12);
  ASSERT_OK(step(part(12, 15), LLAMAC_NO_ROWS, &logits));
  EXPECT_EQ(logits, nullptr);
  ASSERT_OK(step(part(15, 20), LLAMAC_LAST_ROW, &logits));
  EXPECT_EQ(length(), 20);
  int64_t left = 0;
  ASSERT_OK(llamac_sequence_truncate(sequence, 13, &left));
  EXPECT_EQ(left, 13);
  expectLogits(logits, tokens, 19, 1);
  ASSERT_OK(step(part(13, 20), LLAMAC_ALL_ROWS, &logits));
  expectLogits(logits, tokens, 13, 7);
}

TEST_F(CSequenceTest, LogitsOutliveAllElse) {
  const std::vector<int> tokens = cleanTokens(5, 5);
  llamac_logits *logits = nullptr;
  ASSERT_OK(step(tokens, LLAMAC_ALL_ROWS, &logits));
  EXPECT_OK(llamac_sequence_free(sequence));
  EXPECT_OK(llamac_engine_free(engine));
  EXPECT_OK(llamac_model_free(model));
  sequence = nullptr;
  engine = nullptr;
  model = nullptr;
  expectLogits(logits, tokens, 0, 5);
}

TEST_F(CSequenceTest, AFailedStepLeavesTheSequenceAsItWas) {
  std::vector<int> tokens = poisonedTokens(6);
  const int poisoned = tokens.back();
  tokens.pop_back();
  llamac_logits *logits = nullptr;
  ASSERT_OK(step(tokens, LLAMAC_NO_ROWS, &logits));
  EXPECT_ERROR(step({poisoned}, LLAMAC_LAST_ROW, &logits), LLAMAC_ACCURACY,
               "finite");
  EXPECT_EQ(logits, nullptr);
  EXPECT_EQ(length(), 5);
  EXPECT_ERROR(step(cleanTokens(26, 5), LLAMAC_ALL_ROWS, &logits), LLAMAC_USAGE,
               "31 tokens");
  EXPECT_ERROR(step(std::vector<int>(100, 5), LLAMAC_ALL_ROWS, &logits),
               LLAMAC_USAGE, "105 tokens");
  EXPECT_ERROR(step({96}, LLAMAC_LAST_ROW, &logits), LLAMAC_USAGE, "96");
  EXPECT_ERROR(step({}, LLAMAC_LAST_ROW, &logits), LLAMAC_USAGE,
               "at least one");
  int64_t left = 0;
  EXPECT_ERROR(llamac_sequence_truncate(sequence, 6, &left), LLAMAC_USAGE,
               "expected 0 to 5, got 6");
  tokens.push_back(2);
  while (toy::isPoisoned(tokens))
    ++tokens.back();
  ASSERT_OK(step({tokens.back()}, LLAMAC_LAST_ROW, &logits));
  expectLogits(logits, tokens, 5, 1);
}

TEST_F(CSequenceTest, AModelHasAsManySequencesAsItWasLoadedFor) {
  llamac_sequence *more[2], *tooMany = nullptr;
  for (llamac_sequence *&each : more)
    ASSERT_OK(llamac_sequence_new(model, &each));
  EXPECT_ERROR(llamac_sequence_new(model, &tooMany), LLAMAC_MEMORY, "3");
  EXPECT_OK(llamac_sequence_free(more[0]));
  EXPECT_OK(llamac_sequence_new(model, &more[0]));
  for (llamac_sequence *each : more)
    EXPECT_OK(llamac_sequence_free(each));
}

TEST_F(CSequenceTest, ThreadsStepSequencesOfOneModel) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread)
    threads.emplace_back([&, thread] {
      llamac_sequence *own = nullptr;
      ASSERT_OK(llamac_sequence_new(model, &own));
      const std::vector<int> tokens = cleanTokens(20, 5 + thread);
      for (size_t i = 0; i < tokens.size(); ++i) {
        llamac_logits *logits = nullptr;
        ASSERT_OK(
            llamac_sequence_step(own, &tokens[i], 1, LLAMAC_LAST_ROW, &logits));
        expectLogits(logits, tokens, i, 1);
      }
      EXPECT_OK(llamac_sequence_free(own));
    });
  for (std::thread &thread : threads)
    thread.join();
}

//===----------------------------------------------------------------------===//
// Children
//===----------------------------------------------------------------------===//

TEST_F(CSequenceTest, AForkedChildIsToldSo) {
  const std::vector<int> prompt = cleanTokens(4, 5, 25);
  llamac_answer *answer = submit(prompt, -1);
  llamac_queue *queue = nullptr;
  ASSERT_OK(llamac_queue_new(&queue));
  EXPECT_OK(llamac_queue_add(queue, answer));
  EXPECT_EXIT(
      {
        const auto expect = [](bool isRight, int line) {
          if (!isRight)
            std::_Exit(line % 256);
        };
        const int32_t *tokens = nullptr;
        size_t count = 0;
        expect(llamac_model_encode(model, "ab", 2, 0, &tokens, &count) ==
                   LLAMAC_OK,
               __LINE__);
        llamac_answer *other = nullptr;
        expect(llamac_engine_submit(engine, prompt.data(), 4, nullptr,
                                    &other) == LLAMAC_DEVICE,
               __LINE__);
        llamac_engine *created = nullptr;
        expect(llamac_engine_new(model, nullptr, &created) == LLAMAC_DEVICE,
               __LINE__);
        llamac_counts now;
        expect(llamac_engine_count(engine, &now, sizeof(now)) == LLAMAC_DEVICE,
               __LINE__);
        const llamac_part *part = nullptr;
        expect(llamac_answer_next(answer, -1, &part) == LLAMAC_OK && part &&
                   part->end && part->end->code == LLAMAC_DEVICE,
               __LINE__);
        expect(llamac_queue_next(queue, -1, &other) == LLAMAC_DEVICE, __LINE__);
        int64_t tokensLeft = 0;
        expect(llamac_sequence_length(sequence, &tokensLeft) == LLAMAC_DEVICE,
               __LINE__);
        llamac_logits *logits = nullptr;
        expect(llamac_sequence_step(sequence, prompt.data(), 1, LLAMAC_LAST_ROW,
                                    &logits) == LLAMAC_DEVICE,
               __LINE__);
        expect(llamac_queue_free(queue) == LLAMAC_OK, __LINE__);
        expect(llamac_answer_free(answer) == LLAMAC_OK, __LINE__);
        expect(llamac_sequence_free(sequence) == LLAMAC_OK, __LINE__);
        expect(llamac_engine_free(engine) == LLAMAC_OK, __LINE__);
        expect(llamac_model_free(model) == LLAMAC_OK, __LINE__);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
  take(answer);
  EXPECT_OK(llamac_answer_free(answer));
  EXPECT_OK(llamac_queue_free(queue));
}

} // namespace
} // namespace llamac
