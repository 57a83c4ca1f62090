//===- TokenizerModelReader.cpp - tokenizer.model of both kinds -----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// tiktoken, Llama 3's, stores tokens with ranks and no merges: it merges any
// two neighbours whose bytes together are a token, the lowest rank first. So
// the merges are all the ways to cut a token into two tokens, each with the
// rank of the whole. Llama 2's are SentencePiece models, which the library
// reads.
//
//===----------------------------------------------------------------------===//

#include "frontends/ByteCursor.h"
#include "frontends/ByteTokens.h"
#include "frontends/TokenizerBlobWriter.h"
#include "frontends/TokenizerSources.h"
#include "text/tokenizer/SentencePieceModel.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include <algorithm>
#include <tuple>

namespace llamac {

//===----------------------------------------------------------------------===//
// tiktoken
//===----------------------------------------------------------------------===//

using TokenMap = absl::flat_hash_map<absl::string_view, uint32_t>;

namespace {

struct TiktokenLine {
  size_t offset;
  std::string token;
  uint64_t rank;
};

} // namespace

// `text` is a line "base64 rank" at `offset` in `file`. The base64 is strict:
// its alphabet alone, padded to a multiple of four.
static absl::StatusOr<TiktokenLine>
parseLine(absl::string_view file, size_t offset, absl::string_view text) {
  const size_t space = text.find(' ');
  if (space == absl::string_view::npos)
    return malformed(file, offset, "line", "\"base64 rank\"",
                     quoteForMessage(text));
  TiktokenLine line = {offset, {}, 0};
  const absl::string_view base64 = text.substr(0, space);
  const bool alphabet = std::all_of(base64.begin(), base64.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '+' || c == '/' || c == '=';
  });
  if (base64.empty() || base64.size() % 4 != 0 || !alphabet ||
      !absl::Base64Unescape(base64, &line.token))
    return malformed(file, offset, "token", "base64", quoteForMessage(base64));
  if (line.token.empty() || line.token.size() > maxTokenBytes)
    return malformed(file, offset, "token",
                     absl::StrCat("1 to ", maxTokenBytes, " bytes"),
                     line.token.size());
  const absl::string_view rank = text.substr(space + 1);
  if (!std::all_of(rank.begin(), rank.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(rank, &line.rank) || line.rank >= maxVocabularySize)
    return malformed(file, offset + space + 1, "rank",
                     absl::StrCat("a number below ", maxVocabularySize),
                     quoteForMessage(rank));
  return line;
}

// The tokens by rank.
static absl::StatusOr<std::vector<std::string>>
readTiktoken(const NamedText &model) {
  std::vector<TiktokenLine> lines;
  for (size_t begin = 0; begin < model.text.size();) {
    const size_t end =
        std::min(model.text.find('\n', begin), model.text.size());
    const absl::string_view line =
        absl::StripSuffix(model.text.substr(begin, end - begin), "\r");
    if (!line.empty()) {
      LLAMAC_ASSIGN_OR_RETURN(TiktokenLine parsed,
                              parseLine(model.file, begin, line));
      lines.push_back(std::move(parsed));
    }
    begin = end + 1;
  }
  if (lines.empty())
    return malformed(model.file, 0, "tokens", "lines \"base64 rank\"", "none");

  std::sort(lines.begin(), lines.end(),
            [](const TiktokenLine &a, const TiktokenLine &b) {
              return std::tie(a.rank, a.offset) < std::tie(b.rank, b.offset);
            });
  std::vector<std::string> tokens;
  for (TiktokenLine &line : lines) {
    if (line.rank < tokens.size())
      return malformed(model.file, line.offset, "rank", "each rank once",
                       absl::StrCat(line.rank, " again"));
    if (line.rank > tokens.size())
      return malformed(model.file, line.offset, "rank",
                       absl::StrCat(tokens.size(), ", the first one missing"),
                       line.rank);
    tokens.push_back(std::move(line.token));
  }
  TokenMap seen;
  for (uint32_t rank = 0; rank < tokens.size(); ++rank)
    if (const auto [at, isNew] = seen.emplace(tokens[rank], rank); !isNew)
      return malformed(model.file, lines[rank].offset, "token",
                       "bytes of its own",
                       absl::StrCat("those of rank ", at->second));
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (!seen.contains(absl::string_view(&c, 1)))
      return malformed(model.file, 0, "tokens", "one for every byte",
                       absl::StrCat("none for byte ", byte));
  }
  return tokens;
}

static std::vector<Merge> allMerges(const std::vector<std::string> &tokens) {
  TokenMap byBytes;
  byBytes.reserve(tokens.size());
  for (uint32_t id = 0; id < tokens.size(); ++id)
    byBytes.emplace(tokens[id], id);
  std::vector<Merge> merges;
  for (uint32_t id = 0; id < tokens.size(); ++id) {
    const absl::string_view token = tokens[id];
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = byBytes.find(token.substr(0, cut));
      if (left == byBytes.end())
        continue;
      const auto right = byBytes.find(token.substr(cut));
      if (right != byBytes.end())
        merges.push_back({left->second, right->second, id, id});
    }
  }
  return merges;
}

// Llama 3.1's names in order of their ids; the rest are reserved. Llama 3 has
// the same ones at the same ids where it uses them.
static constexpr absl::string_view namedSpecials[] = {
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|reserved_special_token_0|>",
    "<|reserved_special_token_1|>",
    "<|finetune_right_pad_id|>",
    "<|step_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|python_tag|>",
    "<|image|>"};

static void addLlama3Specials(uint32_t count, TokenizerData &data) {
  uint32_t reserved = 2;
  for (uint32_t i = 0; i < count; ++i) {
    data.tokens.push_back(
        i < std::size(namedSpecials)
            ? std::string(namedSpecials[i])
            : absl::StrCat("<|reserved_special_token_", reserved++, "|>"));
    data.types.push_back(TokenType::Control);
  }
}

absl::StatusOr<std::string> buildTiktokenBlob(const NamedText &model,
                                              uint32_t numSpecial,
                                              const ChatTemplates &templates) {
  TokenizerData data;
  data.chatTemplates = templates;
  LLAMAC_ASSIGN_OR_RETURN(data.tokens, readTiktoken(model));
  const uint32_t numRanks = static_cast<uint32_t>(data.tokens.size());
  if (numSpecial > maxVocabularySize - numRanks)
    return malformed(model.file, 0, "special tokens",
                     absl::StrCat("at most ", maxVocabularySize - numRanks),
                     numSpecial);
  data.merges = allMerges(data.tokens);
  data.types.assign(numRanks, TokenType::Normal);
  addLlama3Specials(numSpecial, data);
  data.kind = TokenizerKind::BytePair;
  data.preTokenizer = PreTokenizerKind::Llama3;
  data.flags.wholeWordFirst = true;
  if (numSpecial >= 1) {
    data.flags.addBos = true;
    data.bosId = numRanks;
  }
  if (numSpecial >= 2)
    data.eosId = numRanks + 1;
  return writeTokenizerBlob(std::move(data), model.file);
}

//===----------------------------------------------------------------------===//
// SentencePiece
//===----------------------------------------------------------------------===//

static TokenType tokenType(SentencePieceModel::PieceType type) {
  switch (type) {
  case SentencePieceModel::PieceType::Normal:
    return TokenType::Normal;
  case SentencePieceModel::PieceType::Control:
    return TokenType::Control;
  case SentencePieceModel::PieceType::Byte:
    return TokenType::Byte;
  case SentencePieceModel::PieceType::Unknown:
    return TokenType::Unknown;
  case SentencePieceModel::PieceType::Unused:
    break;
  }
  return TokenType::Unused;
}

static std::optional<uint32_t> optionalId(int id) {
  return id < 0 ? std::nullopt
                : std::optional<uint32_t>(static_cast<uint32_t>(id));
}

absl::StatusOr<std::string>
buildSentencePieceBlob(const NamedText &file, const ChatTemplates &templates) {
  SentencePieceModel model;
  if (const std::string error =
          model.load({file.text.data(), file.text.size()});
      !error.empty())
    return malformed(file.file, 0, "model", "a SentencePiece model",
                     quoteForMessage(error));
  if (model.size() == 0 || model.size() > maxVocabularySize)
    return malformed(file.file, 0, "pieces",
                     absl::StrCat("1 to ", maxVocabularySize), model.size());
  TokenizerData data;
  data.kind = TokenizerKind::SentencePiece;
  data.chatTemplates = templates;
  for (uint32_t id = 0; id < model.size(); ++id) {
    const TokenType type = tokenType(model.type(id));
    std::optional<std::string> bytes = pieceBytes(model.piece(id), type);
    if (!bytes)
      return malformed(file.file, 0, absl::StrCat("piece ", id),
                       "<0x00> to <0xFF>", quoteForMessage(model.piece(id)));
    data.tokens.push_back(*std::move(bytes));
    data.types.push_back(type);
  }
  data.bosId = optionalId(model.bosId());
  data.eosId = optionalId(model.eosId());
  data.unknownId = optionalId(model.unknownId());
  data.flags.addBos = data.bosId.has_value();
  data.flags.addSpacePrefix = model.addsSpacePrefix();
  data.model = std::string(file.text);
  return writeTokenizerBlob(std::move(data), file.file);
}

//===----------------------------------------------------------------------===//
// Either kind
//===----------------------------------------------------------------------===//

bool isTiktokenModel(absl::string_view text) {
  return !text.empty() &&
         (absl::ascii_isalnum(static_cast<unsigned char>(text[0])) ||
          text[0] == '+' || text[0] == '/');
}

absl::StatusOr<std::string>
buildTokenizerModelBlob(const NamedText &model,
                        std::optional<uint32_t> vocabSize,
                        const ChatTemplates &templates) {
  if (!isTiktokenModel(model.text))
    return buildSentencePieceBlob(model, templates);
  if (!vocabSize)
    return buildTiktokenBlob(model, llama3SpecialTokens, templates);
  // Every line but empty ones is a rank: what the model has beyond them are
  // special tokens.
  uint64_t ranks = 0;
  for (absl::string_view line : absl::StrSplit(model.text, '\n'))
    if (!line.empty() && line != "\r")
      ++ranks;
  if (ranks > *vocabSize)
    return malformed(
        model.file, 0, "ranks",
        absl::StrCat("at most the model's vocabulary of ", *vocabSize), ranks);
  return buildTiktokenBlob(model, static_cast<uint32_t>(*vocabSize - ranks),
                           templates);
}

} // namespace llamac
