//===- HuggingFaceTokenizerReader.cpp - tokenizer.json --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tokenizer.json describes a pipeline: normaliser, pre-tokenizer, model,
// post-processor and decoder, each with a type and options. What changes ids
// is either understood here or refused by its name; nothing is guessed.
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteCursor.h"
#include "frontends/ByteTokens.h"
#include "frontends/JsonReader.h"
#include "frontends/TokenizerBlobWriter.h"
#include "frontends/TokenizerSources.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace llamac {

namespace {

using Json = nlohmann::json;

constexpr JsonLimits tokenizerLimits = {.maxBytes = uint64_t{256} << 20,
                                        .maxDepth = 64};

class HuggingFaceReader {
public:
  explicit HuggingFaceReader(const JsonDocument &document)
      : document(document) {}

  absl::Status read(TokenizerData &data);

  /// The id of a token by its text, ordinary or added.
  std::optional<uint32_t> find(absl::string_view text) const;

private:
  absl::Status readPreTokenizer(TokenizerData &data) const;
  absl::Status readModelOptions(const Json &model, TokenizerData &data) const;
  absl::Status readVocabulary(const Json &model);
  absl::Status readAddedTokens();
  absl::Status fillTokens(TokenizerData &data) const;
  absl::Status readMerges(const Json &model, TokenizerData &data) const;
  absl::Status readPostProcessor(TokenizerData &data) const;
  absl::Status readTemplate(const Json &processor, TokenizerData &data) const;

  absl::StatusOr<uint32_t> readId(const Json &value, const Json &near,
                                  absl::string_view field) const;
  absl::Status fail(const Json &near, absl::string_view field,
                    const absl::AlphaNum &expected,
                    const absl::AlphaNum &got) const;
  absl::Status unsupported(const Json &near, absl::string_view field,
                           absl::string_view expected,
                           absl::string_view got) const;

  struct Token {
    std::string text;
    TokenType type;
  };

  const JsonDocument &document;
  absl::flat_hash_map<uint32_t, Token> tokens;
  absl::flat_hash_map<std::string, uint32_t> byText;
};

} // namespace

// The member `key` of `object`, or null where there is none.
static const Json &member(const Json &object, const char *key) {
  static const Json null;
  if (!object.is_object())
    return null;
  const auto at = object.find(key);
  return at == object.end() ? null : *at;
}

// `value` for a message.
static std::string show(const Json &value) {
  return quoteForMessage(
      value.is_string()
          ? value.get_ref<const std::string &>()
          : value.dump(-1, ' ', true, Json::error_handler_t::replace));
}

static bool isTrue(const Json &value) {
  return value.is_boolean() && value.get<bool>();
}

static bool isString(const Json &value, absl::string_view text) {
  return value.is_string() && value.get_ref<const std::string &>() == text;
}

absl::Status HuggingFaceReader::fail(const Json &near, absl::string_view field,
                                     const absl::AlphaNum &expected,
                                     const absl::AlphaNum &got) const {
  return malformed(document.file(), document.offsetOf(near), field, expected,
                   got);
}

absl::Status HuggingFaceReader::unsupported(const Json &near,
                                            absl::string_view field,
                                            absl::string_view expected,
                                            absl::string_view got) const {
  return unsupportedError(absl::StrCat(document.file(), ":",
                                       document.offsetOf(near), ": ", field,
                                       ": expected ", expected, ", got ", got));
}

absl::StatusOr<uint32_t>
HuggingFaceReader::readId(const Json &value, const Json &near,
                          absl::string_view field) const {
  if (value.is_number_unsigned() && value.get<uint64_t>() < maxVocabularySize)
    return value.get<uint32_t>();
  return fail(near, field, absl::StrCat("an id below ", maxVocabularySize),
              show(value));
}

// Either one step or a Sequence of steps.
static std::vector<const Json *> steps(const Json &value, const char *list) {
  std::vector<const Json *> out;
  if (!isString(member(value, "type"), "Sequence")) {
    if (!value.is_null())
      out.push_back(&value);
    return out;
  }
  const Json &sequence = member(value, list);
  if (sequence.is_array())
    for (const Json &step : sequence)
      out.push_back(&step);
  return out;
}

absl::Status HuggingFaceReader::readPreTokenizer(TokenizerData &data) const {
  const Json &value = member(document.root(), "pre_tokenizer");
  bool split = false, digits = false, byteLevel = false, useRegex = false;
  for (const Json *step : steps(value, "pretokenizers")) {
    const Json &type = member(*step, "type");
    if (byteLevel)
      return unsupported(value, "pre_tokenizer", "ByteLevel as the last step",
                         show(type));
    if (isString(type, "Split")) {
      const Json &regex = member(member(*step, "pattern"), "Regex");
      if (!isString(regex, llama3Pattern))
        return unsupported(value, "pre_tokenizer.Split.pattern",
                           "the pattern of Llama 3",
                           show(member(*step, "pattern")));
      if (!isString(member(*step, "behavior"), "Isolated") ||
          isTrue(member(*step, "invert")))
        return unsupported(value, "pre_tokenizer.Split.behavior",
                           "Isolated, not inverted",
                           show(member(*step, "behavior")));
      split = true;
    } else if (isString(type, "Digits")) {
      if (!isTrue(member(*step, "individual_digits")))
        return unsupported(value, "pre_tokenizer.Digits.individual_digits",
                           "true", show(member(*step, "individual_digits")));
      digits = true;
    } else if (isString(type, "ByteLevel")) {
      if (isTrue(member(*step, "add_prefix_space")))
        return unsupported(value, "pre_tokenizer.ByteLevel.add_prefix_space",
                           "false", "true");
      byteLevel = true;
      // The library's default is true.
      const Json &flag = member(*step, "use_regex");
      useRegex = flag.is_null() || isTrue(flag);
    } else {
      return unsupported(value, "pre_tokenizer.type",
                         "Split, Digits or ByteLevel", show(type));
    }
  }
  if (byteLevel && split && !digits && !useRegex)
    data.preTokenizer = PreTokenizerKind::Llama3;
  else if (byteLevel && !split && digits && useRegex)
    data.preTokenizer = PreTokenizerKind::SmolLM;
  else if (byteLevel && !split && !digits && useRegex)
    data.preTokenizer = PreTokenizerKind::Gpt2;
  else
    return unsupported(value, "pre_tokenizer",
                       "the steps of Llama 3, GPT-2 or SmolLM",
                       byteLevel ? "another sequence" : "no ByteLevel");
  return absl::OkStatus();
}

absl::Status HuggingFaceReader::readModelOptions(const Json &model,
                                                 TokenizerData &data) const {
  const Json &type = member(model, "type");
  // Old files of GPT-2's kind do not name the type.
  if (!isString(type, "BPE") && !type.is_null())
    return unsupported(type, "model.type", "BPE", show(type));
  for (const char *key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json &value = member(model, key);
    const bool none = value.is_null() || isString(value, "") ||
                      (value.is_number() && value.get<double>() == 0.0);
    if (!none)
      return unsupported(value, absl::StrCat("model.", key), "null",
                         show(value));
  }
  for (const char *key : {"byte_fallback", "fuse_unk"})
    if (isTrue(member(model, key)))
      return unsupported(member(model, key), absl::StrCat("model.", key),
                         "false", "true");
  data.flags.wholeWordFirst = isTrue(member(model, "ignore_merges"));
  return absl::OkStatus();
}

absl::Status HuggingFaceReader::readVocabulary(const Json &model) {
  const Json &vocabulary = member(model, "vocab");
  if (!vocabulary.is_object() || vocabulary.empty())
    return fail(model, "model.vocab", "an object of tokens and ids",
                vocabulary.is_null() ? "none" : vocabulary.type_name());
  tokens.reserve(vocabulary.size());
  byText.reserve(vocabulary.size());
  for (const auto &entry : vocabulary.items()) {
    const std::string field = "model.vocab." + quoteForMessage(entry.key());
    LLAMAC_ASSIGN_OR_RETURN(const uint32_t id,
                            readId(entry.value(), entry.value(), field));
    const auto [at, isNew] =
        tokens.try_emplace(id, Token{entry.key(), TokenType::Normal});
    if (!isNew)
      return fail(
          entry.value(), field, "an id of its own",
          absl::StrCat(id, ", that of ", quoteForMessage(at->second.text)));
    byText.emplace(entry.key(), id);
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceReader::readAddedTokens() {
  const Json &added = member(document.root(), "added_tokens");
  if (added.is_null())
    return absl::OkStatus();
  if (!added.is_array())
    return fail(added, "added_tokens", "an array", added.type_name());
  for (size_t i = 0; i < added.size(); ++i) {
    const Json &entry = added[i];
    const std::string field = absl::StrCat("added_tokens[", i, "]");
    const Json &content = member(entry, "content");
    if (!content.is_string() || content.get_ref<const std::string &>().empty())
      return fail(added, field + ".content", "a string", show(content));
    const std::string &text = content.get_ref<const std::string &>();
    const Json &idValue = member(entry, "id");
    LLAMAC_ASSIGN_OR_RETURN(const uint32_t id,
                            readId(idValue, added, field + ".id"));
    for (const char *key : {"single_word", "lstrip", "rstrip"})
      if (isTrue(member(entry, key)))
        return unsupported(added, absl::StrCat(field, ".", key), "false",
                           "true");
    const TokenType type =
        isTrue(member(entry, "special")) ? TokenType::Control : TokenType::User;
    const auto [at, isNew] = tokens.try_emplace(id, Token{text, type});
    if (!isNew &&
        (at->second.text != text || at->second.type != TokenType::Normal))
      return fail(
          added, field + ".id", "an id of its own",
          absl::StrCat(id, ", that of ", quoteForMessage(at->second.text)));
    at->second.type = type;
    byText.emplace(text, id);
  }
  return absl::OkStatus();
}

// Ids need not be without gaps: a gap is a token that never occurs. But a
// lone huge id must not make a huge table.
absl::Status HuggingFaceReader::fillTokens(TokenizerData &data) const {
  const ByteLevelSpelling spelling;
  uint32_t largest = 0;
  for (const auto &[id, token] : tokens)
    largest = std::max(largest, id);
  if (largest >= 2 * tokens.size() + 65536)
    return fail(document.root(), "model.vocab",
                absl::StrCat("ids near its ", tokens.size(), " tokens"),
                largest);
  data.tokens.assign(largest + 1, "");
  data.types.assign(largest + 1, TokenType::Unused);
  for (const auto &[id, token] : tokens) {
    data.types[id] = token.type;
    data.tokens[id] = token.text;
    if (token.type != TokenType::Normal)
      continue;
    // A token that is not spelled in bytes stands for its text, and merging
    // bytes never makes it.
    const std::optional<std::string> bytes = spelling.bytes(token.text);
    if (bytes && !bytes->empty())
      data.tokens[id] = *bytes;
    else
      data.types[id] = TokenType::Unused;
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceReader::readMerges(const Json &model,
                                           TokenizerData &data) const {
  const Json &merges = member(model, "merges");
  if (!merges.is_array())
    return fail(model, "model.merges", "an array",
                merges.is_null() ? "none" : merges.type_name());
  for (uint32_t rank = 0; rank < merges.size(); ++rank) {
    const Json &merge = merges[rank];
    const std::string field = absl::StrCat("model.merges[", rank, "]");
    std::string left, right;
    if (merge.is_string()) {
      const std::string &text = merge.get_ref<const std::string &>();
      const size_t space = text.find(' ');
      if (space == std::string::npos)
        return fail(merges, field, "two tokens", show(merge));
      left = text.substr(0, space);
      right = text.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    } else {
      return fail(merges, field, "two tokens", show(merge));
    }
    uint32_t ids[3];
    size_t found = 0;
    for (const std::string &text : {left, right, left + right}) {
      const auto at = byText.find(text);
      if (at == byText.end())
        return fail(merges, field, "tokens of the vocabulary",
                    quoteForMessage(text));
      ids[found++] = at->second;
    }
    data.merges.push_back({ids[0], ids[1], rank, ids[2]});
  }
  return absl::OkStatus();
}

// A template that puts one special token before the text: begin of sequence.
absl::Status HuggingFaceReader::readTemplate(const Json &processor,
                                             TokenizerData &data) const {
  const Json &single = member(processor, "single");
  const Json &near = member(document.root(), "post_processor");
  if (!single.is_array())
    return fail(near, "post_processor.single", "an array", show(single));
  bool sequenceSeen = false;
  for (const Json &piece : single) {
    if (!member(piece, "Sequence").is_null()) {
      sequenceSeen = true;
      continue;
    }
    const Json &name = member(member(piece, "SpecialToken"), "id");
    if (!name.is_string())
      return fail(near, "post_processor.single",
                  "special tokens and the sequence", show(piece));
    const std::optional<uint32_t> id =
        find(name.get_ref<const std::string &>());
    if (!id)
      return fail(near, "post_processor.single", "a token of the vocabulary",
                  show(name));
    if (sequenceSeen || data.flags.addBos)
      return unsupported(near, "post_processor.single",
                         "one special token before the text", show(single));
    data.flags.addBos = true;
    data.bosId = id;
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceReader::readPostProcessor(TokenizerData &data) const {
  const Json &value = member(document.root(), "post_processor");
  for (const Json *step : steps(value, "processors")) {
    const Json &type = member(*step, "type");
    if (isString(type, "TemplateProcessing"))
      LLAMAC_RETURN_IF_ERROR(readTemplate(*step, data));
    else if (!isString(type, "ByteLevel")) // Moves offsets alone.
      return unsupported(value, "post_processor.type",
                         "ByteLevel or TemplateProcessing", show(type));
  }
  return absl::OkStatus();
}

absl::Status HuggingFaceReader::read(TokenizerData &data) {
  if (!document.root().is_object())
    return fail(document.root(), "tokenizer.json", "an object",
                document.root().type_name());
  const Json &normalizer = member(document.root(), "normalizer");
  if (!steps(normalizer, "normalizers").empty())
    return unsupported(normalizer, "normalizer", "null",
                       show(member(normalizer, "type")));
  const Json &decoder = member(document.root(), "decoder");
  if (!decoder.is_null() && !isString(member(decoder, "type"), "ByteLevel"))
    return unsupported(decoder, "decoder.type", "ByteLevel",
                       show(member(decoder, "type")));
  const Json &model = member(document.root(), "model");
  if (!model.is_object())
    return fail(document.root(), "model", "an object",
                model.is_null() ? "none" : model.type_name());
  data.kind = TokenizerKind::BytePair;
  LLAMAC_RETURN_IF_ERROR(readModelOptions(model, data));
  LLAMAC_RETURN_IF_ERROR(readPreTokenizer(data));
  LLAMAC_RETURN_IF_ERROR(readVocabulary(model));
  LLAMAC_RETURN_IF_ERROR(readAddedTokens());
  LLAMAC_RETURN_IF_ERROR(fillTokens(data));
  LLAMAC_RETURN_IF_ERROR(readMerges(model, data));
  const Json &unknown = member(model, "unk_token");
  if (unknown.is_string()) {
    data.unknownId = find(unknown.get_ref<const std::string &>());
    if (!data.unknownId)
      return fail(unknown, "model.unk_token", "a token of the vocabulary",
                  show(unknown));
  }
  return readPostProcessor(data);
}

std::optional<uint32_t> HuggingFaceReader::find(absl::string_view text) const {
  const auto at = byText.find(text);
  return at == byText.end() ? std::nullopt : std::optional(at->second);
}

// A token of tokenizer_config.json: its text, or an object with `content`.
static absl::StatusOr<std::optional<uint32_t>>
configToken(const JsonDocument &config, const HuggingFaceReader &vocabulary,
            const char *key) {
  const Json &value = member(config.root(), key);
  if (value.is_null())
    return std::nullopt;
  const Json &content = value.is_object() ? member(value, "content") : value;
  if (!content.is_string())
    return malformed(config.file(), config.offsetOf(value), key,
                     "the text of a token", show(value));
  const std::optional<uint32_t> id =
      vocabulary.find(content.get_ref<const std::string &>());
  if (!id)
    return malformed(config.file(), config.offsetOf(value), key,
                     "a token of the vocabulary", show(content));
  return id;
}

// chat_template: its text, or a list of named ones, of which "default" counts.
static std::string configTemplate(const Json &value) {
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_array())
    for (const Json &entry : value)
      if (isString(member(entry, "name"), "default") &&
          member(entry, "template").is_string())
        return member(entry, "template").get<std::string>();
  return "";
}

static absl::Status readTokenizerConfig(const NamedText &file,
                                        const HuggingFaceReader &vocabulary,
                                        TokenizerData &data) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument config,
                          parseJson(file.file, file.text, tokenizerLimits));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(config));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<uint32_t> bos,
                          configToken(config, vocabulary, "bos_token"));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<uint32_t> eos,
                          configToken(config, vocabulary, "eos_token"));
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<bool> addBos,
                          root.optionalBool("add_bos_token"));
  if (bos)
    data.bosId = bos;
  if (eos)
    data.eosId = eos;
  data.flags.addBos = addBos.value_or(data.flags.addBos);
  if (data.flags.addBos && !data.bosId)
    return malformed(file.file, 0, "bos_token",
                     "a token, as add_bos_token is set", "none");
  data.chatTemplate = configTemplate(member(config.root(), "chat_template"));
  return absl::OkStatus();
}

static absl::Status readGenerationConfig(const NamedText &file,
                                         TokenizerData &data) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument config,
                          parseJson(file.file, file.text, tokenizerLimits));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(config));
  const int64_t n = static_cast<int64_t>(data.tokens.size());
  const std::string idBelow = absl::StrCat("an id below ", n);
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int64_t> ends,
                          root.intOrInts("eos_token_id"));
  for (int64_t id : ends) {
    if (id < 0 || id >= n)
      return root.fail("eos_token_id", idBelow, absl::StrCat(id));
    data.stopIds.push_back(static_cast<uint32_t>(id));
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<int64_t> begins,
                          root.intOrInts("bos_token_id"));
  for (int64_t id : begins)
    if (id < 0 || id >= n)
      return root.fail("bos_token_id", idBelow, absl::StrCat(id));
  if (!data.eosId && !ends.empty())
    data.eosId = data.stopIds.front();
  if (!data.bosId && !begins.empty())
    data.bosId = static_cast<uint32_t>(begins.front());
  return absl::OkStatus();
}

absl::StatusOr<std::string>
buildHuggingFaceBlob(const HuggingFaceFiles &files) {
  LLAMAC_ASSIGN_OR_RETURN(
      const JsonDocument document,
      parseJson(files.tokenizer.file, files.tokenizer.text, tokenizerLimits));
  HuggingFaceReader reader(document);
  TokenizerData data;
  LLAMAC_RETURN_IF_ERROR(reader.read(data));
  if (files.tokenizerConfig)
    LLAMAC_RETURN_IF_ERROR(
        readTokenizerConfig(*files.tokenizerConfig, reader, data));
  if (files.generationConfig)
    LLAMAC_RETURN_IF_ERROR(readGenerationConfig(*files.generationConfig, data));
  if (files.chatTemplate)
    data.chatTemplate = std::string(files.chatTemplate->text);
  return writeTokenizerBlob(std::move(data), files.tokenizer.file);
}

} // namespace llamac
