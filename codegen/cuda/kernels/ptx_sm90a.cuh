//===- ptx_sm90a.cuh - Instructions of sm_90a -------------------*- C++ -*-===//
//
// Part of the llamac project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Hopper's tier: tensor copies, clusters of blocks, and matrix products of a
// warpgroup, four warps that begin at a multiple of four. A kernel asks
// LLAMAC_HAS_SM90A before it uses them. Tensor copies and clusters are the same
// on later GPUs; wgmma and setmaxnreg exist on sm_90a alone.
//
//===----------------------------------------------------------------------===//

#ifndef LLAMAC_CODEGEN_DEVICE_PTX_SM90A_CUH
#define LLAMAC_CODEGEN_DEVICE_PTX_SM90A_CUH

#include "llamac/ptx_sm90.cuh"

namespace llamac {

/// A matrix in global memory and how boxes of it are copied, as
/// cuTensorMapEncodeTiled writes it. LLAMAC_TENSOR_MAP(name) declares a
/// parameter of a kernel that is one, before `rows`.
struct alignas(64) TensorMap {
  uint64_t words[16];
};

} // namespace llamac

#ifndef LLAMAC_SIM
#define LLAMAC_TENSOR_MAP(name) const __grid_constant__ llamac::TensorMap name
#endif

#if LLAMAC_HAS_SM90A

namespace llamac {

// Clusters: the blocks that share blockIdx.x / clusterSize

/// The block's number in its cluster.
LLAMAC_DEVICE uint32_t clusterRank() {
  LLAMAC_PTX_WARP(uint32_t, "r", llamacSim->clusterRank(),
                  "mov.u32 %0, %%cluster_ctarank;");
}

/// Every thread of the cluster arrives, then waits for all the others, whose
/// accesses before come before its own after. A block does so before it ends
/// when others may still reach its shared memory.
LLAMAC_DEVICE void clusterArrive() {
  LLAMAC_PTX(LLAMAC_SIM_IN_PLACE llamacSim->clusterArrive(),
             "barrier.cluster.arrive.release;");
}
LLAMAC_DEVICE void clusterWait() {
  LLAMAC_PTX(LLAMAC_SIM_IN_PLACE llamacSim->clusterWait(),
             "barrier.cluster.wait.acquire;");
}

/// Arrives at the barrier that lies at `shared` in block `rank` of the cluster.
/// Orders accesses of the own block only: `.release.cluster` would be a fence
/// for the whole GPU. What was read from shared memory has been read.
LLAMAC_DEVICE void mbarrierArriveCluster(uint64_t *shared, uint32_t rank) {
  LLAMAC_PTX(llamacSim->mbarrierArriveCluster(shared, rank),
             "{ .reg .b32 remote;\n"
             "  mapa.shared::cluster.u32 remote, %0, %1;\n"
             "  mbarrier.arrive.shared::cluster.b64 _, [remote]; }",
             "r"(sharedAddress(shared)), "r"(rank));
}

// Copies of boxes of a matrix

/// Starts copying the map's box at (row, column) to shared memory, rows one
/// after another, 128-byte aligned. What lies outside of the matrix becomes
/// zero; all bytes of the box count at `barrier`. With a swizzle the 16-byte
/// pieces of a row lie in another order: bits 4.. of their address are XORed
/// with bits 7.. of it, as many as the swizzle has (128 B: 3, 64 B: 2, 32 B:
/// 1).
LLAMAC_DEVICE void tensorLoad(void *shared, const TensorMap &map, int column,
                              int row, uint64_t *barrier) {
  LLAMAC_PTX(llamacSim->tensorLoad(shared, &map, column, row, barrier, 0),
             "cp.async.bulk.tensor.2d.shared::cluster.global"
             ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];",
             "r"(sharedAddress(shared)), "l"(&map), "r"(column), "r"(row),
             "r"(sharedAddress(barrier)));
}

/// Loads to each block of the cluster whose bit is set in `blocks`: the box and
/// the count go to where `shared` and `barrier` lie in that block.
LLAMAC_DEVICE void tensorLoadMulticast(void *shared, const TensorMap &map,
                                       int column, int row, uint64_t *barrier,
                                       uint16_t blocks) {
  LLAMAC_PTX(llamacSim->tensorLoad(shared, &map, column, row, barrier, blocks),
             "cp.async.bulk.tensor.2d.shared::cluster.global"
             ".mbarrier::complete_tx::bytes.multicast::cluster "
             "[%0], [%1, {%2, %3}], [%4], %5;",
             "r"(sharedAddress(shared)), "l"(&map), "r"(column), "r"(row),
             "r"(sharedAddress(barrier)), "h"(blocks));
}

// Registers of a warpgroup

/// All threads of the warpgroup have `registers` registers from here on, a
/// multiple of 8 from 24 to 256. What some give others may take.
template <int registers> LLAMAC_DEVICE void registersTake() {
  static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256);
#ifndef LLAMAC_SIM
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}
template <int registers> LLAMAC_DEVICE void registersGive() {
  static_assert(registers % 8 == 0 && registers >= 24 && registers <= 256);
#ifndef LLAMAC_SIM
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
#endif
}

// Matrix products of a warpgroup

/// How rows of a matrix lie in shared memory; see tensorLoad.
enum class Swizzle : uint32_t { None, Bytes128, Bytes64, Bytes32 };

/// A matrix of 16-bit elements for wgmma, as the PTX ISA's chapter on
/// asynchronous warpgroup matrix instructions packs it. `start` is 16-byte
/// aligned, and 0 modulo 8 rows of the swizzle but for the depth's offset.
///   K-major (rows of the matrix are contiguous), swizzled: `stride` is the
///   distance of groups of eight rows; `leading` is not used.
///   MN-major (columns are contiguous), swizzled: `leading` is the distance of
///   groups of as many rows as the swizzle has elements, `stride` that of
///   groups of eight columns.
///   K-major, not swizzled: core matrices of 8 rows of 16 bytes; `leading` is
///   their distance along the depth, `stride` along the rows.
LLAMAC_DEVICE uint64_t matrixDescriptor(const void *start, uint32_t leading,
                                        uint32_t stride, Swizzle swizzle) {
  auto field = [](uint32_t bytes) -> uint64_t {
    return (bytes & 0x3ffff) >> 4;
  };
  return field(sharedAddress(start)) | field(leading) << 16 |
         field(stride) << 32 | static_cast<uint64_t>(swizzle) << 62;
}

/// Orders the warp's accesses to registers before its next products: before the
/// first one, and after any other access to sums or to `a`.
LLAMAC_DEVICE void wgmmaFence() {
  LLAMAC_PTX(llamacSim->wgmmaFence(), "wgmma.fence.sync.aligned;");
}

/// Closes the group of the products since the last one.
LLAMAC_DEVICE void wgmmaCommit() {
  LLAMAC_PTX(llamacSim->wgmmaCommit(), "wgmma.commit_group.sync.aligned;");
}

/// Waits until at most the newest `pending` groups are in flight. Until then
/// neither the sums nor `a` may be touched, nor shared operands be overwritten.
template <int pending> LLAMAC_DEVICE void wgmmaWait() {
  LLAMAC_PTX(llamacSim->wgmmaWait(pending), "wgmma.wait_group.sync.aligned %0;",
             "n"(pending));
}

/// d = a b, or d += a b, begun: a is 64 x 16, b is 16 x N, d is 64 x N with N =
/// 2 * size of d. Warp w of the four has rows 16 w to 16 w + 15; with g =
/// lane / 4 and t = lane % 4, of those rows:
///   d[4 i], d[4 i + 1]: row g, columns 8 i + 2t and the next
///   d[4 i + 2], d[4 i + 3]: row g + 8
///   a, in registers: as of mmaBf16 (ptx.cuh)
///   a, in shared memory: [64][16], by a descriptor
///   b, in shared memory: [N][16], by a descriptor; `transposeB`: MN-major
#define LLAMAC_SUMS8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define LLAMAC_SUMS16                                                          \
  LLAMAC_SUMS8                                                                 \
  ", %8, %9, %10, %11, %12, %13, %14, %15"
#define LLAMAC_SUMS32                                                          \
  LLAMAC_SUMS16                                                                \
  ", %16, %17, %18, %19, %20, %21, %22, %23"                                   \
  ", %24, %25, %26, %27, %28, %29, %30, %31"
#define LLAMAC_SUMS64                                                          \
  LLAMAC_SUMS32                                                                \
  ", %32, %33, %34, %35, %36, %37, %38, %39"                                   \
  ", %40, %41, %42, %43, %44, %45, %46, %47"                                   \
  ", %48, %49, %50, %51, %52, %53, %54, %55"                                   \
  ", %56, %57, %58, %59, %60, %61, %62, %63"
#define LLAMAC_SUMS128                                                         \
  LLAMAC_SUMS64                                                                \
  ", %64, %65, %66, %67, %68, %69, %70, %71"                                   \
  ", %72, %73, %74, %75, %76, %77, %78, %79"                                   \
  ", %80, %81, %82, %83, %84, %85, %86, %87"                                   \
  ", %88, %89, %90, %91, %92, %93, %94, %95"                                   \
  ", %96, %97, %98, %99, %100, %101, %102, %103"                               \
  ", %104, %105, %106, %107, %108, %109, %110, %111"                           \
  ", %112, %113, %114, %115, %116, %117, %118, %119"                           \
  ", %120, %121, %122, %123, %124, %125, %126, %127"
#define LLAMAC_BOTH4(i)                                                        \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define LLAMAC_BOTH8(i) LLAMAC_BOTH4(i), LLAMAC_BOTH4(i + 4)
#define LLAMAC_BOTH16(i) LLAMAC_BOTH8(i), LLAMAC_BOTH8(i + 8)
#define LLAMAC_BOTH32(i) LLAMAC_BOTH16(i), LLAMAC_BOTH16(i + 16)
#define LLAMAC_BOTH64(i) LLAMAC_BOTH32(i), LLAMAC_BOTH32(i + 32)
#define LLAMAC_BOTH128(i) LLAMAC_BOTH64(i), LLAMAC_BOTH64(i + 64)
#ifdef LLAMAC_SIM
#define LLAMAC_WGMMA_SIZE(name, kind, ptx, columns, sums, p0, p1, p2, p3, p4,  \
                          p5, p6)                                              \
  template <bool transposeB = false>                                           \
  LLAMAC_DEVICE void name(float(&d)[sums], const uint32_t(&a)[4], uint64_t b,  \
                          bool accumulate = true LLAMAC_SIM_SITE) {            \
    llamacSim->wgmma(                                                          \
        {kind, columns, d, a, 0, b, accumulate, transposeB, LLAMAC_SIM_LINE}); \
  }                                                                            \
  template <bool transposeB = false>                                           \
  LLAMAC_DEVICE void name(float(&d)[sums], uint64_t a, uint64_t b,             \
                          bool accumulate = true LLAMAC_SIM_SITE) {            \
    llamacSim->wgmma({kind, columns, d, nullptr, a, b, accumulate, transposeB, \
                      LLAMAC_SIM_LINE});                                       \
  }
#else
#define LLAMAC_WGMMA_SIZE(name, kind, ptx, columns, sums, p0, p1, p2, p3, p4,  \
                          p5, p6)                                              \
  template <bool transposeB = false>                                           \
  LLAMAC_DEVICE void name(float(&d)[sums], const uint32_t(&a)[4], uint64_t b,  \
                          bool accumulate = true) {                            \
    asm volatile(                                                              \
        "{ .reg .pred p; setp.ne.b32 p, %" #p5 ", 0;\n"                        \
        "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." ptx "\n"       \
        "{" LLAMAC_SUMS##sums "}, {%" #p0 ", %" #p1 ", %" #p2 ", %" #p3 "}, "  \
                              "%" #p4 ", p, 1, 1, %" #p6 "; }"                 \
        : LLAMAC_BOTH##sums(0)                                                 \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),                  \
          "r"(static_cast<int>(accumulate)),                                   \
          "n"(static_cast<int>(transposeB)));                                  \
  }                                                                            \
  template <bool transposeB = false>                                           \
  LLAMAC_DEVICE void name(float(&d)[sums], uint64_t a, uint64_t b,             \
                          bool accumulate = true) {                            \
    asm volatile(                                                              \
        "{ .reg .pred p; setp.ne.b32 p, %" #p2 ", 0;\n"                        \
        "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." ptx "\n"       \
        "{" LLAMAC_SUMS##sums "}, %" #p0 ", %" #p1 ", p, 1, 1, 0, %" #p3 "; }" \
        : LLAMAC_BOTH##sums(0)                                                 \
        : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)),                   \
          "n"(static_cast<int>(transposeB)));                                  \
  }
#endif
#define LLAMAC_WGMMA(name, kind, ptx)                                          \
  LLAMAC_WGMMA_SIZE(name, kind, ptx, 16, 8, 8, 9, 10, 11, 12, 13, 14)          \
  LLAMAC_WGMMA_SIZE(name, kind, ptx, 32, 16, 16, 17, 18, 19, 20, 21, 22)       \
  LLAMAC_WGMMA_SIZE(name, kind, ptx, 64, 32, 32, 33, 34, 35, 36, 37, 38)       \
  LLAMAC_WGMMA_SIZE(name, kind, ptx, 128, 64, 64, 65, 66, 67, 68, 69, 70)      \
  LLAMAC_WGMMA_SIZE(name, kind, ptx, 256, 128, 128, 129, 130, 131, 132, 133,   \
                    134)
LLAMAC_WGMMA(wgmmaBf16, SimMma::Bf16, "bf16.bf16")
LLAMAC_WGMMA(wgmmaHalf, SimMma::Half, "f16.f16")
#undef LLAMAC_WGMMA
#undef LLAMAC_WGMMA_SIZE
#undef LLAMAC_SUMS8
#undef LLAMAC_SUMS16
#undef LLAMAC_SUMS32
#undef LLAMAC_SUMS64
#undef LLAMAC_SUMS128
#undef LLAMAC_BOTH4
#undef LLAMAC_BOTH8
#undef LLAMAC_BOTH16
#undef LLAMAC_BOTH32
#undef LLAMAC_BOTH64
#undef LLAMAC_BOTH128

} // namespace llamac

#endif // LLAMAC_HAS_SM90A

#endif // LLAMAC_CODEGEN_DEVICE_PTX_SM90A_CUH
