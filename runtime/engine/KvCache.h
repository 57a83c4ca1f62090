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
// number in every layer, so all layers share one table.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_ENGINE_KVCACHE_H
#define LLAMAC_RUNTIME_ENGINE_KVCACHE_H

#include "runtime/plan/plan_generated.h"

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <cstdint>
#include <vector>

namespace llamac {

/// Which pages each sequence has; the memory itself is the engine's.
class KvCache {
public:
  /// Of `layout`, with `pages` pages in all; 0 for as many as all sequences
  /// can use.
  explicit KvCache(const schema::KvLayoutT &layout, int64_t pages = 0);

  int64_t pages() const { return pageCount; }

  /// Pages that `tokens` tokens of a sequence take.
  int64_t pagesOf(int64_t tokens) const {
    return (tokens + pageTokens - 1) / pageTokens;
  }

  int64_t freePages() const { return static_cast<int64_t>(freeList.size()); }

  /// A row of the page table for a new sequence. Memory error when all are
  /// taken.
  absl::StatusOr<int32_t> open();

  /// Gives the row and its pages back.
  void close(int32_t slot);

  /// Gives sequence `slot` the pages it needs for `tokens` tokens, which the
  /// caller has checked against the context. True when it got new ones. Memory
  /// error, with the numbers and nothing taken, when too few are free.
  absl::StatusOr<bool> reserve(int32_t slot, int64_t tokens);

  /// Gives back the pages that `tokens` tokens of sequence `slot` do not need.
  void trim(int32_t slot, int64_t tokens);

  /// The page table's row of `slot`: page numbers, then -1.
  absl::Span<const int32_t> row(int32_t slot) const;

private:
  int64_t pageTokens;
  int64_t pagesPerSequence;
  int64_t pageCount;
  std::vector<int32_t> table;
  std::vector<int64_t> used;      ///< Pages of each slot.
  std::vector<int32_t> freeList;  ///< Last in, first out.
  std::vector<int32_t> freeSlots; ///< The same.
};

} // namespace llamac

#endif // LLAMAC_RUNTIME_ENGINE_KVCACHE_H
