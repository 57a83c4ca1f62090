//===- words.cuh - Values that blocks pass to each other --------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value between two phases of a resident step is a word of 32 bits in global
// memory, which is 0 while the value is not there. A reader polls the value
// itself: there is no flag, no fence and no counter, and four values come by
// one load. A value's bits are kept inverted, so that 0 stands for a NaN with
// all bits set, which no arithmetic of a GPU gives; another NaN goes in its
// place.
//
// Words are relaxed: they order nothing but themselves. So only words may be
// read that a barrier of all blocks has cleared before.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_WORDS_CUH
#define LLAMAC_CODEGEN_DEVICE_WORDS_CUH

#include "llamac/vmath.cuh"

namespace llamac::cuda {

/// Ends the kernel when a wait lasts for 10 s: one of the blocks is not there,
/// or has stopped.
class Patience {
public:
  /// Called each time that a thread has looked in vain.
  LLAMAC_DEVICE void lookAgain() {
    constexpr uint32_t looks = 1024; // Between two looks at the clock.
    constexpr uint64_t limit = 10'000'000'000; // Nanoseconds.
    if (++count % looks != 0)
      return;
    const uint64_t now = globalTimer();
    if (begin == 0)
      begin = now;
    else if (now - begin > limit)
      trap();
  }

private:
  uint32_t count = 0;
  uint64_t begin = 0;
};

LLAMAC_DEVICE uint32_t wordOf(float value) {
  const uint32_t word = ~bitCast<uint32_t>(value);
  return word == 0 ? 0x80000000u : word;
}
LLAMAC_DEVICE float valueOf(uint32_t word) { return bitCast<float>(~word); }

/// Waits for `count` times four values, at word(i) each, which is 16-byte
/// aligned; all loads are on their way at a time.
template <int count, class Word>
LLAMAC_DEVICE void awaitFours(Vec<float, 4> (&to)[count], const Word &word) {
  Words4 words[count];
  Patience patience;
  for (;;) {
#pragma unroll
    for (int i = 0; i < count; ++i)
      words[i] = loadRelaxed4(word(i));
    bool areThere = true;
#pragma unroll
    for (int i = 0; i < count; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        areThere = areThere && words[i][j] != 0;
    if (areThere)
      break;
    patience.lookAgain();
  }
#pragma unroll
  for (int i = 0; i < count; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      to[i][j] = valueOf(words[i][j]);
}

LLAMAC_DEVICE F32x2 awaitPair(const uint32_t *word) {
  Patience patience;
  for (;;) {
    const Words2 pair = loadRelaxed2(word);
    if (pair[0] != 0 && pair[1] != 0)
      return {valueOf(pair[0]), valueOf(pair[1])};
    patience.lookAgain();
  }
}

/// A row of values: what a result, or an extra, of an epilogue is.
struct WordRow {
  uint32_t *words;
};
/// Waits for the eights that halves.cuh loads where a row is in memory.
template <int count, class At>
LLAMAC_DEVICE void loadEights(float (&to)[count][8], WordRow row,
                              const At &at) {
  Vec<float, 4> fours[2 * count];
  awaitFours(fours, [&](int i) { return row.words + at(i / 2) + i % 2 * 16; });
#pragma unroll
  for (int i = 0; i < 2 * count; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      to[i / 2][i % 2 * 4 + j] = fours[i][j];
}
template <long width>
LLAMAC_DEVICE F32x2 loadPair(WordRow row, long, long column) {
  static_assert(width % 2 == 0);
  return awaitPair(row.words + column);
}
LLAMAC_DEVICE void storePair(uint32_t *word, F32x2 value) {
  storeRelaxed2(word, Words2{wordOf(value.x), wordOf(value.y)});
}
template <long width>
LLAMAC_DEVICE F32x2 storePair(WordRow row, long, long column, F32x2 value) {
  static_assert(width % 2 == 0);
  storePair(row.words + column, value);
  return value;
}

} // namespace llamac::cuda

#endif // LLAMAC_CODEGEN_DEVICE_WORDS_CUH
