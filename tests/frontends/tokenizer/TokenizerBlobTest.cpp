//===- TokenizerBlobTest.cpp - Blobs that were damaged --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/frontends/tokenizer/TokenizerFixtures.h"
#include "text/tokenizer/TokenizerBlobLayout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>

namespace llamac::test {

using testing::HasSubstr;

static std::string goodBlob() {
  return buildTiktokenBlob({"t.model", joinLines(tiktokenLines())}).value();
}

static std::string piecesBlob() {
  return buildGgufBlob(scoredPieces().vocabulary()).value();
}

static blob::Header header(const std::string &bytes) {
  blob::Header out;
  std::memcpy(&out, bytes.data(), sizeof(out));
  return out;
}

// `bytes` with the u32 number `index` of a section replaced.
static std::string withNumber(std::string bytes, BlobSection section,
                              size_t index, uint32_t value) {
  const auto &extent = header(bytes).sections[static_cast<size_t>(section)];
  std::memcpy(&bytes[extent.offset + index * sizeof(value)], &value,
              sizeof(value));
  return bytes;
}

static std::string withHeader(std::string bytes,
                              void (*damage)(blob::Header &header)) {
  blob::Header out = header(bytes);
  damage(out);
  std::memcpy(bytes.data(), &out, sizeof(out));
  return bytes;
}

static void expectBadPlan(const std::string &bytes, const char *message) {
  const absl::Status status = loadTokenizer(absl::string_view(bytes)).status();
  EXPECT_EQ(exitCode(status), ExitCode::BadPlan);
  EXPECT_THAT(std::string(status.message()), HasSubstr(message));
}

TEST(TokenizerBlob, KeepsWhatItWasMadeOf) {
  const std::string bytes = goodBlob();
  const TokenizerBlob blob = TokenizerBlob::parse(bytes).value();
  EXPECT_EQ(blob.vocabSize(), 265u + 256u);
  EXPECT_EQ(blob.tokenBytes(260), " the");
  EXPECT_EQ(blob.findToken(" the"), 260u);
  EXPECT_EQ(blob.findToken("<|eot_id|>"), std::nullopt);
  ASSERT_TRUE(blob.findMerge(256, 'c').has_value());
  EXPECT_EQ(blob.findMerge(256, 'c')->result, 257u);
  EXPECT_FALSE(blob.findMerge('c', 256).has_value());
  EXPECT_EQ(blob.specialIds().size(), 256u);
  EXPECT_EQ(blob.longestToken(), strlen("<|reserved_special_token_100|>"));
}

TEST(TokenizerBlob, RefusesADamagedHeader) {
  const std::string good = goodBlob();
  expectBadPlan("", "size: expected at least");
  expectBadPlan(withHeader(good, [](auto &h) { h.magic[0] = 'X'; }), "magic");
  expectBadPlan(withHeader(good, [](auto &h) { h.kind = 4; }), "kind");
  expectBadPlan(withHeader(good,
                           [](auto &h) {
                             h.preTokenizer =
                                 static_cast<uint32_t>(lastPreTokenizer) + 1;
                           }),
                "pre-tokenizer");
  expectBadPlan(withHeader(good, [](auto &h) { h.flags = 64; }), "flags");
  expectBadPlan(withHeader(good, [](auto &h) { h.vocabSize = 0; }),
                "vocabulary size: expected 1 to");
  expectBadPlan(withHeader(good, [](auto &h) { h.vocabSize += 1; }),
                "token offsets: expected");
  expectBadPlan(withHeader(good, [](auto &h) { h.bosId = 521; }),
                "special id: expected an id below 521, got 521");
  expectBadPlan(withHeader(good, [](auto &h) { h.eosId = -2; }),
                "special id: expected an id below 521, got -2");
  expectBadPlan(
      withHeader(good, [](auto &h) { h.sections[3].offset = UINT64_MAX; }),
      "section 3: expected an extent inside");
  expectBadPlan(
      withHeader(good, [](auto &h) { h.sections[3].size = UINT64_MAX; }),
      "section 3: expected an extent inside");
  // Scores are needed by the other kind alone.
  expectBadPlan(withHeader(good, [](auto &h) { h.kind = 1; }), "scores");
  expectBadPlan(withHeader(good, [](auto &h) { h.kind = 2; }), "SentencePiece");
}

TEST(TokenizerBlob, RefusesDamagedTables) {
  const std::string good = goodBlob();
  expectBadPlan(withNumber(good, BlobSection::TokenOffsets, 5, 1 << 30),
                "offset of token 6");
  expectBadPlan(withNumber(good, BlobSection::TokenOffsets, 521, 1 << 30),
                "token bytes");
  expectBadPlan(withNumber(good, BlobSection::TokenTypes, 0, 0xFFFFFFFF),
                "type of token 0");
  expectBadPlan(withNumber(good, BlobSection::TokenIndex, 0, 521),
                "token index: expected an id below 521, got 521");
  expectBadPlan(withNumber(good, BlobSection::SpecialIds, 0, 521),
                "special ids");
  expectBadPlan(withNumber(good, BlobSection::SpecialMarks, 0, 0xFFFFFFFF),
                "special marks");
  expectBadPlan(withNumber(good, BlobSection::StopIds, 0, 521), "stop ids");
  for (size_t field : {0, 1, 3}) {
    std::string bad = good;
    for (size_t slot = 0; slot < 16; ++slot)
      bad = withNumber(bad, BlobSection::Merges, 4 * slot + field, 521);
    expectBadPlan(bad, "merge: expected ids below 521");
  }
  expectBadPlan(withNumber(piecesBlob(), BlobSection::Scores, 7, 0x7FC00000),
                "score of token 7");
}

TEST(TokenizerBlob, RefusesDamagedChatTemplates) {
  GgufFixture fixture;
  fixture.chatTemplates = {{"a", "1234567"}, {"b", "x"}};
  const std::string good = buildGgufBlob(fixture.vocabulary()).value();
  constexpr BlobSection section = BlobSection::ChatTemplates;
  // The second one's sizes are behind 16 bytes of sizes, a name and 7 bytes.
  expectBadPlan(withNumber(good, section, 1, 1),
                "chat template: expected name and text in 26 bytes");
  expectBadPlan(withNumber(good, section, 3, UINT32_MAX),
                "chat template: expected name and text in 26 bytes");
  expectBadPlan(withNumber(good, section, 6 + 2, 3),
                "chat template: expected name and text in 2 bytes");
  expectBadPlan(withNumber(good, section, 6, 0),
                "chat templates: expected names in ascending order");
  expectBadPlan(withNumber(good, section, 2, 23),
                "chat templates: expected sizes of 16 bytes, got 2");
}

TEST(TokenizerBlob, RefusesATableWithoutAnEmptySlot) {
  std::string bad = goodBlob();
  const auto &extent =
      header(bad).sections[static_cast<size_t>(BlobSection::TokenIndex)];
  std::fill_n(bad.begin() + extent.offset, extent.size, '\0');
  expectBadPlan(bad, "token index: expected at most");
  expectBadPlan(
      withHeader(goodBlob(), [](auto &h) { h.sections[3].size = 12; }),
      "token index: expected a power of two");
  expectBadPlan(withHeader(goodBlob(), [](auto &h) { h.sections[4].size = 0; }),
                "merges: expected a power of two");
}

TEST(TokenizerBlob, RefusesATruncatedBlob) {
  const std::string good = goodBlob();
  for (size_t size = 0; size < good.size(); size += 7)
    EXPECT_EQ(
        exitCode(
            loadTokenizer(absl::string_view(good).substr(0, size)).status()),
        ExitCode::BadPlan)
        << size;
}

TEST(TokenizerBlob, AFlippedBitNeverLeadsOutOfBounds) {
  // Whatever still loads encodes and decodes without touching other memory,
  // which the sanitizers watch.
  for (std::string bytes : {goodBlob(), piecesBlob()}) {
    for (size_t bit = 0; bit < 8 * bytes.size(); bit += 11) {
      bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
      const auto tokenizer = loadTokenizer(absl::string_view(bytes));
      if (tokenizer.ok()) {
        const auto ids =
            (*tokenizer)
                ->encode("abc the 123<|eot_id|>\xFF", {.special = true});
        if (ids.ok())
          EXPECT_TRUE((*tokenizer)->decode(*ids).ok());
      }
      bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    }
  }
}

} // namespace llamac::test
