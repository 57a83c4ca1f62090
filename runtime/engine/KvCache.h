//===- KvCache.h - Pages of keys and values ---------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The keys and values of a sequence lie in pages of a common pool, which a
// sequence takes as it grows and gives back when it ends. A page has the same
// number in every layer of a group, so the layers of a group share one table.
//
// In a group whose layers see a window, a sequence takes no more pages than the
// group's ring has: the table repeats them, and new tokens replace those that
// no row sees any more.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_KVCACHE_H
#define LLAMAC_RUNTIME_ENGINE_KVCACHE_H

#include "runtime/plan/plan_generated.h"

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace llamac {

/// Which pages each sequence has; the memory itself is the engine's.
class KvCache {
public:
  /// Of `layout`, with at most `pages` pages in a group; 0 for as many as all
  /// sequences can use.
  explicit KvCache(const schema::KvLayoutT &layout, int64_t pages = 0);

  int64_t pages(size_t group) const { return groups[group].pageCount; }

  int64_t freePages(size_t group) const {
    return static_cast<int64_t>(groups[group].freeList.size());
  }

  /// Whether the cache still has what the token after the first `tokens` of a
  /// sequence sees of them, once `written` tokens were written.
  bool holds(int64_t tokens, int64_t written) const;

  /// A row of the page table for a new sequence. Memory error when all are
  /// taken.
  absl::StatusOr<int32_t> open();

  /// Gives the row and its pages back.
  void close(int32_t slot);

  /// Gives sequence `slot` the pages it needs in each group for `tokens`
  /// tokens, which the caller has checked against the context. True when it got
  /// new ones. Memory error, with the numbers and nothing taken, when too few
  /// are free.
  absl::StatusOr<bool> reserve(int32_t slot, int64_t tokens);

  /// Gives back the pages that `tokens` tokens of sequence `slot` do not need.
  void trim(int32_t slot, int64_t tokens);

  /// The row of `slot` in the page table of a group: page numbers, which repeat
  /// in a ring, and -1 where there is none.
  absl::Span<const int32_t> row(size_t group, int32_t slot) const;

  /// Gives `write` the row of `slot` in each page table and where it lies in
  /// the input that holds all of them.
  absl::Status
  writeRows(int32_t slot,
            absl::FunctionRef<absl::Status(uint64_t offset,
                                           absl::Span<const uint8_t> bytes)>
                write) const;

private:
  struct Group {
    int64_t window;    ///< 0: all keys.
    int64_t most;      ///< Pages of a sequence.
    int64_t pageCount; ///< Of all.
    std::vector<int32_t> table;
    std::vector<int64_t> used;     ///< Pages of each slot.
    std::vector<int32_t> freeList; ///< Last in, first out.
  };

  /// Pages that `tokens` tokens of a sequence take in `group`.
  int64_t pagesOf(const Group &group, int64_t tokens) const {
    return std::min((tokens + pageTokens - 1) / pageTokens, group.most);
  }

  /// Makes `page` the one of number `number` of `slot`.
  void setPage(Group &group, int32_t slot, int64_t number, int32_t page) const;

  int64_t pageTokens;
  int64_t pagesPerSequence;
  std::vector<Group> groups;
  int64_t slotCount;
  std::vector<int32_t> freeSlots; ///< Last in, first out.
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_KVCACHE_H
