//===- Clocks.h - Vector clocks of simulated threads ------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each thread has a clock that advances when it releases. What it knows of
// another thread is the latest clock of it that happens before. After a barrier
// all threads know the same, so knowledge is shared and never changed in place.
// Knowledge of other blocks comes from atomics alone, and is kept by block.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_CLOCKS_H
#define LLAMAC_SIMULATOR_CLOCKS_H

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace llamac::sim {

using ClockVector = std::vector<uint32_t>;
/// Clocks of the threads of each block, by block.
using GridClocks = std::map<uint32_t, std::shared_ptr<const ClockVector>>;

struct Knowledge {
  ClockVector own;                          ///< Clocks by thread of the block.
  std::shared_ptr<const GridClocks> others; ///< Null: nothing.
};
using KnowledgeRef = std::shared_ptr<const Knowledge>;

/// The maximum of both, clock by clock.
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

/// The knowledge of a thread of block `block` that knew `base` and receives
/// `news`.
KnowledgeRef received(const KnowledgeRef &base, uint32_t block,
                      const std::shared_ptr<const GridClocks> &news);

/// Collects what threads know that arrive at a barrier.
class BarrierClocks {
public:
  void add(const KnowledgeRef &base, uint32_t thread, uint32_t clock);

  /// Whether no thread has arrived.
  bool isEmpty() const { return arrivals.empty(); }

  /// The knowledge that all threads have afterwards. Starts the next barrier.
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

#endif // LLAMAC_SIMULATOR_CLOCKS_H
