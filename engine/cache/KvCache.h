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
// Sequences that begin with the same tokens may hold the same pages, as long as
// they are full. A page is free when nobody holds it.
//
// In a group whose layers see a window, a sequence holds no more pages than the
// group's ring has places: the table repeats them, and new tokens replace those
// that no row sees any more. A page that another sequence holds is not replaced
// but left to it; one that is only kept is left to its keeper as long as there
// are others to take.
//
// Free pages and those that are kept and have no holder are one stock: any of
// the latter can be given up at any time. So taking a page for one that is kept
// alone changes nothing of what the others can have, and hasRoom() is exact.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_ENGINE_CACHE_KVCACHE_H
#define LLAMAC_ENGINE_CACHE_KVCACHE_H

#include "runtime/plan/plan_generated.h"

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace llamac {

/// A sequence by its row of the page tables, and the tokens it is to hold.
struct Growth {
  int32_t slot;
  int64_t tokens;
};

/// Keeps pages for sequences to come.
class PageKeeper {
public:
  virtual ~PageKeeper();

  /// Drops a page of `group` that no sequence holds; false where it keeps none.
  virtual bool reclaim(size_t group) = 0;

  /// Drops `page`, which the one sequence that holds it is to write to.
  virtual void giveBack(size_t group, int32_t page) = 0;
};

/// Which pages each sequence has; the memory itself is the engine's.
class KvCache {
public:
  /// A cache of `layout`, with at most `pages` pages in a group; 0 for as many
  /// as all sequences can use.
  explicit KvCache(const schema::KvLayoutT &layout, int64_t pages = 0);

  int64_t tokensOfPage() const { return pageTokens; }
  size_t groupCount() const { return groups.size(); }
  int64_t pages(size_t group) const { return groups[group].pageCount; }

  int64_t freePages(size_t group) const {
    return static_cast<int64_t>(groups[group].freeList.size());
  }

  /// Pages that are kept and that no sequence holds.
  int64_t reclaimablePages(size_t group) const {
    return groups[group].reclaimable;
  }

  /// The group with the fewest pages that no sequence holds.
  size_t fullestGroup() const;

  /// The longest sequence that the pages of each group can hold.
  int64_t mostTokens() const;

  /// Whose pages may be kept; it outlives its use. Null: nobody's.
  void setKeeper(PageKeeper *keeps) { keeper = keeps; }

  /// Grows whenever a sequence leaves a page or lets others have it: as long as
  /// it stays, what found no room finds none.
  int64_t releases() const { return releaseCount; }

  /// Whether sequence `slot` still has what the token after its first `tokens`
  /// sees of them, once `written` tokens were written.
  bool holds(int32_t slot, int64_t tokens, int64_t written) const;

  /// A row of the page table for a new sequence. Memory error when all are
  /// taken.
  absl::StatusOr<int32_t> open();

  /// Gives the row and its pages back.
  void close(int32_t slot);

  /// Whether all of `batch` have the pages that they need, or can be given
  /// them, and as many `more` of each group; none where that is empty.
  bool hasRoom(absl::Span<const Growth> batch,
               absl::Span<const int64_t> more = {}) const;

  /// hasRoom() as a status, for a batch whose tokens the caller has checked
  /// against the context: a memory error with the numbers.
  absl::Status checkRoom(absl::Span<const Growth> batch) const;

  /// Pages of `group` that a sequence of `tokens` tokens holds.
  int64_t pagesFor(size_t group, int64_t tokens) const {
    return std::min(pagesOf(tokens), groups[group].most);
  }

  /// Gives a sequence the pages it needs in each group, for no more new tokens
  /// than the largest step has rows: in a ring they may take the place of what
  /// the step before saw. True when it got new ones. Errors: those of
  /// checkRoom().
  absl::StatusOr<bool> reserve(const Growth &growth);

  /// Gives back the pages that `tokens` tokens of sequence `slot` do not need.
  void trim(int32_t slot, int64_t tokens);

  /// Whether somebody else holds the page of token `token` of a sequence.
  bool isShared(int32_t slot, int64_t token) const;

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

  //===--------------------------------------------------------------------===//
  // Pages that are kept for sequences to come
  //===--------------------------------------------------------------------===//

  /// The page of number `number` of sequence `slot`, of whose tokens `written`
  /// were written; -1 where newer ones have taken their place.
  int32_t pageAt(size_t group, int32_t slot, int64_t number,
                 int64_t written) const;

  /// The first page that the token after `pages` full pages sees.
  int64_t firstSeen(size_t group, int64_t pages) const;

  /// A page that no sequence holds, kept until drop(); -1 where they hold all.
  int32_t takeKept(size_t group);

  /// Keeps a page that a sequence holds, once, until drop().
  void keep(size_t group, int32_t page);
  void drop(size_t group, int32_t page);
  /// Holds a page as a sequence does, until release().
  void hold(size_t group, int32_t page) { hold(groups[group], page); }
  void release(size_t group, int32_t page) { release(groups[group], page); }
  /// Whether no sequence holds it.
  bool isReclaimable(size_t group, int32_t page) const {
    return groups[group].holders[page] == 0;
  }

  /// Makes `shared`, one page for each of the first pages of a sequence, those
  /// of `slot`, which has none. -1 stands for pages before firstSeen().
  void attach(size_t group, int32_t slot, absl::Span<const int32_t> shared);

private:
  struct Group {
    int64_t window;    ///< 0: all keys.
    int64_t most;      ///< Pages of a sequence.
    int64_t pageCount; ///< Pages of the group in all.
    std::vector<int32_t> table;
    std::vector<int64_t> begins;   ///< The first page that each slot had.
    std::vector<int64_t> ends;     ///< Pages that each slot has had.
    std::vector<int32_t> holders;  ///< Sequences that hold each page.
    std::vector<bool> kept;        ///< Whether each page is.
    int64_t reclaimable = 0;       ///< Pages that are kept and have no holder.
    std::vector<int32_t> freeList; ///< Last in, first out.
  };

  int64_t pagesOf(int64_t tokens) const {
    return (tokens + pageTokens - 1) / pageTokens;
  }

  /// The page in the place of page number `number` of `slot`; -1 for none.
  int32_t at(const Group &group, int32_t slot, int64_t number) const {
    return group.table[slot * pagesPerSequence + number % group.most];
  }

  /// Whether anybody but one sequence has the page.
  static bool isShared(const Group &group, int32_t page) {
    return group.holders[page] > 1 || group.kept[page];
  }

  static void hold(Group &group, int32_t page);
  void release(Group &group, int32_t page);
  /// A page that nobody has any more; -1 where sequences hold all.
  int32_t takeFree(size_t group);

  /// New pages that `batch` needs of a group and cannot do without.
  int64_t newPages(const Group &group, absl::Span<const Growth> batch) const;

  /// Makes `page` the one in the place of page number `number` of `slot`.
  void setPage(Group &group, int32_t slot, int64_t number, int32_t page) const;

  int64_t pageTokens;
  int64_t pagesPerSequence;
  std::vector<Group> groups;
  int64_t slotCount;
  std::vector<int32_t> freeSlots; ///< Last in, first out.
  PageKeeper *keeper = nullptr;
  int64_t releaseCount = 0;
};

} // namespace llamac

#endif // LLAMAC_ENGINE_CACHE_KVCACHE_H
