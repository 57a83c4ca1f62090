//===- Dependent.cu - Chains of launches with one bug each ------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chain is firstLaunch, secondLaunch and one of the kernels below: the first
// writes 2 x weights to `a`, the second a + 1 to `b`. Each of the others writes
// a + b + weights to `out`, once with its bug, which the simulator must name at
// a line marked "caught", and once without. Blocks have 64 threads, and
// everything has a float for each; the maps are of rows of 64.
//
//===----------------------------------------------------------------------===//

#include "llamac/ptx.cuh"
#include "llamac/ptx_sm90a.cuh"

using namespace llamac;

#define PARAMETERS                                                             \
  float *out, float *a, float *b, const float *weights,                        \
      LLAMAC_TENSOR_MAP(bMap), LLAMAC_TENSOR_MAP(weightMap)

extern "C" __global__ void firstLaunch(PARAMETERS, int rows) {
  gridDependencyTrigger();
  gridDependencyWait();
  const int i = blockIdx.x * 64 + threadIdx.x;
  a[i] = 2 * weights[i];
}

extern "C" __global__ void secondLaunch(PARAMETERS, int rows) {
  gridDependencyTrigger();
  gridDependencyWait();
  const int i = blockIdx.x * 64 + threadIdx.x;
  b[i] = a[i] + 1;
}

/// secondLaunch() by words.
extern "C" __global__ void secondByWords(PARAMETERS, int rows) {
  gridDependencyWait();
  const int i = blockIdx.x * 64 + threadIdx.x;
  auto *word = reinterpret_cast<uint32_t *>(&b[i]);
  storeRelaxed(word, 0);
  storeRelaxed(word, bitCast<uint32_t>(a[i] + 1));
}

#define CHAIN(name)                                                            \
  template <bool bug> LLAMAC_DEVICE void name(PARAMETERS, int i);              \
  extern "C" __global__ void name##Bug(PARAMETERS, int rows) {                 \
    name<true>(out, a, b, weights, bMap, weightMap,                            \
               blockIdx.x * 64 + threadIdx.x);                                 \
  }                                                                            \
  extern "C" __global__ void name##Fixed(PARAMETERS, int rows) {               \
    name<false>(out, a, b, weights, bMap, weightMap,                           \
                blockIdx.x * 64 + threadIdx.x);                                \
  }                                                                            \
  template <bool bug> LLAMAC_DEVICE void name(PARAMETERS, int i)

CHAIN(missingWait) {
  const float weight = weights[i];
  if constexpr (!bug)
    gridDependencyWait();
  out[i] = a[i] + b[i] + weight; // caught
}

CHAIN(readBeforeTheWait) {
  float early = 0;
  if constexpr (bug)
    early = b[i]; // caught
  gridDependencyWait();
  out[i] = a[i] + (bug ? early : b[i]) + weights[i];
}

CHAIN(wordReadBeforeTheWait) {
  float early = 0;
  if constexpr (bug)
    early = b[i]; // caught
  gridDependencyWait();
  out[i] = a[i] + (bug ? early : b[i]) + weights[i];
}

CHAIN(relaxedLoadBeforeTheWait) {
  auto *word = reinterpret_cast<const uint32_t *>(&b[i]);
  uint32_t early = 0;
  if constexpr (bug)
    early = loadRelaxed(word); // caught
  gridDependencyWait();
  out[i] = a[i] + bitCast<float>(bug ? early : loadRelaxed(word)) + weights[i];
}

/// Reads what the launch before the previous one writes, which may run too.
CHAIN(readOfTheFirst) {
  float early = 0;
  if constexpr (bug)
    early = a[i]; // caught
  gridDependencyWait();
  out[i] = (bug ? early : a[i]) + b[i] + weights[i];
}

CHAIN(writeBeforeTheWait) {
  if constexpr (bug)
    out[i] = 0; // caught
  gridDependencyWait();
  out[i] = a[i] + b[i] + weights[i];
}

/// The weights may be copied early, activations may not.
CHAIN(copyOfTheFirst) {
  LLAMAC_SHARED(tile, Vec<float, 4>[16]);
  LLAMAC_SHARED(full, uint64_t);
  if (threadIdx.x == 0) {
    mbarrierInit(&full, 1);
    mbarrierInitFence();
    mbarrierArriveExpect(&full, 256);
    bulkCopy(tile, (bug ? a : weights) + blockIdx.x * 64, 256, &full); // caught
  }
  gridDependencyWait();
  syncThreads();
  mbarrierWait(&full, 0);
  const float copied = tile[threadIdx.x / 4][threadIdx.x % 4];
  out[i] = (bug ? copied : a[i]) + b[i] + (bug ? weights[i] : copied);
}

/// A product that copies the first of its weights early: both at the wait, or
/// the weights before it.
CHAIN(boxesBeforeTheWait) {
  LLAMAC_SHARED_DYNAMIC(bytes);
  LLAMAC_SHARED(full, uint64_t);
  if (threadIdx.x == 0) {
    mbarrierInit(&full, 1);
    mbarrierInitFence();
    mbarrierArriveExpect(&full, 512);
    tensorLoad(bytes, weightMap, 0, blockIdx.x, &full);
    if constexpr (bug)
      tensorLoad(bytes + 256, bMap, 0, blockIdx.x, &full); // caught
  }
  gridDependencyWait();
  if (!bug && threadIdx.x == 0)
    tensorLoad(bytes + 256, bMap, 0, blockIdx.x, &full);
  syncThreads();
  mbarrierWait(&full, 0);
  const float *copied = reinterpret_cast<const float *>(bytes);
  out[i] = a[i] + copied[64 + threadIdx.x] + copied[threadIdx.x];
}

CHAIN(asyncCopyBeforeTheWait) {
  LLAMAC_SHARED(tile, float[64]);
  if constexpr (!bug)
    gridDependencyWait();
  cpAsync<4>(&tile[threadIdx.x], b + i); // caught
  cpAsyncCommit();
  if constexpr (bug)
    gridDependencyWait();
  cpAsyncWait<0>();
  out[i] = a[i] + tile[threadIdx.x] + weights[i];
}

/// A wait of one thread is not seen by the others, and a block without waits
/// lets the next launch run too early.
CHAIN(oneThreadWaits) {
  if (!bug || threadIdx.x == 0)
    gridDependencyWait();
  syncThreads();
  out[i] = a[i] + b[i] + weights[i]; // caught
}
