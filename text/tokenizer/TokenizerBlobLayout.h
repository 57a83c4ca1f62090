//===- TokenizerBlobLayout.h - The bytes of a tokenizer blob ----*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The writer and the reader of a blob share the header as it lies in the file
// and the hash functions of the tables.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TOKENIZER_TOKENIZERBLOBLAYOUT_H
#define LLAMAC_TEXT_TOKENIZER_TOKENIZERBLOBLAYOUT_H

#include "text/tokenizer/TokenizerBlob.h"

#include <bit>
#include <xxhash.h>

namespace llamac::blob {

static_assert(std::endian::native == std::endian::little,
              "blobs are read in place, as little-endian");

inline constexpr char magic[8] = {'L', 'C', 'T', 'O', 'K', 'E', 'N', '3'};
inline constexpr size_t sectionCount = static_cast<size_t>(BlobSection::Count);

struct SectionExtent {
  uint64_t offset;
  uint64_t size;
};

struct Header {
  char magic[8];
  uint32_t kind;
  uint32_t preTokenizer;
  uint32_t flags;
  uint32_t vocabSize;
  int32_t bosId;
  int32_t eosId;
  int32_t eotId;
  int32_t unknownId;
  SectionExtent sections[sectionCount];
};
static_assert(sizeof(Header) == 40 + 16 * sectionCount);

/// Precedes a chat template: the sizes of what follows.
struct ChatTemplateSizes {
  uint64_t name;
  uint64_t text;
};

inline constexpr uint32_t allFlags = 63;

inline uint32_t packFlags(const TokenizerFlags &flags) {
  return (flags.addBos ? 1u : 0u) | (flags.wholeWordFirst ? 2u : 0u) |
         (flags.replaceInvalid ? 4u : 0u) | (flags.addSpacePrefix ? 8u : 0u) |
         (flags.composes ? 16u : 0u) | (flags.asciiSpaces ? 32u : 0u);
}

inline TokenizerFlags unpackFlags(uint32_t bits) {
  return {.addBos = (bits & 1) != 0,
          .wholeWordFirst = (bits & 2) != 0,
          .replaceInvalid = (bits & 4) != 0,
          .addSpacePrefix = (bits & 8) != 0,
          .composes = (bits & 16) != 0,
          .asciiSpaces = (bits & 32) != 0};
}

inline constexpr uint8_t allMarks = 7;

inline uint8_t packMarks(const SpecialMarks &marks) {
  return static_cast<uint8_t>((marks.leftSpaces ? 1 : 0) |
                              (marks.rightSpaces ? 2 : 0) |
                              (marks.wholeWord ? 4 : 0));
}

inline SpecialMarks unpackMarks(uint8_t bits) {
  return {.leftSpaces = (bits & 1) != 0,
          .rightSpaces = (bits & 2) != 0,
          .wholeWord = (bits & 4) != 0};
}

/// Marks an empty slot of the token index and, as `left`, of the merges.
inline constexpr uint32_t emptySlot = 0xFFFFFFFF;
/// No merge has this rank.
inline constexpr uint32_t noRank = 0xFFFFFFFF;
/// The most slots taken in a row; the writer's tables stay far below.
inline constexpr size_t maxProbes = 4096;

inline uint64_t hashToken(absl::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

inline uint64_t hashPair(uint32_t left, uint32_t right) {
  // Fibonacci hashing; the high half of the product is the well mixed one.
  const uint64_t pair = (uint64_t{left} << 32 | right) ^ uint64_t { left } >> 7;
  return pair * 0x9E3779B97F4A7C15 >> 32;
}

} // namespace llamac::blob

#endif // LLAMAC_TEXT_TOKENIZER_TOKENIZERBLOBLAYOUT_H
