//===- Bandwidth.cu - Reads and copies of all of a buffer ----- -*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `rows` MiB of `in`; what a GPU's memory gives at best. Sums go to `out` so
// that no read can be left out: one word for each thread.
//
//===----------------------------------------------------------------------===//

#include "llamac/ptx.cuh"

using namespace llamac;

namespace {
constexpr long wordsOfMib = (1 << 20) / 16;
constexpr int unroll = 8;
} // namespace

/// A thread has `unroll` loads of 16 bytes under way.
extern "C" __global__ void __launch_bounds__(512)
    readAll(uint32_t *out, const uint32_t *in, int rows) {
  const auto *words = reinterpret_cast<const Words4 *>(in);
  const long thread = blockIdx.x * long(blockDim.x) + threadIdx.x;
  const long threads = gridDim.x * long(blockDim.x);
  uint32_t sum = 0;
  for (long at = thread; at < rows * wordsOfMib; at += threads * unroll) {
    Words4 held[unroll];
#pragma unroll
    for (int i = 0; i < unroll; ++i) {
      const long word = at + i * threads;
      held[i] = word < rows * wordsOfMib ? loadOnce(words + word) : Words4{};
    }
#pragma unroll
    for (int i = 0; i < unroll; ++i)
      sum ^= held[i][0] ^ held[i][1] ^ held[i][2] ^ held[i][3];
  }
  out[thread] = sum;
}

/// out = in.
extern "C" __global__ void __launch_bounds__(512)
    copyAll(uint32_t *out, const uint32_t *in, int rows) {
  const auto *from = reinterpret_cast<const Words4 *>(in);
  auto *to = reinterpret_cast<Words4 *>(out);
  const long threads = gridDim.x * long(blockDim.x);
  for (long at = blockIdx.x * long(blockDim.x) + threadIdx.x;
       at < rows * wordsOfMib; at += threads)
    to[at] = loadOnce(from + at);
}
