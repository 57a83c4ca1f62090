//===- Shadow.h - Shadow memory: the accesses of each byte ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_SIMULATOR_SHADOW_H
#define LLAMAC_SIMULATOR_SHADOW_H

#include "absl/container/inlined_vector.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace llamac::sim {

/// One access of one thread, at its clock.
struct Epoch {
  uint32_t clock = 0; ///< 0: there was none.
  uint32_t block = 0;
  const void *site = nullptr;
  uint32_t thread = 0;
  bool isAtomic = false;
  bool isCopy = false; ///< A bulk copy's, which no fence has to order.

  bool operator==(const Epoch &other) const = default;
};

/// Reads and atomics of one byte that happen before no later one, and some
/// others: those are dropped from time to time, not at each access, for speed.
struct Reads {
  struct OfBlock {
    uint32_t block;
    size_t limit; ///< The most epochs before those that are not needed go.
    absl::InlinedVector<Epoch, 8> epochs;
  };
  absl::InlinedVector<OfBlock, 1> blocks;
  size_t count = 0; ///< Epochs of all blocks.
  /// Whether there was a read, and an atomic.
  bool hasReads = false, hasAtomics = false;

  /// Keeps `now`, which stands for all that isReplaced(epoch) holds for; none
  /// of them is of another block unless `knowsOthers`.
  template <class IsReplaced>
  void add(const Epoch &now, const IsReplaced &isReplaced, bool knowsOthers) {
    auto drop = [&](OfBlock &of) {
      // A thread's last epoch of a kind stands for all of its kind.
      std::bitset<2 * blockThreads> seen;
      std::reverse(of.epochs.begin(), of.epochs.end());
      const auto kept = std::remove_if(
          of.epochs.begin(), of.epochs.end(), [&](const Epoch &epoch) {
            const size_t kind = 2 * epoch.thread + epoch.isAtomic;
            if (seen[kind] || isReplaced(epoch))
              return true;
            seen.set(kind);
            return false;
          });
      count -= static_cast<size_t>(of.epochs.end() - kept);
      of.epochs.erase(kept, of.epochs.end());
      std::reverse(of.epochs.begin(), of.epochs.end());
      of.limit = std::max(least, 2 * of.epochs.size());
    };
    // Blocks come mostly one after the other.
    auto own =
        std::find_if(blocks.rbegin(), blocks.rend(),
                     [&](const OfBlock &of) { return of.block == now.block; });
    if (own != blocks.rend() &&
        (own->epochs.size() >= own->limit || count >= most))
      drop(*own);
    if (knowsOthers && count >= most)
      std::for_each(blocks.begin(), blocks.end(), drop);
    if (count >= most)
      return;
    OfBlock &of = own != blocks.rend()
                      ? *own
                      : blocks.emplace_back(OfBlock{now.block, least, {}});
    of.epochs.push_back(now);
    ++count;
    (now.isAtomic ? hasAtomics : hasReads) = true;
  }

private:
  static constexpr size_t least = 8;
  static constexpr size_t blockThreads = 1024;
  /// Enough to find a race; more than one block has.
  static constexpr size_t most = 4 * blockThreads;
};

/// The last plain write of a byte, and the reads and atomics since then that
/// happen before no later one.
struct Cell {
  Epoch write;
  Epoch read;
  std::unique_ptr<Reads> moreReads;

  Cell copy() const {
    return {write, read,
            moreReads ? std::make_unique<Reads>(*moreReads) : nullptr};
  }
};

/// The cells of addresses, made when they are first asked for. Most accesses
/// are of aligned words and more, so one cell stands for all bytes of a word
/// until one of them is touched alone.
class Shadow {
public:
  static constexpr uintptr_t pageBytes = 1024;

  /// Calls visit(cell, address) for the cells of `size` bytes from `address`
  /// on, each with the first address it stands for; it may change them.
  template <class Visit>
  void forCells(uintptr_t address, uint64_t size, const Visit &visit) {
    const uintptr_t end = address + size;
    while (address < end) {
      Word &word = at(address);
      const uintptr_t start = address % wordBytes;
      const uintptr_t stop = std::min(wordBytes, start + (end - address));
      const bool whole = stop - start == wordBytes;
      if (whole && !word.bytes) {
        visit(word.all, address);
      } else {
        if (!word.bytes)
          split(word);
        for (uintptr_t byte = start; byte < stop; ++byte)
          visit((*word.bytes)[byte], address - start + byte);
        if (whole)
          uniteIfEqual(word);
      }
      address += stop - start;
    }
  }

  /// Whether anything near `address` was asked for.
  bool has(uintptr_t address) const {
    const uintptr_t page = address / pageBytes;
    return (last && page == lastPage) || pages.contains(page);
  }

  /// The last plain write of the byte at `address`.
  const Epoch &lastWrite(uintptr_t address) {
    const Word &word = at(address);
    return (word.bytes ? (*word.bytes)[address % wordBytes] : word.all).write;
  }

  /// Calls visit(cell, address) for every byte that was asked for, and others.
  template <class Visit> void forEachByte(const Visit &visit) const {
    for (const auto &[page, words] : pages)
      for (uintptr_t i = 0; i < pageBytes; ++i) {
        const Word &word = (*words)[i / wordBytes];
        visit(word.bytes ? (*word.bytes)[i % wordBytes] : word.all,
              page * pageBytes + i);
      }
  }

  void clear() {
    pages.clear();
    last = nullptr;
  }

private:
  static constexpr uintptr_t wordBytes = 4;

  struct Word {
    Cell all;
    /// In place of `all`, once they differ.
    std::unique_ptr<std::array<Cell, wordBytes>> bytes;
  };
  using Page = std::array<Word, pageBytes / wordBytes>;

  Word &at(uintptr_t address) {
    const uintptr_t page = address / pageBytes;
    if (page != lastPage || !last) {
      std::unique_ptr<Page> &slot = pages[page];
      if (!slot)
        slot = std::make_unique<Page>();
      last = slot.get();
      lastPage = page;
    }
    return (*last)[address % pageBytes / wordBytes];
  }

  static void split(Word &word) {
    word.bytes = std::make_unique<std::array<Cell, wordBytes>>();
    for (Cell &byte : *word.bytes)
      byte = word.all.copy();
    word.all = {};
  }

  static void uniteIfEqual(Word &word) {
    const Cell &first = word.bytes->front();
    for (const Cell &byte : *word.bytes)
      if (byte.moreReads || byte.write != first.write ||
          byte.read != first.read)
        return;
    word.all = first.copy();
    word.bytes = nullptr;
  }

  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  Page *last = nullptr;
  uintptr_t lastPage = 0;
};

} // namespace llamac::sim

#endif // LLAMAC_SIMULATOR_SHADOW_H
