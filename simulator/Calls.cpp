//===- Calls.cpp - What simulated kernels call, in terms of groups --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "simulator/Machine.h"

#include "runtime/formats/FloatBits.h"
#include "runtime/formats/Fp8.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace llamac::sim {

/// The group, whose running thread calls from `site`.
static Group &groupAt(const void *site) {
  Group &group = Group::current();
  group.thread().site = site;
  return group;
}

/// In the function that a kernel calls.
#define GROUP groupAt(__builtin_return_address(0))

static unsigned coordinate(int which) {
  Group &group = Group::current();
  const Thread &thread = group.thread();
  const SimLaunch &launch = group.launch.launch;
  const SimSize &size = which < 3   ? thread.position
                        : which < 6 ? thread.block->position
                        : which < 9 ? launch.block
                                    : launch.grid;
  return which % 3 == 0 ? size.x : which % 3 == 1 ? size.y : size.z;
}

static void *sharedStatic(const void *key, const char *name, unsigned size,
                          unsigned alignment) {
  return GROUP.sharedStatic(key, name, size, alignment);
}
static void *sharedDynamic() { return Group::current().sharedDynamic(); }
static unsigned sharedAddress(const void *shared) {
  return GROUP.sharedAddress(shared);
}

// PTX has one NaN in each 16-bit format.
static unsigned short floatToHalf(float value) {
  return std::isnan(value) ? 0x7fff : f32ToF16(value);
}
static unsigned short floatToBf16(float value) {
  return std::isnan(value) ? 0x7fff : f32ToBf16(value);
}

/// Every E4M3 is a half; a NaN has no sign.
static unsigned e4m3x2ToHalf2(unsigned pair) {
  auto half = [](unsigned element) -> unsigned {
    return floatToHalf(e4m3ToF32(static_cast<uint8_t>(element)));
  };
  return half(pair) | half(pair >> 8) << 16;
}

/// Rounds to odd: `rounded` is the nearest to a number that is greater by
/// `rest`. If they differ and it is even, the result is its neighbour on that
/// side. It rounds to what the number itself does, where at least two digits
/// are lost.
template <class T> static T roundToOdd(T rounded, double rest) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  if (rest == 0 || std::isnan(rest) || std::bit_cast<Bits>(rounded) % 2 != 0)
    return rounded;
  return std::nextafter(rounded, rest > 0
                                     ? std::numeric_limits<T>::infinity()
                                     : -std::numeric_limits<T>::infinity());
}

/// a * b + c, rounded once to bf16; all three are bf16, so a * b is exact.
static unsigned short fmaBf16(double a, double b, double c) {
  const double product = a * b, sum = product + c;
  // The sum of two numbers lost this much (Knuth, TAOCP 4.2.2, theorem B).
  const double ofC = sum - product;
  const double lost = product - (sum - ofC) + (c - ofC);
  const double all = roundToOdd(sum, lost);
  const auto narrow = static_cast<float>(all);
  return floatToBf16(roundToOdd(narrow, all - double{narrow}));
}

static unsigned fmaBf162(unsigned a, unsigned b, unsigned c) {
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    auto number = [&](unsigned pair) {
      return double{bf16ToF32(static_cast<uint16_t>(pair >> shift))};
    };
    result |= static_cast<unsigned>(fmaBf16(number(a), number(b), number(c)))
              << shift;
  }
  return result;
}

static unsigned fmaHalf2(unsigned a, unsigned b, unsigned c) {
  unsigned result = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    auto half = [&](unsigned pair) {
      return double{f16ToF32(static_cast<uint16_t>(pair >> shift))};
    };
    // The product and the sum of halves are exact in double, but for sums of
    // far apart exponents, whose first rounding cannot meet a tie.
    const double sum = half(a) * half(b) + half(c);
    result |= static_cast<unsigned>(floatToHalf(static_cast<float>(sum)))
              << shift;
  }
  return result;
}

static unsigned shuffle(unsigned mask, int kind, unsigned value, unsigned by) {
  return GROUP.runCollective({WarpOp::Shuffle, kind, mask, value, by});
}
static unsigned ballot(unsigned mask, bool condition) {
  return GROUP.runCollective({WarpOp::Ballot, 0, mask, condition});
}
static unsigned reduce(unsigned mask, int kind, unsigned value) {
  return GROUP.runCollective({WarpOp::Reduce, kind, mask, value});
}
static void syncWarp(unsigned mask) {
  GROUP.runCollective({WarpOp::Sync, 0, mask});
}
static void ldmatrix(unsigned *fragment, int count, bool transpose,
                     const void *row) {
  GROUP.runCollective({WarpOp::LoadMatrix, count | (transpose ? 8 : 0), ~0u, 0,
                       0, fragment, row});
}
static void mma(int kind, void *d, const void *a, const void *b, int site) {
  GROUP.runCollective(
      {WarpOp::Mma, kind, ~0u, static_cast<uint32_t>(site), 0, d, a, b});
}

static void barrier(unsigned id, unsigned threads, bool wait) {
  GROUP.arriveAtBarrier(id, threads, wait);
}
static void fence() { GROUP.fence(); }

static void checkReadOnly(const void *global, unsigned size) {
  Group &group = GROUP;
  group.checkAlignment(global, size, "the source of loadReadOnly");
  group.checkReadOnly(global, size);
}
static unsigned loadAcquire(const unsigned *global) {
  Group &group = GROUP;
  group.yield(global); // A thread that polls lets the others come first.
  group.check(group.thread(), global, 4, Group::Access::Atomic);
  const unsigned value = __atomic_load_n(global, __ATOMIC_ACQUIRE);
  group.acquire(global, false);
  return value;
}
static void storeRelease(unsigned *global, unsigned value) {
  Group &group = GROUP;
  group.check(group.thread(), global, 4, Group::Access::AtomicStore);
  group.release(global, false, false);
  __atomic_store_n(global, value, __ATOMIC_RELEASE);
  group.progressed();
}
static void loadRelaxed(unsigned *words, const unsigned *global,
                        unsigned count) {
  GROUP.loadRelaxed(words, global, count);
}
static void storeRelaxed(unsigned *global, const unsigned *words,
                         unsigned count) {
  GROUP.storeRelaxed(global, words, count);
}
static unsigned atomicAdd(unsigned *global, unsigned value, int order) {
  Group &group = GROUP;
  group.check(group.thread(), global, 4, Group::Access::Atomic);
  const bool needsFence = order == SimOrder::Relaxed;
  group.acquire(global, needsFence);
  group.release(global, needsFence, true);
  group.progressed();
  return __atomic_fetch_add(global, value, __ATOMIC_ACQ_REL);
}
static unsigned atomicAddShared(unsigned *shared, unsigned value) {
  GROUP.checkSharedAtomic(shared);
  return __atomic_fetch_add(shared, value, __ATOMIC_RELAXED);
}

static AsyncCopy copyOf(void *shared, const void *global, unsigned size,
                        unsigned valid) {
  return {static_cast<std::byte *>(shared),
          static_cast<const std::byte *>(global), size, valid};
}
static void cpAsync(void *shared, const void *global, unsigned size,
                    unsigned valid) {
  GROUP.cpAsync(copyOf(shared, global, size, valid));
}
static void cpAsyncCommit() { GROUP.cpAsyncCommit(); }
static void cpAsyncWait(unsigned pending) { GROUP.cpAsyncWait(pending); }

static void mbarrierInit(unsigned long *barrier, unsigned arrivals) {
  GROUP.initBarrier(barrier, arrivals);
}
static void mbarrierArrive(unsigned long *barrier, unsigned expectedBytes) {
  GROUP.arriveAt(barrier, expectedBytes);
}
static bool mbarrierTryWait(unsigned long *barrier, unsigned parity) {
  return GROUP.tryWait(barrier, parity);
}
static void bulkCopy(void *shared, const void *global, unsigned size,
                     unsigned long *barrier) {
  GROUP.bulkCopy(copyOf(shared, global, size, size), barrier);
}

static void bulkPrefetch(const void *global, unsigned size) {
  GROUP.checkPrefetch(global, size);
}

static void fenceProxyAsync() { GROUP.fenceProxyAsync(); }

static unsigned clusterRank() { return GROUP.clusterRank(); }
static void clusterArrive() { GROUP.arriveAtCluster(); }
static void clusterWait() { GROUP.waitForCluster(); }
static void mbarrierArriveCluster(unsigned long *barrier, unsigned rank) {
  GROUP.arriveAtRank(barrier, rank);
}
static void tensorLoad(void *shared, const void *map, int column, int row,
                       unsigned long *barrier, unsigned blocks) {
  GROUP.tensorLoad(static_cast<std::byte *>(shared),
                   {*static_cast<const SimTensorMap *>(map), column, row},
                   barrier, blocks);
}

static void wgmma(const SimWgmma &product) { GROUP.issueProduct(product); }
static void wgmmaFence() { GROUP.fenceProducts(); }
static void wgmmaCommit() { GROUP.commitProducts(); }
static void wgmmaWait(unsigned pending) {
  GROUP.runCollective({WarpOp::WgmmaWait, static_cast<int>(pending), ~0u});
}

static void gridDependencyWait() { GROUP.waitForLaunches(); }

static void trap() { GROUP.fail("trap: the kernel stops itself"); }

static void access(const void *address, unsigned long size, bool isWrite,
                   const void *site) {
  // The kernel reads this file's table before each of its calls.
  if (reinterpret_cast<uintptr_t>(address) -
          reinterpret_cast<uintptr_t>(&calls()) <
      sizeof(SimCalls))
    return;
  Group &group = groupAt(site);
  group.check(group.thread(), address, size,
              isWrite ? Group::Access::Write : Group::Access::Read);
}

static void checkAlignment(const void *address, unsigned alignment) {
  GROUP.checkAlignment(address, alignment, "a vector");
}

/// Their table, in the order of SimCalls.
template <class... Functions>
static constexpr SimCalls tableOf(Functions... functions) {
  return {functions...};
}

const SimCalls &calls() {
  static constexpr SimCalls table = tableOf(
      coordinate, sharedStatic, sharedDynamic, sharedAddress, f16ToF32,
      floatToHalf, floatToBf16, e4m3x2ToHalf2, fmaHalf2, fmaBf162, shuffle,
      ballot, reduce, syncWarp, ldmatrix, mma, barrier, fence, checkReadOnly,
      loadAcquire, storeRelease, loadRelaxed, storeRelaxed, atomicAdd,
      atomicAddShared, cpAsync, cpAsyncCommit, cpAsyncWait, mbarrierInit,
      mbarrierArrive, mbarrierTryWait, bulkCopy, bulkPrefetch, fenceProxyAsync,
      clusterRank, clusterArrive, clusterWait, mbarrierArriveCluster,
      tensorLoad, wgmma, wgmmaFence, wgmmaCommit, wgmmaWait, gridDependencyWait,
      trap, access, checkAlignment);
  return table;
}

} // namespace llamac::sim
