//===- Shadow.h - What is known of each byte of memory ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_RUNTIME_SIM_SHADOW_H
#define LLAMAC_RUNTIME_SIM_SHADOW_H

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace llamac::sim {

/// One access of one thread, at its clock.
struct Epoch {
  uint32_t clock = 0; ///< 0: there was none.
  uint32_t block = 0;
  uint32_t thread = 0;
  bool isAtomic = false;
  const void *site = nullptr;
  bool isCopy = false; ///< A bulk copy's, which no fence has to order.
};

/// The last plain write of a byte, and the reads and atomics since then that no
/// later one is ordered behind.
struct Cell {
  Epoch write;
  Epoch read;
  std::unique_ptr<std::vector<Epoch>> moreReads;
};

/// The cells of addresses, made when they are first asked for.
class Shadow {
public:
  Cell &at(uintptr_t address) {
    const uintptr_t page = address / pageBytes;
    if (page != lastPage || !last) {
      std::unique_ptr<Page> &slot = pages[page];
      if (!slot)
        slot = std::make_unique<Page>();
      last = slot.get();
      lastPage = page;
    }
    return (*last)[address % pageBytes];
  }

  void clear() {
    pages.clear();
    last = nullptr;
  }

  static constexpr uintptr_t pageBytes = 1024;

  /// Calls visit(address, cell) for every byte that was asked for, and others.
  template <class Visit> void forEach(const Visit &visit) {
    for (auto &[page, cells] : pages)
      for (uintptr_t i = 0; i < pageBytes; ++i)
        visit(page * pageBytes + i, (*cells)[i]);
  }

private:
  using Page = std::array<Cell, pageBytes>;

  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  Page *last = nullptr;
  uintptr_t lastPage = 0;
};

} // namespace llamac::sim

#endif // LLAMAC_RUNTIME_SIM_SHADOW_H
