//===- Clocks.cpp - Vector clocks of simulated threads --------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "simulator/Clocks.h"

#include <algorithm>

namespace llamac::sim {

void joinInto(ClockVector &into, const ClockVector &from) {
  for (size_t i = 0; i < into.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

std::shared_ptr<const GridClocks>
joined(const std::shared_ptr<const GridClocks> &a,
       const std::shared_ptr<const GridClocks> &b) {
  if (!a || a == b)
    return b;
  if (!b)
    return a;
  auto result = std::make_shared<GridClocks>(*a);
  for (const auto &[block, clocks] : *b) {
    std::shared_ptr<const ClockVector> &mine = (*result)[block];
    if (!mine) {
      mine = clocks;
    } else if (mine != clocks) {
      auto both = std::make_shared<ClockVector>(*mine);
      joinInto(*both, *clocks);
      mine = std::move(both);
    }
  }
  return result;
}

KnowledgeRef joined(const KnowledgeRef &a, const KnowledgeRef &b) {
  if (!a || a == b)
    return b;
  if (!b)
    return a;
  auto result = std::make_shared<Knowledge>(*a);
  joinInto(result->own, b->own);
  result->others = joined(a->others, b->others);
  return result;
}

KnowledgeRef withClock(const KnowledgeRef &base, uint32_t thread,
                       uint32_t clock) {
  auto result = std::make_shared<Knowledge>(*base);
  result->own[thread] = clock;
  return result;
}

std::shared_ptr<const GridClocks> asGridClocks(const KnowledgeRef &knowledge,
                                               uint32_t block) {
  auto result = knowledge->others
                    ? std::make_shared<GridClocks>(*knowledge->others)
                    : std::make_shared<GridClocks>();
  (*result)[block] = std::make_shared<ClockVector>(knowledge->own);
  return result;
}

KnowledgeRef received(const KnowledgeRef &base, uint32_t block,
                      const std::shared_ptr<const GridClocks> &news) {
  if (!news)
    return base;
  auto result = std::make_shared<Knowledge>(*base);
  if (auto own = news->find(block); own != news->end())
    joinInto(result->own, *own->second);
  result->others = joined(base->others, news);
  return result;
}

void BarrierClocks::add(const KnowledgeRef &base, uint32_t thread,
                        uint32_t clock) {
  // Threads of an earlier barrier mostly still share what they knew then.
  if (base != last)
    total = joined(total, base);
  last = base;
  arrivals.push_back({thread, clock});
}

KnowledgeRef BarrierClocks::end() {
  auto result = std::make_shared<Knowledge>(*total);
  for (const Arrival &arrival : arrivals)
    result->own[arrival.thread] =
        std::max(result->own[arrival.thread], arrival.clock);
  last = total = nullptr;
  arrivals.clear();
  return result;
}

} // namespace llamac::sim
