//===- SentencePieceTest.cpp - Llama 2's kind of tokenizer ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The library is the oracle, for the model file and for the same pieces in
// GGUF's form.
//
//===----------------------------------------------------------------------===//

#include "tests/frontends/tokenizer/SentencePieceTraining.h"
#include "tests/frontends/tokenizer/TokenizerFixtures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llamac::test {

using testing::ElementsAre;

namespace {

class SentencePiece : public testing::Test {
protected:
  static void SetUpTestSuite() {
    std::vector<std::string> sentences;
    for (int i = 0; i < 50; ++i)
      sentences.insert(sentences.end(),
                       {"the quick brown fox jumps over the lazy dog",
                        "there is nothing to see here, they said",
                        "le c\xC5\x93ur a ses raisons que la raison ignore",
                        "return a + b; // the sum of both"});
    model = new std::string(trainSentencePiece(sentences, 600));
  }
  static void TearDownTestSuite() { delete model; }

  static inline const std::string *model = nullptr;
};

} // namespace

static const std::vector<std::string> texts = {
    "the quick fox",
    " there  is\tmore\nhere",
    "c\xC5\x93ur \xE4\xB8\xAD\xF0\x9F\x98\x80",
    "xyz",
    "a",
    " ",
    "   ",
    "bothering them, they over-reason",
    "<s> </s> <0x0A>"};

TEST_F(SentencePiece, ModelFileGivesTheLibrarysIds) {
  ASSERT_FALSE(model->empty());
  const auto tokenizer = load(buildSentencePieceBlob({"t.model", *model}));
  for (const std::string &text : texts) {
    const std::vector<int32_t> ids = encode(*tokenizer, text);
    EXPECT_EQ(ids, sentencePieceEncode(*model, text)) << text;
    EXPECT_EQ(tokenizer->decode(ids).value(), sentencePieceDecode(*model, ids));
    EXPECT_EQ(tokenizer->decode(ids).value(), text);
  }
}

TEST_F(SentencePiece, ControlTokensAreRecognisedOnlyWhereAsked) {
  const auto tokenizer = load(buildSentencePieceBlob({"t.model", *model}));
  EXPECT_THAT(encode(*tokenizer, "<s></s>", {.special = true}),
              ElementsAre(1, 2));
  EXPECT_GT(encode(*tokenizer, "<s></s>").size(), 2u);
  EXPECT_EQ(tokenizer->vocabulary().bosId(), 1);
  EXPECT_TRUE(tokenizer->vocabulary().flags().addBos);
  EXPECT_THAT(tokenizer->vocabulary().stopIds(), ElementsAre(2));
}

TEST_F(SentencePiece, ScoredPiecesOfGgufGiveTheLibrarysIds) {
  const SentencePiecePieces pieces = sentencePiecePieces(*model);
  GgufFixture fixture = scoredPieces();
  fixture.tokens = pieces.texts;
  fixture.scores = pieces.scores;
  // <unk>, <s>, </s> and the bytes lie as in Llama 2.
  fixture.types.assign(pieces.texts.size(), 1);
  fixture.types[0] = 2;
  fixture.types[1] = fixture.types[2] = 3;
  std::fill_n(fixture.types.begin() + 3, 256, 6);
  const auto tokenizer = load(buildGgufBlob(fixture.vocabulary()));
  for (const std::string &text : texts) {
    const std::vector<int32_t> ids = encode(*tokenizer, text);
    EXPECT_EQ(ids, sentencePieceEncode(*model, text)) << text;
    EXPECT_EQ(tokenizer->decode(ids).value(), text);
  }
}

TEST_F(SentencePiece, ADamagedModelIsRefused) {
  for (size_t size : {size_t{0}, size_t{1}, model->size() / 3}) {
    const absl::Status status =
        buildSentencePieceBlob({"t.model", model->substr(0, size)}).status();
    EXPECT_EQ(exitCode(status), ExitCode::BadFile) << size;
    EXPECT_EQ(status.message().substr(0, 10), "t.model:0:");
  }
}

} // namespace llamac::test
