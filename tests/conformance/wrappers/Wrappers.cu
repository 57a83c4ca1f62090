//===- Wrappers.cu - A kernel for each PTX wrapper --------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One block each, of 32 threads or 64: words in, words out, so that the same
// kernels and the same expectations (WrapperCases.cpp) do for the simulator and
// for a GPU. `in` has 1,024 words, `out` starts as zero. Those of sm_90a have a
// map of `in` before `rows`, as their case says, and some a cluster of two
// blocks.
//
//===----------------------------------------------------------------------===//

#include "llamac/ptx.cuh"
#include "llamac/ptx_sm90.cuh"
#include "llamac/ptx_sm90a.cuh"
#include "llamac/weights.cuh"

using namespace llamac;

#define WRAPPER(name)                                                          \
  extern "C" __global__ void __launch_bounds__(64)                             \
      name(uint32_t *out, const uint32_t *in, int rows)

LLAMAC_DEVICE float asFloat(uint32_t bits) { return bitCast<float>(bits); }
LLAMAC_DEVICE uint32_t asBits(float value) { return bitCast<uint32_t>(value); }

//===----------------------------------------------------------------------===//
// Conversions and arithmetic: out[i] of in[i], in[i + 256], in[i + 512]
//===----------------------------------------------------------------------===//

#define FOR_EACH for (int i = threadIdx.x; i < 256; i += 32)

WRAPPER(bf16ToFloat) {
  FOR_EACH out[i] = asBits(toFloat(BFloat16{uint16_t(in[i])}));
}
WRAPPER(halfToFloat) {
  FOR_EACH out[i] = asBits(toFloat(Half{uint16_t(in[i])}));
}
WRAPPER(lowAndHighBf16) {
  FOR_EACH out[i] =
      asBits(lowBf16ToFloat(in[i])) ^ asBits(highBf16ToFloat(in[i])) >> 1;
}
WRAPPER(pairOfBf16) {
  FOR_EACH out[i] = packBf16(asFloat(in[i]), asFloat(in[i + 256]));
}
WRAPPER(pairOfHalf) {
  FOR_EACH out[i] = packHalf(asFloat(in[i]), asFloat(in[i + 256]));
}
WRAPPER(halvesOfPair) {
  FOR_EACH out[i] =
      asBits(lowHalfToFloat(in[i])) ^ asBits(highHalfToFloat(in[i])) >> 1;
}
#if LLAMAC_HAS_SM89
WRAPPER(halvesOfE4m3) {
  // Every element, in either place.
  FOR_EACH {
    out[i] = e4m3x2ToHalf2(in[i] << 8 | i);
    out[256 + i] = e4m3x2ToHalf2(i << 8 | (in[i] & 0xff));
  }
}
#endif
WRAPPER(floatsOfE4m3ByBits) {
  // The code in place of that before sm_89: every element, in each of four
  // places beside any others.
  FOR_EACH for (int place = 0; place < 4; ++place) {
    const uint32_t others = in[i] & ~(0xffu << 8 * place);
    const uint32_t pair =
        cuda::e4m3ToHalvesByBits(others | i << 8 * place)[place / 2];
    out[256 * place + i] =
        asBits(place % 2 ? highHalfToFloat(pair) : lowHalfToFloat(pair));
  }
}
WRAPPER(fmaOfHalves) {
  FOR_EACH out[i] = fmaHalf2(in[i], in[i + 256], in[i + 512]);
}
WRAPPER(fmaOfBf16) {
  FOR_EACH out[i] = fmaBf162(in[i], in[i + 256], in[i + 512]);
}
WRAPPER(fmaOfFarBf16) {
  // A product at a tie, and a sum that is far below its last digit or none.
  FOR_EACH {
    const uint32_t tie = 0x3f803f81u + (i % 64 * 2) * 0x00010001u;
    out[i] =
        fmaBf162(tie, 0x3fc03fc0u, in[i] & 0x80008000u | i % 2 * 0x01010101u);
  }
}
WRAPPER(fmaOfFloats) {
  FOR_EACH out[i] = asBits(
      llamac::fma(asFloat(in[i]), asFloat(in[i + 256]), asFloat(in[i + 512])));
}
WRAPPER(largerNumber) {
  FOR_EACH out[i] = asBits(maximumNumber(asFloat(in[i]), asFloat(in[i + 256])));
}
WRAPPER(powerOfTwo) { FOR_EACH out[i] = asBits(exp2Approx(asFloat(in[i]))); }
WRAPPER(logarithm) { FOR_EACH out[i] = asBits(log2Approx(asFloat(in[i]))); }
WRAPPER(reciprocal) { FOR_EACH out[i] = asBits(rcpApprox(asFloat(in[i]))); }
WRAPPER(reciprocalRoot) {
  FOR_EACH out[i] = asBits(rsqrtApprox(asFloat(in[i])));
}
WRAPPER(permute) { FOR_EACH out[i] = prmt(in[i], in[i + 256], in[i + 512]); }
WRAPPER(logicSelect) {
  FOR_EACH out[i] = lop3<0xca>(in[i], in[i + 256], in[i + 512]);
}
WRAPPER(logicParity) {
  FOR_EACH out[i] = lop3<0x96>(in[i], in[i + 256], in[i + 512]);
}

//===----------------------------------------------------------------------===//
// Warps: out[lane] of in[lane]
//===----------------------------------------------------------------------===//

WRAPPER(indices) { out[threadIdx.x] = 100 * warpIndex() + laneIndex(); }
WRAPPER(shuffleLane) {
  out[threadIdx.x] = shuffle(in[threadIdx.x], in[threadIdx.x + 32] % 32);
}
WRAPPER(shuffleXorBy5) { out[threadIdx.x] = shuffleXor(in[threadIdx.x], 5); }
WRAPPER(shuffleDownBy3) { out[threadIdx.x] = shuffleDown(in[threadIdx.x], 3); }
WRAPPER(shuffleUpBy3) { out[threadIdx.x] = shuffleUp(in[threadIdx.x], 3); }
WRAPPER(shuffleHalves) {
  // Two halves of the warp at two places.
  if (threadIdx.x < 16)
    out[threadIdx.x] = shuffle(in[threadIdx.x], 3, 0x0000ffff);
  else
    out[threadIdx.x] = shuffle(in[threadIdx.x], 20, 0xffff0000);
}
WRAPPER(votes) {
  const int t = threadIdx.x;
  out[t] = warpBallot(in[t] & 1);
}
WRAPPER(reductions) {
  const int t = threadIdx.x;
  const int value = static_cast<int>(in[t]);
  out[t] = reduceAdd(value);
  out[32 + t] = reduceMin(value);
  out[64 + t] = reduceMax(value);
  out[96 + t] = reduceMinUnsigned(in[t]);
  out[128 + t] = reduceMaxUnsigned(in[t]);
  out[160 + t] = reduceOr(in[t] & 0x11111111);
}
WRAPPER(warpExchange) {
  LLAMAC_SHARED(words, uint32_t[32]);
  words[threadIdx.x] = in[threadIdx.x];
  syncWarp();
  out[threadIdx.x] = words[31 - threadIdx.x];
}

//===----------------------------------------------------------------------===//
// Barriers, by two warps: one makes words, the other waits for them
//===----------------------------------------------------------------------===//

WRAPPER(blockExchange) {
  LLAMAC_SHARED(words, uint32_t[64]);
  words[threadIdx.x] = in[threadIdx.x];
  syncThreads();
  out[threadIdx.x] = words[63 - threadIdx.x];
}
WRAPPER(namedBarriers) {
  LLAMAC_SHARED(words, uint32_t[32]);
  LLAMAC_SHARED(own, uint32_t[32]);
  const uint32_t lane = laneIndex();
  if (warpIndex() == 1) {
    words[lane] = in[lane];
    barrierArrive(1, 64);
    own[lane] = in[32 + lane];
    barrierSync(2, 32);
    out[32 + lane] = own[31 - lane];
  } else {
    barrierSync(1, 64);
    out[lane] = words[31 - lane];
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

WRAPPER(readOnlyLoads) {
  const int t = threadIdx.x;
  out[t] = loadReadOnly(in + t);
  const auto two =
      loadReadOnly(reinterpret_cast<const Vec<uint32_t, 2> *>(in) + t);
  const auto four = loadReadOnly(reinterpret_cast<const Words4 *>(in) + t);
  for (int i = 0; i < 2; ++i)
    out[32 + 2 * t + i] = two[i];
  for (int i = 0; i < 4; ++i)
    out[96 + 4 * t + i] = four[i];
}
WRAPPER(loadsOfWhatIsReadOnce) {
  const int t = threadIdx.x;
  out[t] = loadOnce(in + t);
  const auto two = loadOnce(reinterpret_cast<const Vec<uint32_t, 2> *>(in) + t);
  const auto four = loadOnce(reinterpret_cast<const Words4 *>(in) + t);
  for (int i = 0; i < 2; ++i)
    out[32 + 2 * t + i] = two[i];
  for (int i = 0; i < 4; ++i)
    out[96 + 4 * t + i] = four[i];
}
WRAPPER(atomics) {
  // The number that each lane gets is open; all of them together are not.
  const uint32_t first = atomicAddRelaxed(out, 1);
  out[32 + first] = 1;
  syncWarp();
  const uint32_t second = atomicAddAcqRel(out + 1, 2);
  out[64 + second / 2] = 1;
  syncWarp();
  fenceGpu();
  if (threadIdx.x == 0)
    storeRelease(out + 2, in[0]);
  syncWarp();
  out[96 + threadIdx.x] = loadAcquire(out + 2);
}
WRAPPER(relaxedWords) {
  const uint32_t t = threadIdx.x;
  const uint64_t before = globalTimer();
  storeRelaxed(out + t, in[t]);
  if (t < 16)
    storeRelaxed2(out + 32 + 2 * t, {{in[32 + 2 * t], in[33 + 2 * t]}});
  if (t < 8)
    storeRelaxed4(out + 64 + 4 * t, {{in[64 + 4 * t], in[65 + 4 * t],
                                      in[66 + 4 * t], in[67 + 4 * t]}});
  syncWarp();
  // Each width is read by another one.
  const Words4 four = loadRelaxed4(out + t % 8 * 4);
  const Words2 two = loadRelaxed2(out + 64 + t % 16 * 2);
  out[96 + t] = four[t % 4];
  out[128 + t] = two[t % 2];
  out[160 + t] = loadRelaxed(out + 32 + (t ^ 1));
  if (globalTimer() < before)
    trap();
}
WRAPPER(sharedAtomics) {
  LLAMAC_SHARED(sums, uint32_t[4]);
  if (threadIdx.x < 4)
    sums[threadIdx.x] = 0xffffffff;
  syncWarp();
  // Each of a word's eight lanes gets another of the sums on the way; they
  // wrap.
  const uint32_t before = atomicAddShared(&sums[threadIdx.x % 4], 1);
  out[32 + threadIdx.x % 4 * 8 + (before + 1)] = 1;
  syncWarp();
  atomicAddShared(&sums[threadIdx.x % 4], in[threadIdx.x]);
  syncWarp();
  out[threadIdx.x] = sums[threadIdx.x % 4];
}

template <int size>
LLAMAC_DEVICE void copyThroughShared(uint32_t *out, const uint32_t *in) {
  LLAMAC_SHARED_DYNAMIC(bytes);
  constexpr int words = size / 4;
  const int t = threadIdx.x;
  // The valid part of each piece shrinks from lane to lane.
  cpAsync<size>(bytes + t * size, in + t * words, size - t % (size + 1));
  cpAsyncCommit();
  cpAsyncWait<0>();
  syncThreads();
  const auto *copied = reinterpret_cast<const uint32_t *>(bytes);
  for (int i = t; i < 32 * words; i += 32)
    out[i] = copied[i];
}
WRAPPER(copy4) { copyThroughShared<4>(out, in); }
WRAPPER(copy8) { copyThroughShared<8>(out, in); }
WRAPPER(copy16) { copyThroughShared<16>(out, in); }

#if LLAMAC_HAS_SM90
WRAPPER(bulk) {
  LLAMAC_SHARED_DYNAMIC(bytes);
  LLAMAC_SHARED(barrier, uint64_t);
  const int t = threadIdx.x;
  if (t == 0) {
    mbarrierInit(&barrier, 32);
    mbarrierInitFence();
  }
  syncThreads();
  gridDependencyWait();
  for (int phase = 0; phase < 2; ++phase) {
    if (t == 0) {
      mbarrierArriveExpect(&barrier, 512);
      bulkCopy(bytes + phase * 512, in + phase * 128, 512, &barrier);
    } else {
      mbarrierArrive(&barrier);
    }
    mbarrierWait(&barrier, phase);
  }
  gridDependencyTrigger();
  const auto *copied = reinterpret_cast<const uint32_t *>(bytes);
  for (int i = t; i < 256; i += 32)
    out[i] = copied[i];
}
WRAPPER(elect) {
  // One lane, whichever it is; what it asks L2 for is not read.
  const bool isElected = electLane();
  if (isElected)
    bulkPrefetch(in, 4096);
  out[threadIdx.x] = reduceAdd(isElected);
}
WRAPPER(phases) {
  LLAMAC_SHARED(barrier, uint64_t);
  const int t = threadIdx.x;
  if (t == 0)
    mbarrierInit(&barrier, 32);
  syncThreads();
  out[t] = mbarrierTryWait(&barrier, 1);
  out[32 + t] = mbarrierTryWait(&barrier, 0);
  syncThreads();
  mbarrierArrive(&barrier);
  mbarrierWait(&barrier, 0);
  out[64 + t] = mbarrierTryWait(&barrier, 0);
  out[96 + t] = mbarrierTryWait(&barrier, 1);
}
#endif

//===----------------------------------------------------------------------===//
// Matrices
//===----------------------------------------------------------------------===//

template <int count, bool transpose>
LLAMAC_DEVICE void loadMatrices(uint32_t *out, const uint32_t *in) {
  LLAMAC_SHARED_DYNAMIC(bytes);
  auto *words = reinterpret_cast<uint32_t *>(bytes);
  const int t = threadIdx.x;
  for (int i = t; i < 128; i += 32)
    words[i] = in[i];
  syncThreads();
  uint32_t fragment[count];
  ldmatrix<count, transpose>(fragment, words + 4 * t);
  for (int i = 0; i < count; ++i)
    out[32 * i + t] = fragment[i];
}
WRAPPER(matrices1) { loadMatrices<1, false>(out, in); }
WRAPPER(matrices2) { loadMatrices<2, false>(out, in); }
WRAPPER(matrices4) { loadMatrices<4, false>(out, in); }
WRAPPER(transposed1) { loadMatrices<1, true>(out, in); }
WRAPPER(transposed2) { loadMatrices<2, true>(out, in); }
WRAPPER(transposed4) { loadMatrices<4, true>(out, in); }

/// in: a by rows, then b by columns, then d by rows, as words; out: d by rows.
template <typename T, typename Multiply>
LLAMAC_DEVICE void multiplyMatrices(uint32_t *out, const uint32_t *in,
                                    Multiply multiply) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  const uint32_t *b = in + 128, *c = in + 192;
  const uint32_t aWords[4] = {in[g * 8 + t], in[(g + 8) * 8 + t],
                              in[g * 8 + t + 4], in[(g + 8) * 8 + t + 4]};
  const uint32_t bWords[2] = {b[g * 8 + t], b[g * 8 + t + 4]};
  T d[4];
  for (int i = 0; i < 4; ++i)
    d[i] = bitCast<T>(c[(g + i / 2 * 8) * 8 + 2 * t + i % 2]);
  multiply(d, aWords, bWords);
  for (int i = 0; i < 4; ++i)
    out[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = bitCast<uint32_t>(d[i]);
}
WRAPPER(multiplyBf16) {
  multiplyMatrices<float>(out, in,
                          [](auto &d, auto &a, auto &b) { mmaBf16(d, a, b); });
}
WRAPPER(multiplyHalf) {
  multiplyMatrices<float>(out, in,
                          [](auto &d, auto &a, auto &b) { mmaHalf(d, a, b); });
}
WRAPPER(multiplyInt8) {
  multiplyMatrices<int>(out, in,
                        [](auto &d, auto &a, auto &b) { mmaInt8(d, a, b); });
}

//===----------------------------------------------------------------------===//
// sm_90a: tensor copies, clusters, products of a warpgroup
//===----------------------------------------------------------------------===//

#if LLAMAC_HAS_SM90A
#define TIER_WRAPPER(name)                                                     \
  extern "C" __global__ void __launch_bounds__(256, 1) name(                   \
      uint32_t *out, const uint32_t *in, LLAMAC_TENSOR_MAP(map), int rows)

/// A barrier of one arrival, set up for all threads that reach it.
LLAMAC_DEVICE void setUp(uint64_t *barrier, uint32_t arrivals = 1) {
  if (threadIdx.x == 0) {
    mbarrierInit(barrier, arrivals);
    mbarrierInitFence();
  }
  syncThreads();
}

/// Four boxes of `words` words, as they lie in shared memory: inside of the
/// matrix of 30 rows, across its end, across its right side, and before it.
template <int columns, int boxRows>
LLAMAC_DEVICE void copyBoxes(uint32_t *out, const TensorMap &map) {
  LLAMAC_SHARED_DYNAMIC(bytes);
  LLAMAC_SHARED(barrier, uint64_t);
  setUp(&barrier);
  constexpr int words = columns * boxRows;
  constexpr int at[4][2] = {{4, 8}, {0, 24}, {20, 2}, {-4, -3}};
  if (threadIdx.x == 0) {
    mbarrierArriveExpect(&barrier, 4 * words * 4);
    for (int i = 0; i < 4; ++i)
      tensorLoad(bytes + i * words * 4, map, at[i][0], at[i][1], &barrier);
  }
  mbarrierWait(&barrier, 0);
  const auto *copied = reinterpret_cast<const uint32_t *>(bytes);
  for (int i = threadIdx.x; i < 4 * words; i += blockDim.x)
    out[i] = copied[i];
}
TIER_WRAPPER(boxes) { copyBoxes<8, 16>(out, map); }
TIER_WRAPPER(boxesSwizzled32) { copyBoxes<8, 32>(out, map); }
TIER_WRAPPER(boxesSwizzled64) { copyBoxes<16, 16>(out, map); }
TIER_WRAPPER(boxesSwizzled128) { copyBoxes<32, 8>(out, map); }

TIER_WRAPPER(boxesToBothBlocks) {
  // Block i brings box i of 8 rows of 32 words to both blocks.
  LLAMAC_SHARED_DYNAMIC(bytes);
  LLAMAC_SHARED(barrier, uint64_t);
  setUp(&barrier);
  clusterArrive();
  clusterWait();
  const uint32_t rank = clusterRank();
  if (threadIdx.x == 0) {
    mbarrierArriveExpect(&barrier, 2048);
    tensorLoadMulticast(bytes + rank * 1024, map, 0, 8 * rank, &barrier, 3);
  }
  mbarrierWait(&barrier, 0);
  const auto *copied = reinterpret_cast<const uint32_t *>(bytes);
  for (int i = threadIdx.x; i < 512; i += blockDim.x)
    out[512 * rank + i] = copied[i];
  clusterArrive();
  clusterWait();
}

TIER_WRAPPER(arriveInOtherBlock) {
  // Block 1 goes on once all threads of block 0 have arrived at its barrier.
  LLAMAC_SHARED(barrier, uint64_t);
  setUp(&barrier, 32);
  const uint32_t rank = clusterRank();
  out[32 + 32 * rank + threadIdx.x] = rank;
  clusterArrive();
  clusterWait();
  if (rank == 0) {
    mbarrierArriveCluster(&barrier, 1);
  } else {
    mbarrierWait(&barrier, 0);
    out[threadIdx.x] = in[31 - threadIdx.x];
  }
  clusterArrive();
  clusterWait();
}

/// Puts element (row, k) of a matrix of 16-deep rows into shared memory, or of
/// its transpose: rows contiguous.
template <uint32_t span>
LLAMAC_DEVICE uint32_t elementAt(uint32_t row, uint32_t k, bool transposed) {
  // Core matrices of 8 x 16 bytes, two along the depth.
  if constexpr (span == 0)
    return row / 8 * 256 + k / 8 * 128 + row % 8 * 16 + k % 8 * 2;
  // Rows of `span` bytes in groups of eight; for a transpose one row is one k,
  // and blocks of span / 2 columns of all 16 follow each other.
  else
    return swizzled<span>(transposed ? row / (span / 2) * 16 * span + k * span +
                                           row % (span / 2) * 2
                                     : row * span + k * 2);
}
LLAMAC_DEVICE uint64_t descriptorOf(const void *matrix, uint32_t span,
                                    bool transposed) {
  if (span == 0)
    return matrixDescriptor(matrix, 128, 256, Swizzle::None);
  return matrixDescriptor(matrix, transposed ? 16 * span : 0, 8 * span,
                          span == 128  ? Swizzle::Bytes128
                          : span == 64 ? Swizzle::Bytes64
                                       : Swizzle::Bytes32);
}

/// out = 2 a b: a is [64][16], in[0 .. 511], b [columns][16] from in[512] on,
/// round and round. Two products, the first of which overwrites what the sums
/// held. `span` is the swizzle's of b, and of a when that is in shared memory.
template <bool half, int columns, bool aShared, bool transposed, uint32_t span>
LLAMAC_DEVICE void multiplyGroup(uint32_t *out, const uint32_t *in) {
  LLAMAC_SHARED_DYNAMIC(bytes);
  unsigned char *bytesA = bytes, *bytesB = bytes + 8192;
  const int t = threadIdx.x;
  auto element = [&](int i) -> uint16_t {
    return in[i / 2 % 1024] >> i % 2 * 16;
  };
  for (int i = t; i < 64 * 16; i += 128)
    *reinterpret_cast<uint16_t *>(
        bytesA + elementAt<span>(i / 16, i % 16, false)) = element(i);
  for (int i = t; i < columns * 16; i += 128)
    *reinterpret_cast<uint16_t *>(bytesB +
                                  elementAt<span>(i / 16, i % 16, transposed)) =
        element(1024 + i);
  fenceProxyAsync();
  syncThreads();
  const int row = warpIndex() * 16 + laneIndex() / 4, pair = laneIndex() % 4;
  const uint32_t a[4] = {in[row * 8 + pair], in[(row + 8) * 8 + pair],
                         in[row * 8 + pair + 4], in[(row + 8) * 8 + pair + 4]};
  const uint64_t b = descriptorOf(bytesB, span, transposed);
  float d[columns / 2];
  for (int i = 0; i < columns / 2; ++i)
    d[i] = 7;
  auto multiply = [&](bool accumulate) {
    if constexpr (aShared && half)
      wgmmaHalf<transposed>(d, descriptorOf(bytesA, span, false), b,
                            accumulate);
    else if constexpr (aShared)
      wgmmaBf16<transposed>(d, descriptorOf(bytesA, span, false), b,
                            accumulate);
    else if constexpr (half)
      wgmmaHalf<transposed>(d, a, b, accumulate);
    else
      wgmmaBf16<transposed>(d, a, b, accumulate);
  };
  wgmmaFence();
  multiply(false);
  multiply(true);
  wgmmaCommit();
  wgmmaWait<0>();
  for (int i = 0; i < columns / 2; ++i)
    out[(row + i / 2 % 2 * 8) * columns + i / 4 * 8 + 2 * pair + i % 2] =
        asBits(d[i]);
}
TIER_WRAPPER(groupBf1664) {
  multiplyGroup<false, 64, false, false, 128>(out, in);
}
TIER_WRAPPER(groupBf1664Shared) {
  multiplyGroup<false, 64, true, false, 128>(out, in);
}
TIER_WRAPPER(groupBf1664Transposed) {
  multiplyGroup<false, 64, false, true, 128>(out, in);
}
TIER_WRAPPER(groupBf16128) {
  multiplyGroup<false, 128, false, false, 128>(out, in);
}
TIER_WRAPPER(groupBf16128Shared) {
  multiplyGroup<false, 128, true, false, 128>(out, in);
}
TIER_WRAPPER(groupBf16128Transposed) {
  multiplyGroup<false, 128, false, true, 128>(out, in);
}
TIER_WRAPPER(groupBf16256) {
  multiplyGroup<false, 256, false, false, 128>(out, in);
}
TIER_WRAPPER(groupBf16256Shared) {
  multiplyGroup<false, 256, true, false, 128>(out, in);
}
TIER_WRAPPER(groupBf16256Transposed) {
  multiplyGroup<false, 256, false, true, 128>(out, in);
}
TIER_WRAPPER(groupHalf64) {
  multiplyGroup<true, 64, false, false, 128>(out, in);
}
TIER_WRAPPER(groupHalf64Shared) {
  multiplyGroup<true, 64, true, false, 128>(out, in);
}
TIER_WRAPPER(groupHalf64Transposed) {
  multiplyGroup<true, 64, false, true, 128>(out, in);
}
TIER_WRAPPER(groupHalf128) {
  multiplyGroup<true, 128, false, false, 128>(out, in);
}
TIER_WRAPPER(groupHalf128Shared) {
  multiplyGroup<true, 128, true, false, 128>(out, in);
}
TIER_WRAPPER(groupHalf128Transposed) {
  multiplyGroup<true, 128, false, true, 128>(out, in);
}
TIER_WRAPPER(groupHalf256) {
  multiplyGroup<true, 256, false, false, 128>(out, in);
}
TIER_WRAPPER(groupHalf256Shared) {
  multiplyGroup<true, 256, true, false, 128>(out, in);
}
TIER_WRAPPER(groupHalf256Transposed) {
  multiplyGroup<true, 256, false, true, 128>(out, in);
}
TIER_WRAPPER(groupNoSwizzle) {
  multiplyGroup<false, 64, true, false, 0>(out, in);
}
TIER_WRAPPER(groupSwizzle64) {
  multiplyGroup<false, 64, true, false, 64>(out, in);
}
TIER_WRAPPER(groupSwizzle32) {
  multiplyGroup<false, 64, true, false, 32>(out, in);
}
TIER_WRAPPER(groupTransposedSwizzle64) {
  multiplyGroup<false, 64, false, true, 64>(out, in);
}
TIER_WRAPPER(groupTransposedSwizzle32) {
  multiplyGroup<false, 64, false, true, 32>(out, in);
}

TIER_WRAPPER(registersMoved) {
  // One warpgroup takes the registers that the other gives.
  uint32_t value = in[threadIdx.x];
  if (threadIdx.x < 128) {
    registersGive<24>();
    value += 1;
  } else {
    registersTake<232>();
    value += 2;
  }
  out[threadIdx.x] = value;
}
#endif
