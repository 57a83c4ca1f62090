//===- Checker.cpp - Bounds, initialised bytes and races ------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks every access of a checked launch. The shadow keeps the last write of
// each byte and the reads since. Two accesses race when one is a write and the
// earlier does not happen before the later one by the threads' vector clocks.
// Barriers, syncWarp, mbarriers, and atomics with fences order accesses.
//
//===----------------------------------------------------------------------===//

#include "simulator/Machine.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace llamac::sim {

static uintptr_t toInteger(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

//===----------------------------------------------------------------------===//
// Where an address is
//===----------------------------------------------------------------------===//

bool Group::isSharedOf(const Block &block, const void *address) const {
  return toInteger(address) - toInteger(block.shared) < block.sharedBytes;
}

const SharedVariable *Group::sharedVariable(uint32_t offset,
                                            uint64_t size) const {
  for (const SharedVariable &variable : variables)
    if (offset >= variable.offset &&
        offset + size <= uint64_t{variable.offset} + variable.size)
      return &variable;
  return nullptr;
}

std::string Group::describeShared(const Block &block,
                                  const void *address) const {
  if (!isSharedOf(block, address))
    return "an address outside of the block's shared memory";
  const auto offset =
      static_cast<uint32_t>(toInteger(address) - toInteger(block.shared));
  const SharedVariable *nearest = nullptr;
  int64_t distance = INT64_MAX;
  for (const SharedVariable &variable : variables) {
    const int64_t behind =
        int64_t{offset} - variable.offset - std::max(variable.size, 1u) + 1;
    const int64_t gap =
        std::max<int64_t>({behind, int64_t{variable.offset} - offset, 0});
    // A launch without dynamic memory has none to be near to.
    if (gap < distance && variable.size > 0) {
      nearest = &variable;
      distance = gap;
    }
  }
  if (!nearest)
    return "shared memory, of which the launch has none";
  const int64_t at = int64_t{offset} - nearest->offset;
  return absl::StrCat("shared '", nearest->name, "' at byte ", at, " of ",
                      nearest->size);
}

std::string Group::describe(const Block &block, const void *address) const {
  return isSharedOf(block, address) ? describeShared(block, address)
                                    : launch.memory.describe(address);
}

bool Group::isRead(Access access) {
  return access == Access::Read || access == Access::Copy ||
         access == Access::WordLoad;
}

static const char *verb(Group::Access access) {
  switch (access) {
  case Group::Access::Read:
  case Group::Access::Copy:
    return "reads ";
  case Group::Access::WordLoad:
    return "reads as an atomic ";
  case Group::Access::Write:
    return "writes ";
  case Group::Access::Atomic:
  case Group::Access::AtomicStore:
  case Group::Access::WordStore:
    return "changes as an atomic ";
  }
  return "";
}

static std::string bytes(uint64_t size) {
  return absl::StrCat(size, size == 1 ? " byte" : " bytes");
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

void Group::check(Thread &thread, const void *address, uint64_t size,
                  Access access) {
  if (!checked() || size == 0)
    return;
  const uintptr_t onStack = toInteger(address) - toInteger(thread.stack);
  if (onStack < StackPool::stackBytes) {
    checkRegisters(thread, address, size, access);
    return;
  }
  if (isSharedOf(*thread.block, address))
    checkShared(thread, *thread.block, address, size, access);
  else
    checkGlobal(thread, address, size, access);
}

void Group::checkShared(Thread &thread, Block &block, const void *address,
                        uint64_t size, Access access) {
  const auto offset =
      static_cast<uint32_t>(toInteger(address) - toInteger(block.shared));
  if (!sharedVariable(offset, size))
    failIn(thread, absl::StrCat("out of bounds: ", verb(access), bytes(size),
                                " of ", describeShared(block, address)));
  for (uint64_t i = 0; i < size; ++i) {
    const auto *byte = static_cast<const std::byte *>(address) + i;
    ByteState &state = block.sharedState[offset + i];
    if (state == ByteState::UnderWay)
      failUnderWay(thread, block, byte, access);
    if (state == ByteState::Undefined &&
        (access == Access::Read || access == Access::Atomic))
      failIn(thread, absl::StrCat("uninitialised: reads ", bytes(size), " of ",
                                  describeShared(block, byte),
                                  ", which was never written"));
    if (!isRead(access))
      state = ByteState::Defined;
  }
  checkRaces(thread, block.sharedShadow, address, size, access);
}

Group::FoundBuffer Group::findBuffer(const void *address) {
  constexpr uintptr_t pageBytes = 4096;
  FoundBuffer &last =
      lastBuffers[toInteger(address) / pageBytes % lastBuffers.size()];
  if (!last.buffer || toInteger(address) - last.start >= last.buffer->size)
    last.buffer = launch.memory.find(address, last.start);
  return last;
}

bool Group::FoundBuffer::holds(const void *address, uint64_t size) const {
  return buffer && size <= buffer->size - (toInteger(address) - start);
}

bool Group::isInTable(const void *address, uint64_t size) const {
  const std::vector<void *> &args = launch.launch.args;
  const uint64_t bytes = args.size() * sizeof(void *);
  const uint64_t offset = toInteger(address) - toInteger(args.data());
  return offset < bytes && size <= bytes - offset;
}

void Group::checkGlobal(Thread &thread, const void *address, uint64_t size,
                        Access access) {
  if (launch.launch.table && isRead(access) && isInTable(address, size))
    return;
  // Before each call a kernel reads where its module keeps the calls.
  if (isRead(access) && launch.module.contains(address))
    return;
  const FoundBuffer found = findBuffer(address);
  if (!found.holds(address, size))
    failIn(thread, absl::StrCat("out of bounds: ", verb(access), bytes(size),
                                " of ", launch.memory.describe(address)));
  SimMemory::Buffer &buffer = *found.buffer;
  const uint64_t offset = toInteger(address) - found.start;
  const bool early = isEarly(thread);
  if (early && (!isRead(access) || access == Access::WordLoad))
    failIn(thread,
           absl::StrCat("dependent launch: ", verb(access), bytes(size), " of ",
                        launch.memory.describe(address),
                        " before gridDependencyWait, while previous launches "
                        "may use it"));
  if (buffer.readOnly) {
    if (!isRead(access))
      failIn(thread, absl::StrCat("read-only: ", verb(access), bytes(size),
                                  " of ", launch.memory.describe(address)));
    return;
  }
  for (uint64_t i = 0; i < size; ++i) {
    const auto *byte = static_cast<const std::byte *>(address) + i;
    if (!buffer.defined.empty()) {
      uint8_t &defined = buffer.defined[offset + i];
      if (!defined && (access == Access::Read || access == Access::Atomic ||
                       access == Access::WordLoad))
        failIn(thread, absl::StrCat("uninitialised: reads ", bytes(size),
                                    " of ", launch.memory.describe(byte),
                                    ", which was never written",
                                    early ? " before gridDependencyWait" : ""));
      defined |= !isRead(access);
    }
  }
  if (access == Access::WordLoad || access == Access::WordStore) {
    checkPlainRaces(address, size, access);
    return;
  }
  if (access != Access::Atomic && access != Access::AtomicStore)
    checkWordRaces(thread, address, size, access);
  checkRaces(thread, launch.globalShadow, address, size, access);
}

void Group::checkReadOnly(const void *address, uint64_t size) {
  if (!checked())
    return;
  for (uint64_t i = 0; i < size; ++i) {
    const uintptr_t byte = toInteger(address) + i;
    const WordQuad *quad = launch.words.find(byte);
    const Epoch &write = quad && quad->store(byte / 4 % 4).clock
                             ? quad->store(byte / 4 % 4)
                             : launch.globalShadow.lastWrite(byte);
    if (write.clock)
      fail(absl::StrCat(
          "race: loadReadOnly of ",
          launch.memory.describe(static_cast<const std::byte *>(address) + i),
          ", which this launch writes: ", threadName(write.block, write.thread),
          " at ", launch.module.place(write.site)));
  }
}

void Group::checkPrefetch(const void *address, uint64_t size) {
  checkAlignment(address, 16, "the source of a prefetch");
  if (size % 16)
    fail(absl::StrCat("a prefetch of ", size,
                      " bytes: expected a multiple of 16"));
  if (!checked())
    return;
  if (!findBuffer(address).holds(address, size))
    fail(absl::StrCat("out of bounds: a prefetch of ", bytes(size), " at ",
                      launch.memory.describe(address)));
  const auto *first = static_cast<const std::byte *>(address);
  for (const BulkCopy &bulk : running->block->bulkCopies)
    if (first < bulk.copy.from + bulk.copy.size &&
        bulk.copy.from < first + size)
      fail(absl::StrCat("wasted: a prefetch of ", bytes(size), " at ",
                        launch.memory.describe(address),
                        ", some of which a copy already brings"));
}

void Group::checkSharedAtomic(const void *word) {
  if (!checked())
    return;
  if (!isSharedOf(*running->block, word))
    fail(absl::StrCat("out of bounds: ", verb(Access::Atomic), "4 bytes of ",
                      describe(*running->block, word),
                      ", expected shared memory"));
  checkAlignment(word, 4, "the word of an atomic");
  checkShared(*running, *running->block, word, 4, Access::Atomic);
}

void Group::checkAlignment(const void *address, uint32_t alignment,
                           const char *what) {
  if (toInteger(address) % alignment)
    fail(absl::StrCat("misaligned: ", what, " is at ",
                      describe(*running->block, address),
                      ", expected a multiple of ", alignment, " bytes"));
}

void Group::failUnderWay(const Thread &thread, const Block &block,
                         const std::byte *byte, Access access) {
  auto covers = [&](const AsyncCopy &copy) {
    return byte >= copy.to && byte < copy.to + copy.size;
  };
  const Thread *owner = nullptr;
  const AsyncCopy *found = nullptr;
  for (const Thread &other : block.threads)
    for (const AsyncCopy &copy : other.copies)
      if (covers(copy)) {
        owner = &other;
        found = &copy;
      }
  for (const BulkCopy &bulk : block.bulkCopies)
    if (covers(bulk.copy)) {
      owner = bulk.thread;
      found = &bulk.copy;
    }
  failIn(
      thread,
      absl::StrCat(
          "copy under way: ", verb(access), describeShared(block, byte),
          found ? absl::StrCat(", where the copy that ",
                               threadName(owner->block->index, owner->index),
                               " started at ", launch.module.place(found->site),
                               " has not been waited for")
                : ""));
}

//===----------------------------------------------------------------------===//
// Races
//===----------------------------------------------------------------------===//

const ClockVector *Group::clocksOf(const Thread &thread, uint32_t block) const {
  if (block == thread.block->index)
    return &thread.knowledge->own;
  if (!thread.knowledge->others)
    return nullptr;
  auto clocks = thread.knowledge->others->find(block);
  return clocks != thread.knowledge->others->end() ? clocks->second.get()
                                                   : nullptr;
}

bool Group::knows(const Thread &thread, const Epoch &epoch) const {
  if (epoch.clock == 0 ||
      (epoch.block == thread.block->index && epoch.thread == thread.index))
    return true;
  const ClockVector *clocks = clocksOf(thread, epoch.block);
  return clocks && (*clocks)[epoch.thread] >= epoch.clock;
}

void Group::checkRaces(const Thread &thread, Shadow &shadow,
                       const void *address, uint64_t size, Access access) {
  shadow.forCells(toInteger(address), size, [&](Cell &cell, uintptr_t first) {
    checkRace(thread, cell, access, reinterpret_cast<const void *>(first));
  });
}

void Group::checkRace(const Thread &thread, Cell &cell, Access access,
                      const void *address) {
  const Epoch now{thread.clock, thread.block->index, thread.site, thread.index,
                  access == Access::Atomic || access == Access::AtomicStore};
  auto isNow = [&](const Epoch &epoch) {
    return epoch.clock == now.clock && epoch.thread == now.thread &&
           epoch.block == now.block;
  };
  const bool isPlainWrite = access == Access::Write;
  if (isRead(access) ? isNow(cell.read) && !cell.read.isAtomic
                     : isPlainWrite && isNow(cell.write) && !cell.read.clock)
    return;
  if (!knows(thread, cell.write))
    failRace(thread, cell.write, "wrote", access, address);
  auto checkSince = [&](const Epoch &since) {
    // Two reads do not race, nor do two atomics.
    if ((isPlainWrite || since.isAtomic != now.isAtomic) &&
        !knows(thread, since))
      failRace(thread, since, since.isAtomic ? "changed as an atomic" : "read",
               access, address);
  };
  checkSince(cell.read);
  if (cell.moreReads &&
      (isPlainWrite ||
       (now.isAtomic ? cell.moreReads->hasReads : cell.moreReads->hasAtomics)))
    for (const Reads::OfBlock &of : cell.moreReads->blocks)
      for (const Epoch &read : of.epochs)
        checkSince(read);
  if (isPlainWrite) {
    cell.write = now;
    cell.read = {};
    cell.moreReads = nullptr;
    return;
  }
  // This replaces one of its kind that happens before it; reads and atomics are
  // kept apart, since they race with different accesses.
  auto replaces = [&](const Epoch &since) {
    return since.clock == 0 ||
           (since.isAtomic == now.isAtomic && knows(thread, since));
  };
  if (replaces(cell.read)) {
    cell.read = now;
    return;
  }
  if (!cell.moreReads)
    cell.moreReads = std::make_unique<Reads>();
  cell.moreReads->add(now, replaces, thread.knowledge->others != nullptr);
}

void Group::failRace(const Thread &thread, const Epoch &other,
                     const char *otherDid, Access access, const void *address) {
  failIn(thread,
         absl::StrCat("race: ", verb(access), describe(*thread.block, address),
                      ", which ", threadName(other.block, other.thread), " ",
                      otherDid, " at ", launch.module.place(other.site),
                      " with nothing between that orders the two"));
}

//===----------------------------------------------------------------------===//
// Order through words of global memory
//===----------------------------------------------------------------------===//

void Group::fence() {
  if (!checked())
    return;
  Thread &self = *running;
  self.knowledge =
      sim::received(self.knowledge, self.block->index, self.received);
  self.received = nullptr;
  self.fenced = asGridClocks(
      withClock(self.knowledge, self.index, self.clock++), self.block->index);
}

void Group::acquire(const void *word, bool needsFence) {
  if (!checked())
    return;
  Thread &self = *running;
  auto news = launch.atomics.find(word);
  if (news == launch.atomics.end())
    return;
  if (needsFence)
    self.received = joined(self.received, news->second);
  else
    self.knowledge =
        sim::received(self.knowledge, self.block->index, news->second);
}

void Group::release(const void *word, bool needsFence, bool keepEarlier) {
  if (!checked())
    return;
  Thread &self = *running;
  std::shared_ptr<const GridClocks> news = self.fenced;
  if (!needsFence)
    news = asGridClocks(withClock(self.knowledge, self.index, self.clock++),
                        self.block->index);
  std::shared_ptr<const GridClocks> &known = launch.atomics[word];
  known = keepEarlier ? joined(known, news) : news;
}

} // namespace llamac::sim
