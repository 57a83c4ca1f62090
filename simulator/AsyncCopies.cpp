//===- AsyncCopies.cpp - Asynchronous copies, as late as allowed ----------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The issue of a copy to shared memory poisons its destination. cp.async copies
// at the wait that covers it, a bulk copy once no thread can run without it.
//
//===----------------------------------------------------------------------===//

#include "simulator/Machine.h"

#include "absl/strings/str_cat.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace llamac::sim {

static void setState(Block &block, const std::byte *at, size_t size,
                     ByteState state) {
  std::fill_n(block.sharedState.begin() + (at - block.shared), size, state);
}

void Group::begin(AsyncCopy &copy) {
  Thread &self = *running;
  Block &block = *self.block;
  if (!isSharedOf(block, copy.to))
    fail(absl::StrCat("out of bounds: an asynchronous copy to ",
                      describeShared(block, copy.to)));
  if (checked()) {
    check(self, copy.from, copy.valid, Access::Read);
    check(self, copy.to, copy.size, Access::Write);
    setState(block, copy.to, copy.size, ByteState::UnderWay);
  }
  std::memset(copy.to, 0xff, copy.size);
  copy.site = self.site;
  // In its prologue a launch gets what is in memory now.
  if (isEarly(self))
    copy.taken.assign(copy.from, copy.from + copy.valid);
}

static const std::byte *sourceOf(const AsyncCopy &copy) {
  return copy.taken.empty() ? copy.from : copy.taken.data();
}

void Group::cpAsync(AsyncCopy copy) {
  checkAlignment(copy.to, copy.size, "the destination of cp.async");
  checkAlignment(copy.from, copy.size, "the source of cp.async");
  if (copy.valid > copy.size)
    fail(absl::StrCat("cp.async of ", copy.size, " bytes, ", copy.valid,
                      " of them valid"));
  begin(copy);
  running->copies.push_back(std::move(copy));
}

void Group::cpAsyncCommit() {
  running->groupEnds.push_back(running->copiesDone + running->copies.size());
}

void Group::cpAsyncWait(uint32_t pending) {
  Thread &self = *running;
  while (self.groupEnds.size() > pending) {
    for (; self.copiesDone < self.groupEnds.front(); ++self.copiesDone) {
      complete(self, self.copies.front());
      self.copies.pop_front();
    }
    self.groupEnds.pop_front();
  }
}

void Group::complete(Thread &thread, const AsyncCopy &copy) {
  if (checked()) {
    // The copy may have read its source at any time since the issue.
    const void *const wait = std::exchange(thread.site, copy.site);
    if (copy.taken.empty())
      check(thread, copy.from, copy.valid, Access::Read);
    thread.site = wait;
    setState(*thread.block, copy.to, copy.size, ByteState::Defined);
    thread.block->sharedShadow.forCells(
        reinterpret_cast<uintptr_t>(copy.to), copy.size,
        [&](Cell &cell, uintptr_t /*address*/) {
          cell.write = {thread.clock, thread.block->index, copy.site,
                        thread.index};
        });
  }
  std::memcpy(copy.to, sourceOf(copy), copy.valid);
  std::memset(copy.to + copy.valid, 0, copy.size - copy.valid);
}

//===----------------------------------------------------------------------===//
// Barriers in shared memory, and the copies that arrive there
//===----------------------------------------------------------------------===//

MemoryBarrier &Group::memoryBarrier(Block &block, unsigned long *barrier) {
  auto found = block.memoryBarriers.find(barrier);
  if (found == block.memoryBarriers.end())
    fail(absl::StrCat("uninitialised: no mbarrier was set up at ",
                      describeShared(block, barrier),
                      &block == running->block
                          ? ""
                          : absl::StrCat(" of block ", block.index)));
  if (checked())
    checkShared(*running, block, barrier, 8, Access::AtomicStore);
  return found->second;
}

void Group::initBarrier(unsigned long *barrier, uint32_t arrivals) {
  Block &block = *running->block;
  checkAlignment(barrier, 8, "an mbarrier");
  if (!isSharedOf(block, barrier))
    fail("out of bounds: an mbarrier is in shared memory");
  check(*running, barrier, 8, Access::Write);
  MemoryBarrier fresh;
  fresh.arrivals = fresh.pending = arrivals;
  block.memoryBarriers[barrier] = std::move(fresh);
}

void Group::endPhaseIfDone(MemoryBarrier &barrier) {
  progressed();
  if (barrier.pending || barrier.bytes)
    return;
  barrier.released = joined(barrier.released, barrier.gathered);
  barrier.gathered = nullptr;
  barrier.pending = barrier.arrivals;
  ++barrier.phase;
}

void Group::arrive(Block &block, unsigned long *barrier, uint32_t bytes) {
  MemoryBarrier &at = memoryBarrier(block, barrier);
  if (!at.pending)
    fail(absl::StrCat("double arrival: all ", at.arrivals,
                      " arrivals of this phase of the mbarrier came "
                      "before"));
  --at.pending;
  at.bytes += bytes;
  if (checked())
    at.gathered = joined(at.gathered, knowledgeFor(block));
  endPhaseIfDone(at);
}

void Group::arriveAt(unsigned long *barrier, uint32_t bytes) {
  arrive(*running->block, barrier, bytes);
}

bool Group::tryWait(unsigned long *barrier, uint32_t parity) {
  MemoryBarrier &at = memoryBarrier(*running->block, barrier);
  if ((at.phase & 1) == (parity & 1))
    yield(barrier);
  if ((at.phase & 1) == (parity & 1))
    return false;
  if (checked())
    running->knowledge = joined(running->knowledge, at.released);
  return true;
}

void Group::fenceProxyAsync() {
  if (checked())
    running->proxyFences.push_back(running->clock++);
}

void Group::checkProxy(const Thread &thread, Block &block, const std::byte *at,
                       uint64_t size) {
  if (!checked())
    return;
  for (uint64_t i = 0; i < size; ++i) {
    const Epoch &write =
        block.sharedShadow.lastWrite(reinterpret_cast<uintptr_t>(at + i));
    if (write.clock == 0 || write.isCopy)
      continue;
    const std::vector<uint32_t> &fences =
        block.threads[write.thread].proxyFences;
    const auto fence =
        std::lower_bound(fences.begin(), fences.end(), write.clock);
    // A thread's release behind a fence has a later clock than the fence.
    Epoch behind = write;
    if (fence != fences.end())
      behind.clock = *fence + 1;
    if (fence == fences.end() || !knows(thread, behind))
      failIn(thread,
             absl::StrCat(
                 "a missing fenceProxyAsync: ", describeShared(block, at + i),
                 " was written by ", threadName(write.block, write.thread),
                 " at ", launch.module.place(write.site),
                 " with no such fence between"));
  }
}

void Group::markCopied(Block &block, const std::byte *at, uint64_t size) {
  if (!checked())
    return;
  block.sharedShadow.forCells(
      reinterpret_cast<uintptr_t>(at), size,
      [](Cell &cell, uintptr_t /*address*/) { cell.write.isCopy = true; });
}

void Group::bulkCopy(AsyncCopy copy, unsigned long *barrier) {
  Thread &self = *running;
  Block &block = *self.block;
  checkAlignment(copy.to, 16, "the destination of a bulk copy");
  checkAlignment(copy.from, 16, "the source of a bulk copy");
  if (copy.size % 16)
    fail(absl::StrCat("a bulk copy of ", copy.size,
                      " bytes: expected a multiple of 16"));
  memoryBarrier(block, barrier);
  checkProxy(self, block, copy.to, copy.size);
  begin(copy);
  markCopied(block, copy.to, copy.size);
  block.bulkCopies.push_back({std::move(copy), &self, barrier,
                              checked() ? knowledgeFor(block) : nullptr,
                              std::nullopt});
}

/// Delivers the bytes of `copy` and counts them.
void Group::land(Block &block, const BulkCopy &copy) {
  if (copy.box) {
    landBox(block, copy);
  } else {
    std::memcpy(copy.copy.to, sourceOf(copy.copy), copy.copy.size);
    if (checked())
      setState(block, copy.copy.to, copy.copy.size, ByteState::Defined);
  }
  MemoryBarrier &barrier = block.memoryBarriers[copy.barrier];
  barrier.bytes -= copy.copy.size;
  barrier.gathered = joined(barrier.gathered, copy.knowledge);
  endPhaseIfDone(barrier);
}

bool Group::runBulkCopy() {
  for (const std::unique_ptr<Block> &block : blocks) {
    if (block->bulkCopies.empty())
      continue;
    auto next = block->bulkCopies.begin();
    if (isRandom())
      next += static_cast<ptrdiff_t>(random() % block->bulkCopies.size());
    else if (launch.options.schedule == SimSchedule::Reverse)
      next = block->bulkCopies.end() - 1;
    const BulkCopy done = std::move(*next);
    block->bulkCopies.erase(next);
    land(*block, done);
    // It changes nothing for those that look at another barrier or a word.
    std::erase_if(yielded, [&](Thread *thread) {
      const bool concerns = !thread->polled || thread->polled == done.barrier;
      if (concerns)
        makeReady(*thread);
      return concerns;
    });
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Boxes of matrices: a copy lands in each block of a cluster on its own
//===----------------------------------------------------------------------===//

namespace {

/// The part of one row of a box that lies in the matrix.
struct RowPart {
  const std::byte *from;
  int64_t skipped; ///< Bytes of the box before it.
  int64_t size;    ///< Not more than 0: none.
};

} // namespace

static RowPart rowPart(const TensorBox &box, uint32_t row) {
  const TensorMapShape &shape = box.map.shape;
  const int64_t y = box.row + row;
  const int64_t first = std::max<int64_t>(box.column, 0);
  const int64_t end = std::min<int64_t>(box.column + shape.boxColumns,
                                        static_cast<int64_t>(shape.columns));
  if (y < 0 || y >= static_cast<int64_t>(shape.rows))
    return {nullptr, 0, 0};
  return {box.map.base + y * static_cast<int64_t>(shape.rowBytes) +
              first * shape.elementBytes,
          (first - box.column) * shape.elementBytes,
          (end - first) * shape.elementBytes};
}

void Group::tensorLoad(std::byte *shared, const TensorBox &box,
                       unsigned long *barrier, uint32_t ranks) {
  Thread &self = *running;
  const TensorMapShape &shape = box.map.shape;
  if (box.map.mark != SimTensorMap::made)
    fail("a tensor copy with an invalid map");
  checkAlignment(shared, 128, "the destination of a tensor copy");
  if (!isSharedOf(*self.block, shared))
    fail(absl::StrCat("out of bounds: a tensor copy to ",
                      describeShared(*self.block, shared)));
  if (checked())
    for (uint32_t row = 0; row < shape.boxRows; ++row)
      if (const RowPart part = rowPart(box, row); part.size > 0)
        check(self, part.from, part.size, Access::Copy);
  std::vector<std::byte> taken;
  if (isEarly(self)) {
    const uint32_t rowBytes = shape.boxColumns * shape.elementBytes;
    taken.resize(uint64_t{shape.boxRows} * rowBytes);
    for (uint32_t row = 0; row < shape.boxRows; ++row)
      if (const RowPart part = rowPart(box, row); part.size > 0)
        std::copy_n(part.from, part.size,
                    taken.begin() + int64_t{row} * rowBytes + part.skipped);
  }
  const uint32_t own = clusterRank();
  const ptrdiff_t to = shared - self.block->shared;
  const ptrdiff_t at =
      reinterpret_cast<std::byte *>(barrier) - self.block->shared;
  for (uint32_t mask = ranks ? ranks : 1u << own; mask; mask &= mask - 1) {
    Block &block = peer(std::countr_zero(mask));
    auto *itsBarrier = reinterpret_cast<unsigned long *>(block.shared + at);
    memoryBarrier(block, itsBarrier);
    noteReached(block);
    const AsyncCopy copy{.to = block.shared + to,
                         .from = box.map.base,
                         .size = static_cast<uint32_t>(shape.boxBytes()),
                         .site = self.site,
                         .taken = taken};
    checkProxy(self, block, copy.to, copy.size);
    if (checked()) {
      checkShared(self, block, copy.to, copy.size, Access::Write);
      setState(block, copy.to, copy.size, ByteState::UnderWay);
      markCopied(block, copy.to, copy.size);
    }
    std::memset(copy.to, 0xff, copy.size);
    block.bulkCopies.push_back({copy, &self, itsBarrier,
                                checked() ? knowledgeFor(block) : nullptr,
                                box});
  }
}

void Group::landBox(Block &block, const BulkCopy &copy) {
  const TensorMapShape &shape = copy.box->map.shape;
  const auto start = static_cast<uint32_t>(copy.copy.to - block.shared);
  const uint32_t rowBytes = shape.boxColumns * shape.elementBytes;
  uintptr_t bufferStart = 0;
  const SimMemory::Buffer *buffer =
      checked() ? launch.memory.find(copy.box->map.base, bufferStart) : nullptr;
  for (uint32_t row = 0; row < shape.boxRows; ++row) {
    const RowPart part = rowPart(*copy.box, row);
    for (uint32_t byte = 0; byte < rowBytes; byte += shape.elementBytes) {
      // Swizzles count address bits of shared memory, whose start is aligned.
      const uint32_t to =
          swizzled(start + row * rowBytes + byte, shape.swizzleBytes);
      const int64_t at = byte - part.skipped;
      const bool inside = at >= 0 && at < part.size;
      static constexpr std::byte zeros[8] = {};
      std::memcpy(block.shared + to,
                  !inside ? zeros
                  : copy.copy.taken.empty()
                      ? part.from + at
                      : &copy.copy.taken[uint64_t{row} * rowBytes + byte],
                  shape.elementBytes);
      if (!checked())
        continue;
      const bool defined =
          !inside || !buffer || buffer->defined.empty() ||
          buffer->defined[reinterpret_cast<uintptr_t>(part.from + at) -
                          bufferStart];
      setState(block, block.shared + to, shape.elementBytes,
               defined ? ByteState::Defined : ByteState::Undefined);
    }
  }
}

} // namespace llamac::sim
