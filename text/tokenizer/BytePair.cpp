//===- BytePair.cpp - Merges the bytes of a word --------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "text/tokenizer/BytePair.h"

#include "text/tokenizer/MergeQueue.h"
#include "text/tokenizer/TokenizerBlobLayout.h"

namespace llamac {

// Words up to this length search all their pairs for the best one each time:
// most words are a few bytes, and for those that beats a heap.
static constexpr size_t shortWord = 48;

// A byte the vocabulary has no token for; it merges with nothing.
static constexpr uint32_t noToken = 0xFFFFFFFF;

BytePair::BytePair(const TokenizerBlob &blob) : blob(blob) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byteTokens[byte] = blob.findToken({&c, 1}).value_or(noToken);
  }
}

void BytePair::append(uint32_t token, std::vector<int32_t> &ids) const {
  if (token != noToken)
    ids.push_back(static_cast<int32_t>(token));
  else if (const std::optional<int32_t> unknown = blob.unknownId())
    ids.push_back(*unknown);
}

void BytePair::encode(absl::string_view word, std::vector<int32_t> &ids) const {
  if (word.size() <= shortWord)
    encodeShort(word, ids);
  else
    encodeLong(word, ids);
}

void BytePair::encodeShort(absl::string_view word,
                           std::vector<int32_t> &ids) const {
  // tokens[i] merges with tokens[i + 1] into results[i], at ranks[i].
  std::array<uint32_t, shortWord> tokens, ranks, results;
  size_t count = word.size();
  const auto lookUp = [&](size_t i) {
    const std::optional<Merge> merge =
        i + 1 < count ? blob.findMerge(tokens[i], tokens[i + 1]) : std::nullopt;
    ranks[i] = merge ? merge->rank : blob::noRank;
    results[i] = merge ? merge->result : noToken;
  };
  for (size_t i = 0; i < count; ++i)
    tokens[i] = byteTokens[static_cast<uint8_t>(word[i])];
  for (size_t i = 0; i < count; ++i)
    lookUp(i);

  while (count > 1) {
    const size_t best =
        std::min_element(ranks.begin(), ranks.begin() + count) - ranks.begin();
    if (ranks[best] == blob::noRank)
      break;
    tokens[best] = results[best];
    --count;
    for (size_t i = best + 1; i < count; ++i) {
      tokens[i] = tokens[i + 1];
      ranks[i] = ranks[i + 1];
      results[i] = results[i + 1];
    }
    lookUp(best);
    if (best > 0)
      lookUp(best - 1);
  }
  for (size_t i = 0; i < count; ++i)
    append(tokens[i], ids);
}

void BytePair::encodeLong(absl::string_view word,
                          std::vector<int32_t> &ids) const {
  MergeQueue<uint32_t> queue;
  queue.reserve(word.size());
  for (size_t i = 0; i < word.size(); ++i)
    queue.addNode(i, 1, byteTokens[static_cast<uint8_t>(word[i])]);
  queue.run(RankedMerges{blob});
  queue.forEach([&](const MergeNode &node) { append(node.token, ids); });
}

} // namespace llamac
