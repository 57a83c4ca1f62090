//===- Words.h - What relaxed accesses do to words --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A word of global memory that blocks pass each other is 0 while it is empty.
// It is written once, read by many threads, and cleared: set to 0 again. There
// are many words, and each may be read by every thread, so the reads of four
// words take four bytes for each thread of a block that reads them.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_WORDS_H
#define LLAMAC_SIMULATOR_WORDS_H

#include "simulator/Shadow.h"

#include "absl/container/inlined_vector.h"

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace llamac::sim {

/// The last read by a thread of some of four words, found written: the low bits
/// of its clock, which words, and the number of its place.
class WordMark {
public:
  WordMark() = default;
  WordMark(uint32_t clock, uint32_t words, uint32_t site)
      : bits((clock & clockMask) | words << clockBits |
             site << (clockBits + wordBits)) {}

  static constexpr uint32_t mostSites = 256;

  /// One bit for each of the four; 0: there was no read.
  uint32_t words() const { return bits >> clockBits & 0xf; }
  uint32_t site() const { return bits >> (clockBits + wordBits); }
  bool isAt(uint32_t clock) const { return ((bits ^ clock) & clockMask) == 0; }
  /// Whether the read is not among those up to `clock`, which is not further
  /// from it than a thread's clock goes in half a million barriers.
  bool isBehind(uint32_t clock) const {
    return static_cast<int32_t>((bits - clock) << (32 - clockBits)) > 0;
  }
  void remove(uint32_t words) { bits &= ~(words << clockBits); }

private:
  static constexpr uint32_t clockBits = 20;
  static constexpr uint32_t wordBits = 4;
  static constexpr uint32_t clockMask = (1u << clockBits) - 1;

  uint32_t bits = 0;
};

/// Reads of four words since they were written, by the threads of one block.
struct WordReaders {
  uint32_t block = 0;
  /// Marks by thread; where a thread has read the words at different clocks, by
  /// thread and word.
  std::vector<WordMark> marks;
  bool isByWord = false;

  void add(uint32_t threads, uint32_t thread, uint32_t words, uint32_t clock,
           uint32_t site);

  /// Calls visit(thread, mark) for the reads of any of `words`, which may
  /// change the mark.
  template <class Visit> void forReads(uint32_t words, const Visit &visit) {
    for (size_t i = 0; i < marks.size(); ++i)
      if (marks[i].words() & words)
        visit(static_cast<uint32_t>(isByWord ? i / 4 : i), marks[i]);
  }
};

/// Four words from an address that is a multiple of 16 bytes.
struct WordQuad {
  std::array<Epoch, 4> written; ///< The last stores of another value than 0.
  std::array<Epoch, 4> cleared; ///< The last stores of 0.
  absl::InlinedVector<WordReaders, 1> readers;

  WordReaders &readersOf(uint32_t block);
  /// A store to word `i`; clock 0: there was none.
  const Epoch &store(size_t i) const {
    return written[i].clock ? written[i] : cleared[i];
  }
};

/// The words of a launch: addresses that relaxed accesses have touched.
class Words {
public:
  static constexpr uintptr_t quadBytes = 16;
  static constexpr uintptr_t pageBytes = 1024;

  /// The four words around `address`, made when they are first asked for.
  WordQuad &at(uintptr_t address);
  /// The words around `address`; null where no relaxed access was in the page.
  WordQuad *find(uintptr_t address);

  /// Calls visit(epoch, address) for each word that was stored to, with one of
  /// the stores.
  template <class Visit> void forEachStore(const Visit &visit) const {
    for (const auto &[number, page] : pages)
      for (uintptr_t i = 0; i < 4 * page->size(); ++i)
        if (const Epoch &store = (*page)[i / 4].store(i % 4); store.clock)
          visit(store, number * pageBytes + i * 4);
  }

  uint32_t numberOf(const void *site);
  const void *siteOf(WordMark mark) const { return sites[mark.site()]; }

private:
  using Page = std::array<WordQuad, pageBytes / quadBytes>;

  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  uintptr_t lowest = UINTPTR_MAX, highest = 0; ///< Bounds of the pages'
                                               ///< numbers.
  uintptr_t lastNumber = 0;
  Page *last = nullptr;
  /// Places by number; places beyond what a mark holds are number 0, an unknown
  /// place.
  std::vector<const void *> sites = {nullptr};
  std::unordered_map<const void *, uint32_t> numbers;
};

} // namespace llamac::sim

#endif // LLAMAC_SIMULATOR_WORDS_H
