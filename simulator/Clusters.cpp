//===- Clusters.cpp - Blocks that reach each other ------------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "simulator/Machine.h"

#include "absl/strings/str_cat.h"

namespace llamac::sim {

uint32_t Group::clusterRank() const {
  return running->block->index % launch.launch.cluster;
}

Block &Group::peer(uint32_t rank) {
  const uint32_t size = launch.launch.cluster;
  Block &own = *running->block;
  const uint32_t index = own.index / size * size + rank;
  if (rank >= size)
    fail(
        absl::StrCat("out of bounds: block ", rank, " of a cluster of ", size));
  if (index == own.index)
    return own;
  for (const std::unique_ptr<Block> &block : blocks) {
    if (block->index != index)
      continue;
    if (block->live == 0)
      fail(absl::StrCat("the block has ended: shared memory of block ", index,
                        " is gone"));
    return *block;
  }
  fail(absl::StrCat("block ", index, " does not run"));
}

void Group::noteReached(Block &block) {
  const Thread &self = *running;
  if (!checked() || &block == self.block)
    return;
  const Epoch now{self.clock, self.block->index, self.site, self.index};
  for (Epoch &known : block.reached)
    if (known.block == now.block && known.thread == now.thread) {
      known = now;
      return;
    }
  block.reached.push_back(now);
}

void Group::checkEnd(Block &block) {
  if (!checked())
    return;
  block.atEnd = joined(block.atEnd, running->knowledge);
  if (block.live > 0)
    return;
  const auto &others = block.atEnd->others;
  for (const Epoch &epoch : block.reached) {
    const auto known =
        others ? others->find(epoch.block) : GridClocks::const_iterator();
    if (others && known != others->end() &&
        (*known->second)[epoch.thread] >= epoch.clock)
      continue;
    failAt(*running, epoch.site,
           absl::StrCat("the block ends while ",
                        threadName(epoch.block, epoch.thread),
                        " may still reach its shared memory"));
  }
}

KnowledgeRef Group::knowledgeFor(const Block &block) {
  Thread &self = *running;
  KnowledgeRef own = withClock(self.knowledge, self.index, self.clock++);
  if (&block == self.block)
    return own;
  auto nothing = std::make_shared<Knowledge>();
  nothing->own.resize(block.threads.size());
  return sim::received(nothing, block.index,
                       asGridClocks(own, self.block->index));
}

void Group::arriveAtRank(unsigned long *barrier, uint32_t rank) {
  Block &block = peer(rank);
  noteReached(block);
  const ptrdiff_t at =
      reinterpret_cast<std::byte *>(barrier) - running->block->shared;
  arrive(block, reinterpret_cast<unsigned long *>(block.shared + at), 0);
}

//===----------------------------------------------------------------------===//
// The barrier of a cluster
//===----------------------------------------------------------------------===//

ClusterBarrier &Group::clusterBarrier(const Block &block) {
  ClusterBarrier &barrier =
      clusterBarriers[block.index / launch.launch.cluster];
  barrier.clocks.resize(launch.launch.cluster);
  barrier.released.resize(launch.launch.cluster);
  return barrier;
}

uint32_t Group::liveInCluster(const Block &block) const {
  const uint32_t size = launch.launch.cluster;
  uint32_t live = 0;
  for (const std::unique_ptr<Block> &other : blocks)
    if (other->index / size == block.index / size)
      live += other->live;
  return live;
}

void Group::arriveAtCluster() {
  Thread &self = *running;
  ClusterBarrier &barrier = clusterBarrier(*self.block);
  if (self.hasArrivedAtCluster)
    fail("double arrival: it is at the barrier of its cluster already");
  self.hasArrivedAtCluster = true;
  self.clusterPhase = barrier.phase;
  ++barrier.arrived;
  if (checked())
    barrier.clocks[clusterRank()].add(self.knowledge, self.index, self.clock++);
  endClusterPhaseIfDone(*self.block);
}

void Group::waitForCluster() {
  Thread &self = *running;
  ClusterBarrier &barrier = clusterBarrier(*self.block);
  if (!self.hasArrivedAtCluster)
    fail("divergent barrier: it has not arrived at the barrier of its "
         "cluster");
  self.hasArrivedAtCluster = false;
  if (self.clusterPhase == barrier.phase) {
    barrier.waiting.push_back(&self);
    stopRunning(State::AtCluster);
  }
  if (checked())
    self.knowledge = joined(self.knowledge, barrier.released[clusterRank()]);
}

/// Threads that have ended count as arrived.
void Group::endClusterPhaseIfDone(const Block &block) {
  ClusterBarrier &barrier = clusterBarrier(block);
  if (barrier.arrived == 0 || barrier.arrived < liveInCluster(block))
    return;
  const uint32_t first =
      block.index / launch.launch.cluster * launch.launch.cluster;
  if (checked()) {
    std::shared_ptr<const GridClocks> all;
    for (uint32_t rank = 0; rank < launch.launch.cluster; ++rank) {
      // No thread of a block that has ended arrives.
      KnowledgeRef &released = barrier.released[rank];
      released = nullptr;
      if (barrier.clocks[rank].isEmpty())
        continue;
      released = barrier.clocks[rank].end();
      all = joined(all, asGridClocks(released, first + rank));
    }
    for (uint32_t rank = 0; rank < launch.launch.cluster; ++rank)
      if (KnowledgeRef &released = barrier.released[rank])
        released = sim::received(released, first + rank, all);
  }
  ++barrier.phase;
  barrier.arrived = 0;
  progressed();
  for (Thread *thread : barrier.waiting)
    makeReady(*thread);
  barrier.waiting.clear();
}

} // namespace llamac::sim
