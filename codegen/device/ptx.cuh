//===- ptx.cuh - Every PTX instruction the kernels use ----------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inline assembly stands here, in ptx_sm90.cuh and in ptx_sm90a.cuh only: one
// named wrapper for each instruction, and beside it what the simulator runs in
// its place. All of this file needs sm_80, but what says otherwise. Fragment
// layouts are those of the PTX ISA's chapter on warp-level matrix instructions;
// `lane` is the thread's index in its warp.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_PTX_CUH
#define LLAMAC_CODEGEN_DEVICE_PTX_CUH

#include "llamac/types.cuh"

namespace llamac {

inline constexpr uint32_t fullWarp = 0xffffffffu;

/// The thread's index in its warp, for blocks of one dimension.
LLAMAC_DEVICE uint32_t laneIndex() { return threadIdx.x % 32; }

/// The warp's index in its block, for blocks of one dimension.
LLAMAC_DEVICE uint32_t warpIndex() { return threadIdx.x / 32; }

/// The 32-bit address that instructions on shared memory take.
LLAMAC_DEVICE uint32_t sharedAddress(const void *shared) {
#ifdef LLAMAC_SIM
  return llamacSim->sharedAddress(shared);
#else
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
#endif
}

//===----------------------------------------------------------------------===//
// Conversions; to nearest, ties to even
//===----------------------------------------------------------------------===//

LLAMAC_DEVICE float toFloat(float value) { return value; }

LLAMAC_DEVICE float toFloat(BFloat16 value) {
  return bitCast<float>(static_cast<uint32_t>(value.bits) << 16);
}

/// The low and the high half of a word of two bfloat16.
LLAMAC_DEVICE float lowBf16ToFloat(uint32_t pair) {
  return bitCast<float>(pair << 16);
}
LLAMAC_DEVICE float highBf16ToFloat(uint32_t pair) {
  return bitCast<float>(pair & 0xffff0000u);
}

LLAMAC_DEVICE float toFloat(Half value) {
#ifdef LLAMAC_SIM
  return llamacSim->halfToFloat(value.bits);
#else
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
#endif
}

LLAMAC_DEVICE BFloat16 toBf16(float value) {
#ifdef LLAMAC_SIM
  return {llamacSim->floatToBf16(value)};
#else
  BFloat16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#endif
}

LLAMAC_DEVICE Half toHalf(float value) {
#ifdef LLAMAC_SIM
  return {llamacSim->floatToHalf(value)};
#else
  Half result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
#endif
}

/// Two bfloat16 in a word; `low` is the first in memory.
LLAMAC_DEVICE uint32_t packBf16(float low, float high) {
#ifdef LLAMAC_SIM
  return llamacSim->floatToBf16(low) |
         static_cast<uint32_t>(llamacSim->floatToBf16(high)) << 16;
#else
  uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
#endif
}

/// Two halves in a word; `low` is the first in memory.
LLAMAC_DEVICE uint32_t packHalf(float low, float high) {
#ifdef LLAMAC_SIM
  return llamacSim->floatToHalf(low) |
         static_cast<uint32_t>(llamacSim->floatToHalf(high)) << 16;
#else
  uint32_t result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
#endif
}

/// `value` as a T: float, BFloat16 or Half.
template <typename T> LLAMAC_DEVICE T fromFloat(float value);
template <> LLAMAC_DEVICE float fromFloat<float>(float value) { return value; }
template <> LLAMAC_DEVICE BFloat16 fromFloat<BFloat16>(float value) {
  return toBf16(value);
}
template <> LLAMAC_DEVICE Half fromFloat<Half>(float value) {
  return toHalf(value);
}

/// The low and the high half of a word of two half-precision numbers.
LLAMAC_DEVICE float lowHalfToFloat(uint32_t pair) {
  return toFloat(Half{static_cast<uint16_t>(pair)});
}
LLAMAC_DEVICE float highHalfToFloat(uint32_t pair) {
  return toFloat(Half{static_cast<uint16_t>(pair >> 16)});
}

#if LLAMAC_HAS_SM89
/// Two 8-bit floats in E4M3, the low 16 bits of `pair`, as two halves a word in
/// their order: exact, and 0x7fff for a NaN. sm_89.
LLAMAC_DEVICE uint32_t e4m3x2ToHalf2(uint32_t pair) {
#ifdef LLAMAC_SIM
  return llamacSim->e4m3x2ToHalf2(pair);
#else
  uint32_t result;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;"
      : "=r"(result)
      : "h"(static_cast<uint16_t>(pair)));
  return result;
#endif
}
#endif

/// a * b + c on two halves a word, rounded once each.
LLAMAC_DEVICE uint32_t fmaHalf2(uint32_t a, uint32_t b, uint32_t c) {
#ifdef LLAMAC_SIM
  return llamacSim->fmaHalf2(a, b, c);
#else
  uint32_t result;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
#endif
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// 2^x, to about 2 units in the last place; 0 for x = -inf.
LLAMAC_DEVICE float exp2Approx(float x) {
#ifdef LLAMAC_SIM
  return exp2f(x);
#else
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#endif
}

/// 1 / x, to about 1 unit in the last place.
LLAMAC_DEVICE float rcpApprox(float x) {
#ifdef LLAMAC_SIM
  return 1.0f / x;
#else
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#endif
}

/// 1 / sqrt(x), to about 2 units in the last place.
LLAMAC_DEVICE float rsqrtApprox(float x) {
#ifdef LLAMAC_SIM
  return 1.0f / sqrtf(x);
#else
  float result;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#endif
}

/// sum + the dot product of four signed bytes of each word.
LLAMAC_DEVICE int32_t dp4a(uint32_t a, uint32_t b, int32_t sum) {
#ifdef LLAMAC_SIM
  for (int i = 0; i < 4; ++i)
    sum += static_cast<int8_t>(a >> 8 * i) * static_cast<int8_t>(b >> 8 * i);
  return sum;
#else
  int32_t result;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
#endif
}

/// Byte i of the result is byte `selector >> 4 * i & 7` of the eight bytes
/// b:a, a's lowest being number 0; with bit 3 of the selector, its sign.
LLAMAC_DEVICE uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector) {
#ifdef LLAMAC_SIM
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t pick = selector >> 4 * i & 0xf;
    uint32_t byte = bytes >> 8 * (pick & 7) & 0xff;
    if (pick & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
#else
  uint32_t result;
  asm("prmt.b32 %0, %1, %2, %3;"
      : "=r"(result)
      : "r"(a), "r"(b), "r"(selector));
  return result;
#endif
}

/// Any function of three bits, on every bit: `table` is that function applied
/// to a = 0xf0, b = 0xcc, c = 0xaa.
template <uint32_t table>
LLAMAC_DEVICE uint32_t lop3(uint32_t a, uint32_t b, uint32_t c) {
#ifdef LLAMAC_SIM
  uint32_t result = 0;
  for (int row = 0; row < 8; ++row)
    if (table >> row & 1)
      result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  return result;
#else
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, %4;"
      : "=r"(result)
      : "r"(a), "r"(b), "r"(c), "n"(table));
  return result;
#endif
}

//===----------------------------------------------------------------------===//
// Warps. All lanes of `mask` must come, with the same mask.
//===----------------------------------------------------------------------===//

#ifdef LLAMAC_SIM
#define LLAMAC_SHUFFLE(name, kind, ptx, clamp)                                 \
  LLAMAC_DEVICE uint32_t name##Bits(uint32_t mask, uint32_t value,             \
                                    uint32_t by) {                             \
    return llamacSim->shuffle(mask, kind, value, by);                          \
  }
#else
#define LLAMAC_SHUFFLE(name, kind, ptx, clamp)                                 \
  LLAMAC_DEVICE uint32_t name##Bits(uint32_t mask, uint32_t value,             \
                                    uint32_t by) {                             \
    uint32_t result;                                                           \
    asm volatile("shfl.sync." ptx ".b32 %0, %1, %2, " clamp ", %3;"            \
                 : "=r"(result)                                                \
                 : "r"(value), "r"(by), "r"(mask));                            \
    return result;                                                             \
  }
#endif
LLAMAC_SHUFFLE(shuffle, SimShuffle::Lane, "idx", "31")
LLAMAC_SHUFFLE(shuffleXor, SimShuffle::Xor, "bfly", "31")
LLAMAC_SHUFFLE(shuffleDown, SimShuffle::Down, "down", "31")
LLAMAC_SHUFFLE(shuffleUp, SimShuffle::Up, "up", "0")
#undef LLAMAC_SHUFFLE

/// `value` of lane `lane`. T is any type of 4 bytes here and below.
template <typename T>
LLAMAC_DEVICE T shuffle(T value, uint32_t lane, uint32_t mask = fullWarp) {
  return bitCast<T>(shuffleBits(mask, bitCast<uint32_t>(value), lane));
}

/// `value` of lane `lane ^ by`.
template <typename T>
LLAMAC_DEVICE T shuffleXor(T value, uint32_t by, uint32_t mask = fullWarp) {
  return bitCast<T>(shuffleXorBits(mask, bitCast<uint32_t>(value), by));
}

/// `value` of lane `lane + by`, the own one past the last lane.
template <typename T>
LLAMAC_DEVICE T shuffleDown(T value, uint32_t by, uint32_t mask = fullWarp) {
  return bitCast<T>(shuffleDownBits(mask, bitCast<uint32_t>(value), by));
}

/// `value` of lane `lane - by`, the own one before the first lane.
template <typename T>
LLAMAC_DEVICE T shuffleUp(T value, uint32_t by, uint32_t mask = fullWarp) {
  return bitCast<T>(shuffleUpBits(mask, bitCast<uint32_t>(value), by));
}

/// The lanes whose `condition` holds, as bits.
LLAMAC_DEVICE uint32_t warpBallot(bool condition, uint32_t mask = fullWarp) {
#ifdef LLAMAC_SIM
  return llamacSim->ballot(mask, condition);
#else
  uint32_t result;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0;\n"
               "  vote.sync.ballot.b32 %0, p, %2; }"
               : "=r"(result)
               : "r"(static_cast<uint32_t>(condition)), "r"(mask));
  return result;
#endif
}

/// Whether `condition` holds for some, or for all, lanes of `mask`.
LLAMAC_DEVICE bool warpAny(bool condition, uint32_t mask = fullWarp) {
  return warpBallot(condition, mask) != 0;
}
LLAMAC_DEVICE bool warpAll(bool condition, uint32_t mask = fullWarp) {
  return warpBallot(condition, mask) == mask;
}

/// Reductions of a word over the lanes of `mask`; every lane gets the result.
#ifdef LLAMAC_SIM
#define LLAMAC_REDUCE(name, type, kind, ptx)                                   \
  LLAMAC_DEVICE type name(type value, uint32_t mask = fullWarp) {              \
    return static_cast<type>(                                                  \
        llamacSim->reduce(mask, kind, static_cast<uint32_t>(value)));          \
  }
#else
#define LLAMAC_REDUCE(name, type, kind, ptx)                                   \
  LLAMAC_DEVICE type name(type value, uint32_t mask = fullWarp) {              \
    type result;                                                               \
    asm volatile("redux.sync." ptx " %0, %1, %2;"                              \
                 : "=r"(result)                                                \
                 : "r"(value), "r"(mask));                                     \
    return result;                                                             \
  }
#endif
LLAMAC_REDUCE(reduceAdd, int32_t, SimReduce::Add, "add.s32")
LLAMAC_REDUCE(reduceMin, int32_t, SimReduce::MinSigned, "min.s32")
LLAMAC_REDUCE(reduceMax, int32_t, SimReduce::MaxSigned, "max.s32")
LLAMAC_REDUCE(reduceMinUnsigned, uint32_t, SimReduce::MinUnsigned, "min.u32")
LLAMAC_REDUCE(reduceMaxUnsigned, uint32_t, SimReduce::MaxUnsigned, "max.u32")
LLAMAC_REDUCE(reduceOr, uint32_t, SimReduce::Or, "or.b32")
#undef LLAMAC_REDUCE

/// Makes the lanes of `mask` meet, and orders their accesses to memory.
LLAMAC_DEVICE void syncWarp(uint32_t mask = fullWarp) {
#ifdef LLAMAC_SIM
  llamacSim->syncWarp(mask);
#else
  asm volatile("bar.warp.sync %0;" ::"r"(mask) : "memory");
#endif
}

//===----------------------------------------------------------------------===//
// Barriers of a block, and fences
//===----------------------------------------------------------------------===//

/// Makes all threads of the block meet, and orders their accesses.
LLAMAC_DEVICE void syncThreads() {
#ifdef LLAMAC_SIM
  LLAMAC_SIM_IN_PLACE llamacSim->barrier(0, 0, true);
#else
  asm volatile("bar.sync 0;" ::: "memory");
#endif
}

/// Makes `threads` threads, whole warps, meet at barrier `id` of 1 to 15.
LLAMAC_DEVICE void barrierSync(uint32_t id, uint32_t threads) {
#ifdef LLAMAC_SIM
  LLAMAC_SIM_IN_PLACE llamacSim->barrier(id, threads, true);
#else
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#endif
}

/// Counts as one of the `threads` of barrier `id` without waiting there.
LLAMAC_DEVICE void barrierArrive(uint32_t id, uint32_t threads) {
#ifdef LLAMAC_SIM
  LLAMAC_SIM_IN_PLACE llamacSim->barrier(id, threads, false);
#else
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
#endif
}

/// Orders the thread's accesses for its block, or for the whole GPU.
LLAMAC_DEVICE void fenceBlock() {
#ifdef LLAMAC_SIM
  llamacSim->fence();
#else
  asm volatile("fence.acq_rel.cta;" ::: "memory");
#endif
}
LLAMAC_DEVICE void fenceGpu() {
#ifdef LLAMAC_SIM
  llamacSim->fence();
#else
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

/// Reads a T of 4, 8 or 16 bytes that nothing writes while the kernel runs.
template <typename T> LLAMAC_DEVICE T loadReadOnly(const T *global) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16,
                "one load reads 4, 8 or 16 bytes");
#ifdef LLAMAC_SIM
  llamacSim->checkReadOnly(global, sizeof(T));
  return *global;
#else
  if constexpr (sizeof(T) == 4) {
    uint32_t word;
    asm volatile("ld.global.nc.b32 %0, [%1];" : "=r"(word) : "l"(global));
    return bitCast<T>(word);
  } else if constexpr (sizeof(T) == 8) {
    Vec<uint32_t, 2> words;
    asm volatile("ld.global.nc.v2.b32 {%0, %1}, [%2];"
                 : "=r"(words.values[0]), "=r"(words.values[1])
                 : "l"(global));
    return bitCast<T>(words);
  } else {
    Words4 words;
    asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.values[0]), "=r"(words.values[1]),
                   "=r"(words.values[2]), "=r"(words.values[3])
                 : "l"(global));
    return bitCast<T>(words);
  }
#endif
}

/// A word that other blocks may be writing; later accesses stay after it.
LLAMAC_DEVICE uint32_t loadAcquire(const uint32_t *global) {
#ifdef LLAMAC_SIM
  return llamacSim->loadAcquire(global);
#else
  uint32_t result;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
               : "=r"(result)
               : "l"(global)
               : "memory");
  return result;
#endif
}

/// Writes a word that other blocks read; earlier accesses stay before it.
LLAMAC_DEVICE void storeRelease(uint32_t *global, uint32_t value) {
#ifdef LLAMAC_SIM
  llamacSim->storeRelease(global, value);
#else
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(global), "r"(value)
               : "memory");
#endif
}

/// Adds to a word of global memory and gives what it held. AcqRel orders the
/// accesses before and after it: the last of several arrivers sees what all
/// the others wrote. Relaxed orders nothing.
LLAMAC_DEVICE uint32_t atomicAddAcqRel(uint32_t *global, uint32_t value) {
#ifdef LLAMAC_SIM
  return llamacSim->atomicAdd(global, value, SimOrder::AcqRel);
#else
  uint32_t result;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(result)
               : "l"(global), "r"(value)
               : "memory");
  return result;
#endif
}
LLAMAC_DEVICE uint32_t atomicAddRelaxed(uint32_t *global, uint32_t value) {
#ifdef LLAMAC_SIM
  return llamacSim->atomicAdd(global, value, SimOrder::Relaxed);
#else
  uint32_t result;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
               : "=r"(result)
               : "l"(global), "r"(value)
               : "memory");
  return result;
#endif
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

/// Adds to a word of shared memory and gives what it held; orders nothing. The
/// sum is the same in whatever order threads come. There is none for 64 bits:
/// that is a loop of compare-and-swap on a GPU.
LLAMAC_DEVICE uint32_t atomicAddShared(uint32_t *shared, uint32_t value) {
#ifdef LLAMAC_SIM
  return llamacSim->atomicAddShared(shared, value);
#else
  uint32_t result;
  asm volatile("atom.relaxed.cta.shared.add.u32 %0, [%1], %2;"
               : "=r"(result)
               : "r"(sharedAddress(shared)), "r"(value)
               : "memory");
  return result;
#endif
}

//===----------------------------------------------------------------------===//
// Asynchronous copies from global to shared memory
//===----------------------------------------------------------------------===//

/// Starts copying `size` bytes (4, 8 or 16, to which both pointers are
/// aligned), of which the first `valid` are read and the rest are zero.
template <int size>
LLAMAC_DEVICE void cpAsync(void *shared, const void *global,
                           uint32_t valid = size) {
  static_assert(size == 4 || size == 8 || size == 16,
                "cp.async copies 4, 8 or 16 bytes");
#ifdef LLAMAC_SIM
  llamacSim->cpAsync(shared, global, size, valid);
#else
  if constexpr (size == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     sharedAddress(shared)),
                 "l"(global), "r"(valid)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(
                     sharedAddress(shared)),
                 "l"(global), "n"(size), "r"(valid)
                 : "memory");
#endif
}

/// Closes the thread's group of the copies that it started since the last one.
LLAMAC_DEVICE void cpAsyncCommit() {
#ifdef LLAMAC_SIM
  llamacSim->cpAsyncCommit();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most the newest `pending` of the thread's groups are under
/// way. Other threads see the bytes after a barrier that follows.
template <int pending> LLAMAC_DEVICE void cpAsyncWait() {
#ifdef LLAMAC_SIM
  llamacSim->cpAsyncWait(pending);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

//===----------------------------------------------------------------------===//
// Matrix fragments
//===----------------------------------------------------------------------===//

/// Loads `count` (1, 2 or 4) matrices of 8 rows of 16 bytes. Lane 8 * i + r
/// gives the address of row r of matrix i, 16-byte aligned; fragment[i] of lane
/// l is word l % 4 of row l / 4. With `transpose` the elements are 16 bits, and
/// fragment[i] is rows 2 * (l % 4) and the next, column l / 4.
template <int count, bool transpose = false>
LLAMAC_DEVICE void ldmatrix(uint32_t (&fragment)[count],
                            const void *sharedRow) {
  static_assert(count == 1 || count == 2 || count == 4,
                "ldmatrix loads 1, 2 or 4 matrices");
#ifdef LLAMAC_SIM
  llamacSim->ldmatrix(fragment, count, transpose, sharedRow);
#else
  const uint32_t address = sharedAddress(sharedRow);
  if constexpr (count == 1 && !transpose)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(fragment[0])
                 : "r"(address)
                 : "memory");
  else if constexpr (count == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(fragment[0])
                 : "r"(address)
                 : "memory");
  else if constexpr (count == 2 && !transpose)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(fragment[0]), "=r"(fragment[1])
                 : "r"(address)
                 : "memory");
  else if constexpr (count == 2)
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
        : "=r"(fragment[0]), "=r"(fragment[1])
        : "r"(address)
        : "memory");
  else if constexpr (!transpose)
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]),
          "=r"(fragment[3])
        : "r"(address)
        : "memory");
  else
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, "
        "[%4];"
        : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]),
          "=r"(fragment[3])
        : "r"(address)
        : "memory");
#endif
}

/// d += a * b for a 16 x 16 (rows), b 16 x 8 (columns), d 16 x 8. With g =
/// lane / 4 and t = lane % 4, two elements of 16 bits a word:
///   a[0], a[2]: row g, columns 2t and 2t + 8; a[1], a[3]: row g + 8
///   b[0], b[1]: column g, rows 2t and 2t + 8
///   d[0], d[1]: row g, columns 2t, 2t + 1; d[2], d[3]: row g + 8
#ifdef LLAMAC_SIM
#define LLAMAC_MMA(name, kind, ptx)                                            \
  LLAMAC_DEVICE void name(float(&d)[4], const uint32_t(&a)[4],                 \
                          const uint32_t(&b)[2]) {                             \
    llamacSim->mma(kind, d, a, b);                                             \
  }
#else
#define LLAMAC_MMA(name, kind, ptx)                                            \
  LLAMAC_DEVICE void name(float(&d)[4], const uint32_t(&a)[4],                 \
                          const uint32_t(&b)[2]) {                             \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." ptx ".f32 "          \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "              \
                 "{%0, %1, %2, %3};"                                           \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])              \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),      \
                   "r"(b[1]));                                                 \
  }
#endif
LLAMAC_MMA(mmaBf16, SimMma::Bf16, "bf16.bf16")
LLAMAC_MMA(mmaHalf, SimMma::Half, "f16.f16")
#undef LLAMAC_MMA

/// d += a * b for signed bytes, a 16 x 32 (rows), b 32 x 8 (columns). As above
/// with four elements a word: a[0], a[2]: row g, columns 4t and 4t + 16; a[1],
/// a[3]: row g + 8; b[0], b[1]: column g, rows 4t and 4t + 16.
LLAMAC_DEVICE void mmaInt8(int32_t (&d)[4], const uint32_t (&a)[4],
                           const uint32_t (&b)[2]) {
#ifdef LLAMAC_SIM
  llamacSim->mma(SimMma::Int8, d, a, b);
#else
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),
                 "r"(b[1]));
#endif
}

} // namespace llamac

#endif // LLAMAC_CODEGEN_DEVICE_PTX_CUH
