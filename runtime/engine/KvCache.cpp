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

namespace llamac {

KvCache::KvCache(const schema::KvLayoutT &layout, int64_t pages)
    : pageTokens(layout.pageTokens), pagesPerSequence(layout.pagesPerSequence),
      slotCount(layout.maxSequences) {
  for (const schema::KvGroup &of : layout.groups) {
    Group &group = groups.emplace_back();
    group.window = of.window();
    group.most = of.pages();
    group.pageCount = of.pages() * slotCount;
    if (pages != 0)
      group.pageCount = std::min(group.pageCount, pages);
    group.table.assign(pagesPerSequence * slotCount, -1);
    group.used.assign(slotCount, 0);
    // Taken from the back: low numbers first.
    for (int64_t page = group.pageCount - 1; page >= 0; --page)
      group.freeList.push_back(static_cast<int32_t>(page));
  }
  for (int64_t slot = slotCount - 1; slot >= 0; --slot)
    freeSlots.push_back(static_cast<int32_t>(slot));
}

absl::StatusOr<int32_t> KvCache::open() {
  if (freeSlots.empty())
    return memoryError(absl::StrCat("sequences: expected at most ", slotCount,
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

bool KvCache::holds(int64_t tokens, int64_t written) const {
  return std::ranges::all_of(groups, [&](const Group &group) {
    // Only the keys before the next token that it sees with itself.
    const int64_t first =
        group.window == 0 ? 0 : std::max<int64_t>(tokens + 1 - group.window, 0);
    return first >= tokens || written - first <= group.most * pageTokens;
  });
}

void KvCache::setPage(Group &group, int32_t slot, int64_t number,
                      int32_t page) const {
  int32_t *pages = group.table.data() + slot * pagesPerSequence;
  for (int64_t i = number; i < pagesPerSequence; i += group.most)
    pages[i] = page;
}

void KvCache::trim(int32_t slot, int64_t tokens) {
  for (Group &group : groups) {
    const int64_t needed = pagesOf(group, tokens);
    for (int64_t &used = group.used[slot]; used > needed; --used) {
      group.freeList.push_back(group.table[slot * pagesPerSequence + used - 1]);
      setPage(group, slot, used - 1, -1);
    }
  }
}

absl::StatusOr<bool> KvCache::reserve(int32_t slot, int64_t tokens) {
  bool changed = false;
  for (size_t i = 0; i < groups.size(); ++i) {
    const int64_t more = pagesOf(groups[i], tokens) - groups[i].used[slot];
    changed |= more > 0;
    if (more > freePages(i))
      return memoryError(absl::StrCat("KV cache: ", tokens, " tokens need ",
                                      more, " more pages of ", pageTokens,
                                      " tokens, ", freePages(i), " of ",
                                      pages(i), " are free"));
  }
  for (Group &group : groups)
    for (int64_t &used = group.used[slot]; used < pagesOf(group, tokens);
         ++used) {
      setPage(group, slot, used, group.freeList.back());
      group.freeList.pop_back();
    }
  return changed;
}

absl::Span<const int32_t> KvCache::row(size_t group, int32_t slot) const {
  return absl::MakeConstSpan(groups[group].table)
      .subspan(slot * pagesPerSequence, pagesPerSequence);
}

absl::Status KvCache::writeRows(
    int32_t slot,
    absl::FunctionRef<absl::Status(uint64_t, absl::Span<const uint8_t>)> write)
    const {
  for (size_t group = 0; group < groups.size(); ++group) {
    const uint64_t size = pagesPerSequence * sizeof(int32_t);
    const absl::Span<const int32_t> values = row(group, slot);
    LLAMAC_RETURN_IF_ERROR(
        write((group * slotCount + slot) * size,
              {reinterpret_cast<const uint8_t *>(values.data()), size}));
  }
  return absl::OkStatus();
}

} // namespace llamac
