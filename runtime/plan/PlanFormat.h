//===- PlanFormat.h - The container of a plan file --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes of a plan file outside its sections; docs/plan-format.md describes
// them for people. Everything is little-endian.
//
//   header    64 bytes: what the file is, its size, where the table is, and
//             the XXH3-128 of the first 48 header bytes followed by the table
//   sections  in order, each aligned, the gaps filled with zeros
//   table     one entry for each section, then the XXH3-128 of every piece of
//             every section, in order; it ends the file
//
// The table comes last so that a plan can be written as a stream.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_PLAN_PLANFORMAT_H
#define LLAMAC_RUNTIME_PLAN_PLANFORMAT_H

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace llamac {

static_assert(std::endian::native == std::endian::little,
              "a plan is little-endian and is mapped in place");

/// The contents of a section.
enum class SectionKind : uint32_t {
  Manifest = 1,  ///< The flatbuffer of plan.fbs; exactly one, the last section.
  Code = 2,      ///< An ELF shared object.
  Weight = 3,    ///< One packed weight.
  Constants = 4, ///< Tables that kernels read.
  Tokenizer = 5, ///< The tokenizer's own file.
  Source = 6,    ///< The emitted source of the kernels, for people.
};

/// "weight" and so on; "unknown" for any other number.
absl::string_view sectionKindName(SectionKind kind);

inline constexpr std::array<uint8_t, 8> planMagic = {0x89, 'L',  'L',  'P',
                                                     '\r', '\n', 0x1a, '\n'};
inline constexpr uint32_t planVersion = 8;

/// Alignment of a weight's first byte, so that it can be used from the map,
/// and of any other section's.
inline constexpr uint64_t weightAlignment = 4096;
inline constexpr uint64_t sectionAlignment = 64;

/// A section is hashed in pieces of this size, its last one shorter, so that
/// threads can check one together.
inline constexpr uint64_t planPieceBytes = uint64_t{16} << 20;

/// More sections than any model needs; bounds the memory for a damaged header.
inline constexpr uint32_t maxPlanSections = 1u << 20;

/// An XXH3-128, low half first.
struct PlanHash {
  uint64_t low = 0;
  uint64_t high = 0;

  friend bool operator==(const PlanHash &, const PlanHash &) = default;
};

PlanHash hashBytes(absl::Span<const uint8_t> bytes);
/// The hash of both, one behind the other.
PlanHash hashBytes(absl::Span<const uint8_t> first,
                   absl::Span<const uint8_t> second);

/// 32 hexadecimal digits, high half first.
std::string hashText(const PlanHash &hash);

struct PlanHeader {
  std::array<uint8_t, 8> magic = planMagic;
  uint32_t version = planVersion;
  uint32_t sectionCount = 0;
  uint64_t fileBytes = 0;
  uint64_t tableOffset = 0;
  uint64_t tableBytes = 0;
  uint64_t reserved = 0; ///< 0.
  PlanHash hash;         ///< Hash of the fields above, then the table.
};
static_assert(sizeof(PlanHeader) == 64);
inline constexpr uint64_t hashedHeaderBytes = 48;

struct SectionEntry {
  uint32_t kind = 0;
  uint32_t pieces = 0; ///< ceil(size / planPieceBytes).
  uint64_t offset = 0;
  uint64_t size = 0;
  uint64_t reserved = 0; ///< 0.
};
static_assert(sizeof(SectionEntry) == 32);

/// A section of the table, as readers use it.
struct PlanSection {
  SectionKind kind = SectionKind::Manifest;
  uint64_t offset = 0;
  uint64_t size = 0;
  std::vector<PlanHash> pieces;
};

inline uint64_t alignmentOf(SectionKind kind) {
  return kind == SectionKind::Weight ? weightAlignment : sectionAlignment;
}

/// Checks the header and the table of the plan `bytes` (the whole file; only
/// header, table and gaps are read) and gives its sections. `path` is for
/// messages. Errors, all badPlan: not a plan, another version, truncated or
/// extended, damaged, sections that overlap or lie outside.
absl::StatusOr<std::vector<PlanSection>>
parsePlanTable(absl::string_view path, absl::Span<const uint8_t> bytes);

/// The table of `sections`, and the header of the file that ends with it at
/// `tableOffset`.
std::vector<uint8_t> makePlanTable(const std::vector<PlanSection> &sections);
PlanHeader makePlanHeader(absl::Span<const uint8_t> table,
                          uint32_t sectionCount, uint64_t tableOffset);

} // namespace llamac

#endif // LLAMAC_RUNTIME_PLAN_PLANFORMAT_H
