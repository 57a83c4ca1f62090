//===- Golden.cu - Kernels that are compared with CUTLASS -------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// These kernels do not know how operands lie: registers and shared memory are
// filled with what GoldenTest.cpp gives, and handed back as they are. Only the
// functions of the device headers that are asked here know.
//
//===----------------------------------------------------------------------===//

#include "llamac/attention_sm90a.cuh"
#include "llamac/gemm_sm90a.cuh"

using namespace llamac;
using namespace llamac::cuda;

#define KERNEL extern "C" __global__ void __launch_bounds__(384)

/// Copies `bytes` bytes of `in` to shared memory, for all proxies.
LLAMAC_DEVICE void fill(unsigned char *shared, const uint32_t *in, int bytes) {
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x)
    vectorAt<uint32_t>(shared + 4 * i) = in[i];
  fenceProxyAsync();
  syncThreads();
}

//===----------------------------------------------------------------------===//
// Fragments of a warp
//===----------------------------------------------------------------------===//

/// in: 32 rows of 16 bytes, of which each lane gives the address of one.
template <int count, bool transpose>
LLAMAC_DEVICE void loadMatrices(uint32_t *out, const uint32_t *in) {
  LLAMAC_SHARED_DYNAMIC(shared);
  fill(shared, in, 512);
  uint32_t fragment[count];
  ldmatrix<count, transpose>(fragment, shared + 16 * threadIdx.x);
  for (int i = 0; i < count; ++i)
    out[count * threadIdx.x + i] = fragment[i];
}
#define LOAD(name, count, transpose)                                           \
  KERNEL name(uint32_t *out, const uint32_t *in, int rows) {                   \
    loadMatrices<count, transpose>(out, in);                                   \
  }
LOAD(matrices1, 1, false)
LOAD(matrices2, 2, false)
LOAD(matrices4, 4, false)
LOAD(transposed1, 1, true)
LOAD(transposed2, 2, true)
LOAD(transposed4, 4, true)

#define MULTIPLY(name, type, multiply)                                         \
  KERNEL name(type *out, const uint32_t *a, const uint32_t *b, int rows) {     \
    const int lane = threadIdx.x;                                              \
    const uint32_t ownA[4] = {a[4 * lane], a[4 * lane + 1], a[4 * lane + 2],   \
                              a[4 * lane + 3]};                                \
    const uint32_t ownB[2] = {b[2 * lane], b[2 * lane + 1]};                   \
    type d[4] = {};                                                            \
    multiply(d, ownA, ownB);                                                   \
    for (int i = 0; i < 4; ++i)                                                \
      out[4 * lane + i] = d[i];                                                \
  }
MULTIPLY(multiplyBf16, float, mmaBf16)
MULTIPLY(multiplyHalf, float, mmaHalf)
MULTIPLY(multiplyInt8, int, mmaInt8)

//===----------------------------------------------------------------------===//
// Products of a warpgroup
//===----------------------------------------------------------------------===//

/// The sum of `steps` products. a: the threads' fragments of each step; or, by
/// descriptors, as bytes, as b is: then their descriptors follow b's.
template <int columns, bool transposed, bool aShared>
LLAMAC_DEVICE void multiplyGroup(float *out, const uint32_t *a, int aBytes,
                                 const uint32_t *b, int bBytes,
                                 const uint64_t *descriptors, int steps) {
  LLAMAC_SHARED_DYNAMIC(shared);
  fill(shared, b, bBytes);
  if constexpr (aShared)
    fill(shared + bBytes, a, aBytes);
  const uint32_t startB = sharedAddress(shared) / 16;
  const uint32_t startA = sharedAddress(shared + bBytes) / 16;
  float d[columns / 2] = {};
  for (int step = 0; step < steps; ++step) {
    const uint64_t own = descriptors[step] + startB;
    uint32_t fragment[4] = {};
    if constexpr (!aShared)
      for (int i = 0; i < 4; ++i)
        fragment[i] = a[(step * 128 + threadIdx.x) * 4 + i];
    wgmmaFence();
    if constexpr (aShared)
      wgmmaBf16<transposed>(d, descriptors[steps + step] + startA, own);
    else
      wgmmaBf16<transposed>(d, fragment, own);
    wgmmaCommit();
    wgmmaWait<0>();
  }
  for (int i = 0; i < columns / 2; ++i)
    out[threadIdx.x * (columns / 2) + i] = d[i];
}
#define MULTIPLY_GROUP(name, columns, transposed, aShared)                     \
  KERNEL name(float *out, const uint32_t *a, const uint32_t *b,                \
              const uint64_t *descriptors, const int *sizes, int steps) {      \
    multiplyGroup<columns, transposed, aShared>(out, a, sizes[0], b, sizes[1], \
                                                descriptors, steps);           \
  }
MULTIPLY_GROUP(group16, 16, false, false)
MULTIPLY_GROUP(group32, 32, false, false)
MULTIPLY_GROUP(group64, 64, false, false)
MULTIPLY_GROUP(group128, 128, false, false)
MULTIPLY_GROUP(group256, 256, false, false)
MULTIPLY_GROUP(group64Shared, 64, false, true)
MULTIPLY_GROUP(group64Transposed, 64, true, false)
MULTIPLY_GROUP(group128Transposed, 128, true, false)

//===----------------------------------------------------------------------===//
// Tensor copies
//===----------------------------------------------------------------------===//

KERNEL copyBox(uint32_t *out, LLAMAC_TENSOR_MAP(map), int bytes) {
  LLAMAC_SHARED_DYNAMIC(shared);
  LLAMAC_SHARED(barrier, uint64_t);
  if (threadIdx.x == 0) {
    mbarrierInit(&barrier, 1);
    mbarrierInitFence();
    fenceProxyAsync();
    mbarrierArriveExpect(&barrier, bytes);
    tensorLoad(shared, map, 0, 0, &barrier);
  }
  syncThreads();
  mbarrierWait(&barrier, 0);
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x)
    out[i] = vectorAt<uint32_t>(shared + 4 * i);
}

//===----------------------------------------------------------------------===//
// Formulas of the device headers
//===----------------------------------------------------------------------===//

/// Where each of the first `bytes` bytes lies.
template <int rowBytes> LLAMAC_DEVICE void swizzle(uint32_t *out, int bytes) {
  for (int i = threadIdx.x; i < bytes; i += blockDim.x)
    out[i] = swizzled<rowBytes>(i);
}
KERNEL swizzle128(uint32_t *out, int bytes) { swizzle<128>(out, bytes); }
KERNEL swizzle64(uint32_t *out, int bytes) { swizzle<64>(out, bytes); }
KERNEL swizzle32(uint32_t *out, int bytes) { swizzle<32>(out, bytes); }

constexpr WgmmaConfig twoPanels = {
    .format = WeightFormat::BF16, .parts = {256}, .depth = 64, .panels = 2};
using TwoPanels = WgmmaMath<twoPanels>;

/// The descriptors of both operands of a slice by step, for stages at byte 0.
KERNEL describeSlice(uint64_t *out, int rows) {
  LLAMAC_SHARED_DYNAMIC(shared);
  if (threadIdx.x != 128) // The first one that multiplies.
    return;
  const WgmmaRing<twoPanels> ring{.stages = shared};
  const auto slices = TwoPanels(ring).slices;
  const uint64_t input = sharedAddress(shared) / 16;
  const uint64_t weights = sharedAddress(shared + wgmmaInputBytes(twoPanels)) / 16;
  for (int k = 0; k < productSlice / 16; ++k) {
    out[2 * k] = WgmmaRing<twoPanels>::atStep(slices.input, k) - input;
    out[2 * k + 1] = WgmmaRing<twoPanels>::atStep(ring.weightsDescriptor(), k) - weights;
  }
}

/// 64 rows of a depth of 16 or 32 that no kernel has yet.
KERNEL describeOthers(uint64_t *out, int rows) {
  LLAMAC_SHARED_DYNAMIC(shared);
  const uint64_t start = sharedAddress(shared) / 16;
  out[0] = matrixDescriptor(shared, 0, 512, Swizzle::Bytes64) - start;
  out[1] = matrixDescriptor(shared, 0, 256, Swizzle::Bytes32) - start;
  out[2] = matrixDescriptor(shared, 128, 256, Swizzle::None) - start;
  out[3] = matrixDescriptor(shared, 1024, 512, Swizzle::Bytes64) - start;
  out[4] = matrixDescriptor(shared, 512, 256, Swizzle::Bytes32) - start;
}

/// The descriptors of a stage's keys and of its values, by step.
template <long head> LLAMAC_DEVICE void describeStage(uint64_t *out) {
  using Math = WgmmaAttention<AttentionConfig{
      .kv = {.kvHeads = 1, .headSize = head, .pagesPerSequence = 1},
      .heads = 1,
      .scale = 1}>;
  LLAMAC_SHARED_DYNAMIC(shared);
  const uint64_t keys = sharedAddress(shared) / 16;
  const uint64_t values = keys + keyTile * head * 2 / 16;
  for (int k = 0; k < head / 16; ++k)
    *out++ = Math::keysAt(shared, k) - keys;
  for (int k = 0; k < keyTile / 16; ++k)
    *out++ = Math::valuesAt(shared, k) - values;
}
KERNEL describeStage64(uint64_t *out, int rows) { describeStage<64>(out); }
KERNEL describeStage128(uint64_t *out, int rows) { describeStage<128>(out); }
