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
// for a GPU. `in` has 1,024 words, `out` starts as zero.
//
//===----------------------------------------------------------------------===//

#include "llamac/ptx.cuh"
#include "llamac/ptx_sm90.cuh"

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
WRAPPER(floatToBf16) { FOR_EACH out[i] = toBf16(asFloat(in[i])).bits; }
WRAPPER(floatToHalf) { FOR_EACH out[i] = toHalf(asFloat(in[i])).bits; }
WRAPPER(conversionByType) {
  FOR_EACH {
    out[i] = asBits(fromFloat<float>(asFloat(in[i])));
    out[256 + i] = fromFloat<BFloat16>(asFloat(in[i])).bits;
    out[512 + i] = fromFloat<Half>(asFloat(in[i])).bits;
  }
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
WRAPPER(fmaOfHalves) {
  FOR_EACH out[i] = fmaHalf2(in[i], in[i + 256], in[i + 512]);
}
WRAPPER(powerOfTwo) { FOR_EACH out[i] = asBits(exp2Approx(asFloat(in[i]))); }
WRAPPER(reciprocal) { FOR_EACH out[i] = asBits(rcpApprox(asFloat(in[i]))); }
WRAPPER(reciprocalRoot) {
  FOR_EACH out[i] = asBits(rsqrtApprox(asFloat(in[i])));
}
WRAPPER(dotOfBytes) { FOR_EACH out[i] = dp4a(in[i], in[i + 256], in[i + 512]); }
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
  out[32 + t] = warpAny(in[t] == in[5]);
  out[64 + t] = warpAll(in[t] == in[5]);
  out[96 + t] = warpAll(in[t] != 0);
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
WRAPPER(atomics) {
  // What each lane gets is open; all of it together is not.
  const uint32_t first = atomicAddRelaxed(out, 1);
  out[32 + first] = 1;
  syncWarp();
  const uint32_t second = atomicAddAcqRel(out + 1, 2);
  out[64 + second / 2] = 1;
  syncWarp();
  fenceBlock();
  fenceGpu();
  if (threadIdx.x == 0)
    storeRelease(out + 2, in[0]);
  syncWarp();
  out[96 + threadIdx.x] = loadAcquire(out + 2);
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
    fenceProxyAsync();
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
