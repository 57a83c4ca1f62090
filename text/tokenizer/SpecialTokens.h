//===- SpecialTokens.h - Finds special tokens in text -----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TOKENIZER_SPECIALTOKENS_H
#define LLAMAC_TEXT_TOKENIZER_SPECIALTOKENS_H

#include "text/tokenizer/TokenizerBlob.h"

#include "absl/strings/string_view.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace llamac {

/// Finds the leftmost special token of a text, the longest of those that begin
/// at the same place.
class SpecialTokens {
public:
  struct Entry {
    std::string text; ///< Not empty.
    int32_t id;
    SpecialMarks marks = {};
  };
  struct Match {
    size_t begin;
    size_t end;
    int32_t id;
    SpecialMarks marks = {};
  };

  /// `entries` are sorted by their text, each once.
  explicit SpecialTokens(std::vector<Entry> entries);

  /// The first match at or after `from`.
  std::optional<Match> find(absl::string_view text, size_t from) const;

private:
  std::optional<Match> matchAt(absl::string_view text, size_t begin) const;

  std::vector<Entry> entries;
  std::array<bool, 256> isFirstByte = {};
};

} // namespace llamac

#endif // LLAMAC_TEXT_TOKENIZER_SPECIALTOKENS_H
