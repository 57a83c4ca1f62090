//===- PlanFormat.cpp - The container of a plan file ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/PlanFormat.h"

#include "runtime/base/Status.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <xxhash.h>

namespace llamac {

absl::string_view sectionKindName(SectionKind kind) {
  static constexpr absl::string_view names[] = {
      "unknown",   "manifest",  "code",  "weight",
      "constants", "tokenizer", "source"};
  const auto number = static_cast<size_t>(kind);
  return number < std::size(names) ? names[number] : names[0];
}

PlanHash hashBytes(absl::Span<const uint8_t> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

PlanHash hashBytes(absl::Span<const uint8_t> first,
                   absl::Span<const uint8_t> second) {
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t *)> state(
      XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (const absl::Span<const uint8_t> part : {first, second})
    XXH3_128bits_update(state.get(), part.data(), part.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return {hash.low64, hash.high64};
}

std::string hashText(const PlanHash &hash) {
  return absl::StrFormat("%016x%016x", hash.high, hash.low);
}

// The hash that the header carries.
static PlanHash hashHeaderAndTable(const PlanHeader &header,
                                   absl::Span<const uint8_t> table) {
  return hashBytes(
      {reinterpret_cast<const uint8_t *>(&header), hashedHeaderBytes}, table);
}

static uint64_t piecesOf(uint64_t size) {
  return size / planPieceBytes + (size % planPieceBytes != 0);
}

std::vector<uint8_t> makePlanTable(const std::vector<PlanSection> &sections) {
  std::vector<uint8_t> table;
  auto append = [&](const void *data, size_t size) {
    const auto *bytes = static_cast<const uint8_t *>(data);
    table.insert(table.end(), bytes, bytes + size);
  };
  for (const PlanSection &section : sections) {
    const SectionEntry entry{static_cast<uint32_t>(section.kind),
                             static_cast<uint32_t>(section.pieces.size()),
                             section.offset, section.size, 0};
    append(&entry, sizeof entry);
  }
  for (const PlanSection &section : sections)
    append(section.pieces.data(), section.pieces.size() * sizeof(PlanHash));
  return table;
}

PlanHeader makePlanHeader(absl::Span<const uint8_t> table,
                          uint32_t sectionCount, uint64_t tableOffset) {
  PlanHeader header;
  header.sectionCount = sectionCount;
  header.fileBytes = tableOffset + table.size();
  header.tableOffset = tableOffset;
  header.tableBytes = table.size();
  header.hash = hashHeaderAndTable(header, table);
  return header;
}

namespace {

/// Makes the one-line errors of a plan that cannot be used.
struct TableErrors {
  absl::string_view path;

  absl::Status at(uint64_t offset, const absl::AlphaNum &field,
                  const absl::AlphaNum &expected,
                  const absl::AlphaNum &got) const {
    return badPlanError(absl::StrCat(path, ":", offset, ": ", field,
                                     ": expected ", expected, ", got ", got,
                                     "; compile it again"));
  }
};

} // namespace

// The kind of a model's file that `bytes` are; empty for none.
static absl::string_view kindOfFile(absl::Span<const uint8_t> bytes) {
  const absl::string_view text(reinterpret_cast<const char *>(bytes.data()),
                               bytes.size());
  if (absl::StartsWith(text, "GGUF"))
    return "a GGUF model";
  if (absl::StartsWith(text, "PK"))
    return "a PyTorch checkpoint";
  if (text.size() > 8 && text[8] == '{')
    return "a safetensors file";
  return "";
}

// The header's own fields, before anything they point at is read.
static absl::StatusOr<PlanHeader> parseHeader(const TableErrors &errors,
                                              absl::Span<const uint8_t> bytes) {
  PlanHeader header;
  const auto start = bytes.first(std::min(bytes.size(), planMagic.size()));
  if (!std::equal(start.begin(), start.end(), planMagic.begin())) {
    const absl::string_view kind = kindOfFile(bytes);
    return badPlanError(
        kind.empty()
            ? absl::StrCat(errors.path,
                           ": expected a plan or a model, got another kind of "
                           "file; a model is a directory or a .gguf file")
            : absl::StrCat(errors.path,
                           ":0: magic: expected a llamac plan, got ", kind,
                           "; make a plan of a model: llamac compile ",
                           errors.path, " -o FILE.plan"));
  }
  if (bytes.size() < sizeof header)
    return errors.at(0, "plan header", absl::StrCat(sizeof header, " bytes"),
                     absl::StrCat("a file of ", bytes.size()));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != planVersion)
    return errors.at(8, "plan version", planVersion, header.version);
  if (header.fileBytes != bytes.size())
    return errors.at(16, "file size", absl::StrCat(header.fileBytes, " bytes"),
                     bytes.size());
  if (header.tableOffset < sizeof header ||
      header.tableOffset > header.fileBytes ||
      header.tableBytes != header.fileBytes - header.tableOffset)
    return errors.at(
        24, "section table",
        absl::StrCat("to end the file of ", header.fileBytes, " bytes"),
        absl::StrCat("offset ", header.tableOffset, " and ", header.tableBytes,
                     " bytes"));
  const uint64_t most = std::min<uint64_t>(
      maxPlanSections, header.tableBytes / sizeof(SectionEntry));
  if (header.sectionCount == 0 || header.sectionCount > most)
    return errors.at(12, "section count", absl::StrCat("1 to ", most),
                     header.sectionCount);
  if (header.reserved != 0)
    return errors.at(40, "reserved field", 0, header.reserved);
  return header;
}

// One entry against where the section before it ended; the gap holds zeros.
static absl::Status checkEntry(const TableErrors &errors,
                               absl::Span<const uint8_t> bytes,
                               const PlanHeader &header, uint32_t number,
                               const SectionEntry &entry,
                               uint64_t previousEnd) {
  const auto kind = static_cast<SectionKind>(entry.kind);
  const uint64_t at =
      header.tableOffset + uint64_t{number} * sizeof(SectionEntry);
  const std::string name =
      absl::StrCat("section ", number, " (", sectionKindName(kind), ")");
  if (sectionKindName(kind) == "unknown")
    return errors.at(at, name + ": kind", "1 to 6", entry.kind);
  const bool last = number + 1 == header.sectionCount;
  if (last != (kind == SectionKind::Manifest))
    return errors.at(at, name,
                     "the manifest to be the last section and no other",
                     last ? "another kind last" : "one before the last");
  const uint64_t expected = (previousEnd + alignmentOf(kind) - 1) /
                            alignmentOf(kind) * alignmentOf(kind);
  if (entry.offset != expected)
    return errors.at(at + 8, name + ": offset", expected, entry.offset);
  if (entry.offset > header.tableOffset ||
      entry.size > header.tableOffset - entry.offset)
    return errors.at(at + 16, name + ": size",
                     absl::StrCat("to end before ", header.tableOffset),
                     absl::StrCat(entry.size, " bytes at ", entry.offset));
  if (entry.pieces != piecesOf(entry.size))
    return errors.at(at + 4, name + ": hashes", piecesOf(entry.size),
                     entry.pieces);
  if (entry.reserved != 0)
    return errors.at(at + 24, name + ": reserved field", 0, entry.reserved);
  for (uint64_t i = previousEnd; i < entry.offset; ++i)
    if (bytes[i] != 0)
      return errors.at(i, "gap before " + name, "zeros", int{bytes[i]});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PlanSection>>
parsePlanTable(absl::string_view path, absl::Span<const uint8_t> bytes) {
  const TableErrors errors{path};
  LLAMAC_ASSIGN_OR_RETURN(const PlanHeader header, parseHeader(errors, bytes));
  const absl::Span<const uint8_t> table =
      bytes.subspan(header.tableOffset, header.tableBytes);
  if (const PlanHash got = hashHeaderAndTable(header, table);
      got != header.hash)
    return errors.at(hashedHeaderBytes, "checksum of header and table",
                     hashText(header.hash), hashText(got));

  std::vector<PlanSection> sections(header.sectionCount);
  uint64_t hashesAt = header.sectionCount * sizeof(SectionEntry);
  uint64_t end = sizeof(PlanHeader);
  for (uint32_t i = 0; i < header.sectionCount; ++i) {
    SectionEntry entry;
    std::memcpy(&entry, table.data() + i * sizeof entry, sizeof entry);
    LLAMAC_RETURN_IF_ERROR(checkEntry(errors, bytes, header, i, entry, end));
    end = entry.offset + entry.size;

    const uint64_t hashBytes = uint64_t{entry.pieces} * sizeof(PlanHash);
    if (hashBytes > table.size() - hashesAt)
      return errors.at(
          header.tableOffset + hashesAt, absl::StrCat("hashes of section ", i),
          absl::StrCat(hashBytes, " bytes"), table.size() - hashesAt);
    PlanSection &section = sections[i];
    section.kind = static_cast<SectionKind>(entry.kind);
    section.offset = entry.offset;
    section.size = entry.size;
    section.pieces.resize(entry.pieces);
    if (hashBytes != 0)
      std::memcpy(section.pieces.data(), table.data() + hashesAt, hashBytes);
    hashesAt += hashBytes;
  }
  if (end != header.tableOffset || hashesAt != table.size())
    return errors.at(header.tableOffset, "section table",
                     absl::StrCat("at ", end, " with ", hashesAt, " bytes"),
                     absl::StrCat(header.tableOffset, " with ", table.size()));
  return sections;
}

} // namespace llamac
