//===- GgufTokenizer.cpp - The tokenizer in GGUF metadata -----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two kinds of vocabulary: "gpt2", tokens in GPT-2's spelling of bytes with a
// list of merges, the first of which has the lowest rank; and "llama",
// SentencePiece's tokens with scores. The ids follow llama.cpp.
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteCursor.h"
#include "frontends/ByteTokens.h"
#include "frontends/CheckpointFormats.h"
#include "frontends/TokenizerBlobWriter.h"
#include "frontends/TokenizerSources.h"
#include "frontends/gguf/GgufKeys.h"
#include "frontends/gguf/GgufWriter.h"
#include "runtime/base/Terminal.h"
#include "text/tokenizer/CharClasses.h"
#include "text/tokenizer/SentencePieceModel.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace llamac {

namespace {

/// A name of tokenizer.ggml.pre and what it means.
struct PreName {
  absl::string_view name;
  PreTokenizerKind kind;
  bool wholeWordFirst = false;
  bool addBos = false; ///< Where the file does not say.
};

} // namespace

// llama.cpp's names, by what they mean. The first one of a meaning is written.
static constexpr PreName preNames[] = {
    {"", PreTokenizerKind::Coarse},
    {"default", PreTokenizerKind::Coarse},
    {"llama-bpe", PreTokenizerKind::Llama3, true, true},
    {"llama-v3", PreTokenizerKind::Llama3, true, true},
    {"llama3", PreTokenizerKind::Llama3, true, true},
    {"falcon3", PreTokenizerKind::Llama3, true, true},
    {"falcon-h1", PreTokenizerKind::Llama3, true, true},
    {"jina-v5-nano", PreTokenizerKind::Llama3, true, true},
    {"lfm2", PreTokenizerKind::Llama3, true, true},
    {"midm-2.0", PreTokenizerKind::Llama3, true, true},
    {"pixtral", PreTokenizerKind::Llama3, true, true},
    {"dbrx", PreTokenizerKind::Llama3},
    {"chatglm-bpe", PreTokenizerKind::Llama3},
    {"glm4", PreTokenizerKind::Llama3},
    {"smaug-bpe", PreTokenizerKind::Llama3},
    {"gpt-2", PreTokenizerKind::Gpt2},
    {"a.x-4.0", PreTokenizerKind::Gpt2},
    {"exaone4", PreTokenizerKind::Gpt2},
    {"gigachat", PreTokenizerKind::Gpt2},
    {"granite-docling", PreTokenizerKind::Gpt2},
    {"jais", PreTokenizerKind::Gpt2},
    {"jina-de", PreTokenizerKind::Gpt2},
    {"jina-es", PreTokenizerKind::Gpt2},
    {"jina-v1-en", PreTokenizerKind::Gpt2},
    {"jina-v2-code", PreTokenizerKind::Gpt2},
    {"jina-v2-de", PreTokenizerKind::Gpt2},
    {"jina-v2-es", PreTokenizerKind::Gpt2},
    {"mellum", PreTokenizerKind::Gpt2},
    {"modern-bert", PreTokenizerKind::Gpt2},
    {"mpt", PreTokenizerKind::Gpt2},
    {"olmo", PreTokenizerKind::Gpt2},
    {"phi-2", PreTokenizerKind::Gpt2},
    {"roberta-bpe", PreTokenizerKind::Gpt2},
    {"trillion", PreTokenizerKind::Gpt2},
    {"smollm", PreTokenizerKind::SmolLM},
    {"codeshell", PreTokenizerKind::SmolLM},
    {"command-r", PreTokenizerKind::SmolLM},
    {"exaone", PreTokenizerKind::SmolLM},
    {"mellum2", PreTokenizerKind::SmolLM},
    {"minerva-7b", PreTokenizerKind::SmolLM},
    {"refact", PreTokenizerKind::SmolLM},
    {"starcoder", PreTokenizerKind::SmolLM},
    {"qwen2", PreTokenizerKind::Qwen2},
    {"deepseek-r1-qwen", PreTokenizerKind::Qwen2},
    {"f2llmv2", PreTokenizerKind::Qwen2},
    {"grok-2", PreTokenizerKind::Qwen2},
    {"hunyuan", PreTokenizerKind::Qwen2},
    {"kormo", PreTokenizerKind::Qwen2},
    {"megrez", PreTokenizerKind::Qwen2},
    {"solar-open", PreTokenizerKind::Qwen2},
    {"stablelm2", PreTokenizerKind::Qwen2},
    {"gpt-4o", PreTokenizerKind::Gpt4o},
    {"kanana2", PreTokenizerKind::Gpt4o},
    {"llama4", PreTokenizerKind::Gpt4o},
    {"minimax-m2", PreTokenizerKind::Gpt4o},
    {"talkie", PreTokenizerKind::Gpt4o},
    {"granite-embed-multi-97m", PreTokenizerKind::Gpt4o, true},
    {"tekken", PreTokenizerKind::Tekken, true, true},
    {"bailingmoe", PreTokenizerKind::BailingMoe},
    {"bailingmoe2", PreTokenizerKind::BailingMoe},
    {"llada-moe", PreTokenizerKind::BailingMoe},
    {"bloom", PreTokenizerKind::Bloom},
    {"gpt3-finnish", PreTokenizerKind::Bloom},
    {"poro-chat", PreTokenizerKind::Bloom},
    {"chameleon", PreTokenizerKind::Chameleon, false, true},
    {"deepseek-coder", PreTokenizerKind::DeepSeekCoder},
    {"deepseek-llm", PreTokenizerKind::DeepSeekLlm},
    {"deepseek-v3", PreTokenizerKind::DeepSeek3},
    {"hunyuan-dense", PreTokenizerKind::DeepSeek3},
    {"hy_v4", PreTokenizerKind::DeepSeek3},
    {"joyai-llm", PreTokenizerKind::DeepSeek3},
    {"exaone-moe", PreTokenizerKind::ExaoneMoe},
    {"falcon", PreTokenizerKind::Falcon},
    {"jais-2", PreTokenizerKind::Jais2},
    {"kimi-k2", PreTokenizerKind::KimiK2},
    {"laguna", PreTokenizerKind::Laguna},
    {"minicpm5", PreTokenizerKind::MiniCpm5, true},
    {"qwen35", PreTokenizerKind::Qwen35},
    {"seed-coder", PreTokenizerKind::SeedCoder},
    {"spark2_5", PreTokenizerKind::Spark},
    {"superbpe", PreTokenizerKind::SuperBpe},
    {"cohere2moe", PreTokenizerKind::TinyAya},
    {"tiny_aya", PreTokenizerKind::TinyAya},
    {"ufakzeka", PreTokenizerKind::UfakZeka},
    {"viking", PreTokenizerKind::Viking},
    {"youtu", PreTokenizerKind::Youtu, true},
};

// Tokens that llama.cpp knows by their text where no key has their id: those of
// filling in the middle.
namespace {

struct RoleName {
  absl::string_view key; ///< Less "_token_id".
  absl::string_view text;
};

} // namespace

static constexpr RoleName roleNames[] = {
    {"fim_pre", "<|fim_prefix|>"},  {"fim_pre", "<fim-prefix>"},
    {"fim_pre", "<fim_prefix>"},    {"fim_pre", "<｜fim▁begin｜>"},
    {"fim_pre", "<PRE>"},           {"fim_pre", "▁<PRE>"},
    {"fim_pre", "<|code_prefix|>"}, {"fim_pre", "<|prefix|>"},
    {"fim_suf", "<|fim_suffix|>"},  {"fim_suf", "<fim-suffix>"},
    {"fim_suf", "<fim_suffix>"},    {"fim_suf", "<｜fim▁hole｜>"},
    {"fim_suf", "<SUF>"},           {"fim_suf", "▁<SUF>"},
    {"fim_suf", "<|code_suffix|>"}, {"fim_suf", "<|suffix|>"},
    {"fim_mid", "<|fim_middle|>"},  {"fim_mid", "<fim-middle>"},
    {"fim_mid", "<fim_middle>"},    {"fim_mid", "<｜fim▁end｜>"},
    {"fim_mid", "<MID>"},           {"fim_mid", "▁<MID>"},
    {"fim_mid", "<|code_middle|>"}, {"fim_mid", "<|middle|>"},
    {"fim_pad", "<|fim_pad|>"},     {"fim_pad", "<fim-pad>"},
    {"fim_pad", "<fim_pad>"},       {"fim_pad", "<PAD>"},
    {"fim_pad", "[PAD]"},           {"fim_rep", "<|fim_repo|>"},
    {"fim_rep", "<|repo_name|>"},   {"fim_rep", "<fim-repo>"},
    {"fim_rep", "<REPO>"},          {"fim_rep", "<reponame>"},
    {"fim_sep", "<|file_sep|>"},
};

// The roles above that end an answer.
static constexpr absl::string_view stopRoles[] = {"fim_pad", "fim_rep",
                                                  "fim_sep"};

// Types by GGUF's token_type; 0 is undefined.
static constexpr TokenType typesByNumber[] = {
    TokenType::Unused,  TokenType::Normal, TokenType::Unknown,
    TokenType::Control, TokenType::User,   TokenType::Unused,
    TokenType::Byte};

namespace {

/// Turns a GgufVocabulary into TokenizerData.
class GgufVocabularyReader {
public:
  explicit GgufVocabularyReader(const GgufVocabulary &vocabulary)
      : source(vocabulary) {}

  absl::StatusOr<std::string> build() {
    if (source.model == "gpt2")
      LLAMAC_RETURN_IF_ERROR(readBytePair());
    else if (source.model == "llama")
      LLAMAC_RETURN_IF_ERROR(readScoredPieces());
    else
      return unsupportedError(absl::StrCat(
          source.file, ": tokenizer.ggml.model: expected gpt2 or llama, got ",
          quoteForMessage(source.model)));
    LLAMAC_RETURN_IF_ERROR(readIds());
    markSpecials();
    for (const auto &[name, text] : source.chatTemplates)
      data.chatTemplates.emplace(name, text);
    return writeTokenizerBlob(std::move(data), source.file);
  }

private:
  // An error at `at`, a view of the file, or of the file as a whole.
  absl::Status fail(absl::string_view key, absl::string_view at,
                    const absl::AlphaNum &expected,
                    const absl::AlphaNum &got) const {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(source.contents.data());
    const uintptr_t place = reinterpret_cast<uintptr_t>(at.data());
    const bool inside =
        place >= begin && place - begin < source.contents.size();
    return malformed(source.file, inside ? place - begin : 0,
                     absl::StrCat("tokenizer.ggml.", key), expected, got);
  }

  absl::Status readTypes() {
    const size_t n = source.tokens.size();
    if (n == 0 || n > maxVocabularySize)
      return fail("tokens", {}, absl::StrCat("1 to ", maxVocabularySize), n);
    data.types.assign(n, TokenType::Normal);
    if (source.types.empty())
      return absl::OkStatus();
    if (source.types.size() != n)
      return fail("token_type", {},
                  absl::StrCat(n, " types, one for each token"),
                  source.types.size());
    for (size_t id = 0; id < n; ++id) {
      const int64_t number = source.types[id];
      if (number < 0 || number >= std::ssize(typesByNumber))
        return fail(absl::StrCat("token_type[", id, "]"), {}, "0 to 6", number);
      data.types[id] = typesByNumber[number];
    }
    readNames();
    return absl::OkStatus();
  }

  // Takes tokens with the names of control tokens for such, whatever type the
  // file gives them, as llama.cpp does, and finds the ids that no key has.
  void readNames() {
    absl::flat_hash_map<absl::string_view, uint32_t> byText;
    byText.reserve(source.tokens.size());
    for (uint32_t id = 0; id < source.tokens.size(); ++id)
      byText.emplace(source.tokens[id], id);
    const auto setType = [&](absl::string_view name, TokenType type) {
      if (const auto at = byText.find(name); at != byText.end())
        data.types[at->second] = type;
    };
    for (absl::string_view name : stopTokenNames())
      setType(name, TokenType::Control);
    absl::string_view found;
    for (const auto &[role, text] : roleNames) {
      const auto at = byText.find(text);
      if (at == byText.end() || found == role ||
          source.roleIds.contains(std::string(role)))
        continue;
      found = role; // The first of its names.
      data.types[at->second] = TokenType::Control;
      if (absl::c_linear_search(stopRoles, role))
        data.stopIds.push_back(at->second);
    }
  }

  // llama.cpp knows by the model's name, or by the pre-tokenizer's, whether
  // white space belongs to special tokens. No key says so.
  void markSpecials() {
    const std::string name = absl::AsciiStrToLower(source.name);
    const bool isPhi3 =
        absl::StrContains(name, "phi-3") || absl::StrContains(name, "phi3");
    for (uint32_t id = 0; id < source.tokens.size(); ++id) {
      const absl::string_view text = source.tokens[id];
      const bool isMask =
          (text == "<mask>" && absl::StartsWith(source.pre, "jina-v2-")) ||
          (text == "[MASK]" && absl::StrContains(name, "modern-bert"));
      const bool hasSpaces =
          isPhi3 && text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
      if (isMask || hasSpaces)
        data.specialMarks[id] = {.leftSpaces = isMask,
                                 .rightSpaces = hasSpaces};
    }
    data.flags.asciiSpaces = !data.specialMarks.empty();
  }

  void readBytePairTokens() {
    const ByteLevelSpelling spelling;
    for (size_t id = 0; id < source.tokens.size(); ++id) {
      const absl::string_view text = source.tokens[id];
      TokenType &type = data.types[id];
      if (type == TokenType::Byte)
        type = TokenType::Normal;
      // A token that is not in the spelling stands for its text; merging bytes
      // never makes it.
      const std::optional<std::string> bytes =
          type == TokenType::Normal ? spelling.bytes(text) : std::nullopt;
      if (!bytes && type == TokenType::Normal)
        type = TokenType::Unused;
      if (text.empty() && type != TokenType::Control)
        type = TokenType::Unused;
      data.tokens.push_back(bytes ? *bytes : std::string(text));
    }
  }

  absl::Status readMerges() {
    absl::flat_hash_map<absl::string_view, uint32_t> byText;
    byText.reserve(source.tokens.size());
    for (uint32_t id = 0; id < source.tokens.size(); ++id)
      if (data.types[id] == TokenType::Normal)
        if (const auto [at, isNew] = byText.emplace(source.tokens[id], id);
            !isNew)
          return fail(absl::StrCat("tokens[", id, "]"), source.tokens[id],
                      "a text of its own",
                      absl::StrCat("that of ", at->second));

    if (source.merges.empty())
      return fail("merges", {}, "a list of merges", "none");
    for (uint32_t rank = 0; rank < source.merges.size(); ++rank) {
      const absl::string_view merge = source.merges[rank];
      const std::string key = absl::StrCat("merges[", rank, "]");
      // A token may begin with a space: the separator is not the first
      // character.
      const size_t space = merge.find(' ', 1);
      if (space == absl::string_view::npos)
        return fail(key, merge, "two tokens", quoteForMessage(merge));
      const absl::string_view left = merge.substr(0, space);
      const absl::string_view right = merge.substr(space + 1);
      const auto leftId = byText.find(left);
      const auto rightId = byText.find(right);
      const auto result = byText.find(absl::StrCat(left, right));
      // Tools write truncated vocabularies with the full list of merges. As in
      // llama.cpp, merges of unknown tokens are skipped.
      if (leftId == byText.end() || rightId == byText.end() ||
          result == byText.end())
        continue;
      data.merges.push_back(
          {leftId->second, rightId->second, rank, result->second});
    }
    return absl::OkStatus();
  }

  absl::Status readBytePair() {
    const PreName *pre = nullptr;
    for (const PreName &known : preNames)
      if (known.name == source.pre)
        pre = &known;
    if (!pre)
      return unsupportedError(absl::StrCat(
          source.file, ": tokenizer.ggml.pre: expected one of ",
          absl::StrJoin(preNames, ", ",
                        [](std::string *out, const PreName &known) {
                          absl::StrAppend(out, known.name);
                        }),
          ", got ", quoteForMessage(source.pre)));
    data.kind = TokenizerKind::BytePair;
    data.preTokenizer = pre->kind;
    data.flags.wholeWordFirst = pre->wholeWordFirst;
    data.flags.addBos = source.addBos.value_or(pre->addBos);
    data.flags.replaceInvalid = true;
    LLAMAC_RETURN_IF_ERROR(readTypes());
    readBytePairTokens();
    return readMerges();
  }

  absl::Status readScoredPieces() {
    data.kind = TokenizerKind::ScoredPieces;
    data.flags.addBos = source.addBos.value_or(true);
    data.flags.addSpacePrefix = source.addSpacePrefix.value_or(true);
    LLAMAC_RETURN_IF_ERROR(readTypes());
    const size_t n = source.tokens.size();
    if (source.scores.size() != n)
      return fail("scores", {}, absl::StrCat(n, " scores, one for each token"),
                  source.scores.size());
    absl::flat_hash_map<std::string, uint32_t> seen;
    for (uint32_t id = 0; id < n; ++id) {
      const absl::string_view text = source.tokens[id];
      if (!std::isfinite(source.scores[id]))
        return fail(absl::StrCat("scores[", id, "]"), {}, "a number",
                    "infinity or NaN");
      std::optional<std::string> bytes = pieceBytes(text, data.types[id]);
      if (!bytes)
        return fail(absl::StrCat("tokens[", id, "]"), text, "<0x00> to <0xFF>",
                    quoteForMessage(text));
      if (data.types[id] == TokenType::Normal)
        if (const auto [at, isNew] = seen.emplace(*bytes, id); !isNew)
          return fail(absl::StrCat("tokens[", id, "]"), text,
                      "a text of its own",
                      absl::StrCat("that of ", at->second));
      data.tokens.push_back(*std::move(bytes));
    }
    data.scores.assign(source.scores.begin(), source.scores.end());
    return absl::OkStatus();
  }

  absl::Status readIds() {
    const int64_t n = static_cast<int64_t>(source.tokens.size());
    std::optional<uint32_t> eom, unknown;
    if (data.kind == TokenizerKind::ScoredPieces && n > 2) {
      unknown = 0; // SentencePiece's own.
      data.bosId = 1;
      data.eosId = 2;
    }
    for (const auto &[key, from, to] :
         {std::tuple("bos_token_id", &source.bosId, &data.bosId),
          std::tuple("eos_token_id", &source.eosId, &data.eosId),
          std::tuple("eot_token_id", &source.eotId, &data.eotId),
          std::tuple("eom_token_id", &source.eomId, &eom),
          std::tuple("unknown_token_id", &source.unknownId, &unknown)}) {
      if (!*from)
        continue;
      if (**from < 0 || **from >= n)
        return fail(key, {}, absl::StrCat("an id below ", n), **from);
      *to = static_cast<uint32_t>(**from);
    }
    if (eom)
      data.stopIds.push_back(*eom);
    for (const auto &[role, id] : source.roleIds) {
      if (id < 0 || id >= n)
        return fail(absl::StrCat(role, "_token_id"), {},
                    absl::StrCat("an id below ", n), id);
      if (absl::c_linear_search(stopRoles, role))
        data.stopIds.push_back(static_cast<uint32_t>(id));
    }
    // llama.cpp's byte pairs drop bytes without a token, whatever the file
    // says.
    if (data.kind == TokenizerKind::ScoredPieces)
      data.unknownId = unknown;
    if (data.flags.addBos && !data.bosId)
      return fail("bos_token_id", {}, "an id, as add_bos_token is set", "none");
    return absl::OkStatus();
  }

  const GgufVocabulary &source;
  TokenizerData data;
};

} // namespace

absl::StatusOr<std::string> buildGgufBlob(const GgufVocabulary &vocabulary) {
  return GgufVocabularyReader(vocabulary).build();
}

// The keys of named templates are taken as they come: tokenizer.chat_templates,
// which lists the names, says nothing more.
static void readChatTemplates(const GgufReader &reader,
                              ConfigFields<GgufReader> &fields,
                              GgufVocabulary &vocabulary) {
  for (const GgufValue &value : reader.values()) {
    absl::string_view name = value.key;
    if (!absl::ConsumePrefix(&name, ggufkeys::chatTemplate) ||
        !(name.empty() || absl::ConsumePrefix(&name, ".")))
      continue;
    vocabulary.chatTemplates.insert_or_assign(
        std::string(name.empty() ? defaultChatTemplate : name),
        fields.text(value.key).value_or(""));
  }
}

absl::StatusOr<std::string> buildGgufBlob(const GgufReader &reader) {
  ConfigFields fields(reader);
  GgufVocabulary vocabulary;
  vocabulary.file = reader.file()->path();
  vocabulary.contents = reader.file()->text();
  vocabulary.model = fields.text(ggufkeys::tokenizerModel).value_or("");
  vocabulary.pre = fields.text(ggufkeys::preTokenizer).value_or("");
  readChatTemplates(reader, fields, vocabulary);
  vocabulary.bosId = fields.integer(ggufkeys::bosTokenId);
  vocabulary.eosId = fields.integer(ggufkeys::eosTokenId);
  vocabulary.eotId = fields.integer(ggufkeys::eotTokenId);
  vocabulary.eomId = fields.integer(ggufkeys::eomTokenId);
  vocabulary.unknownId = fields.integer(ggufkeys::unknownTokenId);
  for (const RoleName &row : roleNames)
    if (const auto id = fields.integer(
            absl::StrCat("tokenizer.ggml.", row.key, "_token_id")))
      vocabulary.roleIds.insert_or_assign(std::string(row.key), *id);
  if (vocabulary.model == "gpt2" && vocabulary.pre.empty())
    printWarning(absl::StrCat(
        reader.file()->path(),
        ": tokenizer.ggml.pre: none; text is cut into words by the expressions "
        "of llama.cpp's \"default\", which may not be the model's own"));
  vocabulary.name = fields.text(ggufkeys::modelName).value_or("");
  vocabulary.addBos = fields.flag(ggufkeys::addBosToken);
  vocabulary.addSpacePrefix = fields.flag(ggufkeys::addSpacePrefix);
  LLAMAC_RETURN_IF_ERROR(fields.status());
  LLAMAC_ASSIGN_OR_RETURN(vocabulary.tokens, reader.strings(ggufkeys::tokens));
  LLAMAC_ASSIGN_OR_RETURN(vocabulary.merges, reader.strings(ggufkeys::merges));
  LLAMAC_ASSIGN_OR_RETURN(vocabulary.types, reader.ints(ggufkeys::tokenTypes));
  LLAMAC_ASSIGN_OR_RETURN(vocabulary.scores, reader.floats(ggufkeys::scores));
  return buildGgufBlob(vocabulary);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

namespace {

/// Turns a blob into a GgufVocabulary.
class GgufVocabularyWriter {
public:
  GgufVocabularyWriter(absl::string_view file, const TokenizerBlob &blob)
      : file(file), blob(blob) {}

  /// The result views `this` and the blob.
  absl::StatusOr<GgufVocabulary> build(uint32_t vocabSize) {
    if (blob.vocabSize() > vocabSize)
      return unsupported("tokens",
                         absl::StrCat("at most the model's ", vocabSize),
                         absl::StrCat(blob.vocabSize()));
    vocabulary.file = file;
    for (uint32_t id = 0; id < vocabSize; ++id)
      addToken(id);
    vocabulary.tokens.assign(texts.begin(), texts.end());
    vocabulary.bosId = blob.bosId();
    vocabulary.eosId = blob.eosId();
    vocabulary.eotId = blob.eotId();
    vocabulary.unknownId = blob.unknownId();
    vocabulary.addBos = blob.flags().addBos;
    for (const NamedChatTemplate &each : blob.chatTemplates())
      vocabulary.chatTemplates.emplace(each.name, each.text);
    LLAMAC_RETURN_IF_ERROR(
        blob.kind() == TokenizerKind::BytePair ? addMerges() : addScores());
    return vocabulary;
  }

private:
  absl::Status unsupported(absl::string_view what, absl::string_view expected,
                           absl::string_view got) const {
    return unsupportedError(
        absl::StrCat(file, ": ", what, ": expected ", expected, ", got ", got));
  }

  void addToken(uint32_t id) {
    const bool isKnown = id < blob.vocabSize();
    const TokenType type = isKnown ? blob.tokenType(id) : TokenType::Unused;
    const absl::string_view bytes = isKnown ? blob.tokenBytes(id) : "";
    const bool isBytePair = blob.kind() == TokenizerKind::BytePair;
    texts.push_back(bytes.empty()               ? absl::StrCat("[PAD", id, "]")
                    : !isBytePair               ? pieceText(bytes, type)
                    : type == TokenType::Normal ? spelling.spell(bytes)
                                                : std::string(bytes));
    // The last number of a type: 0 is no type's own.
    const auto number =
        std::find(std::rbegin(typesByNumber), std::rend(typesByNumber), type);
    vocabulary.types.push_back(std::rend(typesByNumber) - number - 1);
  }

  absl::Status addMerges() {
    vocabulary.model = "gpt2";
    for (const PreName &known : preNames)
      if (vocabulary.pre.empty() && known.kind == blob.preTokenizer() &&
          known.wholeWordFirst == blob.flags().wholeWordFirst)
        vocabulary.pre = known.name;
    if (vocabulary.pre.empty())
      return unsupported("pre_tokenizer", "one that GGUF has a name for",
                         "another");
    for (const Merge &merge : blob.merges())
      mergeTexts.push_back(
          absl::StrCat(texts[merge.left], " ", texts[merge.right]));
    vocabulary.merges.assign(mergeTexts.begin(), mergeTexts.end());
    return absl::OkStatus();
  }

  absl::Status addScores() {
    vocabulary.model = "llama";
    vocabulary.addSpacePrefix = blob.flags().addSpacePrefix;
    vocabulary.scores.assign(texts.size(), 0);
    return blob.kind() == TokenizerKind::SentencePiece ? addScoresOfModel()
                                                       : addScoresOfRanks();
  }

  /// The scores of a model of merges are the negative numbers of the merges.
  absl::Status addScoresOfModel() {
    SentencePieceModel model;
    if (const std::string error =
            model.load({blob.model().data(), blob.model().size()});
        !error.empty())
      return internalError(error);
    for (uint32_t id = 0; id < model.size(); ++id) {
      const float score = vocabulary.scores[id] = model.score(id);
      if (blob.tokenType(id) == TokenType::Normal &&
          (score > 0 || score != std::round(score)))
        return unsupported("scores", "those of byte-pair encoding",
                           "a model of another kind");
    }
    return absl::OkStatus();
  }

  bool isNormal(uint32_t id) const {
    return blob.tokenType(id) == TokenType::Normal;
  }

  /// Scores that order the merges as their ranks do: any two pieces that make a
  /// token merge, whatever they are, and all such pairs of a token have ranks
  /// in a row.
  absl::Status addScoresOfRanks() {
    const auto refuse = [&] {
      return unsupported("merges",
                         "all pairs that make a token, in the order of tokens",
                         "others, which GGUF has no scores for");
    };
    std::optional<uint32_t> last;
    float count = 0;
    for (const Merge &merge : blob.merges()) {
      if (!isNormal(merge.left) || !isNormal(merge.right) ||
          !isNormal(merge.result) || merge.result == last)
        continue;
      float &score = vocabulary.scores[merge.result];
      if (score != 0)
        return refuse();
      score = -++count;
      last = merge.result;
    }
    const auto isChar = [](absl::string_view text) {
      return decodeChar(text, 0).length == text.size();
    };
    for (uint32_t id = 0; id < blob.vocabSize(); ++id) {
      const absl::string_view bytes = blob.tokenBytes(id);
      if (!isNormal(id) || bytes.empty())
        continue;
      for (size_t cut = decodeChar(bytes, 0).length; cut < bytes.size();
           cut += decodeChar(bytes, cut).length) {
        const absl::string_view parts[] = {bytes.substr(0, cut),
                                           bytes.substr(cut)};
        const auto left = blob.findToken(parts[0]);
        const auto right = blob.findToken(parts[1]);
        if ((!left && !isChar(parts[0])) || (!right && !isChar(parts[1])))
          continue;
        if (!left || !right || !blob.findMerge(*left, *right))
          return refuse();
      }
    }
    return absl::OkStatus();
  }

  const absl::string_view file;
  const TokenizerBlob &blob;
  const ByteLevelSpelling spelling;
  std::vector<std::string> texts;
  std::vector<std::string> mergeTexts;
  GgufVocabulary vocabulary;
};

} // namespace

static void addVocabulary(const GgufVocabulary &vocabulary,
                          GgufMetadata &metadata) {
  using Text = absl::string_view;
  metadata.add(ggufkeys::tokenizerModel, vocabulary.model);
  metadata.addArray<Text>(ggufkeys::tokens, vocabulary.tokens);
  metadata.addArray<int32_t>(
      ggufkeys::tokenTypes,
      std::vector<int32_t>(vocabulary.types.begin(), vocabulary.types.end()));
  if (vocabulary.model == "gpt2") {
    metadata.add(ggufkeys::preTokenizer, vocabulary.pre);
    metadata.addArray<Text>(ggufkeys::merges, vocabulary.merges);
  } else {
    metadata.addArray<float>(ggufkeys::scores, vocabulary.scores);
    metadata.add(ggufkeys::addSpacePrefix, *vocabulary.addSpacePrefix);
  }
  for (const auto &[key, id] :
       {std::pair(ggufkeys::bosTokenId, vocabulary.bosId),
        std::pair(ggufkeys::eosTokenId, vocabulary.eosId),
        std::pair(ggufkeys::eotTokenId, vocabulary.eotId),
        std::pair(ggufkeys::eomTokenId, vocabulary.eomId),
        std::pair(ggufkeys::unknownTokenId, vocabulary.unknownId)})
    if (id)
      metadata.add(key, static_cast<uint32_t>(*id));
  metadata.add(ggufkeys::addBosToken, *vocabulary.addBos);
  std::vector<Text> names;
  for (const auto &[name, text] : vocabulary.chatTemplates)
    if (name == defaultChatTemplate) {
      metadata.add(ggufkeys::chatTemplate, text);
    } else {
      names.push_back(name);
      metadata.add(absl::StrCat(ggufkeys::chatTemplate, ".", name), text);
    }
  if (!names.empty())
    metadata.addArray<Text>(ggufkeys::chatTemplates, names);
}

// The special tokens that take white space, or are words of their own.
static std::vector<std::pair<absl::string_view, SpecialMarks>>
marksOf(const TokenizerBlob &blob) {
  std::vector<std::pair<absl::string_view, SpecialMarks>> marks;
  const std::vector<int32_t> ids = blob.specialIds();
  for (size_t i = 0; i < ids.size(); ++i)
    if (blob.specialMarks(i) != SpecialMarks{})
      marks.emplace_back(blob.tokenBytes(ids[i]), blob.specialMarks(i));
  return marks;
}

absl::Status addGgufTokenizer(const Checkpoint &checkpoint,
                              const std::string &bytes,
                              GgufMetadata &metadata) {
  const std::string &file = checkpoint.tokenizer.paths[0];
  LLAMAC_ASSIGN_OR_RETURN(const TokenizerBlob blob,
                          TokenizerBlob::parse(bytes));
  GgufVocabularyWriter writer(file, blob);
  LLAMAC_ASSIGN_OR_RETURN(
      GgufVocabulary vocabulary,
      writer.build(static_cast<uint32_t>(checkpoint.config.vocabSize)));
  vocabulary.name = checkpoint.name;
  std::set<int64_t> ends;
  for (int32_t id : blob.stopIds())
    ends.insert(id);
  for (int64_t id : checkpoint.tokenizer.stopIds)
    if (id >= 0 && id < checkpoint.config.vocabSize)
      ends.insert(id);
  if (!vocabulary.eosId && !ends.empty())
    vocabulary.eosId = *ends.begin();
  LLAMAC_ASSIGN_OR_RETURN(const std::string readBytes,
                          buildGgufBlob(vocabulary));
  LLAMAC_ASSIGN_OR_RETURN(const TokenizerBlob read,
                          TokenizerBlob::parse(readBytes));
  for (int32_t id : read.stopIds())
    ends.erase(id);
  if (!ends.empty())
    vocabulary.eomId = *ends.begin();
  std::vector<absl::string_view> losses;
  if (blob.flags().composes)
    losses.push_back("that text is brought to NFC");
  if (marksOf(blob) != marksOf(read))
    losses.push_back("that special tokens take white space around them");
  if (ends.size() > 1)
    losses.push_back("all tokens that end an answer");
  if (!losses.empty())
    printWarning(absl::StrCat(file, ": the tokenizer in GGUF cannot say ",
                              absl::StrJoin(losses, ", nor ")));
  addVocabulary(vocabulary, metadata);
  return absl::OkStatus();
}

} // namespace llamac
