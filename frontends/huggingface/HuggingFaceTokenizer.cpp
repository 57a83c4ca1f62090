//===- HuggingFaceTokenizer.cpp - tokenizer.json --------------------------===//
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
// Tokens and merges of a "gpt2" vocabulary in GGUF already have the spelling
// that tokenizer.json uses. What GGUF says by a name, how words are cut,
// becomes the steps that the name stands for.
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteCursor.h"
#include "frontends/ByteTokens.h"
#include "frontends/Files.h"
#include "frontends/TokenizerBlobWriter.h"
#include "frontends/TokenizerSources.h"
#include "frontends/gguf/GgufKeys.h"
#include "frontends/gguf/GgufReader.h"
#include "runtime/io/AtomicFile.h"
#include "runtime/io/JsonReader.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include <nlohmann/json.hpp>

#include <map>

namespace llamac {

using nlohmann::json;

static constexpr JsonLimits tokenizerLimits = {.maxBytes = uint64_t{256} << 20,
                                               .maxDepth = 64};

// The member `key` of `object`, or null where there is none.
static const json &member(const json &object, const char *key) {
  static const json null;
  if (!object.is_object())
    return null;
  const auto at = object.find(key);
  return at == object.end() ? null : *at;
}

static bool isTrue(const json &value) {
  return value.is_boolean() && value.get<bool>();
}

// The string `value`, empty where it is none.
static absl::string_view textOf(const json &value) {
  return value.is_string()
             ? absl::string_view(value.get_ref<const std::string &>())
             : absl::string_view();
}

// Either one step or a Sequence of steps.
static std::vector<const json *> steps(const json &value, const char *list) {
  std::vector<const json *> out;
  if (textOf(member(value, "type")) != "Sequence") {
    if (!value.is_null())
      out.push_back(&value);
    return out;
  }
  if (const json &sequence = member(value, list); sequence.is_array())
    for (const json &step : sequence)
      out.push_back(&step);
  return out;
}

namespace {

// Keeps the first error; after one, what is read does not matter.
class HuggingFaceReader {
public:
  HuggingFaceReader(const JsonDocument &document, TokenizerData &data)
      : document(document), root(document.root()), data(data) {}

  absl::Status read() {
    expect(root.is_object(), root, "tokenizer.json", "an object",
           root.type_name());
    const json &model = member(root, "model");
    expect(model.is_object(), root, "model", "an object", kindOf(model));
    readModelOptions(model);
    if (ofPieces())
      readStepsOfPieces();
    else
      readStepsOfBytes();
    readVocabulary(model);
    readAddedTokens(member(root, "added_tokens"));
    LLAMAC_RETURN_IF_ERROR(error);
    fillTokens();
    readMerges(model);
    if (const json &unknown = member(model, "unk_token"); unknown.is_string())
      data.unknownId = findToken(unknown, unknown, "model.unk_token");
    readPostProcessor(member(root, "post_processor"));
    return error;
  }

  /// tokenizer_config.json.
  absl::Status readConfig(const NamedText &file);

private:
  static absl::string_view kindOf(const json &value) {
    return value.is_null() ? "none" : value.type_name();
  }

  absl::Status problem(const json &near, absl::string_view field,
                       const absl::AlphaNum &expected,
                       const absl::AlphaNum &got) const {
    return document.malformed(document.offsetOf(near), field, expected, got);
  }
  // Errors near `near` unless `holds`: a bad file, or what is not supported.
  void expect(bool holds, const json &near, absl::string_view field,
              absl::string_view expected, absl::string_view got) {
    if (!holds)
      error.Update(problem(near, field, expected, got));
  }
  void support(bool holds, const json &near, absl::string_view field,
               absl::string_view expected, const json &got) {
    if (!holds)
      error.Update(unsupportedError(
          problem(near, field, expected, jsonForMessage(got)).message()));
  }

  uint32_t readId(const json &value, const json &near,
                  absl::string_view field) {
    if (value.is_number_unsigned() && value.get<uint64_t>() < maxVocabularySize)
      return value.get<uint32_t>();
    error.Update(problem(near, field,
                         absl::StrCat("an id below ", maxVocabularySize),
                         jsonForMessage(value)));
    return 0;
  }

  // The id of a token by its text, ordinary or added; nothing and an error
  // where there is none.
  std::optional<uint32_t> findToken(const json &text, const json &near,
                                    absl::string_view field) {
    const auto at = byText.find(textOf(text));
    if (at != byText.end())
      return at->second;
    error.Update(problem(near, field, "a token of the vocabulary",
                         jsonForMessage(text)));
    return std::nullopt;
  }

  // Whether words start as characters, which fall back to bytes.
  bool ofPieces() const { return data.kind == TokenizerKind::RankedPieces; }

  void readStepsOfBytes() {
    const json &normalizer = member(root, "normalizer");
    for (const json *step : steps(normalizer, "normalizers")) {
      const json &type = member(*step, "type");
      support(textOf(type) == "NFC", normalizer, "normalizer", "null or NFC",
              type);
      data.flags.composes = true;
    }
    const json &decoder = member(root, "decoder");
    const json &decoderType = member(decoder, "type");
    support(decoder.is_null() || textOf(decoderType) == "ByteLevel", decoder,
            "decoder.type", "ByteLevel", decoderType);
    readPreTokenizer(member(root, "pre_tokenizer"));
  }

  // Spaces become U+2581, and back. A Split at spaces then finds none.
  void readStepsOfPieces() {
    const auto replace = [](const char *from, const char *to) {
      return json{{"type", "Replace"},
                  {"pattern", {{"String", from}}},
                  {"content", to}};
    };
    const json &normalizer = member(root, "normalizer");
    std::vector<const json *> normalizers = steps(normalizer, "normalizers");
    // Which the decoder takes away again.
    data.flags.addSpacePrefix =
        normalizers.size() == 2 &&
        *normalizers[0] == json{{"type", "Prepend"}, {"prepend", mark}};
    if (data.flags.addSpacePrefix)
      normalizers.erase(normalizers.begin());
    support(normalizers.size() == 1 && *normalizers[0] == replace(" ", mark),
            normalizer, "normalizer",
            "a space replaced by U+2581, one of which may be put first",
            normalizer);
    const json &split = member(root, "pre_tokenizer");
    support(split.is_null() ||
                (textOf(member(split, "type")) == "Split" &&
                 member(split, "pattern") == json{{"String", " "}} &&
                 !isTrue(member(split, "invert"))),
            split, "pre_tokenizer", "null or a Split at spaces", split);
    const json &decoder = member(root, "decoder");
    std::vector<const json *> decoders = steps(decoder, "decoders");
    const bool strips =
        decoders.size() == 4 && *decoders[3] == json{{"type", "Strip"},
                                                     {"content", " "},
                                                     {"start", 1},
                                                     {"stop", 0}};
    if (strips)
      decoders.pop_back();
    support(decoders.size() == 3 && *decoders[0] == replace(mark, " ") &&
                *decoders[1] == json{{"type", "ByteFallback"}} &&
                *decoders[2] == json{{"type", "Fuse"}} &&
                strips == data.flags.addSpacePrefix,
            decoder, "decoder",
            "U+2581 replaced by a space, ByteFallback and Fuse, then Strip "
            "where the normalizer puts a space first",
            decoder);
  }

  // Reads the expressions by which the steps cut text, in their order.
  void readPreTokenizer(const json &value) {
    bool byteLevel = false;
    std::vector<absl::string_view> expressions;
    for (const json *step : steps(value, "pretokenizers")) {
      const json &type = member(*step, "type");
      support(!byteLevel, value, "pre_tokenizer", "ByteLevel as the last step",
              type);
      if (textOf(type) == "Split") {
        readSplit(*step, value);
        expressions.push_back(
            textOf(member(member(*step, "pattern"), "Regex")));
      } else if (textOf(type) == "Digits") {
        const json &individual = member(*step, "individual_digits");
        support(isTrue(individual), value,
                "pre_tokenizer.Digits.individual_digits", "true", individual);
        expressions.push_back(digitExpression);
      } else if (textOf(type) == "ByteLevel") {
        const json &prefix = member(*step, "add_prefix_space");
        support(!isTrue(prefix), value,
                "pre_tokenizer.ByteLevel.add_prefix_space", "false", prefix);
        byteLevel = true;
        // The library's default is true.
        const json &flag = member(*step, "use_regex");
        if (flag.is_null() || isTrue(flag))
          expressions.push_back(gpt2Expression);
      } else {
        support(false, value, "pre_tokenizer.type",
                "Split, Digits or ByteLevel", type);
      }
    }
    for (int kind = 0; kind <= static_cast<int>(lastPreTokenizer); ++kind) {
      data.preTokenizer = static_cast<PreTokenizerKind>(kind);
      if (byteLevel && absl::c_equal(preTokenizerExpressions(data.preTokenizer),
                                     expressions))
        return;
    }
    error.Update(unsupportedError(
        problem(value, "pre_tokenizer",
                "the steps of Llama 3, Qwen, GPT-4o, Tekken, GPT-2, SmolLM, "
                "DeepSeek or another known model",
                byteLevel ? "another sequence" : "no ByteLevel")
            .message()));
  }

  // A Split whose matches are words. The expressions match all of a text, so
  // that it is the same to remove what they do not match.
  void readSplit(const json &step, const json &near) {
    const json &pattern = member(step, "pattern");
    const absl::string_view regex = textOf(member(pattern, "Regex"));
    bool isKnown = false;
    for (int kind = 0; kind <= static_cast<int>(lastPreTokenizer); ++kind)
      isKnown = isKnown ||
                absl::c_linear_search(preTokenizerExpressions(
                                          static_cast<PreTokenizerKind>(kind)),
                                      regex);
    support(isKnown, near, "pre_tokenizer.Split.pattern",
            "the expression of a known model, such as Llama 3's", pattern);
    const json &behavior = member(step, "behavior");
    const bool isInverted = isTrue(member(step, "invert"));
    support(textOf(behavior) == (isInverted ? "Removed" : "Isolated") &&
                (!isInverted || matchesAll(regex)),
            near, "pre_tokenizer.Split.behavior",
            "Isolated, or what is no match Removed", behavior);
  }

  // Whether an expression ends with what matches white space, as those do that
  // match everything.
  static bool matchesAll(absl::string_view regex) {
    return absl::EndsWith(regex, R"(|\s+(?!\S)|\s+)");
  }

  void readModelOptions(const json &model) {
    // Old files of GPT-2 have no type.
    const json &type = member(model, "type");
    support(textOf(type) == "BPE" || type.is_null(), type, "model.type", "BPE",
            type);
    for (const char *key :
         {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      const json &value = member(model, key);
      support(value.is_null() || value == json("") ||
                  (value.is_number() && value.get<double>() == 0.0),
              value, absl::StrCat("model.", key), "null", value);
    }
    data.flags.wholeWordFirst = isTrue(member(model, "ignore_merges"));
    data.kind = isTrue(member(model, "byte_fallback"))
                    ? TokenizerKind::RankedPieces
                    : TokenizerKind::BytePair;
    // Where every byte has a token, nothing is unknown, fused or not.
    const char *key = ofPieces() ? "ignore_merges" : "fuse_unk";
    support(!isTrue(member(model, key)), member(model, key),
            absl::StrCat("model.", key), "false", member(model, key));
  }

  struct Token {
    std::string text;
    TokenType type;
  };

  // Adds a token; an added one may have the id of an ordinary one of its text.
  void addToken(uint32_t id, const std::string &text, TokenType type,
                const json &near, absl::string_view field) {
    const auto [at, isNew] = tokens.try_emplace(id, Token{text, type});
    if (!isNew && (type == TokenType::Normal || at->second.text != text ||
                   at->second.type != TokenType::Normal))
      error.Update(problem(
          near, field, "an id of its own",
          absl::StrCat(id, ", that of ", quoteForMessage(at->second.text))));
    at->second.type = type;
    byText.emplace(text, id);
  }

  void readVocabulary(const json &model) {
    const json &vocabulary = member(model, "vocab");
    expect(vocabulary.is_object() && !vocabulary.empty(), model, "model.vocab",
           "an object of tokens and ids", kindOf(vocabulary));
    if (!error.ok())
      return;
    tokens.reserve(vocabulary.size());
    byText.reserve(vocabulary.size());
    for (const auto &[text, value] : vocabulary.items()) {
      const std::string field = "model.vocab." + quoteForMessage(text);
      addToken(readId(value, value, field), text, TokenType::Normal, value,
               field);
    }
    for (int byte = 0; ofPieces() && byte < 256; ++byte)
      if (const std::string text = absl::StrFormat("<0x%02X>", byte);
          !byText.contains(text))
        support(false, model, "model.vocab",
                absl::StrCat(text, ", as byte_fallback is set"), json());
  }

  void readAddedTokens(const json &added) {
    expect(added.is_null() || added.is_array(), added, "added_tokens",
           "an array", kindOf(added));
    for (size_t i = 0; error.ok() && i < added.size(); ++i) {
      const json &entry = added[i];
      const std::string field = absl::StrCat("added_tokens[", i, "]");
      const json &content = member(entry, "content");
      expect(!textOf(content).empty(), added, field + ".content", "a string",
             jsonForMessage(content));
      const uint32_t id = readId(member(entry, "id"), added, field + ".id");
      const SpecialMarks marks = {
          .leftSpaces = isTrue(member(entry, "lstrip")),
          .rightSpaces = isTrue(member(entry, "rstrip")),
          .wholeWord = isTrue(member(entry, "single_word"))};
      if (marks != SpecialMarks{})
        data.specialMarks[id] = marks;
      // It would be found only behind the space that is put first.
      support(!data.flags.addSpacePrefix ||
                  !isTrue(member(entry, "normalized")),
              added, field + ".normalized",
              "false where the normalizer puts a space first",
              member(entry, "normalized"));
      if (ofPieces())
        checkSpaces(entry, textOf(content), added, field);
      addToken(id, std::string(textOf(content)),
               isTrue(member(entry, "special")) ? TokenType::Control
                                                : TokenType::User,
               added, field + ".id");
    }
  }

  // Added tokens are found before spaces become U+2581.
  void checkSpaces(const json &entry, absl::string_view text, const json &near,
                   const std::string &field) {
    support(!absl::StrContains(text, ' ') && text != mark, near,
            field + ".content", "no space and more than U+2581",
            member(entry, "content"));
    support(!absl::StrContains(text, mark) ||
                !isTrue(member(entry, "normalized")),
            near, field + ".normalized", "false where U+2581 is in the text",
            member(entry, "normalized"));
  }

  // Sets the bytes of an ordinary token, or of one that text spells.
  void fillPiece(uint32_t id, const std::string &text) {
    if (data.types[id] == TokenType::Normal) {
      if (absl::StrContains(text, ' ')) { // Which no text has any more.
        data.types[id] = TokenType::Unused;
        return;
      }
      if (std::optional<std::string> byte = pieceBytes(text, TokenType::Byte)) {
        data.types[id] = TokenType::Byte;
        data.tokens[id] = *std::move(byte);
        return;
      }
    }
    data.tokens[id] = *pieceBytes(text, TokenType::Normal);
  }

  // Ids may have gaps, which are tokens that never occur. A single huge id must
  // not make a huge table.
  void fillTokens() {
    const ByteLevelSpelling spelling;
    uint32_t largest = 0;
    for (const auto &[id, token] : tokens)
      largest = std::max(largest, id);
    expect(largest < 2 * tokens.size() + 65536, root, "model.vocab",
           absl::StrCat("ids near its ", tokens.size(), " tokens"),
           absl::StrCat(largest));
    if (!error.ok())
      return;
    data.tokens.assign(largest + 1, "");
    data.types.assign(largest + 1, TokenType::Unused);
    for (const auto &[id, token] : tokens) {
      data.types[id] = token.type;
      data.tokens[id] = token.text;
      if (ofPieces())
        fillPiece(id, token.text);
      if (ofPieces() || token.type != TokenType::Normal)
        continue;
      // A token that is not spelled in bytes stands for its text, and merging
      // bytes never makes it.
      const std::optional<std::string> bytes = spelling.bytes(token.text);
      if (bytes && !bytes->empty())
        data.tokens[id] = *bytes;
      else
        data.types[id] = TokenType::Unused;
    }
  }

  void readMerges(const json &model) {
    const json &merges = member(model, "merges");
    expect(merges.is_array(), model, "model.merges", "an array",
           kindOf(merges));
    for (uint32_t rank = 0; error.ok() && rank < merges.size(); ++rank) {
      const json &merge = merges[rank];
      const std::string field = absl::StrCat("model.merges[", rank, "]");
      absl::string_view left = textOf(merge), right;
      if (const size_t space = left.find(' '); space != left.npos) {
        right = left.substr(space + 1);
        left = left.substr(0, space);
      } else if (merge.is_array() && merge.size() == 2 &&
                 merge[0].is_string() && merge[1].is_string()) {
        left = textOf(merge[0]);
        right = textOf(merge[1]);
      } else {
        error.Update(
            problem(merges, field, "two tokens", jsonForMessage(merge)));
      }
      uint32_t ids[3] = {};
      size_t found = 0;
      for (const std::string &text :
           {std::string(left), std::string(right), absl::StrCat(left, right)}) {
        const auto at = byText.find(text);
        if (at != byText.end())
          ids[found++] = at->second;
        else
          error.Update(problem(merges, field, "tokens of the vocabulary",
                               quoteForMessage(text)));
      }
      data.merges.push_back({ids[0], ids[1], rank, ids[2]});
    }
  }

  // A template that puts one special token before the text: begin of sequence.
  void readTemplate(const json &single, const json &near) {
    constexpr absl::string_view field = "post_processor.single";
    expect(single.is_array(), near, field, "an array", jsonForMessage(single));
    bool sequenceSeen = false;
    for (size_t i = 0; error.ok() && i < single.size(); ++i) {
      if (!member(single[i], "Sequence").is_null()) {
        sequenceSeen = true;
        continue;
      }
      const json &name = member(member(single[i], "SpecialToken"), "id");
      expect(name.is_string(), near, field, "special tokens and the sequence",
             jsonForMessage(single[i]));
      data.bosId = findToken(name, near, field);
      support(!sequenceSeen && !data.flags.addBos, near, field,
              "one special token before the text", single);
      data.flags.addBos = true;
    }
  }

  void readPostProcessor(const json &value) {
    for (const json *step : steps(value, "processors")) {
      const json &type = member(*step, "type");
      if (textOf(type) == "TemplateProcessing")
        readTemplate(member(*step, "single"), value);
      else // ByteLevel moves offsets alone.
        support(textOf(type) == "ByteLevel", value, "post_processor.type",
                "ByteLevel or TemplateProcessing", type);
    }
  }

  static constexpr const char *mark = "\xE2\x96\x81"; // U+2581

  const JsonDocument &document;
  const json &root;
  TokenizerData &data;
  absl::Status error;
  absl::flat_hash_map<uint32_t, Token> tokens;
  absl::flat_hash_map<std::string, uint32_t> byText;
};

} // namespace

// chat_template: a text, or a list of named ones, of which the last of a name
// counts. False for what is neither.
static bool readTemplates(const json &value, ChatTemplates &templates) {
  if (value.is_string())
    templates.emplace(defaultChatTemplate, textOf(value));
  if (!value.is_array())
    return value.is_string() || value.is_null();
  for (const json &entry : value) {
    const json &name = member(entry, "name");
    const json &text = member(entry, "template");
    if (!name.is_string() || !text.is_string())
      return false;
    templates.insert_or_assign(std::string(textOf(name)),
                               std::string(textOf(text)));
  }
  return true;
}

absl::StatusOr<ChatTemplates> readChatTemplates(const ChatTemplateFiles &from) {
  ChatTemplates templates;
  for (const auto &[name, file] : from.files)
    templates.emplace(name, file.text);
  if (!from.tokenizerConfig || !templates.empty())
    return templates;
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument config,
                          parseJson(from.tokenizerConfig->file,
                                    from.tokenizerConfig->text,
                                    tokenizerLimits));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::root(config));
  const json &value = member(config.root(), "chat_template");
  if (!readTemplates(value, templates))
    return object.fail("chat_template",
                       "a text, or a list of objects with name and template",
                       jsonForMessage(value));
  return templates;
}

absl::Status HuggingFaceReader::readConfig(const NamedText &file) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument config,
                          parseJson(file.file, file.text, tokenizerLimits));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject object, JsonObject::root(config));
  // A token is its text, or an object with `content`.
  for (const auto &[key, id] : {std::pair("bos_token", &data.bosId),
                                std::pair("eos_token", &data.eosId)}) {
    const json &value = member(config.root(), key);
    if (value.is_null())
      continue;
    const json &content = value.is_object() ? member(value, "content") : value;
    if (!content.is_string())
      return object.fail(key, "the text of a token", jsonForMessage(value));
    const auto at = byText.find(textOf(content));
    if (at == byText.end())
      return object.fail(key, "a token of the vocabulary",
                         jsonForMessage(content));
    *id = at->second;
  }
  LLAMAC_ASSIGN_OR_RETURN(const std::optional<bool> addBos,
                          object.optionalBool("add_bos_token"));
  data.flags.addBos = addBos.value_or(data.flags.addBos);
  if (data.flags.addBos && !data.bosId)
    return object.fail("bos_token", "a token, as add_bos_token is set", "none");
  return absl::OkStatus();
}

// generation_config.json: the first id of each kind where no other file has
// one, and ids that end a text.
static absl::Status readTokenIds(const NamedText &file, TokenizerData &data) {
  LLAMAC_ASSIGN_OR_RETURN(const JsonDocument config,
                          parseJson(file.file, file.text, tokenizerLimits));
  LLAMAC_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::root(config));
  const int64_t n = static_cast<int64_t>(data.tokens.size());
  for (const auto &[key, first] : {std::pair("eos_token_id", &data.eosId),
                                   std::pair("bos_token_id", &data.bosId)}) {
    LLAMAC_ASSIGN_OR_RETURN(const std::vector<int64_t> ids,
                            root.intOrInts(key));
    for (int64_t id : ids) {
      if (id < 0 || id >= n)
        return root.fail(key, absl::StrCat("an id below ", n),
                         absl::StrCat(id));
      if (first == &data.eosId)
        data.stopIds.push_back(static_cast<uint32_t>(id));
    }
    if (!*first && !ids.empty())
      *first = static_cast<uint32_t>(ids.front());
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> largestAddedToken(const NamedText &tokenizer) {
  LLAMAC_ASSIGN_OR_RETURN(
      const JsonDocument document,
      parseJson(tokenizer.file, tokenizer.text, tokenizerLimits));
  int64_t largest = -1;
  for (const json &entry : member(document.root(), "added_tokens"))
    if (const json &id = member(entry, "id"); id.is_number_unsigned())
      largest = std::max(largest, static_cast<int64_t>(std::min<uint64_t>(
                                      id.get<uint64_t>(), maxVocabularySize)));
  return largest;
}

absl::StatusOr<std::string>
buildHuggingFaceBlob(const HuggingFaceFiles &files) {
  LLAMAC_ASSIGN_OR_RETURN(
      const JsonDocument document,
      parseJson(files.tokenizer.file, files.tokenizer.text, tokenizerLimits));
  TokenizerData data;
  HuggingFaceReader reader(document, data);
  LLAMAC_RETURN_IF_ERROR(reader.read());
  if (files.tokenizerConfig)
    LLAMAC_RETURN_IF_ERROR(reader.readConfig(*files.tokenizerConfig));
  if (files.generationConfig)
    LLAMAC_RETURN_IF_ERROR(readTokenIds(*files.generationConfig, data));
  data.chatTemplates = files.chatTemplates;
  return writeTokenizerBlob(std::move(data), files.tokenizer.file);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

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
  OrderedJson list = OrderedJson::array();
  bool useRegex = false;
  for (absl::string_view expression : preTokenizerExpressions(kind)) {
    if (expression == gpt2Expression) // The last one wherever it is.
      useRegex = true;
    else if (expression == digitExpression)
      list.push_back({{"type", "Digits"}, {"individual_digits", true}});
    else
      list.push_back({{"type", "Split"},
                      {"pattern", {{"Regex", text(expression)}}},
                      {"behavior", "Isolated"},
                      {"invert", false}});
  }
  if (list.empty())
    return byteLevel(useRegex);
  list.push_back(byteLevel(useRegex));
  return {{"type", "Sequence"}, {"pretokenizers", list}};
}

static OrderedJson addedTokensJson(const TokenizerBlob &blob) {
  std::map<int32_t, SpecialMarks> specials;
  const std::vector<int32_t> ids = blob.specialIds();
  for (size_t i = 0; i < ids.size(); ++i)
    specials.emplace(ids[i], blob.specialMarks(i));
  OrderedJson added = OrderedJson::array();
  for (const auto &[id, marks] : specials)
    added.push_back({{"id", id},
                     {"content", text(blob.tokenBytes(id))},
                     {"single_word", marks.wholeWord},
                     {"lstrip", marks.leftSpaces},
                     {"rstrip", marks.rightSpaces},
                     {"normalized", false},
                     {"special", blob.tokenType(id) != TokenType::User}});
  return added;
}

static OrderedJson configJson(const TokenizerBlob &blob) {
  OrderedJson config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                        {"add_bos_token", blob.flags().addBos}};
  if (blob.bosId())
    config["bos_token"] = text(blob.tokenBytes(*blob.bosId()));
  if (blob.eosId())
    config["eos_token"] = text(blob.tokenBytes(*blob.eosId()));
  const std::vector<NamedChatTemplate> &templates = blob.chatTemplates();
  if (templates.size() == 1 && templates[0].name == defaultChatTemplate)
    config["chat_template"] = text(templates[0].text);
  else
    for (const auto &[name, source] : templates)
      config["chat_template"].push_back(
          OrderedJson{{"name", text(name)}, {"template", text(source)}});
  return config;
}

/// Writes `json`. Only a token can hold text that is not UTF-8; it is replaced.
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
                          reader.strings(ggufkeys::tokens));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<absl::string_view> merges,
                          reader.strings(ggufkeys::merges));
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
