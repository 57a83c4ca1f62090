//===- TokenizerBlobWriter.cpp - Writes a tokenizer as bytes --------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontends/TokenizerBlobWriter.h"

#include "frontends/ByteCursor.h"
#include "text/tokenizer/TokenizerBlobLayout.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace llamac {

using namespace blob;

// Special tokens that end a text or a turn in the models that have them, as
// llama.cpp knows them too.
static constexpr absl::string_view stopNames[] = {
    "</s>",
    "<EOT>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|call|>",
    "<|calls|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|flush|>",
    "<|im_end|>",
    "<|return|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[EOS]",
    "[EOT]",
    "[e~[",
    "_<EOT>",
};

// Tokens that end a turn; the first one present counts.
static constexpr absl::string_view turnNames[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",
    "<EOT>",      "_<EOT>",     "[EOT]",   "<end_of_utterance>"};

namespace {

// A name that ends no answer where others are there.
struct StopException {
  absl::string_view name;
  absl::string_view others[2]; ///< All of them.
};

} // namespace

static constexpr StopException stopExceptions[] = {
    {"<|end|>", {"<|return|>", "<|call|>"}}, // Ends one of several messages.
    {"<|end|>", {"<|return|>", "<|calls|>"}},
    {"<|end|>", {"<|flush|>", "<|call|>"}},
    {"<|end|>", {"<|flush|>", "<|calls|>"}},
    {"</s>", {"<|tool_response>", "<|tool_response>"}},
};

absl::Span<const absl::string_view> stopTokenNames() { return stopNames; }

static bool isSpecial(TokenType type) {
  return type == TokenType::Control || type == TokenType::User ||
         type == TokenType::Unknown;
}

static absl::Status checkData(const TokenizerData &data,
                              absl::string_view file) {
  const size_t n = data.tokens.size();
  if (n == 0 || n > maxVocabularySize)
    return malformed(file, 0, "vocabulary",
                     absl::StrCat("1 to ", maxVocabularySize, " tokens"), n);
  if (data.types.size() != n ||
      (data.kind == TokenizerKind::ScoredPieces && data.scores.size() != n))
    return internalError("tokenizer: one type and score per token is needed");
  for (size_t id = 0; id < n; ++id)
    if (data.tokens[id].size() > maxTokenBytes)
      return malformed(file, 0, absl::StrCat("token ", id),
                       absl::StrCat("at most ", maxTokenBytes, " bytes"),
                       data.tokens[id].size());
  const std::string idBelow = absl::StrCat("an id below ", n);
  for (const auto &[id, name] : {std::pair(data.bosId, "begin-of-sequence id"),
                                 std::pair(data.eosId, "end-of-sequence id"),
                                 std::pair(data.eotId, "end-of-turn id"),
                                 std::pair(data.unknownId, "unknown token id")})
    if (id && *id >= n)
      return malformed(file, 0, name, idBelow, *id);
  for (uint32_t id : data.stopIds)
    if (id >= n)
      return malformed(file, 0, "stop id", idBelow, id);
  for (const Merge &merge : data.merges)
    if (merge.left >= n || merge.right >= n || merge.result >= n)
      return malformed(
          file, 0, "merge", absl::StrCat("ids below ", n),
          absl::StrCat(merge.left, ", ", merge.right, " and ", merge.result));
  return absl::OkStatus();
}

// A table for `count` keys that is at most three quarters full.
static size_t slotsFor(size_t count) {
  return std::bit_ceil(std::max<size_t>(count + count / 3 + 1, 2));
}

static absl::StatusOr<std::vector<uint32_t>>
indexTokens(const TokenizerData &data, absl::string_view file) {
  const auto isNormal = [](TokenType type) {
    return type == TokenType::Normal;
  };
  std::vector<uint32_t> index(
      slotsFor(std::count_if(data.types.begin(), data.types.end(), isNormal)),
      emptySlot);
  for (uint32_t id = 0; id < data.tokens.size(); ++id) {
    if (!isNormal(data.types[id]))
      continue;
    size_t slot = hashToken(data.tokens[id]) & (index.size() - 1);
    while (index[slot] != emptySlot) {
      if (data.tokens[index[slot]] == data.tokens[id])
        return malformed(file, 0, absl::StrCat("token ", id),
                         "bytes of its own",
                         absl::StrCat("those of token ", index[slot]));
      slot = (slot + 1) & (index.size() - 1);
    }
    index[slot] = id;
  }
  return index;
}

static absl::StatusOr<std::vector<Merge>> indexMerges(const TokenizerData &data,
                                                      absl::string_view file) {
  std::vector<Merge> table(slotsFor(data.merges.size()),
                           {emptySlot, emptySlot, noRank, emptySlot});
  for (const Merge &merge : data.merges) {
    size_t slot = hashPair(merge.left, merge.right) & (table.size() - 1);
    while (table[slot].left != emptySlot) {
      if (table[slot].left == merge.left && table[slot].right == merge.right)
        return malformed(file, 0, absl::StrCat("merge ", merge.rank),
                         "a new pair",
                         absl::StrCat("that of merge ", table[slot].rank));
      slot = (slot + 1) & (table.size() - 1);
    }
    table[slot] = merge;
  }
  return table;
}

// Special tokens with bytes, sorted by them; of equal ones the first.
static std::vector<uint32_t> sortSpecials(const TokenizerData &data) {
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < data.tokens.size(); ++id)
    if (isSpecial(data.types[id]) && !data.tokens[id].empty())
      ids.push_back(id);
  std::sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(data.tokens[a], a) < std::tie(data.tokens[b], b);
  });
  ids.erase(std::unique(ids.begin(), ids.end(),
                        [&](uint32_t a, uint32_t b) {
                          return data.tokens[a] == data.tokens[b];
                        }),
            ids.end());
  return ids;
}

static void addKnownNames(const std::vector<uint32_t> &specials,
                          TokenizerData &data) {
  const bool hasSpaces = data.kind != TokenizerKind::BytePair;
  const auto find = [&](absl::string_view name) -> std::optional<uint32_t> {
    // The tokens of pieces have a space here where their files have U+2581.
    const std::string text =
        hasSpaces ? absl::StrReplaceAll(name, {{"\xE2\x96\x81", " "}})
                  : std::string(name);
    for (uint32_t id : specials)
      if (data.tokens[id] == text)
        return id;
    return std::nullopt;
  };
  const auto goesOn = [&](absl::string_view name) {
    return absl::c_any_of(stopExceptions, [&](const StopException &row) {
      return row.name == name && find(row.others[0]) && find(row.others[1]);
    });
  };
  for (absl::string_view name : stopNames)
    if (const std::optional<uint32_t> id = find(name); id && !goesOn(name))
      data.stopIds.push_back(*id);
  for (absl::string_view name : turnNames)
    if (!data.eotId && !goesOn(name))
      data.eotId = find(name);
  if (data.eosId)
    data.stopIds.push_back(*data.eosId);
  if (data.eotId)
    data.stopIds.push_back(*data.eotId);
  std::sort(data.stopIds.begin(), data.stopIds.end());
  data.stopIds.erase(std::unique(data.stopIds.begin(), data.stopIds.end()),
                     data.stopIds.end());
}

template <typename T>
static absl::string_view asBytes(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(T)};
}

static int32_t idOrNone(std::optional<uint32_t> id) {
  return id ? static_cast<int32_t>(*id) : -1;
}

absl::StatusOr<std::string> writeTokenizerBlob(TokenizerData data,
                                               absl::string_view file) {
  LLAMAC_RETURN_IF_ERROR(checkData(data, file));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<uint32_t> index,
                          indexTokens(data, file));
  LLAMAC_ASSIGN_OR_RETURN(const std::vector<Merge> merges,
                          indexMerges(data, file));
  const std::vector<uint32_t> specials = sortSpecials(data);
  addKnownNames(specials, data);

  std::vector<uint32_t> offsets = {0};
  std::string tokenBytes;
  for (const std::string &token : data.tokens) {
    tokenBytes += token;
    if (tokenBytes.size() > UINT32_MAX)
      return malformed(file, 0, "vocabulary", "less than 4 GiB of tokens",
                       tokenBytes.size());
    offsets.push_back(static_cast<uint32_t>(tokenBytes.size()));
  }

  std::string chatTemplates;
  for (const auto &[name, text] : data.chatTemplates) {
    if (text.empty())
      continue; // Stands for none.
    const ChatTemplateSizes sizes = {name.size(), text.size()};
    chatTemplates.append(reinterpret_cast<const char *>(&sizes), sizeof(sizes));
    chatTemplates += name + text;
  }

  std::vector<uint8_t> marks;
  for (uint32_t id : specials) {
    const auto found = data.specialMarks.find(id);
    marks.push_back(found == data.specialMarks.end()
                        ? uint8_t{0}
                        : packMarks(found->second));
  }

  const absl::string_view sections[sectionCount] = {
      asBytes(offsets),  tokenBytes,      asBytes(data.types),
      asBytes(index),    asBytes(merges), asBytes(data.scores),
      asBytes(specials), asBytes(marks),  asBytes(data.stopIds),
      chatTemplates,     data.model};

  Header header = {};
  std::copy(std::begin(magic), std::end(magic), header.magic);
  header.kind = static_cast<uint32_t>(data.kind);
  header.preTokenizer = static_cast<uint32_t>(data.preTokenizer);
  header.flags = packFlags(data.flags);
  header.vocabSize = static_cast<uint32_t>(data.tokens.size());
  header.bosId = idOrNone(data.bosId);
  header.eosId = idOrNone(data.eosId);
  header.eotId = idOrNone(data.eotId);
  header.unknownId = idOrNone(data.unknownId);

  constexpr uint64_t alignment = 16;
  std::string out(sizeof(header), '\0');
  for (size_t i = 0; i < sectionCount; ++i) {
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    header.sections[i] = {out.size(), sections[i].size()};
    out.append(sections[i].data(), sections[i].size());
  }
  std::memcpy(out.data(), &header, sizeof(header));
  return out;
}

} // namespace llamac
