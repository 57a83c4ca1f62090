//===- KvCache.cpp - Pages of keys and values -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/engine/KvCache.h"

#include "runtime/base/Status.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace llamac {

KvCache::KvCache(const schema::KvLayoutT &layout, int64_t pages)
    : pageTokens(layout.pageTokens), pagesPerSequence(layout.pagesPerSequence),
      pageCount(layout.pagesPerSequence * layout.maxSequences),
      table(static_cast<size_t>(pageCount), -1),
      used(static_cast<size_t>(layout.maxSequences), 0) {
  if (pages != 0)
    pageCount = std::min(pageCount, pages);
  // Taken from the back: low numbers first.
  for (int64_t page = pageCount - 1; page >= 0; --page)
    freeList.push_back(static_cast<int32_t>(page));
  for (int64_t slot = layout.maxSequences - 1; slot >= 0; --slot)
    freeSlots.push_back(static_cast<int32_t>(slot));
}

absl::StatusOr<int32_t> KvCache::open() {
  if (freeSlots.empty())
    return memoryError(absl::StrCat("sequences: expected at most ", used.size(),
                                    " at once, as the plan was compiled for, "
                                    "got one more"));
  const int32_t slot = freeSlots.back();
  freeSlots.pop_back();
  return slot;
}

void KvCache::close(int32_t slot) {
  trim(slot, 0);
  freeSlots.push_back(slot);
}

void KvCache::trim(int32_t slot, int64_t tokens) {
  const int64_t needed = pagesOf(tokens);
  int32_t *pages = table.data() + slot * pagesPerSequence;
  for (; used[slot] > needed; --used[slot]) {
    int32_t &page = pages[used[slot] - 1];
    freeList.push_back(page);
    page = -1;
  }
}

absl::StatusOr<bool> KvCache::reserve(int32_t slot, int64_t tokens) {
  const int64_t needed = pagesOf(tokens);
  const int64_t more = needed - used[slot];
  if (more <= 0)
    return false;
  if (more > freePages())
    return memoryError(absl::StrCat(
        "KV cache: ", tokens, " tokens need ", more, " more pages of ",
        pageTokens, " tokens, ", freePages(), " of ", pageCount, " are free"));
  int32_t *pages = table.data() + slot * pagesPerSequence;
  for (int64_t i = used[slot]; i < needed; ++i) {
    pages[i] = freeList.back();
    freeList.pop_back();
  }
  used[slot] = needed;
  return true;
}

absl::Span<const int32_t> KvCache::row(int32_t slot) const {
  return absl::MakeConstSpan(table).subspan(slot * pagesPerSequence,
                                            pagesPerSequence);
}

} // namespace llamac
