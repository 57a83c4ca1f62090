//===- PlanBytes.cpp - Plan files made by hand ----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/runtime/plan/PlanBytes.h"

#include <cstring>
#include <fstream>
#include <sstream>
#include <xxhash.h>

namespace llamac {

std::string readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void writeBytes(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

static std::string raw(const void *data, size_t size) {
  return std::string(static_cast<const char *>(data), size);
}

std::string PlanParts::bytes() const {
  const std::string table =
      raw(entries.data(), entries.size() * sizeof(SectionEntry)) +
      raw(hashes.data(), hashes.size() * sizeof(PlanHash));
  PlanHeader signedHeader = header;
  const std::string hashed = raw(&header, hashedHeaderBytes) + table;
  const XXH128_hash_t hash = XXH3_128bits(hashed.data(), hashed.size());
  signedHeader.hash = {hash.low64, hash.high64};
  return raw(&signedHeader, sizeof signedHeader) + sections + table;
}

PlanParts splitPlan(const std::string &bytes) {
  PlanParts parts;
  std::memcpy(&parts.header, bytes.data(), sizeof parts.header);
  parts.sections = bytes.substr(sizeof parts.header,
                                parts.header.tableOffset - sizeof parts.header);
  const char *table = bytes.data() + parts.header.tableOffset;
  parts.entries.resize(parts.header.sectionCount);
  const size_t entryBytes = parts.entries.size() * sizeof(SectionEntry);
  std::memcpy(parts.entries.data(), table, entryBytes);
  parts.hashes.resize((parts.header.tableBytes - entryBytes) /
                      sizeof(PlanHash));
  std::memcpy(parts.hashes.data(), table + entryBytes,
              parts.hashes.size() * sizeof(PlanHash));
  return parts;
}

std::string manifestOf(const schema::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  schema::FinishPlanBuffer(builder, schema::Plan::Pack(builder, &plan));
  return raw(builder.GetBufferPointer(), builder.GetSize());
}

// References to the vector of the numbers refer to the first of them, which is
// a length then.
std::string misalignedManifest() {
  toy::ToyPlan toy = toy::makeToyPlan();
  toy.plan.kernels[0]->resultRowBytes = {2, 0, 0};
  std::string bytes = manifestOf(toy.plan);
  const auto *manifest = reinterpret_cast<const uint8_t *>(bytes.data());
  const auto *vector = reinterpret_cast<const uint8_t *>(
      schema::GetPlan(manifest)->kernels()->Get(0)->resultRowBytes());
  for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
    uint32_t offset = 0;
    std::memcpy(&offset, manifest + at, 4);
    if (manifest + at + offset == vector) {
      offset += 4;
      std::memcpy(bytes.data() + at, &offset, 4);
    }
  }
  return bytes;
}

std::string unsoundPlan(const toy::ToyPlan &toy, const std::string &manifest) {
  std::vector<toy::ToySection> all = toy.sections;
  all.push_back({SectionKind::Manifest,
                 manifest.empty() ? manifestOf(toy.plan) : manifest});
  PlanParts parts;
  uint64_t end = sizeof(PlanHeader);
  for (const toy::ToySection &section : all) {
    const uint64_t alignment = alignmentOf(section.kind);
    const uint64_t offset = (end + alignment - 1) / alignment * alignment;
    parts.sections.append(offset - end, '\0');
    parts.sections += section.bytes;
    end = offset + section.bytes.size();
    // Toy sections are of one piece.
    parts.entries.push_back({static_cast<uint32_t>(section.kind), 1, offset,
                             section.bytes.size(), 0});
    parts.hashes.push_back(
        hashBytes({reinterpret_cast<const uint8_t *>(section.bytes.data()),
                   section.bytes.size()}));
  }
  parts.header.sectionCount = static_cast<uint32_t>(all.size());
  parts.header.tableOffset = end;
  parts.header.tableBytes = parts.entries.size() * sizeof(SectionEntry) +
                            parts.hashes.size() * sizeof(PlanHash);
  parts.header.fileBytes = end + parts.header.tableBytes;
  return parts.bytes();
}

absl::Status readStatus(const std::string &bytes,
                        const PlanReadOptions &options) {
  const TemporaryFolder folder;
  writeBytes(folder.file("bad.plan"), bytes);
  return PlanReader::open(folder.file("bad.plan"), options).status();
}

} // namespace llamac
