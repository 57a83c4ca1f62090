//===- TokenizerFixtures.cpp - Small vocabularies for tests ---------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/frontends/tokenizer/TokenizerFixtures.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <gtest/gtest.h>

namespace llamac::test {

std::vector<std::string> tiktokenLines() {
  std::vector<std::string> lines;
  const auto add = [&](absl::string_view token) {
    lines.push_back(absl::StrCat(absl::Base64Escape(token), " ", lines.size()));
  };
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    add({&c, 1});
  }
  for (const char *token : extraTokens)
    add(token);
  return lines;
}

std::string joinLines(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

std::string spell(const std::string &bytes) {
  std::string out;
  for (unsigned char byte : bytes) {
    uint32_t codepoint = byte;
    // The unprintable bytes, in order: 0 to 32, 127 to 160, 173.
    if (byte <= 0x20)
      codepoint = 0x100 + byte;
    else if (byte >= 0x7F && byte <= 0xA0)
      codepoint = 0x100 + 33 + (byte - 0x7F);
    else if (byte == 0xAD)
      codepoint = 0x100 + 67;
    appendUtf8(out, codepoint);
  }
  return out;
}

static std::vector<std::string> spelledTokens() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(spell(std::string(1, static_cast<char>(byte))));
  for (const char *token : extraTokens)
    tokens.push_back(spell(token));
  return tokens;
}

// One way to merge each of the extra tokens, in their order.
static std::vector<std::string> spelledMerges() {
  return {"a b",
          "ab c",
          spell(" ") + " t",
          "h e",
          spell(" t") + " he",
          "1 2",
          "12 3",
          spell(" ") + " " + spell(" "),
          spell("\n") + " " + spell("\n")};
}

nlohmann::json huggingFaceJson() {
  nlohmann::json vocabulary = nlohmann::json::object();
  for (const std::string &token : spelledTokens()) {
    const size_t id = vocabulary.size();
    vocabulary[token] = id;
  }
  const auto added = [](int id, const char *text, bool special) {
    return nlohmann::json{{"id", id},           {"content", text},
                          {"special", special}, {"single_word", false},
                          {"lstrip", false},    {"rstrip", false}};
  };
  const char *pattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?)"
      R"([^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const nlohmann::json split = {{"type", "Split"},
                                {"pattern", {{"Regex", pattern}}},
                                {"behavior", "Isolated"},
                                {"invert", false}};
  const nlohmann::json byteLevel = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const nlohmann::json start = {
      {"SpecialToken", {{"id", "<|start|>"}, {"type_id", 0}}}};
  const nlohmann::json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  return {
      {"normalizer", nullptr},
      {"added_tokens",
       {added(265, "<|start|>", true), added(266, "<|eot_id|>", true),
        added(267, "<user>", false)}},
      {"pre_tokenizer",
       {{"type", "Sequence"},
        {"pretokenizers", nlohmann::json::array({split, byteLevel})}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", nlohmann::json::array({start, sequence})}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", spelledMerges()}}},
  };
}

nlohmann::json piecesJson() {
  const std::string mark = "\xE2\x96\x81";
  nlohmann::json vocabulary = {{"<eos>", 0}};
  for (int byte = 0; byte < 256; ++byte)
    vocabulary[absl::StrFormat("<0x%02X>", byte)] = 1 + byte;
  for (const std::string &piece : {mark, std::string("a"), std::string("b"),
                                   std::string("ab"), mark + mark})
    vocabulary[piece] = vocabulary.size();
  const auto replace = [](const std::string &from, const std::string &to) {
    return nlohmann::json{
        {"type", "Replace"}, {"pattern", {{"String", from}}}, {"content", to}};
  };
  const nlohmann::json fallback = {{"type", "ByteFallback"}};
  const nlohmann::json fuse = {{"type", "Fuse"}};
  const std::vector<std::string> merges = {"a b", mark + " " + mark};
  return {
      {"normalizer", replace(" ", mark)},
      {"pre_tokenizer", nullptr},
      {"added_tokens",
       {{{"id", 0}, {"content", "<eos>"}, {"special", true}},
        {{"id", 261}, {"content", mark + mark}, {"special", false}}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         nlohmann::json::array({replace(mark, " "), fallback, fuse})}}},
      {"model",
       {{"type", "BPE"},
        {"byte_fallback", true},
        {"fuse_unk", true},
        {"vocab", vocabulary},
        {"merges", merges}}},
  };
}

GgufFixture::GgufFixture() : tokens(spelledTokens()), merges(spelledMerges()) {
  types.assign(tokens.size(), 1);
  for (const char *special : {"<|start|>", "<|eot_id|>"}) {
    tokens.push_back(special);
    types.push_back(3);
  }
}

GgufVocabulary GgufFixture::vocabulary() const {
  GgufVocabulary out;
  out.file = "model.gguf";
  out.model = model;
  out.pre = pre;
  out.tokens.assign(tokens.begin(), tokens.end());
  out.types = types;
  out.merges.assign(merges.begin(), merges.end());
  out.scores = scores;
  out.bosId = bosId;
  out.eosId = eosId;
  out.addBos = addBos;
  out.chatTemplates = chatTemplates;
  return out;
}

GgufFixture scoredPieces() {
  GgufFixture fixture;
  fixture.model = "llama";
  fixture.merges.clear();
  fixture.tokens = {"<unk>", "<s>", "</s>"};
  fixture.types = {2, 3, 3};
  for (int byte = 0; byte < 256; ++byte) {
    fixture.tokens.push_back(absl::StrFormat("<0x%02X>", byte));
    fixture.types.push_back(6);
  }
  fixture.scores.assign(fixture.tokens.size(), 0);
  float score = -1;
  for (const char *piece : {"\xE2\x96\x81", "a", "b", "ab",
                            "\xE2\x96\x81"
                            "ab"}) {
    fixture.tokens.push_back(piece);
    fixture.types.push_back(1);
    fixture.scores.push_back(score--);
  }
  fixture.bosId = 1;
  fixture.eosId = 2;
  return fixture;
}

std::unique_ptr<Tokenizer> load(const absl::StatusOr<std::string> &blob) {
  if (!blob.ok()) {
    ADD_FAILURE() << blob.status().message();
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = loadTokenizer(*blob);
  if (!tokenizer.ok()) {
    ADD_FAILURE() << tokenizer.status().message();
    return nullptr;
  }
  return *std::move(tokenizer);
}

std::vector<int32_t> encode(const Tokenizer &tokenizer, absl::string_view text,
                            EncodeOptions options) {
  absl::StatusOr<std::vector<int32_t>> ids = tokenizer.encode(text, options);
  if (!ids.ok()) {
    ADD_FAILURE() << ids.status().message();
    return {};
  }
  return *std::move(ids);
}

} // namespace llamac::test
