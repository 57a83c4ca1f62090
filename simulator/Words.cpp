//===- Words.cpp - Words that blocks pass each other ----------------------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A word is written once, read, and cleared before it is written again. Relaxed
// accesses order nothing, so a clear must be ordered by other means behind the
// write and the reads before it, and the write and the reads after it behind
// the clear. Launches are ordered: what is said here is of one.
//
//===----------------------------------------------------------------------===//

#include "simulator/Words.h"

#include "simulator/Machine.h"

#include "absl/strings/str_cat.h"

#include <algorithm>

namespace llamac::sim {

static uintptr_t toInteger(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

//===----------------------------------------------------------------------===//
// Records
//===----------------------------------------------------------------------===//

void WordReaders::add(uint32_t threads, uint32_t thread, uint32_t words,
                      uint32_t clock, uint32_t site) {
  if (marks.empty())
    marks.resize(threads);
  if (!isByWord) {
    WordMark &mark = marks[thread];
    // A later read of the same words stands for the earlier one.
    if ((mark.words() & ~words) == 0) {
      mark = WordMark(clock, words, site);
      return;
    }
    if (mark.isAt(clock) && mark.site() == site) {
      mark = WordMark(clock, words | mark.words(), site);
      return;
    }
    std::vector<WordMark> byWord(4 * marks.size());
    for (size_t i = 0; i < byWord.size(); ++i) {
      byWord[i] = marks[i / 4];
      byWord[i].remove(0xfu & ~(1u << i % 4));
    }
    marks = std::move(byWord);
    isByWord = true;
  }
  for (uint32_t i = 0; i < 4; ++i)
    if (words >> i & 1)
      marks[4 * thread + i] = WordMark(clock, 1u << i, site);
}

WordReaders &WordQuad::readersOf(uint32_t block) {
  for (WordReaders &of : readers)
    if (of.block == block)
      return of;
  readers.emplace_back().block = block;
  return readers.back();
}

WordQuad &Words::at(uintptr_t address) {
  const uintptr_t number = address / pageBytes;
  if (!last || number != lastNumber) {
    std::unique_ptr<Page> &page = pages[number];
    if (!page)
      page = std::make_unique<Page>();
    last = page.get();
    lastNumber = number;
    lowest = std::min(lowest, number);
    highest = std::max(highest, number);
  }
  return (*last)[address % pageBytes / quadBytes];
}

WordQuad *Words::find(uintptr_t address) {
  const uintptr_t number = address / pageBytes;
  if (number < lowest || number > highest || !pages.contains(number))
    return nullptr;
  return &at(address);
}

uint32_t Words::numberOf(const void *site) {
  const auto [known, isNew] = numbers.try_emplace(site, 0);
  if (isNew && sites.size() < WordMark::mostSites) {
    known->second = static_cast<uint32_t>(sites.size());
    sites.push_back(site);
  }
  return known->second;
}

//===----------------------------------------------------------------------===//
// Relaxed accesses
//===----------------------------------------------------------------------===//

void Group::loadRelaxed(uint32_t *words, const uint32_t *global,
                        uint32_t count) {
  checkAlignment(global, 4 * count, "a relaxed load");
  if (checked())
    checkGlobal(*running, global, 4 * count, Access::WordLoad);
  bool isFull = true;
  for (uint32_t i = 0; i < count; ++i) {
    words[i] = __atomic_load_n(global + i, __ATOMIC_RELAXED);
    isFull &= words[i] != 0;
  }
  if (checked())
    checkWordLoad(global, words, count);
  // The others go on while it polls. What it has seen stays as it was, so that
  // a kernel without the loop gets nothing. Words that are there need no other
  // thread, but a loop may wait for others besides.
  running->found = isFull ? running->found + 1 : 0;
  if (isFull && --running->looks > 0)
    return;
  running->looks = isRandom() ? 1 + random() % mostLooks : mostLooks;
  // Many words in a row are no loop that waits for one more, but for ever they
  // are one that waits for something else.
  constexpr uint32_t most = 1 << 17;
  if (running->found >= mostLooks && running->found < most)
    idleRounds = 0;
  yield(global);
}

void Group::storeRelaxed(uint32_t *global, const uint32_t *words,
                         uint32_t count) {
  checkAlignment(global, 4 * count, "a relaxed store");
  if (checked())
    checkGlobal(*running, global, 4 * count, Access::WordStore);
  // Each word of a vector is an atomic of its own: others may see some of them
  // first.
  const uint64_t draw = isRandom() && count > 1 ? random() : 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t number = (draw + i) % count;
    if (i > 0 && draw >> (32 + i) & 1)
      yield(nullptr);
    if (checked())
      checkWordStore(global + number, words[number]);
    __atomic_store_n(global + number, words[number], __ATOMIC_RELAXED);
    if (words[number] != 0)
      progressed();
  }
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void Group::failWord(const char *kind, const char *did, const uint32_t *global,
                     const Epoch &other, const char *otherDid) {
  fail(absl::StrCat(kind, ": ", did, " ", launch.memory.describe(global),
                    ", which ", threadName(other.block, other.thread), " ",
                    otherDid, " at ", launch.module.place(other.site),
                    " with nothing between that orders the two"));
}

static constexpr const char *notCleared = "word not cleared yet";

void Group::checkWordLoad(const uint32_t *global, const uint32_t *words,
                          uint32_t count) {
  WordQuad &quad = launch.words.at(toInteger(global));
  const auto first =
      static_cast<uint32_t>(toInteger(global) % Words::quadBytes / 4);
  uint32_t found = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (const Epoch &clear = quad.cleared[first + i]; !knows(*running, clear))
      failWord(notCleared, "reads", global + i, clear, "cleared");
    // A read that found nothing is none: the reader looks again.
    if (words[i] != 0)
      found |= 1u << (first + i);
  }
  if (found)
    quad.readersOf(running->block->index)
        .add(static_cast<uint32_t>(running->block->threads.size()),
             running->index, found, running->clock,
             launch.words.numberOf(running->site));
}

void Group::checkWordStore(const uint32_t *global, uint32_t word) {
  WordQuad &quad = launch.words.at(toInteger(global));
  const size_t number = toInteger(global) % Words::quadBytes / 4;
  const Epoch now{.clock = running->clock,
                  .block = running->block->index,
                  .site = running->site,
                  .thread = running->index,
                  .isAtomic = true};
  Epoch &written = quad.written[number];
  Epoch &cleared = quad.cleared[number];
  if (word == 0) {
    checkClear(quad, number, global);
    cleared = now;
    return;
  }
  if (*global != 0)
    fail(absl::StrCat(
        "overwritten word: writes ", launch.memory.describe(global),
        " again before it was cleared",
        written.clock
            ? absl::StrCat("; ", threadName(written.block, written.thread),
                           " wrote it at ", launch.module.place(written.site))
            : ""));
  if (!knows(*running, cleared))
    failWord(notCleared, "writes", global, cleared, "cleared");
  written = now;
}

void Group::checkClear(WordQuad &quad, size_t number, const uint32_t *global) {
  constexpr const char *kind = "word cleared early";
  if (!knows(*running, quad.written[number]))
    failWord(kind, "clears", global, quad.written[number], "wrote");
  if (!knows(*running, quad.cleared[number]))
    failWord(kind, "clears", global, quad.cleared[number], "cleared");
  const uint32_t word = 1u << number;
  for (WordReaders &readers : quad.readers) {
    const ClockVector *known = clocksOf(*running, readers.block);
    const bool isOwn = readers.block == running->block->index;
    readers.forReads(word, [&](uint32_t thread, WordMark &mark) {
      const bool isKnown = (isOwn && thread == running->index) ||
                           !mark.isBehind(known ? (*known)[thread] : 0);
      if (!isKnown)
        failWord(kind, "clears", global,
                 {.block = readers.block,
                  .site = launch.words.siteOf(mark),
                  .thread = thread},
                 "read");
      mark.remove(word);
    });
  }
}

void Group::checkWordRaces(const Thread &thread, const void *address,
                           uint64_t size, Access access) {
  const uintptr_t end = toInteger(address) + size;
  for (uintptr_t at = toInteger(address) & ~uintptr_t{3}; at < end; at += 4) {
    WordQuad *quad = launch.words.find(at);
    if (!quad) {
      at |= Words::pageBytes - 4; // None in its page.
      continue;
    }
    const auto *word = reinterpret_cast<const void *>(at);
    const size_t number = at % Words::quadBytes / 4;
    for (const Epoch *store : {&quad->written[number], &quad->cleared[number]})
      if (!knows(thread, *store))
        failRace(thread, *store, "changed as an atomic", access, word);
    if (isRead(access))
      continue;
    for (WordReaders &readers : quad->readers) {
      const ClockVector *known = clocksOf(thread, readers.block);
      readers.forReads(1u << number, [&](uint32_t reader, WordMark &mark) {
        const bool isOwn =
            readers.block == thread.block->index && reader == thread.index;
        if (!isOwn && mark.isBehind(known ? (*known)[reader] : 0))
          failRace(thread,
                   {.block = readers.block,
                    .site = launch.words.siteOf(mark),
                    .thread = reader},
                   "read as an atomic", access, word);
      });
    }
  }
}

void Group::checkPlainRaces(const void *address, uint64_t size, Access access) {
  if (!launch.globalShadow.has(toInteger(address)))
    return;
  launch.globalShadow.forCells(
      toInteger(address), size, [&](Cell &cell, uintptr_t first) {
        const auto *byte = reinterpret_cast<const void *>(first);
        if (!knows(*running, cell.write))
          failRace(*running, cell.write, "wrote", access, byte);
        if (isRead(access))
          return;
        auto checkRead = [&](const Epoch &read) {
          if (!read.isAtomic && !knows(*running, read))
            failRace(*running, read, "read", access, byte);
        };
        checkRead(cell.read);
        if (cell.moreReads)
          for (const Reads::OfBlock &of : cell.moreReads->blocks)
            std::for_each(of.epochs.begin(), of.epochs.end(), checkRead);
      });
}

} // namespace llamac::sim
