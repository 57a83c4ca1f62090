//===- PrefixCache.h - Keys and values of known beginnings ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Full pages of keys and values, by the tokens from the first one on: a tree in
// which a node is a page of tokens behind those of its parent. A sequence that
// begins with the same tokens holds the same pages, and its answer has the bits
// it has without them, as a key depends on the tokens before it alone.
//
// Nodes are found by a hash, and then by comparing their tokens. Pages that
// sequences need are given back least recently used first, leaves before what
// they stand on.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_PREFIXCACHE_H
#define LLAMAC_RUNTIME_ENGINE_PREFIXCACHE_H

#include "runtime/engine/KvCache.h"

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

#include <cstdint>
#include <list>
#include <utility>
#include <vector>

namespace llamac {

/// Tokens of beginnings that were asked for, of them those found, and pages of
/// tokens that were given up for others.
struct PrefixCacheCounts {
  int64_t asked = 0, found = 0, evicted = 0;
};

class PrefixCache {
public:
  /// Over the pages of `cache`, which outlives it and takes back from it what
  /// only it holds.
  explicit PrefixCache(KvCache &cache);
  PrefixCache(const PrefixCache &) = delete;
  PrefixCache &operator=(const PrefixCache &) = delete;
  ~PrefixCache();

  /// Gives the empty sequence `slot` the pages of the longest known beginning
  /// of `tokens` that leaves at least one of them; returns its tokens.
  int64_t attach(int32_t slot, absl::Span<const int32_t> tokens);

  /// Remembers the full pages of sequence `slot`, which has `tokens` and of
  /// whose tokens `written` were written.
  void keep(int32_t slot, absl::Span<const int32_t> tokens, int64_t written);

  /// Forgets all that no sequence holds.
  void clear();

  /// Pages of tokens that it knows.
  size_t size() const { return nodes.size(); }
  const PrefixCacheCounts &counts() const { return total; }

private:
  struct Node;
  using Nodes = std::list<Node>;
  struct Node {
    Node *parent; ///< Null: it begins the sequence.
    std::vector<int32_t> tokens;
    std::vector<int32_t> pages; ///< By group; -1: its page was replaced.
    int64_t children = 0;
    Nodes::iterator place = {};
  };

  /// Its tokens behind its parent.
  using Key = std::pair<const Node *, absl::Span<const int32_t>>;

  Node *find(const Node *parent, absl::Span<const int32_t> tokens) const;
  /// The nodes that `tokens` begin with, at most `most`.
  std::vector<Node *> path(absl::Span<const int32_t> tokens, size_t most) const;
  /// Makes the nodes of `path` the most recently used, the first one most.
  void touch(absl::Span<Node *const> path);
  bool isEvictable(const Node &node) const;
  void erase(Node &node);
  /// Gives up the least recently used leaf that no sequence holds.
  bool evict();

  KvCache &cache;
  Nodes nodes; ///< The most recently used first.
  absl::flat_hash_map<Key, Node *> index;
  PrefixCacheCounts total;
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_PREFIXCACHE_H
