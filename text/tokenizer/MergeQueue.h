//===- MergeQueue.h - Merges neighbours, best first -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop of every pair-merging tokenizer: a doubly linked list of nodes and
// a heap of the merges their neighbours allow, the smallest key first and the
// leftmost of equal keys. A merge whose nodes have changed since it was found
// is dropped when it comes up; so each of the fewer than n merges adds at most
// two, and the whole is O(n log n).
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_TEXT_TOKENIZER_MERGEQUEUE_H
#define LLAMAC_TEXT_TOKENIZER_MERGEQUEUE_H

#include "text/tokenizer/TokenizerBlob.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace llamac {

/// A run of the text that is one token so far.
struct MergeNode {
  size_t begin;
  uint32_t length; ///< 0 once it was merged into its left neighbour.
  uint32_t token;
  uint32_t previous;
  uint32_t next;
};

template <typename Key> struct MergeCandidate {
  Key key; ///< Smaller ones go first.
  uint32_t result;
};

/// The merges that `blob` ranks, for run() of a MergeQueue<uint32_t>.
struct RankedMerges {
  const TokenizerBlob &blob;

  std::optional<MergeCandidate<uint32_t>>
  operator()(const MergeNode &left, const MergeNode &right) const {
    const std::optional<Merge> found = blob.findMerge(left.token, right.token);
    if (!found)
      return std::nullopt;
    return MergeCandidate<uint32_t>{found->rank, found->result};
  }
};

template <typename Key> class MergeQueue {
public:
  static constexpr uint32_t none = std::numeric_limits<uint32_t>::max();

  void reserve(size_t count) { nodes.reserve(count); }

  /// Appends a node behind the last one.
  void addNode(size_t begin, size_t length, uint32_t token) {
    const uint32_t index = static_cast<uint32_t>(nodes.size());
    if (!nodes.empty())
      nodes.back().next = index;
    nodes.push_back({begin, static_cast<uint32_t>(length), token,
                     nodes.empty() ? none : index - 1, none});
  }

  /// Merges until nothing merges. `merge(left, right)` gives the merge of two
  /// neighbours as an optional MergeCandidate.
  template <typename MergeFn> void run(const MergeFn &merge) {
    const auto add = [&](uint32_t left) {
      if (left == none || nodes[left].next == none)
        return;
      const MergeNode &leftNode = nodes[left];
      const MergeNode &rightNode = nodes[leftNode.next];
      if (const auto candidate = merge(leftNode, rightNode)) {
        heap.push_back({candidate->key, left,
                        leftNode.length + rightNode.length, candidate->result});
        std::push_heap(heap.begin(), heap.end());
      }
    };
    for (uint32_t i = 0; i < nodes.size(); ++i)
      add(i);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end());
      const Entry entry = heap.back();
      heap.pop_back();
      MergeNode &left = nodes[entry.left];
      if (left.length == 0 || left.next == none)
        continue;
      MergeNode &right = nodes[left.next];
      // Nodes only grow to the right and only by merging: the same two nodes
      // are there exactly when the left one and the sum have their lengths.
      if (left.length + right.length != entry.length)
        continue;
      left.length = entry.length;
      left.token = entry.result;
      left.next = right.next;
      right.length = 0;
      if (right.next != none)
        nodes[right.next].previous = entry.left;
      add(left.previous);
      add(entry.left);
    }
  }

  /// Calls `fn` with what is left, in order.
  template <typename Fn> void forEach(const Fn &fn) const {
    for (uint32_t i = nodes.empty() ? none : 0; i != none; i = nodes[i].next)
      fn(nodes[i]);
  }

private:
  struct Entry {
    Key key;
    uint32_t left;
    uint32_t length; ///< Length of both nodes when the merge was found.
    uint32_t result;

    // std heaps keep the largest on top.
    friend bool operator<(const Entry &a, const Entry &b) {
      return b.key < a.key || (a.key == b.key && b.left < a.left);
    }
  };

  std::vector<MergeNode> nodes;
  std::vector<Entry> heap;
};

} // namespace llamac

#endif // LLAMAC_TEXT_TOKENIZER_MERGEQUEUE_H
