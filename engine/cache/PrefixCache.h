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
// sequences need are given back least recently used first: those of a leaf with
// it, and of what others stand on the page alone. A node that has no page and
// on which nothing stands is forgotten.
//
// The tree can be kept in a file. Of the nodes that the file has, those whose
// pages are not in memory are asleep: they are known, and a prompt that begins
// with them brings their pages from the file.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_CACHE_PREFIXCACHE_H
#define LLAMAC_ENGINE_CACHE_PREFIXCACHE_H

#include "engine/cache/KvCache.h"
#include "engine/cache/PrefixFile.h"

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace llamac {

/// Tokens of beginnings that were asked for, of them those found, and pages of
/// tokens that were given up for others.
struct PrefixCacheCounts {
  int64_t asked = 0, found = 0, evicted = 0;
  int64_t loaded = 0;  ///< Tokens whose pages were brought from the file.
  int64_t damaged = 0; ///< Pages of tokens that the file has no more.
};

/// The memory of the pages, of a group in all of its layers, one layer after
/// the other.
class PageMemory {
public:
  virtual ~PageMemory();

  virtual uint64_t pageBytes(size_t group) const = 0;

  /// Appends the bytes of a page.
  virtual absl::Status read(size_t group, int32_t page,
                            std::vector<uint8_t> &bytes) = 0;
  virtual absl::Status write(size_t group, int32_t page,
                             absl::Span<const uint8_t> bytes) = 0;
};

class PrefixCache : private PageKeeper {
public:
  /// Over the pages of `cache`, which outlives it and takes back from it what
  /// only it holds.
  explicit PrefixCache(KvCache &cache);
  PrefixCache(const PrefixCache &) = delete;
  PrefixCache &operator=(const PrefixCache &) = delete;
  ~PrefixCache() override;

  /// Makes the file at `path` the one of this cache, which knows nothing yet:
  /// what it has is known from now on, if there is one. `identity` is that of
  /// the model; `memory` outlives the cache. Errors: those of PrefixFile::open,
  /// and usage for a path that cannot be written.
  absl::Status open(const std::string &path, const std::string &identity,
                    PageMemory &memory);

  /// Writes what is known to the file, as far as its pages have at most
  /// `mostBytes`, the most recently used first; nothing where the file has all
  /// of it or there is none. Errors: those of AtomicFile and of the device.
  absl::Status save(uint64_t mostBytes);

  /// Brings what attach() will give a sequence that begins with `tokens` from
  /// the file: the longest beginning for whose pages there is memory that no
  /// sequence holds. What is damaged there is forgotten, with one warning.
  /// Errors: those of the device.
  absl::Status load(absl::Span<const int32_t> tokens);

  /// Gives the empty sequence `slot` the pages of the longest known beginning
  /// of `tokens` that leaves at least one of them; returns its tokens.
  int64_t attach(int32_t slot, absl::Span<const int32_t> tokens);

  /// Counts, by group, the pages that others hold of those that a sequence
  /// which begins with `tokens` may be given.
  std::vector<int64_t> heldPages(absl::Span<const int32_t> tokens) const;

  /// Remembers the full pages of sequence `slot`, which has `tokens` and of
  /// whose tokens `written` were written.
  void keep(int32_t slot, absl::Span<const int32_t> tokens, int64_t written);

  /// Gives up all pages that no sequence holds.
  void clear();

  /// Pages of tokens that it knows.
  size_t size() const { return nodes.size() + asleep.size(); }
  const PrefixCacheCounts &counts() const { return total; }

private:
  struct Node;
  using Nodes = std::list<Node>;
  struct Node {
    Node *parent; ///< Null: it begins the sequence.
    std::vector<int32_t> tokens;
    std::vector<int32_t> pages; ///< Pages by group; -1: not in memory.
    int64_t stored = -1;        ///< Its number in the file; -1: none.
    int64_t children = 0;       ///< Children that are awake.
    bool isAsleep = false;
    Nodes::iterator place = {};
  };

  /// Its tokens behind its parent.
  using Key = std::pair<const Node *, absl::Span<const int32_t>>;

  Node *find(const Node *parent, absl::Span<const int32_t> tokens) const;
  /// The nodes that `tokens` begin with, at most `most`.
  std::vector<Node *> path(absl::Span<const int32_t> tokens, size_t most) const;
  /// Which pages count for usable(): those in memory, or also those in the
  /// file, or of all these as many as there is memory for.
  enum class Use { InMemory, OrInFile, ThatFits };
  /// The longest part of path() that leaves one of `tokens` and of which each
  /// group has all pages that the token behind it sees.
  std::vector<Node *> usable(absl::Span<const int32_t> tokens, Use use) const;
  /// The first page of `count` that the token behind them needs of `group`.
  int64_t firstNeeded(size_t group, int64_t count) const;
  bool isInFile(const Node &node, size_t group) const;
  /// Brings the page of `node` in `group` from the file; false where it is
  /// damaged.
  absl::StatusOr<bool> loadPage(Node &node, size_t group);
  absl::Status loadPath(absl::Span<Node *const> path,
                        std::vector<std::pair<size_t, int32_t>> &held);
  absl::StatusOr<absl::Span<const uint8_t>> storedPage(const Node &node,
                                                       size_t group);
  PrefixFileLayout layout() const;
  std::vector<const Node *> chooseSaved(uint64_t mostBytes) const;

  /// Makes the nodes of `path` the most recently used, the first one most, and
  /// wakes them.
  void touch(absl::Span<Node *const> path);
  bool isEvictable(const Node &node) const;
  /// Makes `page` that of `node` in `group`.
  void setPage(Node &node, size_t group, int32_t page);
  /// Gives the page of `node` in `group` back.
  void dropPage(Node &node, size_t group);
  /// Gives the pages of `node` back, and forgets it where the file has it not;
  /// so, too, its parents that are of no more use.
  void giveUp(Node &node);
  /// giveUp() where it has no page and nothing stands on it.
  void giveUpIfEmpty(Node &node);

  bool reclaim(size_t group) override;
  void giveBack(size_t group, int32_t page) override;

  KvCache &cache;
  /// The most recently used first, and so parents before their children. The
  /// parents of nodes that are awake are awake.
  Nodes nodes, asleep;
  absl::flat_hash_map<Key, Node *> index;
  /// Whose each page is, by group; null for none's.
  std::vector<std::vector<Node *>> owners;
  PrefixCacheCounts total;

  PageMemory *memory = nullptr; ///< Null: no file is asked for.
  std::string filePath, modelIdentity;
  std::unique_ptr<PrefixFile> file; ///< Null: there was none.
  bool isChanged = false;           ///< Whether the file has not all.
};

} // namespace llamac

#endif // LLAMAC_ENGINE_CACHE_PREFIXCACHE_H
