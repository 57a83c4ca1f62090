//===- TokenizerBlob.cpp - A tokenizer as one run of bytes ----------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and checks blobs; TokenizerBlobWriter.cpp writes them.
//
//===----------------------------------------------------------------------===//

#include "text/tokenizer/TokenizerBlob.h"

#include "text/tokenizer/TokenizerBlobLayout.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace llamac {

using namespace blob;

static absl::Status badBlob(const absl::AlphaNum &field,
                            const absl::AlphaNum &expected,
                            const absl::AlphaNum &got) {
  return badPlanError(absl::StrCat("tokenizer: ", field, ": expected ",
                                   expected, ", got ", got,
                                   "; compile the model again"));
}

static std::optional<int32_t> optionalId(int32_t id) {
  return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}

absl::Status TokenizerBlob::parseHeader(absl::string_view bytes) {
  Header header;
  if (bytes.size() < sizeof(header))
    return badBlob("size", absl::StrCat("at least ", sizeof(header), " bytes"),
                   bytes.size());
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, magic, sizeof(magic)) != 0)
    return badBlob("magic", "LCTOKEN3", "something else");
  if (header.kind > static_cast<uint32_t>(TokenizerKind::RankedPieces))
    return badBlob("kind", "0 to 3", header.kind);
  if (header.preTokenizer > static_cast<uint32_t>(lastPreTokenizer))
    return badBlob(
        "pre-tokenizer",
        absl::StrCat("at most ", static_cast<uint32_t>(lastPreTokenizer)),
        header.preTokenizer);
  if (header.flags > allFlags)
    return badBlob("flags", absl::StrCat("at most ", allFlags), header.flags);
  if (header.vocabSize == 0 || header.vocabSize > maxVocabularySize)
    return badBlob("vocabulary size", absl::StrCat("1 to ", maxVocabularySize),
                   header.vocabSize);
  for (int32_t id :
       {header.bosId, header.eosId, header.eotId, header.unknownId})
    if (id < -1 || id >= static_cast<int64_t>(header.vocabSize))
      return badBlob("special id",
                     absl::StrCat("an id below ", header.vocabSize), id);
  for (size_t i = 0; i < sectionCount; ++i) {
    const SectionExtent &extent = header.sections[i];
    if (extent.offset > bytes.size() ||
        extent.size > bytes.size() - extent.offset)
      return badBlob(absl::StrCat("section ", i),
                     absl::StrCat("an extent inside ", bytes.size(), " bytes"),
                     absl::StrCat(extent.size, " at ", extent.offset));
    sections[i] = bytes.substr(extent.offset, extent.size);
  }
  tokenizerKind = static_cast<TokenizerKind>(header.kind);
  pre = static_cast<PreTokenizerKind>(header.preTokenizer);
  tokenizerFlags = unpackFlags(header.flags);
  size = header.vocabSize;
  bos = optionalId(header.bosId);
  eos = optionalId(header.eosId);
  eot = optionalId(header.eotId);
  unknown = optionalId(header.unknownId);
  return absl::OkStatus();
}

absl::Status TokenizerBlob::checkTokens() {
  const size_t n = size;
  if (section(BlobSection::TokenOffsets).size() != (n + 1) * sizeof(uint32_t))
    return badBlob("token offsets", absl::StrCat((n + 1) * sizeof(uint32_t)),
                   section(BlobSection::TokenOffsets).size());
  if (section(BlobSection::TokenTypes).size() != n)
    return badBlob("token types", n, section(BlobSection::TokenTypes).size());
  uint32_t previous = load<uint32_t>(BlobSection::TokenOffsets, 0);
  for (size_t id = 0; id < n; ++id) {
    const uint32_t end = load<uint32_t>(BlobSection::TokenOffsets, id + 1);
    if (end < previous)
      return badBlob(absl::StrCat("offset of token ", id + 1),
                     absl::StrCat("at least ", previous), end);
    longest = std::max<size_t>(longest, end - previous);
    previous = end;
    const auto type = section(BlobSection::TokenTypes)[id];
    if (static_cast<uint8_t>(type) > static_cast<uint8_t>(TokenType::Unused))
      return badBlob(absl::StrCat("type of token ", id), "0 to 5",
                     static_cast<int>(type));
  }
  if (previous > section(BlobSection::TokenBytes).size())
    return badBlob(
        "token bytes",
        absl::StrCat(section(BlobSection::TokenBytes).size(), " in all"),
        previous);
  if (tokenizerKind == TokenizerKind::ScoredPieces) {
    if (section(BlobSection::Scores).size() != n * sizeof(float))
      return badBlob("scores", n * sizeof(float),
                     section(BlobSection::Scores).size());
    for (size_t id = 0; id < n; ++id)
      if (!std::isfinite(score(static_cast<uint32_t>(id))))
        return badBlob(absl::StrCat("score of token ", id), "a number",
                       "infinity or NaN");
  }
  return absl::OkStatus();
}

// The slots of a table of `bytes`, when they are a power of two.
static absl::StatusOr<size_t> tableSlots(const char *name, size_t bytes,
                                         size_t slotBytes) {
  const size_t slots = bytes / slotBytes;
  if (bytes % slotBytes != 0 || slots == 0 || (slots & (slots - 1)) != 0)
    return badBlob(name,
                   absl::StrCat("a power of two of ", slotBytes, "-byte slots"),
                   absl::StrCat(bytes, " bytes"));
  return slots;
}

namespace {

/// Watches a table go by and finds its longest run of taken slots. A run over
/// the end of the table counts as two; that at most doubles a probe.
class RunLength {
public:
  void add(bool taken) {
    run = taken ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  absl::Status check(const char *name, size_t slots) const {
    const size_t limit = std::min(slots - 1, maxProbes);
    if (longest <= limit)
      return absl::OkStatus();
    return badBlob(name, absl::StrCat("at most ", limit, " slots in a row"),
                   longest);
  }

private:
  size_t run = 0;
  size_t longest = 0;
};

} // namespace

absl::Status TokenizerBlob::checkTokenIndex() const {
  const size_t slots = indexMask + 1;
  RunLength runs;
  for (size_t i = 0; i < slots; ++i) {
    const uint32_t id = load<uint32_t>(BlobSection::TokenIndex, i);
    if (id != emptySlot && id >= size)
      return badBlob("token index", absl::StrCat("an id below ", size), id);
    runs.add(id != emptySlot);
  }
  return runs.check("token index", slots);
}

absl::Status TokenizerBlob::checkMerges() const {
  const size_t slots = mergeMask + 1;
  RunLength runs;
  for (size_t i = 0; i < slots; ++i) {
    const Merge merge = load<Merge>(BlobSection::Merges, i);
    runs.add(merge.left != emptySlot);
    if (merge.left == emptySlot)
      continue;
    if (merge.left >= size || merge.right >= size || merge.result >= size)
      return badBlob(
          "merge", absl::StrCat("ids below ", size),
          absl::StrCat(merge.left, ", ", merge.right, " and ", merge.result));
    if (merge.rank == noRank)
      return badBlob("merge rank", absl::StrCat("below ", noRank), merge.rank);
  }
  return runs.check("merges", slots);
}

absl::Status TokenizerBlob::checkIds(BlobSection which,
                                     const char *name) const {
  const size_t bytes = section(which).size();
  if (bytes % sizeof(uint32_t) != 0)
    return badBlob(name, "a multiple of 4 bytes", bytes);
  for (size_t i = 0; i < bytes / sizeof(uint32_t); ++i) {
    const uint32_t id = load<uint32_t>(which, i);
    if (id >= size)
      return badBlob(name, absl::StrCat("an id below ", size), id);
  }
  return absl::OkStatus();
}

absl::Status TokenizerBlob::checkMarks() const {
  const absl::string_view marks = section(BlobSection::SpecialMarks);
  const size_t specials =
      section(BlobSection::SpecialIds).size() / sizeof(uint32_t);
  if (marks.size() != specials)
    return badBlob("special marks", specials, marks.size());
  for (const char bits : marks)
    if (static_cast<uint8_t>(bits) > allMarks)
      return badBlob("special marks", absl::StrCat("at most ", allMarks),
                     static_cast<int>(static_cast<uint8_t>(bits)));
  return absl::OkStatus();
}

SpecialMarks TokenizerBlob::specialMarks(size_t index) const {
  return unpackMarks(load<uint8_t>(BlobSection::SpecialMarks, index));
}

absl::Status TokenizerBlob::readChatTemplates() {
  absl::string_view rest = section(BlobSection::ChatTemplates);
  const auto take = [&rest](size_t size) {
    const absl::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  };
  while (!rest.empty()) {
    ChatTemplateSizes sizes;
    if (rest.size() < sizeof(sizes))
      return badBlob("chat templates",
                     absl::StrCat("sizes of ", sizeof(sizes), " bytes"),
                     rest.size());
    std::memcpy(&sizes, take(sizeof(sizes)).data(), sizeof(sizes));
    if (sizes.name > rest.size() || sizes.text > rest.size() - sizes.name)
      return badBlob("chat template",
                     absl::StrCat("name and text in ", rest.size(), " bytes"),
                     absl::StrCat(sizes.name, " and ", sizes.text));
    const absl::string_view name = take(sizes.name);
    if (!templates.empty() && name <= templates.back().name)
      return badBlob("chat templates", "names in ascending order",
                     "one that is not");
    templates.push_back({name, take(sizes.text)});
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenizerBlob> TokenizerBlob::parse(absl::string_view bytes) {
  TokenizerBlob blob;
  LLAMAC_RETURN_IF_ERROR(blob.parseHeader(bytes));
  LLAMAC_RETURN_IF_ERROR(blob.checkTokens());
  LLAMAC_ASSIGN_OR_RETURN(
      const size_t indexSlots,
      tableSlots("token index", blob.section(BlobSection::TokenIndex).size(),
                 sizeof(uint32_t)));
  blob.indexMask = indexSlots - 1;
  LLAMAC_RETURN_IF_ERROR(blob.checkTokenIndex());
  LLAMAC_ASSIGN_OR_RETURN(const size_t mergeSlots,
                          tableSlots("merges",
                                     blob.section(BlobSection::Merges).size(),
                                     sizeof(Merge)));
  blob.mergeMask = mergeSlots - 1;
  LLAMAC_RETURN_IF_ERROR(blob.checkMerges());
  LLAMAC_RETURN_IF_ERROR(blob.checkIds(BlobSection::SpecialIds, "special ids"));
  LLAMAC_RETURN_IF_ERROR(blob.checkMarks());
  LLAMAC_RETURN_IF_ERROR(blob.checkIds(BlobSection::StopIds, "stop ids"));
  LLAMAC_RETURN_IF_ERROR(blob.readChatTemplates());
  return blob;
}

std::optional<uint32_t>
TokenizerBlob::findToken(absl::string_view bytes) const {
  for (size_t slot = hashToken(bytes) & indexMask;;
       slot = (slot + 1) & indexMask) {
    const uint32_t id = load<uint32_t>(BlobSection::TokenIndex, slot);
    if (id == emptySlot)
      return std::nullopt;
    if (tokenBytes(id) == bytes)
      return id;
  }
}

std::optional<Merge> TokenizerBlob::findMerge(uint32_t left,
                                              uint32_t right) const {
  for (size_t slot = hashPair(left, right) & mergeMask;;
       slot = (slot + 1) & mergeMask) {
    const Merge merge = load<Merge>(BlobSection::Merges, slot);
    if (merge.left == emptySlot)
      return std::nullopt;
    if (merge.left == left && merge.right == right)
      return merge;
  }
}

std::vector<Merge> TokenizerBlob::merges() const {
  std::vector<Merge> out;
  for (size_t slot = 0; slot <= mergeMask; ++slot)
    if (const Merge merge = load<Merge>(BlobSection::Merges, slot);
        merge.left != emptySlot)
      out.push_back(merge);
  std::sort(out.begin(), out.end(), [](const Merge &a, const Merge &b) {
    return std::tie(a.rank, a.left, a.right) <
           std::tie(b.rank, b.left, b.right);
  });
  return out;
}

std::optional<absl::string_view>
TokenizerBlob::chatTemplate(absl::string_view name) const {
  for (const NamedChatTemplate &each : templates)
    if (each.name == name)
      return each.text;
  return std::nullopt;
}

std::vector<int32_t> TokenizerBlob::ids(BlobSection which) const {
  std::vector<int32_t> out(section(which).size() / sizeof(uint32_t));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = load<int32_t>(which, i);
  return out;
}

} // namespace llamac
