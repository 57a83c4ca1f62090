//===- Kernels.cu - Right kernels of every kind -----------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small kernels as one writes them for a GPU; KernelsTest.cpp says what each
// computes. They use what the emitted kernels use, and nothing undefined.
//
//===----------------------------------------------------------------------===//

#include "llamac/ptx.cuh"
#include "llamac/ptx_sm90.cuh"

using namespace llamac;

extern "C" __global__ void __launch_bounds__(128)
    vectorAdd(float *out, const float *a, const float *b, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows)
    out[i] = a[i] + b[i];
}

// Each block adds up its numbers in shared memory, half by half.
extern "C" __global__ void __launch_bounds__(128)
    blockSum(float *out, const float *in, int rows) {
  LLAMAC_SHARED(sums, float[128]);
  const int t = threadIdx.x;
  const int i = blockIdx.x * blockDim.x + t;
  sums[t] = i < rows ? in[i] : 0;
  syncThreads();
  for (int half = 64; half > 0; half /= 2) {
    if (t < half)
      sums[t] += sums[t + half];
    syncThreads();
  }
  if (t == 0)
    out[blockIdx.x] = sums[0];
}

// The sum by shuffles, then through one word a warp.
extern "C" __global__ void __launch_bounds__(128)
    warpSum(float *out, const float *in, int rows) {
  LLAMAC_SHARED(ofWarps, float[4]);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = i < rows ? in[i] : 0;
  for (int by = 16; by > 0; by /= 2)
    sum += shuffleXor(sum, by);
  if (laneIndex() == 0)
    ofWarps[warpIndex()] = sum;
  syncThreads();
  if (threadIdx.x == 0)
    out[blockIdx.x] = ofWarps[0] + ofWarps[1] + ofWarps[2] + ofWarps[3];
}

// 64 x 96 to 96 x 64, a 32 x 32 tile a block of 32 x 8 threads.
extern "C" __global__ void __launch_bounds__(256)
    transpose(float *out, const float *in, int rows) {
  LLAMAC_SHARED(tile, float[32][33]);
  const int columns = 32 * gridDim.x;
  const int x = threadIdx.x;
  for (int y = threadIdx.y; y < 32; y += 8)
    tile[y][x] = in[(blockIdx.y * 32 + y) * columns + blockIdx.x * 32 + x];
  syncThreads();
  for (int y = threadIdx.y; y < 32; y += 8)
    out[(blockIdx.x * 32 + y) * rows + blockIdx.y * 32 + x] = tile[x][y];
}

// Doubles numbers that come tile by tile, the next while one is used; what is
// beyond the rows comes as zero.
extern "C" __global__ void __launch_bounds__(64)
    copyPipeline(float *out, const float *in, int rows) {
  LLAMAC_SHARED_DYNAMIC(bytes);
  auto *stages = reinterpret_cast<Vec<float, 4> *>(bytes);
  const int t = threadIdx.x;
  const int tiles = ceilDiv(rows, 256);
  auto start = [&](int tile) {
    const int i = tile * 256 + 4 * t;
    const int left = rows - i;
    cpAsync<16>(&stages[tile % 2 * 64 + t], left > 0 ? in + i : in,
                left <= 0   ? 0
                : left >= 4 ? 16
                            : 4 * left);
  };
  start(0);
  cpAsyncCommit();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles)
      start(tile + 1);
    cpAsyncCommit();
    cpAsyncWait<1>();
    syncThreads();
    // A neighbour's numbers, so that the barriers matter.
    const Vec<float, 4> four = stages[tile % 2 * 64 + (t ^ 1)];
    for (int i = 0; i < 4; ++i)
      if (const int at = tile * 256 + 4 * (t ^ 1) + i; at < rows)
        out[at] = 2 * four[i];
    syncThreads();
  }
}

// copyPipeline() by bulk copies: a warp fills a ring of three stages, the other
// one empties it.
extern "C" __global__ void __launch_bounds__(64)
    bulkPipeline(float *out, const float *in, int rows) {
  LLAMAC_SHARED_DYNAMIC(bytes);
  LLAMAC_SHARED(full, uint64_t[3]);
  LLAMAC_SHARED(empty, uint64_t[3]);
  const int t = threadIdx.x;
  if (t == 0) {
    for (int stage = 0; stage < 3; ++stage) {
      mbarrierInit(&full[stage], 1);
      mbarrierInit(&empty[stage], 32);
    }
    mbarrierInitFence();
  }
  syncThreads();
  const int tiles = rows / 128;
  if (warpIndex() == 0) {
    for (int tile = 0; t == 0 && tile < tiles; ++tile) {
      const int stage = tile % 3;
      mbarrierWait(&empty[stage], tile / 3 % 2 ^ 1);
      mbarrierArriveExpect(&full[stage], 512);
      bulkCopy(bytes + stage * 512, in + tile * 128, 512, &full[stage]);
    }
  } else {
    for (int tile = 0; tile < tiles; ++tile) {
      const int stage = tile % 3;
      mbarrierWait(&full[stage], tile / 3 % 2);
      const auto *numbers =
          reinterpret_cast<const float *>(bytes + stage * 512);
      for (int i = t - 32; i < 128; i += 32)
        out[tile * 128 + i] = 2 * numbers[i];
      mbarrierArrive(&empty[stage]);
    }
  }
}

// A 64 x 64 tile of A (64 x k, rows) times B (k x 64, rows), both bfloat16:
// cp.async, ldmatrix, mma. `rows` is k.
extern "C" __global__ void __launch_bounds__(128)
    mmaTile(float *out, const BFloat16 *a, const BFloat16 *b, int rows) {
  struct Stage {
    // Rows of 32 and 64 elements with 16 bytes between them.
    BFloat16 a[64][40];
    BFloat16 b[32][72];
  };
  LLAMAC_SHARED_DYNAMIC(bytes);
  auto *stages = reinterpret_cast<Stage *>(bytes);
  const int t = threadIdx.x, lane = laneIndex(), warp = warpIndex();
  auto start = [&](int step) {
    Stage &stage = stages[step % 2];
    for (int i = t; i < 256; i += 128)
      cpAsync<16>(&stage.a[i / 4][i % 4 * 8],
                  a + i / 4 * rows + step * 32 + i % 4 * 8);
    for (int i = t; i < 256; i += 128)
      cpAsync<16>(&stage.b[i / 8][i % 8 * 8],
                  b + (step * 32 + i / 8) * 64 + i % 8 * 8);
  };
  float sums[8][4] = {};
  start(0);
  cpAsyncCommit();
  for (int step = 0; step < rows / 32; ++step) {
    if ((step + 1) * 32 < rows)
      start(step + 1);
    cpAsyncCommit();
    cpAsyncWait<1>();
    syncThreads();
    const Stage &stage = stages[step % 2];
    for (int k = 0; k < 32; k += 16) {
      uint32_t aFragment[4];
      ldmatrix(aFragment,
               &stage.a[warp * 16 + lane % 16][k + lane / 16 * 8]);
      for (int column = 0; column < 64; column += 8) {
        uint32_t bFragment[2];
        ldmatrix<2, true>(bFragment, &stage.b[k + lane % 16][column]);
        mmaBf16(sums[column / 8], aFragment, bFragment);
      }
    }
    syncThreads();
  }
  for (int column = 0; column < 64; column += 8)
    for (int i = 0; i < 4; ++i)
      out[(warp * 16 + lane / 4 + i / 2 * 8) * 64 + column + lane % 4 * 2 +
          i % 2] = sums[column / 8][i];
}

// Every block leaves a sum; the last to arrive adds them up in order, and
// leaves the counter as it found it.
extern "C" __global__ void __launch_bounds__(64)
    lastArriver(float *out, const float *in, float *partial, uint32_t *counter,
                int rows) {
  LLAMAC_SHARED(isLast, bool);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = i < rows ? in[i] : 0;
  for (int by = 16; by > 0; by /= 2)
    sum += shuffleXor(sum, by);
  if (laneIndex() == 0)
    partial[blockIdx.x * 2 + warpIndex()] = sum;
  syncThreads();
  if (threadIdx.x == 0)
    isLast = atomicAddAcqRel(counter, 1) == gridDim.x - 1;
  syncThreads();
  if (isLast && threadIdx.x == 0) {
    float total = 0;
    for (int j = 0; j < 2 * gridDim.x; ++j)
      total += partial[j];
    *out = total;
    *counter = 0;
  }
}

// All blocks wait for each other, then read what the next one wrote.
extern "C" __global__ void __launch_bounds__(32)
    gridNeighbour(float *out, const float *in, float *middle, uint32_t *counter,
                  int rows) {
  const int t = threadIdx.x;
  middle[blockIdx.x * 32 + t] = in[blockIdx.x * 32 + t];
  syncThreads();
  if (t == 0) {
    atomicAddAcqRel(counter, 1);
    while (loadAcquire(counter) < gridDim.x) {
    }
  }
  syncThreads();
  out[blockIdx.x * 32 + t] = middle[(blockIdx.x * 32 + 32 + t) % rows];
}

// One warp squares tiles, the other one adds one; they hand a tile over by
// named barriers.
extern "C" __global__ void __launch_bounds__(64)
    handOver(float *out, const float *in, int rows) {
  LLAMAC_SHARED(tile, float[32]);
  const int t = threadIdx.x;
  if (warpIndex() == 0) {
    for (int base = 0; base < rows; base += 32) {
      barrierSync(1, 64); // it is empty
      tile[t] = in[base + t] * in[base + t];
      barrierArrive(2, 64); // it is full
    }
  } else {
    barrierArrive(1, 64);
    for (int base = 0; base < rows; base += 32) {
      barrierSync(2, 64);
      out[base + t - 32] = tile[63 - t] + 1;
      if (base + 32 < rows)
        barrierArrive(1, 64);
    }
  }
}
