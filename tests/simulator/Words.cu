//===- Words.cu - Kernels whose blocks run together -------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// WordsTest.cpp runs them. A value is put into a word as its complement, since
// a word that is 0 is empty.
//
//===----------------------------------------------------------------------===//

#include "llamac/ptx.cuh"

using namespace llamac;

/// Barrier number `round`, from 1, of all blocks, each of which has a flag.
LLAMAC_DEVICE void gridBarrier(uint32_t *flags, uint32_t round) {
  syncThreads();
  if (threadIdx.x == 0)
    storeRelease(&flags[blockIdx.x], round);
  if (threadIdx.x < gridDim.x)
    while (loadAcquire(&flags[threadIdx.x]) < round) {
    }
  syncThreads();
}

// Three blocks of 64 threads put 12 words of a step each by vectors of every
// size; every thread adds up the 36 of each step, the words of some vectors one
// by one and with a barrier between them.
extern "C" __global__ void allToAll(uint32_t *out, uint32_t *words,
                                    uint32_t *flags, int steps) {
  const uint32_t t = threadIdx.x, first = blockIdx.x * 12;
  uint32_t sum = 0;
  for (int step = 0; step < steps; ++step) {
    uint32_t *set = words + step % 2 * 48;
    const uint32_t value = 1000 * (step + 1) + first;
    if (t == 0)
      storeRelaxed4(&set[first],
                    {{~value, ~(value + 1), ~(value + 2), ~(value + 3)}});
    if (t == 40 || t == 41)
      storeRelaxed2(&set[first + 2 * t - 76],
                    {{~(value + 2 * t - 76), ~(value + 2 * t - 75)}});
    if (t < 4)
      storeRelaxed(&set[first + 8 + t], ~(value + 8 + t));
    for (uint32_t i = 0; i < 36; i += 12) {
      Words4 four;
      do
        four = loadRelaxed4(&set[i]);
      while (!four[0] || !four[1] || !four[2] || !four[3]);
      sum += ~four[0] + ~four[1] + ~four[2] + ~four[3];
      for (uint32_t j = i + 4; j < i + 8; j += 2) {
        Words2 two;
        do
          two = loadRelaxed2(&set[j]);
        while (!two[0] || !two[1]);
        sum += ~two[0] + ~two[1];
        syncThreads();
      }
      for (uint32_t j = i + 8; j < i + 12; ++j) {
        uint32_t one;
        do
          one = loadRelaxed(&set[j]);
        while (!one);
        sum += ~one;
        syncWarp();
      }
    }
    gridBarrier(flags, step + 1);
    if (t < 3)
      storeRelaxed4(&set[first + 4 * t], {{0, 0, 0, 0}});
  }
  out[blockIdx.x * 64 + t] = sum;
}

// Words of a vector are written one by one; `out` gets the last of four.
template <bool waitsForAll>
LLAMAC_DEVICE void four(uint32_t *out, uint32_t *words) {
  if (blockIdx.x == 0 && threadIdx.x == 0)
    storeRelaxed4(words, {{1, 2, 3, 4}});
  Words4 seen;
  do
    seen = loadRelaxed4(words);
  while (!seen[0] || (waitsForAll && (!seen[1] || !seen[2] || !seen[3])));
  out[blockIdx.x * 64 + threadIdx.x] = seen[3];
}
extern "C" __global__ void firstOfFour(uint32_t *out, uint32_t *words,
                                       uint32_t *, int) {
  four<false>(out, words);
}
extern "C" __global__ void allOfFour(uint32_t *out, uint32_t *words, uint32_t *,
                                     int) {
  four<true>(out, words);
}

// Blocks 0 and 1 wait for each other, and block 2 for block 1, but nobody for
// block 2: words are cleared eight steps later, when it should have read them.
extern "C" __global__ void notWaitedFor(uint32_t *out, uint32_t *words,
                                        uint32_t *, int steps) {
  const uint32_t t = threadIdx.x, block = blockIdx.x;
  uint32_t sum = 0;
  for (int step = 0; step < steps; ++step) {
    auto word = [&](int step, uint32_t block) {
      return &words[(step % 16 * 2 + block) * 64 + t];
    };
    if (block < 2) {
      if (step >= 8)
        storeRelaxed(word(step - 8, block), 0);
      storeRelaxed(word(step, block), ~uint32_t(step));
    }
    uint32_t seen;
    do
      seen = loadRelaxed(word(step, block == 1 ? 0 : 1));
    while (!seen);
    sum += ~seen;
  }
  out[block * 64 + t] = sum;
}

// Thread 7 of block 1 waits for a word that nobody writes, and the others of
// its block for it; blocks 0 and 2 wait for a flag.
extern "C" __global__ void inVain(uint32_t *out, uint32_t *words,
                                  uint32_t *flags, int) {
  if (blockIdx.x != 1)
    while (loadAcquire(&flags[2]) == 0) { // polled by blocks 0 and 2
    }
  if (threadIdx.x == 7)
    while (loadRelaxed(&words[5]) == 0) { // polled by block 1
    }
  syncThreads(); // reached by block 1
}

// A loop over two words, one of which is there.
extern "C" __global__ void halfInVain(uint32_t *out, uint32_t *words,
                                      uint32_t *, int) {
  if (blockIdx.x == 0 && threadIdx.x == 0)
    storeRelaxed(&words[0], 1);
  uint32_t first, second;
  do {
    first = loadRelaxed(&words[0]);
    second = loadRelaxed(&words[4]);
  } while (!first || !second);
  out[blockIdx.x * blockDim.x + threadIdx.x] = first + second;
}

// Block 1 waits until block 0 has cleared a word, which it does if it `clears`.
extern "C" __global__ void untilCleared(uint32_t *out, uint32_t *words,
                                        uint32_t *, int clears) {
  const uint32_t t = threadIdx.x;
  if (blockIdx.x == 0) {
    storeRelaxed(&words[t], 1);
    while (loadRelaxed(&words[512 + t]) == 0) {
    }
    if (clears)
      storeRelaxed(&words[t], 0);
  } else if (blockIdx.x == 1) {
    while (loadRelaxed(&words[t]) == 0) {
    }
    storeRelaxed(&words[512 + t], 1);
    while (loadRelaxed(&words[t]) != 0) {
    }
  }
  out[blockIdx.x * 64 + t] = 1;
}

// Words, flags and counters are all atomics: no two of them race.
extern "C" __global__ void atomicsOfEveryKind(uint32_t *out, uint32_t *words,
                                              uint32_t *flags, int) {
  const uint32_t t = threadIdx.x;
  if (blockIdx.x == 0) {
    storeRelaxed(&words[t], 1);
    if (t == 0)
      storeRelease(&flags[0], 1);
  } else {
    while (loadAcquire(&words[t]) == 0) {
    }
    while (loadRelaxed(&flags[0]) == 0) {
    }
  }
  atomicAddRelaxed(&flags[1], 1);
  while (loadRelaxed(&flags[1]) < 192) {
  }
  out[blockIdx.x * 64 + t] = atomicAddRelaxed(&words[t], 1) > 0;
}

// Every thread reads more words than a thread may poll in vain.
extern "C" __global__ void manyWords(uint32_t *out, uint32_t *words,
                                     uint32_t *flags, int count) {
  for (int i = blockIdx.x * 64 + threadIdx.x; i < count; i += 192)
    storeRelaxed(&words[i], i + 1);
  uint32_t sum = 0;
  for (int i = 0; i < count; ++i) {
    uint32_t word;
    do
      word = loadRelaxed(&words[i]);
    while (!word);
    sum += word;
  }
  gridBarrier(flags, 1);
  out[blockIdx.x * 64 + threadIdx.x] = sum;
}
