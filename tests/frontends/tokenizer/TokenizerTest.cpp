//===- TokenizerTest.cpp - Text to ids and back ---------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/TemporaryFolder.h"
#include "tests/frontends/tokenizer/TokenizerFixtures.h"

#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace llamac::test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

static std::unique_ptr<Tokenizer> tiktoken() {
  const std::string text = joinLines(tiktokenLines());
  return load(buildTiktokenBlob({"tokenizer.model", text}));
}

static std::unique_ptr<Tokenizer>
huggingFace(const nlohmann::json &json,
            std::optional<std::string> config = std::nullopt,
            std::optional<std::string> generation = std::nullopt) {
  const std::string text = json.dump();
  HuggingFaceFiles files = {};
  files.tokenizer = {"tokenizer.json", text};
  if (config)
    files.tokenizerConfig = {"tokenizer_config.json", *config};
  if (generation)
    files.generationConfig = {"generation_config.json", *generation};
  return load(buildHuggingFaceBlob(files));
}

static std::unique_ptr<Tokenizer> gguf(const GgufFixture &fixture) {
  return load(buildGgufBlob(fixture.vocabulary()));
}

static std::string decode(const Tokenizer &tokenizer,
                          const std::vector<int32_t> &ids,
                          DecodeOptions options = {}) {
  absl::StatusOr<std::string> text = tokenizer.decode(ids, options);
  EXPECT_TRUE(text.ok()) << text.status().message();
  return text.value_or("");
}

//===----------------------------------------------------------------------===//
// Merging
//===----------------------------------------------------------------------===//

TEST(BytePair, LowestRankMergesFirst) {
  EXPECT_THAT(encode(*tiktoken(), "abc"), ElementsAre(257));
  EXPECT_THAT(encode(*tiktoken(), "bcab"), ElementsAre('b', 'c', 256));
}

TEST(BytePair, LeftmostOfEqualRanksMergesFirst) {
  // Two spaces are a token, three are not.
  EXPECT_THAT(encode(*tiktoken(), "   "), ElementsAre(263, ' '));
}

TEST(BytePair, WordsAreNotMergedAcross) {
  // " the" is a word, "he" inside it merges first; digits stop at three.
  EXPECT_THAT(encode(*tiktoken(), "a the"), ElementsAre('a', 260));
  EXPECT_THAT(encode(*tiktoken(), "12312"), ElementsAre(262, 261));
}

TEST(BytePair, ShortAndLongWordsMergeAlike) {
  // 200 pieces go through the heap, 10 through the search of all pairs.
  for (int pieces : {10, 200}) {
    std::string text;
    std::vector<int32_t> expected;
    for (int i = 0; i < pieces; ++i) {
      text += "abcab";
      expected.insert(expected.end(), {257, 256});
    }
    EXPECT_EQ(encode(*tiktoken(), text), expected) << pieces;
  }
}

TEST(BytePair, AWholeWordIsLookedUpFirstOnlyWhereTheFileSaysSo) {
  nlohmann::json json = huggingFaceJson();
  // Without the merge of "ab" and "c" the token "abc" is out of reach.
  json["model"]["merges"].erase(1);
  EXPECT_THAT(encode(*huggingFace(json), "abc"), ElementsAre(256, 'c'));
  json["model"]["ignore_merges"] = true;
  EXPECT_THAT(encode(*huggingFace(json), "abc"), ElementsAre(257));
}

TEST(BytePair, OneMebibyteOfOneCharacterComesBack) {
  for (const char *text : {"a", " ", "1", "\n", "\xE4\xB8\xAD"}) {
    std::string run;
    while (run.size() < (1 << 20))
      run += text;
    const std::unique_ptr<Tokenizer> tokenizer = tiktoken();
    EXPECT_TRUE(decode(*tokenizer, encode(*tokenizer, run)) == run);
  }
}

TEST(BytePair, BytesThatAreNotUtf8KeepTheirTokens) {
  EXPECT_THAT(encode(*tiktoken(), "\xFF\x80z"), ElementsAre(0xFF, 0x80, 'z'));
}

TEST(BytePair, GgufSkipsMergesOfUnknownTokens) {
  const GgufFixture whole;
  GgufFixture fixture;
  fixture.merges.push_back("zz b");
  fixture.merges.push_back("b a");
  EXPECT_EQ(encode(*gguf(fixture), "abba"), encode(*gguf(whole), "abba"));
}

TEST(BytePair, GgufEncodesBytesThatAreNotUtf8AsReplacementCharacters) {
  EXPECT_THAT(encode(*gguf({}), "\xFFz"), ElementsAre(0xEF, 0xBF, 0xBD, 'z'));
}

TEST(BytePair, AByteWithoutTokenIsSkippedOrUnknown) {
  nlohmann::json json = huggingFaceJson();
  json["model"]["vocab"].erase(spell("\x01"));
  EXPECT_THAT(encode(*huggingFace(json), "a\x01"
                                         "b"),
              ElementsAre('a', 'b'));
  json["model"]["unk_token"] = "<|eot_id|>";
  EXPECT_THAT(encode(*huggingFace(json), "a\x01"
                                         "b"),
              ElementsAre('a', 266, 'b'));
}

TEST(ScoredPieces, HighestScoreMergesFirstBehindASpace) {
  const std::unique_ptr<Tokenizer> tokenizer = gguf(scoredPieces());
  EXPECT_THAT(encode(*tokenizer, "ab"), ElementsAre(263));
  EXPECT_THAT(encode(*tokenizer, "a ab"), ElementsAre(259, 260, 263));
}

TEST(ScoredPieces, WhatHasNoPieceBecomesBytes) {
  EXPECT_THAT(encode(*gguf(scoredPieces()), "\xC3\xA9"),
              ElementsAre(259, 3 + 0xC3, 3 + 0xA9));
}

TEST(ScoredPieces, TheSpaceBeforeTheTextGoesAwayAtItsStartOnly) {
  const std::unique_ptr<Tokenizer> tokenizer = gguf(scoredPieces());
  const std::vector<int32_t> ids = encode(*tokenizer, "ab");
  EXPECT_EQ(decode(*tokenizer, ids), "ab");
  EXPECT_EQ(decode(*tokenizer, ids, {.startOfText = false}), " ab");
}

TEST(ScoredPieces, TextNeverSpellsAControlToken) {
  GgufFixture fixture = scoredPieces();
  // "<", "s", ">" and "<s" are pieces; only the token <s> is not one of text.
  for (const char *piece : {"<", "s", ">", "<s"}) {
    fixture.tokens.push_back(piece);
    fixture.types.push_back(1);
    fixture.scores.push_back(-9);
  }
  const std::unique_ptr<Tokenizer> tokenizer = gguf(fixture);
  EXPECT_THAT(encode(*tokenizer, "<s>"), ElementsAre(259, 267, 266));
  EXPECT_THAT(encode(*tokenizer, "<s>", {.special = true}), ElementsAre(1));
}

TEST(RankedPieces, AreMergedByRankAndFallBackToBytes) {
  const std::unique_ptr<Tokenizer> tokenizer = huggingFace(piecesJson());
  EXPECT_THAT(encode(*tokenizer, "ab a"), ElementsAre(260, 257, 258));
  EXPECT_THAT(encode(*tokenizer, "c\xFF"), ElementsAre(1 + 'c', 1 + 0xFF));
  // Two spaces are merged; their spelling is the added word of the same id.
  EXPECT_THAT(encode(*tokenizer, "   "), ElementsAre(261, 257));
  EXPECT_THAT(encode(*tokenizer, "a\xE2\x96\x81\xE2\x96\x81"),
              ElementsAre(258, 261));
  EXPECT_EQ(decode(*tokenizer, {261, 260, 1 + 'c'}), "  abc");
}

//===----------------------------------------------------------------------===//
// Special tokens
//===----------------------------------------------------------------------===//

TEST(SpecialTokens, AreRecognisedOnlyWhereAsked) {
  const std::unique_ptr<Tokenizer> tokenizer = tiktoken();
  EXPECT_EQ(encode(*tokenizer, "<|eot_id|>").size(), 10u);
  EXPECT_THAT(encode(*tokenizer, "a<|eot_id|>b", {.special = true}),
              ElementsAre('a', 265 + 9, 'b'));
}

TEST(SpecialTokens, AddedWordsAreAlwaysRecognised) {
  const std::unique_ptr<Tokenizer> tokenizer = huggingFace(huggingFaceJson());
  EXPECT_THAT(encode(*tokenizer, "a<user>b"), ElementsAre('a', 267, 'b'));
  EXPECT_EQ(encode(*tokenizer, "<|start|>").size(), 9u);
}

TEST(SpecialTokens, TheLongestMatchWins) {
  const SpecialTokens tokens({{"<a>", 1}, {"<a><b>", 2}, {"<a><c>", 3}});
  const auto match = tokens.find("x<a><b>", 0);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->id, 2);
  EXPECT_EQ(match->begin, 1u);
  EXPECT_EQ(match->end, 7u);
  const auto shorter = tokens.find("<a><b", 0);
  ASSERT_TRUE(shorter.has_value());
  EXPECT_EQ(shorter->id, 1);
  EXPECT_FALSE(tokens.find("<a", 0).has_value());
}

TEST(SpecialTokens, Llama3NamesLieBehindTheRanks) {
  const std::unique_ptr<Tokenizer> tokenizer = tiktoken();
  const int32_t first = 265;
  EXPECT_EQ(tokenizer->vocabSize(), first + 256);
  for (const auto &[offset, name] :
       {std::pair(0, "<|begin_of_text|>"), std::pair(1, "<|end_of_text|>"),
        std::pair(2, "<|reserved_special_token_0|>"),
        std::pair(4, "<|finetune_right_pad_id|>"), std::pair(5, "<|step_id|>"),
        std::pair(6, "<|start_header_id|>"), std::pair(7, "<|end_header_id|>"),
        std::pair(8, "<|eom_id|>"), std::pair(9, "<|eot_id|>"),
        std::pair(10, "<|python_tag|>"), std::pair(11, "<|image|>"),
        std::pair(12, "<|reserved_special_token_2|>"),
        std::pair(255, "<|reserved_special_token_245|>")})
    EXPECT_EQ(tokenizer->tokenBytes(first + offset).value(), name);
}

TEST(SpecialTokens, StopIdsAreEndOfTextMessageAndTurn) {
  const std::unique_ptr<Tokenizer> tokenizer = tiktoken();
  EXPECT_THAT(tokenizer->vocabulary().stopIds(),
              ElementsAre(265 + 1, 265 + 8, 265 + 9));
  EXPECT_EQ(tokenizer->vocabulary().bosId(), 265);
  EXPECT_EQ(tokenizer->vocabulary().eosId(), 265 + 1);
  EXPECT_EQ(tokenizer->vocabulary().eotId(), 265 + 9);
}

TEST(SpecialTokens, BeginOfSequenceGoesFirstWhereAsked) {
  EXPECT_THAT(encode(*tiktoken(), "a", {.addBos = true}),
              ElementsAre(265, 'a'));
  GgufFixture fixture;
  fixture.bosId.reset();
  const auto ids = gguf(fixture)->encode("a", {.addBos = true});
  EXPECT_EQ(exitCode(ids.status()), ExitCode::Usage);
}

TEST(SpecialTokens, TemplateOfTokenizerJsonSetsAddBos) {
  EXPECT_TRUE(huggingFace(huggingFaceJson())->vocabulary().flags().addBos);
  EXPECT_FALSE(huggingFace(huggingFaceJson(), R"({"add_bos_token": false})")
                   ->vocabulary()
                   .flags()
                   .addBos);
  EXPECT_FALSE(gguf({})->vocabulary().flags().addBos);
  GgufFixture llama;
  llama.pre = "llama-bpe";
  EXPECT_TRUE(gguf(llama)->vocabulary().flags().addBos);
}

TEST(SpecialTokens, GenerationConfigAddsStopIds) {
  const std::unique_ptr<Tokenizer> tokenizer = huggingFace(
      huggingFaceJson(), R"({"eos_token": {"content": "<|eot_id|>"}})",
      R"({"eos_token_id": [5, 266], "bos_token_id": 265})");
  EXPECT_THAT(tokenizer->vocabulary().stopIds(), ElementsAre(5, 266));
  EXPECT_EQ(tokenizer->vocabulary().eosId(), 266);
}

//===----------------------------------------------------------------------===//
// Chat templates
//===----------------------------------------------------------------------===//

static ChatTemplates templatesOf(const char *config,
                                 std::map<std::string, NamedText> files = {}) {
  const auto templates = readChatTemplates(
      {.tokenizerConfig = NamedText{"tokenizer_config.json", config},
       .files = std::move(files)});
  EXPECT_TRUE(templates.ok()) << templates.status();
  return templates.value_or(ChatTemplates());
}

static ChatTemplates templatesOf(const Tokenizer &tokenizer) {
  ChatTemplates out;
  for (const NamedChatTemplate &each : tokenizer.vocabulary().chatTemplates())
    out.emplace(each.name, each.text);
  return out;
}

TEST(ChatTemplates, OneTextIsTheDefault) {
  EXPECT_THAT(templatesOf(R"({"chat_template": "{{x}}"})"),
              ElementsAre(Pair("default", "{{x}}")));
}

TEST(ChatTemplates, AListHasNamedOnesOfWhichTheLastCounts) {
  EXPECT_THAT(templatesOf(R"({"chat_template": [
      {"name": "tool_use", "template": "t"},
      {"name": "default", "template": "a"},
      {"name": "default", "template": "b"}]})"),
              ElementsAre(Pair("default", "b"), Pair("tool_use", "t")));
}

TEST(ChatTemplates, WhatIsNeitherIsMalformed) {
  for (const char *value :
       {"5", R"({"default": "a"})", R"(["a"])", R"([{"name": "a"}])",
        R"([{"name": 1, "template": "a"}])"}) {
    const std::string config =
        absl::StrCat(R"({"chat_template": )", value, "}");
    const absl::Status status =
        readChatTemplates({.tokenizerConfig = NamedText{"config", config}})
            .status();
    EXPECT_EQ(exitCode(status), ExitCode::BadFile) << value;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("chat_template: expected a text, or a list"));
  }
}

TEST(ChatTemplates, FilesTakeThePlaceOfTheConfig) {
  EXPECT_THAT(
      templatesOf(R"({"chat_template": "old"})", {{"rag", {"rag.jinja", "r"}}}),
      ElementsAre(Pair("rag", "r")));
}

TEST(ChatTemplates, AnEmptyOneStandsForNone) {
  GgufFixture fixture;
  fixture.chatTemplates = {{"default", "a"}, {"rag", ""}};
  EXPECT_THAT(templatesOf(*gguf(fixture)), ElementsAre(Pair("default", "a")));
}

// The tokenizer's file is `name` with `text`.
static void expectTemplatesOfADirectory(const char *name,
                                        const std::string &text) {
  const TemporaryFolder folder;
  ASSERT_TRUE(std::filesystem::create_directory(
      folder.file("additional_chat_templates")));
  for (const auto &[path, contents] :
       {std::pair(name, text),
        std::pair("chat_template.jinja", std::string("d")),
        std::pair("additional_chat_templates/tool_use.jinja", std::string("t")),
        std::pair("additional_chat_templates/notes.txt", std::string("n"))})
    std::ofstream(folder.file(path)) << contents;
  const auto blob = buildDirectoryBlob(folder.name());
  ASSERT_TRUE(blob.ok()) << blob.status();
  EXPECT_THAT(templatesOf(*load(**blob)),
              ElementsAre(Pair("default", "d"), Pair("tool_use", "t")));
}

TEST(ChatTemplates, OfADirectoryAreInItsFiles) {
  expectTemplatesOfADirectory("tokenizer.json", huggingFaceJson().dump());
  expectTemplatesOfADirectory("tokenizer.model", joinLines(tiktokenLines()));
}

//===----------------------------------------------------------------------===//
// Directories
//===----------------------------------------------------------------------===//

TEST(Directory, TokenizerModelTakesThePlaceOfAnotherKindThatAddsNoTokens) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("tokenizer.model")) << joinLines(tiktokenLines());
  nlohmann::json json = huggingFaceJson();
  json["pre_tokenizer"] = {{"type", "Metaspace"}};
  const auto blobWith = [&](uint32_t id) {
    json["added_tokens"].push_back(
        {{"id", id}, {"content", "<turn>"}, {"special", true}});
    std::ofstream(folder.file("tokenizer.json")) << json.dump();
    return buildDirectoryBlob(folder.name());
  };
  const auto known = blobWith(520); // The last of tokenizer.model's.
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(load(**known)->vocabSize(), 521);
  const absl::Status added = blobWith(521).status();
  EXPECT_EQ(exitCode(added), ExitCode::Unsupported);
  EXPECT_THAT(std::string(added.message()), HasSubstr("Metaspace"));
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

TEST(Decode, GivesBytesThatMayEndInsideACharacter) {
  EXPECT_EQ(decode(*tiktoken(), {0xE4, 0xB8}), "\xE4\xB8");
}

TEST(Decode, LeavesSpecialTokensOutWhereAsked) {
  EXPECT_EQ(decode(*tiktoken(), {'a', 265 + 9}), "a<|eot_id|>");
  EXPECT_EQ(decode(*tiktoken(), {'a', 265 + 9}, {.special = false}), "a");
}

TEST(Decode, RefusesIdsOutsideTheVocabulary) {
  const std::unique_ptr<Tokenizer> tokenizer = tiktoken();
  for (int32_t id : {-1, 521, INT32_MAX, INT32_MIN}) {
    const std::vector<int32_t> ids = {id};
    const absl::Status status = tokenizer->decode(ids).status();
    EXPECT_EQ(exitCode(status), ExitCode::Usage);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("expected 0 to 520, got"));
    EXPECT_FALSE(tokenizer->tokenBytes(id).ok());
  }
}

TEST(Decode, EmptyTextHasNoIds) {
  EXPECT_THAT(encode(*tiktoken(), ""), IsEmpty());
  EXPECT_EQ(decode(*tiktoken(), {}), "");
}

//===----------------------------------------------------------------------===//
// The formats agree
//===----------------------------------------------------------------------===//

TEST(Formats, AllGiveTheSameIds) {
  const std::unique_ptr<Tokenizer> fromTiktoken = tiktoken();
  const std::unique_ptr<Tokenizer> fromJson = huggingFace(huggingFaceJson());
  nlohmann::json pairs = huggingFaceJson();
  for (nlohmann::json &merge : pairs["model"]["merges"]) {
    const std::string text = merge;
    const size_t space = text.find(' ');
    merge = {text.substr(0, space), text.substr(space + 1)};
  }
  const std::unique_ptr<Tokenizer> fromPairs = huggingFace(pairs);
  GgufFixture fixture;
  fixture.pre = "llama-bpe";
  const std::unique_ptr<Tokenizer> fromGguf = gguf(fixture);
  for (const char *text :
       {"abc the  12312\n\nab", "The ABCs' 123's", "  \t x", "\xC3\xA9\n"}) {
    const std::vector<int32_t> ids = encode(*fromTiktoken, text);
    EXPECT_EQ(encode(*fromJson, text), ids) << text;
    EXPECT_EQ(encode(*fromPairs, text), ids) << text;
    EXPECT_EQ(encode(*fromGguf, text), ids) << text;
    EXPECT_EQ(decode(*fromTiktoken, ids), text);
  }
}

TEST(Formats, TokenizerModelIsToldByItsFirstByte) {
  const std::string text = joinLines(tiktokenLines()) + "\n\n";
  // 265 ranks and two empty lines: the rest of the model's vocabulary is
  // special.
  const auto tokenizer = load(buildTokenizerModelBlob({"t", text}, 270));
  EXPECT_EQ(tokenizer->vocabSize(), 270);
  EXPECT_THAT(
      std::string(buildTokenizerModelBlob({"t", text}, 264).status().message()),
      HasSubstr(
          "ranks: expected at most the model's vocabulary of 264, got 265"));
  EXPECT_THAT(
      std::string(buildTokenizerModelBlob({"t", "\n\x05"}).status().message()),
      HasSubstr("expected a SentencePiece model"));
}

} // namespace llamac::test
