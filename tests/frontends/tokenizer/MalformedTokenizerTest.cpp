//===- MalformedTokenizerTest.cpp - Malformed tokenizer files -------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each case breaks one thing of a good file and names the whole error.
//
//===----------------------------------------------------------------------===//

#include "tests/frontends/tokenizer/TokenizerFixtures.h"

#include "absl/strings/str_cat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace llamac::test {

using testing::MatchesRegex;

static void expectError(const absl::Status &status, ExitCode kind,
                        const std::string &pattern) {
  EXPECT_EQ(exitCode(status), kind) << status.message();
  EXPECT_THAT(std::string(status.message()), MatchesRegex(pattern));
}

//===----------------------------------------------------------------------===//
// tiktoken
//===----------------------------------------------------------------------===//

namespace {

struct TiktokenCase {
  const char *name;
  void (*damage)(std::vector<std::string> &lines);
  const char *error;
};

void PrintTo(const TiktokenCase &value, std::ostream *out) {
  *out << value.name;
}

class MalformedTiktoken : public testing::TestWithParam<TiktokenCase> {};

} // namespace

TEST_P(MalformedTiktoken, IsRefused) {
  std::vector<std::string> lines = tiktokenLines();
  GetParam().damage(lines);
  const std::string text = joinLines(lines);
  expectError(buildTiktokenBlob({"t.model", text}).status(), ExitCode::BadFile,
              GetParam().error);
}

using Lines = std::vector<std::string>;

INSTANTIATE_TEST_SUITE_P(
    , MalformedTiktoken,
    testing::Values(
        TiktokenCase{"Empty", [](Lines &lines) { lines.clear(); },
                     R"(t\.model:0: tokens: expected lines .*, got none)"},
        TiktokenCase{"NotBase64", [](Lines &lines) { lines[0] = "A!== 0"; },
                     R"(t\.model:0: token: expected base64, got "A!==")"},
        TiktokenCase{"Base64WithoutPadding",
                     [](Lines &lines) { lines[1] = "AQ 1"; },
                     R"(t\.model:7: token: expected base64, got "AQ")"},
        TiktokenCase{"Base64PaddedInside",
                     [](Lines &lines) { lines[1] = "A=Q= 1"; },
                     R"(t\.model:7: token: expected base64, got "A=Q=")"},
        TiktokenCase{"EmptyToken", [](Lines &lines) { lines[0] = " 0"; },
                     R"(t\.model:0: token: expected base64, got "")"},
        TiktokenCase{"NoRank", [](Lines &lines) { lines[0] = "AA=="; },
                     R"(t\.model:0: line: expected .*rank.*, got "AA==")"},
        TiktokenCase{"EmptyRank", [](Lines &lines) { lines[0] = "AA== "; },
                     R"(t\.model:5: rank: expected a number.*, got "")"},
        TiktokenCase{"NegativeRank", [](Lines &lines) { lines[0] = "AA== -1"; },
                     R"(t\.model:5: rank: expected a number.*, got "-1")"},
        TiktokenCase{"RankWithTail", [](Lines &lines) { lines[0] = "AA== 0x"; },
                     R"(t\.model:5: rank: expected a number.*, got "0x")"},
        TiktokenCase{
            "HugeRank",
            [](Lines &lines) { lines[0] = "AA== 99999999999999999999"; },
            R"(t\.model:5: rank: expected a number below 4194304, got .*)"},
        TiktokenCase{
            "RankOverLimit", [](Lines &lines) { lines[0] = "AA== 4194304"; },
            R"(t\.model:5: rank: expected .* below 4194304, got "4194304")"},
        TiktokenCase{
            "DuplicateRank", [](Lines &lines) { lines[1] = "AQ== 0"; },
            R"(t\.model:7: rank: expected each rank once, got 0 again)"},
        TiktokenCase{"GapInRanks",
                     [](Lines &lines) { lines.erase(lines.begin() + 1); },
                     R"(t\.model:7: rank: expected 1, .*missing, got 2)"},
        TiktokenCase{"DuplicateToken",
                     [](Lines &lines) { lines[1] = "AA== 1"; },
                     R"(t\.model:7: token: expected bytes .*, got .* rank 0)"},
        TiktokenCase{
            "ByteWithoutToken", [](Lines &lines) { lines[255] = "eHl6 255"; },
            R"(t\.model:0: tokens: expected one for every byte, got none for byte 255)"},
        TiktokenCase{
            "HugeToken",
            [](Lines &lines) { lines[0] = std::string(4 * 1000, 'A') + " 0"; },
            R"(t\.model:0: token: expected 1 to 1024 bytes, got 3000)"},
        TiktokenCase{"Binary", [](Lines &lines) { lines[0] = "\x7F-ELF\x02"; },
                     R"(t\.model:0: line: expected .*, got "\\x7f-ELF\\x02")"}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(TruncatedTiktoken, IsRefused) {
  const std::string text = joinLines(tiktokenLines());
  // Within the bytes' tokens something is always missing.
  for (size_t size = 0; size < 255 * 7; ++size)
    EXPECT_FALSE(
        buildTiktokenBlob({"t.model", absl::string_view(text).substr(0, size)})
            .ok())
        << size;
}

//===----------------------------------------------------------------------===//
// tokenizer.json
//===----------------------------------------------------------------------===//

namespace {

struct JsonCase {
  const char *name;
  void (*damage)(nlohmann::json &json);
  ExitCode kind;
  const char *error;
};

void PrintTo(const JsonCase &value, std::ostream *out) { *out << value.name; }

class MalformedTokenizerJson : public testing::TestWithParam<JsonCase> {};

} // namespace

static absl::Status buildJson(const std::string &text,
                              const char *config = nullptr,
                              const char *generation = nullptr) {
  HuggingFaceFiles files = {};
  files.tokenizer = {"t.json", text};
  if (config)
    files.tokenizerConfig = {"c.json", config};
  if (generation)
    files.generationConfig = {"g.json", generation};
  return buildHuggingFaceBlob(files).status();
}

TEST_P(MalformedTokenizerJson, IsRefused) {
  nlohmann::json json = huggingFaceJson();
  GetParam().damage(json);
  expectError(buildJson(json.dump()), GetParam().kind, GetParam().error);
}

using Json = nlohmann::json;

INSTANTIATE_TEST_SUITE_P(
    , MalformedTokenizerJson,
    testing::Values(
        JsonCase{"NoModel", [](Json &j) { j.erase("model"); },
                 ExitCode::BadFile,
                 R"(t\.json:1:1: model: expected an object, got none)"},
        JsonCase{
            "NotAnObject", [](Json &j) { j = Json::array(); },
            ExitCode::BadFile,
            R"(t\.json:1:1: tokenizer\.json: expected an object, got array)"},
        JsonCase{"EmptyVocabulary",
                 [](Json &j) { j["model"]["vocab"] = Json::object(); },
                 ExitCode::BadFile,
                 R"(t\.json:[0-9:]+: model\.vocab: expected an object of.*)"},
        JsonCase{"VocabularyIsAList",
                 [](Json &j) { j["model"]["vocab"] = Json::array({1}); },
                 ExitCode::BadFile,
                 R"(t\.json:[0-9:]+: model\.vocab: .*, got array)"},
        JsonCase{
            "NegativeId", [](Json &j) { j["model"]["vocab"]["a"] = -1; },
            ExitCode::BadFile,
            R"(t\.json:[0-9:]+: model\.vocab\."a": expected an id .*, got "-1")"},
        JsonCase{"FractionalId",
                 [](Json &j) { j["model"]["vocab"]["a"] = 1.5; },
                 ExitCode::BadFile,
                 R"(t\.json:[0-9:]+: model\.vocab\."a": .*, got "1\.5")"},
        JsonCase{
            "HugeId", [](Json &j) { j["model"]["vocab"]["a"] = 4194304; },
            ExitCode::BadFile,
            R"(t\.json:[0-9:]+: model\.vocab\."a": expected an id below 4194304.*)"},
        JsonCase{
            "FarId", [](Json &j) { j["model"]["vocab"]["a"] = 4194303; },
            ExitCode::BadFile,
            R"(t\.json:1:1: model\.vocab: expected ids near .*, got 4194303)"},
        JsonCase{"IdIsText", [](Json &j) { j["model"]["vocab"]["a"] = "1"; },
                 ExitCode::BadFile,
                 R"(t\.json:[0-9:]+: model\.vocab\."a": .*, got "1")"},
        JsonCase{
            "DuplicateId", [](Json &j) { j["model"]["vocab"]["a"] = 98; },
            ExitCode::BadFile,
            R"(t\.json:[0-9:]+: model\.vocab\."b": expected an id of its own, got 98.*)"},
        JsonCase{
            "NoMerges", [](Json &j) { j["model"].erase("merges"); },
            ExitCode::BadFile,
            R"(t\.json:[0-9:]+: model\.merges: expected an array, got none)"},
        JsonCase{
            "MergeOfOneToken", [](Json &j) { j["model"]["merges"][0] = "ab"; },
            ExitCode::BadFile,
            R"(t\.json:[0-9:]+: model\.merges\[0\]: expected two tokens.*)"},
        JsonCase{
            "MergeOfThreeTokens",
            [](Json &j) {
              j["model"]["merges"][0] = Json::array({"a", "b", "c"});
            },
            ExitCode::BadFile,
            R"(t\.json:[0-9:]+: model\.merges\[0\]: expected two tokens.*)"},
        JsonCase{"MergeOfANumber", [](Json &j) { j["model"]["merges"][0] = 7; },
                 ExitCode::BadFile,
                 R"(t\.json:[0-9:]+: model\.merges\[0\]: .*, got "7")"},
        JsonCase{
            "MergeOfUnknownToken",
            [](Json &j) { j["model"]["merges"][0] = "a zz"; },
            ExitCode::BadFile,
            R"(t\.json:[0-9:]+: model\.merges\[0\]: expected tokens .*, got "zz")"},
        JsonCase{
            "MergeToUnknownToken",
            [](Json &j) { j["model"]["merges"][0] = "a c"; }, ExitCode::BadFile,
            R"(t\.json:[0-9:]+: model\.merges\[0\]: expected tokens .*, got "ac")"},
        JsonCase{"DuplicateMerge",
                 [](Json &j) { j["model"]["merges"][8] = "a b"; },
                 ExitCode::BadFile,
                 R"(t\.json:0: merge 8: expected a new pair, got .* merge 0)"},
        JsonCase{"AddedTokensIsAnObject",
                 [](Json &j) { j["added_tokens"] = Json::object(); },
                 ExitCode::BadFile,
                 R"(t\.json:[0-9:]+: added_tokens: expected an array.*)"},
        JsonCase{"AddedTokenWithoutText",
                 [](Json &j) { j["added_tokens"][0].erase("content"); },
                 ExitCode::BadFile,
                 R"(t\.json:[0-9:]+: added_tokens\[0\]\.content: expected.*)"},
        JsonCase{"AddedTokenWithoutId",
                 [](Json &j) { j["added_tokens"][0].erase("id"); },
                 ExitCode::BadFile,
                 R"(t\.json:[0-9:]+: added_tokens\[0\]\.id: expected an id.*)"},
        JsonCase{
            "AddedTokenTakesAnId",
            [](Json &j) { j["added_tokens"][0]["id"] = 97; }, ExitCode::BadFile,
            R"(t\.json:[0-9:]+: added_tokens\[0\]\.id: .*, got 97, that of "a")"},
        JsonCase{"TemplateOfUnknownToken",
                 [](Json &j) {
                   j["post_processor"]["single"][0]["SpecialToken"]["id"] =
                       "<x>";
                 },
                 ExitCode::BadFile,
                 R"(t\.json:[0-9:]+: post_processor\.single: .*, got "<x>")"},
        JsonCase{"UnknownTokenOfNoVocabulary",
                 [](Json &j) { j["model"]["unk_token"] = "<x>"; },
                 ExitCode::BadFile,
                 R"(t\.json:[0-9:]+: model\.unk_token: expected.*, got "<x>")"},
        JsonCase{
            "OtherModel", [](Json &j) { j["model"]["type"] = "Unigram"; },
            ExitCode::Unsupported,
            R"(t\.json:[0-9:]+: model\.type: expected BPE, got "Unigram")"},
        JsonCase{"FusedUnknownTokens",
                 [](Json &j) { j["model"]["fuse_unk"] = true; },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: model\.fuse_unk: expected false.*)"},
        JsonCase{"Dropout", [](Json &j) { j["model"]["dropout"] = 0.1; },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: model\.dropout: expected null.*)"},
        JsonCase{
            "Normalizer", [](Json &j) { j["normalizer"] = {{"type", "NFKC"}}; },
            ExitCode::Unsupported,
            R"(t\.json:[0-9:]+: normalizer: expected null or NFC, got "NFKC")"},
        JsonCase{
            "OtherPattern",
            [](Json &j) {
              j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] =
                  R"(\w+)";
            },
            ExitCode::Unsupported,
            R"(t\.json:[0-9:]+: pre_tokenizer\.Split\.pattern: expected.*)"},
        JsonCase{
            "OtherPreTokenizer",
            [](Json &j) { j["pre_tokenizer"] = {{"type", "Metaspace"}}; },
            ExitCode::Unsupported,
            R"(t\.json:[0-9:]+: pre_tokenizer\.type: .*, got "Metaspace")"},
        JsonCase{"NoPreTokenizer",
                 [](Json &j) { j["pre_tokenizer"] = nullptr; },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: pre_tokenizer: expected .*no ByteLevel)"},
        JsonCase{"TokenBehindTheText",
                 [](Json &j) {
                   Json &single = j["post_processor"]["single"];
                   std::swap(single[0], single[1]);
                 },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: post_processor\.single: expected one.*)"},
        JsonCase{"OtherDecoder",
                 [](Json &j) { j["decoder"] = {{"type", "WordPiece"}}; },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: decoder\.type: .*, got "WordPiece")"}),
    [](const auto &info) { return std::string(info.param.name); });

// A space goes first, which the decoder takes away.
static void putSpaceFirst(Json &j) {
  const Json prepend = {{"type", "Prepend"}, {"prepend", "\xE2\x96\x81"}};
  j["normalizer"] = {{"type", "Sequence"},
                     {"normalizers", Json::array({prepend, j["normalizer"]})}};
  j["decoder"]["decoders"].push_back(
      {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
}

class MalformedPiecesJson : public testing::TestWithParam<JsonCase> {};

TEST_P(MalformedPiecesJson, IsRefused) {
  nlohmann::json json = piecesJson();
  GetParam().damage(json);
  expectError(buildJson(json.dump()), GetParam().kind, GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    , MalformedPiecesJson,
    testing::Values(
        JsonCase{"NoNormalizer", [](Json &j) { j["normalizer"] = nullptr; },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: normalizer: expected a space replaced.*)"},
        JsonCase{"SpaceAhead",
                 [](Json &j) {
                   putSpaceFirst(j);
                   j["decoder"]["decoders"].erase(3);
                 },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: decoder: .*then Strip where.*)"},
        JsonCase{"NormalizedTokenBehindASpace",
                 [](Json &j) {
                   putSpaceFirst(j);
                   j["added_tokens"][0]["normalized"] = true;
                 },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: added_tokens\[0\]\.normalized: .*)"},
        JsonCase{
            "OtherSplit",
            [](Json &j) {
              j["pre_tokenizer"] = {{"type", "Split"},
                                    {"pattern", {{"String", "a"}}}};
            },
            ExitCode::Unsupported,
            R"(t\.json:[0-9:]+: pre_tokenizer: expected null or a Split.*)"},
        JsonCase{"NoFuse", [](Json &j) { j["decoder"]["decoders"].erase(2); },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: decoder: expected U\+2581 replaced.*)"},
        JsonCase{"WholeWords",
                 [](Json &j) { j["model"]["ignore_merges"] = true; },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: model\.ignore_merges: expected false.*)"},
        JsonCase{
            "ByteWithoutToken",
            [](Json &j) { j["model"]["vocab"].erase("<0x41>"); },
            ExitCode::Unsupported,
            R"(t\.json:[0-9:]+: model\.vocab: expected <0x41>, as byte_fallback.*)"},
        JsonCase{"AddedTokenWithASpace",
                 [](Json &j) {
                   j["added_tokens"][0]["id"] = 262;
                   j["added_tokens"][0]["content"] = "a b";
                 },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: added_tokens\[0\]\.content: .*)"},
        JsonCase{"AddedMark",
                 [](Json &j) {
                   j["added_tokens"][1]["id"] = 257;
                   j["added_tokens"][1]["content"] = "\xE2\x96\x81";
                 },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: added_tokens\[1\]\.content: .*)"},
        JsonCase{"NormalizedMark",
                 [](Json &j) { j["added_tokens"][1]["normalized"] = true; },
                 ExitCode::Unsupported,
                 R"(t\.json:[0-9:]+: added_tokens\[1\]\.normalized: .*)"}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(TokenizerJson, DeepNestingIsRefused) {
  expectError(buildJson(std::string(100000, '[')), ExitCode::BadFile,
              R"(t\.json:[0-9:]+: .*)");
}

TEST(TokenizerJson, TruncatedTextIsRefused) {
  const std::string text = huggingFaceJson().dump();
  for (size_t size = 0; size < text.size(); size += 97)
    EXPECT_EQ(exitCode(buildJson(text.substr(0, size))), ExitCode::BadFile);
}

TEST(TokenizerJson, DuplicateKeysAreRefused) {
  expectError(buildJson(R"({"model": {}, "model": {}})"), ExitCode::BadFile,
              R"(t\.json:[0-9:]+: .*model.*)");
}

TEST(TokenizerJson, CompanionsAreCheckedToo) {
  const std::string good = huggingFaceJson().dump();
  expectError(buildJson(good, R"({"bos_token": "<x>"})"), ExitCode::BadFile,
              R"(c\.json:[0-9:]+: bos_token: expected a token.*, got "<x>")");
  expectError(buildJson(good, R"({"eos_token": 5})"), ExitCode::BadFile,
              R"(c\.json:[0-9:]+: eos_token: expected the text.*, got "5")");
  expectError(buildJson(good, R"({"add_bos_token": "yes"})"), ExitCode::BadFile,
              R"(c\.json:[0-9:]+: add_bos_token: .*)");
  expectError(buildJson(good, nullptr, R"({"eos_token_id": [5, 268]})"),
              ExitCode::BadFile,
              R"(g\.json:[0-9:]+: eos_token_id: expected .*268, got 268)");
  expectError(buildJson(good, nullptr, R"({"bos_token_id": -1})"),
              ExitCode::BadFile,
              R"(g\.json:[0-9:]+: bos_token_id: expected .*, got -1)");
}

//===----------------------------------------------------------------------===//
// GGUF
//===----------------------------------------------------------------------===//

namespace {

struct GgufCase {
  const char *name;
  void (*damage)(GgufFixture &fixture);
  ExitCode kind;
  const char *error;
};

void PrintTo(const GgufCase &value, std::ostream *out) { *out << value.name; }

class MalformedGgufVocabulary : public testing::TestWithParam<GgufCase> {};
class MalformedGgufPieces : public testing::TestWithParam<GgufCase> {};

} // namespace

TEST_P(MalformedGgufVocabulary, IsRefused) {
  GgufFixture fixture;
  GetParam().damage(fixture);
  expectError(buildGgufBlob(fixture.vocabulary()).status(), GetParam().kind,
              GetParam().error);
}

TEST_P(MalformedGgufPieces, IsRefused) {
  GgufFixture fixture = scoredPieces();
  GetParam().damage(fixture);
  expectError(buildGgufBlob(fixture.vocabulary()).status(), GetParam().kind,
              GetParam().error);
}

#define GGUF_KEY R"(model\.gguf:0: tokenizer\.ggml\.)"

INSTANTIATE_TEST_SUITE_P(
    , MalformedGgufVocabulary,
    testing::Values(
        GgufCase{"NoTokens", [](GgufFixture &f) { f.tokens.clear(); },
                 ExitCode::BadFile, GGUF_KEY "tokens: expected 1 to.*, got 0"},
        GgufCase{"FewerTypes", [](GgufFixture &f) { f.types.pop_back(); },
                 ExitCode::BadFile,
                 GGUF_KEY "token_type: expected 267 types.*, got 266"},
        GgufCase{"UnknownType", [](GgufFixture &f) { f.types[3] = 7; },
                 ExitCode::BadFile,
                 GGUF_KEY R"(token_type\[3\]: expected 0 to 6, got 7)"},
        GgufCase{"NegativeType", [](GgufFixture &f) { f.types[3] = -1; },
                 ExitCode::BadFile,
                 GGUF_KEY R"(token_type\[3\]: expected 0 to 6, got -1)"},
        GgufCase{"DuplicateToken", [](GgufFixture &f) { f.tokens[98] = "a"; },
                 ExitCode::BadFile,
                 GGUF_KEY R"(tokens\[98\]: expected .*, got that of 97)"},
        GgufCase{"HugeToken",
                 [](GgufFixture &f) { f.tokens[264].assign(2000, 'x'); },
                 ExitCode::BadFile, R"(model\.gguf:0: .*)"},
        GgufCase{"NoMerges", [](GgufFixture &f) { f.merges.clear(); },
                 ExitCode::BadFile, GGUF_KEY "merges: expected.*, got none"},
        GgufCase{"MergeOfOneToken", [](GgufFixture &f) { f.merges[0] = "ab"; },
                 ExitCode::BadFile,
                 GGUF_KEY R"(merges\[0\]: expected two tokens, got "ab")"},
        GgufCase{"EmptyMerge", [](GgufFixture &f) { f.merges[0] = ""; },
                 ExitCode::BadFile,
                 GGUF_KEY R"(merges\[0\]: expected two tokens, got "")"},
        GgufCase{"DuplicateMerge",
                 [](GgufFixture &f) { f.merges.push_back("a b"); },
                 ExitCode::BadFile,
                 R"(model\.gguf:0: merge 9: expected a new pair.*)"},
        GgufCase{"BosOutsideVocabulary", [](GgufFixture &f) { f.bosId = 267; },
                 ExitCode::BadFile,
                 GGUF_KEY "bos_token_id: expected an id below 267, got 267"},
        GgufCase{"NegativeEos", [](GgufFixture &f) { f.eosId = -2; },
                 ExitCode::BadFile,
                 GGUF_KEY "eos_token_id: expected .*, got -2"},
        GgufCase{"BosToAddButNone",
                 [](GgufFixture &f) {
                   f.bosId.reset();
                   f.addBos = true;
                 },
                 ExitCode::BadFile,
                 GGUF_KEY "bos_token_id: expected .*, got none"},
        GgufCase{"OtherModel", [](GgufFixture &f) { f.model = "rwkv"; },
                 ExitCode::Unsupported,
                 R"(model\.gguf: tokenizer\.ggml\.model: .*, got "rwkv")"},
        GgufCase{"OtherPreTokenizer", [](GgufFixture &f) { f.pre = "unheard"; },
                 ExitCode::Unsupported,
                 R"(model\.gguf: tokenizer\.ggml\.pre: .*, got "unheard")"}),
    [](const auto &info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    , MalformedGgufPieces,
    testing::Values(
        GgufCase{
            "ByteOfNegativeNumber",
            [](GgufFixture &f) { f.tokens[3] = "<0x-1>"; }, ExitCode::BadFile,
            GGUF_KEY R"(tokens\[3\]: expected <0x00> to <0xFF>, got "<0x-1>")"},
        GgufCase{"ByteOfThreeDigits",
                 [](GgufFixture &f) { f.tokens[3] = "<0x100>"; },
                 ExitCode::BadFile,
                 GGUF_KEY R"(tokens\[3\]: .*, got "<0x100>")"},
        GgufCase{
            "ByteInLowerCase", [](GgufFixture &f) { f.tokens[3] = "<0xff>"; },
            ExitCode::BadFile, GGUF_KEY R"(tokens\[3\]: .*, got "<0xff>")"},
        GgufCase{"FewerScores", [](GgufFixture &f) { f.scores.pop_back(); },
                 ExitCode::BadFile,
                 GGUF_KEY "scores: expected 264 scores.*, got 263"},
        GgufCase{"ScoreIsNotANumber",
                 [](GgufFixture &f) {
                   f.scores[5] = std::numeric_limits<float>::quiet_NaN();
                 },
                 ExitCode::BadFile,
                 GGUF_KEY R"(scores\[5\]: expected a number, got .*)"},
        GgufCase{"DuplicatePiece", [](GgufFixture &f) { f.tokens[261] = "a"; },
                 ExitCode::BadFile,
                 GGUF_KEY R"(tokens\[261\]: expected .*, got that of 260)"}),
    [](const auto &info) { return std::string(info.param.name); });

TEST(GgufErrors, GiveTheOffsetInTheFile) {
  GgufFixture fixture;
  // A file whose byte 5 begins the bad merge.
  const std::string contents = "01234ab";
  GgufVocabulary vocabulary = fixture.vocabulary();
  std::vector<absl::string_view> merges = {
      absl::string_view(contents).substr(5)};
  vocabulary.merges = merges;
  vocabulary.contents = contents;
  expectError(buildGgufBlob(vocabulary).status(), ExitCode::BadFile,
              R"(model\.gguf:5: tokenizer\.ggml\.merges\[0\]: .*)");
}

} // namespace llamac::test
