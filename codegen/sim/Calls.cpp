//===- Calls.cpp - What simulated kernels call, in terms of groups --------===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/sim/Machine.h"

#include "runtime/io/FloatBits.h"
#include "runtime/io/Mxfp8.h"

#include <cmath>

/// The place in the kernel that called the function this stands in.
#define SITE __builtin_return_address(0)

namespace llamac::sim {

static Group &group() { return Group::current(); }

static unsigned coordinate(int which) {
  const Thread &thread = group().thread();
  const SimLaunch &launch = group().launch.launch;
  const SimSize sizes[4] = {thread.position, thread.block->position,
                            launch.block, launch.grid};
  const SimSize &size = sizes[which / 3];
  return which % 3 == 0 ? size.x : which % 3 == 1 ? size.y : size.z;
}

static void *sharedStatic(const void *key, const char *name, unsigned size,
                          unsigned alignment) {
  return group().sharedStatic(key, name, size, alignment, SITE);
}
static void *sharedDynamic() { return group().sharedDynamic(); }
static unsigned sharedAddress(const void *shared) {
  return group().sharedAddress(shared, SITE);
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
  WarpArguments arguments{WarpOp::Shuffle, kind, mask, value, by};
  group().meetWarp(arguments, SITE);
  return arguments.value;
}
static unsigned ballot(unsigned mask, bool condition) {
  WarpArguments arguments{WarpOp::Ballot, 0, mask, condition};
  group().meetWarp(arguments, SITE);
  return arguments.value;
}
static unsigned reduce(unsigned mask, int kind, unsigned value) {
  WarpArguments arguments{WarpOp::Reduce, kind, mask, value};
  group().meetWarp(arguments, SITE);
  return arguments.value;
}
static void syncWarp(unsigned mask) {
  WarpArguments arguments{WarpOp::Sync, 0, mask};
  group().meetWarp(arguments, SITE);
}
static void ldmatrix(unsigned *fragment, int count, bool transpose,
                     const void *row) {
  WarpArguments arguments{WarpOp::LoadMatrix, count | (transpose ? 8 : 0), ~0u};
  arguments.d = fragment;
  arguments.a = row;
  group().meetWarp(arguments, SITE);
}
static void mma(int kind, void *d, const void *a, const void *b) {
  WarpArguments arguments{WarpOp::Mma, kind, ~0u, 0, 0, d, a, b};
  group().meetWarp(arguments, SITE);
}

static void barrier(unsigned id, unsigned threads, bool wait) {
  group().meetBarrier(id, threads, wait, SITE);
}
static void fence() { group().fence(); }

static void checkReadOnly(const void *global, unsigned size) {
  group().checkAlignment(global, size, "the source of loadReadOnly", SITE);
  group().checkReadOnly(global, size, SITE);
}
static unsigned loadAcquire(const unsigned *global) {
  // A thread that polls lets the others come first.
  group().yield(SITE);
  group().check(group().thread(), global, 4, Group::Access::Atomic, SITE);
  const unsigned value = __atomic_load_n(global, __ATOMIC_ACQUIRE);
  group().acquire(global, false);
  return value;
}
static void storeRelease(unsigned *global, unsigned value) {
  group().check(group().thread(), global, 4, Group::Access::AtomicStore, SITE);
  group().release(global, false, false);
  __atomic_store_n(global, value, __ATOMIC_RELEASE);
  group().progressed();
}
static unsigned atomicAdd(unsigned *global, unsigned value, int order) {
  group().check(group().thread(), global, 4, Group::Access::Atomic, SITE);
  const bool needsFence = order == SimOrder::Relaxed;
  group().acquire(global, needsFence);
  group().release(global, needsFence, true);
  group().progressed();
  return __atomic_fetch_add(global, value, __ATOMIC_ACQ_REL);
}
static unsigned atomicAddShared(unsigned *shared, unsigned value) {
  group().checkSharedAtomic(shared, SITE);
  return __atomic_fetch_add(shared, value, __ATOMIC_RELAXED);
}

static AsyncCopy copyOf(void *shared, const void *global, unsigned size,
                        unsigned valid, const void *site) {
  return {static_cast<std::byte *>(shared),
          static_cast<const std::byte *>(global), size, valid, site};
}
static void cpAsync(void *shared, const void *global, unsigned size,
                    unsigned valid) {
  group().cpAsync(copyOf(shared, global, size, valid, SITE));
}
static void cpAsyncCommit() { group().cpAsyncCommit(); }
static void cpAsyncWait(unsigned pending) { group().cpAsyncWait(pending); }

static void mbarrierInit(unsigned long *barrier, unsigned arrivals) {
  group().initBarrier(barrier, arrivals, SITE);
}
static void mbarrierArrive(unsigned long *barrier, unsigned expectedBytes) {
  group().arriveAt(barrier, expectedBytes, SITE);
}
static bool mbarrierTryWait(unsigned long *barrier, unsigned parity) {
  return group().tryWait(barrier, parity, SITE);
}
static void bulkCopy(void *shared, const void *global, unsigned size,
                     unsigned long *barrier) {
  group().bulkCopy(copyOf(shared, global, size, size, SITE), barrier);
}

static void fenceProxyAsync() { group().fenceProxyAsync(); }

static unsigned clusterRank() { return group().clusterRank(); }
static void clusterArrive() { group().arriveAtCluster(SITE); }
static void clusterWait() { group().waitForCluster(SITE); }
static void mbarrierArriveCluster(unsigned long *barrier, unsigned rank) {
  group().arriveAtRank(barrier, rank, SITE);
}
static void tensorLoad(void *shared, const void *map, int column, int row,
                       unsigned long *barrier, unsigned blocks) {
  group().tensorLoad(static_cast<std::byte *>(shared),
                     {*static_cast<const SimTensorMap *>(map), column, row},
                     barrier, blocks, SITE);
}

static void wgmma(const SimWgmma &product) {
  group().issueProduct(product, SITE);
}
static void wgmmaFence() { group().fenceProducts(); }
static void wgmmaCommit() { group().commitProducts(); }
static void wgmmaWait(unsigned pending) {
  WarpArguments arguments{WarpOp::WgmmaWait, static_cast<int>(pending), ~0u};
  group().meetWarp(arguments, SITE);
}

static void gridDependencyWait() { group().waitForLaunches(SITE); }

static void access(const void *address, unsigned long size, bool isWrite,
                   const void *site) {
  // The kernel reads this file's table before each of its calls.
  if (reinterpret_cast<uintptr_t>(address) -
          reinterpret_cast<uintptr_t>(&calls()) <
      sizeof(SimCalls))
    return;
  group().check(group().thread(), address, size,
                isWrite ? Group::Access::Write : Group::Access::Read, site);
}

static void checkAlignment(const void *address, unsigned alignment) {
  group().checkAlignment(address, alignment, "a vector", SITE);
}

const SimCalls &calls() {
  static constexpr SimCalls table = {
      coordinate,
      sharedStatic,
      sharedDynamic,
      sharedAddress,
      f16ToF32,
      floatToHalf,
      floatToBf16,
      e4m3x2ToHalf2,
      fmaHalf2,
      shuffle,
      ballot,
      reduce,
      syncWarp,
      ldmatrix,
      mma,
      barrier,
      fence,
      checkReadOnly,
      loadAcquire,
      storeRelease,
      atomicAdd,
      atomicAddShared,
      cpAsync,
      cpAsyncCommit,
      cpAsyncWait,
      mbarrierInit,
      mbarrierArrive,
      mbarrierTryWait,
      bulkCopy,
      fenceProxyAsync,
      clusterRank,
      clusterArrive,
      clusterWait,
      mbarrierArriveCluster,
      tensorLoad,
      wgmma,
      wgmmaFence,
      wgmmaCommit,
      wgmmaWait,
      gridDependencyWait,
      access,
      checkAlignment,
  };
  return table;
}

} // namespace llamac::sim
