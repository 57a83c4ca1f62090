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
// its place. All of this file needs sm_80 unless it says otherwise. The PTX
// ISA's chapter on warp-level matrix instructions has the fragment layouts.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_PTX_CUH
#define LLAMAC_CODEGEN_DEVICE_PTX_CUH

#include "llamac/types.cuh"

// The body of a wrapper: what the simulator runs, or the instruction and its
// inputs. LLAMAC_PTX has side effects on memory. The others return a `type` in
// a register of the class `in`: LLAMAC_PTX_READ with such side effects,
// LLAMAC_PTX_WARP once for each time that lanes come, LLAMAC_PTX_PURE neither.
#ifdef LLAMAC_SIM
#define LLAMAC_PTX(simulated, ...) simulated
#define LLAMAC_PTX_READ(type, in, simulated, ...) return simulated
#define LLAMAC_PTX_WARP(type, in, simulated, ...) return simulated
#define LLAMAC_PTX_PURE(type, in, simulated, ...) return simulated
#else
#define LLAMAC_PTX(simulated, ptx, ...)                                        \
  asm volatile(ptx : : __VA_ARGS__ : "memory")
#define LLAMAC_PTX_READ(type, in, simulated, ptx, ...)                         \
  type result;                                                                 \
  asm volatile(ptx : "=" in(result) : __VA_ARGS__ : "memory");                 \
  return result
#define LLAMAC_PTX_WARP(type, in, simulated, ptx, ...)                         \
  type result;                                                                 \
  asm volatile(ptx : "=" in(result) : __VA_ARGS__);                            \
  return result
#define LLAMAC_PTX_PURE(type, in, simulated, ptx, ...)                         \
  type result;                                                                 \
  asm(ptx : "=" in(result) : __VA_ARGS__);                                     \
  return result
#endif

namespace llamac {

inline constexpr uint32_t fullWarp = 0xffffffffu;

LLAMAC_DEVICE uint32_t laneIndex() { return threadIdx.x % 32; }

LLAMAC_DEVICE uint32_t warpIndex() { return threadIdx.x / 32; }

/// The 32-bit address that instructions on shared memory take.
LLAMAC_DEVICE uint32_t sharedAddress(const void *shared) {
#ifdef LLAMAC_SIM
  return llamacSim->sharedAddress(shared);
#else
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
#endif
}

// Conversions; to nearest, ties to even

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
  LLAMAC_PTX_PURE(float, "f", llamacSim->halfToFloat(value.bits),
                  "cvt.f32.f16 %0, %1;", "h"(value.bits));
}

/// Two bfloat16, or two halves, in a word; `low` is the first in memory.
LLAMAC_DEVICE uint32_t packBf16(float low, float high) {
  LLAMAC_PTX_PURE(uint32_t, "r",
                  llamacSim->floatToBf16(low) |
                      uint32_t(llamacSim->floatToBf16(high)) << 16,
                  "cvt.rn.bf16x2.f32 %0, %1, %2;", "f"(high), "f"(low));
}
LLAMAC_DEVICE uint32_t packHalf(float low, float high) {
  LLAMAC_PTX_PURE(uint32_t, "r",
                  llamacSim->floatToHalf(low) |
                      uint32_t(llamacSim->floatToHalf(high)) << 16,
                  "cvt.rn.f16x2.f32 %0, %1, %2;", "f"(high), "f"(low));
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
  LLAMAC_PTX_PURE(uint32_t, "r", llamacSim->e4m3x2ToHalf2(pair),
                  "cvt.rn.f16x2.e4m3x2 %0, %1;",
                  "h"(static_cast<uint16_t>(pair)));
}
#endif

/// a * b + c on two halves a word, rounded once each.
LLAMAC_DEVICE uint32_t fmaHalf2(uint32_t a, uint32_t b, uint32_t c) {
  LLAMAC_PTX_PURE(uint32_t, "r", llamacSim->fmaHalf2(a, b, c),
                  "fma.rn.f16x2 %0, %1, %2, %3;", "r"(a), "r"(b), "r"(c));
}

/// fmaHalf2() on two bfloat16 in a word.
LLAMAC_DEVICE uint32_t fmaBf162(uint32_t a, uint32_t b, uint32_t c) {
  LLAMAC_PTX_PURE(uint32_t, "r", llamacSim->fmaBf162(a, b, c),
                  "fma.rn.bf16x2 %0, %1, %2, %3;", "r"(a), "r"(b), "r"(c));
}

// Arithmetic

/// a * b + c, rounded once. Every multiply-add is written as one: kernels are
/// compiled so that no product and sum beside it become one (--fmad=false),
/// since a compiler would do so in one copy of a loop and not in another, and a
/// row's bits would depend on its place in a tile.
LLAMAC_DEVICE float fma(float a, float b, float c LLAMAC_SIM_SITE) {
#ifdef LLAMAC_SIM
  return LLAMAC_SIM_ROUNDED(__builtin_fmaf(a, b, c),
                            double(a) * double(b) + double(c), a, b, c);
#else
  return fmaf(a, b, c);
#endif
}

/// The larger of two numbers, the other one where one is NaN: an instruction,
/// where maxOf() of floats is two.
LLAMAC_DEVICE float maximumNumber(float a, float b) {
#ifdef LLAMAC_SIM
  return __builtin_fmaxf(a, b);
#else
  return fmaxf(a, b);
#endif
}

/// 2^x, to about 2 units in the last place; 0 for x = -inf.
LLAMAC_DEVICE float exp2Approx(float x LLAMAC_SIM_SITE) {
  LLAMAC_PTX_PURE(float, "f",
                  LLAMAC_SIM_ROUNDED(exp2f(x), __builtin_exp2(x), x),
                  "ex2.approx.ftz.f32 %0, %1;", "f"(x));
}

/// The logarithm of x to base 2, to 2^-22 of it, between 1/2 and 2 to 2^-22; x
/// is above 0.
LLAMAC_DEVICE float log2Approx(float x LLAMAC_SIM_SITE) {
  LLAMAC_PTX_PURE(float, "f",
                  LLAMAC_SIM_ROUNDED(log2f(x), __builtin_log2(x), x),
                  "lg2.approx.ftz.f32 %0, %1;", "f"(x));
}

/// 1 / x, to about 1 unit in the last place.
LLAMAC_DEVICE float rcpApprox(float x LLAMAC_SIM_SITE) {
  LLAMAC_PTX_PURE(float, "f", LLAMAC_SIM_ROUNDED(1.0f / x, 1.0 / x, x),
                  "rcp.approx.ftz.f32 %0, %1;", "f"(x));
}

/// 1 / sqrt(x), to about 2 units in the last place.
LLAMAC_DEVICE float rsqrtApprox(float x LLAMAC_SIM_SITE) {
  LLAMAC_PTX_PURE(
      float, "f",
      LLAMAC_SIM_ROUNDED(1.0f / sqrtf(x), 1.0 / __builtin_sqrt(x), x),
      "rsqrt.approx.ftz.f32 %0, %1;", "f"(x));
}

/// Byte i of the result is byte `selector >> 4 * i & 7` of the eight bytes
/// b:a, a's lowest being number 0; with bit 3 of the selector, its sign.
LLAMAC_DEVICE uint32_t prmt(uint32_t a, uint32_t b, uint32_t selector) {
#ifdef LLAMAC_SIM
  const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t choice = selector >> 4 * i & 0xf;
    uint32_t byte = bytes >> 8 * (choice & 7) & 0xff;
    if (choice & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= byte << 8 * i;
  }
  return result;
#else
  LLAMAC_PTX_PURE(uint32_t, "r", , "prmt.b32 %0, %1, %2, %3;", "r"(a), "r"(b),
                  "r"(selector));
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
  LLAMAC_PTX_PURE(uint32_t, "r", , "lop3.b32 %0, %1, %2, %3, %4;", "r"(a),
                  "r"(b), "r"(c), "n"(table));
#endif
}

// Warps. All lanes of `mask` must come, with the same mask.

#define LLAMAC_SHUFFLE(name, kind, ptx, clamp)                                 \
  LLAMAC_DEVICE uint32_t name##Bits(uint32_t mask, uint32_t value,             \
                                    uint32_t by) {                             \
    LLAMAC_PTX_WARP(uint32_t, "r", llamacSim->shuffle(mask, kind, value, by),  \
                    "shfl.sync." ptx ".b32 %0, %1, %2, " clamp ", %3;",        \
                    "r"(value), "r"(by), "r"(mask));                           \
  }                                                                            \
  template <typename T>                                                        \
  LLAMAC_DEVICE T name(T value, uint32_t by, uint32_t mask = fullWarp) {       \
    return bitCast<T>(name##Bits(mask, bitCast<uint32_t>(value), by));         \
  }
/// `value`, of any type of 4 bytes, of lane `by`, `lane ^ by`, `lane + by` and
/// `lane - by`; the own one where there is no such lane.
LLAMAC_SHUFFLE(shuffle, SimShuffle::Lane, "idx", "31")
LLAMAC_SHUFFLE(shuffleXor, SimShuffle::Xor, "bfly", "31")
LLAMAC_SHUFFLE(shuffleDown, SimShuffle::Down, "down", "31")
LLAMAC_SHUFFLE(shuffleUp, SimShuffle::Up, "up", "0")
#undef LLAMAC_SHUFFLE

/// The lanes whose `condition` holds, as bits.
LLAMAC_DEVICE uint32_t warpBallot(bool condition, uint32_t mask = fullWarp) {
  LLAMAC_PTX_WARP(uint32_t, "r", llamacSim->ballot(mask, condition),
                  "{ .reg .pred p; setp.ne.u32 p, %1, 0;\n"
                  "  vote.sync.ballot.b32 %0, p, %2; }",
                  "r"(static_cast<uint32_t>(condition)), "r"(mask));
}

/// Reductions of a word over the lanes of `mask`; every lane gets the result.
#define LLAMAC_REDUCE(name, type, kind, ptx)                                   \
  LLAMAC_DEVICE type name(type value, uint32_t mask = fullWarp) {              \
    LLAMAC_PTX_WARP(type, "r",                                                 \
                    static_cast<type>(llamacSim->reduce(                       \
                        mask, kind, static_cast<uint32_t>(value))),            \
                    "redux.sync." ptx " %0, %1, %2;", "r"(value), "r"(mask));  \
  }
LLAMAC_REDUCE(reduceAdd, int32_t, SimReduce::Add, "add.s32")
LLAMAC_REDUCE(reduceMin, int32_t, SimReduce::MinSigned, "min.s32")
LLAMAC_REDUCE(reduceMax, int32_t, SimReduce::MaxSigned, "max.s32")
LLAMAC_REDUCE(reduceMinUnsigned, uint32_t, SimReduce::MinUnsigned, "min.u32")
LLAMAC_REDUCE(reduceMaxUnsigned, uint32_t, SimReduce::MaxUnsigned, "max.u32")
LLAMAC_REDUCE(reduceOr, uint32_t, SimReduce::Or, "or.b32")
#undef LLAMAC_REDUCE

/// A barrier of the lanes of `mask`, which orders their accesses to memory.
LLAMAC_DEVICE void syncWarp(uint32_t mask = fullWarp) {
  LLAMAC_PTX(llamacSim->syncWarp(mask), "bar.warp.sync %0;", "r"(mask));
}

// Barriers of a block, and fences

/// A barrier of all threads of the block, which orders their accesses.
LLAMAC_DEVICE void syncThreads() {
  LLAMAC_PTX(LLAMAC_SIM_IN_PLACE llamacSim->barrier(0, 0, true), "bar.sync 0;");
}

/// Barrier `id` of 1 to 15 for `threads` threads, whole warps.
LLAMAC_DEVICE void barrierSync(uint32_t id, uint32_t threads) {
  LLAMAC_PTX(LLAMAC_SIM_IN_PLACE llamacSim->barrier(id, threads, true),
             "bar.sync %0, %1;", "r"(id), "r"(threads));
}

/// Counts as one of the `threads` of barrier `id` without waiting there.
LLAMAC_DEVICE void barrierArrive(uint32_t id, uint32_t threads) {
  LLAMAC_PTX(LLAMAC_SIM_IN_PLACE llamacSim->barrier(id, threads, false),
             "bar.arrive %0, %1;", "r"(id), "r"(threads));
}

/// Orders the thread's accesses for the whole GPU.
LLAMAC_DEVICE void fenceGpu() {
  LLAMAC_PTX(llamacSim->fence(), "fence.acq_rel.gpu;");
}

// Global memory

#ifdef LLAMAC_SIM
#define LLAMAC_LOAD(cached)                                                    \
  llamacSim->checkReadOnly(global, sizeof(T));                                 \
  return *global
#else
#define LLAMAC_LOAD(cached)                                                    \
  Vec<uint32_t, sizeof(T) / 4> words;                                          \
  if constexpr (sizeof(T) == 4)                                                \
    asm volatile("ld.global.nc" cached ".b32 %0, [%1];"                        \
                 : "=r"(words.values[0])                                       \
                 : "l"(global));                                               \
  else if constexpr (sizeof(T) == 8)                                           \
    asm volatile("ld.global.nc" cached ".v2.b32 {%0, %1}, [%2];"               \
                 : "=r"(words.values[0]), "=r"(words.values[1])                \
                 : "l"(global));                                               \
  else                                                                         \
    asm volatile("ld.global.nc" cached ".v4.b32 {%0, %1, %2, %3}, [%4];"       \
                 : "=r"(words.values[0]), "=r"(words.values[1]),               \
                   "=r"(words.values[2]), "=r"(words.values[3])                \
                 : "l"(global));                                               \
  return bitCast<T>(words)
#endif

/// Reads a T of 4, 8 or 16 bytes that nothing writes while the kernel runs.
template <typename T> LLAMAC_DEVICE T loadReadOnly(const T *global) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16,
                "one load reads 4, 8 or 16 bytes");
  LLAMAC_LOAD("");
}

/// Loads what is read once: it takes no place in the L1 cache.
template <typename T> LLAMAC_DEVICE T loadOnce(const T *global) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16,
                "one load reads 4, 8 or 16 bytes");
  LLAMAC_LOAD(".L1::no_allocate");
}
#undef LLAMAC_LOAD

/// A word that other blocks may be writing; later accesses stay after it.
LLAMAC_DEVICE uint32_t loadAcquire(const uint32_t *global) {
  LLAMAC_PTX_READ(uint32_t, "r", llamacSim->loadAcquire(global),
                  "ld.acquire.gpu.global.u32 %0, [%1];", "l"(global));
}

/// Writes a word that other blocks read; earlier accesses stay before it.
LLAMAC_DEVICE void storeRelease(uint32_t *global, uint32_t value) {
  LLAMAC_PTX(llamacSim->storeRelease(global, value),
             "st.release.gpu.global.u32 [%0], %1;", "l"(global), "r"(value));
}

/// Adds to a word of global memory and gives what it held. AcqRel orders the
/// accesses before and after it: the last of several arrivers sees what all
/// the others wrote. Relaxed orders nothing.
LLAMAC_DEVICE uint32_t atomicAddAcqRel(uint32_t *global, uint32_t value) {
  LLAMAC_PTX_READ(
      uint32_t, "r", llamacSim->atomicAdd(global, value, SimOrder::AcqRel),
      "atom.acq_rel.gpu.global.add.u32 %0, [%1], %2;", "l"(global), "r"(value));
}
LLAMAC_DEVICE uint32_t atomicAddRelaxed(uint32_t *global, uint32_t value) {
  LLAMAC_PTX_READ(
      uint32_t, "r", llamacSim->atomicAdd(global, value, SimOrder::Relaxed),
      "atom.relaxed.gpu.global.add.u32 %0, [%1], %2;", "l"(global), "r"(value));
}

// Words that blocks of a resident kernel pass each other. Each is an atomic of
// its own, those of a vector too, and orders nothing but itself: what else the
// writer of a word has written may come later. Vectors are aligned.

#ifdef LLAMAC_SIM
#define LLAMAC_LOAD_RELAXED(count, ptx, ...)                                   \
  llamacSim->loadRelaxed(words.values, global, count)
#define LLAMAC_STORE_RELAXED(count, ptx, ...)                                  \
  llamacSim->storeRelaxed(global, words.values, count)
#else
#define LLAMAC_LOAD_RELAXED(count, ptx, ...)                                   \
  asm volatile("ld.relaxed.gpu.global." ptx ";"                                \
               : __VA_ARGS__                                                   \
               : "l"(global)                                                   \
               : "memory")
#define LLAMAC_STORE_RELAXED(count, ptx, ...)                                  \
  asm volatile("st.relaxed.gpu.global." ptx ";"                                \
               :                                                               \
               : "l"(global), __VA_ARGS__                                      \
               : "memory")
#endif

LLAMAC_DEVICE uint32_t loadRelaxed(const uint32_t *global) {
  Vec<uint32_t, 1> words;
  LLAMAC_LOAD_RELAXED(1, "u32 %0, [%1]", "=r"(words[0]));
  return words[0];
}
LLAMAC_DEVICE Words2 loadRelaxed2(const uint32_t *global) {
  Words2 words;
  LLAMAC_LOAD_RELAXED(2, "v2.u32 {%0, %1}, [%2]", "=r"(words[0]),
                      "=r"(words[1]));
  return words;
}
LLAMAC_DEVICE Words4 loadRelaxed4(const uint32_t *global) {
  Words4 words;
  LLAMAC_LOAD_RELAXED(4, "v4.u32 {%0, %1, %2, %3}, [%4]", "=r"(words[0]),
                      "=r"(words[1]), "=r"(words[2]), "=r"(words[3]));
  return words;
}

LLAMAC_DEVICE void storeRelaxed(uint32_t *global, uint32_t word) {
  const Vec<uint32_t, 1> words{{word}};
  LLAMAC_STORE_RELAXED(1, "u32 [%0], %1", "r"(words[0]));
}
LLAMAC_DEVICE void storeRelaxed2(uint32_t *global, Words2 words) {
  LLAMAC_STORE_RELAXED(2, "v2.u32 [%0], {%1, %2}", "r"(words[0]),
                       "r"(words[1]));
}
LLAMAC_DEVICE void storeRelaxed4(uint32_t *global, Words4 words) {
  LLAMAC_STORE_RELAXED(4, "v4.u32 [%0], {%1, %2, %3, %4}", "r"(words[0]),
                       "r"(words[1]), "r"(words[2]), "r"(words[3]));
}
#undef LLAMAC_STORE_RELAXED
#undef LLAMAC_LOAD_RELAXED

// Time, and the end

/// Nanoseconds since some time, the same for the whole GPU, in steps that may
/// be as long as a microsecond. The simulator has no time: 0.
LLAMAC_DEVICE uint64_t globalTimer() {
  LLAMAC_PTX_WARP(uint64_t, "l", 0, "mov.u64 %0, %%globaltimer;");
}

/// Ends the whole kernel with an error.
[[noreturn]] LLAMAC_DEVICE void trap() {
  LLAMAC_PTX(LLAMAC_SIM_IN_PLACE llamacSim->trap(), "trap;");
  __builtin_unreachable();
}

// Shared memory

/// Adds to a word of shared memory and gives what it held; orders nothing.
/// There is none for 64 bits: on a GPU that is a loop of compare-and-swap.
LLAMAC_DEVICE uint32_t atomicAddShared(uint32_t *shared, uint32_t value) {
  LLAMAC_PTX_READ(uint32_t, "r", llamacSim->atomicAddShared(shared, value),
                  "atom.relaxed.cta.shared.add.u32 %0, [%1], %2;",
                  "r"(sharedAddress(shared)), "r"(value));
}

// Asynchronous copies from global to shared memory

/// Starts copying `size` bytes (4, 8 or 16, to which both pointers are
/// aligned), of which the first `valid` are read and the rest are zero.
template <int size>
LLAMAC_DEVICE void cpAsync(void *shared, const void *global,
                           uint32_t valid = size) {
  static_assert(size == 4 || size == 8 || size == 16,
                "cp.async copies 4, 8 or 16 bytes");
  if constexpr (size == 16)
    LLAMAC_PTX(llamacSim->cpAsync(shared, global, size, valid),
               "cp.async.cg.shared.global [%0], [%1], 16, %2;",
               "r"(sharedAddress(shared)), "l"(global), "r"(valid));
  else
    LLAMAC_PTX(llamacSim->cpAsync(shared, global, size, valid),
               "cp.async.ca.shared.global [%0], [%1], %2, %3;",
               "r"(sharedAddress(shared)), "l"(global), "n"(size), "r"(valid));
}

/// Closes the thread's group of the copies that it started since the last one.
LLAMAC_DEVICE void cpAsyncCommit() {
  LLAMAC_PTX(llamacSim->cpAsyncCommit(), "cp.async.commit_group;");
}

/// Waits until at most the newest `pending` of the thread's groups are in
/// flight. Other threads see the bytes after a barrier that follows.
template <int pending> LLAMAC_DEVICE void cpAsyncWait() {
  LLAMAC_PTX(llamacSim->cpAsyncWait(pending), "cp.async.wait_group %0;",
             "n"(pending));
}

// Matrix fragments

/// Where byte `at` of rows of `rowBytes` bytes lies under a swizzle of as many,
/// which spreads the same 16 bytes of eight rows over all banks; as tensor
/// copies write it.
template <int rowBytes> LLAMAC_DEVICE int swizzled(int at) {
  return at ^ (at >> 7 & (rowBytes / 16 - 1)) << 4;
}

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
#define LLAMAC_LDMATRIX(kind, operands, ...)                                   \
  asm volatile("ldmatrix.sync.aligned.m8n8." kind ".shared.b16 " operands ";"  \
               : __VA_ARGS__                                                   \
               : "r"(sharedAddress(sharedRow))                                 \
               : "memory")
#define LLAMAC_LDMATRIX_OF(number, operands, ...)                              \
  if constexpr (transpose)                                                     \
    LLAMAC_LDMATRIX(number ".trans", operands, __VA_ARGS__);                   \
  else                                                                         \
    LLAMAC_LDMATRIX(number, operands, __VA_ARGS__)
  if constexpr (count == 1) {
    LLAMAC_LDMATRIX_OF("x1", "{%0}, [%1]", "=r"(fragment[0]));
  } else if constexpr (count == 2) {
    LLAMAC_LDMATRIX_OF("x2", "{%0, %1}, [%2]", "=r"(fragment[0]),
                       "=r"(fragment[1]));
  } else {
    LLAMAC_LDMATRIX_OF("x4", "{%0, %1, %2, %3}, [%4]", "=r"(fragment[0]),
                       "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3]));
  }
#undef LLAMAC_LDMATRIX_OF
#undef LLAMAC_LDMATRIX
#endif
}

/// d += a * b for a of 16 rows, b of 8 columns, d 16 x 8. The depth is 16
/// elements of 16 bits, or 32 signed bytes: two or four elements a word. With
/// g = lane / 4 and t = lane % 4:
///   a[0], a[2]: row g, words t and t + 4; a[1], a[3]: row g + 8
///   b[0], b[1]: column g, words t and t + 4
///   d[0], d[1]: row g, columns 2t, 2t + 1; d[2], d[3]: row g + 8
#ifdef LLAMAC_SIM
#define LLAMAC_MMA(name, kind, type, in, ptx)                                  \
  LLAMAC_DEVICE void name(type(&d)[4], const uint32_t(&a)[4],                  \
                          const uint32_t(&b)[2] LLAMAC_SIM_SITE) {             \
    llamacSim->mma(kind, d, a, b, LLAMAC_SIM_LINE);                            \
  }
#else
#define LLAMAC_MMA(name, kind, type, in, ptx)                                  \
  LLAMAC_DEVICE void name(type(&d)[4], const uint32_t(&a)[4],                  \
                          const uint32_t(&b)[2]) {                             \
    asm volatile("mma.sync.aligned." ptx                                       \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "             \
                 "{%0, %1, %2, %3};"                                           \
                 : in(d[0]), in(d[1]), in(d[2]), in(d[3])                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),      \
                   "r"(b[1]));                                                 \
  }
#endif
LLAMAC_MMA(mmaBf16, SimMma::Bf16, float, "+f",
           "m16n8k16.row.col.f32.bf16.bf16.f32")
LLAMAC_MMA(mmaHalf, SimMma::Half, float, "+f",
           "m16n8k16.row.col.f32.f16.f16.f32")
LLAMAC_MMA(mmaInt8, SimMma::Int8, int32_t, "+r",
           "m16n8k32.row.col.s32.s8.s8.s32")
#undef LLAMAC_MMA

} // namespace llamac

#endif // LLAMAC_CODEGEN_DEVICE_PTX_CUH
