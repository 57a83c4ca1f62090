//===- SpecialTokens.cpp - Finds special tokens in text -------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/tokenizer/SpecialTokens.h"

#include <algorithm>

namespace llamac {

SpecialTokens::SpecialTokens(std::vector<Entry> sorted)
    : entries(std::move(sorted)) {
  for (const Entry &entry : entries)
    if (!entry.text.empty())
      isFirstByte[static_cast<uint8_t>(entry.text[0])] = true;
}

// The sorted entries are a trie: those with a common prefix are adjacent,
// the prefix itself first. Each further byte of the text narrows the range.
std::optional<SpecialTokens::Match>
SpecialTokens::matchAt(absl::string_view text, size_t begin) const {
  std::optional<Match> longest;
  auto first = entries.begin();
  auto last = entries.end();
  for (size_t depth = 0; first != last && begin + depth < text.size();
       ++depth) {
    const int next = static_cast<uint8_t>(text[begin + depth]);
    // A damaged blob may have entries that end before, anywhere.
    const auto byteOf = [depth](const Entry &entry) {
      return depth < entry.text.size()
                 ? static_cast<int>(static_cast<uint8_t>(entry.text[depth]))
                 : -1;
    };
    first = std::partition_point(
        first, last, [&](const Entry &entry) { return byteOf(entry) < next; });
    last = std::partition_point(
        first, last, [&](const Entry &entry) { return byteOf(entry) == next; });
    if (first != last && first->text.size() == depth + 1) {
      longest = Match{begin, begin + depth + 1, first->id, first->marks};
      ++first;
    }
  }
  return longest;
}

std::optional<SpecialTokens::Match> SpecialTokens::find(absl::string_view text,
                                                        size_t from) const {
  if (entries.empty())
    return std::nullopt;
  for (size_t at = from; at < text.size(); ++at)
    if (isFirstByte[static_cast<uint8_t>(text[at])])
      if (const std::optional<Match> match = matchAt(text, at))
        return match;
  return std::nullopt;
}

} // namespace llamac
