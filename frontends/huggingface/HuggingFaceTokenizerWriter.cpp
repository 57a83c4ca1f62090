//===- HuggingFaceTokenizerWriter.cpp - To tokenizer.json -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tokens and merges of a "gpt2" vocabulary already have the spelling that
// tokenizer.json uses. What GGUF says by a name, how words are cut, becomes
// the steps that the name stands for.
//
//===----------------------------------------------------------------------===//

#include "frontends/TokenizerBlobWriter.h"
#include "frontends/TokenizerSources.h"
#include "frontends/gguf/GgufReader.h"
#include "runtime/io/AtomicFile.h"

#include "absl/strings/str_cat.h"
#include <nlohmann/json.hpp>

namespace llamac {

using OrderedJson = nlohmann::ordered_json;

static std::string text(absl::string_view view) { return std::string(view); }

static OrderedJson byteLevel(bool useRegex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", useRegex}};
}

/// The steps that cut text into words.
static OrderedJson preTokenizerJson(PreTokenizerKind kind) {
  OrderedJson first;
  switch (kind) {
  case PreTokenizerKind::Gpt2:
    return byteLevel(true);
  case PreTokenizerKind::Llama3:
    first = {{"type", "Split"},
             {"pattern", {{"Regex", llama3Pattern}}},
             {"behavior", "Isolated"},
             {"invert", false}};
    break;
  case PreTokenizerKind::SmolLM:
    first = {{"type", "Digits"}, {"individual_digits", true}};
    break;
  }
  return {{"type", "Sequence"},
          {"pretokenizers",
           OrderedJson::array(
               {first, byteLevel(kind == PreTokenizerKind::SmolLM)})}};
}

static OrderedJson addedTokensJson(const TokenizerBlob &blob) {
  OrderedJson added = OrderedJson::array();
  std::vector<int32_t> ids = blob.specialIds();
  std::sort(ids.begin(), ids.end());
  for (int32_t id : ids)
    added.push_back({{"id", id},
                     {"content", text(blob.tokenBytes(id))},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", blob.tokenType(id) == TokenType::Control}});
  return added;
}

static OrderedJson configJson(const TokenizerBlob &blob) {
  OrderedJson config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                        {"add_bos_token", blob.flags().addBos}};
  if (blob.bosId())
    config["bos_token"] = text(blob.tokenBytes(*blob.bosId()));
  if (blob.eosId())
    config["eos_token"] = text(blob.tokenBytes(*blob.eosId()));
  if (!blob.chatTemplate().empty())
    config["chat_template"] = text(blob.chatTemplate());
  return config;
}

/// Writes `json`; text that is not UTF-8 cannot come from a checked vocabulary
/// but in a token, where it is replaced.
static absl::Status writeJson(const std::string &path,
                              const OrderedJson &json) {
  return writeFileAtomically(
      path,
      json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
}

absl::Status writeHuggingFaceTokenizer(const GgufReader &reader,
                                       const std::string &directory) {
  LLAMAC_ASSIGN_OR_RETURN(const std::string bytes, buildGgufBlob(reader));
  LLAMAC_ASSIGN_OR_RETURN(const TokenizerBlob blob,
                          TokenizerBlob::parse(bytes));
  if (blob.kind() != TokenizerKind::BytePair)
    return unsupportedError(absl::StrCat(
        reader.file()->path(), ": tokenizer.ggml.model: expected gpt2, which "
                               "can become tokenizer.json, got llama"));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<absl::string_view> tokens,
                          reader.strings("tokenizer.ggml.tokens"));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<absl::string_view> merges,
                          reader.strings("tokenizer.ggml.merges"));
  OrderedJson vocabulary = OrderedJson::object();
  for (size_t id = 0; id < tokens.size(); ++id)
    vocabulary.push_back({text(tokens[id]), id});
  OrderedJson mergeList = OrderedJson::array();
  for (absl::string_view merge : merges)
    mergeList.push_back(text(merge));
  const OrderedJson tokenizer = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", addedTokensJson(blob)},
      {"normalizer", nullptr},
      {"pre_tokenizer", preTokenizerJson(blob.preTokenizer())},
      {"post_processor", nullptr},
      {"decoder", byteLevel(true)},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", blob.flags().wholeWordFirst},
        {"vocab", vocabulary},
        {"merges", mergeList}}}};
  LLAMAC_RETURN_IF_ERROR(
      writeJson(absl::StrCat(directory, "/tokenizer.json"), tokenizer));
  return writeJson(absl::StrCat(directory, "/tokenizer_config.json"),
                   configJson(blob));
}

} // namespace llamac
