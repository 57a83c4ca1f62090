//===- SeededBugsWords.cu - Resident kernels with one bug each --*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cooperative launches of 3 blocks of 64 threads, which pass values to each
// other through words: the words of each step are cleared behind a barrier of
// all blocks, and used again behind the next one. `rows` is 192; `out` and `in`
// have a float for each thread. `flags` holds 64 words for barriers, then 2
// sets of 256 words.
//
//===----------------------------------------------------------------------===//

#include "llamac/ptx.cuh"

using namespace llamac;

#define SEEDED(name)                                                           \
  extern "C" __global__ void name##Bug(float *out, const float *in,            \
                                       uint32_t *flags, int rows) {            \
    name<true>(out, in, flags, rows);                                          \
  }                                                                            \
  extern "C" __global__ void name##Fixed(float *out, const float *in,          \
                                         uint32_t *flags, int rows) {          \
    name<false>(out, in, flags, rows);                                         \
  }

#define KERNEL(name)                                                           \
  template <bool bug>                                                          \
  LLAMAC_DEVICE void name(float *out, const float *in, uint32_t *flags,        \
                          int rows)

/// The number of this thread, and that of the same one of the next block.
LLAMAC_DEVICE int own() { return blockIdx.x * 64 + threadIdx.x; }
LLAMAC_DEVICE int neighbour(int rows) { return (own() + 64) % rows; }

LLAMAC_DEVICE uint32_t *setOf(uint32_t *flags, int step) {
  return flags + 64 + step % 2 * 256;
}

LLAMAC_DEVICE uint32_t bitsOf(float value) { return ~bitCast<uint32_t>(value); }

LLAMAC_DEVICE float poll(const uint32_t *word) {
  uint32_t bits;
  do
    // caught below by wordsInOneSet noBarrierBeforeClear
    // noBlockBarrierBeforeClear wordOfTheOtherSet wordReadLate
    // wordReadBehindNoBarrier plainValueInWord
    bits = loadRelaxed(word);
  while (bits == 0);
  return bitCast<float>(~bits);
}

/// Barrier number `round`, from 1, of all blocks, each of which has a flag.
LLAMAC_DEVICE void gridBarrier(uint32_t *flags, uint32_t round,
                               bool ofBlock = true) {
  if (ofBlock)
    syncThreads();
  if (threadIdx.x == 0)
    storeRelease(&flags[blockIdx.x], round);
  if (threadIdx.x < gridDim.x)
    while (loadAcquire(&flags[threadIdx.x]) < round) {
    }
  syncThreads();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

enum class Fault {
  None,
  NoPoll,         ///< Takes a word without a look whether it is there.
  WrittenTwice,   ///< Puts a value into a word that has one.
  OneSet,         ///< Clears words and uses them again at once.
  NoBarrier,      ///< Clears words that others still need.
  NoBlockBarrier, ///< Only thread 0 of each block has arrived.
  WrongSet,       ///< Writes the words of the step before.
  ReadLate,       ///< Reads behind the barrier that lets others clear.
};

/// Adds up what the neighbours have put, in four steps.
template <Fault fault>
LLAMAC_DEVICE void exchange(float *out, const float *in, uint32_t *flags,
                            int rows) {
  const bool isLate = fault == Fault::ReadLate && threadIdx.x >= 32;
  float sum = 0;
  for (int step = 0; step < 4; ++step) {
    uint32_t *words = setOf(flags, fault == Fault::OneSet ? 0 : step);
    const bool isWrong = fault == Fault::WrongSet && step > 0;
    uint32_t *to = isWrong ? setOf(flags, step - 1) : words;
    storeRelaxed(&to[own()], bitsOf(in[own()] + step));
    if (fault == Fault::WrittenTwice && step == 2)
      storeRelaxed(&to[own()], bitsOf(in[own()])); // caught by wordWrittenTwice
    if constexpr (fault == Fault::NoPoll)
      sum += bitCast<float>(~loadRelaxed(&words[neighbour(rows)]));
    else if (!isLate)
      sum += poll(&words[neighbour(rows)]);
    if constexpr (fault != Fault::NoBarrier)
      gridBarrier(flags, step + 1, fault != Fault::NoBlockBarrier);
    if (isLate)
      sum += poll(&words[neighbour(rows)]);
    // caught below by wordsInOneSet noBarrierBeforeClear
    // noBlockBarrierBeforeClear wordReadLate
    storeRelaxed(&words[own()], 0);
  }
  out[own()] = sum;
}

#define SEEDED_EXCHANGE(name, fault)                                           \
  KERNEL(name) { exchange<bug ? fault : Fault::None>(out, in, flags, rows); }  \
  SEEDED(name)

SEEDED_EXCHANGE(wordNotPolled, Fault::NoPoll)
SEEDED_EXCHANGE(wordWrittenTwice, Fault::WrittenTwice)
SEEDED_EXCHANGE(wordsInOneSet, Fault::OneSet)
SEEDED_EXCHANGE(noBarrierBeforeClear, Fault::NoBarrier)
SEEDED_EXCHANGE(noBlockBarrierBeforeClear, Fault::NoBlockBarrier)
SEEDED_EXCHANGE(wordOfTheOtherSet, Fault::WrongSet)
SEEDED_EXCHANGE(wordReadLate, Fault::ReadLate)

//===----------------------------------------------------------------------===//
// Clears
//===----------------------------------------------------------------------===//

KERNEL(wordWrittenBeforeItsClear) {
  uint32_t *words = setOf(flags, 0);
  if (blockIdx.x == 0)
    for (int i = own(); i < rows; i += 64)
      storeRelaxed(&words[i], 0); // caught
  if constexpr (!bug)
    gridBarrier(flags, 1);
  storeRelaxed(&words[own()], bitsOf(in[own()])); // caught
  out[own()] = poll(&words[neighbour(rows)]);
}
SEEDED(wordWrittenBeforeItsClear)

// A reader may still see what the word held before its clear.
KERNEL(wordReadBehindNoBarrier) {
  uint32_t *words = setOf(flags, 0);
  storeRelaxed(&words[own()], 0);
  if constexpr (!bug)
    gridBarrier(flags, 1);
  storeRelaxed(&words[own()], bitsOf(in[own()]));
  out[own()] = poll(&words[neighbour(rows)]);
}
SEEDED(wordReadBehindNoBarrier)

// A read of a word orders the reader behind nothing, not even the write.
KERNEL(wordClearedByItsReader) {
  uint32_t *words = setOf(flags, 0);
  storeRelaxed(&words[own()], bitsOf(in[own()]));
  out[own()] = poll(&words[neighbour(rows)]);
  if constexpr (!bug)
    gridBarrier(flags, 1);
  storeRelaxed(&words[neighbour(rows)], 0); // caught
}
SEEDED(wordClearedByItsReader)

// Words that say what was read order nothing either.
KERNEL(wordClearedAfterAnAnswer) {
  uint32_t *words = setOf(flags, 0), *answers = setOf(flags, 1);
  storeRelaxed(&words[own()], bitsOf(in[own()]));
  out[own()] = poll(&words[neighbour(rows)]);
  storeRelaxed(&answers[neighbour(rows)], 1);
  poll(&answers[own()]);
  if constexpr (!bug)
    gridBarrier(flags, 1);
  storeRelaxed(&words[own()], 0); // caught
}
SEEDED(wordClearedAfterAnAnswer)

KERNEL(wordClearedByTwo) {
  if (bug || blockIdx.x == 0)
    storeRelaxed(&setOf(flags, 0)[threadIdx.x], 0); // caught
  out[own()] = in[neighbour(rows)];
}
SEEDED(wordClearedByTwo)

//===----------------------------------------------------------------------===//
// Plain accesses beside words
//===----------------------------------------------------------------------===//

// A word does not bring what its writer has written before.
KERNEL(keyReadBeforeItsAppend) {
  float *keys = out + rows;
  keys[own()] = in[own()]; // caught
  storeRelaxed(&setOf(flags, 0)[own()], 1);
  poll(&setOf(flags, 0)[neighbour(rows)]);
  if constexpr (!bug)
    gridBarrier(flags, 1);
  out[own()] = keys[neighbour(rows)]; // caught
}
SEEDED(keyReadBeforeItsAppend)

KERNEL(plainValueInWord) {
  uint32_t *words = setOf(flags, 0);
  if constexpr (bug)
    words[own()] = bitsOf(in[own()]);
  else
    storeRelaxed(&words[own()], bitsOf(in[own()]));
  out[own()] = poll(&words[neighbour(rows)]);
}
SEEDED(plainValueInWord)

KERNEL(plainReadOfWord) {
  uint32_t *words = setOf(flags, 0);
  storeRelaxed(&words[own()], bitsOf(in[own()]));
  const float polled = poll(&words[neighbour(rows)]);
  const float read =
      bitCast<float>(~words[bug ? neighbour(rows) : own()]); // caught
  out[own()] = bug ? read : polled;
}
SEEDED(plainReadOfWord)

KERNEL(plainReadBeforeTheWord) {
  uint32_t *words = setOf(flags, 0), *answers = setOf(flags, 1);
  const uint32_t before = words[neighbour(rows)];
  storeRelaxed(&answers[neighbour(rows)], 1 + before);
  poll(&answers[own()]);
  if constexpr (!bug)
    gridBarrier(flags, 1);
  storeRelaxed(&words[own()], bitsOf(in[own()])); // caught
  out[own()] = poll(&words[neighbour(rows)]);
}
SEEDED(plainReadBeforeTheWord)

KERNEL(plainClear) {
  uint32_t *words = setOf(flags, 0), *answers = setOf(flags, 1);
  storeRelaxed(&words[own()], bitsOf(in[own()]));
  out[own()] = poll(&words[neighbour(rows)]);
  storeRelaxed(&answers[neighbour(rows)], 1);
  poll(&answers[own()]);
  if constexpr (!bug)
    gridBarrier(flags, 1);
  words[own()] = 0; // caught
}
SEEDED(plainClear)

KERNEL(readOnlyLoadOfWord) {
  uint32_t *words = setOf(flags, 0);
  storeRelaxed(&words[own()], bitsOf(in[own()]));
  float value = poll(&words[neighbour(rows)]);
  gridBarrier(flags, 1);
  if constexpr (bug)
    value = bitCast<float>(~loadReadOnly(&words[neighbour(rows)])); // caught
  out[own()] = value;
}
SEEDED(readOnlyLoadOfWord)

//===----------------------------------------------------------------------===//
// Addresses
//===----------------------------------------------------------------------===//

KERNEL(misalignedWordLoad) {
  const Words4 words = loadRelaxed4(setOf(flags, 0) + 2 * bug); // caught
  out[own()] = in[neighbour(rows)] + words[0];
}
SEEDED(misalignedWordLoad)

KERNEL(misalignedWordStore) {
  storeRelaxed2(setOf(flags, 0) + 2 * own() + bug, {{1, 2}}); // caught
  out[own()] = in[neighbour(rows)];
}
SEEDED(misalignedWordStore)

KERNEL(wordBeyondItsBuffer) {
  storeRelaxed(setOf(flags, 1) + (bug ? 256 : own()), 1); // caught
  out[own()] = in[neighbour(rows)];
}
SEEDED(wordBeyondItsBuffer)

// Memory that nobody has cleared is not empty.
KERNEL(wordNeverCleared) {
  uint32_t *words = reinterpret_cast<uint32_t *>(out);
  if constexpr (!bug)
    storeRelaxed(&words[own()], 0);
  gridBarrier(flags, 1);
  const uint32_t word = loadRelaxed(&words[neighbour(rows)]); // caught
  gridBarrier(flags, 2);
  out[own()] = in[neighbour(rows)] + word;
}
SEEDED(wordNeverCleared)

KERNEL(stopsItself) {
  if (bug && globalTimer() == 0 && own() == 100)
    trap(); // caught
  out[own()] = in[neighbour(rows)];
}
SEEDED(stopsItself)
