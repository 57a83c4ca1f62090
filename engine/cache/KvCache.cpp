//===- KvCache.cpp - Pages of keys and values -----------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "engine/cache/KvCache.h"

#include "runtime/base/Status.h"
#include "runtime/plan/PlanConfig.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

#include <algorithm>
#include <cassert>

namespace llamac {

PageKeeper::~PageKeeper() = default;

KvCache::KvCache(const schema::KvLayoutT &layout, int64_t pages)
    : pageTokens(layout.pageTokens), pagesPerSequence(layout.pagesPerSequence),
      slotCount(layout.maxSequences) {
  for (const schema::KvGroup &of : layout.groups) {
    Group &group = groups.emplace_back();
    group.window = of.window();
    group.most = of.pages();
    group.pageCount = poolPages(layout, of, pages);
    group.table.assign(pagesPerSequence * slotCount, -1);
    group.begins.assign(slotCount, 0);
    group.ends.assign(slotCount, 0);
    group.holders.assign(group.pageCount, 0);
    group.kept.assign(group.pageCount, false);
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
                                    " at once, as the model was loaded for, "
                                    "got one more"));
  const int32_t slot = freeSlots.back();
  freeSlots.pop_back();
  return slot;
}

void KvCache::close(int32_t slot) {
  trim(slot, 0);
  freeSlots.push_back(slot);
}

bool KvCache::holds(int32_t slot, int64_t tokens, int64_t written) const {
  return std::ranges::all_of(groups, [&](const Group &group) {
    // Only the keys before the next token that it sees with itself.
    const int64_t first =
        group.window == 0 ? 0 : std::max<int64_t>(tokens + 1 - group.window, 0);
    return first >= tokens ||
           first / pageTokens >=
               std::max(group.begins[slot], pagesOf(written) - group.most);
  });
}

void KvCache::setPage(Group &group, int32_t slot, int64_t number,
                      int32_t page) const {
  int32_t *pages = group.table.data() + slot * pagesPerSequence;
  for (int64_t i = number % group.most; i < pagesPerSequence; i += group.most)
    pages[i] = page;
}

size_t KvCache::fullestGroup() const {
  size_t fullest = 0;
  for (size_t i = 1; i < groups.size(); ++i)
    if (freePages(i) + reclaimablePages(i) <
        freePages(fullest) + reclaimablePages(fullest))
      fullest = i;
  return fullest;
}

int64_t KvCache::mostTokens() const {
  int64_t most = pagesPerSequence;
  for (const Group &group : groups)
    if (group.pageCount < group.most)
      most = std::min(most, group.pageCount);
  return most * pageTokens;
}

void KvCache::hold(Group &group, int32_t page) {
  if (group.holders[page]++ == 0 && group.kept[page])
    --group.reclaimable;
}

void KvCache::release(Group &group, int32_t page) {
  ++releaseCount;
  if (--group.holders[page] > 0)
    return;
  if (group.kept[page])
    ++group.reclaimable;
  else
    group.freeList.push_back(page);
}

int32_t KvCache::takeFree(size_t group) {
  Group &of = groups[group];
  while (of.freeList.empty() && keeper && keeper->reclaim(group))
    ;
  if (of.freeList.empty())
    return -1;
  const int32_t page = of.freeList.back();
  of.freeList.pop_back();
  return page;
}

int32_t KvCache::takeKept(size_t group) {
  const int32_t page = takeFree(group);
  if (page < 0)
    return -1;
  groups[group].kept[page] = true;
  ++groups[group].reclaimable;
  return page;
}

void KvCache::keep(size_t group, int32_t page) {
  groups[group].kept[page] = true;
  ++releaseCount;
}

void KvCache::drop(size_t group, int32_t page) {
  Group &of = groups[group];
  of.kept[page] = false;
  if (of.holders[page] > 0)
    return;
  --of.reclaimable;
  of.freeList.push_back(page);
}

void KvCache::trim(int32_t slot, int64_t tokens) {
  for (Group &group : groups) {
    const int64_t needed = pagesOf(tokens);
    for (int64_t number = std::min(group.ends[slot], group.most);
         number-- > needed;) {
      release(group, at(group, slot, number));
      setPage(group, slot, number, -1);
    }
    group.ends[slot] = std::min(group.ends[slot], needed);
    group.begins[slot] = std::min(group.begins[slot], group.ends[slot]);
  }
}

bool KvCache::isShared(int32_t slot, int64_t token) const {
  const int64_t number = token / pageTokens;
  return std::ranges::any_of(groups, [&](const Group &group) {
    return number < group.ends[slot] &&
           isShared(group, at(group, slot, number));
  });
}

int64_t KvCache::newPages(const Group &group,
                          absl::Span<const Growth> batch) const {
  int64_t count = 0;
  // The last one of several to leave a page has it for itself.
  absl::flat_hash_map<int32_t, int32_t> leaving;
  for (const Growth &growth : batch) {
    const int64_t begin = group.ends[growth.slot];
    // Behind one round of the ring come its own pages again.
    const int64_t end = std::min(pagesOf(growth.tokens), begin + group.most);
    for (int64_t number = begin; number < end; ++number) {
      const int32_t page = at(group, growth.slot, number);
      count += page < 0 || (group.holders[page] > 1 &&
                            ++leaving[page] < group.holders[page]);
    }
  }
  return count;
}

bool KvCache::hasRoom(absl::Span<const Growth> batch,
                      absl::Span<const int64_t> more) const {
  for (size_t i = 0; i < groups.size(); ++i)
    if (newPages(groups[i], batch) + (more.empty() ? 0 : more[i]) >
        freePages(i) + reclaimablePages(i))
      return false;
  return true;
}

absl::Status KvCache::checkRoom(absl::Span<const Growth> batch) const {
  for (size_t i = 0; i < groups.size(); ++i) {
    const int64_t more = newPages(groups[i], batch);
    const int64_t available = freePages(i) + reclaimablePages(i);
    if (more <= available)
      continue;
    int64_t tokens = 0;
    for (const Growth &growth : batch)
      tokens += growth.tokens;
    return memoryError(absl::StrCat("KV cache: ", tokens, " tokens need ", more,
                                    " more pages of ", pageTokens, " tokens, ",
                                    available, " of ", pages(i), " are free"));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> KvCache::reserve(const Growth &growth) {
  LLAMAC_RETURN_IF_ERROR(checkRoom({growth}));
  const int32_t slot = growth.slot;
  bool changed = false;
  for (size_t i = 0; i < groups.size(); ++i) {
    Group &group = groups[i];
    for (int64_t &end = group.ends[slot]; end < pagesOf(growth.tokens); ++end) {
      const int32_t left = at(group, slot, end);
      if (left >= 0 && !isShared(group, left))
        continue;
      const int32_t page = takeFree(i);
      if (page < 0) {
        assert(left >= 0 && group.holders[left] == 1 && "checked above");
        keeper->giveBack(i, left);
        continue;
      }
      if (left >= 0)
        release(group, left);
      hold(group, page);
      setPage(group, slot, end, page);
      changed = true;
    }
  }
  return changed;
}

int32_t KvCache::pageAt(size_t group, int32_t slot, int64_t number,
                        int64_t written) const {
  const Group &of = groups[group];
  const int64_t first = std::max(of.begins[slot], pagesOf(written) - of.most);
  return number >= first && number < of.ends[slot] ? at(of, slot, number) : -1;
}

int64_t KvCache::firstSeen(size_t group, int64_t pages) const {
  const int64_t window = groups[group].window;
  if (window == 0)
    return 0;
  return std::max<int64_t>(pages * pageTokens + 1 - window, 0) / pageTokens;
}

void KvCache::attach(size_t group, int32_t slot,
                     absl::Span<const int32_t> shared) {
  Group &of = groups[group];
  const auto end = static_cast<int64_t>(shared.size());
  of.begins[slot] = end;
  while (of.begins[slot] > 0 && shared[of.begins[slot] - 1] >= 0)
    --of.begins[slot];
  for (int64_t number = std::max<int64_t>(end - of.most, 0); number < end;
       ++number) {
    // Every place has a page that may be read; what no row sees, any of them.
    const int32_t page = shared[number] < 0 ? shared.back() : shared[number];
    hold(of, page);
    setPage(of, slot, number, page);
  }
  of.ends[slot] = end;
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
