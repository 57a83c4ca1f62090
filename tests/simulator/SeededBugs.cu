//===- SeededBugs.cu - Kernels with one bug each -------------- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function is compiled twice: with its bug, which the simulator must name
// at a line marked "caught", and without, when it must run clean. `rows` is how
// many floats `in` and `out` have; `in` is read-only, `out` starts undefined
// and `flags` holds 16 zero words.
//
//===----------------------------------------------------------------------===//

#include "llamac/ptx.cuh"
#include "llamac/ptx_sm90.cuh"

using namespace llamac;

#define SEEDED(name)                                                          \
  extern "C" __global__ void name##Bug(float *out, const float *in,            \
                                       uint32_t *flags, int rows) {            \
    name<true>(out, in, flags, rows);                                          \
  }                                                                            \
  extern "C" __global__ void name##Fixed(float *out, const float *in,          \
                                         uint32_t *flags, int rows) {          \
    name<false>(out, in, flags, rows);                                         \
  }

/// An array that instructions of 16 bytes may reach.
template <typename T> struct alignas(16) Aligned16 {
  T words;
};

#define KERNEL(name)                                                           \
  template <bool bug>                                                          \
  LLAMAC_DEVICE void name(float *out, const float *in, uint32_t *flags,        \
                          int rows)

//===----------------------------------------------------------------------===//
// Barriers of a block
//===----------------------------------------------------------------------===//

KERNEL(missingBarrier) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  tile[t] = in[t]; // caught
  if constexpr (!bug)
    syncThreads();
  out[t] = tile[63 - t]; // caught
}
SEEDED(missingBarrier)

KERNEL(earlyReuse) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  for (int base = 0; base < rows; base += 64) {
    tile[t] = in[base + t]; // caught
    syncThreads();
    out[base + t] = tile[63 - t]; // caught
    if constexpr (!bug)
      syncThreads();
  }
}
SEEDED(earlyReuse)

KERNEL(divergentBarrier) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  tile[t] = in[t];
  if (!bug || t < 48)
    syncThreads(); // caught
  out[t] = tile[t];
}
SEEDED(divergentBarrier)

KERNEL(barrierInBothBranches) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  tile[t] = in[t];
  if constexpr (bug) {
    if (t % 2 == 0) {
      syncThreads(); // caught
      out[t] = tile[63 - t];
    } else {
      syncThreads(); // caught
      out[t] = tile[63 - t] + 0.0f;
    }
  } else {
    syncThreads();
    out[t] = tile[63 - t];
  }
}
SEEDED(barrierInBothBranches)

KERNEL(wrongBarrierCount) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  tile[t] = in[t];
  barrierSync(1, bug ? 96 : 64); // caught
  out[t] = tile[63 - t];
}
SEEDED(wrongBarrierCount)

// One warp makes a tile, the other one uses it.
KERNEL(doubleArrival) {
  LLAMAC_SHARED(tile, float[32]);
  const int t = threadIdx.x;
  if (t < 32) {
    tile[t] = in[t];
    barrierArrive(2, 64);
    if constexpr (bug)
      barrierArrive(2, 64); // caught
  } else {
    barrierSync(2, 64);
    out[t - 32] = tile[63 - t];
  }
}
SEEDED(doubleArrival)

KERNEL(wrongBarrier) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  tile[t] = in[t]; // caught
  barrierSync(bug ? 1 + warpIndex() : 1, bug ? 32 : 64);
  out[t] = tile[63 - t]; // caught
}
SEEDED(wrongBarrier)

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

KERNEL(divergentShuffle) {
  const int t = threadIdx.x;
  float value = in[t];
  if (!bug || t % 32 < 16)
    value = shuffleXor(value, 1); // caught
  out[t] = value;
}
SEEDED(divergentShuffle)

KERNEL(shuffleFromOutside) {
  const int t = threadIdx.x;
  if (t % 32 < 16)
    out[t] = shuffle(in[t], bug ? 16 : 15, 0x0000ffff); // caught
  else
    out[t] = in[t];
}
SEEDED(shuffleFromOutside)

KERNEL(missingSyncWarp) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  tile[t] = in[t]; // caught
  if constexpr (!bug)
    syncWarp();
  out[t] = tile[t ^ 1]; // caught
}
SEEDED(missingSyncWarp)

// A shuffle synchronises lanes but orders no memory.
KERNEL(shuffleAsFence) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  tile[t] = in[t]; // caught
  const int other = shuffleXor(t, 1);
  if constexpr (!bug)
    syncWarp();
  out[t] = tile[other]; // caught
}
SEEDED(shuffleAsFence)

// 16 x 16 times 16 x 8, row by row, then bytes out of order.
KERNEL(wrongFragment) {
  const int g = laneIndex() / 4, t = laneIndex() % 4;
  const float *b = in + 256;
  auto pairOfA = [&](int row, int column) {
    return packBf16(in[row * 16 + column], in[row * 16 + column + 1]);
  };
  auto pairOfB = [&](int row) {
    return packBf16(b[row * 8 + g], b[row * 8 + 8 + g]);
  };
  const uint32_t right[4] = {pairOfA(g, 2 * t), pairOfA(g + 8, 2 * t),
                             pairOfA(g, 2 * t + 8), pairOfA(g + 8, 2 * t + 8)};
  const uint32_t fragment[4] = {right[0], right[bug ? 2 : 1],
                                right[bug ? 1 : 2], right[3]};
  const uint32_t other[2] = {pairOfB(2 * t), pairOfB(2 * t + 8)};
  float d[4] = {};
  mmaBf16(d, fragment, other);
  for (int i = 0; i < 4; ++i)
    out[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = d[i];
}
SEEDED(wrongFragment)

KERNEL(fragmentOfUnwrittenRows) {
  LLAMAC_SHARED(tile, Aligned16<uint32_t[8][4]>);
  const int lane = laneIndex();
  if (!bug || lane / 4 < 7)
    tile.words[lane / 4][lane % 4] = lane;
  syncWarp();
  uint32_t fragment[1];
  ldmatrix(fragment, tile.words[lane % 8]); // caught
  out[lane] = fragment[0];
}
SEEDED(fragmentOfUnwrittenRows)

//===----------------------------------------------------------------------===//
// Bounds and first contents
//===----------------------------------------------------------------------===//

KERNEL(sharedReadBeyond) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  tile[t] = in[t];
  syncThreads();
  out[t] = tile[bug ? t + 1 : 63 - t]; // caught
}
SEEDED(sharedReadBeyond)

KERNEL(sharedWriteBeyond) {
  LLAMAC_SHARED_DYNAMIC(bytes);
  float *tile = reinterpret_cast<float *>(bytes);
  const int t = threadIdx.x;
  tile[bug ? t + 1 : t] = in[t]; // caught
  syncThreads();
  out[t] = tile[63 - t];
}
SEEDED(sharedWriteBeyond)

KERNEL(globalReadBeyond) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows)
    out[i] = in[bug ? i + 1 : i]; // caught
}
SEEDED(globalReadBeyond)

KERNEL(globalWriteBeyond) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (bug || i < rows)
    out[i] = i; // caught
}
SEEDED(globalWriteBeyond)

// A loop over tiles that runs once too often when the last one is whole.
KERNEL(offByOneTile) {
  const int t = threadIdx.x;
  const int tiles = bug ? rows / 64 + 1 : (rows + 63) / 64;
  for (int tile = 0; tile < tiles; ++tile)
    out[tile * 64 + t] = in[tile * 64 + t]; // caught
}
SEEDED(offByOneTile)

KERNEL(sharedUninitialised) {
  LLAMAC_SHARED(sums, float[64]);
  const int t = threadIdx.x;
  if (!bug)
    sums[t] = 0;
  sums[t] += in[t]; // caught
  out[t] = sums[t];
}
SEEDED(sharedUninitialised)

KERNEL(globalUninitialised) {
  const int t = threadIdx.x;
  if (!bug)
    out[t] = 0;
  out[t] += in[t]; // caught
}
SEEDED(globalUninitialised)

KERNEL(writeToInput) {
  const int t = threadIdx.x;
  float *to = bug ? const_cast<float *>(in) : out;
  to[t] = t; // caught
}
SEEDED(writeToInput)

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

KERNEL(crossBlockWrite) {
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  out[bug ? t : i] = in[i]; // caught
}
SEEDED(crossBlockWrite)

KERNEL(plainCounter) {
  if (threadIdx.x == 0) {
    if constexpr (bug)
      flags[0] += 1; // caught
    else
      atomicAddRelaxed(&flags[0], 1);
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
SEEDED(plainCounter)

/// Counts the values of `in`, and gives each value its count.
template <typename Add, typename Barrier>
LLAMAC_DEVICE void histogram(float *out, const float *in, bool clear, Add add,
                             Barrier barrier) {
  LLAMAC_SHARED(counts, uint32_t[32]);
  const int t = threadIdx.x;
  if (clear && t < 32)
    counts[t] = 0; // caught by histogramClearedLate
  barrier();
  add(&counts[static_cast<int>(in[t]) + 11]);
  syncThreads();
  out[t] = static_cast<float>(counts[static_cast<int>(in[t]) + 11]);
}

KERNEL(plainHistogram) {
  histogram(
      out, in, true,
      [](uint32_t *count) {
        if constexpr (bug)
          *count += 1; // caught
        else
          atomicAddShared(count, 1);
      },
      syncThreads);
}
SEEDED(plainHistogram)

KERNEL(histogramNotCleared) {
  histogram(
      out, in, !bug,
      [](uint32_t *count) { atomicAddShared(count, 1); }, // caught
      syncThreads);
}
SEEDED(histogramNotCleared)

KERNEL(histogramClearedLate) {
  histogram(
      out, in, true,
      [](uint32_t *count) { atomicAddShared(count, 1); }, // caught
      [] {
        if constexpr (!bug)
          syncThreads();
      });
}
SEEDED(histogramClearedLate)

KERNEL(histogramReadEarly) {
  LLAMAC_SHARED(count, uint32_t);
  const int t = threadIdx.x;
  if (t == 0)
    count = 0;
  syncThreads();
  atomicAddShared(&count, 1); // caught
  if constexpr (!bug)
    syncThreads();
  out[t] = t == 0 && count > 64 ? 0 : in[t]; // caught
}
SEEDED(histogramReadEarly)

KERNEL(sharedAtomicOnGlobal) {
  LLAMAC_SHARED(count, uint32_t);
  if (threadIdx.x == 0)
    count = 0;
  syncThreads();
  atomicAddShared(bug ? flags : &count, 1); // caught
  out[threadIdx.x] = in[threadIdx.x];
}
SEEDED(sharedAtomicOnGlobal)

/// The last of the blocks adds up what all have written.
template <typename Arrive>
LLAMAC_DEVICE void lastArriver(float *out, const float *in, int rows,
                               bool barrier, Arrive arrive) {
  LLAMAC_SHARED(isLast, bool);
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  out[i] = in[i]; // caught by lastArriverWithoutFence lastArriverWithFence lastArriverWithoutBarrier
  if (barrier)
    syncThreads();
  if (t == 0)
    isLast = arrive() == gridDim.x - 1;
  syncThreads();
  if (isLast) {
    float sum = 0;
    for (int j = t; j < rows; j += blockDim.x)
      sum += out[j]; // caught by lastArriverWithoutFence lastArriverWithFence lastArriverWithoutBarrier
    out[rows + t] = sum;
  }
}

KERNEL(lastArriverWithoutFence) {
  lastArriver(out, in, rows, true, [&] {
    return bug ? atomicAddRelaxed(flags, 1) : atomicAddAcqRel(flags, 1);
  });
}
SEEDED(lastArriverWithoutFence)

KERNEL(lastArriverWithFence) {
  lastArriver(out, in, rows, true, [&] {
    fenceGpu();
    const uint32_t before = atomicAddRelaxed(flags, 1);
    if (!bug)
      fenceGpu();
    return before;
  });
}
SEEDED(lastArriverWithFence)

KERNEL(lastArriverWithoutBarrier) {
  lastArriver(out, in, rows, !bug, [&] { return atomicAddAcqRel(flags, 1); });
}
SEEDED(lastArriverWithoutBarrier)

KERNEL(readOnlyLoadOfOutput) {
  const int t = threadIdx.x;
  out[t] = in[t]; // caught
  syncThreads();
  float value;
  if constexpr (bug)
    value = loadReadOnly(out + 63 - t); // caught
  else
    value = out[63 - t];
  syncThreads();
  out[t] = value;
}
SEEDED(readOnlyLoadOfOutput)

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

KERNEL(missingCopyWait) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  cpAsync<4>(&tile[t], in + t);
  cpAsyncCommit();
  if constexpr (!bug)
    cpAsyncWait<0>();
  syncThreads();
  out[t] = tile[63 - t]; // caught
}
SEEDED(missingCopyWait)

KERNEL(missingCommit) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  cpAsync<4>(&tile[t], in + t);
  if constexpr (!bug)
    cpAsyncCommit();
  cpAsyncWait<0>();
  syncThreads();
  out[t] = tile[63 - t]; // caught
}
SEEDED(missingCommit)

/// Two stages: tile i + 1 is under way while tile i is used.
template <int pending, bool barrierAtEnd>
LLAMAC_DEVICE void pipeline(float *out, const float *in, int rows) {
  LLAMAC_SHARED(stages, float[2][64]);
  const int t = threadIdx.x;
  const int tiles = rows / 64;
  cpAsync<4>(&stages[0][t], in + t);
  cpAsyncCommit();
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles)
      cpAsync<4>(&stages[(i + 1) % 2][t], in + (i + 1) * 64 + t); // caught by earlyRelease
    cpAsyncCommit();
    cpAsyncWait<pending>();
    syncThreads();
    out[i * 64 + t] = stages[i % 2][63 - t]; // caught by wrongWaitGroup earlyRelease
    if constexpr (barrierAtEnd)
      syncThreads();
  }
}

KERNEL(wrongWaitGroup) { pipeline<bug ? 2 : 1, true>(out, in, rows); }
SEEDED(wrongWaitGroup)

KERNEL(earlyRelease) { pipeline<1, !bug>(out, in, rows); }
SEEDED(earlyRelease)

KERNEL(missingBarrierAfterCopy) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  cpAsync<4>(&tile[t], in + t);
  cpAsyncCommit();
  cpAsyncWait<0>();
  if constexpr (!bug)
    syncThreads();
  out[t] = tile[63 - t]; // caught
}
SEEDED(missingBarrierAfterCopy)

KERNEL(misalignedCopy) {
  LLAMAC_SHARED(tile, Aligned16<float[64]>);
  const int t = threadIdx.x;
  if (t < 15)
    cpAsync<16>(&tile.words[4 * t], in + 4 * t + bug); // caught
  cpAsyncCommit();
  cpAsyncWait<0>();
  syncThreads();
  out[t] = t < 60 ? tile.words[t] : 0;
}
SEEDED(misalignedCopy)

KERNEL(misalignedLoad) {
  const int t = threadIdx.x;
  if (t < 15) {
    using Four = Vec<float, 4>;
    const Four loaded = vectorAt<const Four>(in + 4 * t + bug); // caught
    for (int i = 0; i < 4; ++i)
      out[4 * t + i] = loaded[i];
  } else if (t >= 60) {
    out[t] = 0;
  }
}
SEEDED(misalignedLoad)

KERNEL(misalignedSharedStore) {
  LLAMAC_SHARED(tile, Aligned16<float[64]>);
  const int t = threadIdx.x;
  if (t < 15) {
    using Two = Vec<float, 2>;
    for (int i = 0; i < 4; i += 2)
      vectorAt<Two>(&tile.words[4 * t + i + bug]) = // caught
          Two{{in[4 * t + i], in[4 * t + i + 1]}};
  }
  syncThreads();
  out[t] = t < 60 ? tile.words[t] : 0;
}
SEEDED(misalignedSharedStore)

KERNEL(copyBeyondInput) {
  LLAMAC_SHARED(tile, float[64]);
  const int t = threadIdx.x;
  const int i = blockIdx.x * 64 + t;
  const uint32_t valid = bug || i < rows ? 4 : 0;
  cpAsync<4>(&tile[t], in + i, valid); // caught
  cpAsyncCommit();
  cpAsyncWait<0>();
  if (i < rows)
    out[i] = tile[t];
}
SEEDED(copyBeyondInput)

KERNEL(prefetchBeyondInput) {
  const int t = threadIdx.x;
  if (t == 0)
    bulkPrefetch(in, rows * 4 + 16 * bug); // caught
  out[t] = in[t];
}
SEEDED(prefetchBeyondInput)

KERNEL(prefetchOfCopied) {
  LLAMAC_SHARED(half, Aligned16<float[32]>);
  LLAMAC_SHARED(full, uint64_t);
  const int t = threadIdx.x;
  if (t == 0) {
    mbarrierInit(&full, 1);
    mbarrierInitFence();
    mbarrierArriveExpect(&full, 128);
    bulkCopy(half.words, in, 128, &full);
    bulkPrefetch(in + 32 - 4 * bug, 128); // caught
  }
  syncThreads();
  mbarrierWait(&full, 0);
  out[t] = t < 32 ? half.words[t] : in[t];
}
SEEDED(prefetchOfCopied)

//===----------------------------------------------------------------------===//
// Barriers in shared memory
//===----------------------------------------------------------------------===//

/// Copies tiles by a ring of two stages; thread 0 starts the copies.
template <int waitParity, bool expect, bool release, bool setupBarrier>
LLAMAC_DEVICE void ring(float *out, const float *in, int rows) {
  LLAMAC_SHARED(stages, Aligned16<float[2][64]>);
  LLAMAC_SHARED(full, uint64_t[2]);
  LLAMAC_SHARED(empty, uint64_t[2]);
  const int t = threadIdx.x;
  const int tiles = rows / 64;
  if (t == 0) {
    for (int stage = 0; stage < 2; ++stage) {
      mbarrierInit(&full[stage], 1); // caught by barrierNotSetUp
      mbarrierInit(&empty[stage], 64); // caught by barrierNotSetUp
    }
    mbarrierInitFence();
  }
  if constexpr (setupBarrier)
    syncThreads();
  for (int i = 0; i < tiles; ++i) {
    const int stage = i % 2;
    if (t == 0) {
      if constexpr (release)
        mbarrierWait(&empty[stage], i / 2 % 2 ^ 1);
      if constexpr (expect)
        mbarrierArriveExpect(&full[stage], 256);
      else
        mbarrierArrive(&full[stage]);
      bulkCopy(stages.words[stage], in + i * 64, 256, &full[stage]); // caught by stageNotReleased wrongPhase
    }
    mbarrierWait(&full[stage], i / 2 % 2 ^ waitParity); // caught by wrongPhase barrierNotSetUp
    out[i * 64 + t] = stages.words[stage][63 - t]; // caught by wrongPhase missingExpect stageNotReleased
    mbarrierArrive(&empty[stage]);
  }
}

KERNEL(wrongPhase) { ring<bug, true, true, true>(out, in, rows); }
SEEDED(wrongPhase)

KERNEL(missingExpect) { ring<0, !bug, true, true>(out, in, rows); }
SEEDED(missingExpect)

KERNEL(stageNotReleased) { ring<0, true, !bug, true>(out, in, rows); }
SEEDED(stageNotReleased)

KERNEL(barrierNotSetUp) { ring<0, true, true, !bug>(out, in, rows); }
SEEDED(barrierNotSetUp)

KERNEL(arrivalsTooFew) {
  LLAMAC_SHARED(barrier, uint64_t);
  const int t = threadIdx.x;
  if (t == 0)
    mbarrierInit(&barrier, bug ? 65 : 64);
  syncThreads();
  out[t] = in[t];
  mbarrierArrive(&barrier);
  mbarrierWait(&barrier, 0); // caught
}
SEEDED(arrivalsTooFew)
