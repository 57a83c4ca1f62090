//===- BytePair.h - Merges the bytes of a word ------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Byte-pair encoding: a word starts as its bytes; of all neighbours that merge
// the pair with the lowest rank, the leftmost of equals, becomes one token,
// until no neighbours merge.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TOKENIZER_BYTEPAIR_H
#define LLAMAC_TEXT_TOKENIZER_BYTEPAIR_H

#include "text/tokenizer/TokenizerBlob.h"

#include <array>

namespace llamac {

class BytePair {
public:
  /// `blob` outlives this.
  explicit BytePair(const TokenizerBlob &blob);

  /// Appends the ids of `word`. Bytes without a token become the unknown
  /// token, or nothing. O(n log n) in the length of the word.
  void encode(absl::string_view word, std::vector<int32_t> &ids) const;

private:
  void encodeShort(absl::string_view word, std::vector<int32_t> &ids) const;
  void encodeLong(absl::string_view word, std::vector<int32_t> &ids) const;
  void append(uint32_t token, std::vector<int32_t> &ids) const;

  const TokenizerBlob &blob;
  std::array<uint32_t, 256> byteTokens;
};

} // namespace llamac

#endif // LLAMAC_TEXT_TOKENIZER_BYTEPAIR_H
