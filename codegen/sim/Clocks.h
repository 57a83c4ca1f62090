//===- Clocks.h - What a simulated thread knows of others -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vector clocks. Each thread has a clock that advances when it releases; what
// it knows of its block's threads is the latest clock of theirs that it is
// ordered behind. After a barrier all threads know the same, so knowledge is
// shared and never changed in place. What a thread knows of other blocks comes
// from atomics alone, and is kept by block.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_SIM_CLOCKS_H
#define LLAMAC_CODEGEN_SIM_CLOCKS_H

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace llamac::sim {

using ClockVector = std::vector<uint32_t>;
/// By block, the clocks of its threads.
using GridClocks = std::map<uint32_t, std::shared_ptr<const ClockVector>>;

struct Knowledge {
  ClockVector own;                          ///< By thread of the block.
  std::shared_ptr<const GridClocks> others; ///< Null: nothing.
};
using KnowledgeRef = std::shared_ptr<const Knowledge>;

/// The larger of both, clock by clock.
void joinInto(ClockVector &into, const ClockVector &from);
std::shared_ptr<const GridClocks>
joined(const std::shared_ptr<const GridClocks> &a,
       const std::shared_ptr<const GridClocks> &b);
KnowledgeRef joined(const KnowledgeRef &a, const KnowledgeRef &b);

/// `base`, which is the knowledge of thread `thread`, with its own `clock`.
KnowledgeRef withClock(const KnowledgeRef &base, uint32_t thread,
                       uint32_t clock);

/// The knowledge of a thread of block `block` as other blocks receive it.
std::shared_ptr<const GridClocks> asGridClocks(const KnowledgeRef &knowledge,
                                               uint32_t block);

/// What a thread of block `block` knows that knew `base` and receives `news`.
KnowledgeRef received(const KnowledgeRef &base, uint32_t block,
                      const std::shared_ptr<const GridClocks> &news);

/// Collects the knowledge of threads that meet.
class Meeting {
public:
  void add(const KnowledgeRef &base, uint32_t thread, uint32_t clock);

  /// Whether nobody has come.
  bool isEmpty() const { return arrivals.empty(); }

  /// What all know afterwards, and an empty meeting.
  KnowledgeRef end();

private:
  struct Arrival {
    uint32_t thread;
    uint32_t clock;
  };
  KnowledgeRef last;
  KnowledgeRef total;
  std::vector<Arrival> arrivals;
};

} // namespace llamac::sim

#endif // LLAMAC_CODEGEN_SIM_CLOCKS_H
